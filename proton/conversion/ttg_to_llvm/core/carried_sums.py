"""What a loop carries: the sums of products one by one.

`wgmma` takes and gives each of its sums by itself. As a vector they would be put together at the
end of each iteration and taken apart at the beginning of the next, by ops that LLVM looks at in
each of its passes.
"""

from collections.abc import Sequence

from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.scalars import Scalars
from proton.dialect import isa
from proton.dialect.mlir import Operation, Value, ir, llvm
from proton.dialect.mlir import vector as vectors
from proton.dialect.regions import ForLoop, end_of, with_carried, without_carried
from proton.dialect.walk import defining_op

_APART, _TOGETHER = vectors.ToElementsOp, vectors.FromElementsOp
_LEAST = 64  # sums that are worth it


def carry_sums(loop: Operation, scalars: Scalars) -> None:
    """Changes what an `scf.for` carries; loops inside of it come first."""
    view = ForLoop(loop)
    numbers = [n for n, sums in enumerate(view.iter_args) if _are_sums(sums, view.yielded[n])]
    if not numbers:
        return
    with ir.InsertionPoint(loop), loop.location:
        parts = [_parts(view.init_args[number]) for number in numbers]
    first, initial = len(view.init_args), view.init_args
    scalars.forget(*loop.results)
    view = ForLoop(with_carried(loop, [part for group in parts for part in group]))
    arguments, results, end = view.iter_args, list(view.op.results), end_of(view.body)
    for number, group in zip(numbers, parts, strict=True):
        places = range(first, first + len(group))
        first += len(group)
        for place, part in zip(places, _parts(end.operands[number]), strict=True):
            end.operands[place] = part
        end.operands[number] = initial[number]
        _use_parts(arguments[number], [arguments[place] for place in places])
        with ir.InsertionPoint.after(view.op), view.op.location:
            _use_parts(results[number], [results[place] for place in places])
        for vector in (arguments[number], results[number]):
            vector.replace_all_uses_with(initial[number])
    without_carried(view.op, set(numbers))


def _are_sums(argument: Value, yielded: Value) -> bool:
    """True if a vector is taken apart in each iteration, and at its end put together of what one
    op, the wait for a product, gave."""
    end = defining_op(yielded)
    if not isa(end, _TOGETHER) or len(end.operands) < _LEAST:
        return False
    ends = [defining_op(end.operands[place]) for place in (0, len(end.operands) - 1)]
    if not all(isa(op, llvm.ExtractValueOp) for op in ends):
        return False
    one, other = (op.operands[0] for op in ends if op is not None)
    return bool(one == other) and all(isa(use.owner.operation, _APART) for use in argument.uses)


def _parts(vector: Value) -> list[Value]:
    """The elements of a vector."""
    op = defining_op(vector)
    if isa(op, _TOGETHER):
        return list(op.operands)
    if isa(op, llvm.ConstantOp):
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            value = attribute.get_splat_value()
            one = v.create(llvm.ConstantOp, v.element(vector), value=value)
            return [one] * v.count_of(vector)
    return v.to_elements(vector)


def _use_parts(vector: Value, parts: Sequence[Value]) -> None:
    """Who takes a vector apart gets its parts, others a vector of them."""
    others = []
    for use in vector.uses:
        op = use.owner.operation
        if isa(op, _APART):
            for result, part in zip(op.results, parts, strict=True):
                result.replace_all_uses_with(part)
        else:
            others.append((op, use.operand_number))
    if others:
        packed = v.from_elements(parts)
        for op, number in others:
            op.operands[number] = packed
