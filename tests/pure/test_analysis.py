"""What kernels wait for, on runs whose answers are known."""

import random

import faults
import numpy as np
import pytest
from synthetic import Record, Written, kernel, pack_launch, run, ticks

from proton.trace.model import ONE, RawRun, Scope
from proton.trace.wire import ProgramState
from proton.viewer import Run
from proton.viewer.tables.critical import shares

TABLE = (
    Scope(name="load", path="load"),
    Scope(name="issue copy", path="issue copy", kind="issue", work="copies", queue="bulk"),
    Scope(
        name="wait copy", path="wait copy", kind="wait", work="copies", queue="bulk", pendings=ONE
    ),
    Scope(name="compute", path="compute"),
    Scope(name="barrier", path="barrier", kind="wait", work="barriers"),
    Scope(name="issue dot", path="issue dot", kind="issue", work="dots", queue="dots"),
    Scope(name="wait dot", path="wait dot", kind="wait", work="dots", queue="dots"),
    Scope(name="issue arrival", path="issue arrival", kind="issue", work="barriers", queue="empty"),
    Scope(
        name="wait arrival",
        path="wait arrival",
        kind="wait",
        work="barriers",
        queue="empty",
        pendings=ONE,
    ),
    Scope(
        name="wait release",
        path="wait release",
        kind="wait",
        work="locks",
        queue="lock",
        pendings=ONE,
    ),
    Scope(name="issue release", path="issue release", kind="issue", work="locks", queue="lock"),
)
LOAD, ISSUE, WAIT, COMPUTE, BARRIER, DOT, DOT_WAIT, ARRIVE, FOR_THREADS, SPIN, RELEASE = range(
    len(TABLE)
)
Slice = tuple[int, int, int]  # scope, start and end in ns


def one_program(units: list[list[Slice]], state: int = ProgramState.FINISHED) -> RawRun:
    owner = kernel(table=TABLE, units=len(units))
    records = [[Record(ticks(a), ticks(b), scope) for scope, a, b in own] for own in units]
    clock = ticks(0), ticks(max(b for own in units for _, _, b in own))
    capacity = max(map(len, units))
    launch = pack_launch(owner, (1, 1, 1), capacity, [Written(records, state=state, clock=clock)])
    return run([owner], [launch])


def chain(loads: list[int], flight: int, computes: list[int]) -> tuple[list[list[Slice]], int]:
    """A producer that loads and issues, and a consumer that waits and computes; and the longest way
    through both, counted forwards."""
    producer: list[Slice] = []
    consumer: list[Slice] = []
    now = done = 0
    for load, compute in zip(loads, computes, strict=True):
        producer += [(LOAD, now, now + load), (ISSUE, now + load, now + load + 10)]
        now += load + 10
        landed = max(now + flight, done + 1)
        consumer += [(WAIT, done, landed), (COMPUTE, landed, landed + compute)]
        done = landed + compute
    return [producer, consumer], done


def test_the_path_of_a_slow_producer_goes_through_its_loads() -> None:
    units, end = chain([500] * 6, 200, [100] * 6)
    path = Run(one_program(units)).critical_path()
    assert path["start_ns"].iloc[0] == 0
    assert int(path["dur_ns"].sum()) == end
    found = list(zip(path["unit"], path["kind"], path["scope"], path["dur_ns"], strict=True))
    turn = [(0, "work", "load", 500), (0, "work", "issue copy", 10)]
    assert found == [*turn * 6, (1, "flight", "copy", 200), (1, "work", "compute", 100)]


def test_the_path_of_a_slow_consumer_waits_once() -> None:
    units, end = chain([50] * 6, 200, [900] * 6)
    path = Run(one_program(units)).critical_path()
    table = shares(path).set_index(["kind", "scope"])["sum_ns"]
    waits = 5  # of 1 ns each, that nothing was waited for in
    assert table["work", "compute"] == 6 * 900
    assert (table["flight", "copy"], table["work", "load"]) == (200, 50)
    assert table["work", "wait copy"] == waits
    assert int(path["dur_ns"].sum()) == end


