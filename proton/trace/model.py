"""What one profiled run left behind, before anyone decodes it: plain data, no IR, no pandas.

The runtime fills these; `proton.trace.records` decodes them, `proton.viewer` shows them.
"""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np

from proton.base.targets import is_on_gpu
from proton.trace.strategy import Strategy as Strategy
from proton.trace.wire import Block, RecordSchema

# Names in RawRun.machine: how many of the dropped launches were made by forked processes, still ran
# when the session ended, or left records that nothing could fetch after an error of their device.
FORKED, UNFINISHED = "launches in forked processes", "launches that ran on"
UNFETCHED = "launches ahead of an error"
ACTIVITIES = "activities that are missing"  # why nothing but own launches is there
NO_OPERATORS = "operators that are missing"  # why none of torch are there
LOST_OPERATORS = "operators lost"  # how many of torch there was no room for
OPERATOR = "operator"  # the kind of slice of a call of an operator
ROLES = "roles"  # in Kernel.options: what the author calls each unit, if groups of warps differ
TUNED_NS = "tuned_ns"  # in Kernel.options: what a launch took while it was tuned, unrecorded
# In Kernel.options: what the session took of the host right before and behind a launch of the CPU,
# the median and the mean.
RECORDER_NS, RECORDER_MEAN_NS = "recorder_ns", "recorder_mean_ns"
COMMIT = "commit"  # of the repository that the program is in
CLOCK_STEP = "clock step, ns"  # of the CPU's, where it goes in steps of more than some ns
BOOT = "boot"  # an id that processes of one boot of one machine share
WALL_CLOCKED = "on the axis by wall clocks"  # the processes of a merged run whose error is unknown
# The work of queues whose issues are arrivals of threads: at a barrier of their program, or at
# memory that other programs of the launch look at.
BARRIERS, LOCKS = "barriers", "locks"
UNCALLED = -1  # the thread of a launch whose call nobody saw
ONE = -1  # `pendings` of a wait that retires one piece of work


@dataclass(frozen=True, kw_only=True)
class PayloadField:
    """One named value of a record; `kind` is "int" (i64) or "float" (f64)."""

    name: str
    kind: str


@dataclass(frozen=True, kw_only=True)
class Scope:
    """One entry of a kernel's scope table; a record's tag holds its index.

    `path` is a `ScopePath`'s text. A fused scope carries the names of the scopes whose work one
    pass of the code does, in order.

    One that the compiler placed says what `work` it is of, a word of the option `auto`. Of
    asynchronous work there are an "issue" and a "wait" with the name of their queue; a wait leaves
    the newest `pendings` pieces of work under way, or ONE: all but the oldest. Of the work
    "barriers" an issue is an arrival at a barrier that others wait for, of "locks" a write to
    memory that other programs look at.

    Where one run of a scope may be several slices, each is a `piece` of a visit: those of one
    `visit`, which counts from 1, belong together, in order of their pieces
    (proton/trace/visits.py). A piece that `waits` is nothing but waits for asynchronous work, one
    that is `ahead` begins work for an iteration that is still to come.
    """

    name: str
    path: str
    kind: str = "slice"  # "slice", "mark", "event", "issue" or "wait"
    fused: bool = False
    payload: tuple[PayloadField, ...] = ()
    file: str = ""
    line: int = 0
    work: str = ""
    queue: str = ""
    pendings: int = 0
    visit: int = 0  # 0: each slice is a run of the scope
    piece: int = 0
    waits: bool = False
    ahead: bool = False

    @property
    def is_meeting(self) -> bool:
        """Whether the warps of a group wait for each other here."""
        return self.work == BARRIERS and (self.kind == "issue" or not self.queue)


