"""Conversions outside of loops leave spilled registers the cache; right either way."""

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import GPUTarget
from proton.backends.nvidia.target import GPUKernel
from tests.compile.ptx.emulation import Emulation

HOPPER = GPUTarget("cuda", 90)


@proton.jit
def gradients(y_ptr, x_ptr, w_ptr, dw_ptr, db_ptr, n, N: tl.constexpr):
    """Of the weights of a norm: threads load 16 bytes of fp16, and store 16 bytes of fp32."""
    j = tl.arange(0, N)
    w = tl.load(w_ptr + j).to(tl.float32)
    dw, db = tl.zeros((N,), tl.float32), tl.zeros((N,), tl.float32)
    for i in range(n):
        y = tl.load(y_ptr + i * N + j).to(tl.float32)
        x = tl.load(x_ptr + i * N + j).to(tl.float32)
        scale = tl.sum(x * w * y)
        dw += y * (x - scale * w)
        db += y
    tl.store(dw_ptr + j, dw)
    tl.store(db_ptr + j, db)


def compiled(n: int, warps: int) -> GPUKernel:
    types = [tl.float16] * 3 + [tl.float32] * 2 + [4]
    return gradients.warmup(*types, n, num_warps=warps, target=HOPPER)  # type: ignore[no-any-return]


@pytest.mark.usefixtures("no_assembler")
def test_spilled_registers_have_the_cache() -> None:
    """Of a thread 64 elements of five blocks; with half of them nothing is spilled, and an SM holds
    as many programs either way."""
    assert compiled(2048, 1).shared == 2048 * 4 // 4
    assert compiled(1024, 1).shared == 1024 * 4


@pytest.mark.parametrize(("n", "warps"), [(2048, 1), (1024, 1), (4096, 2)])
def test_sums_in_parts_are_right(rng: np.random.Generator, n: int, warps: int) -> None:
    y, x, w = (rng.integers(-3, 4, shape).astype(np.float16) for shape in ((3, n), (3, n), (n,)))
    dw, db = np.full(n, np.nan, np.float32), np.full(n, np.nan, np.float32)
    with Emulation(warps, rng).installed():
        gradients[(1,)](y, x, w, dw, db, 3, n, num_warps=warps)
    a, b, c = (block.astype(np.float64) for block in (y, x, w))
    scale = (b * c * a).sum(1, keepdims=True)
    np.testing.assert_allclose(dw, (a * (b - scale * c)).sum(0), rtol=1e-6)
    np.testing.assert_array_equal(db, a.sum(0))
