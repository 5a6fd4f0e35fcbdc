"""Blocks that are read by rows and by columns, are combined, and are then reduced: in the layout in
which a reduction stays within warps. Blocks of 32 by 32, 8 warps."""

import ast
import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
N, WARPS = 32, 8


@proton.jit
def blocks(by_rows, by_columns, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    return tl.load(by_rows + i * N + j), tl.load(by_columns + j * N + i)


@proton.jit
def sum_of_rows(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    x, y = blocks(x_ptr, y_ptr, N)
    tl.store(out_ptr + tl.arange(0, N), tl.sum(y + x, 1))


@proton.jit
def largest_of_rows(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    x, y = blocks(x_ptr, y_ptr, N)
    tl.store(out_ptr + tl.arange(0, N), tl.max(tl.exp(tl.minimum(y, x)) * 2, 1))


@proton.jit
def sum_of_columns(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    x, y = blocks(x_ptr, y_ptr, N)
    tl.store(out_ptr + tl.arange(0, N), tl.sum(x * y, 0))


@proton.jit
def variances(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    x, y = blocks(x_ptr, y_ptr, N)
    both = y - x
    apart = both - tl.sum(both, 1)[:, None] / N
    tl.store(out_ptr + tl.arange(0, N), tl.sum(apart * apart, 1))


@proton.jit
def sums(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """Nothing is reduced: what is stored by rows has their layout, and one block moves."""
    x, y = blocks(x_ptr, y_ptr, N)
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    tl.store(out_ptr + i * N + j, y + x)


@proton.jit
def rows_twice(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    """Once along each dimension: neither is better."""
    x, y = blocks(x_ptr, y_ptr, N)
    tl.store(out_ptr + tl.arange(0, N), tl.sum(y + x, 1) - tl.sum(y + x, 0))


# Kernel: whether the sum of the first, by columns, and the second, by rows, has the second's
# layout; what is expected of x and y.
CASES: dict[Any, tuple[bool, Any]] = {
    sum_of_rows: (True, lambda x, y: (x + y).sum(1)),
    largest_of_rows: (True, lambda x, y: (np.exp(np.minimum(x, y)) * 2).max(1)),
    variances: (True, lambda x, y: (y - x).var(1) * N),
    sum_of_columns: (True, lambda x, y: (x * y).sum(0)),
    sums: (True, lambda x, y: (x + y).ravel()),
    rows_twice: (False, lambda x, y: (x + y).sum(1) - (x + y).sum(0)),
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: str(kernel.__name__))
def test_a_reduction_stays_within_warps_where_it_can(kernel: Any, rng: np.random.Generator) -> None:
    takes_second, expected = CASES[kernel]
    f32 = tl.float32
    found = kernel.warmup(f32, f32, f32, N=N, target=HOPPER, num_warps=WARPS)
    text = found.asm["ttgir"]
    loads = re.findall(r'"tt\.load".*?-> tensor<32x32xf32, (#linear\d*)>', text)
    combined = re.search(
        r"arith\.(?:addf|mulf|subf|m\w+f) %\w+, %\w+ : tensor<32x32xf32, (#linear\d*)>", text
    )
    assert combined is not None
    rows, columns = loads
    first, second = (rows, columns) if kernel is sum_of_columns else (columns, rows)
    assert combined[1] == (second if takes_second else first)
    x, y = (rng.random((N, N), np.float32) for _ in range(2))
    wanted = expected(x, y)
    out = np.zeros(wanted.size, np.float32)
    given = [x, np.ascontiguousarray(y.T), out]
    run_on_arrays(found.asm["ptx"], (1, 1, 1), 32 * WARPS, found.shared, given, rng)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)


C, H, W = tl.constexpr(32), tl.constexpr(16), tl.constexpr(16)


@proton.jit
def _image(x_ptr, plane, row):
    c, h, w = tl.arange(0, C), tl.arange(0, H), tl.arange(0, W)
    return tl.load(x_ptr + c[:, None, None] * plane + h[None, :, None] * row + w[None, None, :])


@proton.jit
def means_of_pixels(x_ptr, out_ptr, plane, row):
    at = tl.arange(0, H)[:, None] * W + tl.arange(0, W)[None, :]
    tl.store(out_ptr + at, tl.sum(_image(x_ptr, plane, row), 0) / C)


@proton.jit
def largest_of_a_column(x_ptr, out_ptr, plane, row):
    at = tl.arange(0, C)[:, None] * W + tl.arange(0, W)[None, :]
    tl.store(out_ptr + at, tl.max(tl.exp(_image(x_ptr, plane, row)), 1))


@proton.jit
def correlations(x_ptr, out_ptr, plane, row):
    total = tl.zeros((H, W), tl.float32)
    for n in range(4):
        total += tl.sum(_image(x_ptr, plane, row) * _image(x_ptr + n * row, plane, row), 0)
    tl.store(out_ptr + tl.arange(0, H)[:, None] * W + tl.arange(0, W)[None, :], total)


@proton.jit
def sums_of_rows(x_ptr, out_ptr, plane, row):
    at = tl.arange(0, C)[:, None] * H + tl.arange(0, H)[None, :]
    tl.store(out_ptr + at, tl.sum(_image(x_ptr, plane, row), 2))


@proton.jit
def copies(x_ptr, out_ptr, plane, row):
    c, h, w = tl.arange(0, C), tl.arange(0, H), tl.arange(0, W)
    at = c[:, None, None] * (H * W) + h[None, :, None] * W + w[None, None, :]
    tl.store(out_ptr + at, _image(x_ptr, plane, row))


# Kernel: the axis that no lanes lie along, if the layout is chosen for a reduction; what is
# expected of images, the first of those that begin a row later each.
OF_IMAGES: dict[Any, tuple[int | None, Any]] = {
    means_of_pixels: (0, lambda x, *_: x.mean(0)),
    largest_of_a_column: (1, lambda x, *_: np.exp(x).max(1)),
    correlations: (0, lambda x, *later: (x * sum(later, x)).sum(0)),
    sums_of_rows: (None, lambda x, *_: x.sum(2)),
    copies: (None, lambda x, *_: x),
}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("kernel", OF_IMAGES, ids=lambda kernel: str(kernel.__name__))
def test_a_thread_has_what_is_reduced_where_nothing_is_contiguous(
    kernel: Any, rng: np.random.Generator
) -> None:
    axis, expected = OF_IMAGES[kernel]
    x = rng.random((32, 19, 16), np.float32)
    plane, row = x[0].size, x.shape[2]
    found = kernel.warmup(tl.float32, tl.float32, plane, row, target=HOPPER, num_warps=4)
    text = found.asm["ttgir"]
    (name,) = set(re.findall(r'"tt\.load".*-> tensor<32x16x16xf32, (#linear\d*)>', text))
    layout = re.search(rf"{name} = #ttg.linear<(.*)>", text)
    assert layout is not None
    _, lanes, _, _ = ast.literal_eval(f"[{layout[1]}]")
    along = [any(basis[number] for basis in lanes) for number in range(3)]
    assert along == [axis == 1, axis != 1, True]
    wanted = expected(*(x[:, n : n + 16] for n in range(4)))
    out = np.zeros(wanted.shape, np.float32)
    given = [x, out, plane, row]
    run_on_arrays(found.asm["ptx"], (1, 1, 1), 128, found.shared, given, rng)
    np.testing.assert_allclose(out, wanted, rtol=1e-4, atol=1e-4)
