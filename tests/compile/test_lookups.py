"""Lookups by `tl.gather`: indices and what is found stay in the threads that have them."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation


@proton.jit
def nibbles_kernel(codes_ptr, table_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """Sums of rows of numbers that four bits name, two in a byte."""
    rows, columns = tl.arange(0, M), tl.arange(0, N)
    codes = tl.load(codes_ptr + rows[:, None] * N + columns[None, :]).to(tl.int32)
    table = tl.load(table_ptr + tl.arange(0, 16))
    upper = tl.gather(table, tl.reshape(codes >> 4, (M * N,)), 0)
    lower = tl.gather(table, tl.reshape(codes & 15, (M * N,)), 0)
    both = tl.join(tl.reshape(upper, (M, N)), tl.reshape(lower, (M, N)))
    tl.store(out_ptr + rows, tl.sum(tl.reshape(both, (M, 2 * N)), 1))


@proton.jit
def rows_kernel(x_ptr, order_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """Each column in an order of its own."""
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    found = tl.gather(tl.load(x_ptr + places), tl.load(order_ptr + places), 0)
    tl.store(out_ptr + places, found * 2)


@proton.jit
def computed_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """A table of numbers that are computed, by indices that data says."""
    places = tl.arange(0, N)
    x = tl.load(x_ptr + places)
    tl.store(out_ptr + places, tl.gather(places * 3, (x * 7 + 5) & (N - 1), 0) + x)


def conversions(kernel: Any) -> int:
    return int(kernel.asm["ttgir"].count('"ttg.convert_layout"'))


@pytest.mark.parametrize(("m", "n"), [(4, 256), (1, 32), (16, 8)])
def test_tables_of_nibbles(m: int, n: int, rng: np.random.Generator) -> None:
    codes = rng.integers(0, 256, (m, n)).astype(np.uint8)
    table, out = rng.integers(-8, 9, 16).astype(np.float32), np.empty(m, np.float32)
    with Emulation(4, rng).installed():
        kernel = nibbles_kernel[(1,)](codes, table, out, M=m, N=n, num_warps=4)
    np.testing.assert_array_equal(out, (table[codes >> 4] + table[codes & 15]).sum(1))
    assert conversions(kernel) <= 1, "of the result alone"


def test_columns_in_orders_of_their_own(rng: np.random.Generator) -> None:
    x = rng.standard_normal((64, 32)).astype(np.float32)
    order, out = rng.integers(0, 64, x.shape).astype(np.int64), np.empty_like(x)
    with Emulation(4, rng).installed():
        kernel = rows_kernel[(1,)](x, order, out, M=64, N=32, num_warps=4)
    np.testing.assert_array_equal(out, np.take_along_axis(x, order, 0) * 2)
    assert not conversions(kernel)


def test_tables_that_are_computed(rng: np.random.Generator) -> None:
    x, out = rng.integers(-50, 50, 256).astype(np.int32), np.empty(256, np.int32)
    with Emulation(2, rng).installed():
        kernel = computed_kernel[(1,)](x, out, N=256, num_warps=2)
    np.testing.assert_array_equal(out, (x * 7 + 5 & 255) * 3 + x)
    assert not conversions(kernel)
