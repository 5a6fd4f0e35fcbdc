"""Partitions that share tensor cores begin their loops one after the other."""

import re
from typing import Any

import pytest

import proton
from proton import gluon
from proton.gluon import language as gl
from proton.gluon.language.nvidia.hopper import fence_async_shared, warpgroup_mma
from proton.language import float32


@gluon.jit
def scores(a, b, PART: gl.constexpr, N: gl.constexpr, WORK: gl.constexpr):
    layout: gl.constexpr = gl.NVMMADistributedLayout([3, 0], [4, 1], [16, N, 16])
    found = warpgroup_mma(a.index(PART), b, gl.zeros((64, N), gl.float32, layout), use_acc=False)
    if WORK == "exp":
        found = gl.exp2(found)
    elif WORK == "sigmoid":
        found = 1.0 / (1.0 + gl.exp(-found))
    return gl.sum(gl.sum(found, 1), 0)


@gluon.jit
def rest(out_ptr, a, b, steps):
    for i in range(steps):
        gl.store(out_ptr + 3 + i, 1.0)


@gluon.jit
def loops(
    out_ptr, a, b, steps, PART: gl.constexpr, N: gl.constexpr, WORK: gl.constexpr,
    TILES: gl.constexpr,
):  # fmt: skip
    total = 0.0
    for _ in range(steps):
        if TILES:
            for _ in range(steps):
                total += scores(a, b, PART, N, WORK)
        else:
            total += scores(a, b, PART, N, WORK)
    gl.store(out_ptr + PART, total)


@gluon.jit
def pair(out_ptr, a, b, steps, N: gl.constexpr, WORK: gl.constexpr, TILES: gl.constexpr):
    gl.warp_specialize(
        [
            (loops, (out_ptr, a, b, steps, 0, N, WORK, TILES)),
            (loops, (out_ptr, a, b, steps, 1, N, WORK, TILES)),
            (rest, (out_ptr, a, b, steps)),
        ],
        [4, 1], [160, 24],
    )  # fmt: skip


@gluon.jit
def kernel(
    out_ptr, steps, GROUPS: gl.constexpr, N: gl.constexpr, WORK: gl.constexpr, TILES: gl.constexpr,
    TIMES: gl.constexpr,
):  # fmt: skip
    shape: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, 64], gl.float16)
    wide: gl.constexpr = gl.NVMMASharedLayout.get_default_for([64, N], gl.float16)
    a = gl.allocate_shared_memory(gl.float16, [GROUPS, 64, 64], shape)
    b = gl.allocate_shared_memory(gl.float16, [64, N], wide)
    fence_async_shared()
    if GROUPS == 1:
        loops(out_ptr, a, b, steps, 0, N, WORK, TILES)  # nor these
        gl.warp_specialize(
            [(rest, (out_ptr, a, b, steps)), (loops, (out_ptr, a, b, steps, 0, N, WORK, TILES))],
            [4], [160],
        )  # fmt: skip
        loops(out_ptr, a, b, steps, 0, N, WORK, TILES)  # no group has these dots
    elif GROUPS == 2:
        pair(out_ptr, a, b, steps, N, WORK, TILES)
        if TIMES == 2:
            pair(out_ptr, a, b, steps, N, WORK, TILES)
    else:
        gl.warp_specialize(
            [
                (loops, (out_ptr, a, b, steps, 0, N, WORK, TILES)),
                (rest, (out_ptr, a, b, steps)),
                (loops, (out_ptr, a, b, steps, 1, N, WORK, TILES)),
                (loops, (out_ptr, a, b, steps, 2, N, WORK, TILES)),
            ],
            [4, 4, 4], [64, 128, 128],
        )  # fmt: skip


def delays(groups: int, n: int, work: str, tiles: bool = False, times: int = 1) -> list[int]:
    """The cycles of delays, which all stand ahead of the outermost loop."""
    target = proton.GPUTarget("cuda", 90)
    compiled: Any = kernel.warmup(float32, 5, groups, n, work, tiles, times, num_warps=4, grid=(1,),
                                  target=target)  # fmt: skip
    lines = [line.strip() for line in str(compiled.asm["ttgir"]).splitlines()]
    found = [n for n, line in enumerate(lines) if line.startswith('"ttng.delay"')]
    assert all("scf.for" in lines[n + 1] for n in found)
    assert compiled.asm["ptx"].count("%clock;") == 2 * len(found)
    return [int(re.findall(r"cycles = (\d+)", lines[n])[0]) for n in found]


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("groups", "n", "work", "tiles", "want"),
    [
        # 64 x N x 64 multiply-adds, at 2048 a cycle.
        (2, 128, "exp", False, [256]),
        (2, 256, "sigmoid", False, [512]),
        (2, 128, "exp", True, [256]),
        (3, 64, "exp", False, [128, 256]),
        (2, 128, "", False, []),
        (1, 128, "exp", False, []),
    ],
)
def test_partitions_wait_for_the_dots_of_those_before(
    groups: int, n: int, work: str, tiles: bool, want: list[int]
) -> None:
    assert delays(groups, n, work, tiles) == want


def test_groups_that_begin_again_wait_for_those_of_that_time() -> None:
    assert delays(2, 128, "exp", times=2) == [256, 256]
