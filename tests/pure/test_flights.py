"""Asynchronous work: which wait retires what was issued, and what every output makes of it."""

import random
from collections import deque
from pathlib import Path

import pytest
from synthetic import Record, Written, kernel, pack_launch, run, scopes, ticks

from proton.trace.errors import TraceFormatError
from proton.trace.model import ONE, RawRun, Scope
from proton.viewer import Run
from tests.perfetto_equality import assert_trace_equals_tables

PENDINGS = (0, 1, 2)


def edge(kind: str, queue: str, pendings: int = 0) -> Scope:
    name = f"{kind} {queue}" + (f" {pendings}" if pendings else "")
    return Scope(
        name=name, path=f"load/{name}", kind=kind, work=queue, queue=queue, pendings=pendings
    )


TABLE = (
    *scopes(1),
    edge("issue", "copies"),
    *(edge("wait", "copies", n) for n in PENDINGS),
    edge("issue", "dots"),
    edge("wait", "dots"),
    edge("issue", "bulk copies"),
    edge("wait", "bulk copies", ONE),
)
ISSUE, WAIT, DOT, DOT_WAIT, BULK, BULK_WAIT = 1, 2, 5, 6, 7, 8


def written(units: list[list[int]], capacity: int = 64) -> RawRun:
    """A run of one program whose units make slices of these scopes, 10 ns each, 10 ns apart;
    iterations count the slices of a unit."""
    owner = kernel(table=TABLE, units=len(units))
    records = [
        [
            Record(ticks(20 * n + 5 * unit), ticks(20 * n + 10 + 5 * unit), scope, 0, n)
            for n, scope in enumerate(own)
        ]
        for unit, own in enumerate(units)
    ]
    clock = ticks(0), ticks(100_000)
    return run([owner], [pack_launch(owner, (1, 1, 1), capacity, [Written(records, clock=clock)])])


def flown(raw: RawRun) -> list[tuple[int, int, int]]:
    """(unit of the issue, its number there, the number of the wait in its unit) of each flight,
    counted among the records that are there."""
    records = Run(raw).records
    found = records.flights
    first = {t: int((records.track < t).sum()) for t in range(records.tracks.kept.size)}
    rows = zip(found.issue.tolist(), found.wait.tolist(), strict=True)
    track = records.track.tolist()
    return [(track[i], i - first[track[i]], w - first[track[w]]) for i, w in rows]


def test_a_wait_retires_all_but_the_newest() -> None:
    # Two copies ahead of a loop, then wait for the older one, begin another.
    scopes_ = [ISSUE, ISSUE, WAIT + 1, ISSUE, WAIT + 1, ISSUE, WAIT]
    assert flown(written([scopes_])) == [(0, 0, 2), (0, 1, 4), (0, 3, 6), (0, 5, 6)]
    # A wait that retires nothing; what nobody waits for.
    assert flown(written([[ISSUE, WAIT + 2, WAIT, ISSUE]])) == [(0, 0, 2)]
    assert Run(written([[ISSUE, WAIT, ISSUE]])).records.flights.alone.tolist() == [2]
    # Queues do not know each other.
    assert flown(written([[ISSUE, DOT, DOT_WAIT, WAIT]])) == [(0, 0, 3), (0, 1, 2)]


def test_waits_of_another_unit_take_one_piece_of_work_each() -> None:
    assert flown(written([[BULK, BULK, BULK], [BULK_WAIT, BULK_WAIT]])) == [(0, 0, 0), (0, 1, 1)]
    # Both of two consumers wait for each; of two producers the first counts.
    both = written([[BULK, BULK], [BULK, BULK], [BULK_WAIT] * 2, [BULK_WAIT] * 2])
    assert flown(both) == [(0, 0, 0), (0, 0, 0), (0, 1, 1), (0, 1, 1)]
    # A unit that waits for its own takes nobody else's.
    assert flown(written([[BULK, BULK_WAIT], [BULK, BULK_WAIT]])) == [(0, 0, 1), (1, 0, 1)]


def test_what_a_ring_lost_changes_no_other_pair() -> None:
    turn = [WAIT + 2, ISSUE, DOT, DOT_WAIT]
    units = [[ISSUE, ISSUE, ISSUE, *turn * 20, WAIT]]
    whole = {tuple(row) for row in _times(written(units, 128))}
    for capacity in (8, 16, 32):
        part = {tuple(row) for row in _times(written(units, capacity))}
        assert part
        assert part < whole
    # In pairs of one by one the newest go together.
    lossy = written([[BULK] * 20, [BULK_WAIT] * 20], 8)
    assert _times(lossy) == _times(written([[BULK] * 20, [BULK_WAIT] * 20]))[-8:]


def _times(raw: RawRun) -> list[tuple[int, int]]:
    flights = Run(raw).flights
    return list(zip(flights["start_ns"].tolist(), flights["dur_ns"].tolist(), strict=True))


@pytest.mark.parametrize("seed", range(20))
def test_random_queues_behave_as_hardware_does(seed: int) -> None:
    """Each wait empties a queue but for its newest entries, of random issues and waits."""
    random_ = random.Random(seed)
    own = [random_.choice((ISSUE, ISSUE, *(WAIT + n for n in PENDINGS))) for _ in range(60)]
    queue: deque[int] = deque()
    expected = []
    for number, scope in enumerate(own):
        if scope == ISSUE:
            queue.append(number)
        else:
            while len(queue) > scope - WAIT:
                expected.append((0, queue.popleft(), number))
    assert flown(written([own])) == expected


def test_a_row_a_flight() -> None:
    whole = Run(written([[ISSUE, ISSUE, DOT, DOT_WAIT, WAIT + 1, WAIT]]))
    (first, second, third) = whole.flights.to_dict("records")
    assert (first["name"], first["work"], first["scope"]) == (
        "copies", "copies", "load/issue copies"
    )  # fmt: skip
    assert (first["start_ns"], first["dur_ns"]) == (0, 90)
    assert (first["issue_ns"], first["hidden_ns"], first["wait_ns"]) == (10, 70, 10)
    assert (second["iteration"], second["dur_ns"], third["queue"]) == (1, 90, "dots")
    assert whole.totals.flights == 3
    assert whole.summary().facts["flights"] == "3"


@pytest.mark.parametrize("seed", [1, 2])
def test_perfetto_shows_what_the_table_has(tmp_path: Path, seed: int) -> None:
    """Slices on the tracks of queues, flows to the waits, and depths as counters."""
    random_ = random.Random(seed)
    own = [
        [random_.choice((ISSUE, WAIT, WAIT + 1, DOT, DOT_WAIT, 0)) for _ in range(40)]
        for _ in range(3)
    ]
    whole = Run(written([*own, [BULK] * 9, [BULK_WAIT] * 8]))
    assert len(whole.flights) > 20
    assert_trace_equals_tables(whole, tmp_path / "run.pftrace")
    loaded = Run.load(whole.save(tmp_path / "run.proton"))
    assert loaded.flights.equals(whole.flights)


def test_a_queue_is_of_an_issue_or_a_wait() -> None:
    table = (Scope(name="a", path="a", queue="copies"),)
    owner = kernel(table=table)
    launch = pack_launch(owner, (1, 1, 1), 4, [Written([[Record(ticks(1), ticks(2))]])])
    with pytest.raises(TraceFormatError, match="a queue is of an issue or a wait, got slice"):
        Run(run([owner], [launch])).records.kind
