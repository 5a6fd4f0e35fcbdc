"""What a session adds to launches on a GPU: on the host, on the stream, and in CUDA graphs.

    python benchmarks/gpu_profiling.py --only host stream graph

Host times are of launches in a row; stream times are of a profiled launch and a small kernel behind
it, again and again. The kernels are one of three scopes that does next to nothing, products of fp16
matrices by pointers and by tensor descriptors, and attention. What the session adds on a stream is
the difference between its launches and those of the same instrumented kernel whose records nobody
keeps.
"""

import contextlib
import itertools
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import scoped_kernels
import torch
from gpu_subjects import Launch, attention, product
from rich.table import Table

import proton
import proton.language as tl
from kernels.attention import attention_kernel
from proton.runtime.nvidia.buffers import RingBuffer
from proton.runtime.nvidia.graph import CapturedLaunch
from proton.tools.tensor_descriptor import TensorDescriptor

STRATEGIES = ("circular", "flush")
ROW = 40  # launches in a row
PAIRS = 10  # of launches in a graph
REPLAYS = 5
# Records a unit has room for: all launches that a table makes one after the other have to fit into
# the 2 GiB of a session, as nothing is fetched between them. Without a loop a kernel takes what it
# needs by itself; 64 would be 33 MiB for each launch of three scopes by 4096 programs.
CAPACITY, LOOP_CAPACITY, GRAPH_CAPACITY = 0, 64, 8
HOLD_NS = 8_000_000  # until all is queued


@proton.jit
def three_scopes(x_ptr):
    place = tl.program_id(0) * 256 + tl.arange(0, 256)
    with proton.scope("load"):
        x = tl.load(x_ptr + place)
    with proton.scope("compute"):
        x = tl.exp(x) + tl.sum(x, 0)
    with proton.scope("store"):
        tl.store(x_ptr + place, x * 0.001)


@proton.jit
def after(out_ptr):
    tl.store(out_ptr, tl.load(out_ptr) + 1)


@proton.jit
def hold(out_ptr, ns):
    begin = tl.extra.cuda.globaltimer()
    while tl.extra.cuda.globaltimer() - begin < ns:
        tl.store(out_ptr, begin)


def subjects() -> dict[str, Launch]:
    """The kernels, each with a small and a large grid."""
    x = torch.rand(4096 * 256, device="cuda")
    found: dict[str, Launch] = {}
    for programs in (132, 4096):
        found[f"three scopes, {programs}"] = _simple(x, programs)
    for name, size in itertools.product(("pointers", "descriptors"), (1024, 2048)):
        launch = product(scoped_kernels, TensorDescriptor, name, size, (128, 128))
        found[f"product by {name}, {(size // 128) ** 2}"] = launch
    for heads in (4, 32):
        launch = attention(
            attention_kernel, heads, 1024,
            BLOCK_M=128, BLOCK_N=64, OVERLAP=True, num_warps=8, num_stages=2,
        )  # fmt: skip
        found[f"attention, {heads * 8}"] = launch
    return found


def _simple(x: torch.Tensor, programs: int) -> Launch:
    return lambda: three_scopes[(programs,)](x, num_warps=8)


@contextlib.contextmanager
def session(strategy: str, capacity: int, unsent: int = 0) -> Iterator[Any]:
    """A session with memory for all that is launched here: a launch that is dropped costs less. Of
    `unsent` launches nobody fetches the records."""
    memory = proton.knobs.scope(profile_memory=2 << 30)
    with memory, proton.profile("undisturbed", strategy=strategy, capacity=capacity) as run:
        yield run
    dropped = run.raw.dropped_launches - unsent
    assert not dropped, f"{dropped} launches found no room for their records"


def capacity_of(name: str) -> int:
    """Records a unit of a subject has room for."""
    return CAPACITY if name.startswith("three") else LOOP_CAPACITY


def times(count: int, launch: Launch) -> None:
    for _ in range(count):
        launch()
    torch.cuda.synchronize()


def _add_row(table: Table, *cells: str) -> None:
    """Adds a row and prints it at once: a table takes minutes, and may be cut short."""
    print(" | ".join(cells), flush=True)
    table.add_row(*cells)


def host_table() -> Table:
    """us per launch on the host without and with records, by kernel, stream and strategy: medians
    of 5 rounds, and of what each round adds."""
    table = Table("kernel, grid", "stream", "strategy", "off, us", "profiled", "added",
                  title="host")  # fmt: skip
    own = torch.cuda.Stream()

    def rate(launch: Launch) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        for _ in range(ROW):
            launch()
        return (time.perf_counter() - begin) / ROW * 1e6

    def off_and_on(launch: Launch, strategy: str, capacity: int) -> tuple[float, float]:
        """Side by side: how fast this thread is changes by a third from one second to the next."""
        rate(launch)
        off = statistics.median(rate(launch) for _ in range(3))
        with session(strategy, capacity):
            rate(launch)
            on = statistics.median(rate(launch) for _ in range(5))
        return off, on

    for (name, launch), stream, strategy in itertools.product(
        subjects().items(), (None, own), STRATEGIES
    ):
        if not name.startswith("three") and (stream is None or strategy == "flush"):
            continue
        with torch.cuda.stream(stream):
            capacity = capacity_of(name)
            rounds = np.array([off_and_on(launch, strategy, capacity) for _ in range(5)])
        where = "default" if stream is None else "its own"
        off, on = np.median(rounds, axis=0)
        added = np.median(rounds[:, 1] - rounds[:, 0])
        _add_row(table, name, where, strategy, *(f"{us:.1f}" for us in (off, on, added)))
    return table


