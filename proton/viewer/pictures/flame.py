"""Flame graphs: how time is divided over host scopes, the kernels that they launch, and scopes.

A frame is as wide as the wall time of its scope, that of all inside of it included; what is alike
is one frame, whenever it ran. A launch takes its time as a whole, and a scope in it the part that
its slices are of the time of the units which recorded: of 10 us, in which each warp loads half of
the time, loads have 5 us. A GPU's launches run while the host goes on, so that all frames together
may take more than the run.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from proton.base.symbols import shortened
from proton.base.units import duration
from proton.trace.scope_path import SEPARATOR, ScopePath
from proton.viewer.pictures.picture import FONT, HOST, LAUNCH, Picture, Rectangle, colour
from proton.viewer.pictures.text import Line, bar, beginning, fitted
from proton.viewer.tables import Tables
from proton.viewer.tables.labels import kernel_labels
from proton.viewer.tables.recording_cost import not_on_record
from proton.viewer.tables.stats import Filter
from proton.viewer.tables.summary import wall_ns

WIDTH, ROW, HEAD = 1200, 18, 26  # pixels
LEAST_PIXELS, NAMED_PIXELS = 0.4, 30
DEEPEST = 64  # frames on each other


@dataclass
class FlameNode:
    """A node of the graph: its time in ns, that of what is inside included, how many slices, and
    its colour."""

    name: str
    fill: str
    time: float = 0
    own: float = 0
    count: int = 0
    wall: float = 0  # of the root alone: from the first begin to the last end
    missing: str = ""  # of the root alone: launches that are in no frame
    inner: dict[str, FlameNode] = field(default_factory=dict)

    @property
    def shown(self) -> str:
        """The name in pictures: a long one in its short form."""
        return shortened(self.name)

    def inside(self, name: str, fill: str) -> FlameNode:
        """The node of that name, which is there or is made."""
        return self.inner.setdefault(name, FlameNode(name, fill))

    def by_time(self) -> list[FlameNode]:
        """The frames inside, what takes longest first."""
        return sorted(self.inner.values(), key=lambda frame: -frame.time)

    def numbers(self) -> dict[str, object]:
        """The same for JSON, times in ns."""
        return {
            "name": self.name,
            "total_ns": round(self.time),
            "self_ns": round(self.own),
            "count": self.count,
            **({"wall_ns": round(self.wall)} if self.wall else {}),
            "inner": [frame.numbers() for frame in self.by_time()],
        }


def flame(tables: Tables, where: Filter) -> FlameNode:
    """The graph of the chosen slices; without a pattern also of what lies in no scope of them."""
    root = FlameNode(tables.name, HOST)
    _scopes(tables, where, root)
    if not (where.include or where.exclude):
        _launches(tables, where, root)
        _hosts(tables, where, root)
    _sum(root)
    root.wall, root.missing = wall_ns(tables, where), not_on_record(tables.kernels)
    return root


def _below(node: FlameNode, path: str) -> FlameNode:
    """The node of a host scope."""
    for name in ScopePath(path).parts:
        node = node.inside(name, HOST)
    return node


def _kernels(tables: Tables, root: FlameNode) -> Callable[[int], FlameNode]:
    """The node of a launch, by its number."""
    labels, launches = kernel_labels(tables.raw.kernels), tables.raw.launches
    return lambda n: _below(root, launches[n].path).inside(labels[launches[n].kernel], LAUNCH)


def _scopes(tables: Tables, where: Filter, root: FlameNode) -> None:
    """The scopes of launches: their parts of the units' time, of what the launch takes."""
    names: dict[str, int] = {}  # the first scope of each name, whose colour timelines give it
    for number, scope in enumerate(tables.records.scopes):
        names.setdefault(scope.name, number)
    tracks, launches, of_launch = tables.records.tracks, tables.launches, _kernels(tables, root)
    recorded = np.flatnonzero(tracks.kept > 0)
    units = np.bincount(tracks.launch[recorded], tables.residency.length(tracks.row[recorded]),
                        len(launches))  # fmt: skip
    scale = launches["dur_ns"].to_numpy(np.float64) / np.maximum(units, 1.0)
    is_whole = where.begins(launches["start_ns"].to_numpy())
    for row in tables.stats(("launch", "kernel", "scope"), where=where).to_dict("records"):
        kernel = node = of_launch(row["launch"])
        for name in ScopePath(row["scope"]).parts:
            node = node.inside(name, colour(names.setdefault(name, len(names))))
        own = float(row["self"]) * scale[row["launch"]]
        node.own += own
        node.count += int(row["count"])
        kernel.own -= own * bool(is_whole[row["launch"]])


