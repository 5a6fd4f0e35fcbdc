"""Pictures of a run, against the tables and against counting by hand."""

import base64
import itertools
import json
import random
import re
import xml.etree.ElementTree as ElementTree
import zlib
from collections import Counter
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import synthetic
from synthetic import (
    ORIGIN_NS,
    Record,
    Written,
    gpu_run,
    kernel,
    pack_launch,
    pieces_run,
    random_run,
    scopes,
    ticks,
)

from proton.base.errors import ProtonError
from proton.trace.merge import merge
from proton.trace.model import HostSlice, RawRun, Scope
from proton.viewer import Run
from proton.viewer.pictures import flame, heatmap, hist, notebook
from proton.viewer.pictures.cells import INSTANT, cells
from proton.viewer.pictures.page import to_page
from proton.viewer.pictures.picture import MARK, colour
from proton.viewer.pictures.resident import resident
from proton.viewer.pictures.selection import EVERYTHING, Selection
from proton.viewer.pictures.svg import to_svg
from proton.viewer.pictures.timeline import SliceKind, Timeline
from proton.viewer.pictures.timeline_picture import LEFT, LINK, ROW, TICK, draw
from proton.viewer.tables.occupancy import occupancy
from proton.viewer.tables.stats import Filter

SEED = random.randrange(1 << 30)


@pytest.fixture(params=["nested", "crossing"])
def raw(request: pytest.FixtureRequest) -> RawRun:
    print(f"seed {SEED}")
    return gpu_run(SEED, mixed=True, crossing=request.param == "crossing")


def spans(run: Run) -> Counter[tuple[str, int, int]]:
    """Name, start and duration of all scopes of kernels."""
    frame = run.frame[run.frame["kind"] == "scope"]
    return Counter(zip(frame["name"], frame["start_ns"], frame["dur_ns"], strict=True))


def test_a_timeline_has_every_slice_once_and_rows_never_overlap(raw: RawRun) -> None:
    run = Run(raw)
    timeline = Timeline(run)
    slices = timeline.slices
    scopes = np.flatnonzero(slices.kind == SliceKind.SCOPE)
    found = Counter(
        (timeline.label(i), int(slices.start[i]), int(slices.end[i] - slices.start[i]))
        for i in scopes.tolist()
    )
    assert found == spans(run)
    counts = Counter(slices.kind.tolist())
    assert counts[SliceKind.MARK] == run.totals.marks
    assert counts[SliceKind.PROGRAM] == len(run.programs)
    assert counts[SliceKind.LAUNCH] == run.totals.launches
    for _, rows in itertools.groupby(range(len(timeline)), lambda i: timeline.row[i]):
        for one, other in itertools.pairwise(rows):
            assert slices.end[one] <= slices.start[other]


def test_a_selection_is_what_pandas_selects(raw: RawRun) -> None:
    run = Run(raw)
    frame = run.frame[run.frame["kind"] == "scope"]
    middle = int(frame["start_ns"].median())
    end = frame["start_ns"] + frame["dur_ns"]
    for where, chosen in (
        (Selection(kernel="^att"), frame["kernel"] == "attend"),
        (Selection(scope="slice [01]"), frame["scope"].str.contains("slice [01]")),
        (
            Selection(sms=[0, 2], warps=[0, 4]),
            frame["sm"].isin([0, 2]) & frame["warp"].isin([0, 4]),
        ),
        (Selection(launches=[1, 5]), frame["launch"].isin([1, 5])),
        (Selection(start_ns=middle), end >= middle),
        (Selection(end_ns=middle), frame["start_ns"] < middle),
    ):
        slices = Timeline(run, where).slices
        own = slices.start[slices.kind == SliceKind.SCOPE]
        assert sorted(own.tolist()) == sorted(frame["start_ns"][chosen])
    with pytest.raises(ProtonError, match="is no regular expression"):
        Timeline(run, Selection(kernel="("))
    with pytest.raises(ProtonError, match="start must be before end"):
        Selection(start_ns=5, end_ns=5)


def test_cells_have_the_time_that_counting_gives() -> None:
    draw_ = np.random.default_rng(SEED)
    start = draw_.integers(-50, 1000, 300)
    end = start + draw_.integers(0, 200, 300) * draw_.integers(0, 2, 300)
    span, columns = (17, 913), 37
    found = np.zeros((300, columns))
    cut = cells(start, end, span, columns)
    np.add.at(found, (cut.index, cut.column), cut.ns)
    edges = np.linspace(*span, columns + 1)
    for i in range(300):
        low, high = np.maximum(edges[:-1], start[i]), np.minimum(edges[1:], end[i])
        expected = np.maximum(high - low, 0)
        assert np.abs(found[i] - expected).max() <= INSTANT + 1e-9
        if start[i] <= span[1] and end[i] >= span[0]:
            assert found[i].sum() > 0


