"""Clocks of GPUs against chips whose SMs, rates and timers are known exactly."""

import contextlib
import random
import struct
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from synthetic import (
    ORIGIN_NS,
    Chip,
    Record,
    Written,
    gpu_run,
    kernel,
    pack_launch,
    random_run,
    run,
)

from proton.trace.model import GPUClock, Kernel, Launch, RawRun
from proton.viewer import Run, TraceFormatError

OWNER = kernel(name="add", target="cuda:90", clock_bits=32)


def launched(
    chip: Chip, programs: list[Written], owner: Kernel = OWNER, host: int = 1000
) -> Launch:
    return pack_launch(
        owner,
        (len(programs), 1, 1),
        16,
        programs,
        host=(ORIGIN_NS + host, ORIGIN_NS + host + 500),
        device=chip.device,
    )


def a_run(chips: list[Chip], launches: list[Launch], owner: Kernel = OWNER, **costs) -> RawRun:
    raw = run([owner], launches)
    raw.gpus = [chip.clock(**costs) for chip in chips]
    return raw


def assert_within_error(row: Any, record: Record) -> None:
    """Start, end and duration are off by no more than is said, beside the rounding to whole ns
    and, by the chip, to whole cycles."""
    error = row.error_ns + 2
    assert abs(row.start_ns - record.start) <= error
    assert abs(row.start_ns + row.dur_ns - record.end) <= error
    assert abs(row.dur_ns - (record.end - record.start)) <= error


@given(
    seed=st.integers(0, 1 << 32),
    rate=st.floats(0.3, 1.5),
    resolution=st.sampled_from([1, 32, 1000]),
    drift=st.sampled_from([0.0, 3e-5, -8e-5]),
    waves=st.integers(2, 6),
)
def test_every_time_lies_within_its_error(
    seed: int, rate: float, resolution: int, drift: float, waves: int
) -> None:
    random_ = random.Random(seed)
    chip = Chip(random_, sms=5, resolution=resolution, drift=drift)
    true, programs = [], []
    for number in range(5 * waves):
        begin = 10_000 + number // 5 * 60_000 + random_.randrange(5000)
        records = [
            Record(at, at + random_.randrange(200))
            for at in range(begin + 10, begin + 50_000, 7000)
        ]
        true += records
        programs.append(chip.program(number % 5, begin, begin + 55_000, rate, [records]))
    whole = Run(a_run([chip], [launched(chip, programs)]))
    rows = whole.frame[whole.frame["kind"] == "scope"]
    assert rows["sm"].tolist() == [n % 5 for n in range(5 * waves) for _ in range(8)]
    for row, record in zip(rows.itertuples(), true, strict=True):
        assert_within_error(row, record)
        assert row.dur_ns == pytest.approx(
            record.end - record.start, abs=2 + 2 * resolution * 200 / 50_000
        )
        assert row.error_ns <= 3 * resolution + 2  # no residual is above a resolution
    (clock,) = whole.records.gpu.launches.values()
    assert clock.measured
    assert clock.rate == pytest.approx(rate * (1 + drift), rel=max(resolution, 4) / 50_000)
    (launch,) = whole.launches.to_dict("records")
    assert launch["start_ns"] == pytest.approx(
        min(p.timer[0] for p in programs) / (1 + drift) - chip.timer_zero / (1 + drift), abs=1500
    )
    assert launch["host_start_ns"] == 1000
    assert launch["device"] == 0


SPREAD = 2e-4  # of the rates of a launch's SMs: a part of their mean


def uneven(
    random_: random.Random, *, rate: float, length: int, sms: int, waves: int
) -> tuple[Run, list[Record]]:
    """A launch whose SMs run at rates of their own, and its true slices.

    Programs begin and end at any phase of a timer of 32 ns.
    """
    chip = Chip(random_, sms=sms)
    rates = [rate * (1 + random_.uniform(-SPREAD / 2, SPREAD / 2)) for _ in range(sms)]
    rates[:2] = rate * (1 - SPREAD / 2), rate * (1 + SPREAD / 2)
    true, programs = [], []
    for number in range(sms * waves):
        begin = 10_000 + number // sms * 2 * length + random_.randrange(length // 2)
        end = begin + length + random_.randrange(100)
        inside = sorted(random_.sample(range(begin + 10, end - 10), 4))
        records = [
            Record(inside[0], inside[1]),
            Record(inside[2], inside[3]),
            Record(begin + 5, end - 5),
        ]
        true += records
        programs.append(chip.program(number % sms, begin, end, rates[number % sms], [records]))
    return Run(a_run([chip], [launched(chip, programs)])), true


