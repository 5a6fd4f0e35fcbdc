"""Unrolls the loops that ask for it, with a loop behind for the iterations that are left."""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import names_of
from proton.dialect.attributes import NUM_STAGES, UNROLL_FACTOR, UNROLLED
from proton.dialect.builtin import bits_of, i32_attr
from proton.dialect.emit import constant, number_of
from proton.dialect.mlir import Module, Operation, Value, arith, ir, scf
from proton.dialect.regions import ForLoop, yield_values
from proton.dialect.walk import before, ops_named, replace
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class LoopUnroll(Pass):
    """Repeats the body of each `scf.for` as often as its `tt.loop_unroll_factor` says.

        scf.for %i = %lower to %upper step %s { body(%i) } {tt.loop_unroll_factor = 2}
    becomes, with %split the last whole group's end (no second loop where that is known to be
    %upper),
        scf.for %i = %lower to %split step (2 * %s) { body(%i); body(%i + %s) } {tt.unrolled = 2}
        scf.for %i = %split to %upper step %s { body(%i) } {tt.num_stages = 1}
    which are too few iterations for a software pipeline.
    """

    name: ClassVar[str] = "tt-loop-unroll"
    only_for: ClassVar[frozenset[str]] = names_of(scf.ForOp)

    def run(self, module: Module) -> None:
        # Inner loops first: an outer loop then repeats what they have become.
        for loop in reversed(ops_named(module, scf.ForOp)):
            factor = ForLoop(loop).unroll_factor
            if factor > 1 and _group_fits(loop, factor):
                del loop.attributes[UNROLL_FACTOR]
                _unroll(loop, factor)


def _group_fits(loop: Operation, factor: int) -> bool:
    """True if `factor` steps, of 1 where they are not known, are a number of the loop's type."""
    *_, step_value = ForLoop(loop).bounds
    step = number_of(step_value)
    limit = 1 << (bits_of(step_value.type) - 1)
    return 0 < (1 if step is None else step) * factor < limit


def _trip_count(loop: Operation) -> int | None:
    """The number of iterations, where it is known."""
    lower, upper, step = map(number_of, ForLoop(loop).bounds)
    unsigned = "unsignedCmp" in loop.attributes
    if lower is None or upper is None or step is None or (unsigned and min(lower, upper) < 0):
        return None
    return max(0, -((lower - upper) // step))


def _unroll(loop: Operation, factor: int) -> None:
    """Puts the unrolled loop before `loop`, which runs the rest or goes."""
    trips = _trip_count(loop)
    if trips is not None and trips < factor:
        return
    with before(loop):
        exact = trips is not None and trips % factor == 0
        _, upper, step = ForLoop(loop).bounds
        group = arith.MulIOp(step, _like(step, factor)).result
        split = upper if exact else _split(loop, factor)
        main = _grouped(loop, factor, split, group)
    if exact:
        replace(loop, main.results)
    else:
        loop.attributes[NUM_STAGES] = i32_attr(1)
        rest = ForLoop(loop)
        rest.set_lower_bound(split)
        for number, value in enumerate(main.results):
            rest.set_init_arg(number, value)


def _like(value: Value, number: int) -> Value:
    return constant(number, value.type)


def _split(loop: Operation, factor: int) -> Value:
    """The end of the whole groups of `factor` iterations, counted by whole steps.

    The way from lower to upper is unsigned, so that it has no sign to overflow into. Where it
    is no multiple of the step, the last iteration is not counted and the second loop has it.
    """
    lower, upper, step = ForLoop(loop).bounds
    larger = arith.MaxUIOp if "unsignedCmp" in loop.attributes else arith.MaxSIOp
    way = arith.SubIOp(larger(lower, upper).result, lower).result
    trips = arith.DivUIOp(way, step).result
    grouped = arith.SubIOp(trips, arith.RemUIOp(trips, _like(step, factor)).result).result
    return arith.AddIOp(lower, arith.MulIOp(grouped, step).result).result


def _grouped(loop: Operation, factor: int, split: Value, group: Value) -> Operation:
    """A loop from the lower bound to `split` whose body is `factor` copies of the loop's body."""
    old = ForLoop(loop)
    lower, _, step = old.bounds
    locations = [argument.location for argument in old.body.arguments]
    new = ForLoop.create((lower, split, group), old.init_args, loop.attributes, locations)
    new.op.attributes[UNROLLED] = i32_attr(factor)
    index, *carried = new.body.arguments
    with ir.InsertionPoint(new.body):
        end = yield_values(carried)
    for copy in range(factor):
        with ir.InsertionPoint(end):
            if copy:
                index = arith.AddIOp(index, step).result
        carried = _append_body(loop, end, [index, *carried])
    for position, value in enumerate(carried):
        end.operands[position] = value
    return new.op


def _append_body(loop: Operation, end: Operation, arguments: list[Value]) -> list[Value]:
    """Moves a copy of the loop's body before `end`; the values that it yields.

    Copying the whole loop lets MLIR remap nested regions, and the copy's shell then goes.
    """
    copy = loop.clone()
    block = copy.regions[0].blocks[0]
    for old, new in zip(block.arguments, arguments, strict=True):
        old.replace_all_uses_with(new)
    *body, terminator = (op.operation for op in block.operations)
    for op in body:
        op.move_before(end)
    yielded = list(terminator.operands)
    copy.erase()
    return yielded
