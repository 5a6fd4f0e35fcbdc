"""What a timeline shows first: the first launches, in Perfetto's terms and in our own pictures."""

import json
from dataclasses import replace
from pathlib import Path

import pytest
from synthetic import ORIGIN_NS, Written, gpu_run, kernel, pack_launch, run

from proton.trace.model import HostSlice, Launch, RawRun
from proton.viewer import Run
from proton.viewer.pictures.page import to_page
from proton.viewer.pictures.selection import Selection
from proton.viewer.pictures.timeline import Timeline
from proton.viewer.pictures.timeline_picture import draw
from proton.viewer.pictures.timeline_text import draw_text
from proton.viewer.tables.first_view import first_view
from proton.viewer.tables.labels import host_thread_names
from tests.trace_processor import TraceProcessor

US, MS = 1000, 1_000_000
MAIN, OTHER = 140472578587520, 139637976729344  # idents as pthreads have them


def compiled(name: str, start: int, end: int, thread: int = MAIN) -> HostSlice:
    times = {"start": ORIGIN_NS + start, "end": ORIGIN_NS + end}
    return HostSlice(name=f"compile {name}", path="", thread=thread, kind="compile", **times)


def launched(start: int, end: int, number: int = 0) -> Launch:
    owner = (kernel(), PLAIN)[number]
    times = (ORIGIN_NS + start, ORIGIN_NS + end)
    programs = [] if number else [Written([[]])]
    made = pack_launch(owner, (1, 1, 1), 8 * (not number), programs, host=times, thread=MAIN)
    made.kernel = number
    return made


PLAIN = replace(kernel(name="copy"), strategy=None, scopes=())


def raw_of(*launches: Launch, host: tuple[HostSlice, ...] = ()) -> RawRun:
    return run([kernel(), PLAIN], list(launches), list(host))


def test_the_view_goes_on_as_far_as_launches_fill_a_tenth_of_it() -> None:
    near = [launched(at, at + 40 * US) for at in (800 * MS, 800 * MS + 300 * US)]
    far = launched(1000 * MS, 1000 * MS + 40 * US)
    build = compiled("add", 0, 790 * MS)
    without_records = launched(400 * MS, 600 * MS, number=1)
    for launches, length in (
        (near[:1], 40 * US),
        (near, 340 * US),
        ([*near, far], 340 * US),
        ([*near, far, launched(1100 * MS, 1200 * MS)], 400 * MS),  # long enough for all
        ([without_records, near[0]], 40 * US),
    ):
        view = first_view(Run(raw_of(*launches, host=(build,))))
        margin = length // 20
        assert view == (800 * MS - margin, 800 * MS + length + margin)
    copies = Run(raw_of(launched(400 * MS, 440 * MS, number=1)))
    assert first_view(copies) == (398 * MS, 442 * MS)
    assert first_view(Run(raw_of(host=(build,)))) is None
    seen = HostSlice(name="gemm", path="", thread=7, kind="kernel", device=0,
                     start=ORIGIN_NS + 20 * MS, end=ORIGIN_NS + 40 * MS)  # fmt: skip
    assert first_view(Run(raw_of(host=(build, seen)))) == (19 * MS, 41 * MS)
    later = replace(seen, start=seen.start + 800 * MS, end=seen.end + 800 * MS)
    both = raw_of(near[0], host=(build, seen, later))  # 800.00 to 800.04, and 820 to 840
    assert first_view(Run(both)) == (798 * MS, 842 * MS)


def test_perfetto_knows_the_view_and_drops_nothing(tmp_path: Path) -> None:
    """By the metadata that the UI takes its first view from."""
    first = launched(800 * MS, 802 * MS)
    host = (compiled("add", 0, 790 * MS),)
    whole = Run(raw_of(first, launched(2000 * MS, 2001 * MS), host=host))
    with TraceProcessor(whole.save(tmp_path / "run.pftrace")) as processor:
        found = processor.query("select name, int_value as ns from metadata where name glob '*_ns'")
        slices = processor.query("select name from slice where dur > 0")
        assert processor.complaints() == []
    assert {row["name"]: row["ns"] - ORIGIN_NS for row in found} == {
        "all_data_source_started_ns": 799 * MS + 900 * US,
        "tracing_disabled_ns": 802 * MS + 100 * US,
    }
    assert sorted(row["name"] for row in slices) == ["add", "add", "compile add"]
    with TraceProcessor(Run(raw_of(host=host)).save(tmp_path / "host.pftrace")) as processor:
        assert processor.query("select 1 from metadata where name = 'tracing_disabled_ns'") == []


def test_pictures_show_it_and_say_so_unless_something_was_asked_for() -> None:
    host = (compiled("add", 0, 790 * MS),)
    whole = Run(raw_of(launched(800 * MS, 802 * MS), host=host))
    timeline = Timeline(whole)
    assert timeline.view == (799 * MS + 900 * US, 802 * MS)
    assert timeline.span == (0, 802 * MS)
    assert "here 2.1 ms with launches" in timeline.heading
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
