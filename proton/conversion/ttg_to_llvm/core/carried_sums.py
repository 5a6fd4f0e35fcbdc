"""What a loop carries: the sums of products one by one.

`wgmma` takes and gives each of its sums by itself. As a vector they would be put together at the
end of each iteration and taken apart at the beginning of the next, by ops that LLVM looks at in
each of its passes.
"""

from collections.abc import Sequence

from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.scalars import Scalars
from proton.dialect import isa
from proton.dialect.attributes import LOOP_ANNOTATION
from proton.dialect.mlir import Operation, Value, ir, llvm, scf
from proton.dialect.mlir import vector as vectors
from proton.dialect.regions import ForLoop, If, end_of, giving, with_carried, without_carried
from proton.dialect.walk import defining_op

_APART, _TOGETHER = vectors.ToElementsOp, vectors.FromElementsOp
_LEAST = 64  # sums that are worth it
# As `annotate-loops` has it. LLVM would take the first iteration out of a loop of few instructions,
# where it knows the condition, and the assembler would have the product twice.
_NOT_PEELED = "unroll = <runtimeDisable = true>, peeled = <count = 7 : i32>"


def carry_sums(loop: Operation, scalars: Scalars) -> None:
    """Changes what an `scf.for` carries; loops inside of it come first."""
    view = ForLoop(loop)
    numbers = [n for n, sums in enumerate(view.iter_args) if _are_sums(sums, end_of(view.body), n)]
    if not numbers:
        return
    has_conditions = any(isa(defining_op(view.yielded[n]), scf.IfOp) for n in numbers)
    with ir.InsertionPoint(loop), loop.location:
        parts = [_parts(view.init_args[number]) for number in numbers]
        unused = {number: v.poison(view.init_args[number].type) for number in numbers}
    first = len(view.init_args)
    scalars.forget(*loop.results)
    view = ForLoop(with_carried(loop, [part for group in parts for part in group]))
    arguments, results, end = view.iter_args, list(view.op.results), end_of(view.body)
    for number, group in zip(numbers, parts, strict=True):
        places = range(first, first + len(group))
        first += len(group)
        elements = _split(end, number, unused[number], scalars)
        for place, part in zip(places, elements, strict=True):
            end.operands[place] = part
        _use_parts(arguments[number], [arguments[place] for place in places])
        with ir.InsertionPoint.after(view.op), view.op.location:
            _use_parts(results[number], [results[place] for place in places])
        for vector in (arguments[number], results[number]):
            vector.replace_all_uses_with(unused[number])
    if has_conditions and LOOP_ANNOTATION not in view.op.attributes:
        annotation = ir.Attribute.parse(f"#llvm.loop_annotation<{_NOT_PEELED}>")
        view.op.attributes[LOOP_ANNOTATION] = annotation
    without_carried(view.op, set(numbers))


def _are_sums(argument: Value, end: Operation, number: int) -> bool:
    """True if a vector is taken apart in each iteration, and at its end put together of what one
    op, the wait for a product, gave, or left as it was."""
    ways = _ways(end, number)
    made = [value for op, place in ways if (value := op.operands[place]) != argument]
    if not made or not all(map(_is_put_together, made)):
        return False
    others = [(use.owner.operation, use.operand_number) for use in argument.uses]
    return all(isa(op, _APART) or (op, place) in ways for op, place in others)


def _ways(end: Operation, number: int) -> list[tuple[Operation, int]]:
    """The ends of blocks, with the number there, that yield what a block yields, by the conditions
    that decide it."""
    value = end.operands[number]
    branch = defining_op(value)
    if not isa(branch, scf.IfOp):
        return [(end, number)]
    place = ir.OpResult(value).result_number
    return [way for block in If(branch).blocks for way in _ways(end_of(block), place)]


def _is_put_together(vector: Value) -> bool:
    """True if a vector is put together of what one op gave."""
    end = defining_op(vector)
    if not isa(end, _TOGETHER) or len(end.operands) < _LEAST:
        return False
    ends = [defining_op(end.operands[place]) for place in (0, len(end.operands) - 1)]
    if not all(isa(op, llvm.ExtractValueOp) for op in ends):
        return False
    one, other = (op.operands[0] for op in ends if op is not None)
    return bool(one == other)


def _split(end: Operation, number: int, unused: Value, scalars: Scalars) -> list[Value]:
    """The elements of a vector that a block yields, in the place of which it yields `unused`."""
    vector = end.operands[number]
    end.operands[number] = unused
    branch = defining_op(vector)
    if not isa(branch, scf.IfOp):
        with ir.InsertionPoint(end), end.location:
            return _parts(vector)
    place = ir.OpResult(vector).result_number
    ways = [_split(end_of(block), place, unused, scalars) for block in If(branch).blocks]
    scalars.forget(*branch.results)
    made = giving(branch, *ways)
    elements = list(made.results)[-len(ways[0]) :]
    with ir.InsertionPoint.after(made), made.location:
        _use_parts(made.results[place], elements)
    return elements


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