@dataclass(frozen=True, kw_only=True)
class PCSamples:
    """Where warps of a kernel were in launches without records, and what they waited for (option
    `pc_sampling`): each SM was sampled once in so many `cycles`.

    A row of `rows` is the number of a function, the offset of an instruction in it, in bytes, the
    number of a reason, and how many samples say so. `cubin` is the code in base 64, which is not
    that of launches with records. `dropped` samples the hardware had no room for. In `overflows` of
    the launches its buffer was full: what these lost is not counted.
    """

    cycles: int
    launches: int
    dropped: int
    overflows: int
    functions: tuple[str, ...]
    reasons: tuple[str, ...]
    rows: tuple[tuple[int, int, int, int], ...]
    cubin: str

    @staticmethod
    def of(
        counts: Mapping[tuple[str, int, str], int],
        *,
        cycles: int,
        launches: int,
        dropped: int,
        overflows: int,
        cubin: str,
    ) -> "PCSamples":
        """Of how many samples there are by function, offset and reason; none is no row."""
        counts = {key: samples for key, samples in counts.items() if samples}
        functions = tuple(sorted({function for function, _, _ in counts}))
        reasons = tuple(sorted({reason for _, _, reason in counts}))
        return PCSamples(
            cycles=cycles,
            launches=launches,
            dropped=dropped,
            overflows=overflows,
            functions=functions,
            reasons=reasons,
            rows=tuple(
                (functions.index(function), offset, reasons.index(reason), samples)
                for (function, offset, reason), samples in sorted(counts.items())
            ),
            cubin=cubin,
        )

    @property
    def counts(self) -> Counter[tuple[str, int, str]]:
        """How many samples there are by function, offset and reason."""
        names, reasons = self.functions, self.reasons
        return Counter({(names[f], offset, reasons[r]): n for f, offset, r, n in self.rows})

    def __add__(self, other: "PCSamples") -> "PCSamples":
        """Both, of the same code."""
        return PCSamples.of(
            self.counts + other.counts,
            cycles=self.cycles,
            launches=self.launches + other.launches,
            dropped=self.dropped + other.dropped,
            overflows=self.overflows + other.overflows,
            cubin=self.cubin,
        )


@dataclass(frozen=True, kw_only=True)
class Kernel:
    """A compiled kernel: what is needed to read the records of its launches.

    One without scopes has no strategy; its launches leave no buffer, only their times.
    """

    name: str
    key: str  # the cache key of the compiled kernel
    target: str  # "cpu", "cuda:90"
    strategy: Strategy | None
    scopes: tuple[Scope, ...]
    optimized_out: tuple[str, ...] = ()  # paths of scopes in which optimisation left no work
    units: int = 1  # of a program: warps of a GPU's; on the CPU its partitions
    unit_warps: int = 1  # of a unit on a GPU: the first of them records
    payload_slots: int = 0
    clock_bits: int = 64  # of the clocks in records: 32 or 64
    options: dict[str, object] = field(default_factory=dict)
    # Levels of its code, by name, those of MLIR with locations; "cubin" in base 64.
    code: dict[str, str] = field(default_factory=dict)
    pc_samples: PCSamples | None = None

    @property
    def schema(self) -> RecordSchema:
        """Of its records."""
        return RecordSchema(self.payload_slots, self.clock_bits)

    def block(self, capacity: int) -> Block:
        """The layout of a program's block in a launch with this capacity."""
        return Block(self.units, capacity, self.schema)

    @property
    def roles(self) -> tuple[str, ...]:
        """What the author calls each unit; empty where all do the same."""
        found = self.options.get(ROLES)
        names = found if isinstance(found, list) and len(found) == self.units else ()
        return tuple(map(str, names))

    @property
    def strategy_name(self) -> str:
        """What a reader sees of the strategy."""
        return "none" if self.strategy is None else self.strategy.value

    @property
    def on_gpu(self) -> bool:
        """Whether a GPU runs the kernel's programs."""
        return is_on_gpu(self.target)


@dataclass(frozen=True, kw_only=True)
class Chunk:
    """Records that the flush strategy moved out of a full segment, oldest first.

    `data` is uint8, a whole number of records; `first` the number of its first record.
    """

    program: int
    unit: int
    first: int
    data: np.ndarray


@dataclass(kw_only=True)
class Launch:
    """One launch and its profile buffer (uint8, grid[0] * grid[1] * grid[2] blocks).

    `host_start` and `host_end` are `time.perf_counter_ns()` around the launch, which on a GPU only
    begins it; `path` joins the host scopes that were open, "" for none. `thread` is the host
    thread's ident, `device` the GPU's number. UNCALLED is the thread of a launch whose call nobody
    saw: then these times are the kernel's own.
    """

    kernel: int  # index into Run.kernels
    grid: tuple[int, int, int]
    capacity: int
    host_start: int
    host_end: int
    buffer: np.ndarray
    chunks: list[Chunk] = field(default_factory=list)
    path: str = ""
    thread: int = 0
    device: int = 0

    @property
    def is_called(self) -> bool:
        """Whether its call on the host is known."""
        return self.thread != UNCALLED


