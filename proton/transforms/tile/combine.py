"""Small rewrites of `tt` ops that upstream canonicalization cannot know.

The module is visited once, producers before their users, so a rule sees what the rules made of
its operands: it meets a filled tensor as a `tt.splat` or a dense constant, never as a chain.
What becomes unused is left to DCE, but for loads, which DCE has to keep.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.choices import extremum
from proton.dialect import OpRules, isa, tt
from proton.dialect.builtin import integer, segments_of
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import constant, remade
from proton.dialect.mlir import Attribute, Module, Operation, Type, Value, arith, ir
from proton.dialect.tt_memory import is_volatile
from proton.dialect.walk import (
    all_ops,
    before,
    constant_in,
    defining_op,
    ops_named,
    producer_of,
    replace,
    users,
)
from proton.passes import Pass, register

RULES = OpRules[Callable[[Operation], None]]()


@register
@dataclass(frozen=True)
class Combine(Pass):
    """Merges ops that say together what one op says alone.

        %d = tt.dot(%a, %b, %zero); %r = arith.addf %acc, %d
    becomes
        %r = tt.dot(%a, %b, %acc)
    and so on: each rule below states its own before and after.
    """

    name: ClassVar[str] = "tt-combine"

    def run(self, module: Module) -> None:
        for op in all_ops(module):
            if op.name in RULES:
                RULES[op.name](op)
        # Users come before producers, so that a chain of unused loads goes as a whole.
        for load in reversed(ops_named(module, tt.LoadOp)):
            if not is_volatile(load) and not users(load.results[0]):
                load.erase()


# What rules ask


def _only_user(value: Value) -> Operation | None:
    """The op that has a value's only use; None where there are more or none."""
    found = users(value)
    return found[0] if len(found) == 1 else None


def _is_defined_after(value: Value, op: Operation) -> bool:
    """True if a value that a later op of this block uses is defined by `op` or behind it."""
    producer = defining_op(value)
    if producer is None or producer.block != op.block:
        return False
    return not producer.is_before_in_block(op)


# Products


@RULES.of(arith.AddFOp, arith.AddIOp)
def _add(op: Operation) -> None:
    """`add(%acc, dot(%a, %b, 0))` -> `dot(%a, %b, %acc)`, in the dot's scope.

    A dot in another block stays: inside a loop it would run once an iteration. So does the sum of a
    dot of 8-bit floats that may be inexact as a whole: of it alone the author has fp32.
    """
    for position in (1, 0):
        dot, other = defining_op(op.operands[position]), op.operands[1 - position]
        if not isa(dot, tt.DotOp) or dot.block != op.block:
            continue
        if dot.attributes["maxNumImpreciseAcc"].value > shape_of(dot.operands[0])[-1]:
            continue
        zero = constant_in(dot.operands[2])
        if zero is None or zero.value != 0 or _only_user(dot.results[0]) is None:
            continue
        if _is_defined_after(other, dot):
            dot.move_before(op)
        dot.operands[2] = other
        replace(op, [dot.results[0]])
        return


# Reductions


@RULES.of(tt.ReduceOp)
def _reduce(op: Operation) -> None:
    """`reduce(select(a > b | a != a, a, b))` -> `reduce(maximumf(a, b))`, and so each other way to
    write a maximum or minimum of two."""
    block = op.regions[0].blocks[0]
    end = block.operations[len(block.operations) - 1].operation
    kind = extremum(block)
    if kind is not None and not isa(defining_op(end.operands[0]), kind):
        with before(end):
            end.operands[0] = kind(*block.arguments).result


# Pointers


@RULES.of(tt.AddPtrOp)
def _addptr(op: Operation) -> None:
    """`addptr(addptr(%p, %a), %b)` -> `addptr(%p, %a + %b)` where the sum cannot overflow."""
    inner = defining_op(op.operands[0])
    if not isa(inner, tt.AddPtrOp) or inner.block != op.block:
        return
    first, second = inner.operands[1], op.operands[1]
    if first.type != second.type or _only_user(inner.results[0]) is None:
        return
    with before(op):
        total = _sum(first, second)
    if total is not None:
        op.operands[0] = inner.operands[0]
        op.operands[1] = total


def _sum(first: Value, second: Value) -> Value | None:
    """The sum of two offsets as a new value; None where it might not fit.

    In i64 a sum that wraps around gives the address that two steps give.
    """
    type_ = element_of(first)
    if type_ == integer(64):
        return arith.AddIOp(first, second).result
    left, right = constant_in(first), constant_in(second)
    if left is None or right is None or not isinstance(type_, ir.IntegerType):
        return None
    total = left.value + right.value
    limit = 1 << (type_.width - 1)
    if not -limit <= total < limit:
        return None
    return _filled(first.type, ir.IntegerAttr.get(type_, total))


