"""What is said of rings of buffers that groups of warps hand each other: of wrong phases, and of
kernels that are right nothing."""

import warnings
from pathlib import Path
from typing import Any

import pytest

import proton
from benchmarks import gluon_kernels as benchmarked
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.hopper import (
    mbarrier,
    tma,
    warpgroup_mma,
    warpgroup_mma_init,
    warpgroup_mma_wait,
)
from proton.gluon.nvidia.hopper import TensorDescriptor
from proton.runtime.launch.reinterpret import MockTensor
from tests import gluon_kernels

TARGET = proton.GPUTarget("cuda", 90)
ROWS = gl.constexpr(gl.BlockedLayout([1, 4], [4, 8], [4, 1], [1, 0]))
MEMORY = gl.constexpr(gl.NVMMASharedLayout(128, 32, 2))


@gluon.jit
def sending(desc, buffers, ready, empty, n, S: gl.constexpr, WHAT: gl.constexpr):
    phase = 1
    for k in range(n):
        slot = k % S
        if WHAT == "toggles":
            mbarrier.wait(empty.index(slot), phase)
            phase = phase ^ (slot == S - 1).to(gl.int32)
        elif WHAT == "toggles each time":
            mbarrier.wait(empty.index(slot), phase)
            phase ^= 1
        elif WHAT == "first waits":
            mbarrier.wait(empty.index(slot), k // S & 1)
        elif WHAT != "never waits":
            mbarrier.wait(empty.index(slot), (k // S & 1) ^ 1)
        mbarrier.expect(ready.index(slot), 4096)
        tma.async_load(desc, [32 * k, 0], ready.index(slot), buffers.index(slot))


@gluon.jit
def receiving(y, buffers, ready, empty, n, S: gl.constexpr, WHAT: gl.constexpr):
    i = gl.arange(0, 32, layout=gl.SliceLayout(1, ROWS))[:, None]
    j = gl.arange(0, 32, layout=gl.SliceLayout(0, ROWS))[None, :]
    for k in range(n + 1 if WHAT == "one more" else n):
        slot = k % S
        if WHAT == "phase 0":
            mbarrier.wait(ready.index(slot), 0)
        elif WHAT == "too early":
            mbarrier.wait(ready.index(slot), (k // S & 1) ^ 1)
        elif WHAT == "another slot":
            mbarrier.wait(ready.index(0), k & 1)
        else:
            mbarrier.wait(ready.index(slot), k // S & 1)
        if WHAT == "empties first":
            mbarrier.arrive(empty.index(slot))
        value = buffers.index(slot).load(ROWS)
        if WHAT == "empties another":
            mbarrier.arrive(empty.index(0))
        elif WHAT == "empties every other":
            mbarrier.arrive(empty.index(slot), pred=k % 2 == 0)
        elif WHAT not in ("never empties", "empties first"):
            mbarrier.arrive(empty.index(slot))
        gl.store(y + (32 * k + i) * 32 + j, value)


@gluon.jit
def ring(x, y, n, N: gl.constexpr, S: gl.constexpr, WHAT: gl.constexpr):
    """N: iterations, if they are known."""
    desc = tma.make_tensor_descriptor(x, [n * 32, 32], [32, 1], [32, 32], MEMORY)
    buffers = gl.allocate_shared_memory(gl.float32, [S, 32, 32], MEMORY)
    ready, empty = mbarrier.allocate_mbarrier(batch=S), mbarrier.allocate_mbarrier(batch=S)
    for k in gl.static_range(S):
        mbarrier.init(ready.index(k), count=1)
        mbarrier.init(empty.index(k), count=1)
    count = n if N == 0 else N
    gl.warp_specialize(
        [
            (receiving, (y, buffers, ready, empty, count, S, WHAT)),
            (sending, (desc, buffers, ready, empty, count, S, WHAT)),
        ],
        [1],
    )


def line_of(text: str) -> int:
    """The first line of this file that begins with it."""
    lines = Path(__file__).read_text().splitlines()
    return next(n for n, line in enumerate(lines, 1) if line.strip().startswith(text))


COPY = line_of("tma.async_load(")
NEVER = r"this wait never ends: (sending|receiving) waits for phase \d"
EARLY = f"receiving reads memory while the copy of line {COPY} to it may be under way"
TWICE = f"sending copies to memory while the copy of line {COPY} to it may be under way"
READ = line_of("value = buffers.index(slot)")
OVER = f"sending copies to memory that receiving may still read in line {READ}"
WRONG: dict[str, tuple[str, bool]] = {  # what is said, and whether in the first iteration already
    "first waits": (NEVER, True),
    "too early": (NEVER, True),
    "phase 0": (NEVER, False),
    "another slot": (EARLY, False),
    "never waits": (TWICE, False),
    "empties first": (OVER, False),
    "toggles each time": (NEVER, False),
    "never empties": (NEVER, False),
    "empties another": (NEVER, False),
    "empties every other": (NEVER, False),
}


def compile_ring(what: str, iterations: int = 0, slots: int = 3) -> None:
    args = gl.float32, gl.float32, 3, iterations, slots, what
    ring.warmup(*args, grid=(1,), num_warps=4, target=TARGET)


@pytest.mark.parametrize("what", WRONG)
def test_wrong_phases_are_found(what: str) -> None:
    said, is_first = WRONG[what]
    if is_first:  # a loop that may be empty: nothing is refused
        with pytest.warns(UserWarning, match=f"if the loop runs, {said}"):
            compile_ring(what)
    else:
        with pytest.raises(proton.CompilationError, match=said) as problem:
            compile_ring(what)
        assert __file__ in str(problem.value)
    with pytest.raises(proton.CompilationError, match=said):
        compile_ring(what, iterations=20)


@pytest.mark.usefixtures("no_ptx")
def test_what_needs_more_rounds_than_there_are_is_right() -> None:
    for what in ("phase 0", "never waits", "never empties"):
        compile_ring(what, iterations=3)


def test_a_round_too_much_at_the_end() -> None:
    said = "receiving waits for phase 1, and nobody is left to end it"
    with pytest.raises(proton.CompilationError, match=said):
        compile_ring("one more", iterations=4)
    compile_ring("one more")  # n and n + 1 iterations: how often which loop runs is not known


@gluon.jit
def fetching(desc, buffers, ready, empty, n):
    for k in range(n):
        slot = k % 2
        mbarrier.wait(empty.index(slot), (k // 2 & 1) ^ 1)
        mbarrier.expect(ready.index(slot), 8192)
        tma.async_load(desc, [64 * k, 0], ready.index(slot), buffers.index(slot))


@gluon.jit
def multiplying(y, buffers, ready, empty, n, PENDINGS: gl.constexpr):
    """What the dot of an iteration read is free when so many are under way."""
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, 64, 16])
    total = warpgroup_mma_init(gl.zeros([64, 64], gl.float32, layout))
    for k in range(n):
        slot = k % 2
        mbarrier.wait(ready.index(slot), k // 2 & 1)
        x = buffers.index(slot)
        acc = warpgroup_mma(x, x.permute([1, 0]), total, is_async=True)
        total = warpgroup_mma_wait(PENDINGS, deps=[acc])
        mbarrier.arrive(empty.index(slot))
    total = warpgroup_mma_wait(0, deps=[total])
    i = gl.arange(0, 64, layout=gl.SliceLayout(1, layout))[:, None]
    j = gl.arange(0, 64, layout=gl.SliceLayout(0, layout))[None, :]
    gl.store(y + i * 64 + j, total)


@gluon.jit
def squared(desc, y, n, PENDINGS: gl.constexpr):
    buffers = gl.allocate_shared_memory(gl.float16, [2, 64, 64], desc.layout)
    ready, empty = mbarrier.allocate_mbarrier(batch=2), mbarrier.allocate_mbarrier(batch=2)
    for k in gl.static_range(2):
        mbarrier.init(ready.index(k), count=1)
        mbarrier.init(empty.index(k), count=1)
    gl.warp_specialize(
        [
            (multiplying, (y, buffers, ready, empty, n, PENDINGS)),
            (fetching, (desc, buffers, ready, empty, n)),
        ],
        [1],
    )


def test_a_dot_reads_until_it_is_waited_for() -> None:
    x = described((1024, 64), [64, 64], gl.float16)
    squared.warmup(x, gl.float32, 16, 0, grid=(1,), target=TARGET)
    said = "fetching copies to memory that multiplying may still read"
    with pytest.raises(proton.CompilationError, match=said):
        squared.warmup(x, gl.float32, 16, 1, grid=(1,), target=TARGET)


def described(shape: tuple[int, int], block: list[int], dtype: Any) -> TensorDescriptor:
    layout = gl.NVMMASharedLayout.get_default_for(block, dtype)
    return TensorDescriptor.from_tensor(MockTensor(dtype, shape), block, layout)


@pytest.mark.usefixtures("no_ptx")
def test_right_kernels_are_left_in_peace() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for slots in (1, 2, 3, 4):
            for iterations in (0, 1, slots, 3 * slots + 1):
                for what in ("right", "toggles"):
                    compile_ring(what, iterations, slots)
        x = described((1024, 64), [64, 64], gl.float32)
        gluon_kernels.three_roles.warmup(x, x, 7, 64, 2, grid=(1,), target=TARGET)
        half = described((1024, 1024), [128, 64], gl.float16)
        other = described((1024, 1024), [64, 128], gl.float16)
        out = described((1024, 1024), [128, 128], gl.float16)
        sizes = 128, 128, 64, 3, 8
        args = half, other, out, 8, *sizes
        benchmarked.matmul_specialized.warmup(*args, grid=(1,), num_warps=8, target=TARGET)


@pytest.mark.usefixtures("no_ptx")
def test_only_what_others_read_is_an_operand_of_a_wait() -> None:
    """Of a loop's wait a product takes the sums; those behind the loop are stored."""
    blocks = [128, 64], [64, 128], [128, 128]
    given = [described((1024, 1024), block, gl.float16) for block in blocks]
    sizes = 128, 128, 64, 3, 8
    kernel = benchmarked.matmul_pipelined.warmup(
        *given, 8, *sizes, grid=(1,), num_warps=8, target=TARGET
    )
    waits = [line for line in kernel.asm["llir"].split("\n") if "wgmma.wait_group" in line]
    assert ["=f" in line for line in waits] == [False, True]
