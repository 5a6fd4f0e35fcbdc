"""Accumulators that a loop clears, or reads in a branch, stay in the registers of their dots.

    scf.for ... iter_args(%acc = %z) {            scf.for ... iter_args(%acc = %p, %adds = %false) {
      %e = ttng.warp_group_dot %a, %b, %acc         %e = ttng.warp_group_dot %a, %b, %acc, %adds
      %d = ttng.warp_group_dot_wait %e {0}          %d = ttng.warp_group_dot_wait %e {0}
      scf.if %last { ... %d ... }           =>      scf.if %last {
      %n = arith.select %last, %z, %d                 %s = ttng.warp_group_dot_wait %d {0}
      scf.yield %n                                    ... %s ...
    }                                               }
                                                    %more = arith.xori %last, true
                                                    scf.yield %d, %more
                                                  }

One loop over all tiles of a persistent kernel stores an accumulator in a branch, and begins again
at zero. A dot can leave out what was there instead, as Triton's does. With a wait in the branch it
need not have ended in iterations that do not take it (schedule/dots.py).
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of, tt
from proton.dialect.accumulators import adds_outside, zeros_unless
from proton.dialect.builtin import i32_attr
from proton.dialect.emit import constant, create, is_zeros
from proton.dialect.mlir import Block, Module, Operation, Value, arith, ir, scf, ub
from proton.dialect.regions import ForLoop, end_of, with_carried
from proton.dialect.traits import Pure, has
from proton.dialect.ttg import is_tensor
from proton.dialect.ttng import WarpGroupDotOp, WarpGroupDotWaitOp
from proton.dialect.walk import (
    all_ops,
    before,
    defining_op,
    ops_named,
    parent_of,
    replace,
    users,
)
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class ClearAccumulators(Pass):
    """Selections of zeros become operands of dots; waits for dots stand in branches, too."""

    name: ClassVar[str] = "tritongpu-clear-accumulators"
    only_for: ClassVar[frozenset[str]] = names_of(WarpGroupDotOp)

    def run(self, module: Module) -> None:
        for dot in ops_named(module, WarpGroupDotOp):
            if isa(parent_of(dot), scf.ForOp) and not adds_outside(dot):
                _clear_ahead(_clear_behind(dot))
        for wait in ops_named(module, WarpGroupDotWaitOp):
            if isa(parent_of(wait), scf.ForOp):
                _wait_in_branches(wait)


@dataclass
class _Cleared:
    """A selection of zeros or of `value`, which there is where `adds`, negated or not."""

    op: Operation
    value: Value
    adds: Value
    is_negated: bool

    @classmethod
    def of(cls, value: Value) -> "_Cleared | None":
        """What a value is, if it is one for the whole tensor."""
        op = defining_op(value)
        if not isa(op, arith.SelectOp):
            return None
        condition, *sides = op.operands
        if is_tensor(condition.type):
            splat = defining_op(condition)
            if not isa(splat, tt.SplatOp):
                return None
            condition = splat.operands[0]
        for number, side in enumerate(sides):
            if is_zeros(side):
                return cls(op, sides[1 - number], condition, number == 0)
        return None

    def emit(self) -> Value:
        """The condition as it is asked for."""
        if not self.is_negated:
            return self.adds
        return arith.XOrIOp(self.adds, constant(1, self.adds.type)).result


def _clear_behind(dot: Operation) -> Operation:
    """Where the loop carries on zeros or a dot's result, carries on the result, and whether it is
    one."""
    loop = ForLoop(parent_of(dot))
    acc = dot.operands[2]
    if acc not in loop.iter_args or users(acc) != [dot]:
        return dot
    number, end = loop.iter_args.index(acc), end_of(loop.body)
    cleared = _Cleared.of(end.operands[number])
    if cleared is None or users(end.operands[number]) != [end]:
        return dot
    initial = loop.init_args[number]
    begins_at_zero = is_zeros(initial)
    with before(loop.op):
        if begins_at_zero:
            loop.set_init_arg(number, create(ub.PoisonOp, initial.type))
        flag = constant(int(not begins_at_zero), ir.IntegerType.get_signless(1))
    loop = ForLoop(with_carried(loop.op, [flag]))
    end = end_of(loop.body)
    with before(end):
        end.operands[len(end.operands) - 1] = cleared.emit()
    replace(cleared.op, [cleared.value])
    result, has_value = loop.op.results[number], loop.op.results[len(loop.op.results) - 1]
    if list(result.uses):
        with ir.InsertionPoint.after(loop.op), loop.op.location:
            zeros_unless(has_value, result)
    return _adding(dot, acc, loop.iter_args[-1])


def _clear_ahead(dot: Operation) -> None:
    """A dot that adds to zeros or to another value adds to that, where it is one."""
    cleared = _Cleared.of(dot.operands[2])
    if cleared is not None and users(dot.operands[2]) == [dot]:
        with before(dot):
            _adding(dot, cleared.value, cleared.emit())
        cleared.op.erase()


def _adding(dot: Operation, acc: Value, adds: Value) -> Operation:
    """A dot in the place of one, which adds to `acc` where `adds`."""
    left, right, _, *known = dot.operands
    with before(dot):
        for flag in known:
            adds = arith.AndIOp(flag, adds).result
        made = WarpGroupDotOp(left, right, acc, dot.attributes["imprecise"], acc.type, adds=adds)
    replace(dot, [made.result])
    return made.operation


def _wait_in_branches(wait: Operation) -> None:
    """Has branches that take a dot wait for it themselves, if beside them the loop carries it on
    alone."""
    (result,) = wait.results
    _sink(result, wait.block)
    outer = [op for op in users(result) if op.block == wait.block]
    if outer != [end_of(wait.block)]:
        return
    takers: dict[Block, list[ir.OpOperand]] = {}
    for use in result.uses:
        if use.owner.operation.block != wait.block:
            block = _branch_of(use.owner.operation, wait.block)
            if block is None:
                return
            takers.setdefault(block, []).append(use)
    for block, uses in takers.items():
        first = _first_of(block, {use.owner.operation for use in uses})
        with before(first), wait.location:
            waited = WarpGroupDotWaitOp(result, i32_attr(0), result.type).result
        for use in uses:
            use.owner.operation.operands[use.operand_number] = waited


def _sink(value: Value, block: Block) -> None:
    """Moves what a block computes of a value, and one branch alone takes, there."""
    for op in users(value):
        if op.block != block or not has(op, Pure) or len(op.results) != 1 or op.regions:
            continue
        _sink(op.results[0], block)
        takers = set(users(op.results[0]))
        places = {_branch_of(taker, block) for taker in takers}
        if len(places) == 1 and (place := next(iter(places))) is not None:
            op.move_before(_first_of(place, takers))


def _branch_of(op: Operation, block: Block) -> Block | None:
    """The block of a branch in `block` that an op lies in; None where it lies in none."""
    while (around := op.parent) is not None and op.block != block:
        if around.operation.block == block:
            return op.block if isa(around.operation, scf.IfOp) else None
        op = around.operation
    return None


def _first_of(block: Block, ops: set[Operation]) -> Operation:
    """The first op of a block that is one of `ops`, or that one of them lies in."""
    of_block = (view.operation for view in block.operations)
    return next(op for op in of_block if not ops.isdisjoint((op, *all_ops(op))))
