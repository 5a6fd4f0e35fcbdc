"""Events of kernels: they start and end where they like."""

from pathlib import Path

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.viewer import Run
from tests.perfetto_equality import assert_trace_equals_tables


@proton.jit
def finish(event, out_ptr, i):
    tl.store(out_ptr + i, i)
    proton.end_event(event)


@proton.jit(noinline=True)
def finish_apart(event, out_ptr, i):
    tl.store(out_ptr + i, i)
    proton.end_event(event)


@proton.jit(do_not_specialize=("n", "ahead"))
def pipelined(chosen_ptr, out_ptr, n, ahead, APART: tl.constexpr):
    tile = proton.allocate_event("tile")
    for _i in range(ahead):
        proton.start_event(tile)
    for i in range(n):
        with proton.scope("step", i=i):
            if i + ahead < n:
                proton.start_event(tile)
            if tl.load(chosen_ptr + i) != 0:
                proton.start_event("rare")
        if APART:
            finish_apart(tile, out_ptr, i)
        else:
            finish(tile, out_ptr, i)
    for i in range(n):
        if tl.load(chosen_ptr + i) != 0:
            proton.end_event("rare")


def run_pipelined(
    chosen: np.ndarray, ahead: int, apart: bool = False, **options: object
) -> tuple[Run, np.ndarray]:
    out = np.full(chosen.size, -1, np.int32)
    with proton.profile("pipelined", **options) as run:
        pipelined[(3,)](chosen, out, chosen.size, ahead, APART=apart)
    assert (out == np.arange(chosen.size)).all()
    return run, out


@pytest.mark.parametrize("apart", [False, True])
@pytest.mark.parametrize("placement", ["schedule", "program"])
def test_events_cross_loops_blocks_and_functions(
    rng: np.random.Generator, tmp_path: Path, apart: bool, placement: str
) -> None:
    n = int(rng.integers(4, 40))
    ahead = int(rng.integers(0, n))
    chosen = (rng.random(n) < 0.3).astype(np.int8)
    run, _ = run_pipelined(chosen, ahead, apart, capacity=1024, placement=placement)
    events = run.events
    for program in range(3):
        own = events[events["program"] == program]
        tiles, rare = own[own["name"] == "tile"], own[own["name"] == "rare"]
        # The first of them start before the loop over steps, in a loop of their own.
        turns = [*range(ahead), *range(n - ahead)]
        assert list(tiles["start_iteration"]) == turns
        # A function that is called does not know the loops around its calls.
        assert list(tiles["end_iteration"]) == ([-1] * n if apart else list(range(n)))
        assert list(rare["start_iteration"]) == np.flatnonzero(chosen).tolist()
        assert list(rare["end_iteration"]) == np.flatnonzero(chosen).tolist()
        ends = tiles["start_ns"] + tiles["dur_ns"]
        assert ends.is_monotonic_increasing
        frame = run.frame
        steps = frame[(frame["kind"] == "scope") & (frame["program"] == program)]
        assert len(steps) == n
        # A tile ends behind the step of its turn, and before the next one begins.
        error = events["error_ns"].max() + 1
        until = steps["start_ns"].to_numpy() + steps["dur_ns"].to_numpy()
        assert (ends.to_numpy() >= until - error).all()
        assert (ends.to_numpy()[:-1] <= steps["start_ns"].to_numpy()[1:] + error).all()
    assert run.totals.events == len(events) == 3 * (n + int(chosen.sum()))
    assert run.totals.written == 2 * len(events) + 3 * n
    assert not any("other half" in line for line in run.summary().warnings)
    assert_trace_equals_tables(run, tmp_path / "run.pftrace")


def test_a_ring_drops_the_oldest_events(rng: np.random.Generator) -> None:
    n, ahead = 50, 3
    run, _ = run_pipelined(np.zeros(n, np.int8), ahead, capacity=16)
    own = run.events[run.events["program"] == 1]
    # The last record is the end of the last tile; of each kept end the start is 3 tiles older.
    assert list(own["end_iteration"]) == list(range(n - len(own), n))
    assert list(own["start_iteration"] + ahead) == list(own["end_iteration"])
    alone = run.totals.kept - run.totals.slices - 2 * run.totals.events
    assert alone > 0
    told = [line for line in run.summary().warnings if "other half" in line]
    assert told == [f"0 starts and {alone} ends of events have no other half"]


def test_flush_keeps_all_events_and_sampling_leaves_none_out() -> None:
    chosen = np.ones(20, np.int8)
    for options in ({"strategy": "flush", "capacity": 4}, {"every": 7, "capacity": 256}):
        run, _ = run_pipelined(chosen, 2, **options)
        assert run.totals.events == 3 * 40
        assert run.totals.lost == 0
    assert run.totals.slices == 3 * 3  # of 20 steps 0, 7 and 14
    counted, _ = run_pipelined(chosen, 2, strategy="counting")
    assert counted.totals.written == 3 * (2 * 40 + 20)
    assert counted.totals.events == 0


def test_events_do_not_change_what_runs_without_a_session() -> None:
    chosen, out = np.zeros(5, np.int8), np.zeros(5, np.int32)
    kernel = pipelined[(1,)](chosen, out, 5, 2, APART=False)
    assert kernel.metadata["profile"] is None
    assert "rdtsc" not in kernel.asm["llir"]


@pytest.mark.parametrize("op", ["allocate_event", "start_event", "end_event"])
def test_the_host_has_no_events(op: str) -> None:
    with pytest.raises(RuntimeError, match=f"proton.{op} can only be called inside a kernel"):
        getattr(proton, op)("tile")
