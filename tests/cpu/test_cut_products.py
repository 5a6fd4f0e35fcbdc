"""Products of blocks that masks cut, with NaN in all that these hide."""

import numpy as np
import pytest

import proton
import proton.language as tl
from kernels.matmul import matmul


def hidden(rng: np.random.Generator, rows: int, columns: int) -> np.ndarray:
    """A random matrix, as a part of one that is NaN elsewhere."""
    around = np.full((rows + 3, columns + 5), np.nan, np.float32)
    inside = around[1 : rows + 1, 2 : columns + 2]
    inside[:] = rng.standard_normal((rows, columns), dtype=np.float32)
    return inside


def test_products_of_ugly_sizes(rng: np.random.Generator) -> None:
    """A row of `a` that is NaN is one of the result, and none of a later program's, which finds it
    in the buffers."""
    blocks = {"BLOCK_M": 64, "BLOCK_N": 128, "BLOCK_K": 64}
    for m, n, k in ((65, 267, 133), (3, 270, 95), (130, 5, 31)):
        a, b, c = hidden(rng, m, k), hidden(rng, k, n), hidden(rng, m, n)
        a[rng.integers(m)] = np.nan
        around = c.base
        assert around is not None
        before = around.copy()
        matmul(a, b, c, **blocks)
        np.testing.assert_allclose(c, a @ b, atol=1e-4, err_msg=str((m, n, k)))
        around[1 : m + 1, 2 : n + 2] = before[1 : m + 1, 2 : n + 2]
        np.testing.assert_array_equal(around, before)


@proton.jit
def cut_kernel(a_ptr, b_ptr, out_ptr, sums_ptr, n, more, CUT: tl.constexpr, OTHER: tl.constexpr):
    i, k = tl.arange(0, 16), tl.arange(0, 64)
    left = tl.load(a_ptr + i[:, None] * 64 + k[None, :], mask=k[None, :] < n, other=OTHER)
    right_ptrs = b_ptr + k[:, None] * 16 + i[None, :]
    if CUT == "alike":
        right = tl.load(right_ptrs, mask=k[:, None] < n, other=0.0)
    elif CUT == "less":
        right = tl.load(right_ptrs, mask=k[:, None] < more, other=0.0)
    else:
        right = tl.load(right_ptrs)
    product = tl.dot(left, right, input_precision="ieee")
    tl.store(out_ptr + i[:, None] * 16 + i[None, :], product)
    tl.store(sums_ptr + i, tl.sum(left, axis=1))


@pytest.mark.parametrize(
    ("cut", "other"), [("alike", 0.0), ("less", 0.0), ("not", 0.0), ("alike", 2.0)]
)
def test_what_a_mask_hides(rng: np.random.Generator, cut: str, other: float) -> None:
    """0 of one factor times NaN of the other is NaN, unless the same mask hides both; a block that
    is read otherwise, too, has what the mask leaves in its place."""
    a, b = (rng.standard_normal(shape, dtype=np.float32) for shape in ((16, 64), (64, 16)))
    out, sums = np.empty((16, 16), np.float32), np.empty(16, np.float32)
    for n in (0, 2, int(rng.integers(3, 63)), 64):
        hides, more = np.arange(64) >= n, (n + 64) // 2
        b[hides], b[~hides] = np.nan, rng.standard_normal((n, 16), dtype=np.float32)
        cut_kernel[(1,)](a, b, out, sums, n, more, CUT=cut, OTHER=other)
        left = np.where(hides, np.float32(other), a)
        kept = {"alike": n, "less": more, "not": 64}[cut]
        right = np.where(np.arange(64)[:, None] < kept, b, np.float32(0))
        np.testing.assert_allclose(out, left @ right, atol=1e-4, err_msg=f"n = {n}")
        np.testing.assert_allclose(sums, left.sum(axis=1), atol=1e-4, err_msg=f"n = {n}")
