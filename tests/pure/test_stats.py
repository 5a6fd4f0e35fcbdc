"""Statistics against numpy, one group at a time, and against a search for what lies in what."""

import random
from collections import defaultdict
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
    random_run,
    run,
    scopes,
    ticks,
)

from proton.base.errors import ProtonError
from proton.viewer import Run, stats

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
def test_no_time_is_counted_twice(by: list[str]) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")
    frame = Run(random_run(seed)).frame
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
    owners = [kernel(name="add"), kernel(name="mul"), kernel(name="add", emptied=("gone",))]
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
    assert whole.emptied.values.tolist() == [["add", 2, "gone"]]
    assert whole.summary().warnings[-1].endswith("without work: add #2: gone")
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


@pytest.mark.parametrize(
    "by, hint",
    [
        ([], "got none"),
        (["xyz"], "got xyz"),
        (["scope", "scope"], "got scope, scope"),
        ("kernle", "got kernle; did you mean kernel?"),
        (["scope", "progam"], "got scope, progam; did you mean program?"),
        ([3], "got 3"),
    ],
)
def test_unknown_groups_are_refused(by: Any, hint: str) -> None:
    with pytest.raises(ProtonError, match="by must be some of scope, kernel") as caught:
        stats(Run(random_run(1)).frame, by)
    assert str(caught.value).endswith(hint)


def test_an_unknown_metric_is_refused() -> None:
    with pytest.raises(ProtonError, match=r"metric must be one of corrected_ns, .*, got joy$"):
        stats(Run(random_run(1)).frame, ["scope"], "joy")
    with pytest.raises(ProtonError, match=r"got cycle; did you mean cycles\?"):
        stats(Run(random_run(1)).frame, ["scope"], "cycle")
