"""Dots of several pairs of matrices, and of fewer rows or columns than an instruction has; no GPU
is needed."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays
from tests.draws import times

TYPES = {np.float16: tl.float16, np.float32: tl.float32, np.float64: tl.float64, np.int8: tl.int8}


@proton.jit
def dots(a, b, c, B: tl.constexpr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
         PRECISION: tl.constexpr, STEPS: tl.constexpr):  # fmt: skip
    m, n, k = tl.arange(0, M), tl.arange(0, N), tl.arange(0, K)
    if B == 0:
        at, bt, ct = m[:, None] * K + k, k[:, None] * N + n, m[:, None] * N + n
        last: tl.constexpr = M * N
    else:
        pair = tl.arange(0, B)[:, None, None]
        at = pair * M * K + m[:, None] * K + k
        bt = pair * K * N + k[:, None] * N + n
        ct = pair * M * N + m[:, None] * N + n
        last: tl.constexpr = B * M * N
    total = tl.load(c + ct)
    for step in range(STEPS):
        left = tl.load(a + at + step * (last // N) * K)
        right = tl.load(b + bt + step * (last // M) * K)
        total = tl.dot(left, right, total, input_precision=PRECISION, out_dtype=total.dtype)
    tl.store(c + ct, total)


def result_of(dtype: Any) -> Any:
    if dtype is np.int8:
        return np.int32
    return np.float64 if dtype is np.float64 else np.float32


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: str(dtype.__name__))
@pytest.mark.parametrize("is_batched", [False, True])
def test_dots_are_those_of_numpy(dtype: Any, is_batched: bool, rng: np.random.Generator) -> None:
    for _ in range(times(3)):
        batch = int(rng.choice([1, 2, 4, 16])) if is_batched else 0
        m, n = (int(size) for size in rng.choice([1, 2, 4, 8, 16, 32], 2))
        k = int(rng.choice([16, 32]))
        precision = str(rng.choice(["ieee", "tf32"])) if dtype is np.float32 else "ieee"
        steps, warps = int(rng.choice([1, 3])), int(rng.choice([1, 4, 8]))
        ahead = (batch,) if batch else ()
        a, b = (rng.integers(-3, 4, (steps, *ahead, *of)).astype(dtype) for of in ((m, k), (k, n)))
        total = result_of(dtype)
        c = rng.integers(-3, 4, (*ahead, m, n)).astype(total)
        expected = c + (a.astype(total) @ b.astype(total)).sum(0)
        kernel = dots.warmup(
            TYPES[dtype], TYPES[dtype], getattr(tl, total.__name__), batch, m, n, k, precision,
            steps, num_warps=warps, target=GPUTarget("cuda", 90),
        )  # fmt: skip
        run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32 * warps, kernel.shared, [a, b, c], rng)
        what = (batch, m, n, k, precision, steps, warps)
        assert (c == expected).all(), what


# Pairs, rows, columns: instructions of 16 x 8 x 16 of one warp of four; none: multiply-adds.
OF_WARPS = {
    (4, 16, 16): 2,
    (0, 8, 64): 1,
    (0, 64, 2): 1,
    (2, 2, 32): 1,
    (0, 8, 8): 0,
    (0, 1, 64): 0,
}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("shape", OF_WARPS, ids=str)
def test_they_run_on_tensor_cores(shape: tuple[int, int, int]) -> None:
    f16, f32 = tl.float16, tl.float32
    kernel = dots.warmup(
        f16, f16, f32, *shape, 16, "ieee", 1, num_warps=4, target=GPUTarget("cuda", 90)
    )
    ptx = kernel.asm["ptx"]
    assert ptx.count("mma.sync.aligned.m16n8k16") == OF_WARPS[shape]
    assert ("fma.rn.f32" in ptx) == (OF_WARPS[shape] == 0)
