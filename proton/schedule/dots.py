"""Where the dots of warp groups have ended.

`ttng.warp_group_dot` goes on by itself, and dots end in the order in which they were issued. A wait
leaves as many under way as were issued behind its own dot. It comes as late as it may: ahead of the
first op that takes the result, or that changes memory which a dot under way may read.

    %e = ttng.warp_group_dot %q, %k0, %zero          %e = ttng.warp_group_dot %q, %k0, %zero
    %s = ttng.warp_group_dot_wait %e {0}       =>    %f = ttng.warp_group_dot %p, %v, %acc
    %f = ttng.warp_group_dot %p, %v, %acc            %s = ttng.warp_group_dot_wait %e {pendings = 1}
    %o = ttng.warp_group_dot_wait %f {0}             ... what is computed from %s ...
    ... what is computed from %s ...                 %o = ttng.warp_group_dot_wait %f {pendings = 0}

A result that only the same dot of the next iteration takes, to add to it, may be waited for there.
Where the operands stay as they are until then, in buffers or ahead of the loop, that is behind the
next dot. Where the loop stores them, it is ahead of the first store, behind the loads that bring
the next operands: they are on their way meanwhile.

    scf.for ... iter_args(%acc) {              %m = ttg.local_reserve
      %a = tt.load                             scf.for ... iter_args(%acc) {
      %m = ttg.local_alloc %a                    %a = tt.load
      %e = ttng.warp_group_dot %m, ..., %acc     %s = ttng.warp_group_dot_wait %acc {0}
      %d = ttng.warp_group_dot_wait %e {0}   =>  ttg.local_store %a, %m
      scf.yield %d                               %e = ttng.warp_group_dot %m, ..., %s
    }                                            scf.yield %e
                                               }
                                               %d = ttng.warp_group_dot_wait ... {0}
"""

from collections.abc import Collection, Iterable, Mapping

from proton.analysis.scratch import scratch_bytes
from proton.dialect import isa, ttg, ttng
from proton.dialect.mlir import Block, Operation, Value, func, ir, scf
from proton.dialect.regions import ForLoop, end_of, is_invariant
from proton.dialect.traits import AllocatesShared, SharedEffects, has
from proton.dialect.ttg import is_mem_desc
from proton.dialect.walk import all_ops, defining_op, parent_of, users
from proton.schedule.loads import LOADS, TMA_LOAD, TMA_STORE, Load
from proton.schedule.plan import DotWait, Item, Schedule, SyncPoint

DOT, WAIT = ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp
TMA = TMA_LOAD, TMA_STORE  # they become copies, and waits for them


def waits_for_dots(schedule: Schedule) -> list[DotWait]:
    """The waits of a block whose dots are issued there, and which end all that is under way."""
    found = []
    for op in schedule.order:
        if isinstance(op, SyncPoint) or not isa(op, WAIT) or op.attributes["pendings"].value:
            continue
        dot = defining_op(op.operands[0])
        if isa(dot, DOT) and dot.block == op.block:
            found.append(DotWait(op, dot, 0))
    return found


# In the same iteration


def sink(schedule: Schedule, wait: DotWait, gone: Collection[Operation]) -> None:
    """Moves a wait to where its result is asked for. `gone` are ops that the expander removes."""
    order, start = schedule.order, schedule.order.index(wait.op)
    takers, place = set(users(wait.op.results[0])), start + 1
    ends = takers, gone, _outlives(wait.dot, schedule)
    while place < len(order) and not _ends(order[place], *ends):
        place += 1
    order.insert(place, wait.op)
    del order[start]
    _count_pendings(schedule, wait)


def _outlives(dot: Operation, schedule: Schedule) -> bool:
    """True if the memory that a dot reads is that of the whole loop. Memory of other dots is used
    again behind them."""
    if schedule.loop is None:
        return False
    loads = schedule.copies.loads if schedule.copies is not None else []
    buffered = [load.alloc for load in loads if load.alloc]
    sides = [side for side in list(dot.operands)[:2] if is_mem_desc(side.type)]
    return all(_stays(side, schedule.loop, buffered) for side in sides)


def _count_pendings(schedule: Schedule, wait: DotWait) -> None:
    """Counts the dots under way behind a wait of its dot's iteration."""
    order = schedule.order
    between = order[order.index(wait.dot) + 1 : order.index(wait.op)]
    wait.pendings = _issued(between, _pendings(schedule))


def _pendings(schedule: Schedule) -> dict[Operation, int]:
    """How many dots each wait of a block leaves under way, as it is planned."""
    ops = (op for op in schedule.order if not isinstance(op, SyncPoint) and isa(op, WAIT))
    counts = {op: int(op.attributes["pendings"].value) for op in ops}
    return counts | {wait.op: wait.pendings for wait in schedule.waits}


def _ends(
    item: Item, takers: set[Operation], gone: Collection[Operation], outlives: bool = False
) -> bool:
    """True if a dot must have ended ahead of an item; `outlives`: its memory is nobody else's."""
    if isinstance(item, SyncPoint):
        return item is SyncPoint.COPIES
    ops = (op for op in (item, *all_ops(item)) if op not in gone)
    return any(op in takers or _stops(op, outlives) for op in ops)


def _stops(op: Operation, outlives: bool) -> bool:
    """True if an op may write memory that a dot under way reads, makes memory that may lie where
    that did, or counts on there being none under way: control flow is one."""
    if op.name.startswith("scf.") or isa(op, func.CallOp, TMA_LOAD):
        return True
    if has(op, AllocatesShared) or isa(op, TMA_STORE):
        return not outlives
    return any(is_mem_desc(op.operands[n].type) for n in SharedEffects.of(op).writes)


# In the next iteration


