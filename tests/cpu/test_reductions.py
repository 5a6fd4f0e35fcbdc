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
@pytest.mark.parametrize("axis", [0, 1])
def test_sum_of_every_shape(rng: np.random.Generator, axis: int, shape: tuple[int, int]) -> None:
    check_sums(ordinary(rng, "float32", shape), "float32", axis)


def test_sum_in_a_requested_dtype(rng: np.random.Generator) -> None:
    x, out = ordinary(rng, "float16", (64,)), np.zeros((), np.float64)
    reduce("tl.sum(x, 0, dtype=tl.float64)", x, "float16", out, "float64")
    np.testing.assert_allclose(out, x.astype(np.float64).sum(), rtol=1e-12)


@pytest.mark.interpreted
@pytest.mark.parametrize("axis", [0, 1, None])
def test_keep_dims(rng: np.random.Generator, axis: int | None) -> None:
    x = ordinary(rng, "int32", (8, 16))
    want = x.sum(axis, keepdims=True, dtype=np.int32)
    out = np.zeros(want.shape, np.int32)
    reduce(f"tl.sum(x, {axis}, keep_dims=True)", x, "int32", out, "int32")
    assert (out == want).all()
    spread = np.zeros(x.shape, np.int32)
    reduce(f"x - tl.max(x, {axis}, keep_dims=True)", x, "int32", spread, "int32")
    assert (spread == x - x.max(axis, keepdims=True)).all()


def check_all(
    x: np.ndarray, dtype: str, out_dtype: str, wants: dict[str, np.ndarray], check: Any
) -> None:
    """Each expression of one kernel against what it is to give, by `check`."""
    found = {name: np.zeros(want.shape, storage(out_dtype)) for name, want in wants.items()}
    of_block(x, dtype, {name: (out, out_dtype) for name, out in found.items()})
    check_rows(lambda name: check(found[name], wants[name], out_dtype), [(name,) for name in wants])


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
    x, out = np.full(64, np.nan, np.float32), np.zeros((), np.float32)
    for name in ("max", "min"):
        reduce(f"tl.{name}(x, 0)", x, "float32", out, "float32")
        assert np.isnan(out)


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
@pytest.mark.parametrize("name", ["argmax", "argmin"])
@pytest.mark.parametrize("size", [1, 2, 64, 4096])
def test_ties_go_to_the_left(name: str, size: int) -> None:
    x, out = np.ones(size, np.float32), np.full((), 7, np.int32)
    reduce(f"tl.{name}(x, 0)", x, "float32", out, "int32")
    assert out == 0
    x[size // 2 :] = 2 if name == "argmax" else 0
    reduce(f"tl.{name}(x, 0)", x, "float32", out, "int32")
    assert out == size // 2
    reduce(f"tl.{name}(x, 0, tie_break_left=False)", x, "float32", out, "int32")
    assert x[out] == x[size // 2]


@pytest.mark.interpreted
@pytest.mark.parametrize("axis", [0, 1, None])
def test_extremum_and_index_together(rng: np.random.Generator, axis: int | None) -> None:
    x = ordinary(rng, "float32", (8, 16))
    want = np.asarray(x.max(axis) + x.argmax(axis).astype(np.float32))
    out = np.zeros(want.shape, np.float32)
    expression = f"pair_sum(tl.max(x, {axis}, return_indices=True))"
    helper = "\n@proton.jit\ndef pair_sum(pair):\n    return pair[0] + pair[1]\n\n"
    of_block(x, "float32", {expression: (out, "float32")}, helper)
    assert (out == want).all()


@proton.jit
def rows_with_indices(x_ptr, out_ptr, index_ptr, N: tl.constexpr, NAME: tl.constexpr):
    x = tl.load(x_ptr + tl.program_id(0) * N + tl.arange(0, N))
    for tie_break_left in tl.static_range(2):
        value, index = NAME(x, 0, return_indices=True, return_indices_tie_break_left=tie_break_left)
        place = tl.program_id(0) * 3 + tie_break_left
        tl.store(out_ptr + place, value)
        tl.store(index_ptr + place, index)
    tl.store(out_ptr + tl.program_id(0) * 3 + 2, NAME(x, 0))


@pytest.mark.parametrize("name", ["max", "min"])
@pytest.mark.parametrize("dtype", WIDE_FLOATS)
@pytest.mark.parametrize("size", [1, 2, 8, 64, 512])
def test_extrema_with_indices_pass_over_nan(
    rng: np.random.Generator, size: int, dtype: str, name: str
) -> None:
    rows = 200
    x = rng.integers(-3, 4, (rows, size)).astype(dtype)  # ties
    x[rng.random(x.shape) < 0.1] = np.inf
    x[rng.random(x.shape) < rng.random((rows, 1))] = np.nan
    out, index = np.zeros((rows, 3), dtype), np.full((rows, 3), -1, np.int32)
    function = tl.max if name == "max" else tl.min
    rows_with_indices[(rows,)](x, out, index, N=size, NAME=function)
    want = {"max": np.fmax, "min": np.fmin}[name].reduce(x, axis=1)
    for column in range(3):
        assert_number(out[:, column], want, dtype)
    is_extremum = (x == want[:, None]) | (np.isnan(x) & np.isnan(want)[:, None])
    assert np.array_equal(index[:, 1], is_extremum.argmax(axis=1)), "the first of equals"
    assert is_extremum[np.arange(rows), index[:, 0]].all()


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
@pytest.mark.parametrize("dim", [0, 1])
def test_softmax(rng: np.random.Generator, dim: int, columns: int, dtype: str) -> None:
    x = rng.normal(0, 10, (4, columns)).astype(dtype)
    out = np.zeros_like(x)
    reduce(f"tl.softmax(x, {dim})", x, dtype, out, dtype)
    exact = np.exp((x - x.max(dim, keepdims=True)).astype(np.longdouble))
    np.testing.assert_allclose(
        out, (exact / exact.sum(dim, keepdims=True)).astype(dtype), rtol=20 * np.finfo(dtype).eps
    )


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
