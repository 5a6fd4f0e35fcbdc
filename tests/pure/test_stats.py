"""Statistics against numpy, one group at a time, and against a search for what lies in what."""

from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from synthetic import (
    Record,
    Written,
    gpu_run,
    kernel,
    pack_launch,
    pieces_run,
    random_run,
    run,
    scopes,
    ticks,
)

from proton.base.errors import ProtonError
from proton.trace import nesting
from proton.trace.model import Scope
from proton.trace.wire import RecordKind
from proton.viewer import Run, stats
from proton.viewer.tables.stats import CountedKind as SliceKind
from proton.viewer.tables.stats import Filter
from proton.viewer.tables.tree import tree
from tests.trace_processor import TraceProcessor

GROUPINGS = [
    ["scope"],
    ["name"],
    ["kernel"],
    ["kernel", "program"],
    ["thread"],
    ["launch", "scope"],
    ["device", "sm", "warp"],
]


def surroundings(rows: list[dict[str, Any]]) -> list[list[int]]:
    """The slices around each one, innermost first, by looking at all of its track. Of two equal
    ones the one that was recorded later is outside."""
    tracks = defaultdict(list)
    for number, row in enumerate(rows):
        tracks[row["launch"], row["program"], row["unit"]].append(number)
    found: list[list[int]] = [[] for _ in rows]
    for numbers in tracks.values():
        spans = {n: (rows[n]["start_ns"], rows[n]["start_ns"] + rows[n]["dur_ns"]) for n in numbers}
        for inner in numbers:
            start, end = spans[inner]
            around = [
                n
                for n, (first, last) in spans.items()
                if first <= start and end <= last and (spans[n] != spans[inner] or n > inner)
            ]
            found[inner] = sorted(around, key=lambda n: (spans[n][1] - spans[n][0], n))
    return found


@pytest.mark.parametrize("by", GROUPINGS, ids=",".join)
def test_no_time_is_counted_twice(by: list[str], session_seed: int) -> None:
    frame = Run(random_run(session_seed)).frame
    rows = frame[frame["kind"] == "scope"].to_dict("records")
    around = surroundings(rows)
    own = [row["dur_ns"] for row in rows]
    for row, outside in zip(rows, around, strict=True):
        if outside:
            own[outside[0]] -= row["dur_ns"]
    total: dict[Any, int] = defaultdict(int)
    self_: dict[Any, int] = defaultdict(int)
    keys = [tuple(row[name] for name in by) for row in rows]
    for number, (row, key) in enumerate(zip(rows, keys, strict=True)):
        self_[key] += own[number]
        total[key] += 0 if any(keys[n] == key for n in around[number]) else row["dur_ns"]
    table = stats(frame, by, "dur_ns")
    found = {tuple(row[name] for name in by): row for row in table.to_dict("records")}
    assert {key: row["total"] for key, row in found.items()} == total
    assert {key: row["self"] for key, row in found.items()} == self_
    outermost = [row["dur_ns"] for row, outside in zip(rows, around, strict=True) if not outside]
    assert table["self"].sum() == sum(outermost)


def test_inner_slices_together_are_never_longer_than_what_is_around_them(session_seed: int) -> None:
    """Corrected, too, where recording cost less than its calibration says."""
    raised = 0
    for crossing in (False, True):
        raw = random_run(session_seed, crossing=crossing)
        cost, edge = np.random.default_rng(session_seed).integers(1, 1000, 2) / 3
        raw.clock = replace(raw.clock, slice_cost_ns=cost, edge_cost_ns=edge)
        whole = Run(raw)
        frame = whole.frame[whole.frame["kind"] == "scope"]
        rows, found = frame.to_dict("records"), frame["corrected_ns"].tolist()
        records = whole.records
        overhead = records.overhead_ns[records.kind == RecordKind.SLICE]
        least = np.maximum(np.rint(frame["dur_ns"].to_numpy() - overhead), 0)
        assert (least <= found).all()
        assert (found <= frame["dur_ns"]).all()
        if crossing:  # what crosses lies in lanes, which this has no reference for
            continue
        around, inner = surroundings(rows), np.zeros(len(rows), np.int64)
        for own, outside in zip(found, around, strict=True):
            inner[outside[:1]] += own
        assert found == np.maximum(least, inner).tolist()
        raised += int((inner > least).sum())
        outermost = [own for own, outside in zip(found, around, strict=True) if not outside]
        assert stats(frame)["self"].sum() == sum(outermost)
    assert raised