@pytest.mark.parametrize("seed", range(10))
def test_a_path_has_no_holes_and_is_as_long_as_its_program(seed: int) -> None:
    random_ = random.Random(seed)
    count = random_.randrange(1, 12)
    lengths = [[random_.randrange(30, 900) for _ in range(count)] for _ in range(2)]
    units, end = chain(lengths[0], random_.randrange(30, 400), lengths[1])
    path = Run(one_program(units)).critical_path()
    ends = (path["start_ns"] + path["dur_ns"]).tolist()
    assert path["start_ns"].tolist() == [0, *ends[:-1]]
    assert ends[-1] == end


def barriers(early: int, by: int, turns: int = 12) -> list[list[Slice]]:
    """Four units that meet again and again; one of them is there earlier."""
    units: list[list[Slice]] = [[] for _ in range(4)]
    now = 0
    for turn in range(turns):
        there = [now + 5000 + 100 * ((unit + turn) % 4) for unit in range(4)]
        there[early] -= by
        met = max(there) + 15
        for unit, own in enumerate(units):
            own += [(COMPUTE, now, there[unit]), (BARRIER, there[unit], met)]
        now = met
    return units


def test_a_unit_that_waits_longer_at_each_barrier_is_named() -> None:
    whole = Run(one_program(barriers(2, 2000)))
    first = whole.imbalance.iloc[0]
    assert (first["wait"], first["unit"], first["count"]) == ("barrier", 2, 12)
    assert first["more_ns"] == pytest.approx(2000, rel=0.05)
    (stall,) = whole.stalls.to_dict("records")
    assert (stall["work"], stall["count"]) == ("barriers", 48)
    units = barriers(2, 2000)
    waited = sum(b - a for own in units for scope, a, b in own if scope == BARRIER)
    assert stall["sum_ns"] == waited
    assert stall["share"] == pytest.approx(100 * waited / (4 * units[0][-1][2]))


def test_the_path_at_barriers_is_that_of_who_comes_last() -> None:
    units = barriers(0, 0)
    path = Run(one_program(units)).critical_path()
    last = []
    for turn in range(12):
        slices = [own[2 * turn : 2 * turn + 2] for own in units]
        last.append(max(range(4), key=lambda unit: slices[unit][1][1]))
    work = path[(path["kind"] == "work") & (path["scope"] == "compute")]
    assert work["unit"].tolist() == last
    assert int(path["dur_ns"].sum()) == units[0][-1][2]


def test_who_emptied_the_buffer_is_on_the_path() -> None:
    """With one slot each copy waits for the work before it; with four it does not."""
    count, fetch, flight, compute = 6, 50, 300, 400
    units = faults.ring(1, fetch, flight, compute, count)
    path = Run(faults.gpu(units, launches=1)).critical_path()
    sums = shares(path).set_index(["kind", "scope"])["sum_ns"]
    assert sums["work", "reduce"] == count * (compute + 30)
    assert sums["flight", "copy"] == count * flight
    assert sums["work", "softmax"] == count * fetch
    assert set(path[path["scope"] == "reduce"]["unit"]) == {2}  # the slower warp
    ends = (path["start_ns"] + path["dur_ns"]).tolist()
    assert path["start_ns"].tolist()[1:] == ends[:-1]
    units = faults.ring(4, fetch, flight, compute, count)
    sums = shares(Run(faults.gpu(units, launches=1)).critical_path()).set_index(["kind", "scope"])
    assert sums["sum_ns"]["flight", "copy"] == flight
    assert sums["sum_ns"]["work", "softmax"] == fetch


def test_who_held_the_lock_is_on_the_path() -> None:
    """Three programs that take one lock, each for 500 ns; the last of them loads for 1700 first."""
    loads, held = (100, 150, 1700), 500
    programs, free = [], 0
    for n, load in enumerate(loads):
        got = max(load + 5, free + 30)
        own = [(LOAD, 0, load), (SPIN, load, got), (COMPUTE, got, got + held),
               (RELEASE, got + held, got + held + 10)]  # fmt: skip
        records = [[Record(ticks(a), ticks(b), scope) for scope, a, b in own]]
        programs.append(Written(records, clock=(ticks(0), ticks(own[-1][2])), thread=n))
        free = got + held
    owner = kernel(table=TABLE)
    whole = Run(run([owner], [pack_launch(owner, (3, 1, 1), 4, programs)]))
    assert whole.flights[["program", "start_ns"]].values.tolist() == [[0, 605]]
    steps = [(0, "load"), (0, "wait release"), (0, "compute"), (0, "issue release"),
             (1, "release"), (1, "compute"), (1, "issue release")]  # fmt: skip
    path = whole.critical_path(program=1)
    assert list(zip(path["program"], path["scope"], strict=True)) == steps
    assert int(path["dur_ns"].sum()) == 605 + 30 + held + 10
    path = whole.critical_path(program=2)  # nobody held it up
    assert path["scope"].tolist() == ["load", "wait release", "compute", "issue release"]
    assert whole.stalls["work"].tolist() == ["locks"]


