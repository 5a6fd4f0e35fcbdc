"""Flame graphs: how time is divided over host scopes, the kernels that they launch, and scopes.

A frame is as wide as the self time of its scope and of all inside of it; what is alike is one
frame, whenever it ran. Time is that of all units together: of two warps that both load for 1 us
there are 2 us.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field

from proton.base.units import duration
from proton.trace.scope_path import ScopePath
from proton.viewer.pictures.picture import FONT, HOST, LAUNCH, Picture, Rectangle, colour
from proton.viewer.pictures.text import Line, bar, beginning, fitted
from proton.viewer.tables import Tables
from proton.viewer.tables.stats import Filter

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
    inner: dict[str, FlameNode] = field(default_factory=dict)

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
            "inner": [frame.numbers() for frame in self.by_time()],
        }


def flame(tables: Tables, where: Filter) -> FlameNode:
    """The graph of the chosen slices."""
    table = tables.stats(("launch", "kernel", "scope"), where=where)
    hosts = [ScopePath(path).parts if path else () for path in tables.launches["scope"]]
    names: dict[str, int] = {}  # the first scope of each name, whose colour timelines give it
    for number, scope in enumerate(tables.records.scopes):
        names.setdefault(scope.name, number)
    root = FlameNode(tables.name, HOST)
    for row in table.to_dict("records"):
        kernel = f"{row['kernel']} #{row['variant']}" if "variant" in row else str(row["kernel"])
        node = root
        for name in hosts[row["launch"]]:
            node = node.inside(name, HOST)
        node = node.inside(kernel, LAUNCH)
        for name in ScopePath(row["scope"]).parts:
            node = node.inside(name, colour(names.setdefault(name, len(names))))
        node.own += float(row["self"])
        node.count += int(row["count"])
    _sum(root)
    return root


def _sum(frame: FlameNode) -> float:
    """Fills in the time of a frame and of all inside."""
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
    return f"{100 * frame.time / max(root.time, 1):.1f} %"


def draw(root: FlameNode) -> Picture:
    """The graph as a picture, the root above."""
    frames = list(_walk(root))
    height = HEAD + ROW * (max(depth for _, _, depth in frames) + 1) + 6
    scopes = {f.fill: f.name for f, _, _ in reversed(frames) if f.fill not in (HOST, LAUNCH)}
    legend = [(HOST, "host"), (LAUNCH, "kernels"), *reversed(scopes.items())]
    picture = Picture(WIDTH, height, left=0, legend=legend)
    picture.write(4, 16, f"{root.name}: {duration(root.time)} in scopes", width=WIDTH, size=13)
    scale = WIDTH / max(root.time, 1)
    for frame, start, depth in frames:
        width = frame.time * scale
        if width < LEAST_PIXELS:
            continue
        x, y = start * scale, HEAD + depth * ROW
        title = (
            f"{frame.name}\n{duration(frame.time)}, {_share(frame, root)}; "
            f"self {duration(frame.own)}; {frame.count} slices"
        )
        picture.boxes.append(Rectangle(x, y, max(width - 0.6, 0.4), ROW - 1.5, frame.fill, title))
        if width > NAMED_PIXELS:
            picture.write(x + 3, y + FONT + 1, frame.name, width=width - 5)
    return picture


def draw_text(root: FlameNode, width: int) -> list[Line]:
    """The graph as lines: a frame a line, its bar below that of what is around it."""
    head = f"{root.name}: {duration(root.time)} in scopes"
    lines: list[Line] = [[(beginning(head, width), "")]]
    names = min(max((len(f.name) + depth for f, _, depth in _walk(root)), default=0), width // 3)
    room = width - names - 21
    for frame, start, depth in _walk(root):
        if not depth:
            continue
        before = round(room * start / max(root.time, 1))
        drawn = bar(frame.time / max(root.time, 1), room, "=" if depth == 1 else "#")
        label = fitted(" " * (depth - 1) + frame.name, names)
        text = f"{label} {duration(frame.time):>9} {_share(frame, root):>8} "
        lines.append([(text + " " * min(before, room - len(drawn)), ""), (drawn, frame.fill)])
    return lines
