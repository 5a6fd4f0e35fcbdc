"""Dots of `mma.sync`: which dimension warps lie along, by what reduces their results. Two warps."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
M, K = 32, 32
DOWN, ACROSS = (2, 1), (1, 2)  # of warps, by dimension


@proton.jit
def block(ptr, M: tl.constexpr, N: tl.constexpr):
    return tl.load(ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :])


@proton.jit
def largest_of_rows(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """As many columns as would put warps across."""
    scores = tl.dot(block(a_ptr, M, K), block(b_ptr, K, N))
    tl.store(out_ptr + tl.arange(0, M), tl.max(scores * 0.5, 1))


@proton.jit
def sums_of_columns(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    scores = tl.dot(block(a_ptr, M, K), block(b_ptr, K, N))
    tl.store(out_ptr + tl.arange(0, N), tl.sum(tl.where(scores > 0, scores, 0), 0))


@proton.jit
def left_operand(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """An operand says nothing: warps are as a warp has most elements."""
    b = block(b_ptr, K, N)
    scores = tl.dot(block(a_ptr, M, K), b).to(tl.float16)
    at = tl.arange(0, M)[:, None] * K + tl.arange(0, K)[None, :]
    tl.store(out_ptr + at, tl.dot(scores, b.T))


@proton.jit
def smallest_of_rows_twice(
    a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr
):
    """By way of another type, and two reductions."""
    scores = tl.dot(block(a_ptr, M, K), block(b_ptr, K, N)).to(tl.float16)
    tl.store(out_ptr + tl.arange(0, M), tl.min(scores, 1) + tl.max(-scores, 1).to(tl.float32))


@proton.jit
def both_ways(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """Neither dimension is better."""
    scores = tl.dot(block(a_ptr, M, K), block(b_ptr, K, N))
    tl.store(out_ptr + tl.arange(0, N), tl.sum(scores, 0) + tl.sum(tl.max(scores, 1), 0))


@proton.jit
def behind_the_loop(a_ptr, b_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    """A reduction that runs once says nothing."""
    total = tl.zeros((M, N), tl.float32)
    for _ in range(3):
        total = tl.dot(block(a_ptr, M, K), block(b_ptr, K, N), total)
    tl.store(out_ptr + tl.arange(0, N), tl.sum(total, 0))


# Kernel: N, where the warps of each dot lie, and what is expected.
CASES: dict[Any, tuple[int, list[tuple[int, int]], Any]] = {
    largest_of_rows: (64, [DOWN], lambda a, b: (a @ b * 0.5).max(1)),
    sums_of_columns: (32, [ACROSS], lambda a, b: (a @ b).clip(0).sum(0)),
    smallest_of_rows_twice: (64, [DOWN], lambda a, b: (a @ b).min(1) + (-(a @ b)).max(1)),
    left_operand: (64, [ACROSS, DOWN], lambda a, b: ((a @ b) @ b.T).ravel()),
    both_ways: (32, [DOWN], lambda a, b: (a @ b).sum(0) + (a @ b).max(1).sum()),
    behind_the_loop: (32, [DOWN], lambda a, b: 3 * (a @ b).sum(0)),
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: str(kernel.__name__))
def test_warps_lie_along_what_nothing_is_reduced_along(
    kernel: Any, rng: np.random.Generator
) -> None:
    n, warps, expected = CASES[kernel]
    a, b = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((M, K), (K, n)))
    wanted = expected(a.astype(np.float32), b.astype(np.float32))
    out = np.zeros(wanted.size, np.float32)
    sizes = {"M": M, "N": n, "K": K}
    f16, f32 = tl.float16, tl.float32
    made = kernel.warmup(f16, f16, f32, **sizes, target=HOPPER, num_warps=2)
    text = made.asm["ttgir"]
    bases = dict(re.findall(r"(#linear\d*) = #ttg\.linear<(.*)>", text))
    found = []
    for layout in re.findall(r'"ttng\.mma_sync".*-> tensor<[^#]*(#linear\d*)>', text):
        row, column = re.findall(r"\[\[(\d+), (\d+)\]\], \[\]$", bases[layout])[0]
        found.append(DOWN if int(row) else ACROSS)
        assert bool(int(row)) != bool(int(column))
    assert found == warps
    run_on_arrays(made.asm["ptx"], (1, 1, 1), 64, made.shared, [a, b, out], rng)
    np.testing.assert_allclose(out, wanted, rtol=1e-3)
