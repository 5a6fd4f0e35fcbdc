"""What the timeline's page computes, in JavaScript, against numpy: it runs in Node, on a document
that holds what is written to it and draws nothing."""

import itertools
import json
import re
import subprocess
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from faults import gpu, loop

from proton import Run
from proton.trace.scope_path import ScopePath
from proton.viewer.pictures import flame, heatmap
from proton.viewer.pictures.drawn_page import to_drawn_page
from proton.viewer.pictures.page import to_page
from proton.viewer.pictures.picture import PALETTE, fitting
from proton.viewer.pictures.resident import resident
from proton.viewer.pictures.selection import EVERYTHING, Selection
from proton.viewer.pictures.svg import to_svg
from proton.viewer.pictures.timeline import SliceKind, Timeline
from proton.viewer.tables.stats import Filter
from tests.pure.synthetic import pieces_run, random_run
from tests.trace_processor import node

DOCUMENT = """
const anything = () => new Proxy(function () {}, {
  get: (_, name) => name === "width" ? 10 : name === Symbol.toPrimitive ? () => 0 : anything(),
  set: () => true, apply: () => anything(),
});
class Element {
  constructor() { this.style = {}; this.children = []; this.parentElement = null; }
  append(...more) { this.children.push(...more); }
  prepend(...more) { this.children.unshift(...more); }
  replaceChildren(...all) { this.children = all; }
  addEventListener() {}
  getContext() { return anything(); }
  getBoundingClientRect() { return { width: 1000, height: 500 }; }
}
const byName = new Map();
const document = {
  documentElement: new Element(), createElement: () => new Element(),
  getElementById: name => {
    if (!byName.has(name)) byName.set(name, new Element());
    byName.get(name).parentElement = new Element();
    return byName.get(name);
  },
};
Object.assign(globalThis, {
  document, devicePixelRatio: 1, innerWidth: 1400, addEventListener: () => {},
  requestAnimationFrame: () => {},
  getComputedStyle: () => ({ getPropertyValue: () => "#000" }),
  matchMedia: () => ({ addEventListener: () => {} }), ResizeObserver: class { observe() {} },
});
"""


def answer(run: Run, expression: str, where: Selection = EVERYTHING) -> Any:
    """The value of an expression in a run's page, by JSON; `page` is what it has for scripts."""
    (script,) = re.findall(r"<script>(.*)</script>", to_page(Timeline(run, where)), re.DOTALL)
    ask = f"""
    const wait = () => globalThis.timeline
      ? process.stdout.write(JSON.stringify((page => {expression})(globalThis.timeline)))
      : setTimeout(wait, 5);
    wait();"""
    done = subprocess.run(
        [node(), "-"], input=DOCUMENT + script + ask, capture_output=True, text=True, timeout=60
    )
    assert not done.returncode, done.stderr
    return json.loads(done.stdout)


@pytest.mark.parametrize("seed", range(2))
def test_sums_of_an_area(seed: int) -> None:
    """Of all rows, and of a part of the time: numbers and clipped times by name."""
    run = Run(random_run(seed))
    timeline = Timeline(run)
    origin, end = timeline.span
    low, high = (end - origin) // 3, 2 * (end - origin) // 3
    found = answer(run, f"page.sums({{from: {low}, to: {high}, top: 0, bottom: 1e9}})")
    slices = timeline.slices
    start, stop = slices.start - origin, slices.end - origin
    inside = (start < high) & ((stop > low) | ((stop == start) & (start >= low)))
    assert inside.sum() == sum(entry["slices"] for entry in found)
    clipped = np.clip(np.minimum(stop, high) - np.maximum(start, low), 0, None)
    kinds = {"scope": SliceKind.SCOPE, "program": SliceKind.PROGRAM, "launch": SliceKind.LAUNCH}
    for what, kind in kinds.items():
        chosen = inside & (slices.kind == kind)
        own = [entry for entry in found if entry["what"] == what]
        assert sum(entry["slices"] for entry in own) == chosen.sum()
        assert sum(entry["inside"] for entry in own) == clipped[chosen].sum()
        longest = max((entry["longest"] for entry in own), default=0)
        assert longest == (stop - start)[chosen].max(initial=0)
    times = [entry["inside"] for entry in found]
    assert times == sorted(times, reverse=True)