@dataclass(frozen=True, kw_only=True)
class HostSlice:
    """A host scope: `time.perf_counter_ns()` at both ends, nesting by `path`; or, as `kind` says,
    the compilation of a kernel, a call of an operator of torch, or what CUPTI saw on a GPU: then
    `device` is that, and `thread` the stream. Such a thing was asked for by the host thread
    `issuer`, in a call around the moment `issued`, where that is known."""

    name: str
    path: str
    thread: int
    start: int
    end: int
    payload: dict[str, int | float] = field(default_factory=dict)
    kind: str = "host"  # or "compile", OPERATOR, "kernel", "memcpy", "memset"
    device: int = -1  # the GPU's number; -1 for the host
    issuer: int = 0
    issued: int = 0  # perf_counter_ns; 0 where it is not known


@dataclass(frozen=True, kw_only=True)
class Clock:
    """How ticks become ns: pairs (ticks, perf_counter_ns) taken around the run, oldest first.

    ns = a * ticks + b is the least-squares line through the pairs; `error_ns` the uncertainty
    of one pair (half the time the host took to read both). `slice_cost_ns` is what recording
    one slice adds to the slice that encloses it, and `edge_cost_ns` what it adds to its own
    duration, both measured in this run with scopes that hold nothing.
    """

    ticks: np.ndarray  # uint64
    host_ns: np.ndarray  # int64
    error_ns: float = 0.0
    slice_cost_ns: float = 0.0
    edge_cost_ns: float = 0.0


NO_PEER = -1


@dataclass(frozen=True, kw_only=True)
class GPUClock:
    """How a GPU's global timer becomes host time: pairs (timer, perf_counter_ns) taken around the
    run, oldest first; `error_ns` is the uncertainty of one pair.

    How cycles of an SM become the timer's ns is in the headers that each program leaves.
    `slice_cost_cycles` and `edge_cost_cycles` are as in Clock, in cycles of an SM.

    `peer` is the GPU of the same process by whose clock the pairs are, or NO_PEER: against that one
    times are wrong by up to `peer_error_ns`, whatever they are against the host.
    """

    device: int
    name: str
    timer_ns: np.ndarray  # int64
    host_ns: np.ndarray  # int64
    error_ns: float = 0.0
    slice_cost_cycles: float = 0.0
    edge_cost_cycles: float = 0.0
    peer: int = NO_PEER
    peer_error_ns: float = 0.0


@dataclass(frozen=True, kw_only=True)
class CounterSamples:
    """What counters of a GPU's hardware said: a row a sample, a column a counter.

    Samples are in order of time, `perf_counter_ns` at both ends, each wrong by up to `error_ns`.
    `names` are words of the option `counters`, `metrics` what CUPTI calls them.
    """

    device: int
    start_ns: np.ndarray  # int64
    end_ns: np.ndarray
    names: tuple[str, ...]
    metrics: tuple[str, ...]
    units: tuple[str, ...]
    values: np.ndarray  # float64, (samples, names)
    error_ns: float = 0.0


@dataclass(kw_only=True)
class RawRun:
    """Everything a session recorded. `origin_ns` (perf_counter_ns) is the run's time zero;
    `origin_unix_ns` is the wall clock at that moment."""

    name: str
    origin_ns: int
    origin_unix_ns: int
    clock: Clock
    gpus: list[GPUClock] = field(default_factory=list)
    kernels: list[Kernel] = field(default_factory=list)
    launches: list[Launch] = field(default_factory=list)
    host: list[HostSlice] = field(default_factory=list)
    counters: list[CounterSamples] = field(default_factory=list)
    dropped_launches: int = 0  # launches that ran but left no records
    machine: dict[str, object] = field(default_factory=dict)  # cpu, python, versions: for display
    sources: dict[str, str] = field(default_factory=dict)  # text of the files that scopes name
