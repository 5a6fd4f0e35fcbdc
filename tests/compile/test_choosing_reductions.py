"""Reductions whose functions compare and choose: what they come to, on the CPU and in the PTX of
9.0, and what the compiler takes them for."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from proton.language import standard
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
BLOCK, WARPS = 256, 2


@proton.jit
def keeping_nan(a, b):
    """As Inductor writes it."""
    return tl.where((a > b) | (a != a), a, b)


@proton.jit
def least_number(a, b):
    return tl.where((b >= a) | (b != b), a, b)


@proton.jit
def least(a, b):
    return tl.where(b < a, b, a)


@proton.jit
def largest(a, b):
    return tl.where(a <= b, b, a)


@proton.jit
def any_nan(a, b):
    """A NaN that came last is the result, so the order counts."""
    return tl.where(a > b, a, b)


@proton.jit
def of_halves(a, b):
    return tl.where(a * 0.5 > b * 0.5, a, b)


@proton.jit
def over_one(a, b):
    return tl.where((a > b) & (a > 1), a, b)


@proton.jit
def reduce_one(x_ptr, out_ptr, combine: tl.constexpr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.reduce(tl.load(x_ptr + tl.arange(0, BLOCK)), 0, combine))


ONE: dict[Any, tuple[Any, str | None, Callable[[Any], Any]]] = {
    keeping_nan: (tl.float32, "arith.maximumf", np.max),
    least_number: (tl.float32, "arith.minnumf", np.fmin.reduce),
    least: (tl.int32, "arith.minsi", np.min),
    largest: (tl.uint32, "arith.maxui", np.max),
    any_nan: (tl.float32, None, np.fmax.reduce),
    of_halves: (tl.float32, None, np.fmax.reduce),
    over_one: (tl.int32, None, np.max),
}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("combine", ONE, ids=lambda combine: str(combine.__name__))
def test_a_choice_is_taken_for_the_maximum_that_it_is(
    combine: Any, rng: np.random.Generator
) -> None:
    dtype, taken_for, expected = ONE[combine]
    kernel = reduce_one.warmup(
        dtype, dtype, combine=combine, BLOCK=BLOCK, target=HOPPER, num_warps=WARPS
    )
    region = re.search(r"tt\.reduce\".*?tt\.reduce_return", kernel.asm["ttir"], re.DOTALL)
    assert region is not None
    found = re.findall(r"arith\.(?:max|min)\w+", region[0])
    assert found == ([taken_for] if taken_for else [])
    kind = np.dtype(str(dtype).replace("fp", "float"))
    for has_nan in (False, True):
        x = (rng.normal(size=BLOCK) * 1e6).astype(np.int64).astype(kind)
        if kind.kind == "f":
            x[rng.integers(0, BLOCK, 3)] = 0 if combine in (any_nan, of_halves) else np.nan
            if not has_nan:
                x = np.nan_to_num(x)
        outs = np.zeros((2, 1), kind)
        run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32 * WARPS, kernel.shared, [x, outs[0]], rng)
        reduce_one[(1,)](x, outs[1], combine=combine, BLOCK=BLOCK)
        np.testing.assert_array_equal(outs, np.full((2, 1), expected(x)))


@proton.jit
def first_largest(a, i, b, j):
    """As Inductor writes it: the first of equal ones, NaN before all."""
    larger, same, has_nan = a > b, a == b, b != b
    larger |= (a != a) & (not has_nan)
    same |= (a != a) & has_nan
    larger |= same & (i < j)
    return tl.where(larger, a, b), tl.where(larger, i, j)


@proton.jit
def last_least(a, i, b, j):
    chosen = (a < b) | ((a == b) & (i > j)) | (b != b)
    return tl.where(chosen, a, b), tl.where(chosen, i, j)


@proton.jit
def any_largest(a, i, b, j):
    """Of equal ones the first that was combined."""
    return tl.where(a >= b, a, b), tl.where(a >= b, i, j)


@proton.jit
def reduce_two(x_ptr, out_ptr, at_ptr, combine: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    x, at = tl.reduce((tl.load(x_ptr + i), i), 0, combine)
    tl.store(out_ptr, x)
    tl.store(at_ptr, at)


TWO: dict[str, tuple[Any, Any, bool, Callable[[Any], int]]] = {
    "first largest, fp32": (first_largest, tl.float32, True, np.argmax),
    "first largest, int32": (first_largest, tl.int32, True, np.argmax),
    "last least": (last_least, tl.int32, True, lambda x: BLOCK - 1 - np.argmin(x[::-1])),
    "the language's largest, fp32": (standard._argmax_left, tl.float32, True, np.nanargmax),
    "the language's least, fp32": (standard._argmin_left, tl.float32, True, np.nanargmin),
    "the language's largest, int32": (standard._argmax_left, tl.int32, True, np.argmax),
    "the language's least, int32": (standard._argmin_left, tl.int32, True, np.argmin),
    "the language's largest, uint32": (standard._argmax_left, tl.uint32, True, np.argmax),
    "any largest": (any_largest, tl.int32, False, np.argmax),
}


@pytest.mark.parametrize("name", TWO)
def test_lanes_combine_in_any_order_where_the_choice_knows_none(
    name: str, rng: np.random.Generator
) -> None:
    combine, dtype, is_free, expected = TWO[name]
    kernel = reduce_two.warmup(
        dtype, dtype, tl.int32, combine=combine, BLOCK=BLOCK, target=HOPPER, num_warps=WARPS
    )
    # A choice of the lanes' order is two for each number that is exchanged; the least of all lanes'
    # indices is one instruction.
    kind = np.dtype(str(dtype).replace("fp", "float"))
    selects = len(re.findall(r"\tselp\.", kernel.asm["ptx"]))
    exchanged = len(re.findall(r"\tshfl\.", kernel.asm["ptx"]))
    if "redux" in kernel.asm["ptx"]:
        assert is_free
        assert exchanged < 2 * 5
    else:
        assert exchanged >= 2 * 5
        assert (selects < 2 * exchanged) == is_free, (selects, exchanged)
    x = rng.integers(-4, 4, BLOCK).astype(kind)
    if kind.kind == "f":
        x[rng.integers(0, BLOCK, 2)] = np.nan
    out, at = np.zeros(1, kind), np.zeros(1, np.int32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32 * WARPS, kernel.shared, [x, out, at], rng)
    place = int(expected(x))
    np.testing.assert_array_equal(out[0], x[place])
    if combine is not any_largest:
        assert at[0] == place


@proton.jit
def added(a, b):
    return a + b


@proton.jit
def scan_one(x_ptr, out_ptr, combine: tl.constexpr, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.associative_scan(tl.load(x_ptr + i), 0, combine))


@pytest.mark.parametrize("dtype", [tl.float8e5, tl.float8e4nv], ids=str)
@pytest.mark.parametrize("combine", [least, added], ids=["choice", "sum"])
@pytest.mark.parametrize("kernel", [reduce_one, scan_one], ids=["reduction", "scan"])
def test_functions_of_8_bit_floats(
    kernel: Any, combine: Any, dtype: Any, rng: np.random.Generator
) -> None:
    """Positive numbers, or few of one size, whose sums are exact whatever is added first."""
    x = rng.integers(1, 0x7C, BLOCK).astype(np.uint8)
    if combine is added:
        x[:] = 0
        x[rng.integers(0, BLOCK, 8)] = rng.choice([0x38, 0xB8], 8)
    made = kernel.warmup(dtype, dtype, combine=combine, BLOCK=BLOCK, target=HOPPER, num_warps=WARPS)
    outs = np.zeros((2, BLOCK if kernel is scan_one else 1), np.uint8)
    run_on_arrays(made.asm["ptx"], (1, 1, 1), 32 * WARPS, made.shared, [x, outs[0]], rng)
    arrays = (proton.reinterpret(codes, dtype) for codes in (x, outs[1]))
    kernel[(1,)](*arrays, combine=combine, BLOCK=BLOCK)
    assert combine is added or outs.all()
    np.testing.assert_array_equal(*np.where(outs == 0x80, 0, outs))  # zeros of both signs


ROWS, COLUMNS = tl.constexpr(16), tl.constexpr(32)
SHAPE = ROWS.value, COLUMNS.value


@proton.jit
def reduce_rows(x_ptr, out_ptr, at_ptr, combine: tl.constexpr, AXIS: tl.constexpr):
    i, j = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    places = tl.broadcast_to(j if AXIS else i, (ROWS, COLUMNS))
    x, at = tl.reduce((tl.load(x_ptr + COLUMNS * i + j), places), AXIS, combine)
    result = tl.arange(0, ROWS if AXIS else COLUMNS)
    tl.store(out_ptr + result, x)
    tl.store(at_ptr + result, at)


def _first_nan(x: Any) -> int:
    return int(np.argmax(np.isnan(x)) if np.isnan(x).any() else np.argmax(x))


def _numbers_first(best: Callable[[Any], Any]) -> Callable[[Any], int]:
    return lambda x: int(np.append(np.flatnonzero(x == best(x)), 0)[0])


IN_ROWS: dict[str, tuple[Any, Any, Callable[[Any], int]]] = {
    "largest": (standard._argmax_left, tl.float32, _numbers_first(np.fmax.reduce)),
    "least": (standard._argmin_left, tl.float32, _numbers_first(np.fmin.reduce)),
    "largest integer": (standard._argmax_left, tl.int32, np.argmax),
    "NaN before all": (first_largest, tl.float32, _first_nan),
    "last least": (last_least, tl.int32, lambda x: len(x) - 1 - np.argmin(x[::-1])),
}


@pytest.mark.parametrize("axis", [0, 1])
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("name", IN_ROWS)
def test_the_least_index_of_an_extremum_of_rows(
    name: str, warps: int, axis: int, rng: np.random.Generator
) -> None:
    """Equal values, zeros of both signs, NaN here and there, and in all of a row and a column."""
    combine, dtype, expected = IN_ROWS[name]
    kernel = reduce_rows.warmup(
        dtype, dtype, tl.int32, combine=combine, AXIS=axis, target=HOPPER, num_warps=warps
    )
    kind = np.dtype(str(dtype).replace("fp", "float"))
    x = rng.integers(-2, 3, SHAPE).astype(kind)
    if kind.kind == "f":
        x[rng.random(x.shape) < 0.1] = np.nan
        x[rng.random(x.shape) < 0.1] = -0.0
        x[3], x[:, 5] = np.nan, np.nan
        x[7], x[7, 3] = -np.inf, np.nan
    rows = np.moveaxis(x, axis, -1)
    out, at = np.zeros(len(rows), kind), np.zeros(len(rows), np.int32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32 * warps, kernel.shared, [x, out, at], rng)
    places = np.array([expected(row) for row in rows])
    np.testing.assert_array_equal(at, places)
    np.testing.assert_array_equal(out, rows[np.arange(len(rows)), places])


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("name", ["largest", "least"])
def test_of_rising_indices_a_thread_compares_values_alone(name: str) -> None:
    """Lanes compare indices, too: 3 times, where values are combined 15 times."""
    combine, dtype, _ = IN_ROWS[name]
    kernel = reduce_rows.warmup(
        dtype, dtype, tl.int32, combine=combine, AXIS=0, target=HOPPER, num_warps=1
    )
    of_indices = re.findall(r"\tmin\.[su]32", kernel.asm["ptx"])
    of_values = re.findall(r"\t(?:min|max)\.f32", kernel.asm["ptx"])
    assert 0 < 4 * len(of_indices) <= len(of_values)
