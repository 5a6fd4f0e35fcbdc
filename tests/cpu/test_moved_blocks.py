"""Blocks of pointers that loops move as a whole, one element an access."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import ordinary


@proton.jit
def sums_of_blocks(
    x_ptr, y_ptr, out_ptr, turns, stride_x, stride_y, across, down, growth,
    ROWS: tl.constexpr, COLUMNS: tl.constexpr, WIDE: tl.constexpr,
):  # fmt: skip
    """out = the sum over all turns of blocks of x and y, and what lies where they end up. x moves
    along its rows, y along its columns, by steps that grow, and by two of them at once."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    along = rows.to(tl.int64) * stride_y if WIDE else rows * stride_y
    x_ptrs = x_ptr + rows[:, None] * stride_x + columns[None, :]
    y_ptrs = y_ptr + (along[:, None] + (columns ^ 1)[None, :])
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.int32)
    for turn in range(turns):
        inside = columns < COLUMNS - turn
        total += tl.load(x_ptrs, mask=inside[None, :], other=7)
        total += 3 * tl.load(y_ptrs)
        x_ptrs += across
        y_ptrs += down + turn * growth
        y_ptrs -= 1
    total += 5 * tl.load(x_ptrs) + 11 * tl.load(y_ptrs)
    tl.store(out_ptr + rows[:, None] * COLUMNS + columns[None, :], total)


