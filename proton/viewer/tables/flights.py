"""Asynchronous work as a table: one row a flight."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from proton.trace.model import RawRun
from proton.trace.records import RecordTable
from proton.viewer.tables.rows import kernel_columns, text_column

if TYPE_CHECKING:
    import pandas as pd

ISSUE = "issue "  # before the name of the work, in the name of its issue


def flight_names(records: RecordTable) -> list[str]:
    """What the work is called that each scope issues."""
    return [scope.name.removeprefix(ISSUE) for scope in records.scopes]


def flights(raw: RawRun, records: RecordTable) -> pd.DataFrame:
    """One row a flight: where it was issued, and who waited for it.

    `dur_ns` goes from the beginning of the issue to the end of the wait; of it `issue_ns` and
    `wait_ns` are the issue's and the wait's own, and `hidden_ns` lies between them. A wait of
    another unit may have begun before the issue.
    """
    import pandas as pd

    found, tracks = records.flights, records.tracks
    begun, ended = records.track[found.issue], records.track[found.wait]
    launch = tracks.launch[begun]
    start, end = records.start_ns[found.issue], records.end_ns[found.wait]
    issued, waited = records.end_ns[found.issue], records.start_ns[found.wait]
    scope = records.scope[found.issue]
    return pd.DataFrame(
        {
            **kernel_columns(raw, launch),
            "launch": launch,
            "program": tracks.program[begun],
            "device": tracks.device[begun],
            "sm": tracks.sm[begun],
            "start_warp": tracks.warp[begun],
            "start_unit": tracks.unit[begun],
            "end_warp": tracks.warp[ended],
            "end_unit": tracks.unit[ended],
            "work": text_column([s.work for s in records.scopes], scope),
            "queue": text_column([s.queue for s in records.scopes], scope),
            "name": text_column(flight_names(records), scope),
            "scope": text_column([s.path for s in records.scopes], scope),
            "iteration": records.iteration[found.issue],
            "start_ns": start,
            "dur_ns": end - start,
            "issue_ns": issued - start,
            "hidden_ns": np.maximum(waited - issued, 0),
            "wait_ns": end - waited,
            "error_ns": records.error_ns[found.issue],
        }
    )


def depths(records: RecordTable) -> dict[str, tuple[np.ndarray, np.ndarray, np.ndarray]]:
    """By queue: the track, time (ns) and number of each change of how many flights of the units
    are under way, in order of tracks and times."""
    found, tables = records.flights, {}
    queue = np.array([s.queue for s in records.scopes], object)[records.scope[found.issue]]
    for name in sorted(set(queue.tolist())):
        rows = np.flatnonzero(queue == name)
        issue, wait = found.issue[rows], found.wait[rows]
        track = np.tile(records.track[issue], 2)
        time = np.append(records.start_ns[issue], records.end_ns[wait])
        step = np.repeat([1, -1], rows.size)
        order = np.lexsort((step, time, track))
        track, time, step = track[order], time[order], step[order]
        is_last = np.append((np.diff(track) != 0) | (np.diff(time) != 0), True)[: track.size]
        tables[name] = track[is_last], time[is_last], np.cumsum(step)[is_last]
    return tables