def unpacked(page: str) -> tuple[dict[str, object], dict[str, np.ndarray]]:
    """What a page has packed, read as its script does."""
    data = json.loads(re.search(r"const data = (\{.*\});\n", page)[1])  # type: ignore[index]
    types = {"Uint8Array": "u1", "Uint16Array": "<u2", "Uint32Array": "<u4", "Float64Array": "<f8",
             "BigUint64Array": "<u8"}  # fmt: skip
    columns = {}
    for name, (type_, text) in data["columns"].items():
        planes = np.frombuffer(zlib.decompress(base64.b64decode(text)), np.uint8)
        size = np.dtype(types[type_]).itemsize
        columns[name] = planes.reshape(size, -1).T.copy().view(types[type_]).ravel()
    return data, columns


def test_a_page_has_the_run_and_needs_no_network(raw: RawRun) -> None:
    raw.name = "</script><b>&"
    run = Run(raw)
    page = to_page(Timeline(run))
    assert not re.search(r"https?://|src=|@import|<link", page)
    assert page.count("</script>") == 1
    data, column = unpacked(page)
    assert data["name"] == raw.name
    scopes = np.flatnonzero(column["kind"] == SliceKind.SCOPE)
    names = [data["names"][n][0] for n in column["name"][scopes].tolist()]  # type: ignore[index]
    start = column["start"][scopes].astype(np.int64) + data["origin"]
    assert Counter(zip(names, start, column["dur"][scopes], strict=True)) == spans(run)
    frame = run.frame[run.frame["kind"] == "scope"]
    assert sorted(column["iteration"][scopes].astype(np.int64) - 1) == sorted(frame["iteration"])
    values = [p["value1"] for p in frame["payload"] if p and "value1" in p]
    packed = column["payload1"].view(np.float64)
    assert not set(values) - set(packed.tolist())
    assert sum(data["rows"]) == column["start"].size  # type: ignore[arg-type]


def test_an_svg_is_xml_and_has_no_more_boxes_than_pixels(raw: RawRun) -> None:
    raw.name = "\0]]><x>&'\ud800"
    timeline = Timeline(Run(raw))
    picture = draw(timeline, 400)
    root = ElementTree.fromstring(to_svg(picture).encode())
    assert len(root.findall("{*}rect")) == len(picture.boxes) + 1
    assert all(box.x + box.width <= picture.width + 2 for box in picture.boxes)
    assert len(picture.boxes) <= 2 * picture.width * int(timeline.heights.sum())


def test_scopes_of_one_name_have_one_colour_and_marks_hide_none() -> None:
    """... in all kernels and variants; of many marks in a pixel there is one tick."""
    owners = [kernel(name=name, table=scopes(2, marks=1)) for name in ("a", "a", "b")]
    spans = [Record(ticks(1000 * k), ticks(1000 * k + 900), k % 2) for k in range(100)]
    marks = [Record(ticks(20 * k), ticks(20 * k), 2, kind=1) for k in range(4000)]
    launches = []
    for number, owner in enumerate(owners):
        records = sorted([*spans, *marks], key=lambda record: record.end)
        launch = pack_launch(owner, (1, 1, 1), len(records), [Written([records])])
        launch.kernel = number
        launches.append(launch)
    timeline = Timeline(Run(synthetic.run(owners, launches)), Selection(start_ns=0))
    assert Counter(timeline.slices.kind.tolist())[SliceKind.MARK] == 3 * len(marks)
    width = 500
    picture = draw(timeline, width)
    ticks_of_marks = [box for box in picture.boxes if box.fill == MARK]
    assert 0 < len(ticks_of_marks) <= width * int(timeline.heights.sum())
    assert {box.height for box in ticks_of_marks} == {TICK}
    legend = [label.text for label in picture.labels if label.y > ticks_of_marks[-1].y + ROW]
    assert sorted(legend) == sorted({name.text for name in timeline.names if "slice" in name.text})


def test_speedscope_profiles_nest_and_have_every_slice(raw: RawRun, tmp_path: Path) -> None:
    run = Run(raw)
    saved = run.save(tmp_path / "a.speedscope.json")
    content = json.loads(saved.read_text())
    names = [frame["name"] for frame in content["shared"]["frames"]]
    found: Counter[tuple[str, int, int]] = Counter()
    for profile in content["profiles"]:
        open_, before = [], profile["startValue"]
        for event in profile["events"]:
            assert before <= event["at"] <= profile["endValue"]
            before = event["at"]
            if event["type"] == "O":
                open_.append(event)
            else:
                opened = open_.pop()
                assert opened["frame"] == event["frame"]
                name = names[event["frame"]]
                found[name, opened["at"], event["at"] - opened["at"]] += 1
        assert not open_
    assert spans(run) <= found