@proton.jit
def moved_twice(x_ptr, out_ptr, outer, inner, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """An inner loop moves what an outer one carries, too, and back by a step of its own."""
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    x_ptrs = x_ptr + rows[:, None] * stride + columns[None, :]
    total = tl.zeros((ROWS, COLUMNS), dtype=tl.int32)
    for _ in range(outer):
        for _ in range(inner):
            total = total * 3 + tl.load(x_ptrs)
            x_ptrs += 1
        x_ptrs += stride - inner
    tl.store(out_ptr + rows[:, None] * COLUMNS + columns[None, :], total)


@pytest.mark.parametrize("wide", [False, True])
@pytest.mark.parametrize("turns", [0, 1, 2, 5])
@pytest.mark.parametrize("across, down, growth", [(1, 1, 0), (-1, 131, 0), (2, -129, 1)])
def test_blocks_that_move_as_a_whole(
    rng: np.random.Generator, turns: int, across: int, down: int, growth: int, wide: bool
) -> None:
    rows, columns = 32, 64
    x, y = (ordinary(rng, "int32", 400 * 400) for _ in range(2))
    stride_x, stride_y = (int(rng.integers(67, 140)) for _ in range(2))
    if rng.integers(2):
        stride_x = -stride_x
    out = np.full((rows, columns), 77, np.int32)
    first = 80_000
    sums_of_blocks[(1,)](
        x[first:], y[first:], out, turns, stride_x, stride_y, across, down, growth,
        ROWS=rows, COLUMNS=columns, WIDE=wide,
    )  # fmt: skip
    i, j = np.arange(rows)[:, None], np.arange(columns)[None, :]
    at_x, at_y = first + i * stride_x + j, first + i * stride_y + (j ^ 1)
    want = np.zeros((rows, columns), np.int64)
    for turn in range(turns):
        want += np.where(j < columns - turn, x[at_x], 7) + 3 * y[at_y]
        at_x, at_y = at_x + across, at_y + down + turn * growth - 1
    want += 5 * x[at_x] + 11 * y[at_y]
    assert (out == want.astype(np.int32)).all()


@pytest.mark.parametrize("outer, inner", [(0, 3), (2, 0), (3, 4)])
def test_blocks_that_two_loops_move(rng: np.random.Generator, outer: int, inner: int) -> None:
    rows, columns, stride = 64, 64, int(rng.integers(70, 100)) | 1
    x = ordinary(rng, "int32", (rows + outer + 2) * stride + columns + inner)
    out = np.full((rows, columns), 77, np.int32)
    moved_twice[(1,)](x, out, outer, inner, stride, ROWS=rows, COLUMNS=columns)
    at = np.arange(rows)[:, None] * stride + np.arange(columns)[None, :]
    want = np.zeros((rows, columns), np.int64)
    for turn in range(outer):
        for step in range(inner):
            want = want * 3 + x[at + turn * stride + step]
    assert (out == want.astype(np.int32)).all()


@proton.jit
def copied_blocks(x_ptr, out_ptr, turns, stride_x, stride_out, B: tl.constexpr):
    """Ranges that do not begin at 0, and steps back."""
    rows, late, columns = tl.arange(0, B), tl.arange(B, 2 * B), tl.arange(32, 32 + B)
    source = x_ptr + (late[:, None] * stride_x + columns[None, :])
    target = out_ptr + rows[:, None] * stride_out + (columns + 7)[None, :]
    for _ in range(turns):
        tl.store(target, tl.load(source))
        source -= stride_x + 1
        target += B * stride_out


@pytest.mark.parametrize("dtype", ["bool", "int8", "float16", "float64"])
@pytest.mark.parametrize("turns", [0, 1, 3])
def test_elements_of_each_size(rng: np.random.Generator, dtype: str, turns: int) -> None:
    b = 64
    stride_x, stride_out = (int(rng.integers(110, 140)) | 1 for _ in range(2))
    x = ordinary(rng, dtype, 2 * b * stride_x + b + 64)
    out = np.full((turns * b + 1) * stride_out + b + 64, 77, dtype)
    copied_blocks[(1,)](x, out, turns, stride_x, stride_out, B=b)
    want = np.full_like(out, 77)
    i, j = np.arange(b)[:, None], np.arange(b)[None, :]
    for turn in range(turns):
        at = (b + i - turn) * stride_x + 32 + j - turn
        want[(turn * b + i) * stride_out + 39 + j] = x[at]
    assert (out == want).all()


@proton.jit
def product_of_odd_rows(
    a_ptr, b_ptr, c_ptr, K, stride_a, stride_b,
    M: tl.constexpr, N: tl.constexpr, BLOCK_K: tl.constexpr,
):  # fmt: skip
    rows, columns, depth = tl.arange(0, M), tl.arange(0, N), tl.arange(0, BLOCK_K)
    a_ptrs = a_ptr + rows[:, None] * stride_a + depth[None, :]
    b_ptrs = b_ptr + depth[:, None] * stride_b + columns[None, :]
    c = tl.zeros((M, N), dtype=tl.float32)
    for k in range(0, K, BLOCK_K):
        a = tl.load(a_ptrs, mask=depth[None, :] < K - k, other=0.0)
        b = tl.load(b_ptrs, mask=depth[:, None] < K - k, other=0.0)
        c = tl.dot(a, b, c)
        a_ptrs += BLOCK_K
        b_ptrs += BLOCK_K * stride_b
    tl.store(c_ptr + rows[:, None] * N + columns[None, :], c)


@pytest.mark.parametrize("k", [0, 1, 63, 64, 65, 200])
def test_products_whose_rows_begin_anywhere(rng: np.random.Generator, k: int) -> None:
    """Integers, so that sums are exact: a product that began before its operands were there, or
    that went on while the next ones were stored, is another number."""
    m, n, block = (128, 128, 64) if rng.integers(2) else (64, 256, 64)
    a = rng.integers(-8, 9, (m, max(1, k) | 1)).astype(np.float16)
    b = rng.integers(-8, 9, (max(1, k), n + 1)).astype(np.float16)
    c = np.full((m, n), np.nan, np.float32)
    options: dict[str, Any] = {"num_warps": 4 if m == 64 else 8}
    product_of_odd_rows[(1,)](a, b, c, k, a.shape[1], n + 1, M=m, N=n, BLOCK_K=block, **options)
    assert (c == a[:, :k].astype(np.float64) @ b[:k, :n].astype(np.float64)).all()
