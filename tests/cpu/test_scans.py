"""Scans, histograms and gathers, against numpy."""

from typing import Any

import numpy as np
import pytest

import proton
from tests.cpu.harness import (
    FLOATS,
    NUMBERS,
    assert_same,
    decode,
    encode,
    kernels_of,
    of_block,
    ordinary,
    pointer,
    sample,
    storage,
    sum_type,
)
from tests.tables import check_rows

COMBINE = """
from proton.language.extra import libdevice

@proton.jit
def affine(a1, b1, a2, b2):
    return a1 * a2, b1 * a2 + b2

@proton.jit
def larger(v1, i1, v2, i2):
    first = (v1 > v2) | ((v1 == v2) & (i1 < i2))
    return tl.where(first, v1, v2), tl.where(first, i1, i2)

@proton.jit
def maximum(a, b):
    return tl.maximum(a, b)

@proton.jit
def either(a, b):
    return a | b

@proton.jit
def last(a, b):
    return b

@proton.jit
def log_of_sums(a, b):
    low, high = tl.minimum(a, b), tl.maximum(a, b)
    same = libdevice.isinf(low) != 0
    return tl.where(same, high, libdevice.log1p(libdevice.exp(low - high)) + high)

@proton.jit
def assembled(a, b):
    return tl.inline_asm_elementwise("max.f32 $0, $1, $2;", "=f,f,f", [a, b], tl.float32, True, 1)

@proton.jit
def branching(a, b):
    if a > b:
        result = a
    else:
        result = b
    return result

"""
KERNELS = (
    COMBINE
    + """
@proton.jit
def pairs(a_ptr, b_ptr, out_a_ptr, out_b_ptr, SIZE: tl.constexpr, REVERSE: tl.constexpr):
    offs = tl.arange(0, SIZE)
    a, b = tl.load(a_ptr + offs), tl.load(b_ptr + offs)
    c, d = tl.associative_scan((a, b), 0, affine, REVERSE)
    tl.store(out_a_ptr + offs, c)
    tl.store(out_b_ptr + offs, d)

@proton.jit
def leaders(x_ptr, out_ptr, ROWS: tl.constexpr, SIZE: tl.constexpr, REVERSE: tl.constexpr):
    offs = tl.arange(0, SIZE)[None, :]
    place = tl.arange(0, ROWS)[:, None] * SIZE + offs
    x = tl.load(x_ptr + place)
    _, index = tl.associative_scan((x, tl.broadcast_to(offs, x.shape)), 1, larger, REVERSE)
    tl.store(out_ptr + place, index)

@proton.jit
def running(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    carry = 0.0
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        x = tl.load(x_ptr + offs, mask=offs < n, other=0.0)
        tl.store(out_ptr + offs, carry + tl.cumsum(x), mask=offs < n)
        carry += tl.sum(x)
"""
)


def scan_all(expressions: list[str], x: np.ndarray, dtype: str, out_dtype: str) -> list[Any]:
    """What expressions of a block x give, which have its shape, as computed by one kernel."""
    outs = [np.zeros(x.shape, storage(out_dtype)) for _ in expressions]
    results = {e: (out, out_dtype) for e, out in zip(expressions, outs, strict=True)}
    of_block(x, dtype, results, COMBINE)
    return outs


def scan(expression: str, x: np.ndarray, dtype: str, out_dtype: str) -> np.ndarray:
    (out,) = scan_all([expression], x, dtype, out_dtype)
    return out


def helper(name: str) -> Any:
    return getattr(kernels_of(KERNELS), name)


def accumulated(function: Any, x: np.ndarray, axis: int, reverse: bool) -> np.ndarray:
    """numpy's `accumulate`, one after the other in the dtype of x, from either end."""
    forward = np.flip(x, axis) if reverse else x
    with np.errstate(all="ignore"):
        done = function.accumulate(forward, axis=axis, dtype=x.dtype)
    return np.flip(done, axis) if reverse else done


def assert_summed(got: np.ndarray, want: np.ndarray, dtype: str) -> None:
    """Integers exactly; floats up to the roundings of sums, in whatever order they are taken."""
    if dtype not in FLOATS:
        assert_same(got, want, dtype)
        return
    largest = max(1.0, float(np.abs(want).max(initial=0.0)))
    eps = 2.0**-7 if dtype == "bfloat16" else float(np.finfo(dtype).eps)
    got, bound = decode(got, dtype), 16 * eps * largest
    np.testing.assert_allclose(got, want, rtol=0, atol=bound)