class Queued:
    """Measures what is queued while a first kernel waits, in us."""

    def __init__(self) -> None:
        self.wait = torch.zeros(1, dtype=torch.int64, device="cuda")
        self.out = torch.zeros(1, dtype=torch.int64, device="cuda")

    def pair(self, launch: Launch) -> None:
        """A launch, and a small one behind it on the same stream."""
        launch()
        after[(1,)](self.out, num_warps=1)

    def us(self, work: Callable[[], Any], count: int, repeated: int) -> float:
        """Of one of the `count` pairs that `work` queues, when it is called so often."""
        first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
        torch.cuda.synchronize()
        hold[(1,)](self.wait, HOLD_NS, num_warps=1)
        first.record()
        for _ in range(repeated):
            work()
        last.record()
        torch.cuda.synchronize()
        return first.elapsed_time(last) / (count * repeated) * 1e3


def stream_table() -> Table:
    """us that recording adds on a stream for each launch, another kernel behind it: of 40 pairs of
    launches that are queued while a first kernel waits, with the session's own calls and without
    (the same instrumented kernel, its buffers never sent); medians of rounds in turns."""
    table = Table("kernel, grid", "stream", "strategy", "off, us", "kernel with records", "session",
                  "added by it", title="stream, a pair of launches")  # fmt: skip
    queued, own = Queued(), torch.cuda.Stream()

    def us(launch: Launch) -> float:
        return queued.us(lambda: queued.pair(launch), 1, ROW)

    def one_round(launch: Launch, strategy: str, capacity: int) -> tuple[float, float, float]:
        off = us(launch)
        with session(strategy, capacity):
            times(3, launch)
            on = statistics.median(us(launch) for _ in range(3))
        with session(strategy, capacity, unsent=ROW):
            times(3, launch)
            with unsent():
                return off, us(launch), on

    for (name, launch), stream, strategy in itertools.product(
        subjects().items(), (None, own), STRATEGIES
    ):
        if not name.startswith("three") and (stream is None or strategy == "flush"):
            continue
        with torch.cuda.stream(stream):
            times(3, launch)
            rounds = [one_round(launch, strategy, capacity_of(name)) for _ in range(5)]
        off, kernel, on = (statistics.median(of) for of in zip(*rounds, strict=True))
        added = statistics.median(on - kernel for _, kernel, on in rounds)
        where = "default" if stream is None else "its own"
        numbers = [f"{us:.2f}" for us in (off, kernel, on, added)]
        _add_row(table, name, where, strategy, *numbers)
    return table


@contextlib.contextmanager
def unsent() -> Iterator[None]:
    """Launches get buffers, one after the other the same ones, and nobody fetches them."""
    send, RingBuffer.send = RingBuffer.send, lambda ring, buffer, *_: ring.give_back(buffer)
    try:
        yield
        torch.cuda.synchronize()
    finally:
        RingBuffer.send = send


@contextlib.contextmanager
def unkept() -> Iterator[None]:
    """Of launches that are captured meanwhile, nothing but the instrumented kernel is."""
    keep = CapturedLaunch.keep
    CapturedLaunch.keep = lambda launch, stream: None  # type: ignore[method-assign]
    try:
        yield
    finally:
        CapturedLaunch.keep = keep  # type: ignore[method-assign]


def graph_table() -> Table:
    """The same for replays of a graph of 10 pairs: us of a pair, and of a pair on the host."""
    table = Table("kernel, grid", "off, us", "kernel with records", "session", "added by it",
                  "host, off", "host, session", title="graph, a pair of launches")  # fmt: skip
    queued, own = Queued(), torch.cuda.Stream()

    def captured(launch: Launch) -> torch.cuda.CUDAGraph:
        found = torch.cuda.CUDAGraph()
        with torch.cuda.graph(found, stream=own):
            for _ in range(PAIRS):
                queued.pair(launch)
        found.replay()
        torch.cuda.synchronize()
        return found

    def host_us(replay: Callable[[], None]) -> float:
        torch.cuda.synchronize()
        begin = time.perf_counter()
        replay()
        return (time.perf_counter() - begin) / PAIRS * 1e6

    for name, launch in subjects().items():
        times(1, lambda launch=launch: queued.pair(launch))  # type: ignore[misc]
        off = captured(launch)
        with session("circular", GRAPH_CAPACITY):
            times(1, launch)
            on = captured(launch)
            with unkept():
                kernel = captured(launch)
            rounds = [
                [queued.us(of.replay, PAIRS, 1) for of in (off, kernel, on)]
                for _ in range(REPLAYS)
            ]  # fmt: skip
            host = [[host_us(of.replay) for of in (off, on)] for _ in range(REPLAYS)]
        numbers = [statistics.median(of) for of in zip(*rounds, strict=True)]
        numbers.append(statistics.median(on - kernel for _, kernel, on in rounds))
        numbers += [statistics.median(of) for of in zip(*host, strict=True)]
        _add_row(table, name, *(f"{us:.2f}" for us in numbers))
    return table
