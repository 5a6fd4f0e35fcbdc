"""The run as pandas tables; every function here builds one."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from proton.trace.model import PayloadField, RawRun, Scope
from proton.trace.operators import NO_ONE, Operators
from proton.trace.records import NONE, RecordTable, count_states, launch_devices
from proton.trace.scope_path import ScopePath
from proton.trace.tiles import NO_TILE
from proton.trace.wire import ProgramState, RecordKind
from proton.viewer.tables.labels import unit_roles, variant_numbers
from proton.viewer.tables.places import Residency

if TYPE_CHECKING:
    import pandas as pd

LAUNCH, SCOPE = "launch", "scope"
RAW, CORRECTED = "dur_ns", "corrected_ns"  # what statistics are of; tables say it
METRICS = {
    CORRECTED: "less the cost of recording",
    RAW: "as measured",
    "cycles": "in cycles, as measured",
}
PAYLOAD = "payload."  # before the name of a value, in the name of its column
FRAME_COLUMNS = (
    "kind",
    "kernel",
    "variant",
    "launch",
    "program",
    "thread",
    "core",
    "device",
    "sm",
    "warp",
    "unit",
    "role",
    "scope",
    "name",
    "iteration",
    "visit",
    "whole",
    "waits",
    "start_ns",
    "dur_ns",
    "corrected_ns",
    "error_ns",
    "cycles",
    "fused",
    "payload",
    "operator",
)
MARK_COLUMNS = tuple(
    name
    for name in FRAME_COLUMNS
    if name not in ("kind", "visit", "whole", "waits", *METRICS, "fused", "operator")
)


def frame(raw: RawRun, records: RecordTable) -> pd.DataFrame:
    """One row a slice: host scopes, then launches, then the scopes of kernels."""
    parts = [_host_columns(raw), _launch_columns(raw, records), _slice_columns(raw, records)]
    joined = _joined(parts)
    slices = np.flatnonzero(records.kind == RecordKind.SLICE)
    values = payload_columns(raw, records, slices, len(joined) - slices.size)
    if (tile := records.tile) is not None:
        values["tile"] = np.append(np.full(len(joined) - slices.size, NO_TILE), tile[slices])
    return joined.assign(**values) if values else joined


def host_frame(raw: RawRun, records: RecordTable) -> pd.DataFrame:
    """The frame without the scopes of kernels."""
    return _joined([_host_columns(raw), _launch_columns(raw, records)])


def _joined(parts: Sequence[dict[str, np.ndarray | _Text]]) -> pd.DataFrame:
    """Columns, one part after another."""
    import pandas as pd

    joined: dict[str, object] = {}
    for name in FRAME_COLUMNS:
        columns = [part[name] for part in parts]
        texts = [column for column in columns if isinstance(column, _Text)]
        arrays = [column for column in columns if not isinstance(column, _Text)]
        joined[name] = _categorical(texts) if texts else np.concatenate(arrays)
    return pd.DataFrame(joined)


def marks(raw: RawRun, records: RecordTable) -> pd.DataFrame:
    """One row a mark."""
    import pandas as pd

    columns = _record_columns(raw, records, np.flatnonzero(records.kind == RecordKind.MARK))
    joined: dict[str, object] = {name: columns[name] for name in MARK_COLUMNS}
    texts = {name: _categorical([c]) for name, c in joined.items() if isinstance(c, _Text)}
    values = payload_columns(raw, records, np.flatnonzero(records.kind == RecordKind.MARK))
    return pd.DataFrame({**joined, **texts, **values})


def events(raw: RawRun, records: RecordTable) -> pd.DataFrame:
    """One row an event: where it started, and where it ended."""
    import pandas as pd

    found, tracks = records.events, records.tracks
    of_start, of_end = records.track[found.start], records.track[found.end]
    launch = tracks.launch[of_start]
    start = records.start_ns[found.start]
    kernel = _Text([k.name for k in raw.kernels], _launch_kernels(raw)[launch])
    name = _Text([scope.name for scope in records.scopes], records.scope[found.start])
    return pd.DataFrame(
        {
            "kernel": _categorical([kernel]),
            "variant": _variants(raw, launch),
            "launch": launch,
            "program": tracks.program[of_start],
            "thread": tracks.thread[of_start],
            "core": tracks.core[of_start],
            "device": tracks.device[of_start],
            "sm": tracks.sm[of_start],
            "start_warp": tracks.warp[of_start],
            "start_unit": tracks.unit[of_start],
            "end_warp": tracks.warp[of_end],
            "end_unit": tracks.unit[of_end],
            "name": _categorical([name]),
            "start_iteration": records.iteration[found.start],
            "end_iteration": records.iteration[found.end],
            "start_ns": start,
            "dur_ns": records.start_ns[found.end] - start,
            "error_ns": records.error_ns[found.start],
        }
    )


def losses(raw: RawRun, records: RecordTable) -> pd.DataFrame:
    """One row a launch, program and unit that lost records."""
    import pandas as pd

    tracks = records.tracks
    rows = np.flatnonzero(tracks.lost)
    names = ("launch", "program", "device", "sm", "warp", "unit", "written", "kept", "lost")
    columns = {name: getattr(tracks, name)[rows] for name in names}
    table = pd.DataFrame(columns)
    kernel = _Text([k.name for k in raw.kernels], _launch_kernels(raw)[tracks.launch[rows]])
    table.insert(1, "kernel", _categorical([kernel]))
    table.insert(2, "variant", _variants(raw, tracks.launch[rows]))
    return table


def launches(raw: RawRun, records: RecordTable) -> pd.DataFrame:
    """One row a launch."""
    import pandas as pd

    count, tracks = len(raw.launches), records.tracks
    states = count_states(records.programs, count)
    kernels = [raw.kernels[launch.kernel] for launch in raw.launches]
    start, duration = launch_times(raw, records)
    own = {number for number, launch in enumerate(raw.launches) if not launch.is_called}
    own.update(records.gpu.launches if records.gpu is not None else ())

    def total(column: np.ndarray) -> np.ndarray:
        before = np.concatenate([[0], np.cumsum(column)])
        edges = np.searchsorted(tracks.launch, np.arange(count + 1))
        return before[edges[1:]] - before[edges[:-1]]

    return pd.DataFrame(
        {
            "kernel": [kernel.name for kernel in kernels],
            "variant": _variants(raw, np.arange(count)),
            "scope": [launch.path for launch in raw.launches],
            "thread": np.array([launch.thread for launch in raw.launches], np.int64),
            "grid": [launch.grid for launch in raw.launches],
            "device": launch_devices(raw),
            "host_start_ns": _since(raw, [launch.host_start for launch in raw.launches]),
            "start_ns": start,
            "dur_ns": duration,
            "clock": ["gpu" if number in own else "host" for number in range(count)],
            "programs": np.array([math.prod(x.grid) for x in raw.launches], np.int64),
            "finished": states[:, ProgramState.FINISHED],
            "partial": states[:, ProgramState.STARTED],
            "untouched": states[:, ProgramState.UNTOUCHED],
            "written": total(tracks.written),
            "kept": total(tracks.kept),
            "lost": total(tracks.lost),
            "strategy": [kernel.strategy_name for kernel in kernels],
            "capacity": np.array([launch.capacity for launch in raw.launches], np.int64),
        }
    )


def programs(raw: RawRun, records: RecordTable, found: Residency) -> pd.DataFrame:
    """One row a program that began."""
    import pandas as pd

    tracks, first = records.tracks, found.first
    launch = tracks.launch[first]
    kernel = _Text([k.name for k in raw.kernels], _launch_kernels(raw)[launch])
    return pd.DataFrame(
        {
            "kernel": _categorical([kernel]),
            "variant": _variants(raw, launch),
            "launch": launch,
            "program": tracks.program[first],
            "thread": tracks.thread[first],
            "core": tracks.core[first],
            "device": tracks.device[first],
            "sm": tracks.sm[first],
            "slot": found.slot,
            "finished": records.programs.state[found.row] == ProgramState.FINISHED,
            "start_ns": found.start_ns,
            "dur_ns": found.end_ns - found.start_ns,
        }
    )


def launch_times(raw: RawRun, records: RecordTable) -> tuple[np.ndarray, np.ndarray]:
    """Start and duration of each launch: its own on a GPU, the call's on the CPU, and where no
    program of it began."""
    start = _since(raw, [launch.host_start for launch in raw.launches])
    end = _since(raw, [launch.host_end for launch in raw.launches])
    if records.gpu is not None:
        for number, clock in records.gpu.launches.items():
            start[number], end[number] = clock.start_ns, clock.end_ns
    return start, end - start


def optimized_out(raw: RawRun) -> pd.DataFrame:
    """One row a scope in which optimisation left no work."""
    import pandas as pd

    kernels = zip(raw.kernels, variant_numbers(raw.kernels), strict=True)
    rows = [
        (kernel.name, number, path) for kernel, number in kernels for path in kernel.optimized_out
    ]
    table = pd.DataFrame(rows, columns=["kernel", "variant", "scope"])
    return table.astype({"kernel": "str", "variant": np.int64, "scope": "str"})


def payload_dict(fields: Sequence[PayloadField], bits: np.ndarray) -> list[dict[str, object]]:
    """The payloads of records of one scope."""
    views = {"int": np.int64, "float": np.float64}
    columns = [
        np.ascontiguousarray(bits[:, slot]).view(views[field.kind]).tolist()
        for slot, field in enumerate(fields)
    ]
    names = [field.name for field in fields]
    return [dict(zip(names, values, strict=True)) for values in zip(*columns, strict=True)]


def payload_columns(
    raw: RawRun, records: RecordTable, rows: np.ndarray, before: int | None = None
) -> dict[str, pd.Series]:
    """A column `payload.k` for each name of the payload: Int64, or float64 where a value is a
    float; missing where a row has none.

    `rows` are those of records; `before` so many of the host's rows come first, or None for no
    rows of the host.
    """
    import pandas as pd

    first, host = before or 0, raw.host if before is not None else []
    names = {f.name: None for s in records.scopes for f in s.payload if s.kind != "event"}
    names.update({name: None for slice_ in host for name in slice_.payload})
    scope, bits = records.scope[rows], records.payload[rows]
    found = {}
    for name in names:
        column = PayloadColumn(first + rows.size)
        for number, slice_ in enumerate(host):
            if name in slice_.payload:
                column.put(number, slice_.payload[name])
        for number, entry in enumerate(records.scopes):
            for slot, field in enumerate(entry.payload):
                if field.name == name:
                    some = np.flatnonzero(scope == number)
                    view = np.int64 if field.kind == "int" else np.float64
                    column.put(first + some, np.ascontiguousarray(bits[some, slot]).view(view))
        if column.there.any():
            found[f"{PAYLOAD}{name}"] = pd.Series(column.values())
    return found


def text_column(strings: Sequence[str], code: np.ndarray) -> pd.Categorical:
    """A column of strings: which string each row has."""
    return _categorical([_Text(strings, code)])


def kernel_columns(raw: RawRun, launch: np.ndarray) -> dict[str, object]:
    """The kernel of these launches, and its number among those of its name."""
    names = [kernel.name for kernel in raw.kernels]
    kernel = text_column(names, _launch_kernels(raw)[launch])
    return {"kernel": kernel, "variant": _variants(raw, launch)}


class PayloadColumn:
    """Values of one name, of which some may be integers and others floats."""

    def __init__(self, rows: int) -> None:
        self.there, self.is_float = np.zeros(rows, bool), False
        self._whole, self._real = np.zeros(rows, np.int64), np.full(rows, np.nan)

    def put(self, rows: int | np.ndarray, value: int | float | np.ndarray) -> None:
        """Sets the values of some rows."""
        self.there[rows], self._real[rows] = True, value
        if np.asarray(value).dtype.kind == "f":
            self.is_float |= np.size(value) > 0
        else:
            self._whole[rows] = value

    def values(self) -> np.ndarray | pd.arrays.IntegerArray:
        """The column as pandas has it."""
        import pandas as pd

        if self.is_float:
            return self._real
        return pd.arrays.IntegerArray(self._whole, ~self.there)


class _Text:
    """A column of strings: which string each row has."""

    def __init__(self, strings: Sequence[str], code: np.ndarray) -> None:
        self.strings, self.code = strings, code


def _categorical(columns: Sequence[_Text]) -> pd.Categorical:
    """Columns of strings, one after another, as one categorical."""
    import pandas as pd

    number: dict[str, int] = {}
    codes = []
    for column in columns:
        own = [number.setdefault(string, len(number)) for string in column.strings]
        codes.append(np.array(own, np.int64)[column.code])
    return pd.Categorical.from_codes(np.concatenate(codes), pd.Index(list(number), dtype="str"))


def _texts(strings: Sequence[str]) -> _Text:
    return _Text(strings, np.arange(len(strings)))


def _same(string: str, rows: int) -> _Text:
    return _Text([string], np.zeros(rows, np.int64))


def _since(raw: RawRun, times: Sequence[int]) -> np.ndarray:
    return np.array(times, np.int64) - raw.origin_ns


def _launch_kernels(raw: RawRun) -> np.ndarray:
    return np.array([launch.kernel for launch in raw.launches], np.int64)


def _variants(raw: RawRun, launches: np.ndarray) -> np.ndarray:
    """The number of each launch's kernel among those of its name."""
    return np.array(variant_numbers(raw.kernels), np.int64)[_launch_kernels(raw)[launches]]


