"""How the programs of a launch fill its places (SMs, or threads of the CPU).

With P programs of the mean length m on S places (SMs x the most programs that one held at once):

    launch                   D, of which S * D is there to be used
    equal programs           ceil(P / S) * m      what is longer than that comes of unequal ones
    without a last wave      P * m / S            what is longer than that comes of the last wave
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proton.viewer.explain.subject import KernelView, per_launch


@dataclass(frozen=True, kw_only=True)
class Balance:
    """A row a launch. `unequal` and `tail` are parts of its time that nobody used, since programs
    took unlike times, and since the last wave was not full."""

    launch: np.ndarray
    programs: np.ndarray
    places: np.ndarray
    most: np.ndarray  # programs of a place at once
    unequal: np.ndarray
    tail: np.ndarray

    @property
    def waves(self) -> np.ndarray:
        """How often all places were filled."""
        return self.programs / (self.places * self.most)


def balance(kernel: KernelView) -> Balance:
    """Of each launch of which programs left their times."""
    programs = kernel.programs
    rows = [_of(kernel, part) for part in per_launch(programs.launch)] if programs.row.size else []
    columns = np.array(rows, np.float64).reshape(-1, 6).T
    launch, count, places, most = (column.astype(np.int64) for column in columns[:4])
    return Balance(
        launch=launch, programs=count, places=places, most=most, unequal=columns[4],
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
    unequal = max(0.0, length - max(equal, ideal)) / length
    tail = max(0.0, min(equal, length) - ideal) / length
    return launch, count, places, most, unequal, tail
