"""Fences between the two ways to shared memory.

Threads, and the copies that `cp.async` begins, write through the *generic proxy*; `wgmma` and TMA
read through the *asynchronous proxy*, which sees such writes only behind a fence of the thread that
made them (PTX ISA, "Async proxy"). What TMA itself brought needs none.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.scratch import scratch_bytes
from proton.analysis.shared_alias import SharedAliases
from proton.dialect import isa, names_of, ttng
from proton.dialect.mlir import Block, Module, Operation, Value, func, ir
from proton.dialect.regions import end_of
from proton.dialect.traits import AllocatesShared, AwaitsOrder, Barrier, Loop, SharedEffects, has
from proton.dialect.ttg import FENCES, AsyncWaitGroupOp, is_mem_desc
from proton.dialect.walk import all_ops, before, functions, ops_named
from proton.passes import Pass, register

_COPY = ttng.AsyncTMACopyOp
_READERS = names_of(ttng.WarpGroupDotOp, ttng.AsyncTMAStoreOp)
_ARRIVAL = ttng.ArriveWithCopiesOp
_Memory = frozenset[Operation]  # the ops that allocate it
_NOTHING = _Memory()


@register
@dataclass(frozen=True)
class FenceInsertion(Pass):
    """`ttng.fence_async_shared` between what threads write and each product of a warp group, and
    each copy to global memory, that reads it: before the reader, or before the first op behind the
    last write at which threads may meet. Each thread fences what it wrote, and then they meet:
    `membar` puts a barrier before the reader where there is none. One fence is for all that was
    written before, unless the reader takes nothing of the last write, and so may have met the
    others before that."""

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
        self.read = _NOTHING.union(*parts)

    def _memory(self, value: Value) -> _Memory:
        """The ops that allocate what a value may name; none where that is not known."""
        return frozenset(part.op for part in self.aliases.memory.get(value, ()))

    def insert(self, block: Block) -> None:
        """Inserts those of a block, and of the blocks in it."""
        is_first = block.owner.operation == self.function
        latest = frozenset([self.function]) if is_first and not self.is_known else _NOTHING
        written = latest  # with what was written before
        place, earlier = None, list[Operation]()  # where threads met behind each write
        end = end_of(block)
        for op in [view.operation for view in block.operations]:
            if isa(op, AsyncWaitGroupOp):  # where threads meet, behind a fence of each
                op.attributes[FENCES] = ir.UnitAttr.get()
            if isa(op, _ARRIVAL, AsyncWaitGroupOp):  # a fence, and readers wait for it
                written, place, earlier = _NOTHING, None, []
            elif now := self._written(op):
                earlier += [] if place is None else [place]
                latest, written, place = now, written | now, None
            elif written:
                place = place or (op if _may_meet(op) else None)
                is_last = op == end and self._reads_behind(block)
                if is_last or self._reads_before([op], written):
                    # Ahead of who reads the last write they meet again.
                    others = [] if self._reads(op) & latest else earlier
                    for where in (*others, place or op):
                        with before(where):
                            ttng.FenceAsyncSharedOp()
                    written, place, earlier = _NOTHING, None, []
            for inner in _blocks(op):
                self.insert(inner)

    def _reads_before(
        self, ops: list[Operation], written: _Memory, latest: _Memory = _NOTHING
    ) -> bool | None:
        """Whether a reader among ops may read what was written ahead of them, and not also what is
        written among them: fences are only known to be ahead of where it meets the others if it
        does. None: there is no reader for sure of one or the other."""
        for op in ops:
            if op.name in _READERS:
                read = self._reads(op)
                if read & latest:
                    return False
                if not read or read & written:
                    return True
            latest = self._written(op) or latest
            if any(self._reads_before(_ops(inner), written, latest) for inner in _blocks(op)):
                return True
        return None

    def _written(self, op: Operation) -> _Memory:
        """What threads, or their copies, have written for a reader when an op is done."""
        if has(op, AllocatesShared):
            return self._for_readers([frozenset([op])] if len(op.operands) else [])
        effects = SharedEffects.of(op)
        if isa(op, AsyncWaitGroupOp):
            return self._for_readers([_NOTHING])
        if effects.waits:
            copies = [self.aliases.copies.get(token, _NOTHING) for token in op.operands]
            parts = [part for of in copies for copy in of for part in self._targets(copy)]
            return self._for_readers(parts if all(copies) else [_NOTHING])
        if isa(op, _COPY) or effects.lands_later:
            return _NOTHING
        return self._for_readers(self._targets(op))

    def _targets(self, op: Operation) -> list[_Memory]:
        """What an op writes, each operand by itself."""
        written = [op.operands[number] for number in SharedEffects.of(op).writes]
        return [self._memory(value) for value in written if is_mem_desc(value.type)]

    def _for_readers(self, parts: list[_Memory]) -> _Memory:
        """What of some memory a reader may read; what is not known may be any."""
        if not self.is_known:
            return frozenset([self.function]) if parts else _NOTHING
        return self.read if not all(parts) else self.read & _NOTHING.union(*parts)

    def _reads(self, op: Operation) -> _Memory:
        """What a reader reads; nothing of another op, or where that is not known."""
        if op.name not in _READERS or not self.is_known:
            return _NOTHING
        return _NOTHING.union(*(self._memory(v) for v in op.operands if is_mem_desc(v.type)))

    def _reads_first(self, ops: list[Operation]) -> bool | None:
        """Whether a reader may come before a write; None where there is neither for sure."""
        for op in ops:
            if op.name in _READERS:
                return True
            if self._written(op):
                return False
            if any(self._reads_first(_ops(inner)) for inner in _blocks(op)):
                return True
        return None

    def _reads_behind(self, block: Block) -> bool:
        """True if a reader may come before a write, behind the end of a block."""
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
    """True if threads may meet at an op, or `membar` may have them meet before it."""
    return any(map(_meets, (op, *all_ops(op))))


def _meets(op: Operation) -> bool:
    if has(op, AllocatesShared):
        return bool(len(op.operands))
    if has(op, Barrier, AwaitsOrder) or isa(op, func.CallOp) or scratch_bytes(op):
        return True
    effects = SharedEffects.of(op)
    return any(is_mem_desc(op.operands[n].type) for n in (*effects.reads, *effects.writes))