def slices_of(whole: Run) -> list[Any]:
    return list(whole.frame.query("kind == 'scope'").itertuples())


@given(
    seed=st.integers(0, 1 << 32),
    rate=st.floats(0.3, 1.5),
    length=st.sampled_from([1000, 3000, 10_000, 30_000, 100_000, 300_000, 1_000_000]),
    waves=st.integers(1, 3),
)
def test_times_lie_within_their_errors_where_sms_run_at_rates_of_their_own(
    seed: int, rate: float, length: int, waves: int
) -> None:
    whole, true = uneven(random.Random(seed), rate=rate, length=length, sms=6, waves=waves)
    for row, record in zip(slices_of(whole), true, strict=True):
        assert_within_error(row, record)


@given(seed=st.integers(0, 1 << 32), rate=st.floats(0.3, 1.5))
def test_a_long_launch_knows_the_rate_of_each_sm(seed: int, rate: float) -> None:
    """At one rate for all, 100 ns would be missing at one SM and too many at another."""
    whole, true = uneven(random.Random(seed), rate=rate, length=1_000_000, sms=16, waves=1)
    for row, record in zip(slices_of(whole), true, strict=True):
        assert abs(row.dur_ns - (record.end - record.start)) <= 32 + 2
        assert row.error_ns <= 32 + 2


@given(seed=st.integers(0, 1 << 32), rate=st.floats(0.3, 1.5))
def test_the_sms_of_a_short_launch_share_a_rate(seed: int, rate: float) -> None:
    """By their own slopes some durations would be off by 20 ns and more."""
    whole, true = uneven(random.Random(seed), rate=rate, length=5000, sms=100, waves=1)
    for row, record in zip(slices_of(whole), true, strict=True):
        assert abs(row.dur_ns - (record.end - record.start)) <= 10


def test_the_error_of_an_sm_grows_with_its_own_residual_only() -> None:
    """The second of its three programs is 600 ns late, so that no line fits its pairs."""
    chip = Chip(random.Random(1), resolution=1, sms=2)
    programs = []
    for turn, (begin, end) in enumerate(((0, 10_000), (20_000, 30_001), (40_000, 50_000))):
        for sm in range(2):
            late = 600 if (turn, sm) == (1, 1) else 0
            written = chip.program(sm, begin, end, 0.5, [[Record(begin + 100, end - 100)]])
            written.timer = (written.timer[0] + late, written.timer[1] + late)
            programs.append(written)
    whole = Run(a_run([chip], [launched(chip, programs)]))
    errors = whole.frame.query("kind == 'scope'").groupby("sm")["error_ns"].unique()
    # 400 ns from a line that is 200 ns late itself
    assert errors[0].tolist() == pytest.approx([1.0], abs=1.0)
    assert errors[1].tolist() == pytest.approx([801.0], abs=1.0)
    (fact,) = (fact for name, fact in whole.summary().facts.items() if name.startswith("GPU"))
    assert "clocks of the SMs agree within 801 ns, the timer with the host" in fact


def test_an_sm_whose_timer_runs_backwards_takes_the_rate_of_the_launch() -> None:
    chip = Chip(random.Random(1), sms=8)
    programs = [
        chip.program(sm, 1000 * sm, 1_000_000, 0.5, [[Record(100_000, 900_000)]]) for sm in range(8)
    ]
    programs[5].timer = programs[5].timer[1], programs[5].timer[0]
    rows = slices_of(Run(a_run([chip], [launched(chip, programs)])))
    assert all(400_000 < row.dur_ns < 801_000 for row in rows)
    assert rows[5].error_ns > 1_000_000


