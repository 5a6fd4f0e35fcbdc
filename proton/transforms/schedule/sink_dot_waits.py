"""Lets products of warp groups go on until their results are needed.

    %e = ttng.warp_group_dot %q, %k0, %zero          %e = ttng.warp_group_dot %q, %k0, %zero
    %s = ttng.warp_group_dot_wait %e {0}       =>    %f = ttng.warp_group_dot %p, %v, %acc
    %f = ttng.warp_group_dot %p, %v, %acc            %s = ttng.warp_group_dot_wait %e {pendings = 1}
    %o = ttng.warp_group_dot_wait %f {0}             ... what is computed from %s ...
    ... what is computed from %s ...                 %o = ttng.warp_group_dot_wait %f {pendings = 0}

Products end in the order in which they were issued. So a wait leaves as many under way as have been
issued between its own and its new place, or fewer where another wait in between has left fewer:
ptxas takes the number for what is under way.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Module, Operation
from proton.dialect.traits import AllocatesShared, SharedEffects, has
from proton.dialect.ttg import is_mem_desc
from proton.dialect.walk import all_ops, defining_op, ops_named
from proton.passes import Pass, register

PRODUCT, WAIT = "ttng.warp_group_dot", "ttng.warp_group_dot_wait"


@register
@dataclass(frozen=True)
class SinkDotWaits(Pass):
    """Moves each wait for a product right before the first op of its block that takes the result,
    or that writes shared memory."""

    name: ClassVar[str] = "triton-nvidia-gpu-sink-dot-waits"
    only_for: ClassVar[frozenset[str]] = frozenset({WAIT})

    def run(self, module: Module) -> None:
        for wait in reversed(ops_named(module, WAIT)):
            product = defining_op(wait.operands[0])
            if product is None or product.block != wait.block:
                continue
            if not wait.attributes["pendings"].value:  # the others have their place
                _sink(wait)


def _sink(wait: Operation) -> None:
    users = {use.owner.operation for use in wait.results[0].uses}
    ops = [view.operation for view in wait.block.operations]
    after = ops[ops.index(wait) + 1 :]
    issued = 0
    for op in after:
        inner = all_ops(op)
        if op in users or any(o in users or _stops(o) for o in (op, *inner)):
            break
        if op.name == WAIT:
            issued = min(issued, op.attributes["pendings"].value)
        issued += op.name == PRODUCT
    wait.move_before(op)
    wait.attributes["pendings"] = i32_attr(issued)


def _stops(op: Operation) -> bool:
    """Whether an op may write memory that a product under way reads, makes memory that may lie
    where that did, or counts on there being none under way: control flow is one."""
    if op.name.startswith("scf.") or op.name == "func.call" or has(op, AllocatesShared):
        return True
    return any(is_mem_desc(op.operands[n].type) for n in SharedEffects.of(op).writes)
