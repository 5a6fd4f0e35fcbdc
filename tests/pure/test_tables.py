"""The tables of a run: clocks, nesting and costs against plain reckoning, and the empty cases."""

import random
import subprocess
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    ORIGIN_NS,
    Record,
    Written,
    kernel,
    pack_launch,
    random_run,
    run,
    scopes,
    ticks,
)

from proton.trace.clock import fit
from proton.trace.model import Clock
from proton.trace.nesting import lanes, nest
from proton.viewer import Run, TraceFormatError
from proton.viewer.tables.rows import FRAME_COLUMNS


def test_the_line_goes_through_exact_pairs_at_any_size_of_tick() -> None:
    for zero in (0, 1 << 40, (1 << 64) - (1 << 42)):
        host = np.array([100, 4_000_000_100, 9_000_000_100])
        pairs = Clock(
            ticks=np.array([zero + int(ns - 100) * 3 for ns in host], np.uint64), host_ns=host
        )
        line = fit(pairs, origin_ns=50)
        assert line.slope == pytest.approx(1 / 3, rel=1e-12)
        at = np.array([zero, zero + 3, zero + 3_000_000_000, zero + 27_000_000_000], np.uint64)
        assert line.ns(at).tolist() == [50, 51, 1_000_000_050, 9_000_000_050]
        assert line.error(at) == pytest.approx(0.0, abs=1e-4)


def test_times_before_the_first_pair_are_negative() -> None:
    pairs = Clock(ticks=np.array([100, 200], np.uint64), host_ns=np.array([100, 200]))
    assert fit(pairs, origin_ns=100).ns(np.array([40], np.uint64)).tolist() == [-60]


def test_the_error_of_a_time_is_that_of_the_pairs_around_it() -> None:
    ticks_ = np.array([0, 1000, 2000, 3000, 4000], np.uint64)
    pairs = Clock(ticks=ticks_, host_ns=np.array([0, 1000, 2030, 3000, 4000]), error_ns=7.0)
    line = fit(pairs, origin_ns=0)
    slope, offset = np.polyfit(ticks_.astype(float), pairs.host_ns.astype(float), 1)
    off = np.abs(slope * ticks_.astype(float) + offset - pairs.host_ns)
    assert line.slope == pytest.approx(slope)
    found = line.error(np.array([500, 2500, 9999], np.uint64))
    wanted = [max(off[0], off[1]), max(off[2], off[3]), off[4]]
    assert found == pytest.approx([7 + value for value in wanted])


@pytest.mark.parametrize(
    ("tick_pairs", "host", "message"),
    [
        ([1], [1], "two pairs are needed, got 1"),
        ([5, 5], [1, 2], "the pairs must differ in ticks"),
        ([5, 6], [3, 3], "host time must rise with ticks"),
        ([6, 5], [1, 2], "ticks must not fall"),
        ([1, 1 << 63], [0, 1 << 40], ""),
    ],
)
def test_a_clock_that_is_none_is_refused(
    tick_pairs: list[int], host: list[int], message: str
) -> None:
    pairs = Clock(ticks=np.array(tick_pairs, np.uint64), host_ns=np.array(host, np.int64))
    if message:
        with pytest.raises(TraceFormatError, match=message):
            fit(pairs, 0)
    else:
        assert fit(pairs, 0).slope > 0


def inside(intervals: list[tuple[int, int, int]], i: int, j: int) -> bool:
    """Whether interval j lies in i, by the rules that proton.trace.nesting states."""
    (track, a, b), (other, c, d) = intervals[i], intervals[j]
    if track != other or i == j:
        return False
    if a == b:
        return (c, d) == (a, b) and j < i
    if c == d:
        return a <= c < b
    return a <= c and d <= b and ((a, b) != (c, d) or j < i)


INTERVALS = st.lists(
    st.tuples(st.integers(0, 2), st.integers(0, 12), st.integers(0, 6)).map(
        lambda t: (t[0], t[1], t[1] + t[2])
    ),
    max_size=12,
)