def _operator_paths(raw: RawRun, rows: Sequence[int]) -> list[str]:
    """The paths of operators, rows of the host; "" for none."""
    return [raw.host[row].path if row != NO_ONE else "" for row in rows]


def launch_operators(raw: RawRun) -> list[str]:
    """The path of the operator that asked for each launch."""
    return _operator_paths(raw, Operators(raw).of_launches(raw))


def _objects(values: Sequence[object]) -> np.ndarray:
    return np.fromiter(values, dtype=object, count=len(values))


def _host_columns(raw: RawRun) -> dict[str, np.ndarray | _Text]:
    rows = len(raw.host)
    duration = np.array([slice_.end - slice_.start for slice_ in raw.host], np.int64)
    return {
        "kind": _texts([slice_.kind for slice_ in raw.host]),
        "kernel": _texts([s.name if s.kind == "kernel" else "" for s in raw.host]),
        "variant": np.full(rows, NONE),
        "launch": np.full(rows, NONE),
        "thread": np.array([slice_.thread for slice_ in raw.host], np.int64),
        "device": np.array([slice_.device for slice_ in raw.host], np.int64),
        "scope": _texts([slice_.path for slice_ in raw.host]),
        "name": _texts([slice_.name for slice_ in raw.host]),
        "start_ns": _since(raw, [slice_.start for slice_ in raw.host]),
        "error_ns": np.zeros(rows),
        "payload": _objects([slice_.payload or None for slice_ in raw.host]),
        "operator": _texts(_operator_paths(raw, Operators(raw).of_slices(raw.host))),
        **_host_side(duration),
    }


