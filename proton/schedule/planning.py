"""The schedules of a function's loops: which loads begin early and how deep, where dots have ended,
and which warps alternate. Everything is decided on the IR as it was; nothing here changes it."""

from dataclasses import dataclass, replace

from proton.analysis.alias import Roots
from proton.analysis.axis_info import AxisInfos
from proton.analysis.loop_iterations import iterations_of
from proton.analysis.reloads import stages_of
from proton.analysis.scratch import desc_bytes, scratch_bytes
from proton.analysis.tensor_maps import box_of_map
from proton.base.chips.chip import Chip
from proton.dialect import isa, ttg
from proton.dialect.mlir import Module, Operation, func, scf
from proton.dialect.regions import ForLoop, end_of
from proton.dialect.traits import AllocatesShared, Loop, Multiplies, has
from proton.dialect.ttg import num_warps
from proton.dialect.ttng_memory import barriers, one_barrier
from proton.dialect.walk import all_ops, ops_named, ops_of_each, users
from proton.schedule import dots
from proton.schedule.loads import (
    TMA_LOAD,
    TMA_STORE,
    Load,
    Tiles,
    candidates,
    consumer_of,
    is_innermost,
    is_live_in,
    slice_of,
    tiles_of,
    unwritten,
)
from proton.schedule.partitions import alternate
from proton.schedule.plan import Copies, Schedule, SyncPoint
from proton.schedule.roles import may_be_specialized, specialize
from proton.schedule.room import bytes_beside

_CONTROL_FLOW = scf.IfOp, func.CallOp  # registers of a dot under way stay where they are