def test_a_run_of_a_scope_has_its_slices_together() -> None:
    run = Run(pieces_run(0))
    found = answer(run, "Array.from(page.col.start, (_, i) => page.piecesOf(i))")
    starts = answer(run, "Array.from(page.col.start, start => start + page.data.origin)")
    timeline, visits = Timeline(run), Timeline(run).tables.records.visits
    slices = timeline.slices
    number = {
        int(start): int(visits.number[record])
        for start, record in zip(slices.start, slices.record, strict=True)
        if record >= 0
    }
    joined = [pieces for pieces in found if len(pieces) > 1]
    assert len(joined) == visits.joined.sum() > 20
    for pieces in joined:
        assert len({number[starts[i]] for i in pieces}) == 1


CODE = """#loc = loc("/src/k.py":4:3)
#loc1 = loc("/src/k.py":5:3)
module {
  %0 = "tt.load"() : () -> i32 loc(#loc1)
  %1 = "tt.dot"() : () -> i32 loc(#loc)
} loc(#loc)
"""
PYTHON = "\n\ndef k(x):\n    with scope('scores'):\n        x = load(x)\n\n    y = dot(x)\n"


def sourced() -> Run:
    """Runs of a scope in pieces at line 4, of another at line 7."""
    raw = pieces_run(1)
    table = [replace(s, file="/src/k.py", line=4 if s.name == "scores" else 7)
             for s in raw.kernels[0].scopes]  # fmt: skip
    raw.kernels[0] = replace(raw.kernels[0], scopes=tuple(table), code={"ttir": CODE})
    raw.sources = {"/src/k.py": PYTHON}
    return Run(raw)


def test_a_line_goes_to_its_slices_and_its_code() -> None:
    """Of a line that opens a block, also the code of what is inside."""
    run = sourced()
    found = answer(
        run,
        """(() => {
        const one = page.source.data.listings[0], level = page.source.data.levels[one.kernel][0];
        page.choose(4);
        return {
          lines: one.lines.map(line => line && line[0]), block: page.blockOf(one, 4),
          slices: page.slicesAt(one, [4]).map(i => page.col.start[i] + page.data.origin),
          code: [4, 7].map(
            n => page.codeOf(one, level, page.blockOf(one, n)).map(i => level[1][i])),
          hits: page.hits(), marked: page.source.code.map(row => row.className),
        }; })()""",
    )
    assert found["lines"] == [2, 3, 4, 5, 6, 7]
    assert found["block"] == [4, 5]
    own = run.slices_at(4, "k.py").sort_values("dur_ns", ascending=False, kind="stable")
    assert sorted(found["slices"]) == sorted(own["start_ns"])
    assert found["hits"] == len(own)
    load, dot = '  %0 = "tt.load"() : () -> i32', '  %1 = "tt.dot"() : () -> i32'
    assert found["code"] == [[load, dot, "}"], []]
    assert found["marked"] == ["", "on", "on", "on", ""]


def test_the_source_shows_the_time_of_its_lines() -> None:
    run = sourced()
    lines = answer(run, "page.source.data.listings[0].lines.filter(line => line.length > 3)")
    table = run.lines().set_index("line")
    assert {line[0] for line in lines} == set(table.index) == {4, 7}
    for number, _, _, visits, own, wait, share, scope, *_ in lines:
        row = table.loc[number]
        assert (visits, own, wait) == (row["visits"], row["self_ns"], row["wait_ns"])
        assert (share, scope) == (row["share"], row["scope"])


def test_the_source_has_the_time_of_what_the_page_shows() -> None:
    run = Run(gpu(loop()))
    of = "page.source.data.listings[0].lines.filter(line => line && line.length > 3)"
    for launch in (0, 3):
        shown = {line[0]: line[3:5] for line in answer(run, of, Selection(launches=[launch]))}
        table = run.lines("launch")
        table = table[table["launch"] == launch].set_index("line")
        assert shown == {n: [row["visits"], row["self_ns"]] for n, row in table.iterrows()}


def test_the_first_rows_are_some_with_slices_in_view() -> None:
    ask = """(() => {
      const [low, high] = page.data.span, to = part => low + part * (high - low);
      const scrolled = part => {
        [page.view.from, page.view.to, page.view.scroll] = [to(part), to(part + 0.05), 0];
        page.scrollToWork();
        return page.view.scroll;
      };
      return [scrolled(0.1), scrolled(0.9)];
    })()"""
    lengths = [5_000] * 39 + [20_000]  # the last SM goes on alone
    early, late = answer(Run(gpu(loop(), lengths=lengths, sms=40, launches=1)), ask)
    assert early == 0
    assert late > 500