def test_a_histogram_has_few_bins_around_all_values(rng: np.random.Generator) -> None:
    for low in (0, 1, 120, 3_000, 10**6):
        for spread in (0, 1, 13, 17 * max(low, 1), 1_000 * max(low, 1)):
            values = low + np.append(rng.integers(0, spread + 1, 50), (0, spread)).astype(float)
            edges = hist.edges(values)
            assert edges[0] <= values.min()
            assert values.max() < edges[-1]
            assert 1 <= edges.size - 1 <= 3 * hist.BINS
            assert np.histogram(values, edges)[0].sum() == values.size


def _checked(node: flame.FlameNode) -> float:
    """The time of a frame by those inside; none is negative."""
    assert node.own >= 0
    return node.own + sum(map(_checked, node.inner.values()))


def test_a_flame_has_shares_of_wall_time() -> None:
    """Of a launch of 600 ns, for which both units load half of the time, loads are 300 ns; a host
    scope of 1000 ns around it has 400 ns of its own."""
    owner = kernel(units=2, table=(Scope(name="load", path="load"),))
    units = [[Record(ticks(100), ticks(400))], [Record(ticks(350), ticks(650))]]
    written = Written(units, clock=(ticks(100), ticks(700)))
    times = ORIGIN_NS + 100, ORIGIN_NS + 700
    launch = pack_launch(owner, (1, 1, 1), 4, [written], host=times, path="model")
    model = HostSlice(name="model", path="model", thread=1, start=ORIGIN_NS, end=ORIGIN_NS + 1000)
    raw = synthetic.run([owner], [launch], [model])
    raw.clock = replace(raw.clock, slice_cost_ns=0.0, edge_cost_ns=0.0)
    root = flame.flame(Run(raw), Filter())
    model_node = root.inner["model"]
    add = model_node.inner["add"]
    assert (root.wall, root.time, root.own) == (1000, 1000, 0)
    assert (model_node.own, add.time, add.own) == (400, 600, 300)
    assert (add.inner["load"].own, add.inner["load"].count) == (300, 2)
    assert "60.0 %" in "".join(text for line in flame.draw_text(root, 80) for text, _ in line)
    chosen = flame.flame(Run(raw), Filter(include="load")).inner["model"].inner["add"]
    assert (chosen.time, chosen.own) == (300, 0)
    assert flame.flame(Run(raw), Filter(start_ns=2000)).time == 0


def test_shares_of_wall_say_which_launches_are_in_none() -> None:
    raw, missing = random_run(21), "without launches that every_launch left out"

    def heading() -> str:
        return flame.draw_text(flame.flame(Run(raw), Filter()), 200)[0][0][0]

    assert "wall" not in Run(raw).summary().facts
    assert "without" not in heading()
    options = {**raw.kernels[0].options, "every_launch": 10}
    raw.kernels[0] = replace(raw.kernels[0], options=options)
    assert Run(raw).summary().facts["wall"] == missing
    assert heading().endswith(missing)


def test_flames_heats_and_histograms_have_all_of_the_time(raw: RawRun) -> None:
    run = Run(raw)
    root = flame.flame(run, Filter())
    assert root.time == pytest.approx(_checked(root))
    host = run.launches["scope"]
    for path in {path for path in host if path}:
        node = root
        for name in path.split("/"):
            node = node.inner[name]
        below = [of == path or of.startswith(f"{path}/") for of in host]
        taken = run.launches["dur_ns"][below].sum()
        assert node.time >= taken * 0.999, "a host scope has the time of all that it launches"
    for found in hist.histograms(run, EVERYTHING, 0):
        assert found.count.sum() == found.values.size
        assert found.edges[0] <= found.values.min()
        assert found.values.max() < found.edges[-1]
    counts = sum(h.values.size for h in hist.histograms(run, EVERYTHING, 0))
    assert counts == run.totals.slices
    where = Selection(kernel="reduce|attend")
    found_heat = heatmap.heat(run, heatmap.By.SM, where, 1000, 50)
    width = (found_heat.span[1] - found_heat.span[0]) / 50
    frame = run.frame[
        (run.frame["kind"] == "scope") & run.frame["kernel"].isin(["reduce", "attend"])
    ]
    busy = 0
    for _, rows in frame.groupby(["launch", "program", "unit"]):
        times = set[int]()
        for start, dur in zip(rows["start_ns"], rows["dur_ns"], strict=True):
            times.update(range(start, start + dur))
        busy += len(times)
    assert found_heat.value.sum() * width == pytest.approx(busy, abs=1)
    programs = heatmap.heat(run, heatmap.By.PROGRAM, EVERYTHING, 1000, 50)
    assert programs.value.any(axis=1).all(), "a program that did not run in the view is no row"


