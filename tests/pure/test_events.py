"""Starts and ends of events: which belong together, and what every output makes of them."""

import json
import random
from collections import deque
from dataclasses import replace
from decimal import Decimal
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    Record,
    Written,
    gpu_run,
    kernel,
    pack_launch,
    run,
    scopes,
    ticks,
)

from proton.trace.errors import TraceFormatError
from proton.trace.events import pair
from proton.trace.model import Kernel, RawRun, Scope
from proton.trace.wire import RecordKind
from proton.viewer import Run
from tests.perfetto_equality import assert_trace_equals_tables

START, END = int(RecordKind.EVENT_START), int(RecordKind.EVENT_END)
EVENTS = (*scopes(1), Scope(name="tile", path="tile", kind="event"))
Edge = tuple[int, int, int, int]  # unit of the run, event, ticks, kind


def found_pairs(edges: list[Edge], units: int, lossy: list[bool]) -> tuple[list, list]:
    """Pairs and lonely ones by `pair`, of edges that are sorted by unit."""
    columns = [np.array(c, np.int64) for c in zip(*edges, strict=True)] or [np.zeros(0, int)] * 4
    track, scope, at, kind = columns
    pairs = pair(
        kind=kind.astype(np.uint8),
        scope=scope.astype(np.int32),
        ticks=at.astype(np.uint64),
        track=track,
        program=np.arange(len(lossy)) // units,
        lossy=np.array(lossy, bool),
    )
    both = zip(pairs.start.tolist(), pairs.end.tolist(), strict=True)
    return sorted(both), pairs.alone.tolist()


