"""Clocks of 32 bits: whatever a program wrote comes back in 64, across every wrap."""

import random
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import Record, Written, kernel, nested_records, pack_launch, run, scopes, ticks

from proton.trace.decode import Decoded, decode
from proton.trace.model import Kernel, Strategy
from proton.viewer import Run, TraceFormatError

WRAP = 1 << 32


def moved(records: list[Record], shift: int, stretch: int) -> list[Record]:
    """The records with their clocks stretched and moved."""

    def clock(at: int) -> int:
        return (at - ticks(0)) * stretch + shift

    return [replace(r, start=clock(r.start), end=clock(r.end)) for r in records]


def kept_by(owner: Kernel, capacity: int, records: list[Record]) -> list[Record]:
    if owner.strategy is Strategy.COUNTING:
        return []
    return records if owner.strategy is Strategy.FLUSH else records[-capacity:]


def clocks(found: Decoded) -> list[tuple[int, int, int]]:
    columns = found.track.tolist(), found.start.tolist(), found.end.tolist()
    return list(zip(*columns, strict=True))


@given(
    seed=st.integers(0, WRAP),
    zero=st.sampled_from([0, WRAP - 40_000, 5 * WRAP - 20_000, (1 << 60) - 3]),
    stretch=st.sampled_from([1, 7, 40_000]),  # the longest step: 3000 x 40 000 ticks
    units=st.integers(1, 4),
    slots=st.integers(0, 3),
    capacity=st.integers(1, 9),
    strategy=st.sampled_from(Strategy),
    counts=st.lists(st.integers(0, 60), min_size=1, max_size=8),
)
def test_what_a_finished_program_wrote_comes_back(
    seed: int,
    zero: int,
    stretch: int,
    units: int,
    slots: int,
    capacity: int,
    strategy: Strategy,
    counts: list[int],
) -> None:
    random_ = random.Random(seed)
    owner = kernel(strategy, units=units, slots=slots, table=scopes(3, slots, 1), clock_bits=32)
    programs = []
    for p in range(3):
        lists = [
            moved(
                nested_records(random_, owner.scopes, counts[(p + u) % len(counts)], 0),
                zero + random_.randrange(2 * WRAP),
                stretch,
            )
            for u in range(units)
        ]
        edges = [edge for unit in lists for r in unit for edge in (r.start, r.end)] or [zero]
        # units begin up to two wraps apart, but each ends shortly before the program does
        last = max(edges)
        lists = [
            moved(unit, ticks(0) + last - unit[-1].end - random_.randrange(WRAP // 2), 1)
            if unit
            else unit
            for unit in lists
        ]
        first = min([r.start for unit in lists for r in unit], default=last)
        shift = max(0, -first)  # no clock lies before 0
        lists = [moved(unit, ticks(0) + shift, 1) for unit in lists]
        programs.append(Written(lists, clock=(max(first, 0), last + shift)))
    held = 0 if strategy is Strategy.COUNTING else capacity
    launch = pack_launch(owner, (3, 1, 1), held, programs, flush=strategy is Strategy.FLUSH)
    random_.shuffle(launch.chunks)
    found = decode(owner, launch)
    wanted = [
        (p * units + u, r.start, r.end)
        for p, program in enumerate(programs)
        for u, unit in enumerate(program.units)
        for r in kept_by(owner, capacity, unit)
    ]
    assert clocks(found) == wanted
    assert found.written.tolist() == [len(unit) for p in programs for unit in p.units]
    wide = decode(replace(owner, clock_bits=64), pack_launch(
        replace(owner, clock_bits=64), (3, 1, 1), held, programs, flush=strategy is Strategy.FLUSH
    ))  # fmt: skip
    for name in ("written", "kept", "track", "scope", "kind", "iteration", "start", "end"):
        assert getattr(found, name).tolist() == getattr(wide, name).tolist()
    assert found.payload.tolist() == wide.payload.tolist()


@given(
    seed=st.integers(0, WRAP),
    zero=st.sampled_from([1, WRAP - 1000, 3 * WRAP - 7]),
    units=st.integers(1, 3),
    count=st.integers(0, 30),
    capacity=st.integers(1, 40),
    flush=st.booleans(),
)
def test_what_a_killed_program_left_is_what_64_bits_leave(
    seed: int, zero: int, units: int, count: int, capacity: int, flush: bool
) -> None:
    random_ = random.Random(seed)
    table = scopes(3, marks=1)
    strategy = Strategy.FLUSH if flush else Strategy.CIRCULAR
    programs = []
    for state in (1, 2, 1):
        lists = [
            [
                r
                for r in moved(nested_records(random_, table, count, 0), zero, 1)
                if r.start % WRAP and r.end % WRAP  # a clock of 0 reads as one never stored
            ]
            for _ in range(units)
        ]
        last = max((r.end for unit in lists for r in unit), default=zero)
        counts = [random_.randrange(len(unit) + 1) for unit in lists] if state == 1 else []
        programs.append(Written(lists, state=state, clock=(zero, last), table=counts))
    found = []
    for bits in (32, 64):
        owner = kernel(strategy, units=units, table=table, clock_bits=bits)
        launch = pack_launch(owner, (3, 1, 1), capacity, programs, flush=flush)
        found.append(decode(owner, launch))
    for name in ("state", "written", "kept", "track", "scope", "kind", "start", "end"):
        assert getattr(found[0], name).tolist() == getattr(found[1], name).tolist()
    if not flush:
        kept = [min(len(unit), capacity) for program in programs for unit in program.units]
        assert found[0].kept.tolist() == kept


def test_slots_that_were_never_or_half_stored_are_not_records() -> None:
    owner = kernel(clock_bits=32)
    records = [Record(ticks(1), ticks(2)), Record(ticks(3), ticks(3) & ~(WRAP - 1))]
    launch = pack_launch(
        owner, (1, 1, 1), 8, [Written([records], state=1, clock=(ticks(0), 0), table=[0])]
    )
    found = decode(owner, launch)
    assert clocks(found) == [(0, ticks(1), ticks(2))]


def test_a_program_of_2_to_the_32_cycles_is_one_warning_that_says_what_to_do() -> None:
    for bits, length, lines in ((32, WRAP, 1), (32, WRAP - 1, 0), (64, WRAP, 0)):
        owner = kernel(name="slow", clock_bits=bits)
        record = Record(ticks(1), ticks(2))
        programs = [Written([[record]], clock=(ticks(0), ticks(0) + length))] * 2
        found = Run(run([owner], [pack_launch(owner, (2, 1, 1), 4, programs)])).summary().warnings
        assert len(found) == lines
        if lines:
            assert found[0].startswith("2 programs of slow ran for 2^32 cycles or more")
            assert "use 64-bit clocks" in found[0]


def test_a_width_that_no_clock_has_is_refused() -> None:
    owner = kernel(clock_bits=32)
    launch = pack_launch(owner, (1, 1, 1), 4, [Written([[]])])
    with pytest.raises(TraceFormatError, match=r"kernel 0 \(add\): clock_bits must be one of"):
        Run(run([replace(owner, clock_bits=16)], [launch])).frame


@pytest.mark.parametrize("bits", [32, 64])
@pytest.mark.parametrize("early, kept", [(0, 2), (500, 2), (1 << 17, 1)])
def test_a_warp_of_a_killed_program_may_begin_before_the_one_that_reads_the_clock(
    bits: int, early: int, kept: int
) -> None:
    began = 3 * WRAP + 100_000_000
    owner = kernel(units=2, clock_bits=bits, target="cuda:90")
    units = [
        [Record(began + 10, began + 20)],
        [Record(began - early, began - early + 50)],
    ]
    program = Written(units, state=1, clock=(began, 0), table=[0, 0])
    found = decode(owner, pack_launch(owner, (1, 1, 1), 4, [program]))
    records = clocks(found)
    assert (0, began + 10, began + 20) in records
    if kept == 2:
        assert (1, began - early, began - early + 50) in records
    else:
        assert bits == 32 or len(records) == 1