@dataclass
class Planner:
    """Plans a function: loops of `stages` stages, but where one asks for others."""

    module: Module
    function: Operation
    stages: int
    chip: Chip
    may_have_roles: bool = True
    single_buffers: bool = True

    def schedules(self) -> list[Schedule]:
        """Those of loops whose loads begin early, and of blocks that wait for dots: loops last, as
        they are made anew."""
        loops, waits = ops_of_each(self.function, scf.ForOp, dots.WAIT)
        loops = [loop for loop in loops if is_innermost(loop)]
        bodies = {ForLoop(loop).body: loop for loop in loops}
        others = [wait.block for wait in waits if wait.block not in bodies]
        found = [Schedule.of(b, bodies.get(b)) for b in dict.fromkeys([*others, *bodies])]
        self._begin_early({s.loop: s for s in found if s.loop is not None})
        found = [schedule for schedule in found if schedule.copies is not None or waits]
        has_room = bool(waits) and self._most_bytes(found) <= self.chip.shared_bytes
        specialized = self._specialized(found)
        for number, schedule in enumerate(found):
            if schedule.loop not in specialized:
                _place_waits(schedule, has_room)
                if not specialized:  # else warps of the program wait for others, too
                    alternate(schedule, self.chip)
                if schedule.groups == 1 and (ahead := _begun_ahead(schedule)) is not None:
                    _place_waits(ahead, has_room)
                    found[number] = ahead
        return [specialized.get(schedule.loop, schedule) for schedule in found]

    def _specialized(self, schedules: list[Schedule]) -> dict[Operation | None, Schedule]:
        """The schedules of loops whose copies a warp of its own begins."""
        found: list[Schedule] = []
        if not self.may_have_roles or not self.chip.dot_per_cycle:
            return {}
        for schedule in schedules:
            if may_be_specialized(self.module, self.function, schedule):
                assert schedule.loop is not None
                own = Schedule.of(ForLoop(schedule.loop).body, schedule.loop)
                own.copies = schedule.copies
                # What is kept for that is counted when buffers are fitted.
                _place_waits(own, has_room=True, has_producer=True)
                found.append(own)
        if found:
            specialize(found, self.chip, num_warps(self.module))
        chosen = {schedule.loop: schedule for schedule in found if schedule.channels}
        return self._fitted([chosen.get(schedule.loop, schedule) for schedule in schedules])

    def _fitted(self, schedules: list[Schedule]) -> dict[Operation | None, Schedule]:
        """Loops of roles with as many buffers as there is room for; none where that is one."""
        chosen = {schedule.loop: schedule for schedule in schedules if schedule.channels}
        room = self.chip.shared_bytes
        room -= bytes_beside(self.module, self.function, schedules) if chosen else 0
        for schedule in chosen.values():
            assert schedule.copies is not None
            each = sum(desc_bytes(load.memory) for load in schedule.copies.loads)
            stages = min(schedule.copies.stages, room // each)
            if stages < 2:
                return {}
            schedule.copies = replace(schedule.copies, stages=stages)
        return chosen

    # Copies

    def _begin_early(self, bodies: dict[Operation, Schedule]) -> None:
        """Decides which loads of loops begin early, and how much."""
        if not bodies:
            return
        infos, roots = AxisInfos(self.module), Roots(self.function)
        for loop, schedule in bodies.items():
            stages, is_asked = stages_of(loop, self.stages)
            if stages > 1:
                may_run = unwritten(loop, roots)
                loads = candidates(loop, infos, may_run, is_asked)
                loads = [load for load in loads if users(load.op.results[0])]
                tiles = tiles_of(loop, loads, roots) if loads else None
                schedule.copies = self._copies(loop, loads, may_run, stages, tiles)

    def _copies(
        self,
        loop: Operation,
        loads: list[Load],
        may_run: set[Operation],
        stages: int,
        tiles: Tiles | None,
    ) -> Copies | None:
        """Buffers for loads, as many as shared memory has room for; None where that is one, unless
        dots read it, and none behind the iteration: at the end the next one's data may go there."""
        each = sum(desc_bytes(load.memory) for load in loads)
        if not each:
            return None
        replaced = [load.alloc for load in loads if load.alloc]
        others = sum(
            desc_bytes(op.results[0].type)
            for op in ops_named(self.function, ttg.LocalAllocOp, ttg.LocalReserveOp)
            if op not in replaced and is_live_in(op, loop, self.function)
        )
        slice_ = slice_of(loop, loads, may_run)
        assert slice_ is not None, "asked of each load"
        position = {view.operation: n for n, view in enumerate(ForLoop(loop).body.operations)}
        consumers = [consumer_of(load.alloc or load.op, position) for load in loads]

        def fitting(around: Operation) -> int:
            room = self.chip.shared_bytes - others - _bytes_beside(around, loads)
            if any(load.is_tma for load in loads):
                room -= desc_bytes(barriers(stages))
            return min(stages, room // each)

        most = fitting(loop)
        if tiles is not None:
            # Threads that copy compute addresses for it, which fewer stages are not worth.
            least = 2 if all(load.is_tma for load in loads) else most
            if (fewer := fitting(tiles.loop)) >= max(2, least):
                return Copies(loads, fewer, consumers, slice_, tiles)
        if most < 1:
            return None
        made = Copies(loads, most, consumers, slice_, None, _is_rest(loop))
        is_read_late = ops_named(loop, dots.WAIT) or end_of(ForLoop(loop).body) in consumers
        if most > 1:
            return made
        is_read = any(has(op, Multiplies) for op in all_ops(loop)) and not is_read_late
        may_be_single = self.single_buffers and is_read
        return replace(made, stages=2, is_tight=True) if may_be_single else None

    def _most_bytes(self, bodies: list[Schedule]) -> int:
        """The shared memory that the function takes if all that it allocates is in use at once."""
        ops = all_ops(self.function)
        removed = set[Operation]()
        planned = 0
        for schedule in bodies:
            if (copies := schedule.copies) is not None:
                removed |= copies.removed
                planned += copies.buffers * sum(desc_bytes(load.memory) for load in copies.loads)
        ops = [op for op in ops if op not in removed]
        planned += sum(map(_box_bytes, ops))
        planned += sum(scratch_bytes(op) for op in ops if has(op, AllocatesShared))
        return planned + max(scratch_bytes(op) for op in ops if not has(op, AllocatesShared))


def _bytes_beside(loop: Operation, loads: list[Load]) -> int:
    """Shared memory that is in use in a loop while buffers are: of blocks that TMA stores, or loads
    beside `loads`, with a barrier for each of these, and scratch memory, but for conversions of
    what buffers hold, which read these."""
    gone = {op for load in loads for op in (load.op, *load.conversions)}
    ops = [op for op in all_ops(loop) if op not in gone and not has(op, AllocatesShared)]
    scratch = max(map(scratch_bytes, ops))
    loaded = [op for op in ops_named(loop, TMA_LOAD) if op not in gone]
    boxes = sum(map(_box_bytes, [*loaded, *ops_named(loop, TMA_STORE)]))
    return scratch + boxes + len(loaded) * desc_bytes(one_barrier())


def _box_bytes(op: Operation) -> int:
    """The memory of a block that TMA copies; 0 for another op."""
    box = box_of_map(op.operands[0].type) if isa(op, TMA_LOAD, TMA_STORE) else None
    return 0 if box is None else box.bytes


def _is_rest(loop: Operation) -> bool:
    """True if another loop of its block comes first, at whatever depth: the rest of a range, which
    is often empty."""
    for view in loop.block.operations:
        if view.operation == loop:
            return False
        if any(has(op, Loop) for op in (view.operation, *all_ops(view.operation))):
            return True
    return False


def _begun_ahead(schedule: Schedule) -> Schedule | None:
    """A schedule in which each iteration has its own buffer, where there are no more than buffers:
    a loop over parts of a row has two or three. None where that is not so."""
    loop, copies = schedule.loop, schedule.copies
    if loop is None or copies is None or copies.tiles is not None:
        return None
    count = iterations_of(loop)
    if count is None or not 1 < count <= copies.buffers:
        return None
    ahead = Schedule.of(ForLoop(loop).body, loop)
    ahead.copies = replace(copies, stages=count, may_be_empty=False, are_ahead=True, is_tight=False)
    return ahead


# Dots


def _place_waits(schedule: Schedule, has_room: bool, has_producer: bool = False) -> None:
    """Decides where the dots of a block have ended, and with that where a loop's copies begin,
    unless a producer begins them."""
    schedule.waits = dots.waits_for_dots(schedule)
    loop, copies = schedule.loop, schedule.copies
    going_on = []
    if copies is not None and loop is not None:
        going_on = [wait for wait in schedule.waits if dots.goes_on(wait, loop, copies.loads)]
    if copies is not None and not has_producer:
        _place_copies(schedule, copies, bool(going_on))
    removed = set() if copies is None else copies.removed
    dots.go_on(schedule, going_on)
    for wait in reversed(schedule.waits):
        if wait not in going_on:
            dots.sink(schedule, wait, removed)
    if loop is not None and has_room and not ops_named(loop, *_CONTROL_FLOW):
        dots.defer(schedule, [wait for wait in schedule.waits if not wait.is_later])
    for wait in schedule.waits:
        if loop is not None and wait.is_later:
            wait.asked_by = dots.last_asked_by(wait, loop)


def _place_copies(schedule: Schedule, copies: Copies, are_dots_under_way: bool) -> None:
    """Copies write the buffer that the iteration before has read. So they begin as soon as this one
    has its own data, or, where dots of the one before are under way until then, at its end, or
    ahead of what a branch does with a dot, or where no other buffer is free. A dot of warp groups
    is issued first, and goes on meanwhile."""
    first = copies.consumer
    schedule.insert(SyncPoint.LANDED, first)
    if copies.are_ahead:
        return
    if copies.is_tight:
        schedule.order.append(SyncPoint.COPIES)
    elif are_dots_under_way:
        last = max(schedule.order.index(wait.op) for wait in schedule.waits)
        behind = (op for op in schedule.behind(schedule.order[last]) if isa(op, scf.IfOp))
        branch = next((op for op in behind if op not in copies.slice.ops), None)
        place = len(schedule.order) if branch is None else schedule.order.index(branch)
        schedule.order.insert(place, SyncPoint.COPIES)
    else:
        schedule.insert(SyncPoint.COPIES, first, behind=isa(first, dots.DOT))