@given(intervals=INTERVALS, scale=st.sampled_from([1, (1 << 60) // 12, 1 << 59]))
def test_any_intervals_are_counted_and_split_into_lanes_that_nest(
    intervals: list[tuple[int, int, int]], scale: int
) -> None:
    intervals = sorted(intervals, key=lambda entry: entry[0])
    track = np.array([t for t, _, _ in intervals], np.int64)
    start = np.array([a * scale for _, a, _ in intervals], np.uint64)
    end = np.array([b * scale for _, _, b in intervals], np.uint64)
    found = nest(track, start, end)
    everyone = range(len(intervals))
    wanted = [sum(inside(intervals, i, j) for j in everyone) for i in everyone]
    assert found.inside.tolist() == wanted
    lane = lanes(track, found)
    for i in everyone:
        for j in everyone:
            same = track[i] == track[j] and lane[i] == lane[j] and i != j
            apart = found.end_at[i] < found.begin_at[j] or found.end_at[j] < found.begin_at[i]
            assert not same or apart or inside(intervals, i, j) or inside(intervals, j, i)
    if not found.crossed.any():
        assert not lane.any()


def test_the_cost_of_what_is_inside_is_taken_off() -> None:
    table = scopes(3, marks=1)
    records = [
        Record(ticks(20), ticks(30), 1),
        Record(ticks(35), ticks(35), 3, kind=1),
        Record(ticks(40), ticks(41), 1),
        Record(ticks(10), ticks(100), 0),
    ]
    owner = kernel(table=table)
    whole = Run(run([owner], [pack_launch(owner, (1, 1, 1), 8, [Written([records])])]))
    rows = whole.frame[whole.frame["kind"] == "scope"]
    # 2 ns for a slice's own edges, 4 ns for each of the three records inside the outer one
    assert rows["dur_ns"].tolist() == [10, 1, 90]
    assert rows["corrected_ns"].tolist() == [8, 0, 76]
    assert whole.marks["start_ns"].tolist() == [35]


def test_rounding_keeps_slices_nested() -> None:
    random_ = random.Random(1)
    records = []
    for _ in range(300):
        a, b, c, d = sorted(ticks(0) + random_.randrange(10_000) for _ in range(4))
        records += [Record(b, c), Record(a, d)]
    owner = kernel()
    whole = Run(run([owner], [pack_launch(owner, (1, 1, 1), 1024, [Written([records])])]))
    rows = whole.frame[whole.frame["kind"] == "scope"]
    start, end = rows["start_ns"].to_numpy(), (rows["start_ns"] + rows["dur_ns"]).to_numpy()
    assert (start[1::2] <= start[::2]).all()
    assert (end[::2] <= end[1::2]).all()


def test_the_frame_has_its_columns_and_launches_lie_under_their_host_scopes() -> None:
    whole = Run(random_run(9))
    frame = whole.frame
    assert tuple(frame.columns[: len(FRAME_COLUMNS)]) == FRAME_COLUMNS
    assert frame["kind"].value_counts().to_dict() == {
        "scope": whole.totals.slices,
        "launch": 5,
        "host": 4,
    }
    launched = frame[frame["kind"] == "launch"]
    assert launched["scope"].tolist() == [
        "add", "train/step/matmul", "count", "train/step/add", "matmul"
    ]  # fmt: skip
    assert (frame["error_ns"][frame["kind"] == "scope"] >= 5.0).all()
    assert whole.losses["lost"].sum() == whole.totals.lost == whole.launches["lost"].sum()
    assert (whole.launches["written"] - whole.launches["kept"])[[1, 4]].tolist() == [0, 0]


def test_counting_counts_and_loses_nothing() -> None:
    whole = Run(random_run(9))
    counted = whole.launches[whole.launches["strategy"] == "counting"]
    assert (counted["written"] > 0).all()
    assert counted[["kept", "lost"]].values.tolist() == [[0, 0]]


@pytest.mark.parametrize(
    "raw",
    [run([], []), run([kernel()], []), run([kernel()], [pack_launch(kernel(), (0, 3, 1), 4, [])])],
)
def test_a_run_of_nothing_has_all_tables(raw) -> None:
    raw.clock = Clock(ticks=np.zeros(0, np.uint64), host_ns=np.zeros(0, np.int64))
    whole = Run(raw)
    assert tuple(whole.frame.columns) == FRAME_COLUMNS
    assert len(whole.marks) == len(whole.losses) == len(whole.optimized_out) == 0
    assert len(whole.stats()) == 0
    assert whole.summary().warnings == ()
    assert "0 slices" in repr(whole)


def test_warnings_are_one_line_each_however_many_programs() -> None:
    owner = kernel(optimized_out=("load", "store/cast"))
    records = [Record(ticks(i), ticks(i + 1)) for i in range(10)]
    programs = [Written([records], state=1 + number % 2) for number in range(50)]
    raw = run([owner], [pack_launch(owner, (50, 1, 1), 4, programs)])
    raw.dropped_launches = 3
    lines = Run(raw).summary().warnings
    assert len(lines) == 4
    assert lines[0].startswith("300 of 500 records lost")
    assert lines[1] == "25 of 50 programs did not finish"
    assert lines[3].endswith("add: load, add: store/cast")


def test_a_host_scope_that_ends_before_it_starts_is_refused() -> None:
    raw = random_run(1)
    raw.launches[2].host_end = raw.launches[2].host_start - 1
    with pytest.raises(TraceFormatError, match="launch 2: start and end must be times"):
        Run(raw).frame
    raw.launches[2].kernel = 7
    raw.launches[2].host_end = ORIGIN_NS * 2
    with pytest.raises(TraceFormatError, match="launch 2: kernel must be < 3, got 7"):
        Run(raw).frame


def test_importing_the_viewer_does_not_import_pandas() -> None:
    code = "import sys, proton.viewer; print(sorted({'pandas', 'perfetto'} & set(sys.modules)))"
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout == "[]\n"