def test_an_iteration_of_a_slice_ends_where_the_next_begins() -> None:
    run = sourced()
    found = answer(
        run,
        """Array.from(page.col.start, (_, i) => [page.col.start[i], page.label(i),
        page.col.iteration[i], page.col.program[i], page.iterationOf(i)])""",
    )
    slices = [entry for entry in found if entry[2] and entry[1] == "softmax"]
    assert slices
    for one, next_ in itertools.pairwise(slices):
        follows = next_[2] == one[2] + 1 and next_[3] == one[3]
        assert not follows or one[4] == [one[0], next_[0]]


def test_findings_open_their_slices() -> None:
    run = Run(gpu(loop(stages=2)))
    assert len(run.findings)
    found = answer(run, "page.data.findings.map(f => f[2].map(s => page.openedBy(s)))")
    starts = answer(run, "Array.from(page.col.start, start => start + page.data.origin)")
    kinds = answer(run, "Array.from(page.col.kind)")
    for finding, opened in zip(run.findings, found, strict=True):
        assert len(opened) == len(finding.slices)
        for shown, i in zip(finding.slices, opened, strict=True):
            assert kinds[i] == (SliceKind.LAUNCH if shown.unit < 0 else SliceKind.SCOPE)
            assert shown.unit < 0 or starts[i] == shown.start_ns


def test_the_legend_has_each_scope_once_by_its_time() -> None:
    run = Run(random_run(1))
    names = answer(run, "byId('legend').children.map(one => one.title)")
    slices = Timeline(run).slices
    times: dict[str, int] = {}
    for name, kind, start, end in zip(
        slices.name, slices.kind, slices.start, slices.end, strict=True
    ):
        if kind >= SliceKind.SCOPE:
            text = Timeline(run).names[name].text
            times[text] = times.get(text, 0) + int(end - start)
    assert sorted(names) == sorted(times)
    assert [times[name] for name in names] == sorted(times.values(), reverse=True)


def test_colours_differ() -> None:
    assert len(set(PALETTE)) == len(PALETTE) == 24


def test_pictures_are_pages_with_legends_that_zoom() -> None:
    """A click shows a box, or a sixteenth of what was shown; nothing leaves the stretch."""
    run = Run(random_run(5))
    root = flame.flame(run, Filter())
    drawn = flame.draw(root)
    page = to_drawn_page(drawn, "</script><b>")
    assert to_svg(drawn) in page
    assert "</script><b>" not in page
    paths = run.stats(by="scope").scope
    scopes = {name for path in paths for name in ScopePath(path).parts}
    assert {text for _, text in drawn.legend[2:]} == scopes
    for fill, text in drawn.legend:
        assert f'style="background:{fill}"></i>{text}</li>' in page
    heat = heatmap.draw(heatmap.heat(run, None, EVERYTHING, 8, 40))
    assert "</i>0 units</li>" in to_drawn_page(heat, "heat")
    places = heatmap.draw(resident(run, (), 8, 40))
    assert "</i>0 programs</li>" in to_drawn_page(places, "places")
    script = page.partition("<script>")[2].partition("</script>")[0]
    rng = np.random.default_rng(3)
    asked, wanted = [], []
    for _ in range(200):
        left, right = 0.0, 1200.0
        x, width, view = rng.uniform(0, 1100), rng.uniform(0.1, 100), rng.uniform(1, 1200)
        span = max(width, view / 16)
        begin = min(max(left, x + (width - span) / 2), right - span)
        at, size, stretch = rng.uniform(-50, 1250), rng.uniform(0, 300), rng.uniform(1, 400)
        ends = left + (np.array([at, at + size]) - begin) * (right - left) / stretch
        low, high = max(ends[0], left), min(ends[1], right)
        asked.append(
            [[x, width, view, left, right], [at, size, begin, begin + stretch, left, right]]
        )
        wanted.append([begin, begin + span, low, max(high - low, 0)])
    tail = (
        "for (const [a, z] of %s) console.log(JSON.stringify([...around(...a), ...zoomed(...z)]));"
    )
    done = subprocess.run(
        [node(), "-e", script + tail % json.dumps(asked)],
        capture_output=True,
        text=True,
        check=True,
    )
    found = [json.loads(line) for line in done.stdout.splitlines()]
    np.testing.assert_allclose(found, wanted, rtol=1e-9, atol=1e-9)
    names = ["load", "a name that is long", "x"]
    tail = "console.log(JSON.stringify(%s.map(([n, w]) => fitting(n, w))))"
    pairs = [[name, width] for name in names for width in (0, 10, 21, 40, 500)]
    done = subprocess.run(
        [node(), "-e", script + tail % json.dumps(pairs)],
        capture_output=True,
        text=True,
        check=True,
    )
    assert json.loads(done.stdout) == [fitting(name, width) for name, width in pairs]
