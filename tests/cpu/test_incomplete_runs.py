"""Runs that lack something, dropped launches or scopes without work: they say so everywhere."""

from pathlib import Path

import numpy as np
import pytest

import proton
import proton.language as tl

SUFFIXES = ("proton", "pftrace", "json", "csv")
TABLES = ("frame", "marks", "events", "losses", "launches", "optimized_out", "totals", "records")


@proton.jit
def busy(x_ptr, n, N: tl.constexpr):
    offs = tl.program_id(0) * N + tl.arange(0, N)
    for i in range(n):
        with proton.scope("work", i=i, half=i * 0.5):
            tl.store(x_ptr + offs, tl.load(x_ptr + offs) + 1)
        proton.mark("m", i)
        proton.start_event("e")
        proton.end_event("e")


@proton.jit
def idle(x_ptr, n):
    with proton.scope("dead", n=n):
        tl.load(x_ptr + 1)
        with proton.scope("inner"):
            tl.load(x_ptr + 2)
    if n * 0 > 5:
        proton.mark("never")
    tl.store(x_ptr, 1.0)


@proton.jit
def marked(x_ptr, n):
    if n * 0 > 5:
        proton.mark("never")
    tl.store(x_ptr, 1.0)


def read_everything(run: proton.Run, folder: Path) -> proton.Run:
    """Every table, every statistic, every file; what a `.proton` file gives back."""
    for name in TABLES:
        getattr(run, name)
    for by in (["kernel"], ["scope"], ["kernel", "scope", "program"]):
        run.stats(by)
    assert repr(run)
    for suffix in SUFFIXES:
        run.save(folder / f"run.{suffix}")
    run.save(folder / "tables.json", "json")
    return proton.Run.load(folder / "run.proton")


@pytest.mark.parametrize("strategy", ["circular", "flush", "counting"])
@pytest.mark.parametrize("kept", [0, 1])
def test_dropped_launches_are_told(tmp_path: Path, strategy: str, kept: int) -> None:
    x = np.zeros(1024, np.float32)
    with proton.profile("size", strategy=strategy, capacity=8) as run:
        idle[2,](x, 3)
    room = kept * run.raw.launches[0].buffer.size
    with (
        proton.knobs.scope(profile_memory=room),
        proton.profile("small", strategy=strategy, capacity=8) as run,
    ):
        for _ in range(kept):
            idle[2,](x, 3)
        for _ in range(3):
            busy[4,](x, 3, N=256)
    for each in (run, read_everything(run, tmp_path)):
        assert (each.totals.launches, each.totals.dropped_launches) == (kept, 3)
        assert any(
            "3 launches left no records: they did not fit; a larger" in line
            for line in each.summary().warnings
        )
        assert {kernel.name for kernel in each.kernels} == {"busy", *["idle"] * kept}


@pytest.mark.parametrize("strategy", ["circular", "flush", "counting"])
def test_a_launch_without_any_record_left_is_in_the_run(tmp_path: Path, strategy: str) -> None:
    x = np.zeros(4, np.float32)
    with proton.profile("idle", strategy=strategy) as run:
        idle[(2, 3)](x, 3)
        marked[5,](x, 3)  # the mark is gone
    for each in (run, read_everything(run, tmp_path)):
        columns = ["kernel", "grid", "programs", "finished", "written", "lost"]
        assert each.launches[columns].values.tolist() == [
            ["idle", (2, 3, 1), 6, 6, 0, 0],
            ["marked", (5, 1, 1), 5, 5, 0, 0],
        ]
        assert (each.launches["dur_ns"] > 0).all()
        assert each.optimized_out.values.tolist() == [
            ["idle", 1, "dead"],
            ["idle", 1, "dead/inner"],
        ]
        (line,) = (line for line in each.summary().warnings if "optimized-out scopes" in line)
        assert line.endswith("idle: dead, idle: dead/inner")


def test_an_annotated_kernel_runs_as_it_is_without_a_session() -> None:
    x = np.zeros(4, np.float32)
    assert idle[1,](x, 3).metadata["profile"] is None