def _launch_columns(raw: RawRun, records: RecordTable) -> dict[str, np.ndarray | _Text]:
    rows = len(raw.launches)
    names = [raw.kernels[launch.kernel].name for launch in raw.launches]
    paths = [ScopePath.of((x.path, name)) for x, name in zip(raw.launches, names, strict=True)]
    start, duration = launch_times(raw, records)
    error = np.zeros(rows)
    if records.gpu is not None:
        for number in records.gpu.launches:
            error[number] = records.gpu.host_error_ns(raw.launches[number].device)
    return {
        "kind": _same(LAUNCH, rows),
        "kernel": _texts(names),
        "variant": _variants(raw, np.arange(rows)),
        "launch": np.arange(rows),
        "thread": np.array([launch.thread for launch in raw.launches], np.int64),
        "device": launch_devices(raw),
        "scope": _texts(paths),
        "name": _texts(names),
        "start_ns": start,
        "error_ns": error,
        "payload": np.full(rows, None, object),
        "operator": _texts(launch_operators(raw)),
        **_host_side(duration),
    }


def _host_side(duration: np.ndarray) -> dict[str, np.ndarray | _Text]:
    """What host scopes and launches have in common."""
    none = np.full(duration.size, NONE)
    return {
        "program": none,
        "core": none,
        "sm": none,
        "warp": none,
        "unit": none,
        "role": _same("", duration.size),
        "iteration": none,
        "visit": none,
        "whole": np.ones(duration.size, bool),
        "waits": np.zeros(duration.size, bool),
        "dur_ns": duration,
        "corrected_ns": duration,
        "cycles": none,
        "fused": np.zeros(duration.size, bool),
    }


