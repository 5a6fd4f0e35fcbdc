"""A tree of scopes with metrics, as Triton's proton-viewer prints it: from a run of ours, or from a
Hatchet file of Triton's Proton.

A Hatchet file is a JSON list whose first entry is the root: objects with `frame`, `metrics` and
`children`. Metrics that are recorded are sums over what ended in that frame, inner frames apart;
those that are shown include what is inside, and rates are quotients of such sums.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from proton.base.errors import ProtonError
from proton.base.words import did_you_mean
from proton.trace.scope_path import ScopePath
from proton.viewer.tables.tables import Tables

TIME, COUNT, BYTES = "time (ns)", "count", "bytes"
TIME_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
SCALES = {"": 1.0, "g": 1e9, "t": 1e12}
MOST_DEPTH = 500


@dataclass
class Node:
    """A frame and what was recorded in it."""

    name: str
    metrics: dict[str, float] = field(default_factory=dict)
    inner: list[Node] = field(default_factory=list)

    def total(self, metric: str) -> float:
        """The sum over the frame and all inside."""
        return self.metrics.get(metric, 0.0) + sum(node.total(metric) for node in self.inner)

    def recorded(self) -> set[str]:
        """The metrics of the frame and of all inside."""
        return set(self.metrics).union(*(node.recorded() for node in self.inner))


def of_run(tables: Tables) -> Node:
    """Kernels, and the scopes inside of them, with times and counts."""
    root = Node("ROOT", {TIME: 0.0, COUNT: 0.0})
    table = tables.stats(("kernel", "scope"), "dur_ns")
    for row in table.to_dict("records"):
        kernel = f"{row['kernel']} #{row['variant']}" if "variant" in row else str(row["kernel"])
        node = root
        for name in (kernel, *ScopePath(row["scope"]).parts):
            found = next((inner for inner in node.inner if inner.name == name), None)
            if found is None:
                found = Node(name)
                node.inner.append(found)
            node = found
        node.metrics = {TIME: float(row["self"]), COUNT: float(row["count"])}
    return root


def of_hatchet(path: Path) -> Node:
    """The tree of a Hatchet file; raises ProtonError where it is none."""
    try:
        content = json.loads(path.read_text("utf-8"))
        return _node(content[0], 0)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ProtonError(f"{path}: is no Hatchet file: {error}") from None


def is_hatchet(path: Path) -> bool:
    """Whether a file can be one: JSON, and no .proton."""
    if path.suffix == ".hatchet":
        return True
    with path.open("rb") as file:
        return file.read(64).lstrip().startswith(b"[")


def _node(entry: dict[str, Any], depth: int) -> Node:
    if depth > MOST_DEPTH:
        raise ValueError(f"frames lie deeper than {MOST_DEPTH}")
    numbers = {k: float(v) for k, v in entry.get("metrics", {}).items() if _is_number(v)}
    inner = [_node(child, depth + 1) for child in entry.get("children", [])]
    return Node(str(entry["frame"]["name"]), numbers, inner)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def known_metrics(root: Node) -> list[str]:
    """What can be shown of a tree."""
    there = root.recorded()
    names = [COUNT] if COUNT in there else []
    if TIME in there:
        names += [f"time/{unit}" for unit in TIME_UNITS]
        names += [f"avg_time/{unit}" for unit in TIME_UNITS if COUNT in there]
        names += [f"{s}byte/s" for s in SCALES if BYTES in there]
        names += [f"{s}{rate}/s" for rate in _rates(there) for s in SCALES]
    return names + sorted(name for name in there if name not in (TIME, COUNT))


def _rates(there: set[str]) -> dict[str, str]:
    """What rates of operations are called, and of which metric each is: `flop16` of `flops16`."""
    return {f"flop{n.removeprefix('flops')}": n for n in sorted(there) if n.startswith("flops")}


def value_of(node: Node, metric: str) -> float:
    """A metric of a frame with all inside: a sum, or a quotient of sums."""
    name, _, unit = metric.partition("/")
    if name in ("time", "avg_time") and unit in TIME_UNITS:
        value = node.total(TIME) / TIME_UNITS[unit]
        return value / max(node.total(COUNT), 1.0) if name == "avg_time" else value
    if unit == "s":
        scale = name[0] if name[0] in SCALES else ""
        of = {"byte": BYTES, **_rates(node.recorded())}.get(name.removeprefix(scale), "")
        seconds = node.total(TIME) / TIME_UNITS["s"]
        return node.total(of) / SCALES[scale] / seconds if seconds else 0.0
    return node.total(metric)


def check_metrics(root: Node, metrics: Sequence[str]) -> None:
    """Raises ProtonError where a metric is not known of a tree."""
    known = known_metrics(root)
    for name in metrics:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ProtonError(f"metric must be one of {', '.join(known)}, got {name!r}{hint}")


def diff(first: Node, second: Node) -> Node:
    """The second tree less the first, frame by frame."""
    metrics = {
        name: second.metrics.get(name, 0.0) - first.metrics.get(name, 0.0)
        for name in {**first.metrics, **second.metrics}
    }
    names = dict.fromkeys(node.name for tree in (first, second) for node in tree.inner)
    none = Node("")
    pairs = (
        [next((n for n in tree.inner if n.name == name), none) for tree in (first, second)]
        for name in names
    )
    inner = [diff(*pair) for pair in pairs]
    for name, node in zip(names, inner, strict=True):
        node.name = name
    return Node(second.name or first.name, metrics, inner)
