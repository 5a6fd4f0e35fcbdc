"""Slices as columns of numbers: what statistics need of them, and no more memory than that.

A *key* is a column to group by: a code for each slice, -1 where it has none, and what the codes
stand for.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from proton.base.errors import ProtonError
from proton.trace.model import RawRun
from proton.trace.records import RecordTable
from proton.trace.tiles import FIELD, NO_TILE
from proton.trace.visits import Visits
from proton.trace.wire import RecordKind
from proton.viewer.tables.labels import unit_roles, variant_numbers
from proton.viewer.tables.rows import METRICS, PAYLOAD, launch_operators

if TYPE_CHECKING:
    import pandas as pd


@dataclass(frozen=True)
class Key:
    """One column to group by."""

    codes: np.ndarray
    values: np.ndarray | pd.Index

    @staticmethod
    def of(column: np.ndarray) -> Key:
        """The key of a column of numbers."""
        low = int(column.min(initial=0))
        span = int(column.max(initial=0)) - low + 1
        if column.dtype.kind == "i" and span <= 4 * column.size:  # counting beats sorting
            seen = np.flatnonzero(np.bincount(column - low, minlength=span))
            number = np.empty(span, np.int64)
            number[seen] = np.arange(seen.size)
            return Key(number[column - low], seen + low)
        values, codes = np.unique(column, return_inverse=True)
        return Key(codes.ravel(), values)

    @staticmethod
    def of_texts(strings: Sequence[str], codes: np.ndarray) -> Key:
        """The key of a column of text, where several codes may stand for one."""
        values = sorted(set(strings))
        place = {text: number for number, text in enumerate(values)}
        return Key(np.array([place[s] for s in strings], np.int64)[codes], np.array(values, object))


class Columns:
    """Slices in the order in which each track recorded them."""

    def __init__(
        self,
        start: np.ndarray,
        dur: np.ndarray,
        track: np.ndarray,
        visits: Visits,
        waits: np.ndarray,
        metrics: dict[str, Callable[[], np.ndarray]],
        key: Callable[[str], Key],
        payload: Sequence[str] = (),
        walk: tuple[np.ndarray, np.ndarray] | None = None,
    ) -> None:
        self.start, self.dur, self.track = start, dur, track
        # Begins and ends by which slices lie in each other: of records the clock's own, which tell
        # apart what are equal ns.
        self.walk = (start, start + dur) if walk is None else walk
        self.visits = visits  # of which each slice is a piece
        self.waits = waits  # whether a slice is nothing but waits
        self.payload = payload  # the names of values that some slice may have
        self._metrics, self._key = metrics, key

    def metric(self, name: str) -> np.ndarray:
        """The values of a metric."""
        return self._metrics[name]()

    def key(self, name: str) -> Key:
        """A column to group by."""
        return self._key(name)


def of_frame(rows: pd.DataFrame) -> Columns:
    """Those of a table of slices, such as `run.frame`."""
    import pandas as pd

    # Slices of one of these nest in each other.
    names = ["kind", "launch", "program", "unit", "thread", "device"]
    track = rows.groupby(names, observed=True).ngroup().to_numpy()

    def key(name: str) -> Key:
        if name == "tile":
            return _by_tile(rows[name].to_numpy() if name in rows else None)
        if name.startswith(PAYLOAD):
            field = name.removeprefix(PAYLOAD)
            column = [(payload or {}).get(field) for payload in rows["payload"]]
        else:
            column = rows[name]
        codes, values = pd.factorize(pd.Series(column).to_numpy(), sort=True)
        return Key(np.asarray(codes, np.int64), values)

    def metric(name: str) -> Callable[[], np.ndarray]:
        return lambda: rows[name].to_numpy()

    times = rows["start_ns"].to_numpy(), rows["dur_ns"].to_numpy()
    visits = Visits.of(rows["visit"].to_numpy(), ~rows["whole"].to_numpy())
    names = sorted({name for payload in rows["payload"] if payload for name in payload})
    metrics, waits = {name: metric(name) for name in METRICS}, rows["waits"].to_numpy()
    return Columns(*times, track, visits, waits, metrics, key, names)


def of_records(raw: RawRun, records: RecordTable) -> Columns:
    """Those of the scopes of kernels."""
    found = np.flatnonzero(records.kind == RecordKind.SLICE)
    # Of all rows a view, and no copy.
    rows: np.ndarray | slice = found if found.size < records.kind.size else slice(None)
    track, start = records.track[rows], records.start_ns[rows]
    dur = records.end_ns[rows] - start
    metrics = {
        "dur_ns": lambda: dur,
        "corrected_ns": lambda: records.corrected_ns[rows],
        "cycles": lambda: (records.end_ticks[rows] - records.start_ticks[rows]).view(np.int64),
    }
    names = sorted({field.name for scope in records.scopes for field in scope.payload})
    found_ = Visits(number=records.visits.number[rows], cut=records.visits.cut[rows])
    waits = np.array([scope.waits for scope in records.scopes], bool)[records.scope[rows]]
    key = _RecordKeys(raw, records, rows, track).key
    ticks = (records.start_ticks[rows].view(np.int64), records.end_ticks[rows].view(np.int64))
    return Columns(start, dur, track, found_, waits, metrics, key, names, ticks)


def _by_tile(tile: np.ndarray | None) -> Key:
    """The key of tiles; slices outside of tiles have no code."""
    if tile is None:
        raise ProtonError(
            f"no scope of the run has the integer payload {FIELD}: open one for each tile, "
            f'with proton.scope("{FIELD}", {FIELD}=...):'
        )
    has = tile != NO_TILE
    key, codes = Key.of(tile[has]), np.full(has.size, -1)
    codes[has] = key.codes
    return Key(codes, key.values)


class _RecordKeys:
    """The keys of slices of records."""

    def __init__(
        self, raw: RawRun, records: RecordTable, rows: np.ndarray | slice, track: np.ndarray
    ) -> None:
        self.raw, self.records, self.rows, self.track = raw, records, rows, track

    def key(self, name: str) -> Key:
        """The key of a column of `run.frame`."""
        records, kernels = self.records, self.raw.kernels
        if name.startswith(PAYLOAD):
            return self._payload(name.removeprefix(PAYLOAD))
        if name in ("scope", "name"):
            texts = [scope.path if name == "scope" else scope.name for scope in records.scopes]
            return Key.of_texts(texts, records.scope[self.rows])
        if name == "kind":
            return Key(np.zeros(self.track.size, np.int64), np.array(["scope"], object))
        if name == "operator":
            launch = records.tracks.launch[self.track]
            return Key.of_texts(launch_operators(self.raw), launch)
        if name == "role":
            tracks, track = records.tracks, self.track
            return Key.of_texts(*unit_roles(self.raw, tracks.launch[track], tracks.unit[track]))
        if name == "tile":
            return _by_tile(None if records.tile is None else records.tile[self.rows])
        if name == "iteration":
            return Key.of(records.iteration[self.rows])
        if name not in ("kernel", "variant"):
            key = Key.of(getattr(records.tracks, name))
            return Key(key.codes[self.track], key.values)
        of_launch = np.array([launch.kernel for launch in self.raw.launches], np.int64)
        kernel = of_launch[records.tracks.launch][self.track]
        if name == "kernel":
            return Key.of_texts([kernel_.name for kernel_ in kernels], kernel)
        return Key.of(np.array(variant_numbers(kernels), np.int64)[kernel])

    def _payload(self, field: str) -> Key:
        """By the value of a payload field; slices without it have no code."""
        scope, payload = self.records.scope[self.rows], self.records.payload[self.rows]
        value = np.full(scope.size, np.nan)
        has = np.zeros(scope.size, bool)
        whole = np.zeros(scope.size, np.int64)
        is_float = False
        for number, entry in enumerate(self.records.scopes):
            for slot, of in enumerate(entry.payload):
                if of.name != field:
                    continue
                some = np.flatnonzero(scope == number)
                bits = np.ascontiguousarray(payload[some, slot])
                is_float |= of.kind == "float"
                whole[some] = bits.view(np.int64)
                value[some] = bits.view(np.float64) if of.kind == "float" else whole[some]
                has[some] = True
        found = Key.of((value if is_float else whole)[has])
        codes = np.full(scope.size, -1)
        codes[has] = found.codes
        return Key(codes, found.values)
