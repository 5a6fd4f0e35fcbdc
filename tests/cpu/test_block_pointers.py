"""Block pointers: blocks of tensors that reach over their ends, against slices of numpy."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import DTYPES, FLOATS, assert_same, encode, pointer, sample, storage


def block_of(x: np.ndarray, offsets: Any, sizes: Any, fill: Any) -> np.ndarray:
    """The block of `sizes` at `offsets`, with `fill` where `x` has nothing."""
    grids = np.meshgrid(*(o + np.arange(s) for o, s in zip(offsets, sizes, strict=True)),
                        indexing="ij")  # fmt: skip
    inside = np.logical_and.reduce(
        [(grid >= 0) & (grid < size) for grid, size in zip(grids, x.shape, strict=True)]
    )
    block = np.full(sizes, fill, x.dtype)
    block[inside] = x[tuple(grid[inside] for grid in grids)]
    return block


@proton.jit
def copy_block(
    x_ptr, got_ptr, y_ptr, m, n, xm, xn, ym, yn, i, j, down, right,
    M: tl.constexpr, N: tl.constexpr, ORDER: tl.constexpr, PADDING: tl.constexpr,
):  # fmt: skip
    x = tl.make_block_ptr(x_ptr, (m, n), (xm, xn), (i, j), (M, N), ORDER)
    block = tl.load(x, boundary_check=(0, 1), padding_option=PADDING)
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(got_ptr + places, block)
    y = tl.make_block_ptr(y_ptr, [m, n], [ym, yn], [0, 0], [M, N], ORDER)
    tl.store(tl.advance(y, (down, right)), block, boundary_check=(1, 0))


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", DTYPES)
def test_blocks_over_the_ends(rng: np.random.Generator, dtype: str) -> None:
    """Offsets below 0 and behind the end, strides of any sign, empty tensors."""
    for trial in range(12):
        m, n = (int(s) for s in rng.integers(0 if trial < 2 else 1, 40, 2))
        shape = 16, 8
        x = sample(rng, dtype, m * n * 6).reshape(m * 2, n * 3)[::2, ::3]
        if trial % 3 == 0:
            x = x[::-1, ::-1]
        elif trial % 3 == 1:
            x = np.ascontiguousarray(x.T).T
        y = sample(rng, dtype, m * n).reshape(m, n)
        i, down = (int(o) for o in rng.integers(-17, m + 9, 2))
        j, right = (int(o) for o in rng.integers(-9, n + 9, 2))
        padding = "nan" if dtype in FLOATS and trial % 2 else "zero"
        fill: Any = False if dtype == "bool" else 0
        if padding == "nan":
            fill = encode(np.array([np.nan], np.float32), dtype)[0]
        got, out = np.zeros(shape, storage(dtype)), y.copy()
        strides = [s // x.itemsize for s in (*x.strides, *out.strides)]
        copy_block[(1,)](
            pointer(x, dtype), pointer(got, dtype), pointer(out, dtype), m, n, *strides, i, j,
            down, right, M=16, N=8, ORDER=(0, 1) if trial % 3 == 1 else (1, 0), PADDING=padding,
        )  # fmt: skip
        want = block_of(x, (i, j), shape, fill)
        assert_same(got, want, dtype)
        stored = block_of(want, (-down, -right), (m, n), fill)
        hit = block_of(np.ones(shape, bool), (-down, -right), (m, n), False)
        assert_same(out, np.where(hit, stored, y), dtype)


@proton.jit
def unchecked(x_ptr, y_ptr, stride, n, M: tl.constexpr, N: tl.constexpr, CHECK: tl.constexpr):
    """A boundary is looked at only in the dimensions that are asked for."""
    row = tl.program_id(0) * M
    x = tl.make_block_ptr(x_ptr, (0, n), (stride, 1), (row, 0), (M, N), (1, 0))
    y = tl.make_block_ptr(y_ptr, (0, n), (N, 1), (row, 0), (M, N), (1, 0))
    tl.store(y, tl.load(x, boundary_check=CHECK))


def test_a_dimension_that_is_not_checked_is_read_whole(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((12, 19)), np.zeros((12, 16))
    unchecked[(3,)](x, y, 19, 11, M=4, N=16, CHECK=(1,))
    np.testing.assert_array_equal(y, np.where(np.arange(16) < 11, x[:, :16], 0))
    unchecked[(3,)](x, y, 19, 11, M=4, N=16, CHECK=())
    np.testing.assert_array_equal(y, x[:, :16])
    unchecked[(3,)](x, y, 19, 11, M=4, N=16, CHECK=0)
    np.testing.assert_array_equal(y, 0 * y)


@proton.jit
def line_sum(p, count, N: tl.constexpr):
    total = tl.zeros((N,), tl.float32)
    for _ in range(count):
        total += tl.load(p, boundary_check=(0,), padding_option="zero")
        p = p.advance((N,))
    return total, p


@proton.jit(noinline=True)
def moved(p, by, twice):
    p = tl.advance(p, (by,))
    if twice:
        p = tl.advance(p, (by,))
    return p


@proton.jit
def carried(x_ptr, y_ptr, z_ptr, out_ptr, n, first, back, twice, which, N: tl.constexpr):
    """By a `for` in a callee, a `while`, an `if`, a ternary, and a function that is called."""
    x = tl.make_block_ptr(x_ptr, (n,), (1,), (first,), (N,), (0,))
    y = tl.make_block_ptr(y_ptr, (n,), (2,), (0,), (N,), (0,))
    total, end = line_sum(x, tl.cdiv(n - first, N), N)
    end = moved(end, back, twice)
    while tl.sum(tl.load(end, boundary_check=(0,), padding_option="zero")) == 0:
        end = tl.advance(end, (-1,))
    if which > 0:
        p = end
        if which > 1:
            p = y
    else:
        p = tl.make_block_ptr(z_ptr, (n,), (1,), (which,), (N,), (0,))
    q = y if which == 3 else p
    last = tl.load(q, boundary_check=(0,), padding_option="zero")
    out = tl.make_block_ptr(out_ptr, (2, N), (N, 1), (0, 0), (1, N), (1, 0))
    tl.store(out, total[None, :])
    tl.store(tl.advance(out, (1, 0)), last[None, :])


@pytest.mark.interpreted
@pytest.mark.parametrize("which", [-3, 0, 1, 2, 3])
def test_pointers_go_where_values_go(rng: np.random.Generator, which: int) -> None:
    n, size = int(rng.integers(40, 70)), 16
    first, back = int(rng.integers(-5, 20)), int(rng.integers(1, 5))
    x, y, z = (rng.integers(1, 9, k).astype(np.float32) for k in (n, 2 * n, n))
    twice = int(rng.integers(0, 2))
    out = np.zeros((2, size), np.float32)
    carried[(1,)](x, y, z, out, n, first, back, twice, which, N=size)
    blocks = -(-(n - first) // size)
    line = block_of(x, (first,), (blocks * size,), 0)
    np.testing.assert_array_equal(out[0], line.reshape(-1, size).sum(0))
    end = min(first + blocks * size + back * (1 + twice), n - 1)
    of = {1: (x, end), 2: (y[::2], 0), 3: (y[::2], 0)}.get(which, (z, which))
    np.testing.assert_array_equal(out[1], block_of(of[0], (of[1],), (size,), 0))


@proton.jit
def matmul(
    a_ptr, b_ptr, c_ptr, m, n, k, am, ak, bk, bn,
    M: tl.constexpr, N: tl.constexpr, K: tl.constexpr,
):  # fmt: skip
    columns = tl.cdiv(n, N)
    row, column = tl.program_id(0) // columns * M, tl.program_id(0) % columns * N
    a = tl.make_block_ptr(a_ptr, (m, k), (am, ak), (row, 0), (M, K), (1, 0))
    b = tl.make_block_ptr(b_ptr, (k, n), (bk, bn), (0, column), (K, N), (1, 0))
    total = tl.zeros((M, N), tl.float32)
    for _ in range(0, k, K):
        left = tl.load(a, boundary_check=(0, 1), padding_option="zero")
        right = tl.load(b, boundary_check=(0, 1), padding_option="zero")
        total = tl.dot(left, right, total, input_precision="ieee")
        a, b = tl.advance(a, (0, K)), tl.advance(b, (K, 0))
    c = tl.make_block_ptr(c_ptr, (m, n), (n, 1), (row, column), (M, N), (1, 0))
    tl.store(c, total, boundary_check=(0, 1))


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_matmul(rng: np.random.Generator, dtype: str) -> None:
    for m, n, k in [(1, 1, 1), (33, 70, 50), (64, 64, 0), (5, 130, 31)]:
        a, b = (rng.standard_normal(s).astype(dtype) for s in ((m, k), (n, k)))
        c = np.full((m, n), -1, np.float32)
        grid = (proton.cdiv(m, 32) * proton.cdiv(n, 64),)
        matmul[grid](a, b.T, c, m, n, k, k, 1, 1, k, M=32, N=64, K=16)
        want = a.astype(np.float64) @ b.T.astype(np.float64)
        np.testing.assert_allclose(c, want, rtol=0, atol=1e-3)


@proton.jit
def cube(x_ptr, y_ptr, a, b, c, N: tl.constexpr):
    x = tl.make_block_ptr(x_ptr, (a, b, c), (b * c, c, 1), (-1, 1, 0), (2, N, N), (2, 1, 0))
    y = tl.make_block_ptr(y_ptr, (2, N, N), (N * N, N, 1), (0, 0, 0), (2, N, N), (2, 1, 0))
    tl.store(y, tl.load(x, boundary_check=(0, 1, 2), padding_option="nan"))


@pytest.mark.interpreted
def test_blocks_of_three_dimensions(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal((3, 5, 6)), np.zeros((2, 8, 8))
    cube[(1,)](x, y, 3, 5, 6, N=8)
    np.testing.assert_array_equal(y, block_of(x, (-1, 1, 0), (2, 8, 8), np.nan))


def test_blocks_are_read_in_rows() -> None:
    """The CPU's structured path sees them: no gather, no scatter."""
    x = np.ones((64, 64), np.float32)
    kernel = matmul[(2,)](x, x, x.copy(), 64, 64, 64, 64, 1, 64, 1, M=32, N=64, K=16)
    text = kernel.asm["ttsir"]
    assert text.count('"tts.load"') == 2
    assert text.count('"tts.store"') == 1
    assert "llvm.load" not in text
