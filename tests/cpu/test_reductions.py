"""Reductions along every axis, against numpy."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import (
    DTYPES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    UNSIGNED,
    WIDE_FLOATS,
    assert_number,
    assert_same,
    decode,
    encode,
    of_block,
    ordinary,
    sample,
    storage,
    sum_type,
)
from tests.tables import check_rows


def reduce(expression: str, x: np.ndarray, dtype: str, out: np.ndarray, out_dtype: str) -> None:
    """Runs an expression of a block x."""
    of_block(x, dtype, {expression: (out, out_dtype)})


def check_sums(x: np.ndarray, dtype: str, *axes: int | None) -> None:
    out_dtype, values = sum_type(dtype), decode(x, dtype)
    wide = values.astype(np.float64 if dtype in FLOATS else np.int64)
    exact = {axis: np.asarray(wide.sum(axis)) for axis in axes}
    found = {axis: np.zeros(exact[axis].shape, storage(out_dtype)) for axis in axes}
    sums = {f"of_type(tl.sum(x, {a}), tl.{out_dtype})": (found[a], out_dtype) for a in axes}
    of_block(x, dtype, sums)

    def check(axis: int | None) -> None:
        if dtype in INTEGERS or dtype == "bool":
            assert_same(found[axis], exact[axis].astype(out_dtype), out_dtype)
            return
        magnitude = np.abs(values.astype(np.float64)).sum(axis)
        eps = {"float16": 2.0**-11, "bfloat16": 2.0**-8}.get(dtype) or float(np.finfo(dtype).eps)
        count = values.size // max(1, found[axis].size)
        error = np.abs(decode(found[axis], dtype) - exact[axis])
        assert (error <= magnitude * eps * (2 + np.log2(count) * 8)).all()

    check_rows(check, [(axis,) for axis in axes])


@pytest.mark.parametrize("dtype", DTYPES)
def test_sum(rng: np.random.Generator, dtype: str) -> None:
    check_sums(ordinary(rng, dtype, (4, 8, 16)), dtype, 0, 1, 2, -1, None)


@pytest.mark.parametrize("dtype", ["float32", "int32", "bfloat16"])
@pytest.mark.parametrize("size", [1, 2, 4, 16, 64, 1024, 4096])
def test_sum_of_every_size(rng: np.random.Generator, size: int, dtype: str) -> None:
    check_sums(ordinary(rng, dtype, (size,)), dtype, 0)


@pytest.mark.interpreted
@pytest.mark.parametrize("shape", [(1, 64), (64, 1), (128, 32), (2, 2048), (2048, 2)])
def test_sum_of_every_shape(rng: np.random.Generator, shape: tuple[int, int]) -> None:
    check_sums(ordinary(rng, "float32", shape), "float32", 0, 1)


def test_sum_in_a_requested_dtype(rng: np.random.Generator) -> None:
    x, out = ordinary(rng, "float16", (64,)), np.zeros((), np.float64)
    reduce("tl.sum(x, 0, dtype=tl.float64)", x, "float16", out, "float64")
    np.testing.assert_allclose(out, x.astype(np.float64).sum(), rtol=1e-12)


def check_all(
    x: np.ndarray, dtype: str, out_dtype: str, wants: dict[str, np.ndarray], check: Any
) -> None:
    """Each expression of one kernel against what it is to give, by `check`."""
    found = {name: np.zeros(want.shape, storage(out_dtype)) for name, want in wants.items()}
    of_block(x, dtype, {name: (out, out_dtype) for name, out in found.items()})
    check_rows(lambda name: check(found[name], wants[name], out_dtype), [(name,) for name in wants])


@pytest.mark.interpreted
def test_keep_dims(rng: np.random.Generator) -> None:
    x, wants = ordinary(rng, "int32", (8, 16)), {}
    for axis in (0, 1, None):
        total = x.sum(axis, keepdims=True, dtype=np.int32)
        wants[f"tl.sum(x, {axis}, keep_dims=True)"] = total
        wants[f"x - tl.max(x, {axis}, keep_dims=True)"] = x - x.max(axis, keepdims=True)
    check_all(x, "int32", "int32", wants, assert_same)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_extrema(rng: np.random.Generator, dtype: str) -> None:
    x = sample(rng, dtype, 256).reshape(16, 16)
    if dtype in FLOATS:
        x[3, :] = x[:, 5] = encode(np.float32([np.nan]), dtype)  # a row and a column of NaN
    functions: dict[str, Callable[..., Any]] = {"max": np.fmax.reduce, "min": np.fmin.reduce}
    wants = {
        f"tl.{name}(x, {axis})": encode(np.asarray(function(decode(x, dtype), axis)), dtype)
        for name, function in functions.items()
        for axis in (0, 1, None)
    }
    check_all(x, dtype, dtype, wants, assert_number)


def test_the_extremum_of_nothing_but_nan_is_nan() -> None:
    x, nan = np.full(64, np.nan, np.float32), np.array(np.nan, np.float32)
    check_all(x, "float32", "float32", {"tl.max(x, 0)": nan, "tl.min(x, 0)": nan}, assert_same)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_indices_of_extrema(rng: np.random.Generator, dtype: str) -> None:
    x = ordinary(rng, dtype, (16, 32))
    if dtype in INTEGERS:
        x = (x // 10).astype(dtype)  # ties
    wants = {
        f"tl.{name}(x, {axis})": getattr(np, name)(decode(x, dtype), axis).astype(np.int32)
        for name in ("argmax", "argmin")
        for axis in (0, 1)
    }
    check_all(x, dtype, "int32", wants, assert_same)


@pytest.mark.interpreted
@pytest.mark.parametrize("size", [1, 2, 64, 4096])
def test_ties_go_to_the_left(size: int) -> None:
    names = ("argmax", "argmin")
    x, half = np.ones(size, np.float32), size // 2
    either = [f"tl.{name}(x, 0, tie_break_left=False)" for name in names]
    calls = [f"tl.{name}(x, 0)" for name in names] + either
    for upper, first in ((1, (0, 0)), (2, (half, 0)), (0, (0, half))):
        x[half:] = upper
        found = {call: np.full((), 7, np.int32) for call in calls}
        of_block(x, "float32", {call: (out, "int32") for call, out in found.items()})
        places = [int(out) for out in found.values()]
        assert places[:2] == list(first), upper
        assert x[places].tolist() == [x.max(), x.min()] * 2, upper


@pytest.mark.interpreted
def test_extremum_and_index_together(rng: np.random.Generator) -> None:
    x = ordinary(rng, "float32", (8, 16))
    wants, results = {}, {}
    for axis in (0, 1, None):
        want = np.asarray(x.max(axis) + x.argmax(axis).astype(np.float32))
        expression = f"pair_sum(tl.max(x, {axis}, return_indices=True))"
        wants[expression], results[expression] = want, (np.zeros(want.shape, np.float32), "float32")
    helper = "\n@proton.jit\ndef pair_sum(pair):\n    return pair[0] + pair[1]\n\n"
    of_block(x, "float32", results, helper)

    def check(expression: str) -> None:
        assert (results[expression][0] == wants[expression]).all()

    check_rows(check, [(expression,) for expression in wants])


@proton.jit
def rows_with_indices(x_ptr, out_ptr, index_ptr, N: tl.constexpr, NAMES: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N))
    for n in tl.static_range(len(NAMES)):
        row = (n * tl.num_programs(0) + tl.program_id(0)) * 3
        for left in tl.static_range(2):
            value, index = NAMES[n](x, 0, return_indices=True, return_indices_tie_break_left=left)
            tl.store(out_ptr + row + left, value)
            tl.store(index_ptr + row + left, index)
        tl.store(out_ptr + row + 2, NAMES[n](x, 0))


@pytest.mark.parametrize("dtype", WIDE_FLOATS)
@pytest.mark.parametrize("size", [1, 2, 8, 64, 512])
def test_extrema_with_indices_pass_over_nan(
    rng: np.random.Generator, size: int, dtype: str
) -> None:
    rows = 200
    x = rng.integers(-3, 4, (rows, size)).astype(dtype)  # ties
    x[rng.random(x.shape) < 0.1] = np.inf
    x[rng.random(x.shape) < rng.random((rows, 1))] = np.nan
    outs, indices = np.zeros((2, rows, 3), dtype), np.full((2, rows, 3), -1, np.int32)
    rows_with_indices[(rows,)](x, outs, indices, N=size, NAMES=(tl.max, tl.min))

    def check(name: str, number: int) -> None:
        out, index = outs[number], indices[number]
        want = {"max": np.fmax, "min": np.fmin}[name].reduce(x, axis=1)
        for column in range(3):
            assert_number(out[:, column], want, dtype)
        is_extremum = (x == want[:, None]) | (np.isnan(x) & np.isnan(want)[:, None])
        assert np.array_equal(index[:, 1], is_extremum.argmax(axis=1)), "the first of equals"
        assert is_extremum[np.arange(rows), index[:, 0]].all()

    check_rows(check, [("max", 0), ("min", 1)])


@pytest.mark.parametrize("dtype", INTEGERS)
def test_bitwise_reductions(rng: np.random.Generator, dtype: str) -> None:
    x = sample(rng, dtype, 128).reshape(8, 16)
    wants = {
        f"tl.{name}(x, {axis})": function.reduce(x, axis)
        for name, function in (("xor_sum", np.bitwise_xor), ("reduce_or", np.bitwise_or))
        for axis in (0, 1)
    }
    check_all(x, dtype, dtype, wants, assert_same)


def test_reduce_or_of_conditions(rng: np.random.Generator) -> None:
    x = ordinary(rng, "float32", (8, 16))
    out = np.zeros(8, bool)
    reduce("tl.reduce_or(x > 1.5, 1)", x, "float32", out, "bool")
    assert (out == (x > 1.5).any(1)).all()


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("columns", [1, 2, 64, 1024])
def test_softmax(rng: np.random.Generator, columns: int, dtype: str) -> None:
    x, wants = rng.normal(0, 10, (4, columns)).astype(dtype), {}
    for dim in (0, 1):
        exact = np.exp((x - x.max(dim, keepdims=True)).astype(np.longdouble))
        wants[f"tl.softmax(x, {dim})"] = (exact / exact.sum(dim, keepdims=True)).astype(dtype)

    def check(got: np.ndarray, want: np.ndarray, dtype: str) -> None:
        np.testing.assert_allclose(got, want, rtol=20 * np.finfo(dtype).eps)

    check_all(x, dtype, dtype, wants, check)


# Combine functions of one's own


@proton.jit
def product(a, b):
    return a * b


@proton.jit
def absolute_maximum(a, b):
    return tl.maximum(tl.abs(a), tl.abs(b))


@proton.jit
def welford(mean_a, m2_a, count_a, mean_b, m2_b, count_b):
    count = count_a + count_b
    delta = mean_b - mean_a
    ratio = count_b / count
    return mean_a + delta * ratio, m2_a + m2_b + delta * delta * count_a * ratio, count


@proton.jit
def reduce_one(x_ptr, out_ptr, FN: tl.constexpr, N: tl.constexpr):
    tl.store(out_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, N)), 0, FN))


@proton.jit
def mean_and_variance(x_ptr, out_ptr, R: tl.constexpr, C: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, R)[:, None] * C + tl.arange(0, C)[None, :])
    parts = (x, tl.zeros_like(x), tl.zeros_like(x) + 1)
    mean, m2, count = tl.reduce(parts, 1, welford)
    rows = tl.arange(0, R)
    tl.store(out_ptr + rows, mean)
    tl.store(out_ptr + R + rows, m2 / count)


@pytest.mark.interpreted
@pytest.mark.parametrize("size", [1, 2, 32, 512])
def test_combine_functions(rng: np.random.Generator, size: int) -> None:
    x, out = rng.uniform(0.9, 1.1, size), np.zeros(1)
    reduce_one[(1,)](x, out, FN=product, N=size)
    np.testing.assert_allclose(out[0], x.prod(), rtol=1e-12)
    bits, result = rng.integers(0, 1 << 62, size), np.zeros(1, np.int64)
    reduce_one[(1,)](bits, result, FN=product, N=size)
    with np.errstate(over="ignore"):
        assert result[0] == bits.prod()
    if size > 1:
        signed = rng.standard_normal(size).astype(np.float32)
        narrow = np.zeros(1, np.float32)
        reduce_one[(1,)](signed, narrow, FN=absolute_maximum, N=size)
        assert narrow[0] == np.abs(signed).max()


@pytest.mark.interpreted
@pytest.mark.parametrize("shape", [(1, 1), (4, 1), (1, 256), (16, 64)])
def test_combine_functions_of_tuples(rng: np.random.Generator, shape: tuple[int, int]) -> None:
    x, out = rng.standard_normal(shape), np.zeros((2, shape[0]))
    mean_and_variance[(1,)](x, out, R=shape[0], C=shape[1])
    np.testing.assert_allclose(out, [x.mean(1), x.var(1)], rtol=1e-9, atol=1e-12)


@proton.jit
def sum_of_many(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    total = tl.zeros((BLOCK,), tl.float32)
    for start in range(0, n, BLOCK):
        offs = start + tl.arange(0, BLOCK)
        total += tl.load(x_ptr + offs, mask=offs < n, other=0.0)
    tl.store(out_ptr, tl.sum(total, axis=0))


@pytest.mark.parametrize("n", [0, 1, 255, 256, 257, 5000])
def test_masked_sums_over_many_blocks(rng: np.random.Generator, n: int) -> None:
    x, out = ordinary(rng, "float32", n), np.zeros(1, np.float32)
    sum_of_many[(1,)](x, out, n, BLOCK=256)
    np.testing.assert_allclose(out[0], x.astype(np.float64).sum(), rtol=1e-5, atol=1e-4)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", UNSIGNED)
def test_unsigned_extrema_compare_as_unsigned(dtype: str) -> None:
    x = np.array([1, np.iinfo(dtype).max, 2, 3], dtype)
    out = np.zeros((), dtype)
    reduce("tl.max(x, 0)", x, dtype, out, dtype)
    assert out == np.iinfo(dtype).max


@proton.jit
def typed_extrema(x_ptr, out_ptr, N: tl.constexpr):
    x = tl.load(x_ptr + tl.arange(0, N))
    value, index = tl.min(x, 0, return_indices=True)
    tl.static_assert(value.dtype == x.dtype)
    tl.static_assert(tl.max(x, 0, return_indices=True)[0].dtype == x.dtype)
    tl.store(out_ptr, value.to(tl.float32) + index)


@pytest.mark.parametrize("dtype", ["float16", "int8", "float32"])
def test_an_extremum_with_its_index_has_the_type_of_what_is_reduced(dtype: str) -> None:
    x, out = np.array([3, 1, 2, 1], dtype), np.zeros(1, np.float32)
    typed_extrema[(1,)](x, out, N=4)
    assert out == 2
