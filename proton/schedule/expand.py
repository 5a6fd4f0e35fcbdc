"""The IR of a function's schedules: nothing is decided here. Of what copies become: specialized.py
where a producer begins them, else pipelined_loop.py, and pipelined_tiles.py where they go on with
the next tile."""

from proton.dialect.mlir import Module, Operation
from proton.dialect.ttg import num_warps
from proton.schedule.in_order import in_order, wait_behind
from proton.schedule.pipelined_loop import PipelinedLoop
from proton.schedule.pipelined_tiles import PipelinedTiles
from proton.schedule.plan import Copies, Item, Schedule
from proton.schedule.skip_empty_loop import skip_empty
from proton.schedule.specialized import SpecializedLoops


def expand(module: Module, function: Operation, schedules: list[Schedule]) -> None:
    """Changes the blocks of a function into what their schedules say."""
    for schedule in schedules:
        _enter(schedule)
        wait_behind(schedule)
    for schedule in schedules:
        if not schedule.channels:
            _expand(schedule)
    if specialized := [schedule for schedule in schedules if schedule.channels]:
        SpecializedLoops(function, specialized, num_warps(module)).run()


def _enter(schedule: Schedule) -> None:
    """Puts a loop that may be empty behind a branch."""
    copies = schedule.copies
    if copies is None or not copies.may_be_empty or schedule.channels:
        return
    assert schedule.loop is not None
    skip_empty(schedule.loop)
    for wait in schedule.waits:
        wait.asked_by = None  # it is behind the branch


def _expand(schedule: Schedule) -> None:
    loop, begins = schedule.loop, dict[Item, Operation]()
    place_waits = in_order(schedule)
    if schedule.copies is not None:
        pipelined = _pipelined(schedule, schedule.copies)
        pipelined.run()
        loop, begins = pipelined.loop, pipelined.begins
    place_waits(loop, begins)
    if schedule.copies is not None:
        schedule.copies.slice.erase_unused_loads()


def _pipelined(schedule: Schedule, copies: Copies) -> PipelinedLoop:
    if copies.tiles is not None:
        return PipelinedTiles(schedule, copies, copies.tiles)
    return PipelinedLoop(schedule, copies)
