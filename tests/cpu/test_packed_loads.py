"""Numbers that share a byte or a word, as weights of 4 bits do: their addresses go up by one every
second element, or fourth."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl

K, N = 32, 16  # of blocks


@proton.jit
def unpacked(x_ptr, out_ptr, first, bound, rows, EACH: tl.constexpr, MASK: tl.constexpr):
    """Each of EACH numbers along K has a share of the bits."""
    k, n = tl.arange(0, 32), tl.arange(0, 16)
    at = first + n[None, :] * rows + k[:, None] // EACH
    if MASK == "columns":
        x = tl.load(x_ptr + at, n[None, :] < bound, 1)
    elif MASK == "elements":
        x = tl.load(x_ptr + at, k[:, None] < bound, 1)
    elif MASK == "others":
        x = tl.load(x_ptr + at, n[None, :] < bound, (k[:, None] % 3).to(x_ptr.dtype.element_ty))
    else:
        x = tl.load(x_ptr + at)
    x = (x >> (k[:, None] % EACH)).to(tl.int16)
    tl.store(out_ptr + n[None, :] * 32 + k[:, None], x)


@proton.jit
def carried(x_ptr, out_ptr, first, bound, rows, EACH: tl.constexpr, MASK: tl.constexpr):
    """Pointers that a loop moves."""
    k, n = tl.arange(0, 32), tl.arange(0, 16)
    x_ptrs = x_ptr + first + n[None, :] * rows + k[:, None] // EACH
    total = tl.zeros((32, 16), tl.int16)
    for _ in range(bound):
        total += (tl.load(x_ptrs) >> (k[:, None] % EACH)).to(tl.int16)
        x_ptrs += 32 // EACH
    tl.store(out_ptr + n[None, :] * 32 + k[:, None], total)


def expected(kernel: Any, x: np.ndarray, first: int, bound: int, rows: int, each: int, mask: str):
    k, n = np.arange(K), np.arange(N)[:, None]
    at = first + n * rows + k // each
    shift = k % each
    if kernel is carried:
        parts = [x[at + step * (K // each)] >> shift.astype(x.dtype) for step in range(bound)]
        return sum(part.astype(np.int16) for part in parts)
    inside = k < bound if mask == "elements" else n < bound if mask else True
    other = (k % 3).astype(x.dtype) if mask == "others" else x.dtype.type(1)
    return (np.where(inside, x[at], other) >> shift.astype(x.dtype)).astype(np.int16)


CASES = [
    (unpacked, np.uint8, 2, "", 0, 48),
    (unpacked, np.uint8, 2, "", 3, 48),
    (unpacked, np.uint8, 2, "", 0, 50),
    (unpacked, np.int16, 4, "", 0, 48),
    (unpacked, np.int32, 2, "columns", 16, 48),
    (unpacked, np.int32, 8, "columns", 0, 48),
    (unpacked, np.int64, 2, "", 0, 48),
    (unpacked, np.uint8, 2, "elements", 0, 48),
    (unpacked, np.uint8, 2, "others", 0, 48),
    (carried, np.uint8, 2, "", 0, 80),
    (carried, np.int32, 4, "", 0, 80),
]


def given(kernel: Any, dtype: Any, first: int, rows: int, rng: np.random.Generator) -> list[Any]:
    """The run-time arguments of a case."""
    bound = 3 if kernel is carried else 13
    numbers = np.iinfo(dtype)
    x = rng.integers(numbers.min, numbers.max, 17 * rows + first + K, dtype)
    return [x, np.zeros(N * K, np.int16), first, bound, rows]


@pytest.mark.parametrize(("kernel", "dtype", "each", "mask", "first", "rows"), CASES)
def test_what_shares_words(
    kernel: Any,
    dtype: Any,
    each: int,
    mask: str,
    first: int,
    rows: int,
    rng: np.random.Generator,
) -> None:
    x, out, first, bound, rows = given(kernel, dtype, first, rows, rng)
    kernel[(1,)](x, out, first, bound, rows, each, mask, num_warps=2)
    wanted = expected(kernel, x, first, bound, rows, each, mask)
    np.testing.assert_array_equal(out.reshape(N, K), wanted)


@proton.jit
def product(
    a_ptr,
    b_ptr,
    scale_ptr,
    out_ptr,
    n,
    k,
    rows,
    GROUP: tl.constexpr,
    BM: tl.constexpr,
    BN: tl.constexpr,
    BK: tl.constexpr,
):
    """Weights of 4 bits, two in a byte along k, and a scale for each group of them."""
    i, j, at = tl.arange(0, BM), tl.program_id(0) * BN + tl.arange(0, BN), tl.arange(0, BK)
    a_ptrs = a_ptr + i[:, None] * k + at[None, :]
    b_ptrs = b_ptr + j[None, :] % n * rows + at[:, None] // 2
    total = tl.zeros((BM, BN), tl.float32)
    for first in range(0, k, BK):
        a = tl.load(a_ptrs, at[None, :] < k - first, 0)
        b = (tl.load(b_ptrs) >> (at[:, None] % 2 * 4)) & 0xF
        group = (at[:, None] + first) // GROUP
        scale = tl.load(scale_ptr + j[None, :] % n * (k // GROUP) + group).to(tl.float32)
        total = tl.dot(a, ((b.to(tl.float32) - 8) * scale).to(a.dtype), total)
        a_ptrs += BK
        b_ptrs += BK // 2
    tl.store(out_ptr + i[:, None] * n + j[None, :], total, j[None, :] < n)


@pytest.mark.parametrize(("n", "k", "group"), [(40, 128, 64), (64, 256, 32), (16, 64, 16)])
@pytest.mark.parametrize("warps", [4, 8])
def test_products_of_4_bits(
    n: int, k: int, group: int, warps: int, rng: np.random.Generator
) -> None:
    a = rng.integers(-3, 4, (64, k)).astype(np.float16)
    b = rng.integers(0, 256, (n, k // 2), np.uint8)
    scale = (2.0 ** rng.integers(-2, 3, (n, k // group))).astype(np.float16)
    out = np.zeros((64, n), np.float32)
    grid = (-(-n // 32),)
    product[grid](a, b, scale, out, n, k, k // 2, group, 64, 32, 32, num_warps=warps)
    weights = (np.stack([b & 15, b >> 4], 2).reshape(n, k) - 8.0) * scale.repeat(group, 1)
    np.testing.assert_array_equal(out, a.astype(np.float64) @ weights.T)
