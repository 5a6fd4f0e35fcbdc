"""A tree of scopes with metrics, as Triton's proton-viewer prints it: from a run of ours, or from a
Hatchet file of Triton's Proton.

A Hatchet file is a JSON list whose first entry is the root: objects with `frame`, `metrics` and
`children`. Metrics that are recorded are sums over what ended in that frame, inner frames apart;
those that are shown include what is inside, and rates are quotients of such sums. Only `util` is of
a kernel alone: the least time in which its device does the work that was said, as a part of the
time that it took.
"""

from __future__ import annotations

import json
import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proton.base.errors import ProtonError
from proton.base.symbols import demangled
from proton.base.words import did_you_mean
from proton.trace.scope_path import ScopePath
from proton.viewer.tables.msgpack import unpacked
from proton.viewer.tables.rates import most
from proton.viewer.tables.tables import Tables

HATCHET, HATCHET_MSGPACK = ".hatchet", ".hatchet_msgpack"
TIME, COUNT, BYTES = "time (ns)", "count", "bytes"
# Of devices, and of scopes of the host that say how long they took.
TIMES = {"time": TIME, "cpu_time": "cpu_time (ns)"}
TIME_UNITS = {"s": 1e9, "ms": 1e6, "us": 1e3, "ns": 1.0}
SCALES = {"": 1.0, "g": 1e9, "t": 1e12}
PERCENT = "%"
UTIL = "util"
FLOPS = {f"flops{width}": width for width in (8, 16, 32, 64)}  # that `util` counts
_Facts = Mapping[str, float]
# Operations of 8 bits in a second by the architecture, as `util` of Triton's viewer has them
# (triton/profiler/specs.py of 3.8): wider ones are fewer by their width.
_MOST_OF_8_BITS: dict[int, Callable[[float, float], float]] = {  # of SMs and GHz
    80: lambda sms, ghz: 624e12,
    89: lambda sms, ghz: 330.3e12,
    90: lambda sms, ghz: 1513e12 * sms / 114 * ghz / 1.755,
    100: lambda sms, ghz: 16384e9 * sms * ghz,
}
MOST_DEPTH = 500
FORMATS = ("full", "file_function_line", "function_line", "file_function")


@dataclass
class MetricNode:
    """A frame and what was recorded in it."""

    name: str
    metrics: dict[str, float] = field(default_factory=dict)
    inner: list[MetricNode] = field(default_factory=list)
    sides: tuple[MetricNode, MetricNode] | None = None  # of a difference: its frames in both trees
    device: str = ""  # that ran it, as `HatchetFile.devices` has it
    facts: Mapping[str, float] = field(default_factory=dict)  # of that

    @property
    def is_kernel(self) -> bool:
        """Whether launches of its own were timed."""
        return self.metrics.get(COUNT, 0.0) > 0 and self.metrics.get(TIME, 0.0) > 0

    def total(self, metric: str) -> float:
        """The sum over the frame and all inside; NaN where none has it."""
        sums = [self.metrics.get(metric, math.nan), *(node.total(metric) for node in self.inner)]
        there = [value for value in sums if not math.isnan(value)]
        return sum(there) if there else math.nan

    def all(self) -> Iterator[MetricNode]:
        """The frame and all inside."""
        yield self
        for node in self.inner:
            yield from node.all()

    def recorded(self) -> set[str]:
        """The metrics of the frame and of all inside."""
        return set(self.metrics).union(*(node.recorded() for node in self.inner))


@dataclass(frozen=True, kw_only=True)
class HatchetFile:
    """A Hatchet file of Triton's Proton: its tree, and the facts of devices that are numbers
    (`arch`, `num_sms`, `clock_rate` and `memory_clock_rate` in kHz, `bus_width` in bits)."""

    name: str
    root: MetricNode
    devices: dict[str, dict[str, float]]  # by kind and number: "CUDA 0"


def of_run(tables: Tables) -> MetricNode:
    """Kernels, and the scopes inside of them, with times and counts."""
    root = MetricNode("ROOT", {TIME: 0.0, COUNT: 0.0})
    table = tables.stats(("kernel", "scope"), "dur_ns")
    for row in table.to_dict("records"):
        kernel = f"{row['kernel']} #{row['variant']}" if "variant" in row else str(row["kernel"])
        node = root
        for name in (kernel, *ScopePath(row["scope"]).parts):
            found = next((inner for inner in node.inner if inner.name == name), None)
            if found is None:
                found = MetricNode(name)
                node.inner.append(found)
            node = found
        node.metrics = {TIME: float(row["self"]), COUNT: float(row["count"])}
    return root


