"""What a timeline shows first: the first launches, in Perfetto's terms and in our own pictures."""

import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
from synthetic import ORIGIN_NS, Record, Written, gpu_run, kernel, pack_launch, run, ticks

from proton.base.units import moment
from proton.trace.model import HostSlice, Launch, RawRun
from proton.viewer import Run
from proton.viewer.pictures.page import to_page
from proton.viewer.pictures.selection import Selection
from proton.viewer.pictures.timeline import Timeline
from proton.viewer.pictures.timeline_picture import draw
from proton.viewer.pictures.timeline_text import draw_text
from proton.viewer.tables.first_view import first_launch, first_view, median_iteration
from proton.viewer.tables.labels import host_thread_names
from tests.trace_processor import TraceProcessor

US, MS = 1000, 1_000_000
MAIN, OTHER = 140472578587520, 139637976729344  # idents as pthreads have them


def compiled(name: str, start: int, end: int, thread: int = MAIN) -> HostSlice:
    times = {"start": ORIGIN_NS + start, "end": ORIGIN_NS + end}
    return HostSlice(name=f"compile {name}", path="", thread=thread, kind="compile", **times)


def launched(start: int, end: int, number: int = 0) -> Launch:
    owner = KERNELS[number]
    times = (ORIGIN_NS + start, ORIGIN_NS + end)
    programs, size = ([], 0) if owner is PLAIN else ([Written([[]])], 8)
    made = pack_launch(owner, (1, 1, 1), size, programs, host=times, thread=MAIN)
    made.kernel = number
    return made


PLAIN = replace(kernel(name="copy"), strategy=None, scopes=())
KERNELS = [kernel(), PLAIN, kernel(name="scale")]


def raw_of(*launches: Launch, host: tuple[HostSlice, ...] = ()) -> RawRun:
    return run(KERNELS, list(launches), list(host))


def test_the_view_is_the_median_launch_of_the_kernel_that_takes_most_time() -> None:
    build = compiled("add", 0, 790 * MS)
    cold = launched(800 * MS, 809 * MS)
    warm = [launched(at * MS, at * MS + length * US) for at, length in
            ((810, 400), (820, 440), (830, 420), (840, 500))]  # fmt: skip
    other = [launched(900 * MS, 999 * MS, number=1)]  # longer, and left no records
    scale = [launched(at * MS, (at + 1) * MS, number=2) for at in (890, 892, 894)]
    for launches, start, length in (
        ([cold], 800 * MS, 9 * MS),
        ([cold, warm[0]], 810 * MS, 400 * US),  # of two the shorter
        ([cold, *warm], 820 * MS, 440 * US),
        ([*other, cold, *warm], 820 * MS, 440 * US),
        (other, 900 * MS, 99 * MS),
        ([cold, *warm, *scale], 892 * MS, MS),  # the cold launch does not count as one
    ):
        view = first_view(Run(raw_of(*launches, host=(build,))))
        margin = length // 20
        assert view == (start - margin, start + length + margin)
    assert first_view(Run(raw_of(host=(build,)))) is None
    seen = HostSlice(name="gemm", path="", thread=7, kind="kernel", device=0,
                     start=ORIGIN_NS + 20 * MS, end=ORIGIN_NS + 40 * MS)  # fmt: skip
    assert first_view(Run(raw_of(host=(build, seen)))) == (19 * MS, 41 * MS)
    later = replace(seen, start=seen.start + 800 * MS, end=seen.end + 800 * MS)
    assert first_view(Run(raw_of(warm[0], host=(build, seen, later)))) == (
        810 * MS - 20 * US,
        810 * MS + 420 * US,
    )


def test_of_several_gpus_the_first_one_is_shown() -> None:
    lengths = (400, 420, 440, 460, 480)
    starts = [10 * MS * n for n in range(1, 6)]
    whole = Run(raw_of(*(launched(at, at + length * US) for at, length in
                         zip(starts, lengths, strict=True))))  # fmt: skip
    assert first_launch(whole) == 2
    whole.launches["device"] = [0, 1, 1, 0, 0]
    assert first_launch(whole) == 3


