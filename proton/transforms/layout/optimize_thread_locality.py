"""Sums of a loop stay in each thread until the loop is over.

A loop that adds a reduction to a total in each iteration exchanges data between threads each time.
Here a thread adds up what it holds itself, in registers, and threads exchange once, at the end.

    scf.for ... iter_args(%sum = %init) {            scf.for ... iter_args(%part = 0) {
      %r = tt.reduce %x {axis}, add                    %p = (thread's own part of the reduction)
      %s = arith.addf %sum, %r               =>        %q = arith.addf %part, %p
      scf.yield %s                                     scf.yield %q
    }                                                }
                                                     %r = tt.reduce %part {axis}, add
                                                     %s = arith.addf %init, %r

The part comes from a reshape that gives the axis' register bits dimensions of their own, and a
reduction of each of them: with the layouts of the algebra both stay within the thread.
"""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from proton.analysis.layout_rules import result_layout
from proton.dialect import by_name, isa, names_of, tt, ttg
from proton.dialect.builtin import i32_attr
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import create, filled
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir, scf
from proton.dialect.regions import ForLoop, end_of, with_carried
from proton.dialect.walk import all_ops, before, defining_op
from proton.layout import LinearLayout, shapes
from proton.passes import Pass, register

# What a combine function must be, and the value that changes nothing.
_IDENTITIES: dict[str, float | int] = by_name(
    {
        arith.AddFOp: 0.0,
        arith.AddIOp: 0,
        arith.MaxNumFOp: float("-inf"),
        arith.MaximumFOp: float("-inf"),
        arith.MinNumFOp: float("inf"),
        arith.MinimumFOp: float("inf"),
        arith.OrIOp: 0,
        arith.XOrIOp: 0,
    }
)


@register
@dataclass(frozen=True)
class OptimizeThreadLocality(Pass):
    """Takes reductions that are accumulated in a loop apart: within threads, then after the loop.

    Sums change the order of additions, as any reduction of a block leaves it open.
    """

    name: ClassVar[str] = "tritongpu-optimize-thread-locality"
    only_for: ClassVar[frozenset[str]] = names_of(scf.ForOp)

    def run(self, module: Module) -> None:
        for loop in [op for op in all_ops(module) if isa(op, scf.ForOp)]:
            current = loop  # another op after each change, with new values carried last
            for number in range(len(loop.results)):
                found = _accumulation(current, number)
                if found is not None:
                    current = _take_apart(current, number, *found)


def _accumulation(loop: Operation, number: int) -> tuple[Operation, Operation] | None:
    """(the op that adds to a carried value, the reduction that it adds), where there are such."""
    block = ForLoop(loop).body
    argument, value = block.arguments[1 + number], end_of(block).operands[number]
    combine = defining_op(value)
    if combine is None or combine.name not in _IDENTITIES or combine.parent != loop:
        return None
    if len(list(argument.uses)) != 1 or len(list(value.uses)) != 1:
        return None
    others = [operand for operand in combine.operands if operand != argument]
    if len(others) != 1:
        return None
    reduction = _through_conversion(others[0])
    if reduction is None or not _fits(reduction, combine, loop):
        return None
    return combine, reduction


def _through_conversion(value: Value) -> Operation | None:
    """The reduction behind a value that nothing else uses."""
    op = defining_op(value)
    if op is None or len(list(value.uses)) != 1:
        return None
    if isa(op, ttg.ConvertLayoutOp):
        return _through_conversion(op.operands[0])
    return op if isa(op, tt.ReduceOp) else None


def _fits(reduction: Operation, combine: Operation, loop: Operation) -> bool:
    """True if the reduction combines as the loop does, both within threads and between them."""
    body = [view.operation for view in reduction.regions[0].blocks[0].operations]
    if reduction.parent != loop or len(body) != 2 or body[0].name != combine.name:
        return False
    axis = ir.IntegerAttr(reduction.attributes["axis"]).value
    source = reduction.operands[0]
    groups = _groups(ttg.layout_of(source.type), axis, shape_of(source)[axis])
    return len({is_own for _, is_own in groups}) == 2


