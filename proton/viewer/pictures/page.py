"""A timeline as one HTML page that needs no network: `page.html` around packed columns, with the
source of its kernels beside it.

Each column is the narrowest of JavaScript's typed arrays that holds it, deflated, in base64. The
slices come row by row in order of time, so the page finds what is in view by bisection and draws
only that.
"""

from __future__ import annotations

import base64
import json
import zlib
from collections.abc import Mapping
from importlib import resources

import numpy as np

from proton.base.progress import StepCounter, to_terminal
from proton.base.text import printable
from proton.trace.records import NONE
from proton.viewer.explain.explanation import explain, head
from proton.viewer.pictures.picture import PALETTE
from proton.viewer.pictures.source import SourceView
from proton.viewer.pictures.timeline import SliceKind, Timeline
from proton.viewer.pictures.timeline_picture import FIXED
from proton.viewer.tables import Tables
from proton.viewer.tables.first_view import first_launch, median_iteration
from proton.viewer.tables.labels import kernel_labels, launch_facts

DATA, TITLE, SOURCE = "/*DATA*/", "/*TITLE*/", "/*SOURCE*/"
LEVEL = 1  # of deflating; 6 takes 4 times as long for 0.8 of the size
SCRIPT_ENDS = {"<": "\\u003c", "\u2028": "\\u2028", "\u2029": "\\u2029"}  # inside of a script
ARRAYS = {"u1": "Uint8Array", "u2": "Uint16Array", "u4": "Uint32Array", "f8": "Float64Array",
          "f4": "Float32Array", "u8": "BigUint64Array"}  # fmt: skip


def to_page(
    timeline: Timeline,
    source: SourceView | None = None,
    *,
    is_first: bool = False,
    view: tuple[int, int] | None = None,
) -> str:
    """The page. `is_first`: it is for the source, beside which the timeline is; `view`: from when
    to when it shows at first, else the timeline's view."""
    folder = resources.files(__package__)
    found = folder.joinpath("page.html").read_text("utf-8")
    found = found.replace(SOURCE, folder.joinpath("page_beside.js").read_text("utf-8"), 1)
    if source is None:
        slices = timeline.slices
        rows = np.sort(slices.record[slices.kind == SliceKind.SCOPE])
        source = SourceView(timeline.tables, rows=rows if timeline.where.is_of_a_part else None)
    text = np.frombuffer(json.dumps(source.data()).encode(), np.uint8)
    whole = _data(timeline, view or timeline.view) | {
        "source": _packed(text),
        "isSourceFirst": is_first,
    }
    data = json.dumps(whole, ensure_ascii=True)
    for character, escaped in SCRIPT_ENDS.items():
        data = data.replace(character, escaped)
    title = printable(timeline.tables.name).replace("&", "&amp;").replace("<", "&lt;")
    return found.replace(TITLE, title, 1).replace(DATA, data, 1)


def _data(timeline: Timeline, view: tuple[int, int]) -> dict[str, object]:
    """What the page knows of a run."""
    tables, span = timeline.tables, timeline.span
    raw = tables.raw
    labels = kernel_labels(raw.kernels)
    return {
        "name": printable(tables.name),
        "span": [0, span[1] - span[0]],
        "view": [at - span[0] for at in view],
        **_first_views(tables, span[0]),
        "origin": span[0],
        "warnings": [printable(line) for line in tables.loss_warnings()],
        "tracks": [[printable(name) for name in path] for path in timeline.tracks],
        "heights": timeline.heights.tolist(),
        "rows": np.bincount(timeline.row, minlength=int(timeline.heights.sum())).tolist(),
        "names": [
            [*(printable(part) for part in (n.shown, n.path, n.source)), n.number]
            for n in timeline.names
        ],
        "payload": [
            [[printable(field.name), field.kind] for field in scope.payload]
            for scope in tables.records.scopes
        ],
        "launches": [
            {"kernel": printable(labels[x.kernel]), "dims": list(x.grid),
             "facts": _texts(launch_facts(raw.kernels[x.kernel], x))}
            for x in raw.launches
        ],
        "findings": _findings(tables, span[0]),
        "palette": PALETTE,
        "fixed": {int(kind): fill for kind, fill in FIXED.items()},
        "columns": _packed_columns(timeline),
    }  # fmt: skip


def _first_views(tables: Tables, origin: int) -> dict[str, object]:
    """The launch and the iteration that stand for the others; none is null."""
    number = first_launch(tables)
    if number is None:
        return {"launch": None, "iteration": None}
    start, length = tables.launches.loc[number, ["start_ns", "dur_ns"]]
    iteration = median_iteration(tables, number)
    return {
        "launch": [int(start) - origin, int(start + length) - origin],
        "iteration": iteration and [at - origin for at in iteration],
    }


def _findings(tables: Tables, origin: int) -> list[list[object]]:
    """Of each its sentence, the lines below it, and the slices to open: launch, start, length, and
    whether it is the launch as a whole."""
    found = explain(tables)
    return [
        [
            printable(head(finding)),
            [printable(line) for line in found.reasons(finding)],
            [[s.launch, s.start_ns - origin, s.dur_ns, s.unit < 0] for s in finding.slices],
        ]
        for finding in found
    ]


def _texts(facts: Mapping[str, object]) -> dict[str, str]:
    return {name: printable(str(value)) for name, value in facts.items()}


def _columns(timeline: Timeline) -> dict[str, np.ndarray]:
    """Numbers of slices, never negative: what may be none is one higher."""
    slices, records = timeline.slices, timeline.tables.records
    from_ = timeline.span[0]
    start = np.maximum(slices.start - from_, 0)
    some = np.flatnonzero(slices.record != NONE)
    rows = slices.record[some]
    own = {"iteration": records.iteration[rows] + 1, "error": np.ceil(records.error_ns[rows])}
    if (visits := records.visits).is_split:
        own["visit"] = np.where(visits.joined, visits.number + 1, 0)[rows]
    own["overhead"] = (records.end_ns - records.start_ns - records.corrected_ns)[rows]
    columns = {
        "start": start,
        "dur": np.maximum(slices.end - from_, 0) - start,
        "kind": slices.kind,
        "name": slices.name,
        "launch": slices.launch + 1,
        "program": slices.program + 1,
    }
    for name, values in own.items():
        columns[name] = np.zeros(len(timeline), np.int64)
        columns[name][some] = values
    for slot in range(records.payload.shape[1]):
        column = np.zeros(len(timeline), np.uint64)
        column[some] = records.payload[rows, slot]
        columns[f"payload{slot}"] = column
    return columns


def _packed_columns(timeline: Timeline) -> dict[str, list[str]]:
    columns, found = _columns(timeline), {}
    progress = StepCounter("column", len(columns), to_terminal)
    for name, column in columns.items():
        found[name] = _packed(column)
        progress.step()
    return found


def _packed(column: np.ndarray) -> list[str]:
    """The type of array, and its bytes: each value's first byte, then their second, and so on,
    which deflates better."""
    if column.dtype != np.uint64:
        high = int(column.max(initial=0))
        size = next((n for n in (1, 2, 4) if high < 1 << 8 * n), 8)
        column = column.astype(f"<u{size}" if size < 8 else "<f8")
    planes = column.view(np.uint8).reshape(-1, column.itemsize).T
    body = zlib.compress(np.ascontiguousarray(planes).tobytes(), LEVEL)
    return [ARRAYS[f"{column.dtype.kind}{column.itemsize}"], base64.b64encode(body).decode()]
