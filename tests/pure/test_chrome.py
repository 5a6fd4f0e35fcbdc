"""The Chrome JSON holds the run's slices and marks, exactly."""

import gzip
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path

import pytest
from synthetic import (
    Record,
    Written,
    gpu_run,
    kernel,
    pack_launch,
    random_run,
    run,
    scopes,
    ticks,
)

from proton.base.errors import ProtonError
from proton.trace.model import RawRun
from proton.viewer import Run
from proton.viewer.export.chrome import microseconds
from tests.perfetto_equality import expected_programs, places, unit_of
from tests.trace_processor import TraceProcessor


def nanoseconds(us: Decimal) -> int:
    return int(us * 1000)


@pytest.mark.parametrize("raw", [random_run(31), gpu_run(31), gpu_run(32, mixed=True)])
def test_slices_and_marks_come_back(tmp_path: Path, raw: RawRun) -> None:
    whole = Run(raw)
    text = whole.save(tmp_path / "run.json").read_text()
    events = json.loads(text, parse_float=Decimal)["traceEvents"]
    calls = [e for e in events if e["ph"] == "X" and e.get("cat") == "call"]
    assert len(calls) == (whole.launches["device"] >= 0).sum()
    slices = [e for e in events if e["ph"] == "X" and "cat" not in e]
    assert [(e["name"], nanoseconds(e["ts"]), nanoseconds(e["dur"])) for e in slices] == list(
        whole.frame[["name", "start_ns", "dur_ns"]].itertuples(index=False, name=None)
    )
    for event, payload in zip(slices, whole.frame["payload"], strict=True):
        own = ("iteration", "launch", "grid", "target")
        args = {key: value for key, value in event.get("args", {}).items() if key not in own}
        assert {key: float(value) for key, value in args.items()} == (payload or {})
    marks = [e for e in events if e["ph"] == "i"]
    assert [nanoseconds(e["ts"]) for e in marks] == whole.marks["start_ns"].tolist()
    threads = {(e["pid"], e["tid"]) for e in events if e.get("name") == "thread_name"}
    programs = [e for e in events if e.get("cat") == "program"]
    assert {(e["pid"], e["tid"]) for e in slices + marks + calls + programs} == threads


@pytest.mark.parametrize("suffix", [".json", ".json.gz"])
def test_a_trace_of_torchs_profiler_takes_the_run_in(tmp_path: Path, suffix: str) -> None:
    """Its events stay as they are; the run's have other numbers, and the same wall clock."""
    whole = Run(gpu_run(35))
    base = whole.raw.origin_unix_ns - 7_654_321_000_123
    us = {"ph": "X", "pid": 3299, "dur": 31.25}
    theirs = [
        us | {"name": "aten::mm", "ts": 7654321000.5, "tid": 3310},
        us
        | {"name": "PyTorch Profiler (0)", "ts": 7654320000.25, "pid": "Spans", "tid": "PyTorch"},
        {"ph": "M", "name": "process_name", "pid": 3299, "tid": 0, "args": {"name": "python"}},
    ]
    text = json.dumps({"baseTimeNanoseconds": base, "schemaVersion": 1, "traceEvents": theirs})
    other = tmp_path / f"torch{suffix}"
    other.write_bytes(gzip.compress(text.encode()) if suffix.endswith("gz") else text.encode())
    path = whole.save(tmp_path / "both.json", beside=other)
    found = json.loads(path.read_text(), parse_float=Decimal)
    assert (found["baseTimeNanoseconds"], found["schemaVersion"]) == (base, 1)
    assert json.loads(path.read_text())["traceEvents"][:3] == theirs
    ours = found["traceEvents"][3:]
    assert min(min(e["pid"], e.get("tid", e["pid"])) for e in ours if e.get("tid")) > 3310
    slices = [e for e in ours if e["ph"] == "X" and "cat" not in e]
    times = (whole.frame["start_ns"] + whole.raw.origin_unix_ns).tolist()
    assert [base + nanoseconds(e["ts"]) for e in slices] == times
    with TraceProcessor(path) as processor:
        assert processor.complaints() == []
        (row,) = processor.query("select count(*) as n from slice where name = 'aten::mm'")
        assert row["n"] == 1


def test_what_is_no_trace_of_torchs_profiler(tmp_path: Path) -> None:
    other, whole = tmp_path / "other.json", Run(gpu_run(36))
    for text in ("{}", "[1]", "no JSON", '{"baseTimeNanoseconds": 1, "traceEvents": [2]}'):
        other.write_text(text)
        with pytest.raises(ProtonError, match=r"other\.json is no trace of torch\.profiler"):
            whole.save(tmp_path / "both.json", beside=other)
    assert not (tmp_path / "both.json").exists()


