"""Launches of several libraries in turns, each with the fastest of its configurations.

A short trial leaves the fastest few configurations of each library. They take turns for some
rounds, and of these the one with the least median counts: rounds differ by 10 % and more on a GPU
whose clocks move, so that a trial of some launches alone may choose the second best.
"""

import statistics
import time
from collections.abc import Callable, Hashable, Iterable, Sequence
from dataclasses import dataclass
from typing import TypeVar

import torch
from torch.profiler import ProfilerActivity, profile

FINALISTS = 5  # configurations of a library that take part in the rounds
ROUND_MS = 30  # how long launches of one configuration take in a round
MOST_LAUNCHES = 200  # in a round
Launch = Callable[[], object]
Key = TypeVar("Key", bound=Hashable)


@dataclass(frozen=True)
class Candidate:
    """A configuration, its launch, and how many seconds the first launch took: with compilation."""

    configuration: object
    launch: Launch
    first_s: float = 0.0


def milliseconds(launch: Launch, count: int) -> float:
    """Of one launch of several in a row."""
    first, last = (torch.cuda.Event(enable_timing=True) for _ in range(2))
    first.record()
    for _ in range(count):
        launch()
    last.record()
    torch.cuda.synchronize()
    return first.elapsed_time(last) / count


def mean_us(launch: Launch, count: int) -> float:
    """The same in us."""
    return milliseconds(launch, count) * 1e3


def kernel_us(launch: Launch, count: int, name: str = "") -> float:
    """The median of a launch's kernel, by CUPTI: of several, the one of that name, or the one that
    takes most in all."""
    with profile(activities=[ProfilerActivity.CUDA]) as found:
        for _ in range(count):
            launch()
        torch.cuda.synchronize()
    times: dict[str, list[float]] = {}
    for event in found.profiler.kineto_results.events():
        if str(event.device_type()).endswith("CUDA") and name in ("", event.name()):
            times.setdefault(event.name(), []).append(event.duration_ns() / 1e3)
    return statistics.median(max(times.values(), key=sum))


def medians(
    launches: Sequence[Launch],
    rounds: int,
    count: int,
    measure: Callable[[Launch, int], float] = mean_us,
) -> list[float]:
    """us of each launch: the median of rounds of `count` launches, behind one that warms up."""
    times: list[list[float]] = [[] for _ in launches]
    for number in range(rounds + 1):
        for launch, taken in zip(launches, times, strict=True):
            us = measure(launch, count)
            if number:
                taken.append(us)
    return [statistics.median(taken) for taken in times]


def finalists(launches: Iterable[tuple[object, Launch]]) -> list[Candidate]:
    """The fastest configurations that fit, the fastest one first."""
    found: list[tuple[float, Candidate]] = []
    for configuration, launch in launches:
        start = time.perf_counter()
        try:
            launch()
            torch.cuda.synchronize()
        except Exception as error:  # a configuration that does not fit, of either compiler
            if "resource" not in str(type(error)).lower() + str(error).lower():
                raise
            continue
        candidate = Candidate(configuration, launch, time.perf_counter() - start)
        milliseconds(launch, 2)
        trial = statistics.median(milliseconds(launch, 4) for _ in range(3))
        found.append((trial, candidate))
    found.sort(key=lambda entry: entry[0])
    return [candidate for _, candidate in found[:FINALISTS]]


def fastest(
    contenders: dict[Key, list[Candidate]], rounds: int
) -> dict[Key, tuple[Candidate, float]]:
    """The best candidate of each, and its median over the rounds in milliseconds."""
    runners = [(key, one) for key, candidates in contenders.items() for one in candidates]
    counts = []
    for _, one in runners:
        milliseconds(one.launch, 2)
        counts.append(max(1, min(MOST_LAUNCHES, round(ROUND_MS / milliseconds(one.launch, 3)))))
    times: list[list[float]] = [[] for _ in runners]
    for _ in range(rounds):
        for (_, one), count, taken in zip(runners, counts, times, strict=True):
            taken.append(milliseconds(one.launch, count))
    found: dict[Key, tuple[Candidate, float]] = {}
    for (key, one), taken in zip(runners, times, strict=True):
        median = statistics.median(taken)
        if key not in found or median < found[key][1]:
            found[key] = one, median
    return found