def _slice_columns(raw: RawRun, records: RecordTable) -> dict[str, np.ndarray | _Text]:
    rows = np.flatnonzero(records.kind == RecordKind.SLICE)
    cycles = records.end_ticks[rows] - records.start_ticks[rows]
    duration = records.end_ns[rows] - records.start_ns[rows]
    fused, waits = (
        np.array([getattr(scope, name) for scope in records.scopes], bool)
        for name in ("fused", "waits")
    )
    return {
        "kind": _same(SCOPE, rows.size),
        "dur_ns": duration,
        "corrected_ns": records.corrected_ns[rows],
        "cycles": cycles.astype(np.int64),
        "fused": fused[records.scope[rows]],
        "visit": records.visits.number[rows],
        "whole": ~records.visits.cut[rows],
        "waits": waits[records.scope[rows]],
        "operator": _Text(launch_operators(raw), records.tracks.launch[records.track[rows]]),
        **_record_columns(raw, records, rows),
    }


def _record_columns(
    raw: RawRun, records: RecordTable, rows: np.ndarray
) -> dict[str, np.ndarray | _Text]:
    """The columns that slices and marks share."""
    tracks, scope = records.tracks, records.scope[rows]
    track = records.track[rows]
    launch = tracks.launch[track]
    return {
        "kernel": _Text([kernel.name for kernel in raw.kernels], _launch_kernels(raw)[launch]),
        "variant": _variants(raw, launch),
        "launch": launch,
        "program": tracks.program[track],
        "thread": tracks.thread[track],
        "core": tracks.core[track],
        "device": tracks.device[track],
        "sm": tracks.sm[track],
        "warp": tracks.warp[track],
        "unit": tracks.unit[track],
        "role": _Text(*unit_roles(raw, launch, tracks.unit[track])),
        "scope": _Text([scope.path for scope in records.scopes], scope),
        "name": _Text([scope.name for scope in records.scopes], scope),
        "iteration": records.iteration[rows],
        "start_ns": records.start_ns[rows],
        "error_ns": records.error_ns[rows],
        "payload": _payloads(records.scopes, scope, records.payload[rows]),
    }


def _payloads(scopes: Sequence[Scope], scope: np.ndarray, bits: np.ndarray) -> np.ndarray:
    column = np.full(scope.size, None, object)
    for number, entry in enumerate(scopes):
        if entry.payload:
            rows = np.flatnonzero(scope == number)
            column[rows] = _objects(payload_dict(entry.payload, bits[rows]))
    return column