@pytest.mark.parametrize("raw", [random_run(33), gpu_run(33), gpu_run(34, mixed=True)])
def test_each_slice_is_on_the_thread_of_its_place(tmp_path: Path, raw: RawRun) -> None:
    """As Perfetto's importer sees it, to which a tid is one thread, whatever its pid."""
    whole = Run(raw)
    path = whole.save(tmp_path / "run.json")
    with TraceProcessor(path) as processor:
        assert processor.complaints() == []
        rows = processor.query(
            "select s.ts as ts, s.dur as dur, s.name as name, t.name as thread from slice s"
            " join thread_track tt on s.track_id = tt.id join thread t using (utid)"
            " where s.dur > 0 and s.category is not 'call'"
        )
    found = Counter((row["ts"], row["dur"], row["name"], row["thread"]) for row in rows)
    wanted = Counter()
    where = places(whole)
    for row in whole.frame[whole.frame["dur_ns"] > 0].to_dict("records"):
        thread = f"host thread {row['thread']}"
        if row["program"] >= 0:
            place = where[row["launch"], row["program"]] + unit_of(whole, row, row["unit"])
            thread = " ".join(place[2:]) or place[0]
        elif row["device"] >= 0:
            thread = "launches"
        wanted[row["start_ns"], row["dur_ns"], row["name"], thread] += 1
    for track, start, duration, name, _, _ in expected_programs(whole):
        thread = " ".join(track[2:]) or track[0]
        wanted[start - raw.origin_ns, duration, name, thread] += duration > 0
    assert found == +wanted


def test_no_two_places_share_a_thread_id(tmp_path: Path) -> None:
    """Nor do slices of two kernels overlap on one without nesting."""
    events = json.loads(
        Run(gpu_run(35, mixed=True, crossing=True)).save(tmp_path / "run.json").read_text(),
        parse_float=Decimal,
    )["traceEvents"]
    names = [e for e in events if e["name"] == "thread_name"]
    tids = [e["tid"] for e in names]
    assert len(tids) == len(set(tids))
    threads: dict[int, list[tuple[Decimal, Decimal]]] = {}
    for e in events:
        if e["ph"] == "X":
            threads.setdefault(e["tid"], []).append((e["ts"], -e["dur"]))
    for slices in threads.values():
        open_: list[Decimal] = []
        for start, duration in sorted(slices):
            while open_ and open_[-1] <= start:
                open_.pop()
            assert not open_ or start - duration <= open_[-1]
            open_.append(start - duration)


def test_a_gpu_has_a_process_an_sm_and_its_launches_are_called_by_the_host(tmp_path: Path) -> None:
    whole = Run(gpu_run(31))
    text = whole.save(tmp_path / "run.json").read_text()
    events = json.loads(text, parse_float=Decimal)["traceEvents"]
    names = {e["pid"]: e["args"]["name"] for e in events if e["name"] == "process_name"}
    threads = {(names[e["pid"]], e["args"]["name"]) for e in events if e["name"] == "thread_name"}
    assert ("GPU 0 (NVIDIA H200)", "launches") in threads
    assert ("GPU 0 (NVIDIA H200) SM 1", "slot 0") in threads
    assert ("GPU 0 (NVIDIA H200) SM 1", "slot 0 warps 6-7") in threads
    assert ("GPU 0 (NVIDIA H200) SM 1", "slot 0 warp 0") in threads
    calls = [e for e in events if e["ph"] == "X" and e.get("cat") == "call"]
    assert {names[e["pid"]] for e in calls} == {"host"}
    starts = whole.launches["host_start_ns"].tolist()
    assert [nanoseconds(e["ts"]) for e in calls] == starts
    for phase, wanted in (("s", starts), ("f", whole.launches["start_ns"].tolist())):
        flows = [e for e in events if e["ph"] == phase]
        assert [e["id"] for e in flows] == list(range(len(starts)))
        assert [nanoseconds(e["ts"]) for e in flows] == wanted


def test_a_run_of_nothing_is_json(tmp_path: Path) -> None:
    text = Run(run([], [])).save(tmp_path / "run.json").read_text()
    assert json.loads(text)["traceEvents"] == []


def test_values_that_json_lacks_are_text(tmp_path: Path) -> None:
    owner = kernel(slots=2, table=scopes(2, 2))
    record = Record(ticks(1), ticks(2), 1, payload=(1, float("nan")))
    whole = Run(run([owner], [pack_launch(owner, (1, 1, 1), 2, [Written([[record]])])]))
    text = whole.save(tmp_path / "run.json").read_text()
    assert '"args":{"value0": 1, "value1": "nan"}' in text


@pytest.mark.parametrize(("ns", "text"), [(0, "0.000"), (1_234_567, "1234.567"), (-5, "-0.005")])
def test_nanoseconds_are_exact_decimals(ns: int, text: str) -> None:
    assert microseconds(ns) == text