def slow_pairs(edges: list[Edge], units: int, lossy: list[bool]) -> tuple[list, list]:
    """The same by a queue each, edge by edge."""
    kinds: dict[tuple[int, int], set[int]] = {}
    for track, event, _, kind in edges:
        kinds.setdefault((track, event), set()).add(kind)
    queues: dict[tuple[object, ...], list[int]] = {}
    for row, (track, event, _, _) in enumerate(edges):
        halved = len(kinds[track, event]) == 1
        place = ("program", track // units) if halved else ("unit", track)
        queues.setdefault((*place, event), []).append(row)
    pairs, alone = [], []
    for rows in queues.values():
        rows.sort(key=lambda row: (edges[row][2], edges[row][3], row))
        back = any(lossy[edges[row][0]] for row in rows)
        waiting: deque[int] = deque()
        for row in reversed(rows) if back else rows:
            opens = (edges[row][3] == START) != back
            if opens:
                waiting.append(row)
            elif waiting:
                other = waiting.popleft()
                pairs.append((row, other) if back else (other, row))
            else:
                alone.append(row)
        alone += waiting
    return sorted(pairs), sorted(alone)


@given(
    units=st.integers(1, 3),
    programs=st.integers(1, 3),
    lossy=st.lists(st.booleans(), min_size=9, max_size=9),
    edges=st.lists(
        st.tuples(
            st.integers(0, 8), st.integers(0, 1), st.integers(0, 12), st.sampled_from([START, END])
        ),
        max_size=40,
    ),
)
def test_any_edges_pair_as_queues_do(
    units: int, programs: int, lossy: list[bool], edges: list[Edge]
) -> None:
    tracks = units * programs
    edges = sorted((track % tracks, event, at, kind) for track, event, at, kind in edges)
    edges.sort(key=lambda edge: (edge[0], edge[2]))
    lossy = lossy[:tracks]
    assert found_pairs(edges, units, lossy) == slow_pairs(edges, units, lossy)


def test_long_queues_pair_fast_and_right() -> None:
    random_ = random.Random(5)
    edges = sorted((0, 0, at, random_.choice((START, END))) for at in range(20_000))
    for lossy in ([False], [True]):
        assert found_pairs(edges, 1, lossy) == slow_pairs(edges, 1, lossy)


def test_the_rules_by_example() -> None:
    def rows(text: str, track: int = 0, first: int = 0) -> list[Edge]:
        kinds = {"S": START, "E": END}
        return [(track, 0, first + i, kinds[c]) for i, c in enumerate(text)]

    assert found_pairs(rows("SSEE"), 1, [False]) == ([(0, 2), (1, 3)], [])
    assert found_pairs(rows("SES"), 1, [False]) == ([(0, 1)], [2])
    assert found_pairs(rows("ESE"), 1, [False]) == ([(1, 2)], [0])
    # The ring lost the first start: its end must not take the second's.
    assert found_pairs(rows("SEE"), 1, [True]) == ([(0, 2)], [1])
    assert found_pairs(rows("SEE"), 1, [False]) == ([(0, 1)], [2])
    # One unit starts, the other ends; of two programs each for itself.
    halves = rows("SS") + rows("EE", 1, 5)
    assert found_pairs(halves, 2, [False, False]) == ([(0, 2), (1, 3)], [])
    assert found_pairs(halves, 1, [False, False]) == ([], [0, 1, 2, 3])
    # Where both units have both, each has its own.
    whole = rows("SE") + rows("SE", 1, 1)
    assert found_pairs(whole, 2, [False, False]) == ([(0, 1), (2, 3)], [])


def edge(ns: int, kind: int, turn: int | None = None) -> Record:
    return Record(ticks(ns), ticks(ns), 1, kind, turn)


def one_program(units: list[list[Record]], owner: Kernel | None = None, **state: object) -> RawRun:
    owner = owner or kernel(table=EVENTS, units=len(units))
    clock = ticks(0), ticks(10_000)
    launch = pack_launch(owner, (1, 1, 1), 8, [Written(units, clock=clock, thread=4, **state)])
    return run([owner], [launch])


def test_events_are_rows_with_both_places_and_no_slices() -> None:
    slices = [Record(ticks(5), ticks(90), 0)]
    units = [
        [edge(10, START, 0), edge(20, START, 1), *slices],
        [edge(40, END, 0), edge(70, END)],
    ]
    whole = Run(one_program(units))
    shown = whole.events[["name", "program", "thread", "start_unit", "end_unit"]]
    assert list(shown.itertuples(index=False, name=None)) == [("tile", 0, 4, 0, 1)] * 2
    assert list(whole.events["kernel"]) == ["add"] * 2
    assert list(whole.events["start_ns"]) == [10, 20]
    assert list(whole.events["dur_ns"]) == [30, 50]
    assert list(whole.events["start_iteration"]) == [0, 1]
    assert list(whole.events["end_iteration"]) == [0, -1]
    assert (whole.events["error_ns"] > 0).all()
    assert (whole.totals.slices, whole.totals.marks, whole.totals.events) == (1, 0, 2)
    assert (whole.frame["kind"] == "scope").sum() == 1
    # Two records inside the slice were paid for by it: 2 ns its edges, 4 ns each record.
    assert list(whole.frame["corrected_ns"][whole.frame["kind"] == "scope"]) == [85 - 2 - 2 * 4]
    assert not any("no other half" in line for line in whole.summary().warnings)
    assert whole.summary().facts["events"] == "2"


def test_a_ring_that_wrapped_drops_the_oldest_starts_and_one_warning_counts_them() -> None:
    written = [edge(10 * i, START, i) for i in range(6)]
    written += [edge(100 + 10 * i, END, i) for i in range(6)]
    whole = Run(one_program([written]))  # keeps 8 of 12: the starts of 4 and 5, and all ends
    assert list(whole.events["start_iteration"]) == [4, 5]
    assert list(whole.events["end_iteration"]) == [4, 5]
    told = [line for line in whole.summary().warnings if "other half" in line]
    assert told == ["0 starts and 4 ends of events have no other half"]


def test_a_killed_program_keeps_its_events() -> None:
    whole = Run(one_program([[edge(10, START), edge(20, END), edge(30, START)]], state=1))
    assert list(whole.events["dur_ns"]) == [10]
    assert whole.totals.partial == 1
    assert "1 starts and 0 ends of events have no other half" in whole.summary().warnings


@pytest.mark.parametrize("kind", [0, 1, 4, 15])
def test_a_record_of_an_event_is_a_start_or_an_end(kind: int) -> None:
    with pytest.raises(TraceFormatError, match=f"kind must be its scope's, got {kind}"):
        Run(one_program([[edge(1, kind)]])).records.kind
    with pytest.raises(TraceFormatError, match="kind must be its scope's, got 3"):
        Run(one_program([[replace(edge(1, END), scope=0)]])).records.kind


def random_edges(random_: random.Random, count: int, halves: tuple[int, ...]) -> list[Record]:
    now, records = 0, []
    for _ in range(count):
        now += random_.choice((0, 3, 50, 400))
        turn = random_.choice((None, random_.randrange(100)))
        records.append(edge(now, random_.choice(halves), turn))
    return records


def random_run(seed: int) -> RawRun:
    """Units with both halves and with one, losses, a kernel without events, several programs."""
    random_ = random.Random(seed)
    owner = kernel(table=EVENTS, units=3, target="cpu")
    programs = []
    for number in range(4):
        halves = [(START, END), (START,), (END,)]
        random_.shuffle(halves)
        units = [random_edges(random_, random_.randrange(14), half) for half in halves]
        for unit in units:
            at = unit[-1].end if unit else ticks(0)
            unit.append(Record(ticks(0), at, 0))
        programs.append(Written(units, clock=(ticks(0), ticks(9000)), thread=number % 2))
    return run([owner], [pack_launch(owner, (4, 1, 1), 8, programs)])


def random_gpu_run(seed: int) -> RawRun:
    """A GPU's run in which some records have become edges of an event."""
    random_ = random.Random(seed)
    raw = gpu_run(seed)
    number = next(i for i, x in enumerate(raw.kernels) if x.name == "reduce")
    owner = raw.kernels[number]
    raw.kernels[number] = replace(owner, scopes=(*owner.scopes, EVENTS[1]))
    event = len(owner.scopes)
    for launch in raw.launches:
        if launch.kernel != number:
            continue
        for chunk in launch.chunks:
            words = chunk.data.copy().view("<u4").reshape(-1, 6)
            for record in words[1::2]:
                record[2:4] = record[0:2]
                record[4] = random_.choice((START, END)) << 28 | event
            object.__setattr__(chunk, "data", words.reshape(-1).view(np.uint8))
    return raw


@pytest.mark.parametrize("raw", [random_run(1), random_run(2), random_gpu_run(3)])
def test_perfetto_shows_what_the_table_has(tmp_path: Path, raw: RawRun) -> None:
    whole = Run(raw)
    assert len(whole.events) > 3
    assert_trace_equals_tables(whole, tmp_path / "run.pftrace")
    loaded = Run.load(whole.save(tmp_path / "run.proton"))
    assert loaded.events.equals(whole.events)


@pytest.mark.parametrize("raw", [random_run(1), random_gpu_run(3)])
def test_chrome_shows_what_the_table_has(tmp_path: Path, raw: RawRun) -> None:
    whole = Run(raw)
    text = whole.save(tmp_path / "run.json").read_text()
    found = json.loads(text, parse_float=Decimal)["traceEvents"]
    threads = {(e["pid"], e["tid"]): e["args"]["name"] for e in found if e["name"] == "thread_name"}
    edges: dict[int, list[dict]] = {}
    for row in found:
        if row["ph"] in ("b", "e"):
            assert row["cat"] == "event"
            edges.setdefault(row["id"], []).append(row)
    assert len(edges) == len(whole.events)
    for (first, last), row in zip(edges.values(), whole.events.itertuples(), strict=True):
        assert (first["ph"], last["ph"]) == ("b", "e")
        assert first["name"] == last["name"] == row.name
        assert first["pid"] == last["pid"]
        assert int(first["ts"] * 1000) == row.start_ns
        assert int(last["ts"] * 1000) == row.start_ns + row.dur_ns
        for edge_, unit in ((first, row.start_unit), (last, row.end_unit)):
            name = threads[edge_["pid"], edge_["tid"]]
            assert name in (f"thread {row.thread}", f"slot 0 warp {unit}", f"slot 1 warp {unit}")


def test_the_json_of_all_tables_has_the_events(tmp_path: Path) -> None:

    whole = Run(random_run(1))
    tables = json.loads(whole.save(tmp_path / "all.txt", "json").read_text())
    assert [row["dur_ns"] for row in tables["events"]] == whole.events["dur_ns"].tolist()