DIRECTIONS = [False, True]  # `reverse` of a scan


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_cumsum_of_every_dtype(rng: np.random.Generator, dtype: str) -> None:
    x, out_dtype = ordinary(rng, dtype, (64,)), sum_type(dtype)
    sums = [f"of_type(tl.cumsum(x, 0, {reverse}), tl.{out_dtype})" for reverse in DIRECTIONS]
    outs = scan_all(sums, x, dtype, out_dtype)
    wide = "float32" if dtype == "bfloat16" else out_dtype

    def check(reverse: bool, out: np.ndarray) -> None:
        want = accumulated(np.add, decode(x, dtype).astype(wide), 0, reverse)
        assert_summed(out, want, out_dtype)

    check_rows(check, zip(DIRECTIONS, outs, strict=True))


@pytest.mark.parametrize("shape", [(4, 8, 16), (1, 1, 1), (2, 1, 32), (1, 64, 1)])
def test_cumsum_along_every_axis(rng: np.random.Generator, shape: tuple[int, ...]) -> None:
    x = ordinary(rng, "float32", shape)
    cases = [(axis, reverse) for axis in (0, 1, 2, -1) for reverse in DIRECTIONS]
    sums = [f"tl.cumsum(x, {axis}, reverse={reverse})" for axis, reverse in cases]
    outs = scan_all(sums, x, "float32", "float32")

    def check(axis: int, reverse: bool, out: np.ndarray) -> None:
        assert_summed(out, accumulated(np.add, x, axis, reverse), "float32")

    check_rows(check, [(*case, out) for case, out in zip(cases, outs, strict=True)])


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["int8", "uint16", "int64", "float16", "float64", "float32"])
def test_cumprod(rng: np.random.Generator, dtype: str) -> None:
    x = ordinary(rng, dtype, (8, 32))
    if dtype in FLOATS:  # of products that neither vanish nor overflow
        x = rng.uniform(0.7, 1.4, x.shape).astype(dtype)
    out_dtype = sum_type(dtype)
    products = [f"of_type(tl.cumprod(x, 1, {reverse}), tl.{out_dtype})" for reverse in DIRECTIONS]
    outs = scan_all(products, x, dtype, out_dtype)

    def check(reverse: bool, out: np.ndarray) -> None:
        want = accumulated(np.multiply, x.astype(out_dtype), 1, reverse)
        if dtype in FLOATS:  # in whatever order the products are taken
            np.testing.assert_allclose(out, want, rtol=32 * float(np.finfo(dtype).eps))
        else:
            assert_same(out, want, out_dtype)

    check_rows(check, zip(DIRECTIONS, outs, strict=True))


def test_cumsum_in_a_dtype_that_is_asked_for(rng: np.random.Generator) -> None:
    x = rng.integers(-128, 128, 1024, dtype=np.int8)
    out = scan("tl.cumsum(x, dtype=tl.int64)", x, "int8", "int64")
    assert_same(out, np.cumsum(x, dtype=np.int64), "int64")


@pytest.mark.parametrize("dtype", NUMBERS)
def test_running_maximum(rng: np.random.Generator, dtype: str) -> None:
    x = sample(rng, dtype, 256)
    maxima = [f"x.associative_scan(0, maximum, {reverse})" for reverse in DIRECTIONS]
    outs, values = scan_all(maxima, x, dtype, dtype), decode(x, dtype)

    def check(reverse: bool, out: np.ndarray) -> None:
        want = accumulated(np.fmax if dtype in FLOATS else np.maximum, values, 0, reverse)
        zero = (decode(out, dtype) == 0) & (want == 0)  # of 0 and -0 either is the maximum
        assert_same(np.where(zero, out, encode(want, dtype)), out, dtype)

    check_rows(check, zip(DIRECTIONS, outs, strict=True))


def test_a_scan_of_truth_values(rng: np.random.Generator) -> None:
    x = rng.random(128) < 0.02
    out = scan("tl.associative_scan(x, 0, either)", x, "bool", "bool")
    assert_same(out, np.logical_or.accumulate(x), "bool")


@pytest.mark.interpreted
def test_what_comes_later_is_the_second_argument() -> None:
    x = np.arange(32, dtype=np.int32)
    scans = [f"tl.associative_scan(x, 0, last, {reverse})" for reverse in DIRECTIONS]
    for out in scan_all(scans, x, "int32", "int32"):
        assert (out == x).all()


@pytest.mark.interpreted
def test_a_combine_function_may_branch(rng: np.random.Generator) -> None:
    x = rng.integers(-500, 500, 64, dtype=np.int32)
    want = np.maximum.accumulate(x)
    assert_same(scan("tl.associative_scan(x, 0, branching)", x, "int32", "int32"), want, "int32")


