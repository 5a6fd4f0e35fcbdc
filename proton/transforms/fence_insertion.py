"""Fences between the two ways to shared memory.

Threads, and the copies that `cp.async` begins, write through the *generic proxy*; `wgmma` and TMA
read through the *asynchronous proxy*, which sees such writes only behind a fence of the thread that
made them (PTX ISA, "Async proxy"). What TMA itself brought needs none.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.scratch import scratch_bytes
from proton.analysis.shared_alias import SharedAliases
from proton.dialect.mlir import Block, Module, Operation, Value
from proton.dialect.regions import end_of
from proton.dialect.traits import AllocatesShared, Barrier, Loop, SharedEffects, TakesTurn, has
from proton.dialect.ttg import is_mem_desc
from proton.dialect.ttng import FenceAsyncSharedOp
from proton.dialect.walk import all_ops, before, functions, ops_named
from proton.passes import Pass, register

_COPY = "ttng.async_tma_copy_global_to_local"
_READERS = ("ttng.warp_group_dot", "ttng.async_tma_copy_local_to_global")


@register
@dataclass(frozen=True)
class FenceInsertion(Pass):
    """`ttng.fence_async_shared` between what threads write and each product of a warp group, and
    each copy to global memory, that reads it: before the reader, or before the first op behind the
    last write at which threads may meet. Each thread fences what it wrote, and then they meet:
    `membar` puts a barrier before the reader where there is none."""

    name: ClassVar[str] = "triton-nvidia-gpu-fence-insertion"
    only_for: ClassVar[frozenset[str]] = frozenset(_READERS)

    def run(self, module: Module) -> None:
        for function in functions(module):
            if readers := ops_named(function, *_READERS):
                _Fences(function, readers).insert(function.regions[0].blocks[0])


class _Fences:
    """Fences of a function, for its readers."""

    def __init__(self, function: Operation, readers: list[Operation]) -> None:
        self.function, self.aliases = function, SharedAliases(function)
        parts = [self._memory(v) for op in readers for v in op.operands if is_mem_desc(v.type)]
        self.is_known = all(parts)  # else it was written before, too
        self.read = frozenset[Operation]().union(*parts)

    def _memory(self, value: Value) -> frozenset[Operation]:
        """The ops that allocate what a value may name; none where that is not known."""
        return frozenset(part.op for part in self.aliases.memory.get(value, ()))

    def insert(self, block: Block) -> None:
        """Inserts those of a block, and of the blocks in it."""
        is_written, place = not self.is_known and block.owner.operation == self.function, None
        end = end_of(block)
        for op in [view.operation for view in block.operations]:
            if self._writes(op):
                is_written, place = True, None
            elif is_written:
                place = place or (op if _may_meet(op) else None)
                is_last = op == end and self._reads_behind(block)
                if is_last or self._reads_first([op]):
                    with before(place or op):
                        FenceAsyncSharedOp()
                    is_written = False
            for inner in _blocks(op):
                self.insert(inner)

    def _writes(self, op: Operation) -> bool:
        """Whether what threads, or their copies, write for a reader is there with an op."""
        if has(op, AllocatesShared):
            return bool(len(op.operands)) and self._is_read(frozenset([op]))
        effects = SharedEffects.of(op)
        if effects.waits:
            copies = [self.aliases.copies.get(token, frozenset()) for token in op.operands]
            known = frozenset[Operation]().union(*copies)
            return not all(copies) or any(map(self._writes_for_reader, known))
        return op.name != _COPY and not effects.lands_later and self._writes_for_reader(op)

    def _writes_for_reader(self, op: Operation) -> bool:
        written = [op.operands[number] for number in SharedEffects.of(op).writes]
        return any(is_mem_desc(v.type) and self._is_read(self._memory(v)) for v in written)

    def _is_read(self, memory: frozenset[Operation]) -> bool:
        """Whether a reader may read memory; what is not known may be any."""
        return not self.is_known or not memory or bool(memory & self.read)

    def _reads_first(self, ops: list[Operation]) -> bool | None:
        """Whether a reader may come before a write; None where there is neither for sure."""
        for op in ops:
            if op.name in _READERS:
                return True
            if self._writes(op):
                return False
            if any(self._reads_first(_ops(inner)) for inner in _blocks(op)):
                return True
        return None

    def _reads_behind(self, block: Block) -> bool:
        """Whether a reader may come before a write, behind the end of a block."""
        op = block.owner.operation
        if op == self.function:
            return False
        if has(op, Loop) and any(self._reads_first(_ops(inner)) for inner in _blocks(op)):
            return True
        following = _ops(op.block)
        found = self._reads_first(following[following.index(op) + 1 :])
        return self._reads_behind(op.block) if found is None else found


def _blocks(op: Operation) -> list[Block]:
    return [block for region in op.regions for block in region.blocks]


def _ops(block: Block) -> list[Operation]:
    return [view.operation for view in block.operations]


def _may_meet(op: Operation) -> bool:
    """Whether threads may meet at an op, or `membar` may have them meet before it."""
    return any(map(_meets, (op, *all_ops(op))))


def _meets(op: Operation) -> bool:
    if has(op, AllocatesShared):
        return bool(len(op.operands))
    if has(op, Barrier, TakesTurn) or op.name == "func.call" or scratch_bytes(op):
        return True
    effects = SharedEffects.of(op)
    return any(is_mem_desc(op.operands[n].type) for n in (*effects.reads, *effects.writes))
