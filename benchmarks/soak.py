"""A monitor for minutes: its memory, what it costs, if it keeps its budget, and what it delays.

    python benchmarks/soak.py [--seconds 300] [--budget 0.5%] [--period 30] [--cuda [--graph]]

Two kernels are launched over and over, in stretches that alternate: with the monitor, and with it
paused, where kernels are launched as without a session. Of each pair of stretches the quotient of
their rates counts: launches per second of a GPU, and on the CPU per second of processor time, as
others use this machine, too. The cost that was seen is the median, with its 95 % interval; what the
monitor's own thread took comes on top, as it goes on in a pause. Memory is the
process's own (RSS): the slope is a least-squares line through the second half. With --cuda events
of torch stand around every launch, and the time between two of them is compared by quantiles: what
a stream waits. With --graph launches come from a CUDA graph, which is captured under the monitor.
"""

import argparse
import contextlib
import json
import statistics
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

import numpy as np

sys.path.insert(0, str(Path(__file__).parents[1]))

import proton  # of this checkout
import proton.language as tl
from proton.runtime.session import open_sessions

BATCH = 200  # launches of each kernel between looks at the clock
PAGE = 4096
LEARNING_S = 20
CAPTURED = 10  # launches of each kernel in a graph
QUANTILES = (0.5, 0.9, 0.99, 0.999, 0.9999)
NEWEST = 1 << 20  # times of launches that quantiles are of


