"""Partitions of `warp_specialize` on a CPU, which share the program's thread."""

from pathlib import Path

import numpy as np
import pytest

import proton
from proton import gluon
from proton.base.errors import DeviceAssertionError
from proton.dialect.partitions import role_names
from proton.gluon import language as gl
from proton.gluon.language.nvidia.ampere import async_copy
from proton.gluon.language.nvidia.hopper import mbarrier
from tests.trace_processor import TraceProcessor

ROW = gl.constexpr(gl.BlockedLayout([1], [32], [4], [0]))
FLAT = gl.constexpr(gl.SwizzledSharedLayout(1, 1, 1, [0]))


@gluon.jit
def send(x, memory, full, empty, n, B: gl.constexpr):
    layout: gl.constexpr = gl.BlockedLayout([1], [32], [gl.num_warps()], [0])
    for k in range(n):
        with proton.scope("room"):
            mbarrier.wait(empty, (k & 1) ^ 1)
        with proton.scope("copy"):
            async_copy.async_load(memory, x + k * B + gl.arange(0, B, layout))
            async_copy.mbarrier_arrive(full, increment_count=False)


@gluon.jit
def take(memory, full, empty, n, B: gl.constexpr):
    total = gl.zeros([B], gl.float32, ROW)
    for k in range(n):
        mbarrier.wait(full, k & 1)
        with proton.scope("add"):
            total += memory.load(ROW)
        mbarrier.arrive(empty, count=1)
    return total


@gluon.jit
def summed(x, y, n, m, WARPS: gl.constexpr, B: gl.constexpr):
    memory = gl.allocate_shared_memory(gl.float32, [B], FLAT)
    bars = mbarrier.allocate_mbarrier(batch=2)
    mbarrier.init(bars.index(0), count=32 * WARPS)
    mbarrier.init(bars.index(1), count=1)
    mine = x + gl.program_id(0) * m * B
    total = gl.warp_specialize(
        [
            (take, (memory, bars.index(0), bars.index(1), n, B)),
            (send, (mine, memory, bars.index(0), bars.index(1), m, B)),
        ],
        [WARPS],
    )
    gl.store(y + gl.program_id(0) * B + gl.arange(0, B, ROW), total)


@pytest.mark.parametrize(("steps", "block", "warps"), [(1, 128, 1), (5, 512, 4), (4, 32768, 1)])
def test_every_thread_of_a_partition_arrives(
    rng: np.random.Generator, steps: int, block: int, warps: int
) -> None:
    """Blocks of 128 KiB lie in scratch, where partitions have parts of their own."""
    x = rng.standard_normal((7, steps, block), np.float32)
    y = np.zeros((7, block), np.float32)
    summed[(7,)](x, y, steps, steps, warps, block)
    np.testing.assert_allclose(y, x.sum(1), rtol=1e-5, atol=1e-5)


@gluon.jit
def put(y, bar, value):
    gl.store(y, value)
    mbarrier.arrive(bar, count=1)


@gluon.jit
def add(y, bar, phase):
    mbarrier.wait(bar, phase)
    gl.store(y, gl.load(y) + 1)


@gluon.jit
def of_two_phases(y):
    bar = mbarrier.allocate_mbarrier()
    mbarrier.init(bar, count=1)
    gl.warp_specialize([(add, (y, bar, 0)), (put, (y, bar, 4))], [1])
    gl.warp_specialize([(add, (y, bar, 1)), (put, (y, bar, gl.load(y) * 2))], [1])
    gl.warp_specialize([(add, (y, bar, 1))], [])


def test_groups_begin_and_end_more_than_once() -> None:
    y = np.zeros(1, np.int32)
    of_two_phases[(1,)](y)
    assert y[0] == 2 * (4 + 1) + 1 + 1


@pytest.mark.parametrize(("taken", "sent", "role"), [(4, 3, "default group"), (1, 3, "send")])
def test_a_deadlock_names_a_wait(taken: int, sent: int, role: str) -> None:
    x, y = np.zeros((2, sent, 128), np.float32), np.zeros((2, 128), np.float32)
    with pytest.raises(DeviceAssertionError, match="deadlock") as caught:
        summed[(2,)](x, y, taken, sent, 1, 128)
    assert "test_gluon_partitions.py:" in str(caught.value)
    assert role in str(caught.value)


@pytest.mark.parametrize("strategy", ["circular", "flush"])
def test_scopes_are_of_their_roles(rng: np.random.Generator, tmp_path: Path, strategy: str) -> None:
    x, y = rng.standard_normal((3, 50, 128), np.float32), np.zeros((3, 128), np.float32)
    with proton.profile("roles", strategy=strategy, capacity=64) as run:
        summed[(3,)](x, y, 50, 50, 1, 128)
    np.testing.assert_allclose(y, x.sum(1), rtol=1e-5, atol=1e-5)
    rows = run.frame[run.frame.kind == "scope"]
    counts = rows.groupby(["role", "scope"], observed=True).size()
    sent = 150 if strategy == "flush" else 3 * 64 // 2
    assert dict(counts) == {("send", "room"): sent, ("send", "copy"): sent, ("take", "add"): 150}
    run.save(tmp_path / "run.proton")
    again = proton.Run.load(tmp_path / "run.proton")
    assert set(again.stats(by="role").role) == {"send", "take"}
    run.save(tmp_path / "run.pftrace")
    with TraceProcessor(tmp_path / "run.pftrace") as processor:
        found = processor.query(
            "select t.name as track, s.name as name from slice s join track t on s.track_id = t.id"
        )
        pairs = {(row["track"], row["name"]) for row in found}
    assert {("send", "room"), ("send", "copy"), ("take", "add")} <= pairs


def test_partitions_of_one_function_have_numbers() -> None:
    assert role_names(["mma", "load", "mma"]) == ["mma 0", "load", "mma 1"]
