"""Mbarriers by which threads hand memory over: who waits at one waits for threads, not for copies.

    producer                       consumer
    wait(empty)                    wait(ready)        ready: copies arrive
    expect(ready); copy            read
                                   arrive(empty)      empty: threads do

Arrivals and waits of one barrier, or of a ring of them, are the two ends of a queue of its own.
"""

from dataclasses import dataclass
from math import prod
from pathlib import Path

from proton.analysis.barriers import written
from proton.dialect import isa, ttg, ttng
from proton.dialect.asynchronous import AsyncQueue
from proton.dialect.emit import number_of
from proton.dialect.mlir import Operation, Value, ir
from proton.dialect.scopes import place_of
from proton.dialect.traits import AllocatesShared, has
from proton.dialect.ttng_memory import BARRIER_BYTES
from proton.dialect.walk import all_ops, defining_op

ARRIVALS = (ttng.ArriveOnceOp, ttng.ArriveBarrierOp)
_OF_COPIES = (ttng.BarrierExpectOp, ttng.ArriveBehindCopiesOp, ttng.ArriveWithCopiesOp)
_WAITS = (ttng.WaitBarrierOp, ttng.WaitBarrierIfOp)


def handovers(function: Operation) -> dict[Operation, AsyncQueue]:
    """The queue of each arrival and of each wait whose barrier only threads arrive at. The queue's
    name has the line where the barrier is made, its noun the lines of the arrivals."""
    uses = [op for op in all_ops(function) if isa(op, *ARRIVALS, *_OF_COPIES, *_WAITS)]
    if not any(isa(op, *ARRIVALS) for op in uses):
        return {}
    found: dict[Operation, AsyncQueue] = {}
    count: dict[str, int] = {}
    for parts, ops in _barriers(uses):
        arrivals = [op for op in ops if isa(op, *ARRIVALS)]
        if arrivals and not any(isa(op, *_OF_COPIES) for op in ops):
            made = written(parts[0].made.location)
            name = f"mbarrier {Path(made.file).name}:{made.line}"
            count[name] = count.get(name, 0) + 1
            name += f" #{count[name]}" if count[name] > 1 else ""
            queue = AsyncQueue(name, "barriers", f"arrival {place_of(arrivals)}")
            found |= dict.fromkeys(ops, queue)
    return found


@dataclass(frozen=True)
class _Part:
    """Bytes of what an op allocated."""

    made: Operation
    start: int
    size: int

    def meets(self, other: "_Part") -> bool:
        is_before = self.start < other.start + other.size
        return self.made == other.made and is_before and other.start < self.start + self.size


def _part(memory: Value) -> _Part | None:
    """Where a barrier lies, or those of which an index takes one when the kernel runs; None where
    that is not known."""
    op, size = defining_op(memory), BARRIER_BYTES * prod(ttg.mem_desc_block(memory.type)[0])
    if op is None or has(op, AllocatesShared):
        return None if op is None else _Part(op, 0, size)
    if not isa(op, ttg.MemDescViewOp, ttg.MemDescIndexOp):
        return None
    whole = _part(op.operands[0])
    if whole is None:
        return None
    if isa(op, ttg.MemDescViewOp):
        offset = int(ir.IntegerAttr(op.attributes["offset"]).value)
        return _Part(whole.made, whole.start + offset, size)
    number = number_of(op.operands[1])
    return whole if number is None else _Part(whole.made, whole.start + size * number, size)


def _barriers(uses: list[Operation]) -> list[tuple[list[_Part], list[Operation]]]:
    """The uses of each barrier, or of those of one ring; what is of unknown memory is left out."""
    found: list[tuple[list[_Part], list[Operation]]] = []
    for op in uses:
        part = _part(op.operands[0])
        if part is None:
            continue
        parts, ops = [part], [op]
        for other in [each for each in found if any(map(part.meets, each[0]))]:
            found.remove(other)
            parts, ops = other[0] + parts, other[1] + ops
        found.append((parts, ops))
    return found
