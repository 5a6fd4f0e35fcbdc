"""Reads small blocks of shared memory in the layout that is asked for, and beside products.

    %s = ttng.warp_group_dot_wait %e {0}           %x = ttg.local_load %m          : #wanted
    %x = ttg.local_load %m          : #copied      %s = ttng.warp_group_dot_wait %e {0}
    %y = arith.select %c, %x, %inf  : #copied  =>  %y = arith.select %d, %x, %inf  : #wanted
    %z = ttg.convert_layout %y      : #wanted

A pipelined load had the layout in which its elements are copied. Where a row of them goes to each
row of a block, threads would pass it on by way of shared memory, from which it has just come: a
store, two barriers and a load in each iteration.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.scratch import is_exchanged, scratch_bytes
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of, tt, ttg, ttng
from proton.dialect.emit import again
from proton.dialect.mlir import Module, Operation, Type, Value
from proton.dialect.traits import Pure, has
from proton.dialect.ttg import is_tensor, layout_of
from proton.dialect.walk import ops_named
from proton.layout import LinearLayout
from proton.passes import Pass, register
from proton.transforms.layout.computed_again import (
    Chains,
    ComputedAgain,
)

_LOAD, _CONVERSION, _WAIT = ttg.LocalLoadOp, ttg.ConvertLayoutOp, ttng.WarpGroupDotWaitOp
# Instructions that a thread could issue while all store, meet, and load: an estimate of a store's,
# a barrier's and a load's latency. Without a bound threads of a recurrence (fla's, of KDA) computed
# 32 exp2 each in place of one, in 533 instructions in place of 406; with it in 461.
_EXCHANGE = 64


@register
@dataclass(frozen=True)
class PlaceLocalLoads(Pass):
    """Rows in shared memory are read as their users want them, ahead of waits for products. What is
    read ahead of an exchange is read behind it: registers need not hold it until then."""

    name: ClassVar[str] = "tritongpu-place-local-loads"
    only_for: ClassVar[frozenset[str]] = names_of(_CONVERSION, _LOAD)

    target: GPUTarget

    def run(self, module: Module) -> None:
        for conversion in ops_named(module, _CONVERSION):
            (value,) = conversion.operands
            layout = layout_of(conversion.results[0].type)
            if is_exchanged(value, layout) and self._is_cheaper(value, layout):
                ComputedAgain(_read_in).replace(conversion)
        for load in reversed(ops_named(module, _LOAD)):
            _sink_behind_exchanges(load)
        for load in ops_named(module, _LOAD):
            if _is_row(load.results[0]):
                _move_ahead_of_waits(load)

    def _is_cheaper(self, value: Value, layout: LinearLayout) -> bool:
        """True if a row comes from shared memory, and what is computed from it takes a thread less
        time in a layout than an exchange."""
        special = self.target.facts.special_weight
        found = Chains(_reads_row, _gives_row, special).of(value, layout)
        return found is not None and found.more <= _EXCHANGE + layout.in_size("register")


def _sink_behind_exchanges(load: Operation) -> None:
    """Registers have what is read while threads meet for an exchange, so reads behind it: nothing
    that is passed by writes memory that a load can read."""
    is_behind = False
    ops = [view.operation for view in load.block.operations]
    for op in ops[ops.index(load) + 1 :]:
        if load.results[0] in op.operands or not (has(op, Pure) or isa(op, _LOAD)):
            break
        is_behind |= scratch_bytes(op) > 0
    else:
        return
    if is_behind:
        load.move_before(op)


def _reads_row(op: Operation) -> bool:
    return isa(op, _LOAD) and _is_row(op.results[0])


def _gives_row(op: Operation) -> bool:
    """True of a row, and of what makes one of several elements for each of another's."""
    return _is_row(op.results[0]) or isa(op, tt.JoinOp, tt.BroadcastOp, tt.ReshapeOp)


def _is_row(value: Value) -> bool:
    """True if a tensor has one dimension, but for those of one element."""
    return is_tensor(value.type) and sum(size > 1 for size in value.type.shape) <= 1


def _read_in(op: Operation, type_: Type) -> Value | None:
    return again(op, type_, list(op.operands)) if isa(op, _LOAD) else None


def _move_ahead_of_waits(load: Operation) -> None:
    """Reads while products are under way, which do not change what is read: nothing that is passed
    by has an effect on memory."""
    passed: list[Operation] = []
    count = 0  # of those that are passed by
    for op in reversed(_ahead_of(load)):
        if not isa(op, _WAIT) and not has(op, Pure):
            break
        passed.append(op)
        count = len(passed) if isa(op, _WAIT) else count
    moved = [load]
    for op in passed[:count]:
        if any(result in o.operands for o in moved for result in op.results):
            moved.append(op)
    if count and all(not isa(op, _WAIT) for op in moved):
        for op in reversed(moved):
            op.move_before(passed[count - 1])


def _ahead_of(op: Operation) -> list[Operation]:
    """The ops of a block up to one of them."""
    ops = [view.operation for view in op.block.operations]
    return ops[: ops.index(op)]