def test_a_kernel_takes_no_longer_than_its_outermost_scopes() -> None:
    table = scopes(3)
    records = [Record(ticks(10), ticks(20), 1), Record(ticks(12), ticks(18), 1)]
    records = [*records[::-1], Record(ticks(30), ticks(90), 2), Record(ticks(0), ticks(100), 0)]
    owner = kernel(table=table)
    whole = Run(run([owner], [pack_launch(owner, (1, 1, 1), 8, [Written([records])])]))
    (row,) = whole.stats("kernel", "dur_ns").to_dict("records")
    assert (row["count"], row["total"], row["self"], row["max"]) == (4, 100, 100, 100)
    rows = whole.stats("scope", "dur_ns").set_index("scope")
    assert rows[["total", "self"]].values.tolist() == [[100, 30], [60, 60], [10, 10]]


def test_what_overlaps_without_nesting_counts_each_time() -> None:
    owner = kernel(table=scopes(2))
    records = [Record(ticks(0), ticks(60), 0), Record(ticks(30), ticks(90), 1)]
    whole = Run(run([owner], [pack_launch(owner, (1, 1, 1), 8, [Written([records])])]))
    table = whole.stats("scope", "dur_ns")
    assert table["total"].tolist() == table["self"].tolist() == [60, 60]


@pytest.mark.parametrize("metric", ["dur_ns", "corrected_ns", "cycles"])
@pytest.mark.parametrize("by", GROUPINGS, ids=",".join)
def test_each_group_is_what_numpy_says(by: list[str], metric: str) -> None:
    frame = Run(gpu_run(11, mixed=True)).frame
    slices = frame[frame["kind"] == "scope"]
    table = stats(frame, by, metric)
    assert table["count"].sum() == len(slices)
    assert table["total"].is_monotonic_decreasing
    assert (table["self"] >= 0).all()
    assert (table["max"] <= table["total"]).all()
    for row in table.to_dict("records"):
        chosen = np.ones(len(slices), bool)
        for name in by:
            chosen &= (slices[name] == row[name]).to_numpy()
        values = slices[metric].to_numpy()[chosen]
        assert row["count"] == values.size
        assert row["total"] <= values.sum()
        assert row["self"] <= values.sum()
        assert (row["min"], row["max"]) == (values.min(), values.max())
        assert row["mean"] == pytest.approx(values.mean())
        assert row["std"] == pytest.approx(values.std(ddof=1) if values.size > 1 else 0.0)
        for name, share in (("p50", 50), ("p90", 90), ("p99", 99)):
            assert row[name] == pytest.approx(np.percentile(values, share))


def of_variants() -> Run:
    """A run in which `add` is two kernels, launched twice and once, and `mul` is one."""
    owners = [kernel(name="add"), kernel(name="mul"), kernel(name="add", optimized_out=("gone",))]
    launches = []
    for number in (0, 2, 1, 0):
        records = [Record(ticks(0), ticks(10 + number), 0)]
        launch = pack_launch(owners[number], (1, 1, 1), 1, [Written([records * 2])])
        launch.kernel = number
        launches.append(launch)
    return Run(run(owners, launches))