def read_hatchet(path: Path) -> HatchetFile:
    """A Hatchet file; raises ProtonError where it is none."""
    try:
        data = path.read_bytes()
        is_packed = path.suffix == HATCHET_MSGPACK
        return hatchet_of(unpacked(data) if is_packed else json.loads(data), path.stem)
    except (ValueError, KeyError, IndexError, TypeError, AttributeError) as error:
        raise ProtonError(f"{path}: is no Hatchet file: {error}") from None


def hatchet_of(content: list[Any], name: str) -> HatchetFile:
    """What the list of a Hatchet file says."""
    devices = {
        f"{kind} {number}": {key: float(value) for key, value in facts.items()
                             if _is_number(value) or str(value).isdigit()}
        for kind, all_ in (content[1] if len(content) > 1 else {}).items()
        for number, facts in all_.items()
    }  # fmt: skip
    return HatchetFile(name=name, root=_node(content[0], 0, devices), devices=devices)


def of_hatchet(path: Path) -> MetricNode:
    """The tree of a Hatchet file."""
    return read_hatchet(path).root


def is_hatchet(path: Path) -> bool:
    """Whether a file can be one: by its name, or JSON, and no .proton."""
    if path.suffix in (HATCHET, HATCHET_MSGPACK):
        return True
    with path.open("rb") as file:
        return file.read(64).lstrip().startswith(b"[")


def _node(entry: dict[str, Any], depth: int, devices: Mapping[str, _Facts]) -> MetricNode:
    if depth > MOST_DEPTH:
        raise ValueError(f"frames lie deeper than {MOST_DEPTH}")
    metrics = entry.get("metrics", {})
    numbers = {k: float(v) for k, v in metrics.items() if _is_number(v)}
    inner = [_node(child, depth + 1, devices) for child in entry.get("children", [])]
    device = f"{metrics.get('device_type', '')} {metrics.get('device_id', '')}".strip()
    name = demangled(str(entry["frame"]["name"]))
    return MetricNode(name, numbers, inner, device=device, facts=devices.get(device, {}))


def _is_number(value: object) -> bool:
    """Not those that are no number, or infinite, which sums and JSON would take on."""
    return isinstance(value, int | float) and not isinstance(value, bool) and math.isfinite(value)


def known_metrics(root: MetricNode) -> list[str]:
    """What can be shown of a tree: what was recorded, by its name without a unit, what derives from
    it, and each as a part of the whole, in percent."""
    recorded = _plain(root)
    there = set(recorded.values())
    names = [COUNT] if COUNT in there else []
    for time in TIMES:
        if time in recorded:
            names += [f"{time}/{unit}" for unit in TIME_UNITS]
            names += [f"avg_{time}/{unit}" for unit in TIME_UNITS if COUNT in there]
    if TIME in there:
        names += [f"{s}byte/s" for s in SCALES if BYTES in there]
        names += [f"{s}{rate}/s" for rate in _rates(there) for s in SCALES]
        names += [UTIL] if any(node.facts and _work(node) for node in root.all()) else []
    names += sorted(name for name in recorded if name != COUNT)
    return names + [f"{name}/{PERCENT}" for name in recorded]


def _work(node: MetricNode) -> dict[str, float]:
    """The work of a kernel that `util` counts."""
    return {name: node.metrics[name] for name in (BYTES, *FLOPS) if name in node.metrics}


def _utilization(node: MetricNode, time: str) -> float:
    """What `util` is of a kernel; NaN of other frames, and where no work was said."""
    work, took = _work(node), node.metrics.get(time)
    if not (node.facts and work and took):
        return math.nan
    seconds = {name: value / _most(name, node) for name, value in work.items()}
    moving = seconds.pop(BYTES, 0.0)
    return max(moving, sum(seconds.values())) * TIME_UNITS["s"] / took


