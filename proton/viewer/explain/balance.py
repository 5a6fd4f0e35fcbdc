"""How the programs of a launch fill its places (SMs, or threads of the CPU).

With P programs of the mean length m on S places (SMs x the most programs that one held at once):

    launch                   D, of which S * D is there to be used
    equal programs           ceil(P / S) * m
    without a last wave      P * m / S            what equal programs take more is the last wave's

A launch of the CPU takes longer than its programs: what comes before them and behind is none of
theirs. Programs that wait for each other have a thread each there, more than the launch's places.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from proton.viewer.explain.subject import KernelView, per_launch


@dataclass(frozen=True, kw_only=True)
class Balance:
    """A row a launch. `tail` is the part of its time in which places had no work, since the last
    wave was not full."""

    launch: np.ndarray
    programs: np.ndarray
    places: np.ndarray
    most: np.ndarray  # programs of a place at once
    span_ns: np.ndarray  # from the start of the first program to the end of the last
    tail: np.ndarray

    @property
    def waves(self) -> np.ndarray:
        """How often all places were filled."""
        return self.programs / (self.places * self.most)

    def by_size(self) -> Iterator[np.ndarray]:
        """The rows of launches with equally many programs, which have one number of waves."""
        for count in np.unique(self.programs).tolist():
            yield np.flatnonzero(self.programs == count)


def balance(kernel: KernelView) -> Balance:
    """Of each launch of which programs left their times, but for those in which they wait for each
    other."""
    programs = kernel.programs
    rows = [_of(kernel, part) for part in per_launch(programs.launch)] if programs.row.size else []
    columns = np.array(rows, np.float64).reshape(-1, 6).T
    threads = 0 if kernel.on_gpu else kernel.subject.threads
    columns = columns[:, columns[2] <= threads] if threads else columns
    launch, count, places, most = (column.astype(np.int64) for column in columns[:4])
    return Balance(
        launch=launch, programs=count, places=places, most=most, span_ns=columns[4],
        tail=columns[5],
    )  # fmt: skip


def _of(kernel: KernelView, part: slice) -> tuple[float, ...]:
    programs = kernel.programs
    start, dur = programs.start_ns[part], programs.dur_ns[part]
    launch = int(programs.launch[part.start])
    places = np.unique(programs.place[part]).size
    most = np.unique(programs.slot[part]).size
    length = max(float((start + dur).max() - start.min()), 1.0)
    count, room = dur.size, places * most
    ideal = float(dur.sum()) / room
    equal = -(-count // room) * float(dur.mean())
    tail = max(0.0, min(equal, length) - ideal) / length
    span = min(length, float(kernel.subject.launch_ns[launch]))
    return launch, count, places, most, span, tail
