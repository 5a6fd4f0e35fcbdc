"""Warp groups that alternate at the tensor cores.

Where a loop computes something between two dots, warp groups that meet in each iteration compute it
at the same time: tensor cores wait for all of them. So a group holds them for its dots, and while
it computes what lies between two of them, another group does. Of attention:

    group 0    values i - 1, scores i │ weights i                 │ values i, scores i + 1 │ ...
    group 1    weights i - 1          │ values i - 1, scores i    │ weights i              │ ...

    scf.for {                              scf.for {
      wait for copies                        wait for copies, of all groups
      %s = ttng.warp_group_dot               %s = ttng.warp_group_dot    scores
      copies of iteration i + d              release the tensor cores
      ttng.warp_group_dot_wait %s      =>    ttng.warp_group_dot_wait %s
      weights                                weights
      %o = ttng.warp_group_dot               acquire the tensor cores
      ttng.warp_group_dot_wait %o            %o = ttng.warp_group_dot    values
    }                                        copies of iteration i + d
                                             ttng.warp_group_dot_wait %o
                                           }

No barrier of all warps is left in the loop, so a group may be half an iteration ahead. What one
group reads the others have copied a part of: an mbarrier for each buffer says that all copies have
landed. Copies of iteration i + d write the buffer of iteration i - 1. They begin when the
group has acquired the tensor cores again: each other group has then released them, behind a dot of
iteration i at the earliest, and had waited for the dots of iteration i - 1 before.

Source of the order: Shah et al., "FlashAttention-3", section 3.1 (ping-pong scheduling).
"""

import itertools

from proton.analysis.cost import dot_cycles, special_cycles
from proton.analysis.scratch import scratch_bytes
from proton.base.chips.chip import Chip
from proton.dialect import isa
from proton.dialect.mlir import Operation
from proton.dialect.regions import end_of
from proton.dialect.traits import (
    Accesses,
    AllocatesShared,
    Barrier,
    Orders,
    Pure,
    SharedEffects,
    has,
)
from proton.dialect.ttg import is_mem_desc, is_tensor, layout_of
from proton.dialect.walk import all_ops, defining_op, ops_of_each, users
from proton.layout.tensor_cores import GROUP_WARPS
from proton.schedule.dots import DOT, TMA, WAIT
from proton.schedule.plan import Schedule, SyncPoint

GROUPS = 2  # with four, or with one of more warps, nothing was measured
LEAST_STAGES = 3  # copies of two would be waited for as soon as another group has begun them
# Of the cycles of a loop's dots, those of the work between two of them. At 2 a loop took 1.05 of
# the time, at 0.5 and 1 loops took 0.80 to 1.07, two of 18 above 1.03 (H200, 1af8bfe7 and
# f73f5201, benchmarks/gpu_alternating.py). Between 0 and 0.5 nothing was measured.
LEAST_WORK, MOST_WORK = 1 / 8, 1.5


def alternate(schedule: Schedule, chip: Chip) -> None:
    """Has the warp groups of a loop alternate, where they can and where it pays."""
    if schedule.copies is None or schedule.copies.tiles is not None or not chip.dot_per_cycle:
        return
    if schedule.copies.stages < LEAST_STAGES or not _are_apart(schedule):
        return
    found = longest_work(schedule, chip, LEAST_WORK, MOST_WORK)
    if found is None:
        return
    wait, dot = found
    _free_tensor_cores(schedule, wait)
    last = next(op for op in reversed(schedule.ahead_of(wait)) if isa(op, DOT))
    schedule.order.remove(SyncPoint.COPIES)
    schedule.insert(SyncPoint.RELEASE, last, behind=True)
    if schedule.copies.by_threads:
        schedule.insert(SyncPoint.TELL, wait, behind=True)
    schedule.insert(SyncPoint.ACQUIRE, dot)
    schedule.insert(SyncPoint.COPIES, dot, behind=True)
    schedule.groups = GROUPS


def _free_tensor_cores(schedule: Schedule, wait: Operation) -> None:
    """Moves computations that neither the dots nor the copies take between the last dot and the
    wait for it: they run beside the dot, and while another group holds the tensor cores."""
    assert schedule.copies is not None
    last = next(op for op in reversed(schedule.ahead_of(wait)) if isa(op, DOT))
    fixed = {*schedule.copies.slice.ops, *schedule.copies.removed}
    later, early = {*schedule.behind(last), end_of(last.block)}, list[Operation]()
    for op in reversed(schedule.ahead_of(last)):
        is_free = op not in fixed and _is_computation(op)
        if is_free and all(later.issuperset(users(result)) for result in op.results):
            early.append(op)
            later.add(op)
    dependent, late = {wait}, list[Operation]()
    for op in itertools.takewhile(lambda op: not isa(op, DOT), schedule.behind(wait)):
        takes = any(defining_op(value) in dependent for value in op.operands)
        if takes or op in fixed or not _is_computation(op):
            dependent.add(op)
        else:
            late.append(op)
    for op in (*early, *late):
        schedule.order.remove(op)
        schedule.moved.add(op)
    place = schedule.order.index(last) + 1
    schedule.order[place:place] = reversed(early)
    place = schedule.order.index(wait)
    schedule.order[place:place] = late


def _is_computation(op: Operation) -> bool:
    """True if an op computes a tensor, and does nothing else."""
    return has(op, Pure) and not op.regions and bool(op.results) and is_tensor(op.results[0].type)


def longest_work(
    schedule: Schedule, chip: Chip, lowest: float, highest: float
) -> tuple[Operation, Operation] | None:
    """The wait and the dot that the most work lies between, if that takes so much of the cycles of
    a loop's dots."""
    most, found, wait = 0.0, None, None
    cycles, dots = 0.0, 0.0
    for op in schedule.ops:
        if isa(op, WAIT):
            wait, cycles = op, 0.0
        elif isa(op, DOT):
            if wait is not None and cycles > most:
                most, found = cycles, (wait, op)
            wait, dots = None, dots + dot_cycles(op, chip)
        else:
            cycles += sum(special_cycles(inner, chip) for inner in (op, *all_ops(op)))
    return found if lowest * dots <= most <= highest * dots else None


def _are_apart(schedule: Schedule) -> bool:
    """True if warps of a loop wait for other groups only at copies and for tensor cores."""
    assert schedule.loop is not None
    assert schedule.copies is not None
    if not all(load.alloc for load in schedule.copies.loads):
        return False  # threads read what others have copied
    dots, waits = ops_of_each(schedule.loop, DOT, WAIT)
    planned = {wait.op for wait in schedule.waits if not wait.is_later and not wait.pendings}
    if set(waits) != planned or not all(op in schedule.order for op in dots):
        return False
    if any(layout_of(op.results[0].type).in_size("warp") != GROUPS * GROUP_WARPS for op in dots):
        return False
    gone = schedule.copies.removed | set(dots) | set(waits)
    return all(_stays_apart(op) for op in all_ops(schedule.loop) if op not in gone)


def _stays_apart(op: Operation) -> bool:
    """True if no warp waits for another at an op, and it has no part in shared memory."""
    if has(op, Barrier, AllocatesShared) or scratch_bytes(op) or isa(op, *TMA):
        return False
    if has(op, Orders) and not has(op, Accesses):
        return False  # a call, or assembly that may be a barrier
    effects = SharedEffects.of(op)
    return not any(is_mem_desc(op.operands[n].type) for n in (*effects.reads, *effects.writes))