def test_the_path_of_a_launch_is_that_of_its_waves() -> None:
    """Five programs on two threads: the one that is done last had two of them."""
    raw = faults.cpu([50_000, 40_000, 30_000, 60_000, 20_000], launches=2)
    whole = Run(raw)
    path = whole.critical_path(1, whole=True)
    assert list(dict.fromkeys(path["program"])) == [0, 3]
    assert int(path["dur_ns"].sum()) == pytest.approx(110_000, abs=50)
    assert len(set(whole.critical_path(1)["program"])) == 1


def test_a_wait_that_found_its_phase_ended_has_no_flight() -> None:
    """What retires a wait is the last arrival that came while it was under way."""
    consumer = [(ARRIVE, 40, 50), (ARRIVE, 400, 410), (ARRIVE, 700, 710)]
    producer = [(FOR_THREADS, 0, 20), (FOR_THREADS, 100, 120), (FOR_THREADS, 300, 405)]
    (flight,) = Run(one_program([producer, consumer])).flights.to_dict("records")
    assert (flight["start_unit"], flight["end_unit"], flight["start_ns"]) == (1, 0, 400)
    assert (flight["dur_ns"], flight["wait_ns"], flight["hidden_ns"]) == (5, 105, 0)


def test_a_killed_program_ran_as_long_as_its_records_say() -> None:
    units = [[(LOAD, 1, 50), (BARRIER, 50, 450)], [(COMPUTE, 1, 401), (BARRIER, 401, 450)]]
    whole = Run(one_program(units, ProgramState.STARTED))
    assert whole.totals.partial == 1
    (stall,) = whole.stalls.to_dict("records")
    assert stall["share"] == pytest.approx(100 * 449 / (2 * 450))
    path = whole.critical_path()
    assert path["scope"].tolist() == ["compute", "barrier"]


def test_a_wait_whose_issue_is_not_on_record_is_its_units_own() -> None:
    """Of another unit that came later to such a wait nobody knows anything."""
    units = [[(LOAD, 0, 50), (WAIT, 50, 450)], [(COMPUTE, 0, 400), (WAIT, 400, 440)]]
    path = Run(one_program(units)).critical_path()
    found = list(zip(path["unit"], path["kind"], path["scope"], strict=True))
    assert found == [(0, "work", "load"), (0, "work", "wait copy")]


def test_work_is_not_waited_for_before_it_is_issued() -> None:
    """A killed program's rings lose records that nobody counted: here the first issue and wait."""
    units = [[(ISSUE, 500, 510), (ISSUE, 700, 710)], [(WAIT, 300, 400), (WAIT, 600, 800)]]
    whole = Run(one_program(units, ProgramState.STARTED))
    assert whole.flights[["start_ns", "dur_ns"]].values.tolist() == [[700, 100]]
    assert whole.records.flights.alone.tolist() == [0]
    assert whole.overlap["copies_ns"].tolist() == [100]


def test_how_much_of_the_copies_products_hide() -> None:
    """Copies from 0 to 100 and 150 to 250, products from 60 to 200: 90 of 200."""
    consumer = [(ISSUE, 0, 10), (DOT, 60, 70), (WAIT, 90, 100), (ISSUE, 150, 160),
                (DOT_WAIT, 190, 200), (WAIT, 240, 250)]  # fmt: skip
    (row,) = Run(one_program([consumer])).overlap.to_dict("records")
    assert (row["copies_ns"], row["dots_ns"], row["hidden_ns"]) == (200, 140, 90)
    assert row["hidden"] == pytest.approx(45)


def test_runs_without_waits_have_empty_tables() -> None:
    whole = Run(one_program([[(LOAD, 0, 50)]]))
    assert [len(t) for t in (whole.stalls, whole.imbalance, whole.overlap)] == [0, 0, 0]
    assert whole.critical_path()["scope"].tolist() == ["load"]
    assert len(whole.critical_path(launch=7)) == 0
    assert np.isfinite(shares(whole.critical_path())["share"]).all()