def _launches(tables: Tables, where: Filter, root: FlameNode) -> None:
    """The launches as a whole; the host's part of them is none of its scope's own."""
    launches, of_launch = tables.launches, _kernels(tables, root)
    for number in np.flatnonzero(where.begins(launches["start_ns"].to_numpy())).tolist():
        raw, node = tables.raw.launches[number], of_launch(number)
        node.own += float(launches["dur_ns"].iloc[number])
        node.count += 1
        if raw.is_called:
            _below(root, raw.path).own -= raw.host_end - raw.host_start


def _hosts(tables: Tables, where: Filter, root: FlameNode) -> None:
    """Host scopes, and compilations in them; the time of one is none of the scope's own that is
    around it."""
    origin = tables.raw.origin_ns
    host = [s for s in tables.raw.host
            if s.kind == "host" or (s.kind == "compile" and SEPARATOR in s.path)]  # fmt: skip
    chosen = where.begins(np.array([s.start - origin for s in host], np.int64))
    for slice_ in itertools.compress(host, chosen):
        ns, path = slice_.end - slice_.start, slice_.path
        node = _below(root, path)
        node.own += ns
        node.count += 1
        _below(root, path.rpartition(SEPARATOR)[0]).own -= ns


def _sum(frame: FlameNode) -> float:
    """Fills in the time of a frame and of all inside. A launch that was under way when its scope
    ended leaves this no time of its own."""
    frame.own = max(frame.own, 0.0)
    frame.time = frame.own + sum(map(_sum, frame.inner.values()))
    return frame.time


def _walk(
    frame: FlameNode, start: float = 0, depth: int = 0
) -> Iterator[tuple[FlameNode, float, int]]:
    """Each frame, with the time before it on its level, and how deep it is."""
    yield frame, start, depth
    for inner in frame.by_time() if depth < DEEPEST else ():
        yield from _walk(inner, start, depth + 1)
        start += inner.time


def _share(frame: FlameNode, root: FlameNode) -> str:
    return f"{100 * frame.time / max(root.wall, 1):.1f} %"


def _heading(root: FlameNode) -> str:
    found = f"{root.name}: {duration(root.time)}, {_share(root, root)} of {duration(root.wall)}"
    return f"{found}, {root.missing}" if root.missing else found


def draw(root: FlameNode) -> Picture:
    """The graph as a picture, the root above."""
    frames = list(_walk(root))
    height = HEAD + ROW * (max(depth for _, _, depth in frames) + 1) + 6
    scopes = {f.fill: f.name for f, _, _ in reversed(frames) if f.fill not in (HOST, LAUNCH)}
    legend = [(HOST, "host"), (LAUNCH, "kernels"), *reversed(scopes.items())]
    picture = Picture(WIDTH, height, left=0, legend=legend)
    picture.write(4, 16, _heading(root), width=WIDTH, size=13)
    scale = WIDTH / max(root.time, 1)
    for frame, start, depth in frames:
        width = frame.time * scale
        if width < LEAST_PIXELS:
            continue
        x, y = start * scale, HEAD + depth * ROW
        title = (
            f"{frame.shown}\n{duration(frame.time)}, {_share(frame, root)}; "
            f"self {duration(frame.own)}; {frame.count} times"
        )
        picture.boxes.append(Rectangle(x, y, max(width - 0.6, 0.4), ROW - 1.5, frame.fill, title))
        if width > NAMED_PIXELS:
            picture.write(x + 3, y + FONT + 1, frame.shown, width=width - 5)
    return picture


def draw_text(root: FlameNode, width: int) -> list[Line]:
    """The graph as lines: a frame a line, its bar below that of what is around it."""
    lines: list[Line] = [[(beginning(_heading(root), width), "")]]
    names = min(max((len(f.shown) + depth for f, _, depth in _walk(root)), default=0), width // 3)
    room = width - names - 21
    for frame, start, depth in _walk(root):
        if not depth:
            continue
        before = round(room * start / max(root.time, 1))
        drawn = bar(frame.time / max(root.time, 1), room, "=" if depth == 1 else "#")
        label = fitted(" " * (depth - 1) + frame.shown, names)
        text = f"{label} {duration(frame.time):>9} {_share(frame, root):>8} "
        lines.append([(text + " " * min(before, room - len(drawn)), ""), (drawn, frame.fill)])
    return lines