def test_occupancy_is_what_counting_gives(raw: RawRun) -> None:
    run = Run(raw)
    programs = run.programs
    table = occupancy(run).set_index("launch")
    assert set(table.index) == set(programs["launch"])
    for launch, rows in programs.groupby("launch"):
        end = rows["start_ns"] + rows["dur_ns"]
        place = rows["sm"].where(rows["device"] >= 0, rows["thread"])
        length = max(end.max() - rows["start_ns"].min(), 1)
        found = table.loc[launch]
        assert found["places"] == place.nunique()
        most = 1
        for _, index in rows.groupby(place).groups.items():
            for at in rows["start_ns"][index]:
                inside = (rows["start_ns"][index] <= at) & (end[index] > at)
                most = max(most, int(inside.sum()))
        assert found["most"] == most
        assert found["mean"] == pytest.approx(rows["dur_ns"].sum() / length / place.nunique())
        last = end.groupby(place).max().min()
        assert found["tail"] == pytest.approx(100 * (end.max() - last) / length)
        assert found["imbalance"] >= 1 - 1e-12
    for launches in (table.index, [table["dur_ns"].idxmax()], []):
        shown = launches if len(launches) else [table["dur_ns"].idxmax()]
        heat = resident(run, tuple(launches), 1000, 40)
        width = (heat.span[1] - heat.span[0]) / 40
        of_them = programs["dur_ns"][programs["launch"].isin(shown)].sum()
        assert heat.value.sum() * width == pytest.approx(of_them, abs=20)


def test_payload_values_are_columns(raw: RawRun) -> None:
    run = Run(raw)
    for table in (run.frame, run.marks):
        for name in ("value0", "value1"):
            dicts = [(p or {}).get(name) for p in table["payload"]]
            column = table[f"payload.{name}"]
            assert [None if missing else v for v, missing in zip(column, column.isna())] == dicts  # noqa: B905
    by_dict = run.stats("payload.value0", "dur_ns")
    grouped = run.frame[run.frame["kind"] == "scope"].groupby("payload.value0")["dur_ns"].count()
    assert dict(zip(by_dict["payload.value0"], by_dict["count"], strict=True)) == grouped.to_dict()


def test_a_run_and_its_summary_show_themselves(
    raw: RawRun, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw.name = "<img src=x>"
    run = Run(raw)
    for shown in (run._repr_html_(), run.summary()._repr_html_()):
        assert "<img" not in shown
        assert "records lost" in shown
        assert "attend" in shown
    assert "<iframe" in run._repr_html_()
    monkeypatch.setattr(notebook, "MOST_SLICES", 3)
    assert "<svg" in run._repr_html_()
    assert "slices: run.save" in run._repr_html_()


def test_merged_runs_are_on_one_axis() -> None:
    first, second = gpu_run(SEED, mixed=True), gpu_run(SEED + 1, mixed=True)
    other_boot = gpu_run(SEED + 2)
    other_boot.origin_ns += 1 << 40  # the same moments by another monotonic clock
    for gpu in other_boot.gpus:
        gpu.host_ns.__iadd__(1 << 40)
    for launch in other_boot.launches:
        launch.host_start += 1 << 40
        launch.host_end += 1 << 40
    runs = [first, second, other_boot]
    whole = Run(merge(runs, ["a", "b", "c"]))
    together = Counter[tuple[str, int, int]]()
    for run in runs:
        together += spans(Run(run))
    assert spans(whole) == together
    assert sorted(gpu.device for gpu in whole.raw.gpus) == [0, 3, 4, 7, 8, 11]
    threads = set(whole.programs["thread"][whole.programs["device"] < 0])
    assert threads == {0, 1, 1000, 1001}
    third = random_run(SEED)
    third.origin_ns += 1 << 40
    with pytest.raises(ProtonError, match="several machines"):
        merge([first, third], ["a", "c"])


def test_a_thin_line_joins_the_pieces_of_a_run_of_a_scope() -> None:
    whole = Run(pieces_run(7, programs=1))
    frame = whole.frame[(whole.frame["kind"] == "scope") & (whole.frame["scope"] == "scores")]
    gaps = []
    for _, pieces in frame.sort_values("start_ns").groupby("visit"):
        ends = (pieces["start_ns"] + pieces["dur_ns"]).tolist()
        gaps += [b - a for a, b in zip(ends[:-1], pieces["start_ns"].tolist()[1:], strict=True)]
    timeline = Timeline(whole, Selection(start_ns=0, end_ns=20_000))
    lines = [box for box in draw(timeline, 30_000).boxes if box.height == LINK]
    assert len(lines) == len(gaps) == 24 + 2
    scale = (30_000 - LEFT) / (timeline.view[1] - timeline.view[0])
    widths = sorted(line.width for line in lines)
    assert widths == pytest.approx(sorted(gap * scale for gap in gaps), abs=1e-6)
    assert {line.fill for line in lines} == {colour(timeline.names[0].number)}
