"""What it costs a program of torch that its operators are recorded, by each way there is.

    python benchmarks/torch_operators.py

On the CPU, one thread: `add` of 16 elements, CPU time a call in ns; the least and the median of
some rounds, the ways in turns. `session` is a session with activities="all"; `profiler` torch's
own, `mode` a TorchDispatchMode that reads a clock twice. Needs torch.
"""

import contextlib
import os
import statistics
import time
from collections.abc import Callable, Iterator
from typing import Any

import torch
from torch.utils._python_dispatch import TorchDispatchMode

import proton

CALLS, ROUNDS = 20_000, 15


class Mode(TorchDispatchMode):
    """Sees operators in Python."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[tuple[str, int, int]] = []

    def __torch_dispatch__(self, call: Any, types: Any, args: Any = (), kwargs: Any = None) -> Any:
        begin = time.perf_counter_ns()
        found = call(*args, **(kwargs or {}))
        self.seen.append((call.name(), begin, time.perf_counter_ns()))
        return found


@contextlib.contextmanager
def profiler() -> Iterator[None]:
    """torch's own profiler, of the CPU."""
    with torch.profiler.profile(activities=[torch.profiler.ProfilerActivity.CPU]):
        yield


WAYS: dict[str, Callable[[], Any]] = {
    "nothing": contextlib.nullcontext,
    "session": lambda: proton.profile("operators", activities="all"),
    "profiler": profiler,
    "mode": Mode,
}


def per_call(x: torch.Tensor) -> float:
    began = time.thread_time_ns()
    for _ in range(CALLS):
        x.add(x)
    return (time.thread_time_ns() - began) / CALLS


def main() -> None:
    torch.set_num_threads(1)
    x = torch.ones(16)
    per_call(x)
    found: dict[str, list[float]] = {name: [] for name in WAYS}
    ends: dict[str, list[float]] = {name: [] for name in WAYS}
    for _ in range(ROUNDS):
        for name, way in WAYS.items():
            with way():
                found[name].append(per_call(x))
                began = time.thread_time_ns()
            ends[name].append((time.thread_time_ns() - began) / CALLS)
    print(f"torch {torch.__version__}, load {os.getloadavg()[0]:.1f}")
    print("way        least  median  at the end, median   ns a call")
    for name, times in found.items():
        end = statistics.median(ends[name])
        print(f"{name:9s} {min(times):6.0f}  {statistics.median(times):6.0f}  {end:6.0f}")


if __name__ == "__main__":
    main()
