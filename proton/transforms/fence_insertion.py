"""Fences between the two ways to shared memory.

Threads, and the copies that `cp.async` begins, write through the *generic proxy*; `wgmma` and TMA
read through the *asynchronous proxy*, which sees such writes only behind a fence of the thread that
made them (PTX ISA, "Async proxy"). What TMA itself brought needs none.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.shared_alias import SharedAliases
from proton.dialect.mlir import Module, Operation, Value, ir
from proton.dialect.traits import AllocatesShared, SharedEffects, has
from proton.dialect.ttg import is_mem_desc
from proton.dialect.ttng import FenceAsyncSharedOp
from proton.dialect.walk import all_ops, before, functions, ops_named
from proton.passes import Pass, register

_COPY = "ttng.async_tma_copy_global_to_local"
_READERS = ("ttng.warp_group_dot", "ttng.async_tma_copy_local_to_global")


@register
@dataclass(frozen=True)
class FenceInsertion(Pass):
    """`ttng.fence_async_shared` before each product of a warp group, and each copy to global
    memory, that reads what threads wrote. It comes ahead of the barrier that `membar` puts before
    the reader: each thread fences what it wrote, and then they meet."""

    name: ClassVar[str] = "triton-nvidia-gpu-fence-insertion"
    only_for: ClassVar[frozenset[str]] = frozenset(_READERS)

    def run(self, module: Module) -> None:
        for function in functions(module):
            readers = ops_named(function, *_READERS)
            if not readers:
                continue
            by_threads = _written_by_threads(function)
            fenced: Operation | None = None  # the last reader that a fence was put before
            for op in readers:
                if not any(by_threads(operand) for operand in op.operands):
                    continue
                if fenced is None or _may_write_between(fenced, op):
                    with before(op):
                        FenceAsyncSharedOp()
                    fenced = op


def _written_by_threads(function: Operation) -> Callable[..., object]:
    """Whether a value is memory that other ops than TMA's copies write, or it is not known."""
    aliases = SharedAliases(function)
    written = set()
    for value, parts in aliases.memory.items():
        if any(_writes(use) for use in value.uses):
            written |= {part.op for part in parts}
        written |= {part.op for part in parts if len(part.op.operands)}  # with what it holds

    def ask(value: Value) -> bool:
        parts = aliases.memory.get(value, ())
        return is_mem_desc(value.type) and (not parts or any(part.op in written for part in parts))

    return ask


def _writes(use: ir.OpOperand) -> bool:
    """Whether threads write through a use of memory."""
    op = use.owner.operation
    return op.name != _COPY and use.operand_number in SharedEffects.of(op).writes


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
