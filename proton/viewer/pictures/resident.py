"""Resident programs over time, SM by SM (thread by thread on the CPU)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from proton.trace.records import NONE
from proton.viewer.pictures.cells import cells
from proton.viewer.pictures.heatmap import Heat
from proton.viewer.tables import Tables
from proton.viewer.tables.labels import sm_name, thread_name

if TYPE_CHECKING:
    import pandas as pd


def place_name(device: int, number: int, several: bool) -> str:
    """A thread of the CPU, or an SM; of several GPUs with its GPU."""
    if device == NONE:
        return thread_name(number)
    return f"GPU {device} {sm_name(number)}" if several else sm_name(number)


def longest(programs: pd.DataFrame) -> int:
    """The launch whose programs took the longest, from the first's begin to the last's end."""
    begin = programs.groupby("launch")["start_ns"].min()
    end = (programs["start_ns"] + programs["dur_ns"]).groupby(programs["launch"]).max()
    return int((end - begin).idxmax())


def resident(tables: Tables, launches: Sequence[int], rows: int, columns: int) -> Heat:
    """How many programs of these launches (none named: of the longest) each place has in the mean,
    over time; neighbours share a row where there are more places than rows."""
    programs, whose = tables.programs, ""
    if not launches and programs["launch"].nunique() > 1:
        launches = (longest(programs),)
        whose = f" of launch {launches[0]}, the longest (--launch: others)"
    if launches:
        programs = programs[programs["launch"].isin(list(launches))]
    start = programs["start_ns"].to_numpy()
    end = start + programs["dur_ns"].to_numpy()
    span = (int(start.min(initial=0 if not start.size else start[0])), int(end.max(initial=1)))
    span = (span[0], max(span[1], span[0] + 1))
    device = programs["device"].to_numpy()
    within = np.where(device == NONE, programs["thread"], programs["sm"])
    places, of = np.unique(np.stack([device, within]), axis=1, return_inverse=True)
    each = max(-(-places.shape[1] // max(rows, 1)), 1)
    count = -(-places.shape[1] // each)
    cut = cells(start, end, span, columns)
    cell = (of.ravel()[cut.index] // each) * columns + cut.column
    spent = np.bincount(cell, cut.ns, minlength=count * columns)[: count * columns]
    members = np.minimum(each, places.shape[1] - each * np.arange(count))[:, None]
    width = (span[1] - span[0]) / columns
    names = [place_name(on, n, len(tables.raw.gpus) > 1) for on, n in places.T.tolist()]
    ends = [names[min((k + 1) * each, len(names)) - 1].split()[-1] for k in range(count)]
    labels = [names[k * each] + (f"-{ends[k]}" if each > 1 else "") for k in range(count)]
    value = spent.reshape(count, columns) / width / np.maximum(members, 1)
    title = f"{tables.name}: resident programs{whose}"
    return Heat(title=title, labels=labels, span=span, value=value, of="program")
