"""Fences between the two ways to shared memory.

Threads, and the copies that `cp.async` begins, write through the *generic proxy*; `wgmma` reads
through the *asynchronous proxy*, which sees such writes only behind a fence of the thread that
made them (PTX ISA, "Async proxy").
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect.mlir import Module, Operation
from proton.dialect.traits import AllocatesShared, SharedEffects, has
from proton.dialect.ttg import is_mem_desc
from proton.dialect.ttng import FenceAsyncSharedOp
from proton.dialect.walk import all_ops, before, functions, ops_named
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class FenceInsertion(Pass):
    """`ttng.fence_async_shared` before each product of a warp group that reads what threads wrote.
    It comes ahead of the barrier that `membar` puts before the product: each thread fences what it
    wrote, and then they meet."""

    name: ClassVar[str] = "triton-nvidia-gpu-fence-insertion"

    def run(self, module: Module) -> None:
        for function in functions(module):
            products = ops_named(function, "ttng.warp_group_dot")
            fenced: Operation | None = None  # the last product that a fence was put before
            for op in products:
                if fenced is None or _may_write_between(fenced, op):
                    with before(op):
                        FenceAsyncSharedOp()
                    fenced = op


def _may_write_between(first: Operation, second: Operation) -> bool:
    """Whether shared memory may change between two ops, or they are in different blocks."""
    if first.block != second.block:
        return True
    ops = [view.operation for view in first.block.operations]
    between = ops[ops.index(first) + 1 : ops.index(second)]
    return any(_changes_memory(inner) for op in between for inner in (op, *all_ops(op)))


def _changes_memory(op: Operation) -> bool:
    effects = SharedEffects.of(op)
    writes = any(is_mem_desc(op.operands[n].type) for n in effects.writes)
    is_landing = writes and not effects.lands_later
    return is_landing or effects.waits or has(op, AllocatesShared) or op.name == "func.call"