def _most(metric: str, node: MetricNode) -> float:
    """What `util` takes the device of a kernel to do at most in a second; raises ProtonError where
    that is not known."""
    found, facts = 0.0, node.facts
    if node.device.startswith("CUDA") and metric == BYTES:
        found = most(BYTES, facts)
    elif node.device.startswith("CUDA"):
        of_8_bits = _MOST_OF_8_BITS.get(int(facts.get("arch", 0)))
        sms, ghz = facts.get("num_sms", 0.0), facts.get("clock_rate", 0.0) / 1e6
        found = of_8_bits(sms, ghz) * 8 / FLOPS[metric] if of_8_bits else 0.0
    if not found:
        known = ", ".join(map(str, _MOST_OF_8_BITS))
        rule = f"{UTIL} knows GPUs by CUDA, and operations of the architectures {known}"
        raise ProtonError(f"{rule}, not {metric} of {node.device}: ask for rates, as gbyte/s")
    return found


def _plain(root: MetricNode) -> dict[str, str]:
    """The recorded metrics by what Triton's viewer calls them: `time` of `Time (ns)`."""
    return {name.split("(")[0].strip().lower(): name for name in sorted(root.recorded())}


def _rates(there: Iterable[str]) -> dict[str, str]:
    """What rates of operations are called, and of which metric each is: `flop16` of `flops16`."""
    return {f"flop{n.removeprefix('flops')}": n for n in sorted(there) if n.startswith("flops")}


class Values:
    """The metrics of a tree's frames: a sum over a frame with all inside, a quotient of such sums,
    or a part of the whole; of a difference of two trees the difference of these."""

    def __init__(self, root: MetricNode) -> None:
        self.roots = root.sides or (root,)
        self.recorded = [_plain(tree) for tree in self.roots]

    def of(self, node: MetricNode, metric: str) -> float:
        """One metric of a frame."""
        if node.sides is None:
            return self._of(node, metric, 0)
        sides = [self._of(side, metric, n) for n, side in enumerate(node.sides)]
        if all(map(math.isnan, sides)):
            return math.nan
        first, second = (0.0 if math.isnan(value) else value for value in sides)
        return second - first

    def _of(self, node: MetricNode, metric: str, tree: int) -> float:
        recorded, (name, _, unit) = self.recorded[tree], metric.partition("/")
        time, of = recorded.get("time", TIME), name.removeprefix("avg_")
        if metric == UTIL:
            return _utilization(node, time)
        if of in TIMES and unit in TIME_UNITS:
            value = node.total(recorded.get(of, TIMES[of])) / TIME_UNITS[unit]
            return value / (node.total(COUNT) or math.nan) if of != name else value
        if unit == "s":
            scale = name[0] if name[0] in SCALES else ""
            rates = {"byte": BYTES, **_rates(recorded.values())}
            seconds = node.total(time) / TIME_UNITS["s"]
            rate = rates.get(name.removeprefix(scale), "")
            return node.total(rate) / SCALES[scale] / (seconds or math.nan)
        value = node.total(recorded.get(name, name))
        if unit != PERCENT:
            return value
        whole = self.roots[tree].total(recorded.get(name, name))
        return 100 * value / (whole or math.nan)


def checked_metrics(root: MetricNode, metrics: Sequence[str]) -> list[str]:
    """The metrics as they are called, whatever their case, with or without a unit in brackets;
    raises ProtonError where one is not known of a tree."""
    known = known_metrics(root)
    with_units = {recorded.lower(): plain for plain, recorded in _plain(root).items()}
    names = [with_units.get(name.lower(), name.lower()) for name in metrics]
    for name in names:
        if name not in known:
            hint = did_you_mean(name, known)
            raise ProtonError(f"metric must be one of {', '.join(known)}, got {name!r}{hint}")
    return names


def diff(first: MetricNode, second: MetricNode) -> MetricNode:
    """A tree of the frames of both, whose metrics are those of the second less those of the
    first."""
    names = dict.fromkeys(node.name for tree in (first, second) for node in tree.inner)
    none = MetricNode("")
    inner = []
    for name in names:
        pair = (next((n for n in t.inner if n.name == name), none) for t in (first, second))
        inner.append(replace(diff(*pair), name=name))
    metrics = dict.fromkeys(first.recorded() | second.recorded(), 0.0)  # their names alone
    return MetricNode(second.name or first.name, metrics, inner, (first, second))


def formatted(name: str, format: str) -> str:
    """A frame's name; Triton's are `file:line@function` where they come from Python."""
    found = re.fullmatch(r"(?s)(.*?):?(\d*)@(.*)", name)
    if found is None or format == "full":
        return name
    path, line, function = found.groups()
    path = path.rpartition("/")[2]
    parts = {
        "file_function_line": f"{path}:{function}@{line}",
        "function_line": f"{function}@{line}",
        "file_function": f"{path}:{function}",
    }
    return parts[format]
