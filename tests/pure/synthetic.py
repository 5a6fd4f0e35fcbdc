"""Runs made of chosen records, so that tests of the viewer need no compiler.

The writer here is plain Python on purpose: one `struct.pack_into` per field, at offsets written
out by hand from docs/buffer-format.md, so that it shares nothing with the decoder under test.
"""

import copy
import functools
import random
import struct
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import Any, ParamSpec

import numpy as np

from proton.trace.model import (
    Chunk,
    Clock,
    GPUClock,
    HostSlice,
    Kernel,
    Launch,
    PayloadField,
    RawRun,
    Scope,
    Strategy,
)

ORIGIN_NS = 5_000_000_000
TICKS_ZERO = 7_000_000_000_000
TICKS_PER_NS = 3


@dataclass
class Record:
    """One record as a kernel would write it."""

    start: int
    end: int
    scope: int = 0
    kind: int = 0
    iteration: int | None = None
    payload: tuple[int | float, ...] = ()

    def at(self, start: int, end: int) -> "Record":
        """The same at another time: `dataclasses.replace` takes six times as long."""
        return Record(start, end, self.scope, self.kind, self.iteration, self.payload)


@dataclass
class Written:
    """What one program wrote: its records per unit, in order."""

    units: list[list[Record]]
    state: int = 2
    hardware: int = 0
    thread: int = 0
    table: list[int] = field(default_factory=list)  # in place of the true counts
    clock: tuple[int, int] | None = None  # at init and at the end; else of its records
    timer: tuple[int, int] = (0, 0)


LOW = 0xFFFFFFFF
RECORD_BYTES = {32: 16, 64: 24}


def pack_record(record: Record, slots: int, clock_bits: int = 64) -> bytes:
    """The bytes of one record."""
    iteration = 0xFFFFFFFF if record.iteration is None else record.iteration
    if clock_bits == 64:
        data = struct.pack("<QQ", record.start, record.end)
    else:
        data = struct.pack("<II", record.start & LOW, record.end & LOW)
    data += struct.pack("<II", record.kind << 28 | record.scope, iteration)
    for value in record.payload:
        data += struct.pack("<d" if isinstance(value, float) else "<q", value)
    return data.ljust(RECORD_BYTES[clock_bits] + 8 * slots, b"\0")


