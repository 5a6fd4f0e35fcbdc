"""Rows and columns that a block of a matrix is computed with: small loads, which a GPU may make in
the layout of the block."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl


@proton.jit
def scaled(x_ptr, row_ptr, column_ptr, out_ptr, rows, M: tl.constexpr, N: tl.constexpr):
    """Rows are scaled, columns shifted; rows from `rows` on are not there."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    row = tl.load(row_ptr + j).to(tl.float32)
    column = tl.load(column_ptr + i, mask=i < rows, other=1.0) * 2.0 + 1.0
    places, there = i[:, None] * N + j[None, :], (i < rows)[:, None]
    x = tl.load(x_ptr + places, mask=there, other=0.0)
    tl.store(out_ptr + places, x * column[:, None] + row[None, :], mask=there)


@proton.jit
def in_place(x_ptr, row_ptr, M: tl.constexpr, N: tl.constexpr):
    """The row is written after it was read."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    row = tl.load(row_ptr + j)
    tl.store(row_ptr + j, row + 1.0)
    places = i[:, None] * N + j[None, :]
    tl.store(x_ptr + places, tl.load(x_ptr + places) * row[None, :])


@proton.jit
def elsewhere(x_ptr, row_ptr, same_ptr, M: tl.constexpr, N: tl.constexpr):
    """The row is written by way of another argument."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    row = tl.load(row_ptr + j)
    tl.store(same_ptr + j, row + 1.0)
    places = i[:, None] * N + j[None, :]
    tl.store(x_ptr + places, tl.load(x_ptr + places) * row[None, :])


@proton.jit
def product(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    z = tl.load(x_ptr + i)[:, None] * tl.load(y_ptr + j)[None, :]
    tl.store(out_ptr + i[:, None] * N + j[None, :], tl.exp(-z * z))


def shapes(rng: np.random.Generator) -> list[tuple[int, int]]:
    return [(1 << int(rng.integers(0, 7)), 1 << int(rng.integers(0, 8))) for _ in range(4)]


def normal(rng: np.random.Generator, *shape: int) -> Any:
    return rng.standard_normal(shape).astype(np.float32)


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_rows_and_columns_scale_a_block(rng: np.random.Generator, warps: int) -> None:
    for m, n in shapes(rng):
        x, column, row = normal(rng, m, n), normal(rng, m), normal(rng, n).astype(np.float16)
        rows, out = int(rng.integers(0, m + 1)), np.full((m, n), np.nan, np.float32)
        scaled[(1,)](x, row, column, out, rows, M=m, N=n, num_warps=warps)
        want = x * (2 * column + 1)[:, None] + row.astype(np.float32)
        np.testing.assert_allclose(out[:rows], want[:rows], rtol=1e-5, atol=1e-5)
        assert np.isnan(out[rows:]).all()


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_a_row_that_is_written_is_the_one_that_was_read(
    rng: np.random.Generator, warps: int
) -> None:
    for m, n in shapes(rng):
        x, row = normal(rng, m, n), normal(rng, n)
        want, after = x * row, row + 1
        in_place[(1,)](x, row, M=m, N=n, num_warps=warps)
        np.testing.assert_array_equal(x, want)
        np.testing.assert_array_equal(row, after)


def test_a_row_that_another_argument_writes_is_the_one_that_was_read(
    rng: np.random.Generator,
) -> None:
    """On a GPU of one warp: nothing orders what several do through two arguments."""
    for m, n in shapes(rng):
        x, row = normal(rng, m, n), normal(rng, n)
        want, after = x * row, row + 1
        elsewhere[(1,)](x, row, row, M=m, N=n, num_warps=1)
        np.testing.assert_array_equal(x, want)
        np.testing.assert_array_equal(row, after)


@pytest.mark.parametrize("warps", [1, 4, 8])
def test_the_product_of_a_column_and_a_row(rng: np.random.Generator, warps: int) -> None:
    for m, n in shapes(rng):
        x, y, out = normal(rng, m), normal(rng, n), np.empty((m, n), np.float32)
        product[(1,)](x, y, out, M=m, N=n, num_warps=warps)
        np.testing.assert_allclose(out, np.exp(-(np.outer(x, y) ** 2)), rtol=1e-5, atol=1e-6)
