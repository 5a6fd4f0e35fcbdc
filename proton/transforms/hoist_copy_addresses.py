"""Addresses of the copies that a warp group begins in its turn are computed ahead of the product.

    ttng.order_wait                              ttng.order_wait
    %o = ttng.warp_group_dot                     %i = proton_gpu.optimization_barrier %j
    proton_gpu.read_counter                      %p = tt.addptr %k, %i
    %p = tt.addptr %k, %j                  =>    %o = ttng.warp_group_dot
    ttg.async_copy_global_to_local %p            proton_gpu.read_counter
                                                 ttg.async_copy_global_to_local %p

A product whose left factor is in registers is issued as slowly as it is computed, and addresses cost
nothing in between: the assembler puts them there, but none across a reading of the clock. Behind
the reading they would hold up the copies, and the copies the group's turn. The barriers keep LLVM
from computing them while the group waits for its turn.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect.asynchronous import DOTS, Issues, Retires
from proton.dialect.emit import create
from proton.dialect.mlir import Module, Operation
from proton.dialect.traits import Asynchronous, Pure, has
from proton.dialect.walk import before, ops_named, users
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class HoistCopyAddresses(Pass):
    """Moves what only copies take from behind a product to ahead of it, where a warp group has
    waited for its turn."""

    name: ClassVar[str] = "hoist-copy-addresses"
    only_for: ClassVar[frozenset[str]] = frozenset({"ttng.order_wait"})

    def run(self, module: Module) -> None:
        for wait in ops_named(module, "ttng.order_wait"):
            _hoist(wait)


def _hoist(wait: Operation) -> None:
    ops = [view.operation for view in wait.block.operations]
    turn = ops[ops.index(wait) + 1 :]
    retired = next(number for number, op in enumerate(turn) if Retires.of(op) is not None)
    issued = [op for op in turn[:retired] if (i := Issues.of(op)) is not None and i.queue is DOTS]
    (product,) = issued
    taken, moved = set[Operation](), list[Operation]()
    for op in reversed(turn[turn.index(product) + 1 : retired]):
        if has(op, Asynchronous) or (has(op, Pure) and all(set(users(r)) <= taken for r in op.results)):
            taken.add(op)
            if has(op, Pure):
                moved.append(op)
    for op in reversed(moved):
        op.move_before(product)
        if op.name == "tt.splat":
            with before(op):
                (scalar,) = op.operands
                op.operands[0] = create("proton_gpu.optimization_barrier", scalar.type, scalar)
