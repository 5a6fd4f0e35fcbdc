"""Records that no buffer held, put into one: what readers of other formats make runs of.

Clocks tick once a ns, on one axis for all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from proton.base.targets import is_on_gpu
from proton.trace import wire
from proton.trace.model import Clock, GPUClock, HostSlice, Kernel, Launch, RawRun, Scope
from proton.trace.records import NONE
from proton.trace.scope_path import ScopePath
from proton.trace.strategy import Strategy

ZERO_NS = 1_000_000_000  # the clock at the run's origin: 0 would mean that there is none
LONGEST_NS = 1 << 40
SCHEMA = wire.RecordSchema()
NO_GRID = (0, 0, 0)


@dataclass(frozen=True)
class PackedSlice:
    """A slice: ns since the run's origin, and its iteration, if it is in a loop."""

    name: str
    start: int
    end: int
    iteration: int = NONE


@dataclass
class PackedProgram:
    """A program: its SM, or thread on a CPU, and the slices of its units."""

    place: int
    start: int = LONGEST_NS
    end: int = 0
    units: dict[int, list[PackedSlice]] = field(default_factory=dict)

    @cached_property
    def nested(self) -> dict[int, list[tuple[PackedSlice, ScopePath]]]:
        """The slices of each unit with their paths, once all are there."""
        return {unit: _paths(work) for unit, work in self.units.items()}


def _paths(work: Sequence[PackedSlice]) -> list[tuple[PackedSlice, ScopePath]]:
    """The slices of a unit, in the order in which they end, with their paths by what lies in
    what."""
    found, opened = [], list[tuple[PackedSlice, ScopePath]]()
    for each in sorted(work, key=lambda w: (w.start, -w.end)):
        while opened and opened[-1][0].end < each.end:
            opened.pop()
        path = ScopePath.of((opened[-1][1] if opened else "", each.name))
        opened.append((each, path))
        found.append((each, path))
    return sorted(found, key=lambda item: (item[0].end, -item[0].start))


@dataclass
class PackedLaunch:
    """A launch. One without programs has its times alone, and the grid NO_GRID where that is not
    known; of one with them they are the programs' where `start` is not given."""

    kernel: str
    target: str
    start: int = LONGEST_NS
    end: int = 0
    path: str = ""
    grid: tuple[int, int, int] = (1, 1, 1)
    signature: str = ""
    thread: int = 0
    programs: dict[int, PackedProgram] = field(default_factory=dict)


def packed_run(
    name: str,
    launches: Sequence[PackedLaunch],
    host: Sequence[HostSlice],
    unix_ns: int,
    machine: dict[str, str],
) -> RawRun:
    """A run of these launches, given ns since its origin."""
    owners: dict[tuple[str, str, str], list[PackedLaunch]] = {}
    for launch in launches:
        owners.setdefault((launch.kernel, launch.signature, launch.target), []).append(launch)
    kernels, packed = [], []
    for number, ((kernel, signature, target), own) in enumerate(owners.items()):
        nested = [unit for x in own for p in x.programs.values() for unit in p.nested.values()]
        scopes = tuple(dict.fromkeys(path for unit in nested for _, path in unit))
        units = 1 + max((u for x in own for p in x.programs.values() for u in p.units), default=0)
        made = Kernel(
            name=kernel, key=f"{kernel} {signature}", target=target,
            strategy=Strategy.CIRCULAR if scopes else None, units=units,
            scopes=tuple(Scope(name=path.name, path=path) for path in scopes),
            options={"signature": signature} if signature else {},
        )  # fmt: skip
        kernels.append(made)
        packed += [replace(pack(made, launch), kernel=number) for launch in own]
    axis = np.array([0, LONGEST_NS], np.int64)
    clock = Clock(ticks=axis.astype(np.uint64), host_ns=axis)
    gpu = GPUClock(device=0, name="", timer_ns=axis, host_ns=axis)
    return RawRun(
        name=name, origin_ns=ZERO_NS, origin_unix_ns=unix_ns, clock=clock,
        gpus=[gpu] if any(kernel.on_gpu for kernel in kernels) else [],
        kernels=kernels, launches=sorted(packed, key=lambda launch: launch.host_start),
        host=[replace(s, start=s.start + ZERO_NS, end=s.end + ZERO_NS) for s in host],
        machine=dict(machine),
    )  # fmt: skip


def pack(kernel: Kernel, launch: PackedLaunch) -> Launch:
    """A launch with its buffer."""
    programs = launch.programs
    grid = launch.grid
    if grid == (1, 1, 1):
        grid = (1 + max(programs, default=0), 1, 1)
    count = grid[0] * grid[1] * grid[2]
    capacity = max((len(w) for p in programs.values() for w in p.units.values()), default=1)
    start = min([launch.start, *(_begin(p) for p in programs.values())])
    end = max([launch.end, *(_end(p) for p in programs.values())])
    buffer = np.zeros(0, np.uint8)
    if kernel.strategy is None:
        capacity = 0
    else:
        block = kernel.block(capacity)
        buffer = np.zeros(count * block.bytes, np.uint8)
        numbers = {scope.path: number for number, scope in enumerate(kernel.scopes)}
        for number, program in programs.items():
            _write(buffer, block, number, grid, program, numbers, is_on_gpu(kernel.target))
    return Launch(
        kernel=0, grid=grid, capacity=capacity, buffer=buffer, path=launch.path,
        thread=launch.thread,
        host_start=start + ZERO_NS, host_end=max(start, end) + ZERO_NS,
    )  # fmt: skip


def _begin(program: PackedProgram) -> int:
    return min([program.start, *(w.start for unit in program.units.values() for w in unit)])


def _end(program: PackedProgram) -> int:
    return max([program.end, *(w.end for unit in program.units.values() for w in unit)])


def _write(
    buffer: np.ndarray,
    block: wire.Block,
    number: int,
    grid: tuple[int, int, int],
    program: PackedProgram,
    numbers: dict[str, int],
    on_gpu: bool,
) -> None:
    """A program's block."""
    header = block.headers(buffer)[number : number + 1]
    times = _begin(program) + ZERO_NS, _end(program) + ZERO_NS
    values = {
        "magic": wire.MAGIC, "version": wire.VERSION, "state": wire.ProgramState.FINISHED,
        "program_x": number % grid[0], "program_y": number // grid[0] % grid[1],
        "program_z": number // (grid[0] * grid[1]), "units": block.units,
        "hardware": program.place if on_gpu else wire.NO_HARDWARE_ID,
        "thread": 0 if on_gpu else program.place, "capacity": block.capacity,
        "payload_slots": 0, "clock_start": times[0], "clock_end": times[1],
        "timer_start": times[0], "timer_end": times[1], "clock_bits": SCHEMA.clock_bits,
    }  # fmt: skip
    for name, value in values.items():
        header[name] = value
    for unit, found in program.nested.items():
        block.tables(buffer)[number, unit] = len(found)
        first = number * block.bytes + block.segment(unit)
        rows = buffer[first : first + len(found) * SCHEMA.bytes].view(SCHEMA.dtype)
        rows["start"] = [each.start + ZERO_NS for each, _ in found]
        rows["end"] = [each.end + ZERO_NS for each, _ in found]
        rows["tag"] = [wire.tag(wire.RecordKind.SLICE, numbers[path]) for _, path in found]
        rows["iteration"] = [
            wire.NO_ITERATION if each.iteration == NONE else each.iteration for each, _ in found
        ]