def _take_apart(
    loop: Operation, number: int, combine: Operation, reduction: Operation
) -> Operation:
    (source,) = reduction.operands
    axis = ir.IntegerAttr(reduction.attributes["axis"]).value
    with before(reduction):
        part = _own_part(reduction, source, axis)
    with before(loop):
        identity = _IDENTITIES[combine.name]
        neutral = filled(part.type, identity)
    result = loop.results[number]
    total = ForLoop(loop).init_args[number]
    new = with_carried(loop, [neutral])
    block = ForLoop(new).body
    argument = list(block.arguments)[-1]
    end = end_of(block)
    with before(end):
        summed = create(combine.name, part.type, argument, part)
    end.operands[len(new.results) - 1] = summed
    # The old total is carried unchanged, and canonicalization takes it away.
    end.operands[number] = ForLoop(new).iter_args[number]
    result = new.results[number]
    uses = list(result.uses)
    with ir.InsertionPoint.after(new), new.location:
        whole = _finished(reduction, new.results[len(new.results) - 1], axis, result.type)
        final = create(combine.name, result.type, total, whole)
    for use in uses:
        use.owner.operation.operands[use.operand_number] = final
    _erase_unused(combine)
    return new


def _erase_unused(op: Operation) -> None:
    """Erases an op without uses, and what was there for it alone."""
    sources = [defining_op(operand) for operand in op.operands]
    op.erase()
    for source in sources:
        if not isa(source, tt.ReduceOp, ttg.ConvertLayoutOp):
            continue
        if not any(list(result.uses) for result in source.results):
            _erase_unused(source)


def _groups(layout: LinearLayout, axis: int, size: int) -> list[tuple[int, bool]]:
    """The axis as dimensions, outermost first: (size, whether a thread holds all of it)."""
    registers = {basis[axis] for basis in layout.bases("register")}
    groups: list[tuple[int, bool]] = []
    for bit in reversed(range(size.bit_length() - 1)):
        is_own = 1 << bit in registers
        if groups and groups[-1][1] == is_own:
            groups[-1] = groups[-1][0] * 2, is_own
        else:
            groups.append((2, is_own))
    return groups


def _own_part(reduction: Operation, source: Value, axis: int) -> Value:
    """What each thread's elements along the axis come to: other threads' stay apart."""
    shape = shape_of(source)
    groups = _groups(ttg.layout_of(source.type), axis, shape[axis])
    split = (*shape[:axis], *(size for size, _ in groups), *shape[axis + 1 :])
    value = _reshaped(source, split)
    for position in reversed(range(len(groups))):
        if groups[position][1]:
            value = _reduced(reduction, value, axis + position)
    length = prod(size for size, is_own in groups if not is_own)
    return _reshaped(value, (*shape[:axis], length, *shape[axis + 1 :]))


def _finished(reduction: Operation, part: Value, axis: int, type_: Type) -> Value:
    """The reduction of what the threads have, in the type that the loop's total has."""
    value = _reduced(reduction, part, axis)
    if value.type != type_:
        value = create(ttg.ConvertLayoutOp, type_, value)
    return value


def _reshaped(value: Value, shape: tuple[int, ...]) -> Value:
    if shape_of(value) == shape:
        return value
    layout = shapes.reshape(ttg.layout_of(value.type), shape)
    type_ = ttg.with_layout(ir.RankedTensorType.get(shape, element_of(value)), layout)
    return create(tt.ReshapeOp, type_, value)


def _reduced(reduction: Operation, value: Value, axis: int) -> Value:
    """`value` reduced along `axis` by the combine function of `reduction`."""
    op = reduction.clone()
    op.attributes["axis"] = i32_attr(axis)
    op.operands[0] = value
    shape = shape_of(value)
    kept = (*shape[:axis], *shape[axis + 1 :])
    if kept:
        layout = result_layout(op, ttg.layout_of(value.type))
        assert layout is not None
        type_ = ttg.with_layout(ir.RankedTensorType.get(kept, element_of(value)), layout)
    else:
        type_ = element_of(value)
    op.results[0].set_type(type_)
    return op.results[0]
