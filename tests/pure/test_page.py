"""What the timeline's page computes, in JavaScript, against numpy: it runs in Node, on a document
that holds what is written to it and draws nothing."""

import json
import re
import subprocess
from typing import Any

import numpy as np
import pytest

from proton import Run
from proton.viewer.pictures.page import to_page
from proton.viewer.pictures.picture import PALETTE
from proton.viewer.pictures.timeline import SliceKind, Timeline
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
  replaceChildren(...all) { this.children = all; }
  addEventListener() {}
  getContext() { return anything(); }
  getBoundingClientRect() { return { width: 1000, height: 500 }; }
}
const byName = new Map(), made = () => ({ parentElement: new Element() });
const document = {
  documentElement: new Element(), createElement: () => new Element(),
  getElementById: name => {
    if (!byName.has(name)) byName.set(name, Object.assign(new Element(), made()));
    return byName.get(name);
  },
};
Object.assign(globalThis, {
  document, devicePixelRatio: 1, addEventListener: () => {}, requestAnimationFrame: () => {},
  getComputedStyle: () => ({ getPropertyValue: () => "#000" }),
  matchMedia: () => ({ addEventListener: () => {} }), ResizeObserver: class { observe() {} },
});
"""


def answer(run: Run, expression: str) -> Any:
    """The value of an expression in a run's page, by JSON; `page` is what it has for scripts."""
    (script,) = re.findall(r"<script>(.*)</script>", to_page(Timeline(run)), re.DOTALL)
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
