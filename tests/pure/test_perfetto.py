"""The Perfetto trace, read back by Perfetto's own trace processor, is the run's frame."""

import gzip
import itertools
import random
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
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

from proton.viewer import Run
from proton.viewer.labels import program_name
from tests.trace_processor import TraceProcessor

SLICES = """
    select s.id, s.ts, s.dur, s.name, s.category, s.depth, s.parent_id, s.arg_set_id,
           t.id as track, t.name as track_name, p.name as place
    from slice s join track t on s.track_id = t.id left join track p on t.parent_id = p.id
    order by s.id
"""
ARGS = "select arg_set_id, key, int_value, real_value from args where key glob 'debug.*'"


def read_back(path: Path) -> tuple[list[dict[str, Any]], list[dict[str, Any]]]:
    """The slices of a trace, each with its args, and the importer's complaints."""
    with TraceProcessor(path) as processor:
        slices = processor.query(SLICES)
        args: dict[int, dict[str, Any]] = {}
        for row in processor.query(ARGS):
            value = row["real_value"] if row["int_value"] is None else row["int_value"]
            args.setdefault(row["arg_set_id"], {})[row["key"].removeprefix("debug.")] = value
        complaints = processor.complaints()
    for row in slices:
        row["args"] = args.get(row["arg_set_id"], {})
    return slices, complaints


def expected(run: Run) -> Iterator[tuple[Any, ...]]:
    """What the trace must hold, out of the run's tables."""
    for table, instant in ((run.frame, False), (run.marks, True)):
        for row in table.to_dict("records"):
            args = {} if row["iteration"] < 0 else {"iteration": row["iteration"]}
            args.update(row["payload"] or {})
            if row["launch"] >= 0 and row["program"] >= 0:
                launch = run.raw.launches[row["launch"]]
                owner = run.kernels[launch.kernel]
                track = program_name(owner, launch, row["program"], row["unit"])
                place = f"thread {row['thread']}"
                category = "fused" if row.get("fused") else None
            else:
                track, place = f"host thread {row['thread']}", None
                category = row["kind"]
            if instant:
                category = "mark"
            duration = 0 if instant else row["dur_ns"]
            start = row["start_ns"] + ORIGIN_NS
            if category == "launch":
                args = {}
            yield place, track, start, duration, row["name"], category, tuple(args.items())


def found(slices: list[dict[str, Any]]) -> Iterator[tuple[Any, ...]]:
    """What the trace holds, in the same shape."""
    for row in slices:
        if row["category"] in ("run", "loss"):
            continue
        args = {} if row["category"] == "launch" else row["args"]
        yield (
            row["place"],
            row["track_name"],
            row["ts"],
            row["dur"],
            row["name"],
            row["category"],
            tuple(args.items()),
        )


def order(row: tuple[Any, ...]) -> tuple[str, ...]:
    return tuple(map(repr, row))


def check_nesting(slices: list[dict[str, Any]]) -> None:
    """A parent holds its child, and no two siblings or strangers of a track overlap."""
    by_id = {row["id"]: row for row in slices}
    for row in slices:
        parent = by_id.get(row["parent_id"])
        assert row["depth"] == (0 if parent is None else parent["depth"] + 1)
        if parent is not None:
            assert parent["track"] == row["track"]
            assert parent["ts"] <= row["ts"]
            assert row["ts"] + row["dur"] <= parent["ts"] + parent["dur"]
    siblings: dict[Any, list[tuple[int, int]]] = {}
    for row in slices:
        key = row["track"], row["parent_id"]
        siblings.setdefault(key, []).append((row["ts"], row["ts"] + row["dur"]))
    for edges in siblings.values():
        edges.sort()
        assert all(a[1] <= b[0] for a, b in itertools.pairwise(edges))


@pytest.mark.parametrize("crossing", [False, True])
def test_a_random_run_comes_back_exactly(tmp_path: Path, crossing: bool) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}, crossing {crossing}")
    whole = Run(random_run(seed, crossing=crossing))
    slices, complaints = read_back(whole.save(tmp_path / "run.pftrace"))
    assert complaints == []
    assert sorted(found(slices), key=order) == sorted(expected(whole), key=order)
    check_nesting(slices)
    lost = [row for row in slices if row["category"] == "loss"]
    assert sum(row["args"]["lost"] for row in lost) == whole.totals.lost
    assert len(lost) == len(whole.losses)
    (summary,) = [row for row in slices if row["category"] == "run"]
    assert summary["name"] == whole.name
    assert summary["args"]["records_lost"] == whole.totals.lost
    launched = [row["args"] for row in slices if row["category"] == "launch"]
    assert sorted(a["written"] for a in launched) == sorted(whole.launches["written"])


def test_slices_of_one_instant_nest_and_do_not_close_each_other(tmp_path: Path) -> None:
    at = ticks(100)
    records = [
        Record(at, at, 0),  # empty, and recorded first: the innermost
        Record(at, at, 1),
        Record(at, at + 30, 2),
        Record(at, at + 60, 0),
        Record(at + 60, at + 60, 1),  # after the one that ends there, in the one that begins
        Record(at + 60, at + 90, 2),
    ]
    launch = pack_launch(kernel(), (1, 1, 1), 8, [Written([records])])
    whole = Run(run([kernel()], [launch]))
    slices, complaints = read_back(whole.save(tmp_path / "run.pftrace"))
    assert complaints == []
    depths = [(row["ts"] - ORIGIN_NS, row["dur"], row["depth"]) for row in slices if row["place"]]
    assert depths == [
        (100, 20, 0),
        (100, 10, 1),
        (100, 0, 2),
        (100, 0, 3),
        (120, 10, 0),
        (120, 0, 1),
    ]


def test_gzip_holds_the_same_bytes(tmp_path: Path) -> None:
    whole = Run(random_run(7))
    plain = whole.save(tmp_path / "run.pftrace").read_bytes()
    assert gzip.decompress(whole.save(tmp_path / "run.pftrace.gz").read_bytes()) == plain
    _, complaints = read_back(tmp_path / "run.pftrace.gz")
    assert complaints == []


def test_an_empty_run_is_a_good_trace(tmp_path: Path) -> None:
    slices, complaints = read_back(Run(run([], [])).save(tmp_path / "run.pftrace"))
    assert complaints == []
    assert [row["category"] for row in slices] == ["run"]


def test_large_and_negative_payloads_survive(tmp_path: Path) -> None:
    table = scopes(2, slots=2)
    values = [(-1, 0.0), ((1 << 63) - 1, float("inf")), (-(1 << 63), -0.0), (0, 5e-324)]
    records = [
        Record(ticks(i * 10), ticks(i * 10 + 5), 1, payload=pair) for i, pair in enumerate(values)
    ]
    owner = kernel(slots=2, table=table)
    whole = Run(run([owner], [pack_launch(owner, (1, 1, 1), 4, [Written([records])])]))
    slices, _ = read_back(whole.save(tmp_path / "run.pftrace"))
    args = [tuple(row["args"].values()) for row in slices if row["place"]]
    assert args == values
    assert [tuple(p.values()) for p in whole.frame["payload"][1:]] == values
