"""Lookups by `tl.gather`: indices and what is found stay in the threads that have them, and a
source that a loop does not change is written to shared memory once."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.emulation import Emulation

HOPPER = GPUTarget("cuda", 90)


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


@proton.jit
def crossed_kernel(x_ptr, out_ptr, n, N: tl.constexpr):
    """A product of a square by itself: n columns by rows, one in each iteration."""
    numbers = tl.arange(0, N)
    places = numbers[:, None] * N + numbers[None, :]
    x = tl.load(x_ptr + places)
    acc = tl.zeros((N, N), tl.float32)
    for k in range(n):
        row = tl.gather(x, tl.full((1, N), k, tl.int16), 0)
        column = tl.gather(x, tl.full((N, 1), k, tl.int16), 1)
        acc += row.to(tl.float32) * column.to(tl.float32)
    tl.store(out_ptr + places, acc)


@proton.jit
def chunks_kernel(codes_ptr, table_ptr, out_ptr, n, N: tl.constexpr, SCALED: tl.constexpr):
    """Numbers that codes name, chunk by chunk; a table of each chunk's own where it is scaled."""
    table = tl.load(table_ptr + tl.arange(0, 256))
    for k in range(n):
        places = k * N + tl.arange(0, N)
        if SCALED:
            table = (table + 1) & 255
        codes = tl.load(codes_ptr + places)
        if codes.to(tl.int64).sum() >= 0:
            tl.store(out_ptr + places, tl.gather(table, codes, 0))


@proton.jit
def large_kernel(x_ptr, out_ptr, N: tl.constexpr):
    """Columns of a block that leaves no room in shared memory."""
    numbers = tl.arange(0, N)
    x = tl.load(x_ptr + numbers[:, None] * N + numbers[None, :])
    total = tl.zeros((N, 1), tl.float32)
    for k in range(N):
        total += tl.gather(x, tl.full((N, 1), k, tl.int32), 1)
    tl.store(out_ptr + numbers[:, None], total)


def reads(kernel: Any) -> tuple[int, int, int]:
    """Of a kernel: blocks that wait in shared memory, gathers from these, and other ones."""
    names = '"ttg.local_alloc"', '"ttg.local_gather"', '"tt.gather"'
    ttgir = kernel.asm["ttgir"]
    return ttgir.count(names[0]), ttgir.count(names[1]), ttgir.count(names[2])


def conversions(kernel: Any) -> int:
    return int(kernel.asm["ttgir"].count('"ttg.convert_layout"'))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(("m", "n"), [(4, 256), (1, 32), (16, 8)])
def test_tables_of_nibbles(m: int, n: int, rng: np.random.Generator) -> None:
    codes = rng.integers(0, 256, (m, n)).astype(np.uint8)
    table, out = rng.integers(-8, 9, 16).astype(np.float32), np.empty(m, np.float32)
    with Emulation(4, rng).installed():
        kernel = nibbles_kernel[(1,)](codes, table, out, M=m, N=n, num_warps=4)
    np.testing.assert_array_equal(out, (table[codes >> 4] + table[codes & 15]).sum(1))
    assert conversions(kernel) <= 1, "of the result alone"
    assert reads(kernel) == (1, 2, 0), "the table is written once"


def test_columns_in_orders_of_their_own(rng: np.random.Generator) -> None:
    x = rng.standard_normal((64, 32)).astype(np.float32)
    order, out = rng.integers(0, 64, x.shape).astype(np.int64), np.empty_like(x)
    with Emulation(4, rng).installed():
        kernel = rows_kernel[(1,)](x, order, out, M=64, N=32, num_warps=4)
    np.testing.assert_array_equal(out, np.take_along_axis(x, order, 0) * 2)
    assert not conversions(kernel)
    assert reads(kernel) == (0, 0, 1), "one gather writes its source once as it is"


def test_tables_that_are_computed(rng: np.random.Generator) -> None:
    x, out = rng.integers(-50, 50, 256).astype(np.int32), np.empty(256, np.int32)
    with Emulation(2, rng).installed():
        kernel = computed_kernel[(1,)](x, out, N=256, num_warps=2)
    np.testing.assert_array_equal(out, (x * 7 + 5 & 255) * 3 + x)
    assert not conversions(kernel)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(("dtype", "n"), [("float16", 16), ("float32", 32)])
def test_rows_and_columns_in_a_loop(dtype: str, n: int, rng: np.random.Generator) -> None:
    x = rng.integers(-8, 9, (n, n)).astype(dtype)
    out = np.empty((n, n), np.float32)
    with Emulation(2, rng).installed():
        kernel = crossed_kernel[(1,)](x, out, n - 3, N=n, num_warps=2)
    exact = x.astype(np.float32)
    np.testing.assert_array_equal(out, exact[:, :-3] @ exact[:-3])
    assert reads(kernel) == (2, 2, 0), "for rows it lies in another order than for columns"
    (loop,) = re.findall(r"(?s)(\$L__BB\w+):(.*)bra[^\n]*\1;", kernel.asm["ptx"])
    assert "bar.sync" not in loop[1]


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("chunks", [0, 2, 3])
@pytest.mark.parametrize("scaled", [False, True])
def test_a_table_for_all_chunks(scaled: bool, chunks: int, rng: np.random.Generator) -> None:
    """In a branch of the loop, too; a table that the loop changes is written in it."""
    codes = rng.integers(0, 256, (chunks + 1, 128)).astype(np.uint8)  # one more than it reads
    table, out = rng.integers(0, 256, 256).astype(np.int32), np.zeros(codes.shape, np.int32)
    with Emulation(4, rng).installed():
        kernel = chunks_kernel[(1,)](codes, table, out, chunks, N=128, SCALED=scaled, num_warps=4)
    exact = np.stack([table + (scaled and k + 1) & 255 for k in range(chunks + 1)])
    exact = np.take_along_axis(exact, codes.astype(np.int64), 1)
    exact[chunks] = 0
    np.testing.assert_array_equal(out, exact)
    assert reads(kernel) == ((0, 0, 1) if scaled else (1, 1, 0))


def test_a_source_without_room() -> None:
    """128 KB would leave an SM one program of 128 threads."""
    kernel = large_kernel.warmup(tl.float32, tl.float32, N=128, num_warps=4, target=HOPPER)
    assert reads(kernel) == (0, 0, 1)
