"""The Perfetto trace, read back by Perfetto's own trace processor, is the run's frame."""

import gzip
import random
from pathlib import Path

import pytest
from synthetic import (
    ORIGIN_NS,
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

from proton.trace.model import RawRun
from proton.viewer import Run
from tests.perfetto_equality import FLOWS, assert_trace_equals_tables, read_back
from tests.trace_processor import TraceProcessor


@pytest.mark.parametrize("crossing", [False, True])
@pytest.mark.parametrize("where", ["cpu", "gpu", "both"])
def test_a_random_run_comes_back_exactly(tmp_path: Path, where: str, crossing: bool) -> None:
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}, {where}, crossing {crossing}")
    if where == "cpu":
        raw = random_run(seed, crossing=crossing)
    else:
        raw = gpu_run(seed, mixed=where == "both", crossing=crossing)
    assert_trace_equals_tables(Run(raw), tmp_path / "run.pftrace")


def test_tracks_of_a_gpu_are_in_order_and_flows_lead_to_its_launches(tmp_path: Path) -> None:
    whole = Run(gpu_run(5))
    with TraceProcessor(whole.save(tmp_path / "run.pftrace")) as processor:
        flows = processor.query(FLOWS)
        tracks = processor.query(
            "select parent_id, name, extract_arg(source_arg_set_id, 'sibling_order_rank') as rank"
            " from track where parent_id is not null"
        )
    wanted = zip(
        whole.launches["kernel"],
        whole.launches["host_start_ns"] + ORIGIN_NS,
        whole.launches["start_ns"] + ORIGIN_NS,
        strict=True,
    )
    assert sorted(("call", "launch", k, k, a, b) for k, a, b in wanted) == sorted(
        tuple(row.values()) for row in flows
    )
    siblings: dict[int, list[tuple[int, str]]] = {}
    for row in tracks:
        siblings.setdefault(row["parent_id"], []).append((row["rank"] or 0, row["name"]))
    named = {tuple(dict.fromkeys(name for _, name in sorted(rows))) for rows in siblings.values()}
    assert ("launches", "SM 0", "SM 1", "SM 2", "SM 3") in named
    assert any(names[:2] == ("attend (0, 0, 0)", "reduce 0") for names in named)
    assert ("warps 0-1", "warps 2-3", "warps 4-5", "warps 6-7") in named


def test_a_run_of_the_cpu_has_nothing_of_a_gpu(tmp_path: Path) -> None:
    data = Run(random_run(8)).save(tmp_path / "run.pftrace").read_bytes()
    assert b"call" not in data
    assert b"GPU" not in data


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


@pytest.mark.parametrize("raw", [random_run(9), gpu_run(9, mixed=True)])
def test_a_counter_is_one_track_for_all_launches_of_a_place(tmp_path: Path, raw: RawRun) -> None:
    with TraceProcessor(Run(raw).save(tmp_path / "run.pftrace")) as processor:
        tracks = processor.query(
            "select t.name as name, u.name as unit, p.id as place, count(*) as n"
            " from (select * from track where id in (select track_id from counter)) t"
            " join track u on t.parent_id = u.id"
            " left join track p on u.parent_id = p.id group by 1, 2, 3"
        )
        values = processor.query("select count(*) as n from counter")
    assert tracks
    assert {row["n"] for row in tracks} == {1}
    whole = Run(raw)
    payloads = [*whole.frame["payload"][whole.frame["kind"] == "scope"], *whole.marks["payload"]]
    assert values[0]["n"] == sum(len(payload or {}) for payload in payloads)
