"""The tree of a run, as `triton.profiler` writes it: host scopes with their metrics, and below them
kernels with times and counts.

A metric whose name ends in `(pty)` is a property: the last value counts, not the sum. One that ends
in `(exc)` is of the scope alone; both are written without that.
"""

import json
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from proton.base.errors import ProfileError
from proton.compat.triton.profiler_scopes import ELEMENT
from proton.trace.model import HostSlice, RawRun
from proton.trace.scope_path import ScopePath
from proton.viewer import Run
from proton.viewer.tables.metrics import COUNT, HATCHET, HATCHET_MSGPACK, TIME, MetricNode
from proton.viewer.tables.msgpack import packed

TREE, PACKED_TREE, TRACE = HATCHET[1:], HATCHET_MSGPACK[1:], "chrome_trace"
FORMATS = (TREE, PACKED_TREE, TRACE)
_KIND = re.compile(r"(.*?)\s*\((pty|exc)\)")


def checked_format(name: str) -> str:
    """A format's name; raises ProfileError for another one."""
    if name not in FORMATS:
        known = ", ".join(FORMATS[:-1])
        raise ProfileError(f"output_format must be {known} or {TRACE}, got {name!r}")
    return name


def write(run: Run, path: Path, format: str) -> None:
    """Writes a run's tree, or its trace."""
    if format == TREE:
        path.write_text(json.dumps(document(run)), "utf-8")
    elif format == PACKED_TREE:
        path.write_bytes(packed(document(run)))
    else:
        run.save(path, format="chrome")


def document(run: Run) -> list[Any]:
    """What a Hatchet file has: the tree, and what devices there are, which nothing here needs."""
    return [_entry(_tree(run)), {}]


def _tree(run: Run) -> MetricNode:
    root = MetricNode("ROOT", {TIME: 0.0, COUNT: 0.0})
    for slice_ in run.raw.host:
        if slice_.kind == "host":
            for name, value in slice_.payload.items():
                _add(_at(root, slice_.path), name, value)
    timed = [
        (row["scope"], row["kernel"], row["dur_ns"]) for row in run.launches.to_dict("records")
    ]
    for path, name, duration in [*timed, *_others(run.raw)]:
        kernel = _at(_at(root, path), name)
        _add(kernel, TIME, duration)
        _add(kernel, COUNT, 1)
    return root


def _others(raw: RawRun) -> Iterator[tuple[str, str, int]]:
    """Kernels of other libraries: the scope that each was asked for in, its name, its time."""
    own = {kernel.name for kernel in raw.kernels}
    scopes = [slice_ for slice_ in raw.host if slice_.kind == "host"]
    for kernel in raw.host:
        if kernel.kind == "kernel" and kernel.name not in own:
            around = [slice_ for slice_ in scopes if _asked_in(kernel, slice_)]
            innermost = max(around, key=lambda slice_: slice_.start, default=None)
            path = "" if innermost is None else innermost.path
            yield path, kernel.name, kernel.end - kernel.start


def _asked_in(kernel: HostSlice, scope: HostSlice) -> bool:
    """Whether a kernel was asked for in a scope; of its thread CUPTI knows the low half."""
    is_thread = (kernel.issuer ^ scope.thread) & 0xFFFFFFFF == 0
    return is_thread and scope.start <= kernel.issued <= scope.end


def _at(node: MetricNode, path: str) -> MetricNode:
    """The node of a path below another; a new one where there is none."""
    for name in ScopePath(path).parts:
        found = next((inner for inner in node.inner if inner.name == name), None)
        if found is None:
            node.inner.append(found := MetricNode(name))
        node = found
    return node


def _add(node: MetricNode, metric: str, value: float) -> None:
    found = _KIND.fullmatch(metric)
    name, kind = found.groups() if found else (metric, "")
    before = 0.0 if kind == "pty" else node.metrics.get(name, 0.0)
    node.metrics[name] = before + float(value)


def _entry(node: MetricNode) -> dict[str, object]:
    frame = {"name": node.name, "type": "function"}
    return {"frame": frame, "metrics": _metrics(node), "children": [*map(_entry, node.inner)]}


def _metrics(node: MetricNode) -> dict[str, object]:
    """Metrics as they were given: the elements of a row are a list."""
    found: dict[str, Any] = {}
    for name, value in node.metrics.items():
        if of := ELEMENT.fullmatch(name):
            found.setdefault(of[1], []).append(value)
        else:
            found[name] = value
    return found