def test_variants_of_a_kernel_are_told_apart() -> None:
    whole = of_variants()
    table = whole.stats(metric="dur_ns")
    assert list(table.columns[:3]) == ["kernel", "variant", "scope"]
    found = table.set_index(["kernel", "variant"])[["count", "max"]].to_dict("index")
    assert found == {
        ("add", 1): {"count": 2, "max": 10},
        ("add", 2): {"count": 1, "max": 12},
        ("mul", 1): {"count": 1, "max": 11},
    }
    for name in ("frame", "launches", "losses"):
        rows = getattr(whole, name)
        assert list(zip(rows["kernel"], rows["variant"], strict=True))[:4] == [
            ("add", 1),
            ("add", 2),
            ("mul", 1),
            ("add", 1),
        ]
    assert whole.optimized_out.values.tolist() == [["add", 2, "gone"]]
    assert whole.summary().warnings[-1].endswith("optimized-out scopes: add #2: gone")
    only = whole.frame[whole.frame["kernel"] == "mul"]
    assert "variant" not in stats(only).columns
    assert len(stats(only)) == 1


def test_launches_and_host_scopes_have_statistics_too() -> None:
    frame = Run(random_run(11)).frame
    assert stats(frame, ["kernel"], kind="launch")["count"].tolist() == [2, 2, 1]
    assert stats(frame, ["kind"], "dur_ns", kind=None)["count"].sum() == len(frame)


def test_all_kinds_at_once_are_apart() -> None:
    frame = Run(random_run(11)).frame
    table = stats(frame, ["thread"], "dur_ns", kind=None)
    assert set(table["kind"]) == {"host", "launch", "scope"}
    hosts = table[table["kind"] == "host"]
    steps = frame[(frame["kind"] == "host") & (frame["scope"] == "train")]
    assert hosts["total"].sum() == steps["dur_ns"].sum()


def test_one_column_may_be_a_string() -> None:
    whole = Run(random_run(5))
    pd.testing.assert_frame_equal(whole.stats(by="scope"), whole.stats(by=["scope"]))
    for kind in ("scope", None):
        several = whole.stats(by="scope, program", kind=kind)
        pd.testing.assert_frame_equal(several, whole.stats(by=["scope", "program"], kind=kind))


@pytest.mark.parametrize(
    "by, hint",
    [
        ([], "got none"),
        (["xyz"], "got xyz"),
        (["scope", "scope"], "got scope, scope"),
        ("kernle", "got kernle; did you mean kernel?"),
        ("scope,kernle", "got scope, kernle; did you mean kernel?"),
        ("scope,,", "got scope, , "),
        (["scope", "progam"], "got scope, progam; did you mean program?"),
        ([3], "got 3"),
        (3, "got 3"),
        (None, "got None"),
    ],
)
def test_unknown_groups_are_refused(by: Any, hint: str) -> None:
    with pytest.raises(ProtonError, match="by must be some of scope, kernel") as caught:
        stats(Run(random_run(1)).frame, by)
    assert str(caught.value).endswith(hint)


def test_an_unknown_kind_is_refused() -> None:
    """It would be a table of nothing."""
    frame = Run(random_run(1)).frame
    for kind, hint in (("scpoe", "scpoe; did you mean scope\\?"), ("", ""), (3, "3")):
        with pytest.raises(ProtonError, match=rf"kind must be one of scope, .*, got {hint}$"):
            stats(frame, kind=kind)  # type: ignore[arg-type]
    assert {each.value for each in SliceKind} >= set(frame["kind"])


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ProtonError, match=r"metric must be one of corrected_ns, .*, got joy$"):
        stats(Run(random_run(1)).frame, ["scope"], "joy")
    with pytest.raises(ProtonError, match=r"got cycle; did you mean cycles\?"):
        stats(Run(random_run(1)).frame, ["scope"], "cycle")


SCOPES_SQL = """
    with scopes as (
      select id, parent_id, name, dur, extract_arg(arg_set_id, 'debug.{by}') as key from slice
      where extract_arg(arg_set_id, 'debug.cycles') is not null and category is not 'program'
    ), own as (
      select *,
        dur - coalesce((select sum(i.dur) from scopes i where i.parent_id = s.id), 0) as self,
        not exists (select 1 from ancestor_slice(s.id) a join scopes o on o.id = a.id
                    where {same}) as outermost
      from scopes s
    )
    select {column} as key, count() as count, sum(dur * outermost) as total, sum(self) as self,
      min(dur) as min, max(dur) as max, avg(dur) as mean
    from own where {column} is not null group by 1
"""


