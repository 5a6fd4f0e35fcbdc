"""Sums of products that a loop adds up: a thread adds its own with multiply-adds."""

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)


@proton.jit
def vector_product(x_ptr, y_ptr, out_ptr, n, M: tl.constexpr, K: tl.constexpr):
    """Rows times a vector, K columns at a time."""
    m, k = tl.arange(0, M), tl.arange(0, K)
    total = tl.zeros((M,), tl.float32)
    for start in range(0, n, K):
        x = tl.load(x_ptr + m[:, None] * n + start + k[None, :])
        total += tl.sum(x * tl.load(y_ptr + start + k)[None, :], 1)
    tl.store(out_ptr + m, total)


@pytest.mark.parametrize("fusion", [False, True])
def test_a_threads_products_are_fused_with_their_sum(
    fusion: bool, rng: np.random.Generator
) -> None:
    given = tl.float32, tl.float32, tl.float32, 256
    of = {"M": 8, "K": 128, "target": HOPPER, "num_warps": 2, "enable_fp_fusion": fusion}
    found = vector_product.warmup(*given, **of)
    assert ("fma.rn.f32" in found.asm["ptx"]) == fusion
    x, y, out = rng.random((8, 256), np.float32), rng.random(256, np.float32), np.zeros(8, "f4")
    run_on_arrays(found.asm["ptx"], (1, 1, 1), 64, found.shared, [x, y, out, 256], rng)
    np.testing.assert_allclose(out, x @ y, rtol=1e-5)
