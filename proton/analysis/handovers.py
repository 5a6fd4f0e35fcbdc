"""Whom a wait at an mbarrier is for: threads that hand memory over, or copies to one ring.

    producer                       consumer
    wait(empty)                    wait(ready)        ready: copies arrive
    expect(ready); copy            read
                                   arrive(empty)      empty: threads do

Arrivals and waits of one barrier, or of a ring of them, are the two ends of a queue of its own. So
are, between programs, loops that do nothing but look at memory, and what writes that memory:

    while tl.atomic_cas(lock, 0, 1) == 1: pass      waits
    tl.atomic_xchg(lock, 0)                         releases

Copies that a kernel waits for at several barriers, or rings of them, are a queue for each: they are
waited for in an order of their own.
"""

from dataclasses import replace
from pathlib import Path

from proton.analysis.memory_places import MemoryPlace, barrier_place, made_at
from proton.dialect import isa, tt, ttg, ttng
from proton.dialect.asynchronous import COPIES, AsyncQueue
from proton.dialect.mlir import Operation, Value, scf
from proton.dialect.records import Origin
from proton.dialect.scopes import place_of
from proton.dialect.traits import Barrier, Writes, has
from proton.dialect.walk import all_ops, constant_in, defining_op
from proton.trace.model import BARRIERS, LOCKS, ONE

ATOMICS = (tt.AtomicCASOp, tt.AtomicRMWOp)
ARRIVALS = (ttng.ArriveOnceOp, ttng.ArriveOfWarpsOp, ttng.ArriveBarrierOp)
_BEHIND_COPIES = (ttng.ArriveBehindCopiesOp, ttng.ArriveWithCopiesOp)
_OF_COPIES = (ttng.BarrierExpectOp, *_BEHIND_COPIES)
_WAITS = (ttng.WaitBarrierOp, ttng.WaitBarrierIfOp)


def handovers(function: Operation) -> dict[Operation, AsyncQueue]:
    """The queue of each arrival and each wait at a barrier at which only threads arrive, of loops
    that wait for other programs, and of what those wait for. A queue's name has the line where the
    barrier, or the loop, stands, its noun the lines of the arrivals."""
    ops = all_ops(function)
    uses = [op for op in ops if isa(op, *ARRIVALS, *_OF_COPIES, *_WAITS)]
    found = _locks(ops)
    names = _Names()
    for parts, own in _barriers(uses) if any(isa(op, *ARRIVALS) for op in uses) else ():
        arrivals = [op for op in own if isa(op, *ARRIVALS)]
        if arrivals and not any(isa(op, *_OF_COPIES) for op in own):
            queue = AsyncQueue(
                names.of("mbarrier", parts), BARRIERS, f"arrival {place_of(arrivals)}"
            )
            found |= dict.fromkeys(own, queue)
    return found


def copy_queues(function: Operation) -> dict[Operation, AsyncQueue]:
    """The queue of each copy that arrives at a barrier, of each op that says how much arrives, and
    of each wait there, in a function whose copies are waited for at several rings of barriers, or
    at barriers and as groups. Elsewhere, and where some barrier is of unknown memory, there is one
    queue, `COPIES`."""
    ops = all_ops(function)
    uses = [op for op in ops if isa(op, *ARRIVALS, *_OF_COPIES, *_WAITS, ttng.AsyncTMACopyOp)]
    groups = _barriers(uses)
    if sum(len(own) for _, own in groups) < len(uses):
        return {}
    rings = [ring for ring in groups if any(isa(op, ttng.BarrierExpectOp) for op in ring[1])]
    if len(rings) < 2 and not any(isa(op, ttg.AsyncCommitGroupOp) for op in ops):
        return {}
    found, names = dict[Operation, AsyncQueue](), _Names()
    for parts, own in rings:
        if not any(isa(op, *_BEHIND_COPIES) for op in own):
            queue = replace(COPIES, name=names.of("copies", parts))
            found |= dict.fromkeys(own, queue)
    return found


