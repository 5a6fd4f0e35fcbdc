"""Mbarriers by which threads hand memory over: who waits at one waits for threads, not for copies.

    producer                       consumer
    wait(empty)                    wait(ready)        ready: copies arrive
    expect(ready); copy            read
                                   arrive(empty)      empty: threads do

Arrivals and waits of one barrier, or of a ring of them, are the two ends of a queue of its own.
"""

from pathlib import Path

from proton.analysis.barriers import written
from proton.analysis.shared_alias import SharedAliases, SharedPart
from proton.dialect import isa, ttng
from proton.dialect.asynchronous import AsyncQueue
from proton.dialect.mlir import Operation
from proton.dialect.scopes import place_of
from proton.dialect.walk import all_ops

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
    for parts, ops in _barriers(function, uses):
        arrivals = [op for op in ops if isa(op, *ARRIVALS)]
        if arrivals and not any(isa(op, *_OF_COPIES) for op in ops):
            made = written(parts[0].op.location)
            name = f"mbarrier {Path(made.file).name}:{made.line}"
            count[name] = count.get(name, 0) + 1
            name += f" #{count[name]}" if count[name] > 1 else ""
            queue = AsyncQueue(name, "barriers", f"arrival {place_of(arrivals)}")
            found |= dict.fromkeys(ops, queue)
    return found


def _barriers(
    function: Operation, uses: list[Operation]
) -> list[tuple[list[SharedPart], list[Operation]]]:
    """The uses of each barrier, or of barriers that an index tells apart when the kernel runs; what
    is of unknown memory is left out."""
    memory = SharedAliases(function).memory
    found: list[tuple[list[SharedPart], list[Operation]]] = []
    for op in uses:
        parts, ops = list(memory.get(op.operands[0], ())), [op]
        if not parts:
            continue
        for other in [each for each in found if _meet(each[0], parts)]:
            found.remove(other)
            parts, ops = other[0] + parts, other[1] + ops
        found.append((parts, ops))
    return found


def _meet(some: list[SharedPart], others: list[SharedPart]) -> bool:
    return any(
        a.op == b.op and a.start < b.start + b.size and b.start < a.start + a.size
        for a in some
        for b in others
    )