@proton.jit
def rows(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offs = tl.arange(0, BLOCK)
    with proton.scope("load"):
        x = tl.load(x_ptr + row * columns + offs, mask=offs < columns, other=-float("inf"))
    with proton.scope("exp"):
        e = tl.exp(x - tl.max(x, 0))
    with proton.scope("store"):
        tl.store(out_ptr + row * columns + offs, e / tl.sum(e, 0), mask=offs < columns)


@proton.jit
def scaled(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("scale"):
        tl.store(out_ptr + offs, tl.load(x_ptr + offs, mask=offs < n) * 2, mask=offs < n)


class LaunchTimes:
    """The newest times of launches, us, in memory that is taken at first; the largest of all."""

    def __init__(self) -> None:
        self.newest, self.count, self.largest = np.full(NEWEST, 1.0), 0, 0.0

    def add(self, times: list[float]) -> None:
        self.newest[(self.count + np.arange(len(times))) % NEWEST] = times
        self.count += len(times)
        self.largest = max([self.largest, *times])

    def quantiles(self) -> dict[str, float]:
        known = self.newest[: self.count]
        found = {str(part): float(np.quantile(known, part)) for part in QUANTILES}
        return found | {"largest": self.largest}


def rss_mb() -> float:
    """What the process has of the machine's memory."""
    return int(Path("/proc/self/statm").read_text().split()[1]) * PAGE / 1e6


class CPULoop:
    """Batches of launches on the CPU."""

    def __init__(self, height: int, width: int) -> None:
        self.x = np.random.default_rng(0).random((height, width), np.float32)
        self.out = np.empty_like(self.x)

    def launch(self) -> None:
        height, width = self.x.shape
        block = proton.next_power_of_2(width)
        rows[(height,)](self.x, self.out, width, BLOCK=block)
        scaled[(proton.cdiv(height * width, 4096),)](self.x, self.out, height * width, BLOCK=4096)

    clock = staticmethod(time.process_time)

    def prepare(self) -> None:
        """What is done under the monitor before it is measured."""

    def batch(self) -> list[float]:
        """Launches, and the times of each where they are known, us."""
        for _ in range(BATCH):
            self.launch()
        return []


class GPULoop(CPULoop):
    """Batches of launches on a GPU, with events around each."""

    def __init__(self, height: int, width: int, has_graph: bool) -> None:
        import torch

        self.torch = torch
        self.x = torch.rand(height, width, device="cuda")
        self.out = torch.empty_like(self.x)
        self.events = [torch.cuda.Event(enable_timing=True) for _ in range(BATCH + 1)]
        self.graph: Any = None
        self.has_graph = has_graph

    clock = staticmethod(time.perf_counter)

    def prepare(self) -> None:
        """Captures what `launch` launches, many times, once it is known what that takes."""
        if self.has_graph:
            stretch(self, LEARNING_S)
            self.graph = self.torch.cuda.CUDAGraph()
            with self.torch.cuda.graph(self.graph):
                for _ in range(CAPTURED):
                    CPULoop.launch(self)

    def launch(self) -> None:
        if self.graph is None:
            super().launch()
        else:
            self.graph.replay()

    def batch(self) -> list[float]:
        self.events[0].record()
        for event in self.events[1:]:
            self.launch()
            event.record()
        self.torch.cuda.synchronize()
        pairs = zip(self.events, self.events[1:], strict=False)
        return [1e3 * begin.elapsed_time(end) for begin, end in pairs]


def stretch(loop: CPULoop, seconds: float) -> tuple[float, list[float]]:
    """Batches a second, and the times of launches."""
    batches, times = 0, list[float]()
    begin, ends = loop.clock(), time.perf_counter() + seconds
    while time.perf_counter() < ends:
        times += loop.batch()
        batches += 1
    return batches / (loop.clock() - begin), times


def interval(values: list[float]) -> tuple[float, float]:
    """In which the median lies in 95 % of cases, by ranks."""
    ordered, half = sorted(values), 0.98 * len(values) ** 0.5
    low, high = int(len(values) / 2 - half), int(len(values) / 2 + half)
    return ordered[max(low, 0)], ordered[min(high, len(ordered) - 1)]


def soak(loop: CPULoop, options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    costs, memory = list[float](), list[tuple[float, float]]()
    times = {"on": LaunchTimes(), "off": LaunchTimes()}
    with proton.monitor(
        folder, budget=options.budget, period_s=options.period, folder_mb=options.folder_mb
    ) as monitor:
        loop.prepare()
        begin, number = time.perf_counter(), 0
        own = time.pthread_getcpuclockid(monitor.thread.ident)
        before = time.clock_gettime(own)
        while (now := time.perf_counter()) - begin < options.seconds:
            rates = {}
            # Which comes first changes, so that what drifts does not count.
            order = ("on", "off") if number % 2 else ("off", "on")
            for kind in order:
                is_off: Any = open_sessions.paused if kind == "off" else contextlib.nullcontext
                with is_off():
                    rates[kind], found = stretch(loop, options.stretch)
                times[kind].add(found)
            number += 1
            costs.append(1 - rates["on"] / rates["off"])
            memory.append((now - begin, rss_mb()))
            print(
                f"{now - begin:6.0f} s  {memory[-1][1]:8.1f} MB  {rates['on'] * BATCH:9.0f} on/s "
                f"{rates['off'] * BATCH:9.0f} off/s  {100 * costs[-1]:+.2f} %",
                flush=True,
            )
        took = time.clock_gettime(own) - before
        thread = took / (time.perf_counter() - begin)
    return {
        "thread": thread,
        "costs": costs,
        "memory": memory,
        "times": times,
        "snapshot": monitor.snapshot,
    }


def report(found: dict[str, Any], options: argparse.Namespace, folder: Path) -> dict[str, Any]:
    # At first the budget is being learned, and memory filled.
    costs, memory = found["costs"][len(found["costs"]) // 4 :], np.array(found["memory"])
    half = memory[len(memory) // 2 :]
    slope = float(np.polyfit(half[:, 0], half[:, 1], 1)[0]) * 60 if len(half) > 2 else float("nan")
    snapshot = found["snapshot"]
    files = [path.stat().st_size for path in folder.glob("*.proton")]
    said: dict[str, Any] = {
        "budget_asked": options.budget,
        "cost_seen_percent": 100 * statistics.median(costs),
        "monitor_thread_percent_of_a_core": 100 * found["thread"],
        "cost_interval_percent": [100 * part for part in interval(costs)],
        "cost_estimated_percent": {n: 100 * of.cost for n, of in snapshot.kernels.items()},
        "one_of": {name: of.every for name, of in snapshot.kernels.items()},
        "launches": {name: of.launches for name, of in snapshot.kernels.items()},
        "recorded": {name: of.recorded for name, of in snapshot.kernels.items()},
        "dropped": snapshot.dropped,
        "rss_mb_first_last": [memory[0, 1], memory[-1, 1]],
        "rss_slope_mb_per_minute": slope,
        "files": len(files),
        "files_mb": sum(files) / 1e6,
        "files_lost": snapshot.files_lost,
        "p50_us": {
            "/".join(filter(None, series)): of.quantiles[0.5] / 1e3
            for series, of in snapshot.durations.items()
            if of.quantiles
        },
    }
    for kind, times in found["times"].items():
        if times.count:
            said[f"launch_us_{kind}"] = times.quantiles()
            said[f"launches_timed_{kind}"] = times.count
    return said


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seconds", type=float, default=300)
    parser.add_argument("--stretch", type=float, default=2, help="seconds with, and without")
    parser.add_argument("--budget", default="0.5%")
    parser.add_argument("--period", type=float, default=30)
    parser.add_argument("--folder-mb", type=float, default=64)
    parser.add_argument("--height", type=int, default=0, help="rows of the kernels' data")
    parser.add_argument("--width", type=int, default=1000)
    parser.add_argument("--cuda", action="store_true")
    parser.add_argument("--graph", action="store_true", help="with --cuda")
    options = parser.parse_args()
    height = options.height or (16384 if options.cuda else 256)
    loop: Any = CPULoop(height, options.width)
    if options.cuda:
        loop = GPULoop(height, options.width, options.graph)
    loop.batch()  # compiles
    with tempfile.TemporaryDirectory() as name:
        found = soak(loop, options, Path(name))
        print(json.dumps(report(found, options, Path(name)), indent=2, default=float))


if __name__ == "__main__":
    main()