class _Names:
    """Names of rings of barriers: each has the line where they were made."""

    def __init__(self) -> None:
        self.count: dict[str, int] = {}

    def of(self, kind: str, parts: list[MemoryPlace]) -> str:
        made = made_at(parts[0].base)
        name = f"{kind} {Path(made.file).name}:{made.line}"
        self.count[name] = self.count.get(name, 0) + 1
        return f"{name} #{self.count[name]}" if self.count[name] > 1 else name


def end_of_queue(op: Operation, queue: AsyncQueue) -> tuple[str, Origin]:
    """What an end of a handover is called, and what its records are of."""
    kind, pendings = ("wait", ONE) if isa(op, *_WAITS, scf.WhileOp) else ("issue", 0)
    return f"{kind} {queue.noun}", Origin(kind, queue.work, queue.name, pendings)


# Memory that other programs write

_KEEPING = ("add", "or", "xor")  # kinds of atomics that by 0 only read


def waits(function: Operation) -> list[Operation]:
    """The loops that look at memory until another program has written it. One that may write there
    takes a lock: whoever holds that goes on by itself."""
    loops = [op for op in all_ops(function) if isa(op, scf.WhileOp) and _polled(op)]
    return [op for op in loops if all(map(_only_reads, all_ops(op)))]


def _only_reads(op: Operation) -> bool:
    """False of an atomic that may change memory."""
    if isa(op, tt.AtomicCASOp):
        return bool(op.operands[1] == op.operands[2])
    if not isa(op, tt.AtomicRMWOp):
        return True
    operand = constant_in(op.operands[1])
    is_zero = operand is not None and operand.value == 0
    return str(op.attributes["rmw_op"].value) in _KEEPING and is_zero


def _locks(ops: list[Operation]) -> dict[Operation, AsyncQueue]:
    """The loops that wait, and what writes by the same argument."""
    polls = {op: pointers for op in ops if isa(op, scf.WhileOp) and (pointers := _polled(op))}
    inside = {inner for op in polls for inner in all_ops(op)}
    found: dict[Operation, AsyncQueue] = {}
    for argument in dict.fromkeys(pointer for pointers in polls.values() for pointer in pointers):
        spins = [op for op, pointers in polls.items() if argument in pointers]
        writes = [
            op for op in ops
            if isa(op, *ATOMICS, tt.StoreOp) and op not in inside and _root(op) == argument
        ]  # fmt: skip
        noun = f"release {place_of(writes)}" if writes else f"spin {place_of(spins)}"
        queue = AsyncQueue(f"lock {place_of(spins)}", LOCKS, noun)
        found |= dict.fromkeys((*spins, *writes), queue)
    return found


def _polled(loop: Operation) -> list[Value]:
    """The arguments by which a loop looks at memory, if it does nothing else. One that loads
    without `volatile` works: by an atomic it takes the next piece of work."""
    inner = all_ops(loop)
    if any(isa(op, tt.LoadOp) and not _is_volatile(op) for op in inner):
        return []
    if any(has(op, Writes) and not isa(op, *ATOMICS) and not has(op, Barrier) for op in inner):
        return []
    looks = [op for op in inner if isa(op, *ATOMICS) or _is_volatile(op)]
    return [root for op in looks if (root := _root(op)) is not None]


def _is_volatile(op: Operation) -> bool:
    return isa(op, tt.LoadOp) and bool(op.attributes["volatile"].value)


def _root(access: Operation) -> Value | None:
    """The function's argument that an access has its address from."""
    pointer = access.operands[0]
    while (op := defining_op(pointer)) is not None:
        if not isa(op, tt.AddPtrOp, tt.SplatOp, tt.BroadcastOp):
            return None
        pointer = op.operands[0]
    return pointer


def _barriers(uses: list[Operation]) -> list[tuple[list[MemoryPlace], list[Operation]]]:
    """The uses of each barrier, or of those of one ring; what is of unknown memory is left out."""
    found: list[tuple[list[MemoryPlace], list[Operation]]] = []
    for op in uses:
        part = barrier_place(op.operands[isa(op, ttng.AsyncTMACopyOp)], {})
        if part is None:
            continue
        parts, ops = [part], [op]
        for other in [each for each in found if any(map(part.meets, each[0]))]:
            found.remove(other)
            parts, ops = other[0] + parts, other[1] + ops
        found.append((parts, ops))
    return found