def test_slices_of_equal_ns_lie_in_each_other_as_in_the_trace(tmp_path: Path) -> None:
    """The clock's ticks say which is inside; a seed at which ns did not."""
    check_against_sql(Run(gpu_run(1000000330)), tmp_path, "payload.value0", "key", "o.key = s.key")


@pytest.mark.parametrize(
    ("by", "column", "same"),
    [
        ("name", "name", "o.name = s.name"),
        ("launch", "key", "o.key = s.key"),
        ("program", "key", "o.key = s.key"),
        ("iteration", "key", "o.key = s.key"),
        ("payload.value0", "key", "o.key = s.key"),
    ],
)
@pytest.mark.parametrize("where", ["cpu", "gpu"])
def test_numbers_are_those_of_sql_over_the_trace(
    tmp_path: Path, where: str, by: str, column: str, same: str, session_seed: int
) -> None:
    whole = Run(random_run(session_seed) if where == "cpu" else gpu_run(session_seed))
    check_against_sql(whole, tmp_path, by, column, same)


def check_against_sql(whole: Run, tmp_path: Path, by: str, column: str, same: str) -> None:
    with TraceProcessor(whole.save(tmp_path / "run.pftrace")) as processor:
        name = by.removeprefix("payload.")
        rows = processor.query(SCOPES_SQL.format(by=name, column=column, same=same))
    wanted = {row.pop("key"): row for row in rows}
    table = whole.stats(by, "dur_ns")
    found = {row.pop(by): row for row in table.to_dict("records") if row[by] != -1}
    assert found.keys() == wanted.keys()
    for key, row in wanted.items():
        for what in ("count", "total", "self", "min", "max"):
            assert found[key][what] == row[what], (key, what)
        assert found[key]["mean"] == pytest.approx(row["mean"])
    assert table["share"].sum() == pytest.approx(100)


TOUCHING_NS = 20  # of a group's time, in all


def test_the_frame_and_the_records_have_the_same_statistics() -> None:
    """A frame has ns, in which a slice of a few ticks may lie in its neighbour."""
    whole = Run(gpu_run(51, mixed=True, crossing=True))
    payload = ["payload.value0"]
    for by in (["kernel", "scope"], ["launch", "program"], ["warp", "iteration"], payload):
        for metric in ("corrected_ns", "cycles"):
            ours, theirs = whole.stats(by, metric), stats(whole.frame, by, metric)
            keys = list(theirs.columns[: theirs.columns.get_loc("count")])
            ours, theirs = (t.sort_values(keys, ignore_index=True) for t in (ours, theirs))
            pd.testing.assert_frame_equal(
                ours, theirs, check_dtype=False, check_categorical=False, atol=TOUCHING_NS
            )


def test_slices_are_filtered_by_path_and_time_and_groups_by_their_part() -> None:
    whole = Run(random_run(52))
    rows = whole.frame[whole.frame["kind"] == "scope"]
    path = rows["kernel"].astype(str) + "/" + rows["scope"].astype(str)
    middle = int(rows["start_ns"].median())
    cases = [
        (Filter(include="^add/.*slice 0$"), path.str.contains("^add/.*slice 0$")),
        (Filter(exclude="add|slice 1"), ~path.str.contains("add|slice 1")),
        (Filter(start_ns=middle), rows["start_ns"] >= middle),
        (Filter(end_ns=middle), rows["start_ns"] < middle),
        (Filter(include="nothing like it"), path == ""),
    ]
    for where, chosen in cases:
        table = whole.stats("launch", "dur_ns", where=where)
        counts = rows[chosen].groupby("launch").size().to_dict()
        assert dict(zip(table["launch"], table["count"], strict=True)) == counts
    everything = whole.stats("scope", "dur_ns")
    part = everything["total"] / everything["self"].sum()
    kept = whole.stats("scope", "dur_ns", where=Filter(threshold=part.median()))
    assert kept["scope"].tolist() == everything["scope"][part >= part.median()].tolist()
    with pytest.raises(ProtonError, match="is no regular expression"):
        whole.stats(where=Filter(include="("))