def carried_number(wait: DotWait, loop: Operation) -> int | None:
    """Which value that a loop carries a dot adds to and becomes; None where the loop has any other
    use for it, or for what was waited for, but in branches that wait themselves."""
    view, use = ForLoop(loop), carrying_use(wait)
    if wait.op.block != view.body or use is None or users(wait.op.operands[0]) != [wait.op]:
        return None
    number, acc = int(use.operand_number), wait.dot.operands[2]
    is_its_own = acc == view.iter_args[number] and users(acc) == [wait.dot]
    return number if is_its_own else None


def carrying_use(wait: DotWait) -> "ir.OpOperand | None":
    """By what its block's end takes what was waited for; None where something else does that does
    not wait in a block of its own."""
    end, found = end_of(wait.op.block), None
    for use in wait.op.results[0].uses:
        taker = use.owner.operation
        if taker == end and found is None:
            found = use
        elif not isa(taker, WAIT) or not _is_branch(parent_of(taker), wait.op.block):
            return None
    return found


def _is_branch(op: Operation, block: Block) -> bool:
    return isa(op, scf.IfOp) and op.block == block


def goes_on(wait: DotWait, loop: Operation, loads: list[Load]) -> bool:
    """True if a dot may go on until the next one has been issued."""
    buffered = [load.alloc for load in loads if load.alloc]
    if carried_number(wait, loop) is None:
        return False
    return all(_stays(side, loop, buffered) for side in list(wait.dot.operands)[:2])


def _stays(side: Value, loop: Operation, buffered: list[Operation]) -> bool:
    """True if an operand is memory that the next iteration leaves alone."""
    if not is_mem_desc(side.type):
        return False
    source = _memory_of(side)
    return is_invariant(side, loop) or (source is not None and source in buffered)


def _memory_of(side: Value) -> Operation | None:
    """The op that makes the memory of an operand."""
    op = defining_op(side)
    while isa(op, ttg.MemDescTransOp):
        op = defining_op(op.operands[0])
    return op


def go_on(schedule: Schedule, waits: list[DotWait]) -> None:
    """Leaves dots under way until the last of them has been issued in the next iteration. One wait
    there is for all. Of several dots it ends the first one of its own iteration, too: where a loop
    ends with all of them under way, ptxas issues each when the one before has ended (C7514)."""
    for wait in waits:
        wait.is_later, wait.is_implied, wait.pendings = True, wait is not waits[-1], len(waits)
    for wait in waits[-1:]:
        wait.pendings = max(1, _issued_around(schedule, wait) - (len(waits) > 1))


def last_asked_by(wait: DotWait, loop: Operation) -> Operation | None:
    """The first op behind a loop at which a dot that may go on there must have ended; None for the
    end of the block. Scratch memory may lie where the dot's operands did."""
    use = carrying_use(wait)
    assert use is not None, "as asked of each that is later"
    takers = set(users(loop.results[int(use.operand_number)]))
    ops = [view.operation for view in loop.block.operations]
    behind = ops[ops.index(loop) + 1 : -1]
    return next((op for op in behind if _ends(op, takers, ()) or _has_scratch(op)), None)


def _has_scratch(op: Operation) -> bool:
    return any(scratch_bytes(inner) for inner in (op, *all_ops(op)))


def defer(schedule: Schedule, waits: list[DotWait]) -> None:
    """Moves waits to the next iteration where the loop stores the operands of their dots, and a
    load stands ahead of the first store."""
    assert schedule.loop is not None
    buffered = schedule.copies.removed if schedule.copies is not None else set()
    later = []
    for wait in waits:
        stored, is_buffered = _operands(wait, schedule.loop, buffered)
        if not stored:
            continue
        begins = is_buffered and SyncPoint.COPIES in schedule.order  # else a producer's
        items: list[Item] = [*stored, *([SyncPoint.COPIES] if begins else [])]
        first = min(items, key=schedule.order.index)
        if any(isa(op, *LOADS) for op in schedule.ahead_of(first)):
            schedule.order.remove(wait.op)
            schedule.insert(wait.op, first)
            wait.is_later, wait.kept, wait.pendings = True, stored, 0
            later.append(wait)
    for wait in later:
        wait.pendings = _issued_around(schedule, wait)
    for wait in sorted(schedule.waits, key=lambda wait: schedule.order.index(wait.op)):
        if later and not wait.is_later:
            _count_pendings(schedule, wait)


def _operands(
    wait: DotWait, loop: Operation, buffered: Collection[Operation]
) -> tuple[list[Operation], bool]:
    """(the ops by which the loop stores operands of a dot that may go on until then, whether
    another operand has buffers); none where it may not."""
    stored: dict[Operation, None] = {}
    is_buffered = False
    for side in list(wait.dot.operands)[:2]:
        op = _memory_of(side)
        if not isa(op, ttg.LocalAllocOp) or carried_number(wait, loop) is None:
            return [], False
        if op in buffered:
            is_buffered = True
        elif not is_invariant(op.results[0], loop):
            stored[op] = None
    return list(stored), is_buffered


def _issued_around(schedule: Schedule, wait: DotWait) -> int:
    """How many dots are under way behind a wait in the next iteration: those behind its own dot
    and ahead of itself, or fewer, where another wait has left fewer."""
    order = schedule.order
    around = order[order.index(wait.dot) + 1 :] + order[: order.index(wait.op)]
    return _issued(around, _pendings(schedule))


def _issued(items: Iterable[Item], counts: Mapping[Operation, int]) -> int:
    """How many dots are under way behind items ahead of which none is."""
    issued = 0
    for item in items:
        if isinstance(item, SyncPoint):
            continue
        if isa(item, WAIT):
            issued = min(issued, counts[item])
        issued += isa(item, DOT)
    return issued
