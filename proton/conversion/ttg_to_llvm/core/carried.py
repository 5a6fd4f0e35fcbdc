"""What a loop carries: of a thread's vectors the elements that are used.

LLVM carries a vector around a loop as a whole. Of the pointers behind accesses of eight elements
one in eight is used, and all would be moved on, through LLVM and the assembler: so a vector is
carried that has those which are used. It stays a vector, since of scalars LLVM makes others to
carry, which take more registers (a product of blocks of 128 x 256 x 64: 198 in the place of 182).
"""

from dataclasses import dataclass

from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.scalars import Scalars, is_repeated, place_of
from proton.dialect import isa
from proton.dialect.mlir import Operation, Value, ir, llvm, scf
from proton.dialect.regions import ForLoop, end_of, with_carried, without_carried
from proton.dialect.walk import parent_of


@dataclass(frozen=True)
class _Carried:
    """A vector of which not all elements are used: its number among what a loop carries, the
    elements, and the ops that take them of it, or of what is computed of it."""

    number: int
    indices: list[int]
    extracts: list[Operation]


def carry_what_is_used(loop: Operation, scalars: Scalars) -> Operation:
    """Changes what an `scf.for` carries, and gives the loop; loops inside of it come first."""
    found = _found(ForLoop(loop))
    if not found:
        return loop
    old = ForLoop(loop).init_args
    with ir.InsertionPoint(loop), loop.location:
        initial = [scalars.some(old[carried.number], carried.indices) for carried in found]
    scalars.forget(*loop.results)
    view = ForLoop(with_carried(loop, initial))
    _use_new(view, found, scalars)
    scalars.forget(*view.op.results)
    return without_carried(view.op, {carried.number for carried in found})


def _found(loop: ForLoop) -> list[_Carried]:
    found = []
    for number, (argument, result) in enumerate(zip(loop.iter_args, loop.op.results, strict=True)):
        extracts = _extracts(argument, result) if v.is_vector(argument.type) else None
        if extracts is None:
            continue
        indices = sorted({place_of(extract) for extract in extracts})
        if 0 < len(indices) < v.count_of(argument):
            found.append(_Carried(number, indices, extracts))
    return found


def _extracts(argument: Value, result: Value) -> list[Operation] | None:
    """All that takes an element of a vector that is carried, in the loop or behind it, or of what
    is computed of it; None where something wants more of it."""
    found: list[Operation] = []
    seen: set[Value] = set()
    waiting = [argument, result]
    while waiting:
        value = waiting.pop()
        if value in seen:
            continue
        seen.add(value)
        for use in value.uses:
            op = use.owner.operation
            if isa(op, llvm.ExtractElementOp):
                found.append(op)
            elif is_repeated(op):
                waiting.append(op.results[0])
            elif not _yields(op, use.operand_number, argument):
                return None
    return found


def _yields(end: Operation, number: int, argument: Value) -> bool:
    """True if an op yields what becomes `argument` in the next iteration."""
    if not isa(end, scf.YieldOp):
        return False
    around = parent_of(end)
    return isa(around, scf.ForOp) and bool(ForLoop(around).iter_args[number] == argument)


def _use_new(loop: ForLoop, found: list[_Carried], scalars: Scalars) -> None:
    """Has everybody use what the loop carries last, which as yet is yielded unchanged, and leaves
    the vectors that it carried without a use."""
    arguments, results = loop.iter_args, list(loop.op.results)
    first, end, unused = len(arguments) - len(found), end_of(loop.body), loop.init_args
    beginning = ir.InsertionPoint.at_block_begin(loop.body)
    for place, carried in enumerate(found, first):
        for values, here in ((arguments, beginning), (results, ir.InsertionPoint.after(loop.op))):
            with here, loop.op.location:
                scalars.put_some(values[carried.number], carried.indices, values[place])
    for place, carried in enumerate(found, first):
        with ir.InsertionPoint(end), end.location:
            end.operands[place] = scalars.some(end.operands[carried.number], carried.indices)
        end.operands[carried.number] = unused[carried.number]
        for extract in carried.extracts:
            scalar = scalars.element(extract.operands[0], place_of(extract))
            extract.results[0].replace_all_uses_with(scalar)
    for carried in found:  # what still uses them is used by nobody
        for values in (arguments, results):
            values[carried.number].replace_all_uses_with(unused[carried.number])
    scalars.forget(*arguments)
