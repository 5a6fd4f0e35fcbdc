"""Loops carry one pointer for a block whose addresses all move alike, where those are many, or
where the loop waits for what it loads from them.

    %p = tt.addptr (tt.splat %a), %o             scf.for ... iter_args(%b = %a) {
    scf.for ... iter_args(%q = %p) {               %q = tt.addptr (tt.splat %b), %o {ttg.recomputed}
      %x = tt.load %q                        =>    %x = tt.load %q
      %r = tt.addptr %q, (tt.splat %s)             %c = tt.addptr %b, %s
      scf.yield %r                                 scf.yield %c
    }                                            }

An address is 64 bits. A thread that loads 96 elements one by one, as it must where rows begin
anywhere, has 192 registers of them, and 255 in all. Beside one pointer it needs the offsets, of
which rows and columns have one each, in 32 bits: the address is an instruction, as moving it was.

A load to registers is asked for when its iteration begins, and all loads are under way at once, if
registers last. Where they do not, the assembler moves a load behind the use of the one before it,
and the loop waits for each. A pointer of all threads is in a register of the warp.

Sums of addresses are taken modulo 2**64, so their order does not matter, and no offset changes.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.axis_info import AxisInfos, access_elements
from proton.dialect import isa, names_of, tt
from proton.dialect.attributes import RECOMPUTED
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import constant, create
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir, scf
from proton.dialect.regions import ForLoop, end_of, with_carried, without_carried
from proton.dialect.traits import Accesses, has
from proton.dialect.tt import is_pointer_like
from proton.dialect.ttg import is_tensor, layout_of, num_warps
from proton.dialect.walk import before, defining_op, ops_named, users
from proton.passes import Pass, register

MANY = 64  # registers of addresses that are worth it: a quarter of a thread's
# Where a warp is alone on its scheduler, instructions of a loop count more. On an H200 with 32 six
# of seven products of 4 warps take 0.68 to 1 of the time that they take with 64, and one 1.09; of 8
# warps 1 to 1.04.
MANY_OF_FEW_WARPS, FEW_WARPS = 32, 4
_SPREADS = (tt.BroadcastOp, tt.ExpandDimsOp)


@register
@dataclass(frozen=True)
class CarryBasePointers(Pass):
    """Blocks of pointers that a loop moves by scalars are made in each iteration, of one pointer
    and what it does not change, where they take many registers, or are loaded from to registers."""

    name: ClassVar[str] = "tritongpu-carry-base-pointers"
    only_for: ClassVar[frozenset[str]] = names_of(scf.ForOp)

    def run(self, module: Module) -> None:
        infos: AxisInfos | None = None
        for loop in reversed(ops_named(module, scf.ForOp)):  # inner ones come last
            view = ForLoop(loop)
            found = [number for number in range(len(view.init_args)) if _is_moved(view, number)]
            if not found:
                continue
            infos = infos or AxisInfos(module)
            many = MANY_OF_FEW_WARPS if num_warps(module) <= FEW_WARPS else MANY
            if sum(_registers(view.iter_args[number], infos) for number in found) < many:
                found = [number for number in found if _is_waited_for(view.iter_args[number])]
            if found:
                _rewrite(loop, found)


# Which


def _is_moved(loop: ForLoop, number: int) -> bool:
    """True if a carried value is a block of pointers of one base, which moves as a whole."""
    argument = loop.iter_args[number]
    if not is_tensor(argument.type) or not is_pointer_like(argument.type):
        return False
    if not _has_base(loop.init_args[number]):
        return False
    value, steps = loop.yielded[number], 0
    while value != argument:
        op = defining_op(value)
        if not isa(op, tt.AddPtrOp) or _scalar_type(op.operands[1]) is None:
            return False
        value, steps = op.operands[0], steps + 1
    return steps > 0


def _scalar_type(offset: Value) -> Type | None:
    """The type of the scalar that a tensor is filled with; None for another tensor."""
    op = defining_op(offset)
    if op is None or not is_tensor(offset.type):
        return None
    if isa(op, tt.SplatOp):
        return op.operands[0].type
    if isa(op, arith.ConstantOp) and ir.DenseElementsAttr(op.attributes["value"]).is_splat:
        return element_of(offset)
    return None


def _has_base(pointers: Value) -> bool:
    """True if pointers are a scalar one and offsets, of which a thread has several in 32 bits."""
    op = defining_op(pointers)
    if op is None:
        return False
    if isa(op, tt.SplatOp):
        return True
    if isa(op, tt.AddPtrOp):
        offset = op.operands[1]
        fits = element_of(offset).width <= 32 or _different(offset) == 1
        return fits and _has_base(op.operands[0])
    return isa(op, *_SPREADS) and _has_base(op.operands[0])


def _different(offset: Value) -> int:
    """How many elements of a tensor that are not known to be equal a thread has."""
    while (op := defining_op(offset)) is not None and isa(op, *_SPREADS):
        offset = op.operands[0]
    if _scalar_type(offset) is not None:
        return 1
    return 1 << sum(any(basis) for basis in layout_of(offset.type).bases("register"))


def _is_waited_for(pointers: Value) -> bool:
    """True if what is loaded from a block of pointers goes to registers."""
    return any(isa(user, tt.LoadOp) for user in users(pointers))


def _registers(pointers: Value, infos: AxisInfos) -> int:
    """The registers of the addresses that accesses take of a block."""
    most = 0
    for user in users(pointers):
        if has(user, Accesses) and user.operands[0] == pointers:
            most = max(most, _different(pointers) // access_elements(user, infos))
        elif isa(user, tt.AddPtrOp) and _scalar_type(user.operands[1]) is not None:
            most = max(most, _registers(user.results[0], infos) // 2)  # it is moved, and accessed
    return 2 * most


# What becomes of them


def _rewrite(loop: Operation, numbers: Sequence[int]) -> None:
    """Has a loop carry scalar pointers in the place of blocks."""
    view = ForLoop(loop)
    first, old = len(view.init_args), view.init_args
    with before(loop):
        parts = [_parts(old[number]) for number in numbers]
    view = ForLoop(with_carried(loop, [base for base, _ in parts]))
    end = end_of(view.body)
    for place, (number, (_, offsets)) in enumerate(zip(numbers, parts, strict=True), first):
        with before(end):
            end.operands[place] = _moved(view.iter_args[place], view, number)
        end.operands[number] = old[number]
        behind = ir.InsertionPoint.after(view.op)
        inside = ir.InsertionPoint.at_block_begin(view.body)
        for point, values in ((inside, view.iter_args), (behind, list(view.op.results))):
            if list(values[number].uses):
                with point, view.op.location:
                    made = _pointers(values[place], offsets, values[number].type)
                values[number].replace_all_uses_with(made)
    without_carried(view.op, set(numbers))


def _parts(pointers: Value) -> tuple[Value, list[Value]]:
    """(the scalar pointer, the offsets as tensors of the same shape), emitted anew."""
    op = defining_op(pointers)
    assert op is not None, "asked before"
    if isa(op, tt.SplatOp):
        return op.operands[0], []
    base, offsets = _parts(op.operands[0])
    if isa(op, tt.AddPtrOp):
        return base, [*offsets, op.operands[1]]
    attributes = {name: op.attributes[name] for name in op.attributes}
    return base, [
        create(op.name, _like(pointers.type, offset.type.element_type), offset, **attributes)
        for offset in offsets
    ]


def _like(type_: Type, element: Type) -> Type:
    """A tensor type with another element."""
    return ir.RankedTensorType.get(type_.shape, element, encoding=type_.encoding)


def _moved(base: Value, loop: ForLoop, number: int) -> Value:
    """The scalar pointer of the next iteration."""
    value, argument = loop.yielded[number], loop.iter_args[number]
    while value != argument:
        op = defining_op(value)
        assert op is not None, "asked before"
        base = tt.AddPtrOp(base, _scalar(op.operands[1]), base.type).result
        value = op.operands[0]
    return base


def _scalar(offset: Value) -> Value:
    """What a tensor is filled with."""
    op = defining_op(offset)
    assert op is not None, "asked before"
    if isa(op, tt.SplatOp):
        return op.operands[0]
    splat = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
    return constant(splat, element_of(offset))


def _pointers(base: Value, offsets: Sequence[Value], type_: Type) -> Value:
    """A block of pointers. What a thread has once is added first: it moves with the base. What it
    has several of comes last, by an instruction for each."""
    pointers = create(tt.SplatOp, type_, base)
    for offset in sorted(offsets, key=_different):
        op = tt.AddPtrOp(pointers, offset, type_)
        if _different(offset) > 1:
            op.operation.attributes[RECOMPUTED] = ir.UnitAttr.get()
        pointers = op.result
    return pointers