def test_a_tree_has_each_scope_below_the_one_around_it() -> None:
    names = ("outer", "outer/a", "outer/a/deep", "alone/b")
    table = tuple(Scope(name=path.rsplit("/", 1)[-1], path=path) for path in names)
    records = [
        Record(ticks(0), ticks(10), 2),
        Record(ticks(0), ticks(30), 1),
        Record(ticks(0), ticks(90), 0),
        Record(ticks(100), ticks(105), 3),
    ]
    owner = kernel(table=table)
    whole = Run(run([owner], [pack_launch(owner, (1, 1, 1), 8, [Written([records])])]))
    found = tree(whole.stats(metric="dur_ns"), whole.stats("kernel", "dur_ns"))
    assert found["scope"].tolist() == ["add", "  outer", "    a", "      deep", "  alone", "    b"]
    assert found["total"].fillna(-1).tolist() == [95, 90, 30, 10, -1, 5]


def test_nesting_is_the_same_a_few_tracks_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = Run(random_run(53, crossing=True))
    at_once = whole.stats(["kernel", "scope"])
    assert whole.records.nesting.crossed.any()
    monkeypatch.setattr(nesting, "AT_ONCE", 7)
    again = Run(whole.raw)
    for name in ("begin_at", "end_at", "crossed", "inside"):
        column = getattr(again.records.nesting, name)
        assert np.array_equal(column, getattr(whole.records.nesting, name))
    pd.testing.assert_frame_equal(again.stats(["kernel", "scope"]), at_once)


@pytest.mark.parametrize("metric", ["dur_ns", "corrected_ns", "cycles"])
@pytest.mark.parametrize("capacity", [64, 20])
def test_a_run_of_a_scope_is_counted_once(metric: str, capacity: int, session_seed: int) -> None:
    """Against pandas, piece by piece; a ring of 20 records has lost some of the first."""
    whole = Run(pieces_run(session_seed, capacity=capacity))
    frame = whole.frame[whole.frame["kind"] == "scope"]
    again = (frame["iteration"].diff() < -1).groupby(frame["program"]).cumsum()
    runs = frame.assign(end=frame["start_ns"] + frame["dur_ns"], again=again)
    # Work begun ahead of iteration 5 for one that never came belongs to the visit before.
    runs["iteration"] = runs["iteration"].replace({6: 4})
    runs["wait"] = np.where(runs["waits"], runs["dur_ns"], 0)
    keys = ["scope", "program", "again", "iteration"]
    want = runs.groupby(keys, observed=True).agg(
        pieces=("start_ns", "size"),
        busy=(metric, "sum"),
        start=("start_ns", "min"),
        end=("end", "max"),
        wait=("wait", "sum"),
    )
    table = whole.stats("scope", metric).set_index("scope")
    for scope, most in (("scores", 3), ("softmax", 1)):
        good = want.loc[scope]
        good = good[good["pieces"] >= most]
        row = table.loc[scope]
        assert row["count"] == len(good)
        assert (row["count"] == 36) == (capacity == 64)
        assert row["total"] == frame[frame["scope"] == scope][metric].sum()
        assert row["pieces"] == pytest.approx(good["pieces"].mean())
        assert row["mean"] == pytest.approx(good["busy"].mean())
        assert row["std"] == pytest.approx(good["busy"].std())
        assert row["p90"] == pytest.approx(np.percentile(good["busy"], 90))
        assert row["span"] == pytest.approx((good["end"] - good["start"]).mean())
        assert row["wait"] == pytest.approx(good["wait"].mean())
    pieces = whole.stats("scope", metric, pieces=True).set_index("scope")
    assert pieces["count"].to_dict() == Counter(frame["scope"])
    assert "span" not in pieces
    pd.testing.assert_frame_equal(stats(whole.frame, "scope", metric).set_index("scope"), table)