def test_an_iteration_is_wide_enough_to_be_seen() -> None:
    """A long loop is shown around its median iteration, a short one as a whole."""
    for trips, is_part in ((8, False), (400, True)):
        lengths = [100 + 7 * ((5 * n) % 11) for n in range(trips)]
        starts = np.cumsum([0, *lengths]) + 1000
        records = [
            Record(ticks(int(a)), ticks(int(a) + 40), 0, 0, n)
            for n, a in enumerate(starts[:-1].tolist())
        ]
        owner = kernel()
        times = (ORIGIN_NS + 900, ORIGIN_NS + 100 + int(starts[-1]))
        packed = pack_launch(owner, (1, 1, 1), trips, [Written([records])], host=times)
        raw = run([owner], [packed])
        whole = Run(raw)
        found = median_iteration(whole, 0)
        assert found is not None
        between = sorted(np.diff(starts[:-1]).tolist())
        assert found[1] - found[0] == between[(len(between) - 1) // 2]
        view, launch = first_view(whole), whole.launches.loc[0]
        assert view is not None
        assert (view[1] - view[0] < launch["dur_ns"]) == is_part
        assert view[0] <= found[0] < found[1] <= view[1]
        if is_part:
            assert (found[1] - found[0]) * 11 >= view[1] - view[0]
    assert median_iteration(Run(raw_of(launched(0, MS))), 0) is None


@pytest.mark.parametrize("seed", range(3))
def test_the_terminal_has_the_first_rows_of_what_is_in_view(seed: int) -> None:
    """However few they are, and where nothing of these is in view."""
    timeline = Timeline(Run(gpu_run(seed, mixed=True, crossing=True)))
    whole, *some = (
        ["".join(text for text, _ in line).rstrip() for line in draw_text(timeline, 80, rows)]
        for rows in (0, 1, 4, 40, 1000)
    )
    first = next(n for n, line in enumerate(whole) if " us " in line and line.startswith(" ")) + 1
    end = whole.index("")
    assert "[" in "".join(whole[first:end])
    for rows, lines in zip((1, 4, 40, 1000), some, strict=True):
        last = min(first + rows, end)
        assert lines[:last] == whole[:last]
        assert lines[last].startswith(f"and {end - last} more rows" if last < end else "")


def test_every_picture_counts_from_the_zero_of_start() -> None:
    """The axis, what is said of a slice, and `--start` have one zero, the run's origin; times have
    the digits that tell neighbours apart."""
    timeline = Timeline(Run(raw_of(launched(800 * MS, 802 * MS), launched(900 * MS, 901 * MS))))
    assert timeline.view == (900 * MS - 50 * US, 901 * MS)
    lines = ["".join(text for text, _ in line) for line in draw_text(timeline, 80, 0)]
    (axis,) = [line for line in lines if "899.95 ms" in line]
    assert axis.endswith("901.00 ms")
    picture = draw(timeline)
    assert [b.title for b in picture.boxes if b.title.endswith("1 ms at 900.000 ms")]
    assert {"900.0 ms", "901.0 ms"} <= {label.text for label in picture.labels}
    later = Timeline(timeline.tables, Selection(start_ns=900 * MS))
    assert later.view[0] == 900 * MS
    assert f'"origin": {later.view[0]}' in to_page(later)
    for ns, step, text in (
        (0, 1, "0 ns"),
        (813_234_100, 100, "813.2341 ms"),
        (-1500, 10, "-1.50 us"),
    ):
        assert moment(ns, step) == text


def test_perfetto_knows_the_view_and_drops_nothing(tmp_path: Path) -> None:
    """By the metadata that the UI takes its first view from."""
    first = launched(800 * MS, 802 * MS)
    host = (compiled("add", 0, 790 * MS),)
    whole = Run(raw_of(first, launched(2000 * MS, 2001 * MS), host=host))
    with TraceProcessor(whole.save(tmp_path / "run.pftrace")) as processor:
        found = processor.query("select name, int_value as ns from metadata where name glob '*_ns'")
        slices = processor.query("select name from slice where dur > 0")
        assert processor.complaints() == []
        tracks = processor.query(
            "select t.name, above.name as parent from slice s join track t on s.track_id = t.id"
            " join track above on t.parent_id = above.id where s.name = 'compile add'"
        )
    assert {row["name"]: row["ns"] - ORIGIN_NS for row in found} == {
        "all_data_source_started_ns": 1999 * MS + 950 * US,
        "tracing_disabled_ns": 2001 * MS + 50 * US,
    }
    assert tracks == [{"name": "compilations", "parent": "host thread 0"}]  # the UI folds it
    assert sorted(row["name"] for row in slices) == ["add", "add", "compile add"]
    with TraceProcessor(Run(raw_of(host=host)).save(tmp_path / "host.pftrace")) as processor:
        assert processor.query("select 1 from metadata where name = 'tracing_disabled_ns'") == []


def test_pictures_show_it_and_say_so_unless_something_was_asked_for() -> None:
    host = (compiled("add", 0, 790 * MS),)
    whole = Run(raw_of(launched(800 * MS, 802 * MS), host=host))
    timeline = Timeline(whole)
    assert timeline.view == (799 * MS + 900 * US, 802 * MS)
    assert timeline.span == (0, 802 * MS)
    assert "here 2.1 ms of launch 0, its kernel's median" in timeline.heading
    lines = "\n".join("".join(text for text, _ in line) for line in draw_text(timeline, 80, 0))
    assert "[add " in lines
    assert "[compile" not in lines
    assert any(box.width > 900 and box.title.startswith("add") for box in draw(timeline).boxes)
    assert f'"view": [{799 * MS + 900 * US}, {802 * MS}]' in to_page(timeline)
    for where in (Selection(start_ns=0), Selection(launches=[0]), Selection(kernel="add")):
        asked = Timeline(whole, where)
        assert asked.view == asked.span
        assert "here" not in asked.heading


def test_host_threads_have_numbers_in_the_order_of_what_they_did() -> None:
    later = compiled("mul", 5 * MS, 6 * MS, thread=OTHER)
    raw = raw_of(launched(8 * MS, 9 * MS), host=(later, compiled("add", 0, 4 * MS)))
    assert host_thread_names(raw) == {MAIN: "host thread 0", OTHER: "host thread 1"}
    merged = replace(later, thread=1000)  # of process 1
    raw = raw_of(host=(merged, replace(merged, thread=0)))
    assert set(host_thread_names(raw).values()) == {"host thread 0", "host thread 1000"}


@pytest.mark.parametrize("suffix", [".pftrace", ".json"])
def test_the_ident_of_a_host_thread_is_kept(tmp_path: Path, suffix: str) -> None:
    path = Run(raw_of(launched(8 * MS, 9 * MS))).save(tmp_path / f"run{suffix}")
    if suffix == ".json":
        events = json.loads(path.read_text())["traceEvents"]
        (thread,) = [e["args"] for e in events if e["args"].get("name") == "host thread 0"]
        assert thread["ident"] == MAIN
        return
    with TraceProcessor(path) as processor:
        (row,) = processor.query(
            "select extract_arg(source_arg_set_id, 'description') as about from track"
            " where name = 'host thread 0'"
        )
    assert row["about"] == f"thread ident {MAIN}"


def test_open_asks_the_page_for_the_first_sm_of_each_gpu() -> None:
    from proton.viewer.cli.commands.open import expanding

    assert expanding(Run(raw_of(launched(0, MS)))) == ""
    assert "SM%200%24" in expanding(Run(gpu_run(3)))