def segments_at(units: int) -> int:
    """Where the segments of a block begin."""
    return -(-(128 + 8 * units) // 16) * 16


def pack_launch(
    kernel: Kernel,
    grid: tuple[int, int, int],
    capacity: int,
    programs: list[Written],
    *,
    flush: bool = False,
    path: str = "",
    host: tuple[int, int] = (ORIGIN_NS, ORIGIN_NS + 1000),
    thread: int = 1,
    device: int = 0,
) -> Launch:
    """A launch of the kernel (number 0 of its run) whose buffer holds these programs."""
    slots, units, bits = kernel.payload_slots, kernel.units, kernel.clock_bits
    record_size = RECORD_BYTES[bits] + 8 * slots
    block = -(-(segments_at(units) + units * capacity * record_size) // 64) * 64
    buffer = bytearray(block * len(programs))
    chunks = []
    for number, program in enumerate(programs):
        base = number * block
        if program.state == 0:
            continue
        x, y = number % grid[0], number // grid[0] % grid[1]
        z = number // (grid[0] * grid[1])
        records = [r for unit in program.units for r in unit]
        first = min((r.start for r in records), default=TICKS_ZERO)
        last = max((r.end for r in records), default=first)
        clocks = program.clock or (first, last)
        struct.pack_into("<IHH", buffer, base, 0x4E545250, 3, program.state)
        struct.pack_into("<III", buffer, base + 8, x, y, z)
        struct.pack_into("<II", buffer, base + 20, program.hardware, program.thread)
        struct.pack_into("<III", buffer, base + 28, units, capacity, slots)
        struct.pack_into("<QQ", buffer, base + 40, clocks[0], program.timer[0])
        if program.state == 2:
            struct.pack_into("<QQ", buffer, base + 56, clocks[1], program.timer[1])
        struct.pack_into("<I", buffer, base + 72, bits)
        for unit, written in enumerate(program.units):
            count = program.table[unit] if program.table else len(written)
            struct.pack_into("<Q", buffer, base + 128 + 8 * unit, count)
            segment = base + segments_at(units) + unit * capacity * record_size
            flushed = len(written) // capacity * capacity if flush and capacity else 0
            for k, record in enumerate(written if capacity else []):
                at = segment + k % capacity * record_size
                buffer[at : at + record_size] = pack_record(record, slots, bits)
            for lo in range(0, flushed, max(capacity, 1)):
                data = b"".join(pack_record(r, slots, bits) for r in written[lo : lo + capacity])
                chunks.append(
                    Chunk(program=number, unit=unit, first=lo, data=np.frombuffer(data, np.uint8))
                )
    return Launch(
        kernel=0,
        grid=grid,
        capacity=capacity,
        host_start=host[0],
        host_end=host[1],
        buffer=np.frombuffer(bytes(buffer), np.uint8),
        chunks=chunks,
        path=path,
        thread=thread,
        device=device,
    )


def clock(**costs: float) -> Clock:
    """A clock of exactly three ticks a nanosecond, zero at the run's origin."""
    ns = np.array([0, 10_000, 1_000_000, 500_000_000], np.int64)
    return Clock(
        ticks=(ns * TICKS_PER_NS + TICKS_ZERO).astype(np.uint64), host_ns=ns + ORIGIN_NS, **costs
    )


def ticks(ns: int) -> int:
    """The tick at a time since the origin."""
    return TICKS_ZERO + ns * TICKS_PER_NS


def scopes(count: int, slots: int = 0, marks: int = 0) -> tuple[Scope, ...]:
    """So many slices and, behind them, marks; odd ones have payloads, every third is fused."""
    found = []
    for i in range(count + marks):
        fields = tuple(
            PayloadField(name=f"value{k}", kind="float" if k % 2 else "int")
            for k in range(slots if i % 2 else 0)
        )
        kind = "slice" if i < count else "mark"
        fused = i % 3 == 2 and kind == "slice"
        name = f"scope{i} + more" if fused else f"{kind} {i}"
        found.append(Scope(name=name, path=f"top/{name}", kind=kind, fused=fused, payload=fields))
    return tuple(found)


def kernel(
    strategy: Strategy = Strategy.CIRCULAR,
    *,
    name: str = "add",
    units: int = 1,
    unit_warps: int = 1,
    slots: int = 0,
    table: tuple[Scope, ...] | None = None,
    optimized_out: tuple[str, ...] = (),
    clock_bits: int = 64,
    target: str = "cpu",
) -> Kernel:
    """A kernel with three scopes unless told otherwise."""
    return Kernel(
        name=name,
        key=f"{name}-key",
        target=target,
        strategy=strategy,
        scopes=scopes(3, slots) if table is None else table,
        optimized_out=optimized_out,
        units=units,
        unit_warps=unit_warps,
        payload_slots=slots,
        clock_bits=clock_bits,
        options={"BLOCK": 128},
    )


def run(
    kernels: list[Kernel], launches: list[Launch], host: list[HostSlice] | None = None
) -> RawRun:
    """A run of these launches."""
    return RawRun(
        name="test run",
        origin_ns=ORIGIN_NS,
        origin_unix_ns=1_700_000_000_000_000_000,
        clock=clock(error_ns=5.0, slice_cost_ns=4.0, edge_cost_ns=2.0),
        kernels=kernels,
        launches=launches,
        host=host or [],
        machine={"cpu": "a model", "cores": 2},
    )


def nested_records(
    random_: random.Random, table: tuple[Scope, ...], count: int, begin_ns: int
) -> list[Record]:
    """About `count` properly nested records in the order in which a kernel writes them."""
    out: list[Record] = []
    now = ticks(begin_ns)

    def value(kind: str) -> int | float:
        if kind == "float":
            return random_.uniform(-1e9, 1e9)
        return random_.randint(-(1 << 40), 1 << 40)

    def step() -> int:
        nonlocal now
        now += random_.choice((0, 1, 2, 5, 30, 3000))
        return now

    def one(depth: int) -> None:
        number = random_.randrange(len(table))
        scope = table[number]
        start = step()
        while scope.kind == "slice" and depth < 4 and random_.random() < 0.4:
            one(depth + 1)
        end = step() if scope.kind == "slice" else start
        turn = random_.choice((None, 0, random_.randrange(1 << 20)))
        payload = tuple(value(entry.kind) for entry in scope.payload)
        out.append(Record(start, end, number, int(scope.kind == "mark"), turn, payload))

    while len(out) < count:
        one(0)
    return out


_P = ParamSpec("_P")
_KEPT = 64  # runs, of 50 to 200 KB


def remembered(make: Callable[_P, RawRun]) -> Callable[_P, RawRun]:
    """Makes a run once and gives copies of it, since tests change them: they ask for the same ones
    again and again, and to make one takes twenty times as long."""

    kept: dict[str, RawRun] = {}

    @functools.wraps(make)
    def again(*args: _P.args, **options: _P.kwargs) -> RawRun:
        given = repr((args, options))  # numbers and texts, alone or in sequences
        if given not in kept:
            if len(kept) == _KEPT:
                del kept[next(iter(kept))]
            kept[given] = make(*args, **options)
        return copy.deepcopy(kept[given])

    return again


@remembered
def random_run(seed: int, *, crossing: bool = False) -> RawRun:
    """A run with several kernels, launches, units, losses, killed programs and host scopes."""
    random_ = random.Random(seed)
    kernels = [
        kernel(name="add", table=scopes(4, 2, 2), slots=2),
        kernel(Strategy.FLUSH, name="matmul", units=3, table=scopes(3)),
        kernel(Strategy.COUNTING, name="count"),
    ]
    launches, host, now = [], [], 1000
    for turn in range(5):
        which = turn % 3
        grid = ((3, 2, 1), (2, 1, 2), (4, 1, 1))[which]
        capacity = (16, 8, 0)[which]
        programs = []
        for number in range(grid[0] * grid[1] * grid[2]):
            lists = [
                nested_records(random_, kernels[which].scopes, random_.randrange(40), now)
                for _ in range(kernels[which].units)
            ]
            if crossing and lists[0]:
                lists[0] += [
                    Record(lists[0][-1].end + 10 * i, lists[0][-1].end + 100 + 10 * i)
                    for i in range(random_.randrange(5))
                ]
            programs.append(Written(lists, thread=number % 2, hardware=number % 4))
        launch = pack_launch(
            kernels[which],
            grid,
            capacity,
            programs,
            flush=which == 1,
            path="train/step" if turn % 2 else "",
            host=(ORIGIN_NS + now, ORIGIN_NS + now + 50_000),
        )
        launch.kernel = which
        launches.append(launch)
        start, end = ORIGIN_NS + now - 20, ORIGIN_NS + now + 60_000
        if turn % 2:
            host.append(
                HostSlice(name="step", path="train/step", thread=1, start=start + 10, end=end)
            )
            host.append(
                HostSlice(
                    name="train",
                    path="train",
                    thread=1,
                    start=start,
                    end=end + 10,
                    payload={"turn": turn, "rate": 0.5},
                )
            )
        now += 200_000
    return run(kernels, launches, host)


@dataclass
class Chip:
    """A GPU whose clocks are known exactly: its SMs count from anywhere, at the rates one says."""

    random_: random.Random
    device: int = 0
    sms: int = 4
    resolution: int = 32
    timer_zero: int = 1_790_000_000_000_000_000  # at the run's origin
    drift: float = 0.0  # the timer gains so many ns a ns of the host
    zeros: list[int] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.zeros = [self.random_.randrange(1 << 50) for _ in range(self.sms)]

    def timer(self, ns: float) -> int:
        """The timer at a time since the origin."""
        return (self.timer_zero + round(ns * (1 + self.drift))) // self.resolution * self.resolution

    def cycles(self, sm: int, ns: float, rate: float) -> int:
        """The cycles of an SM at a time since the origin; `rate` is ns a cycle."""
        return self.zeros[sm] + round(ns / rate)

    def clock(self, *, pairs: tuple[int, ...] = (0, 2_000_000_000), **costs: float) -> GPUClock:
        """Its timer and the host's clock, read together at these times since the origin."""
        return GPUClock(
            device=self.device,
            name="NVIDIA H200",
            timer_ns=np.array([self.timer(ns) for ns in pairs], np.int64),
            host_ns=np.array([ORIGIN_NS + ns for ns in pairs], np.int64),
            **costs,
        )

    def program(
        self,
        sm: int,
        begin_ns: float,
        end_ns: float,
        rate: float,
        units: list[list[Record]],
        *,
        state: int = 2,
    ) -> Written:
        """A program on an SM; its records' clocks are ns since the origin."""
        return Written(
            [
                [r.at(self.cycles(sm, r.start, rate), self.cycles(sm, r.end, rate)) for r in unit]
                for unit in units
            ],
            state=state,
            hardware=sm,
            clock=(self.cycles(sm, begin_ns, rate), self.cycles(sm, end_ns, rate)),
            timer=(self.timer(begin_ns), self.timer(end_ns)),
        )


def in_ns(records: list[Record], begin_ns: int) -> list[Record]:
    """Records of `nested_records` with their clocks in ns since the origin."""
    zero = ticks(0)
    return [r.at(begin_ns + r.start - zero, begin_ns + r.end - zero) for r in records]


@remembered
def gpu_run(seed: int, *, mixed: bool = False, crossing: bool = False) -> RawRun:
    """A run of two GPUs with warps, losses, killed and missing programs; `mixed` adds the CPU."""
    random_ = random.Random(seed)
    raw = random_run(seed, crossing=crossing) if mixed else run([], [])
    chips = [Chip(random_, device=0), Chip(random_, device=3, resolution=1000, drift=2e-5)]
    raw.gpus = [
        chip.clock(error_ns=40.0, slice_cost_cycles=18.0, edge_cost_cycles=6.0) for chip in chips
    ]
    first = len(raw.kernels)
    raw.kernels = [
        *raw.kernels,
        kernel(name="attend", target="cuda:90", units=4, unit_warps=2, slots=1,
               table=scopes(4, 1, 1), clock_bits=32),
        kernel(Strategy.FLUSH, name="reduce", target="cuda:90", table=scopes(3)),
    ]  # fmt: skip
    now = 50_000
    for turn in range(5):
        chip, which = chips[turn == 3], turn % 2
        owner = raw.kernels[first + which]
        grid = ((3, 2, 1), (5, 1, 1))[which]
        rate = random_.uniform(0.5, 0.9)
        programs, last = [], now
        for number in range(grid[0] * grid[1]):
            begin = now + random_.randrange(2000)
            units = [
                in_ns(nested_records(random_, owner.scopes, random_.randrange(30), 0), begin)
                for _ in range(owner.units)
            ]
            if crossing and units[0]:
                end = units[0][-1].end
                units[0] += [Record(end + 10 * i, end + 100 + 10 * i) for i in range(4)]
            end = max([begin + 20_000, *(r.end for unit in units for r in unit)])
            state = random_.choice((0, 1, 2, 2, 2)) if turn == 2 else 2
            programs.append(chip.program(number % chip.sms, begin, end, rate, units, state=state))
            last = max(last, end)
        launch = pack_launch(
            owner,
            grid,
            8,
            programs,
            flush=which == 1,
            path="train/step" if turn % 2 else "",
            host=(ORIGIN_NS + now - 9000, ORIGIN_NS + now - 4000),
            thread=1 + turn % 2,
            device=chip.device,
        )
        launch.kernel = first + which
        raw.launches.append(launch)
        now = last if turn == 1 else last + 30_000
    return raw


def as_schema(document: dict[str, Any], schema: int) -> None:
    """Makes a run's document one of an older schema, which had no kind of a host slice, no work of
    a scope, no counters, no peer of a GPU, no visits, no code, no samples, or no overflows."""
    document["schema"] = schema
    if schema < 5:
        document["host"] = [entry[:6] for entry in document["host"]]
    for scope in (scope for entry in document["kernels"] for scope in entry["scopes"]):
        if schema < 6:
            del scope["work"], scope["queue"], scope["pendings"]
        if schema < 9:
            del scope["visit"], scope["piece"], scope["waits"], scope["ahead"]
    if schema < 7:
        del document["counters"]
    for entry in document["kernels"]:
        for samples in entry["pc_samples"] if schema < 12 else ():
            del samples["overflows"]
        if schema < 11:
            del entry["pc_samples"]
    if schema < 10:
        for entry in (document, *document["kernels"]):
            del entry["sources" if entry is document else "code"]
    for gpu in document["gpus"] if schema < 8 else ():
        del gpu["peer"], gpu["peer_error_ns"]


def pieces_run(seed: int, programs: int = 3, trips: int = 6, capacity: int = 64) -> RawRun:
    """A pipelined loop, run twice by each program: scores are issued an iteration ahead, also of
    one that never comes, waited for and finished, in three slices of which the second only waits;
    softmax is one slice."""
    random_ = random.Random(seed)
    scores = Scope(name="scores", path="scores", visit=1)
    table = (
        *(replace(scores, piece=piece, waits=piece == 1, ahead=piece == 0) for piece in range(3)),
        Scope(name="softmax", path="softmax"),
    )
    written, now = [], ticks(1000)

    def slice_(scope: int, iteration: int) -> Record:
        nonlocal now
        start = now + TICKS_PER_NS * random_.randint(1, 9)
        now = start + TICKS_PER_NS * random_.randint(5, 400)
        return Record(start, now, scope, 0, iteration)

    for _ in range(programs):
        records: list[Record] = []
        for _ in range(2):
            records.append(slice_(0, 0))
            for i in range(trips):
                records.append(slice_(0, i + 1))
                records += [slice_(1, i), slice_(3, i), slice_(2, i)]
        written.append(Written([records]))
    owner = kernel(table=table)
    return run([owner], [pack_launch(owner, (programs, 1, 1), capacity, written)])