# Memory


@RULES.of(arith.SelectOp)
def _select(op: Operation) -> None:
    """`select(%mask, load(%p, %mask, %other?), %x)` -> `load(%p, %mask, %x)`."""
    mask, loaded, fallback = op.operands
    load = defining_op(loaded)
    if not isa(load, tt.LoadOp) or load.block != op.block:
        return
    own = load.opview.mask  # a Value cannot be compared with None
    if own is None or own != mask or _only_user(loaded) is None or is_volatile(load):
        return
    if _move_before(fallback, load):
        with before(load):
            replace(op, [_access(load, [load.operands[0], mask, fallback]).result])
        # The old load goes with the unused ones, at the end.


def _move_before(value: Value, op: Operation) -> bool:
    """Makes a value defined before `op`, if it is not and can be: constants and splats move."""
    if not _is_defined_after(value, op):
        return True
    producer = producer_of(value)
    moves = isa(producer, arith.ConstantOp) or (
        isa(producer, tt.SplatOp) and not _is_defined_after(producer.operands[0], op)
    )
    if moves:
        producer.move_before(op)
    return moves


@RULES.of(tt.LoadOp)
def _load(op: Operation) -> None:
    """`load(%p, true, %other?)` -> `load(%p)`; `load(%p, false, %other)` -> `other`."""
    mask, other = op.opview.mask, op.opview.other
    known = None if mask is None else constant_in(mask)
    if known is None:
        return
    if known.value:
        with before(op):
            replace(op, [_access(op, [op.operands[0]]).result])
    elif other is not None and not is_volatile(op):
        replace(op, [other])


@RULES.of(tt.StoreOp)
def _store(op: Operation) -> None:
    """`store(%p, %v, true)` -> `store(%p, %v)`; `store(%p, %v, false)` goes."""
    mask = op.opview.mask
    known = None if mask is None else constant_in(mask)
    if known is None:
        return
    if known.value:
        with before(op):
            _access(op, list(op.operands)[:2])
    op.erase()


def _access(op: Operation, operands: list[Value]) -> Operation:
    """A copy of a load or store with other operands; those it lacks are optional ones."""
    present = [int(number < len(operands)) for number, _ in enumerate(segments_of(op))]
    types, sizes = [result.type for result in op.results], ir.DenseI32ArrayAttr.get(present)
    return remade(op, types, operands, operandSegmentSizes=sizes)


# Shapes


def _filled(type_: Type, attribute: Attribute) -> Value:
    """A constant: the scalar itself, or a tensor filled with it."""
    if isinstance(type_, ir.RankedTensorType):
        attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
    return constant(attribute, type_)


@RULES.of(tt.SplatOp)
def _splat(op: Operation) -> None:
    """`splat(constant c)` -> `constant dense<c>`."""
    number = constant_in(op.operands[0])
    if number is not None:
        with before(op):
            replace(op, [_filled(op.results[0].type, number)])


@RULES.of(tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp)
def _reshaping(op: Operation) -> None:
    """`broadcast(splat %s)` -> `splat %s`, so for each change of shape; no change goes."""
    source, result = op.operands[0], op.results[0]
    producer, number = defining_op(source), constant_in(source)
    with before(op):
        if source.type == result.type and not isa(op, tt.TransOp):
            replace(op, [source])
        elif number is not None:
            replace(op, [_filled(result.type, number)])
        elif isa(producer, tt.SplatOp):
            splat = ir.Operation.create(
                tt.SplatOp.OPERATION_NAME, results=[result.type], operands=[producer.operands[0]]
            )
            replace(op, [splat.result])
        elif producer is not None and producer.name == op.name and not isa(op, tt.ExpandDimsOp):
            _merge(op, producer)
        elif isa(op, tt.TransOp):
            _drop_identity(op)


def _merge(op: Operation, inner: Operation) -> None:
    """`reshape(reshape %x)` -> `reshape %x`; so for `broadcast`, and `trans` with both orders."""
    op.operands[0] = inner.operands[0]
    if isa(op, tt.TransOp):
        order, inner_order = op.attributes["order"], inner.attributes["order"]
        op.attributes["order"] = ir.DenseI64ArrayAttr.get([inner_order[axis] for axis in order])
        _drop_identity(op)
    elif inner.operands[0].type == op.results[0].type:
        replace(op, [inner.operands[0]])


def _drop_identity(op: Operation) -> None:
    """`trans %x {order = [0, 1, ...]}` -> `%x`."""
    rank = len(shape_of(op.operands[0]))
    if list(op.attributes["order"]) == list(range(rank)):
        replace(op, [op.operands[0]])
