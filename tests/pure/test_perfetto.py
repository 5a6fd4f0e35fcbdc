"""The Perfetto trace, read back by Perfetto's own trace processor, is the run's frame."""

import gzip
import random
from dataclasses import replace
from pathlib import Path

import faults
import pytest
from synthetic import (
    ORIGIN_NS,
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

from proton.trace.model import RawRun
from proton.viewer import Run
from tests.perfetto_equality import FLOWS, assert_trace_equals_tables, joined_pieces, read_back
from tests.trace_processor import TraceProcessor


def test_waits_for_other_units_come_back(tmp_path: Path) -> None:
    raw = faults.gpu(faults.ring(2, count=8), launches=2, roles=["produce", "consume", "consume"])
    assert_trace_equals_tables(Run(raw), tmp_path / "run.pftrace")


@pytest.mark.parametrize("crossing", [False, True])
@pytest.mark.parametrize("where", ["cpu", "gpu", "both"])
def test_a_random_run_comes_back_exactly(
    tmp_path: Path, where: str, crossing: bool, session_seed: int
) -> None:
    if where == "cpu":
        raw = random_run(session_seed, crossing=crossing)
    else:
        raw = gpu_run(session_seed, mixed=where == "both", crossing=crossing)
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
    assert ("SM 0", "SM 1", "SM 2", "SM 3") in named
    assert ("slot 0", "slot 1") in named
    assert ("warps 0-1", "warps 2-3", "warps 4-5", "warps 6-7") in named


def test_tracks_are_places_that_programs_and_launches_use_again(tmp_path: Path) -> None:
    """So many programs of so many launches on a thread and on an SM, one after the other, are as
    many rows as one of each."""
    owners = [kernel(name="add"), kernel(name="mul", table=scopes(2))]
    launches = []
    for turn in range(6):
        programs = [
            Written([[Record(begin, begin + 90, 1), Record(begin, begin + 95, 0)]])
            for begin in (ticks(1000 * turn + 100 * place) for place in range(8))
        ]
        launch = pack_launch(owners[turn % 2], (8, 1, 1), 8, programs)
        launch.kernel = turn % 2
        launches.append(launch)
    slices, complaints = read_back(Run(run(owners, launches)).save(tmp_path / "run.pftrace"))
    assert complaints == []
    programs = [row for row in slices if row["category"] == "program"]
    assert {row["path"] for row in programs} == {("thread 0",)}
    assert [row["name"] for row in programs][7:10] == ["add (7)", "mul (0)", "mul (1)"]
    inner = [row for row in slices if row["path"] == ("thread 0",) and row["depth"]]
    assert {row["depth"] for row in inner} == {1, 2}
    assert len(inner) == 2 * len(programs) == 96


def test_a_launch_says_what_it_ran_with_and_a_scope_where_it_stands(tmp_path: Path) -> None:
    raw = gpu_run(6)
    facts = {"signature": "BLOCK=64", "registers": 40, "shared": 1024, "blocks_per_sm": 4}
    table = scopes(4, 1, 1)
    table = tuple(replace(scope, file="k.py", line=7 + n) for n, scope in enumerate(table))
    raw.kernels[0] = replace(raw.kernels[0], options=facts, scopes=table)
    path = Run(raw).save(tmp_path / "run.pftrace")
    slices, _ = read_back(path)
    launch = next(s["args"] for s in slices if (s["category"], s["name"]) == ("launch", "attend"))
    assert launch["grid"] == "(3, 2, 1)"
    assert launch["signature"] == facts["signature"]
    assert (launch["registers"], launch["shared"], launch["blocks_per_sm"]) == (40, 1024, 4)
    assert launch["occupancy"] == 4 * 8 * 32 / 2048  # of 8 warps, on 64 of compute capability 9.0
    with TraceProcessor(path) as processor:
        places = processor.query(
            "select s.name as name, extract_arg(s.arg_set_id, 'source.file_name') as file,"
            " extract_arg(s.arg_set_id, 'source.line_number') as line from slice s"
            " where name glob 'slice*' and line is not null group by 1, 2, 3"
        )
    found = [tuple(row.values()) for row in places]
    assert found == [("slice 0", "k.py", 7), ("slice 1", "k.py", 8), ("slice 3", "k.py", 10)]


def test_a_trace_says_little_twice(tmp_path: Path) -> None:
    """At most 30 bytes per slice, with everything on."""
    table = tuple(replace(scope, file="softmax.py", line=9) for scope in scopes(4, 1))
    owner = kernel(name="softmax", slots=1, table=table)
    random_ = random.Random(4)
    programs, now = [], 0
    for number in range(500):
        records = []
        for turn in range(20):
            now += random_.randrange(40, 90)
            end = now + random_.randrange(300, 900)
            edges, now = (ticks(now), ticks(end)), end
            records.append(Record(*edges, turn % 4, iteration=turn, payload=(number,)))
        programs.append(Written([records], thread=number % 2))
    whole = Run(run([owner], [pack_launch(owner, (500, 1, 1), 20, programs)]))
    size = whole.save(tmp_path / "run.pftrace", counters=True).stat().st_size
    assert size <= 30 * whole.totals.slices


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
    depths = [(row["ts"] - ORIGIN_NS, row["dur"], row["depth"]) for row in slices if row["depth"]]
    assert depths == [
        (100, 20, 1),
        (100, 10, 2),
        (100, 0, 3),
        (100, 0, 4),
        (120, 10, 1),
        (120, 0, 2),
    ]


def test_a_gzip_file_holds_the_same_slices(tmp_path: Path) -> None:
    whole = Run(random_run(7))
    packed = whole.save(tmp_path / "run.pftrace.gz")
    gzip.decompress(packed.read_bytes())
    assert read_back(packed) == read_back(whole.save(tmp_path / "run.pftrace"))


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
    args = [
        tuple(value for name, value in row["args"].items() if name.startswith("value"))
        for row in slices
        if row["depth"]
    ]
    assert args == values
    assert [tuple(p.values()) for p in whole.frame["payload"][1:]] == values


@pytest.mark.parametrize("raw", [random_run(9), gpu_run(9, mixed=True)])
def test_counters_are_asked_for_and_one_for_all_launches_of_a_place(
    tmp_path: Path, raw: RawRun
) -> None:
    with TraceProcessor(Run(raw).save(tmp_path / "plain.pftrace")) as processor:
        assert processor.query("select count(*) as n from counter") == [{"n": 0}]
    with TraceProcessor(Run(raw).save(tmp_path / "run.pftrace", counters=True)) as processor:
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


def test_the_pieces_of_a_run_of_a_scope_are_joined_in_order(
    tmp_path: Path, session_seed: int
) -> None:
    whole = Run(pieces_run(session_seed))
    wanted = joined_pieces(whole)
    assert len(wanted) == 2 * 36 + 6
    with TraceProcessor(whole.save(tmp_path / "run.pftrace")) as processor:
        flows = processor.query(FLOWS)
        visits = processor.query(
            "select extract_arg(arg_set_id, 'debug.visit') as visit, count(*) as pieces"
            " from slice where name = 'scores' group by 1"
        )
    found = [(row["source_ts"], row["target_ts"]) for row in flows if row["source"] is None]
    assert sorted(found) == sorted(wanted)
    assert [row["pieces"] for row in visits] == [3, 3, 3, 3, 4, 3] * 6
