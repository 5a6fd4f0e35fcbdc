"""8-bit floats: all 256 codes, and every rounding, against the formats' definition."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import (
    FLOATS,
    WIDE_FLOATS,
    assert_same,
    decode,
    encode,
    kernels_of,
    pointer,
    sample,
    storage,
)
from tests.tables import check_rows

# name -> (bits of mantissa, bias, which codes are no numbers)
FORMATS = {
    "float8e5": (2, 15, "as in IEEE 754"),
    "float8e4nv": (3, 7, "the top"),
    "float8e5b16": (2, 16, "-0"),
    "float8e4b8": (3, 8, "-0"),
    "float8e4b15": (3, 15, "none"),
}

KERNELS = """
@proton.jit
def convert(x_ptrs, out_ptrs, n, BLOCK: tl.constexpr, ROUNDING: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    for i in tl.static_range(len(out_ptrs)):
        x = tl.load(x_ptrs[i % len(x_ptrs)] + offs, mask=offs < n)
        if ROUNDING is not None:
            x = x.to(out_ptrs[i].dtype.element_ty, fp_downcast_rounding=ROUNDING)
        tl.store(out_ptrs[i] + offs, x, mask=offs < n)

@proton.jit
def filled(out_ptr, VALUES: tl.constexpr):
    for n in tl.static_range(len(VALUES)):
        block = tl.full((4,), VALUES[n], out_ptr.dtype.element_ty)
        tl.store(out_ptr + 4 * n + tl.arange(0, 4), block)

@proton.jit
def arithmetic(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n, other=1.5)
    y = tl.load(y_ptr + offs, mask=offs < n, other=1.5)
    z = -tl.fma(x + y, x * 2, tl.maximum(y - 1, y))
    tl.static_assert(z.dtype == x_ptr.dtype.element_ty)
    tl.store(out_ptr + offs, z, mask=offs < n)

@proton.jit
def less_one(x):
    return x if x < 3 else x - 1

@proton.jit
def branching(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    tl.store(out_ptr + offs, tl.map_elementwise(less_one, tl.load(x_ptr + offs)))

@proton.jit
def magnitude(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    y = tl.abs(tl.load(x_ptr + offs))
    tl.static_assert(y.dtype == x_ptr.dtype.element_ty)
    tl.store(out_ptr + offs, y)

@proton.jit
def divided(x_ptr, y_ptr, out_ptr, rest_ptr, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x, y = tl.load(x_ptr + offs), tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, x / y)
    tl.store(rest_ptr + offs, x % y)

@proton.jit
def bits(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n).to(out_ptr.dtype.element_ty, bitcast=True)
    tl.store(out_ptr + offs, x, mask=offs < n)

@proton.jit
def chosen(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offs, mask=offs < n)
    y = tl.load(y_ptr + offs, mask=offs < n)
    tl.store(out_ptr + offs, tl.where(x > y, x, y), mask=offs < n)

@proton.jit
def largest(x_ptr, out_ptr, BLOCK: tl.constexpr):
    tl.store(out_ptr, tl.max(tl.load(x_ptr + tl.arange(0, BLOCK)), axis=0))

@proton.jit
def product(a_ptr, b_ptr, out_ptr, SIZE: tl.constexpr):
    i, j = tl.arange(0, SIZE)[:, None], tl.arange(0, SIZE)[None, :]
    a, b = tl.load(a_ptr + i * SIZE + j), tl.load(b_ptr + i * SIZE + j)
    tl.store(out_ptr + i * SIZE + j, tl.dot(a, b, out_dtype=out_ptr.dtype.element_ty))

@proton.jit
def carried(x_ptr, out_ptr, n):
    best = tl.load(x_ptr)
    for i in range(1, n):
        x = tl.load(x_ptr + i)
        if x > best:
            best = x
    tl.store(out_ptr, best)
"""


def values(name: str) -> np.ndarray:
    """The number that each of the 256 codes stands for."""
    mantissa, bias, special = FORMATS[name]
    codes = np.arange(256)
    fraction, exponent = codes & ((1 << mantissa) - 1), (codes & 0x7F) >> mantissa
    normal = (1 + fraction / 2.0**mantissa) * 2.0 ** (exponent - bias)
    subnormal = fraction / 2.0**mantissa * 2.0 ** (1 - bias)
    numbers = np.where(exponent == 0, subnormal, normal)
    if special == "as in IEEE 754":
        top = exponent == 31
        numbers = np.where(top, np.where(fraction == 0, np.inf, np.nan), numbers)
    if special == "the top":
        numbers = np.where((codes & 0x7F) == 0x7F, np.nan, numbers)
    if special == "-0":
        numbers = np.where(codes == 0x80, np.nan, numbers)
    return np.where(codes & 0x80, -numbers, numbers)


def rounded(numbers: np.ndarray, name: str, *, to_zero: bool = False) -> np.ndarray:
    """The codes nearest to fp64 numbers; ties to the even code; saturated. NaN is 0x7F or 0xFF, or
    what the format has in its place."""
    special = FORMATS[name][2]
    finite = values(name)[:0x80][np.isfinite(values(name)[:0x80])]
    if special == "none":  # 1.75, as Triton's conversions give
        finite = finite[:-1]
    magnitude = np.minimum(np.abs(np.nan_to_num(numbers, nan=0.0, posinf=1e300)), finite[-1])
    upper = np.searchsorted(finite, magnitude)
    lower = np.maximum(upper - 1, 0)
    below, above = magnitude - finite[lower], finite[upper] - magnitude  # exact in fp64
    take_upper = (above < below) | ((above == below) & (upper % 2 == 0))
    if to_zero:
        take_upper = above == 0
    codes = np.where(take_upper, upper, lower)
    nan = {"-0": 0x80, "none": 0x7E}.get(special, 0x7F)
    codes = np.where(np.isnan(numbers), nan, codes)
    has_sign = np.signbit(numbers) & ((codes != 0) | (special != "-0"))
    return (codes | np.where(has_sign, 0x80, 0)).astype(np.uint8)


def launch(name: str, *args: Any, **constants: Any) -> None:
    getattr(kernels_of(KERNELS), name)[(1,)](*args, **constants)


def as_float8(codes: np.ndarray, name: str) -> Any:
    return proton.reinterpret(codes, getattr(tl, name))


def convert(given: list[Any], outs: list[Any], size: int, rounding: str | None = None) -> None:
    """Arrays of so many elements, or one, each to the one in its place, by one kernel."""
    grid = (proton.cdiv(size, 1024),)
    options = {"BLOCK": 1024, "ROUNDING": rounding}
    kernels_of(KERNELS).convert[grid](tuple(given), tuple(outs), size, **options)


def widened(codes: np.ndarray, name: str, dtypes: Sequence[str]) -> list[np.ndarray]:
    """Numbers of a format as those of other types."""
    outs = [np.zeros(codes.size, storage(dtype)) for dtype in dtypes]
    targets = [pointer(out, dtype) for out, dtype in zip(outs, dtypes, strict=True)]
    convert([as_float8(codes, name)], targets, codes.size)
    return outs


CODES = np.arange(256, dtype=np.uint8)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", FORMATS)
def test_every_code_has_its_value(name: str) -> None:
    rows = zip(widened(CODES, name, FLOATS), FLOATS, strict=True)
    check_rows(lambda out, dtype: assert_same(out, encode(values(name), dtype), dtype), rows)


def narrowed(given: dict[str, np.ndarray], name: str, rounding: str | None = None) -> Any:
    """Numbers of each type, as many of one as of another, in the format."""
    size = len(next(iter(given.values())))
    outs = {dtype: np.zeros(size, np.uint8) for dtype in given}
    sources = [pointer(x, dtype) for dtype, x in given.items()]
    convert(sources, [as_float8(out, name) for out in outs.values()], size, rounding)
    return outs


def check_narrowed(given: dict[str, np.ndarray], name: str, rounding: str | None) -> None:
    codes = narrowed(given, name, rounding)

    def check(dtype: str) -> None:
        x, got = given[dtype], codes[dtype]
        with np.errstate(invalid="ignore"):  # of signalling NaNs
            numbers = decode(x, dtype).astype(np.float64)
            want = rounded(numbers, name, to_zero=rounding is not None)
        same = (got == want) | (np.isnan(values(name)[got]) & np.isnan(values(name)[want]))
        # Where a format has no NaN it becomes the largest number; a GPU drops its sign on the way.
        same |= np.isnan(numbers) & ((got ^ want) & 0x7F == 0)
        wrong = np.flatnonzero(~same)
        assert not wrong.size, [(x[n], got[n], want[n]) for n in wrong[:5]]

    check_rows(check, [(dtype,) for dtype in given])


ROUNDINGS = pytest.mark.parametrize("rounding", [None, "rtz"], ids=["nearest", "to zero"])


@pytest.mark.interpreted
@pytest.mark.parametrize("name", FORMATS)
@ROUNDINGS
def test_every_half_rounds_to_its_code(name: str, rounding: str | None) -> None:
    halves = np.arange(1 << 16, dtype=np.uint16)
    given = {dtype: halves.view(storage(dtype)) for dtype in ("float16", "bfloat16")}
    check_narrowed(given, name, rounding)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", FORMATS)
@ROUNDINGS
def test_numbers_round_once(rng: np.random.Generator, name: str, rounding: str | None) -> None:
    """Random ones, every code, every tie, and what lies next to those."""
    given = {}
    for dtype in WIDE_FLOATS:
        finite = values(name)[np.isfinite(values(name))].astype(dtype)
        order = np.sort(finite)
        ties = (order[1:] + order[:-1]) / 2
        exact = np.concatenate([finite, ties])
        near = np.concatenate([exact, np.nextafter(exact, np.inf), np.nextafter(exact, -np.inf)])
        scaled = rng.standard_normal(2048) * np.exp2(rng.integers(-20, 20, 2048))
        given[dtype] = np.concatenate([near, scaled.astype(dtype), sample(rng, dtype, 2048)])
    check_narrowed(given, name, rounding)


@pytest.mark.parametrize("name", FORMATS)
def test_conversions_between_them(name: str) -> None:
    others = [other for other in ("float8e5", "float8e4nv", "float8e4b8") if other != name]
    outs = [np.zeros(256, np.uint8) for _ in others]
    targets = [as_float8(out, other) for out, other in zip(outs, others, strict=True)]
    convert([as_float8(CODES, name)], targets, 256)
    for other, out in zip(others, outs, strict=True):
        want = rounded(values(name), other)
        np.testing.assert_array_equal(values(other)[out], values(other)[want], err_msg=other)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", FORMATS)
def test_integers(rng: np.random.Generator, name: str) -> None:
    signed, unsigned = ("int8", "int32", "int64"), ("uint8", "uint64")
    given = {dtype: sample(rng, dtype, 512) for dtype in signed + unsigned}
    for dtype, out in narrowed(given, name).items():
        want = rounded(given[dtype].astype(np.float64), name)
        np.testing.assert_array_equal(out, want, err_msg=dtype)
    fits = CODES[np.isfinite(values(name)) & (np.abs(values(name)) <= 120)]
    for codes, some in ((fits, signed), (fits[values(name)[fits] >= 0], unsigned)):
        for dtype, out in zip(some, widened(codes, name, some), strict=True):
            want = np.trunc(values(name)[codes]).astype(dtype)
            np.testing.assert_array_equal(out, want, err_msg=dtype)


@pytest.mark.interpreted
@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("other", ["itself", "int32"])
def test_quotients_are_those_of_fp32(rng: np.random.Generator, name: str, other: str) -> None:
    """fp16 would round them to 11 bits."""
    finite = np.flatnonzero(np.isfinite(values(name)) & (values(name) != 0)).astype(np.uint8)
    x, y = rng.choice(finite, (2, 256))
    divisors = values(name)[y] if other == "itself" else rng.integers(1, 100, 256)
    given = as_float8(y, name) if other == "itself" else divisors.astype(np.int32)
    out, rest = np.zeros((2, 256), np.float32)
    launch("divided", as_float8(x, name), given, out, rest, BLOCK=256)
    left, right = values(name)[x].astype(np.float32), divisors.astype(np.float32)
    np.testing.assert_allclose(out, left / right, rtol=3e-7)
    np.testing.assert_array_equal(rest, np.fmod(left, right))


@pytest.mark.parametrize("name", FORMATS)
def test_truth_is_not_being_zero(name: str) -> None:
    (out,) = widened(CODES, name, ["bool"])
    np.testing.assert_array_equal(out, values(name) != 0)


CONSTANTS = (0.0, -0.0, 1.5, -3.0, 1e9, -1e9, 2.0**-9, 2.0**-30, 0.3, float("nan"), float("-inf"))


@pytest.mark.parametrize("name", FORMATS)
def test_constants_are_rounded_as_values_are(name: str) -> None:
    out = np.zeros((len(CONSTANTS), 4), np.uint8)
    launch("filled", as_float8(out, name), VALUES=CONSTANTS)
    for value, found in zip(CONSTANTS, out.tolist(), strict=True):
        assert found == rounded(np.full(4, value), name).tolist(), value


@pytest.mark.parametrize("name", FORMATS)
def test_arithmetic_is_that_of_fp16_rounded(rng: np.random.Generator, name: str) -> None:
    """Each operation by itself; a NaN may have another code."""
    x, y = rng.integers(0, 256, (2, 200), dtype=np.uint8)
    out = np.zeros(200, np.uint8)
    launch(
        "arithmetic", as_float8(x, name), as_float8(y, name), as_float8(out, name), 200, BLOCK=256
    )

    def again(numbers: np.ndarray) -> np.ndarray:
        """Numbers of fp16 in the format, and back, in fp16."""
        return values(name)[rounded(numbers.astype(np.float64), name)].astype(np.float16)

    with np.errstate(all="ignore"):
        a, b = (values(name)[codes].astype(np.float16) for codes in (x, y))
        one, two = np.float16(1), np.float16(2)
        parts = again(a + b), again(a * two), again(np.fmax(again(b - one), b))
        exact = parts[0].astype(np.float64) * parts[1].astype(np.float64) + parts[2]
        want = again(-again(exact.astype(np.float16)))
    assert_same(values(name)[out].astype(np.float16), want, "float16")


@pytest.mark.parametrize("name", FORMATS)
def test_a_function_of_elements_branches(name: str) -> None:
    codes, out = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    launch("branching", as_float8(codes, name), as_float8(out, name), BLOCK=256)
    numbers = values(name)
    less = (numbers.astype(np.float16) - np.float16(1)).astype(np.float64)
    less = numbers[rounded(less, name)]
    np.testing.assert_array_equal(numbers[out], np.where(numbers < 3, numbers, less))


@pytest.mark.parametrize("name", FORMATS)
def test_magnitudes_are_exact(name: str) -> None:
    codes, out = np.arange(256, dtype=np.uint8), np.zeros(256, np.uint8)
    launch("magnitude", as_float8(codes, name), as_float8(out, name), BLOCK=256)
    np.testing.assert_array_equal(values(name)[out], np.abs(values(name)))


@pytest.mark.parametrize("name", FORMATS)
def test_bits_stay(rng: np.random.Generator, name: str) -> None:
    codes = rng.permutation(np.arange(256, dtype=np.uint8))
    out = np.zeros(256, np.int8)
    launch("bits", as_float8(codes, name), out, 256, BLOCK=256)
    assert (out.view(np.uint8) == codes).all()
    back = np.zeros(256, np.uint8)
    launch("bits", out, as_float8(back, name), 256, BLOCK=256)
    assert (back == codes).all()


@pytest.mark.parametrize("name", FORMATS)
def test_choices_reductions_and_loops(rng: np.random.Generator, name: str) -> None:
    largest = values(name)[rounded(np.array([np.inf]), name)]  # of what conversions give
    finite = np.flatnonzero(np.abs(values(name)) <= largest).astype(np.uint8)
    x, y = rng.choice(finite, (2, 128))
    out = np.zeros(128, np.uint8)
    launch("chosen", as_float8(x, name), as_float8(y, name), as_float8(out, name), 128, BLOCK=128)
    assert (out == np.where(values(name)[x] > values(name)[y], x, y)).all()
    for kernel, given in (("largest", {"BLOCK": 128}), ("carried", {"n": 128})):
        one = np.zeros(1, np.uint8)
        launch(kernel, as_float8(x, name), as_float8(one, name), **given)
        assert values(name)[one[0]] == values(name)[x].max()


@pytest.mark.filterwarnings("ignore:products of fp8e4b15")
@pytest.mark.parametrize("total", [np.float32, np.float16])
@pytest.mark.parametrize("name", FORMATS)
def test_products(rng: np.random.Generator, name: str, total: type) -> None:
    codes = rounded(rng.integers(-8, 8, (2, 32, 32)).astype(np.float64), name)
    out = np.zeros((32, 32), total)  # sums of up to 2048: fp16 has them all
    launch("product", as_float8(codes[0], name), as_float8(codes[1], name), out, SIZE=32)
    np.testing.assert_array_equal(out, values(name)[codes[0]] @ values(name)[codes[1]])
