"""Addresses of the copies that a warp group begins with its dots are computed beside them.

    ttng.order_wait                              ttng.order_wait
    %o = ttng.warp_group_dot                     %i = proton_gpu.optimization_barrier %j
    proton_gpu.read_counter                      %p = tt.addptr %k, %i
    %p = tt.addptr %k, %j                  =>    %o = ttng.warp_group_dot
    ttg.async_copy_global_to_local %p            proton_gpu.read_counter
                                                 ttg.async_copy_global_to_local %p

A product whose left factor is in registers is issued as slowly as it is computed, and arithmetic in
between costs nothing. The assembler puts it there, but moves none across a reading of the clock:
behind that it holds up the copies, and they the other groups. The barriers keep LLVM from computing
the addresses while the group waits.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of, tt, ttng
from proton.dialect import proton_gpu as pg
from proton.dialect.asynchronous import DOTS, Issues, Retires
from proton.dialect.emit import create
from proton.dialect.mlir import Module, Operation
from proton.dialect.regions import is_invariant
from proton.dialect.traits import Asynchronous, Pure, has
from proton.dialect.walk import before, defining_op, ops_named, parent_of, users
from proton.passes import Pass, register

_WAIT = ttng.OrderWaitOp


@register
@dataclass(frozen=True)
class HoistCopyAddresses(Pass):
    """Moves arithmetic that only copies take from behind a product to ahead of it, where a warp
    group has acquired the tensor cores."""

    name: ClassVar[str] = "hoist-copy-addresses"
    only_for: ClassVar[frozenset[str]] = names_of(_WAIT)

    def run(self, module: Module) -> None:
        for wait in ops_named(module, _WAIT):
            _hoist(wait)


def _hoist(wait: Operation) -> None:
    """Moves what is found in the stretch that a wait begins, up to the next wait for a
    product."""
    ops = [view.operation for view in wait.block.operations]
    stretch = ops[ops.index(wait) + 1 :]
    ends = [number for number, op in enumerate(stretch) if Retires.of(op) is not None]
    stretch = stretch[: ends[0]] if ends else stretch
    products = [
        op for op in stretch if (issue := Issues.of(op)) is not None and issue.queue is DOTS
    ]
    if not products:
        return
    product = products[0]
    behind = stretch[stretch.index(product) + 1 :]
    fixed = {product} | set(behind) - _taken_by_copies(behind)
    for op in behind:
        if op in fixed or any(defining_op(operand) in fixed for operand in op.operands):
            fixed.add(op)
            continue
        op.move_before(product)
        if isa(op, tt.SplatOp) and not is_invariant(op.operands[0], parent_of(op)):
            with before(op):
                (scalar,) = op.operands
                op.operands[0] = create(pg.OptimizationBarrierOp, scalar.type, scalar)


def _taken_by_copies(ops: list[Operation]) -> set[Operation]:
    """The arithmetic among ops whose results only the copies among them take."""
    copies, found = {op for op in ops if has(op, Asynchronous)}, set[Operation]()
    for op in reversed(ops):
        if has(op, Pure) and all(set(users(r)) <= copies | found for r in op.results):
            found.add(op)
    return found