def test_a_long_run_of_a_chip_that_drifts_stays_aligned() -> None:
    chip = Chip(random.Random(1), drift=5e-5)
    hour = 3_600_000_000_000
    programs = [
        chip.program(sm, hour + 10, hour + 90_000, 0.6, [[Record(hour + 100, hour + 200)]])
        for sm in range(4)
    ]
    raw = a_run([chip], [launched(chip, programs)])
    raw.gpus = [chip.clock(pairs=(0, hour // 2, 2 * hour), error_ns=500.0)]
    found = Run(raw).frame.query("kind == 'scope'")
    assert (np.abs(found["start_ns"] - hour - 100) < 64).all()


def test_pairs_too_close_to_tell_a_drift_give_an_offset() -> None:
    chip = Chip(random.Random(1), resolution=1)
    programs = [
        chip.program(0, 1000, 91_000, 0.6, [[Record(2000, 62_000)]]),
        chip.program(0, 1010, 90_003, 0.6, [[]]),
    ]
    raw = a_run([chip], [launched(chip, programs)])
    zero = chip.timer_zero
    # a drift of 5 % by these pairs, each uncertain by 5 us
    times = np.array([zero, zero + 100_000]), ORIGIN_NS + np.array([-2500, 102_500])
    gpu = GPUClock(device=0, name="", timer_ns=times[0], host_ns=times[1], error_ns=5000.0)
    raw.gpus = [gpu]
    whole = Run(raw)
    row = whole.frame.query("kind == 'scope'").iloc[0]
    assert row["dur_ns"] == pytest.approx(60_000, abs=2)
    assert row["start_ns"] == pytest.approx(2000, abs=2)
    assert row["error_ns"] < 3
    assert whole.frame.query("kind == 'launch'")["error_ns"].tolist() == [7500.0]
    assert "the timer with the host within 7500 ns" in whole.summary().facts["GPU 0"]
    raw.gpus = [replace(gpu, timer_ns=times[0][:1], host_ns=times[1][:1])]
    assert Run(raw).frame["start_ns"].tolist()[1] == pytest.approx(-500, abs=2)


def test_one_clock_a_device_is_needed_and_must_be_one() -> None:
    chip = Chip(random.Random(1))
    raw = a_run([chip], [launched(chip, [chip.program(0, 10, 9000, 0.6, [[]])])])
    good = raw.gpus[0]
    two = np.array([1, 2])
    for gpus, message in (
        ([], r"clock of GPU 0: a pair \(timer, host time\) is needed, got 0"),
        ([replace(good, device=1)], "clock of GPU 0: a pair"),
        ([good, good], "gpus: devices must differ"),
        ([replace(good, device=-1)], r"clock of GPU -1: device must lie in \[0, "),
        ([replace(good, host_ns=good.host_ns[:1])], "timer_ns and host_ns must pair, got 2 t"),
        ([replace(good, timer_ns=-two)], "timer_ns must be times in ns"),
        ([replace(good, host_ns=two[::-1])], "host_ns must not fall"),
        ([replace(good, error_ns=float("nan"))], "error_ns must be finite"),
        ([replace(good, slice_cost_cycles=-1.0)], "slice_cost_cycles must be finite"),
    ):
        raw.gpus = gpus
        with pytest.raises(TraceFormatError, match=message):
            Run(raw).frame
    raw.gpus, raw.launches[0] = [good], launched(chip, [Written([[]], timer=(1 << 63, 0))])
    with pytest.raises(TraceFormatError, match="launch 0: the global timer must be a time in ns"):
        Run(raw).frame


def killed(chip: Chip, begin: int, sm: int = 0) -> Written:
    """A program that has its pair at init only."""
    records = [[Record(begin + 100, begin + 400)]]
    return chip.program(sm, begin, begin + 9000, 0.6, records, state=1)


def test_a_killed_launch_takes_the_median_rate_of_its_device() -> None:
    chip, other = Chip(random.Random(1)), Chip(random.Random(2), device=1)
    launches = [launched(chip, [killed(chip, 900_000)])]
    for turn, rate in enumerate((0.5, 0.7, 0.6)):
        at = 1000 + turn * 100_000
        launches.append(launched(chip, [chip.program(1, at, at + 90_000, rate, [[]])]))
    launches.append(launched(other, [other.program(0, 1000, 900_000, 1.1, [[]])]))
    whole = Run(a_run([chip, other], launches))
    clock = whole.records.gpu.launches[0]
    assert clock.rate == pytest.approx(0.6, rel=1e-3)
    row = whole.frame.query("kind == 'scope' and launch == 0").iloc[0]
    assert (row["start_ns"], row["dur_ns"]) == pytest.approx((900_100, 300), abs=33)
    assert row["error_ns"] == 32.0  # the resolution: one pair leaves no residual
    assert whole.launches["start_ns"][0] == pytest.approx(900_000, abs=33)
    assert whole.launches["dur_ns"][0] == 0  # one timer is all that is known
    assert whole.summary().warnings == ("1 of 5 programs did not finish",)


def test_where_nothing_tells_the_rate_the_error_is_the_length_and_one_line_says_so() -> None:
    chip = Chip(random.Random(1))
    whole = Run(
        a_run([chip], [launched(chip, [killed(chip, 900_000 + sm, sm)]) for sm in range(3)])
    )
    rows = whole.frame.query("kind == 'scope'")
    assert rows["error_ns"].tolist() == pytest.approx([400 / 0.6] * 3, abs=40)
    assert (rows["dur_ns"] == 500).all()  # cycles
    assert whole.summary().warnings[1:] == (
        "3 launches of add were too short to tell the rate of their clocks: error_ns is the "
        "length of the launch",
    )
    still = [Written([[]], clock=(5, 5), timer=(chip.timer_zero,) * 2)]
    whole = Run(a_run([chip], [launched(chip, still)]))
    assert whole.launches[["start_ns", "dur_ns"]].values.tolist() == [[0, 0]]
    assert len(whole.summary().warnings) == 1


def test_a_launch_of_which_no_program_began_has_the_times_of_its_call() -> None:
    chip = Chip(random.Random(1))
    raw = a_run([], [launched(chip, [Written([[]], state=0)] * 2)])
    whole = Run(raw)
    assert whole.frame[["start_ns", "dur_ns", "device"]].values.tolist() == [[1000, 500, 0]]


def test_costs_in_cycles_take_the_rate_of_the_launch() -> None:
    chip = Chip(random.Random(1), resolution=1)
    records = [Record(2000, 3000), Record(1000, 9000)]
    launches = [
        launched(chip, [chip.program(0, 500, 99_500, rate, [records])]) for rate in (0.5, 1.0)
    ]
    whole = Run(a_run([chip], launches, slice_cost_cycles=20.0, edge_cost_cycles=8.0))
    rows = whole.frame.query("kind == 'scope'")
    assert rows["corrected_ns"].tolist() == [996, 7986, 992, 7972]


def test_a_run_of_both_keeps_the_times_of_the_cpu() -> None:
    seed = 17
    both, cpu = Run(gpu_run(seed, mixed=True)), Run(random_run(seed))
    for name in ("frame", "marks", "losses"):
        rows = getattr(both, name)
        mine = rows[rows["device"] < 0].reset_index(drop=True)
        wanted = getattr(cpu, name)
        columns = [c for c in wanted.columns if c != "payload"]
        assert mine[columns].astype(object).equals(wanted[columns].astype(object))
        assert (mine[["sm", "warp"]] == -1).all().all()
        gpu = rows[rows["device"] >= 0]
        if "core" in gpu:
            assert (gpu["core"] == -1).all()
        inner = gpu[gpu["program"] >= 0] if "program" in gpu else gpu
        assert (inner["warp"] == 2 * inner["unit"]).all()
        assert (inner["sm"] >= 0).all()


EXTREMES = [0, 1, 1 << 32, (1 << 61) - 1, 1 << 61, 1 << 63, (1 << 64) - 1]
OFFSETS = {"clock_start": 40, "timer_start": 48, "clock_end": 56, "timer_end": 64}


@given(
    seed=st.integers(0, 20),
    changes=st.lists(
        st.tuples(
            st.integers(0, 4),
            st.integers(0, 4),
            st.sampled_from(sorted(OFFSETS)),
            st.sampled_from(EXTREMES),
        ),
        min_size=1,
        max_size=4,
    ),
)
def test_headers_of_any_clocks_give_times_or_are_refused(
    seed: int, changes: list[tuple[int, int, str, int]]
) -> None:
    raw = gpu_run(seed)
    for number, program, name, value in changes:
        launch = raw.launches[number]
        launch.buffer = launch.buffer.copy()
        block = launch.buffer.size // (launch.grid[0] * launch.grid[1])
        struct.pack_into("<Q", launch.buffer, program * block + OFFSETS[name], value)
    with contextlib.suppress(TraceFormatError):
        whole = Run(raw)
        whole.frame, whole.marks, whole.losses, whole.summary()


def test_slices_of_a_warp_stay_nested() -> None:
    whole = Run(gpu_run(23))
    assert not whole.records.nesting.crossed.any()
    assert (whole.records.end_ns >= whole.records.start_ns).all()


def test_resources_of_a_kernel_are_a_line_and_a_lower_occupancy_a_warning() -> None:
    chip = Chip(random.Random(1))
    options = {
        "registers": 40, "registers_off": 32, "spills": 0, "spills_off": 0, "shared": 2048,
        "shared_off": 0, "blocks_per_sm": 6, "blocks_per_sm_off": 8, "BLOCK": 128,
    }  # fmt: skip
    same = {**options, "blocks_per_sm": 8}
    raw = a_run([chip], [])
    raw.kernels = [replace(OWNER, options=options), replace(OWNER, options=same)]
    found = Run(raw).summary()
    assert found.facts["kernel add #1"] == (
        "registers 40 (32), spills 0 (0), shared 2048 (0), blocks_per_sm 6 (8) "
        "(in brackets: without instrumentation)"
    )
    assert "blocks_per_sm 8 (8)" in found.facts["kernel add #2"]
    assert found.warnings == ("add #1: 6 programs fit on an SM, 8 without instrumentation",)