def test_combine_functions_of_libdevice_and_of_assembly(rng: np.random.Generator) -> None:
    x = rng.standard_normal(256).astype(np.float32) * 9
    x[[0, 77]] = -np.inf
    want = np.logaddexp.accumulate(x.astype(np.float64))
    for combine, expected in (("log_of_sums", want), ("assembled", np.maximum.accumulate(x))):
        both = [f"tl.associative_scan(x, 0, {combine})", f"tl.reduce(x, 0, {combine})"]
        scanned, reduced = scan_all(both, x, "float32", "float32")
        np.testing.assert_allclose(scanned, expected, rtol=1e-5)
        np.testing.assert_allclose(reduced, np.full(256, expected[-1]), rtol=1e-5)


@pytest.mark.interpreted
@pytest.mark.parametrize("reverse", [False, True])
def test_a_scan_of_pairs(rng: np.random.Generator, reverse: bool) -> None:
    """x -> a x + b, composed: the order of the arguments matters."""
    size = 64
    a = rng.uniform(0.5, 1.5, size)
    b = rng.standard_normal(size).astype(np.float32)
    out_a, out_b = np.zeros(size), np.zeros(size, np.float32)
    helper("pairs")[(1,)](a, b, out_a, out_b, SIZE=size, REVERSE=reverse)
    order = range(size - 1, -1, -1) if reverse else range(size)
    want_a, want_b = np.zeros(size), np.zeros(size)
    scale, shift = 1.0, 0.0
    for n in order:
        scale, shift = scale * a[n], shift * a[n] + b[n]
        want_a[n], want_b[n] = scale, shift
    np.testing.assert_allclose(out_a, want_a, rtol=1e-13)
    np.testing.assert_allclose(out_b, want_b, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("reverse", [False, True])
def test_where_the_running_maximum_is(rng: np.random.Generator, reverse: bool) -> None:
    x = rng.integers(-4, 4, (8, 32)).astype(np.float16)
    out = np.zeros(x.shape, np.int32)
    helper("leaders")[(1,)](x, out, ROWS=8, SIZE=32, REVERSE=reverse)
    for row, found in zip(x, out, strict=True):
        for n, place in enumerate(found):
            part = range(n, 32) if reverse else range(n + 1)
            best = max(row[p] for p in part)
            assert place == min(p for p in part if row[p] == best)


@pytest.mark.parametrize("n", [1, 63, 64, 65, 1000])
def test_a_scan_inside_a_loop(rng: np.random.Generator, n: int) -> None:
    x = rng.standard_normal(n).astype(np.float32)
    out = np.zeros_like(x)
    helper("running")[(1,)](x, out, n, BLOCK=64)
    np.testing.assert_allclose(out, np.cumsum(x, dtype=np.float64), atol=1e-3)


# Histograms

HISTOGRAM = """
@proton.jit
def masked(x_ptr, out_ptr, n, BLOCK: tl.constexpr, BINS: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    counts = tl.histogram(x, BINS, mask=offs < n)
    tl.atomic_add(out_ptr + tl.arange(0, BINS), counts)

@proton.jit
def whole(x_ptr, out_ptr, BLOCK: tl.constexpr, BINS: tl.constexpr):
    counts = tl.histogram(tl.load(x_ptr + tl.arange(0, BLOCK)), BINS)
    tl.store(out_ptr + tl.arange(0, BINS), counts)
"""


def counted(x: np.ndarray, bins: int) -> np.ndarray:
    inside = (x >= 0) & (x.astype(np.float64) < bins)
    return np.bincount(x[inside].astype(np.int64), minlength=bins).astype(np.int32)


@pytest.mark.parametrize("dtype", ["int32", "uint32"])
@pytest.mark.parametrize("bins", [1, 16, 256])
def test_a_histogram_counts_what_lies_in_a_bin(
    rng: np.random.Generator, dtype: str, bins: int
) -> None:
    x = np.concatenate([sample(rng, dtype, 768), rng.integers(0, 100, 256).astype(dtype)])
    out = np.zeros(bins, np.int32)
    kernels_of(HISTOGRAM).whole[(1,)](x, out, BLOCK=1024, BINS=bins)
    assert_same(out, counted(x, bins), "int32")


@pytest.mark.interpreted
@pytest.mark.parametrize("n", [1, 100, 128, 1001])
def test_a_histogram_with_a_mask(rng: np.random.Generator, n: int) -> None:
    x = rng.integers(-3, 40, n, dtype=np.int32)
    out = np.zeros(32, np.int32)
    kernels_of(HISTOGRAM).masked[(proton.cdiv(n, 128),)](x, out, n, BLOCK=128, BINS=32)
    assert_same(out, counted(x, 32), "int32")


# Gathers

SHAPES = [((4, 8), (16, 8), 0), ((4, 8), (4, 2), 1), ((1, 1), (64, 1), -2)]
GATHER = """
@proton.jit
def gather(x_ptr, index_ptr, out_ptr, SOURCE: tl.constexpr, TARGET: tl.constexpr,
           AXIS: tl.constexpr):
    A: tl.constexpr = SOURCE[0]
    B: tl.constexpr = SOURCE[1]
    C: tl.constexpr = TARGET[0]
    D: tl.constexpr = TARGET[1]
    x = tl.load(x_ptr + tl.arange(0, A)[:, None] * B + tl.arange(0, B)[None, :])
    place = tl.arange(0, C)[:, None] * D + tl.arange(0, D)[None, :]
    out = tl.gather(x, tl.load(index_ptr + place), AXIS)
    tl.store(out_ptr + place, out)

@proton.jit
def kernel(x_ptrs, index_ptrs, out_ptrs, SHAPES: tl.constexpr):
    for n in tl.static_range(len(SHAPES)):
        gather(x_ptrs[n], index_ptrs[n], out_ptrs[n], SHAPES[n][0], SHAPES[n][1], SHAPES[n][2])
"""


@pytest.mark.parametrize("dtype", ["bool", *NUMBERS])
def test_gather(rng: np.random.Generator, dtype: str) -> None:
    xs = [sample(rng, dtype, source[0] * source[1]).reshape(source) for source, _, _ in SHAPES]
    indices = [
        rng.integers(0, source[axis], target).astype(rng.choice(["int32", "int64", "uint8"]))
        for source, target, axis in SHAPES
    ]
    outs = [np.zeros(target, storage(dtype)) for _, target, _ in SHAPES]
    sources, targets = (tuple(pointer(a, dtype) for a in arrays) for arrays in (xs, outs))
    kernels_of(GATHER).kernel[(1,)](sources, tuple(indices), targets, SHAPES=tuple(SHAPES))

    def check(shape: Any, x: np.ndarray, index: np.ndarray, out: np.ndarray) -> None:
        assert_same(out, np.take_along_axis(x, index.astype(np.int64), shape[2]), dtype)

    check_rows(check, zip(SHAPES, xs, indices, outs, strict=True))


GATHERS_IN_LOOPS = """
@proton.jit
def rows_and_columns(x_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + rows * N + columns)
    acc = tl.zeros((M, N), tl.float32)
    for k in range(n):
        row = tl.gather(x, tl.full((1, N), k, tl.int16), 0)
        column = tl.gather(x, tl.full((M, 1), k, tl.int64), 1)
        acc += row.to(tl.float32) * column.to(tl.float32)
    tl.store(out_ptr + rows * N + columns, acc)

@proton.jit
def named(codes_ptr, table_ptr, out_ptr, n, N: tl.constexpr, SIZE: tl.constexpr):
    table = tl.load(table_ptr + tl.arange(0, SIZE))
    place = tl.arange(0, N)
    for k in range(n):
        codes = tl.load(codes_ptr + k * N + place).to(tl.int32)
        if k % 2 == 0:
            tl.store(out_ptr + k * N + place, tl.gather(table, codes, 0))
        else:
            tl.store(out_ptr + k * N + place, tl.gather(table, SIZE - 1 - codes, 0))
"""


@pytest.mark.parametrize(
    ("dtype", "m", "n", "times"),
    [("float16", 32, 16, 13), ("float32", 8, 128, 8), ("int8", 64, 4, 0)],
)
def test_gathers_of_a_block_that_a_loop_does_not_change(
    rng: np.random.Generator, dtype: str, m: int, n: int, times: int
) -> None:
    """On a GPU it is written to shared memory once, ahead of the loop."""
    x = rng.integers(-5, 6, (m, n)).astype(dtype)
    out = np.empty((m, n), np.float32)
    kernels_of(GATHERS_IN_LOOPS).rows_and_columns[(1,)](x, out, times, M=m, N=n)
    exact = x.astype(np.float32)
    np.testing.assert_array_equal(out, exact[:, :times] @ exact[:times])


@pytest.mark.parametrize(("dtype", "size"), [("float16", 16), ("int64", 256), ("uint8", 2)])
def test_tables_that_a_loop_does_not_change(
    rng: np.random.Generator, dtype: str, size: int
) -> None:
    codes = rng.integers(0, size, (5, 512)).astype(np.uint8)
    table, out = sample(rng, dtype, size), np.zeros(codes.shape, dtype)
    kernels_of(GATHERS_IN_LOOPS).named[(1,)](codes, table, out, 5, N=512, SIZE=size)
    exact = table[codes]
    exact[1::2] = table[size - 1 - codes[1::2]]
    np.testing.assert_array_equal(out, exact)
