"""Products of operands with scales, in every format, against numpy in float64."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.errors import CompilationError
from tests.cpu.test_float8 import values
from tests.pairs import chosen

FLOAT4 = np.array([0, 0.5, 1, 1.5, 2, 3, 4, 6, -0.0, -0.5, -1, -1.5, -2, -3, -4, -6])
BLOCK = 32  # elements that share a scale
FORMATS = ("e2m1", "e4m3", "e5m2", "bf16", "fp16")
SUMS = 64 * 2.0**-24  # of 64 products in fp32, against the sum of their magnitudes
FLOAT8 = {"e4m3": "float8e4nv", "e5m2": "float8e5"}


@proton.jit
def product(
    a_ptr, b_ptr, a_scale_ptr, b_scale_ptr, c_ptr,
    A: tl.constexpr, B: tl.constexpr, AS: tl.constexpr, BS: tl.constexpr, C: tl.constexpr,
    A_FORMAT: tl.constexpr, B_FORMAT: tl.constexpr, A_K: tl.constexpr, B_K: tl.constexpr,
):  # fmt: skip
    a = tl.load(a_ptr + tl.arange(0, A[0] * A[1])).reshape(A)
    b = tl.load(b_ptr + tl.arange(0, B[0] * B[1])).reshape(B)
    a_scale = None
    if AS is not None:
        a_scale = tl.load(a_scale_ptr + tl.arange(0, AS[0] * AS[1])).reshape(AS)
    b_scale = None
    if BS is not None:
        b_scale = tl.load(b_scale_ptr + tl.arange(0, BS[0] * BS[1])).reshape(BS)
    places = c_ptr + tl.arange(0, C[0])[:, None] * C[1] + tl.arange(0, C[1])[None, :]
    acc = tl.load(places)
    c = tl.dot_scaled(
        a, a_scale, A_FORMAT, b, b_scale, B_FORMAT, acc, lhs_k_pack=A_K, rhs_k_pack=B_K
    )
    tl.store(places, c)


def stored(rng: np.random.Generator, format_: str, shape: tuple[int, int]) -> Any:
    """(bits, numbers) of an operand; of "e2m1" a code a number, which `packed` puts together."""
    if format_ == "e2m1":
        codes = rng.integers(0, 16, shape).astype(np.uint8)
        return codes, FLOAT4[codes]
    if format_ in FLOAT8:
        table = values(FLOAT8[format_])
        usual = np.flatnonzero(np.isfinite(table) & (np.abs(table) < 100))
        codes = rng.choice(usual, shape).astype(np.uint8)
        return codes, table[codes].astype(np.float64)
    numbers = rng.standard_normal(shape).astype(np.float32)
    if format_ == "fp16":
        halves = numbers.astype(np.float16)
        return halves, halves.astype(np.float64)
    bits = (numbers.view(np.uint32) >> 16).astype(np.uint16)
    return bits, (bits.astype(np.uint32) << 16).view(np.float32).astype(np.float64)


def packed(codes: np.ndarray, axis: int) -> np.ndarray:
    """Two codes in a byte, the first in the lower half, along an axis."""
    low, high = (np.take(codes, range(n, codes.shape[axis], 2), axis) for n in (0, 1))
    return np.ascontiguousarray(low | high << 4)


def scaled(
    numbers: np.ndarray, scales: np.ndarray | None, axis: int, format_: str = "e8m0"
) -> np.ndarray:
    """Numbers times their scales, each of which is of as many as there are along the axis."""
    if scales is None:
        return numbers
    if format_ in FLOAT8:
        factors = values(FLOAT8[format_])[scales].astype(np.float64)
    else:
        factors = np.where(scales == 255, np.nan, 2.0 ** (scales.astype(np.float64) - 127))
        factors = np.where(scales == 0, 0, factors)  # as in Triton: of 2**-127 bf16's upper bits
    factors = factors.repeat(numbers.shape[axis] // scales.shape[1], 1)
    return numbers * (factors if axis == 1 else factors.T)


def run(
    rng: np.random.Generator, formats: tuple[str, str], k_packs: tuple[bool, bool] = (True, True),
    *, scales: Any = (True, True), sizes: tuple[int, int, int] = (16, 32, 64), block: int = BLOCK,
    scale_format: str = "e8m0",
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:  # fmt: skip
    """(result, what numpy has, sum of the magnitudes) of a product of random operands; a scale may
    be given as an array, else each is of `block` elements."""
    m, n, k = sizes
    (a, a_numbers), (b, b_numbers) = (
        stored(rng, f, shape) for f, shape in zip(formats, ((m, k), (k, n)), strict=True)
    )
    exponents = [
        given if isinstance(given, np.ndarray)
        else stored(rng, scale_format, (size, k // block))[0] if given and scale_format in FLOAT8
        else rng.integers(120, 134, (size, k // block)).astype(np.uint8) if given else None
        for given, size in zip(scales, (m, n), strict=True)
    ]  # fmt: skip
    if formats[0] == "e2m1":
        a = packed(a, 1 if k_packs[0] else 0)
    if formats[1] == "e2m1":
        b = packed(b, 0 if k_packs[1] else 1)
    c = rng.standard_normal((m, n)).astype(np.float32)
    left = scaled(a_numbers, exponents[0], 1, scale_format)
    right = scaled(b_numbers, exponents[1], 0, scale_format)
    want, bound = c + left @ right, np.abs(c) + np.abs(left) @ np.abs(right)
    shapes = [None if e is None else e.shape for e in exponents]
    if scale_format in FLOAT8:
        type_ = getattr(tl, FLOAT8[scale_format])
        exponents = [None if e is None else proton.reinterpret(e, type_) for e in exponents]
    product[(1,)](
        a, b, *exponents, c, A=a.shape, B=b.shape, AS=shapes[0], BS=shapes[1], C=c.shape,
        A_FORMAT=formats[0], B_FORMAT=formats[1], A_K=k_packs[0], B_K=k_packs[1],
    )  # fmt: skip
    return c, want, bound


@pytest.mark.parametrize("shift", [0, 1, 2])
@pytest.mark.parametrize("left", range(len(FORMATS)))
def test_formats(rng: np.random.Generator, left: int, shift: int) -> None:
    formats = FORMATS[left], FORMATS[(left + shift) % len(FORMATS)]
    got, want, bound = run(rng, formats)
    # Scaled numbers are exact but where fp16 cannot have one; sums are those of fp32.
    digits = 2.0**-10 if "fp16" in formats else SUMS
    assert (np.abs(got - want) <= bound * digits).all()


@pytest.mark.interpreted
@pytest.mark.parametrize("k_packs", [(False, False), (False, True), (True, False)])
def test_numbers_packed_along_other_dimensions(
    rng: np.random.Generator, k_packs: tuple[bool, bool]
) -> None:
    got, want, bound = run(rng, ("e2m1", "e2m1"), k_packs)
    assert (np.abs(got - want) <= bound * SUMS).all()


def test_scales_may_be_left_out(rng: np.random.Generator) -> None:
    for scales in ((True, False), (False, True), (False, False)):
        got, want, bound = run(rng, ("e4m3", "e2m1"), scales=scales)
        assert (np.abs(got - want) <= bound * SUMS).all()


@pytest.mark.interpreted
@pytest.mark.parametrize(
    "scale_format, block", chosen({"format": [*FLOAT8, "e8m0"], "block": [16, 32]}, least=1)
)
def test_scales_of_sixteen_elements_and_scales_that_are_floats(
    rng: np.random.Generator, scale_format: str, block: int
) -> None:
    """NVFP4 is E2M1 with scales in E4M3, of 16 elements each."""
    for formats in (("e2m1", "e2m1"), ("e2m1", "e4m3"), ("e5m2", "e2m1"), ("fp16", "e2m1")):
        got, want, bound = run(rng, formats, block=block, scale_format=scale_format)
        digits = 2.0**-10 if "fp16" in formats else SUMS
        assert (np.abs(got - want) <= bound * digits).all(), formats


def test_blocks_of_sixteen_with_one_scale(rng: np.random.Generator) -> None:
    got, want, bound = run(rng, ("e2m1", "e2m1"), block=16, scale_format="e4m3", sizes=(16, 16, 16))
    assert (np.abs(got - want) <= bound * SUMS).all()


def test_every_scale_is_its_power_of_two(rng: np.random.Generator) -> None:
    """From 2**-126 to 2**127; 255 makes NaN of what it scales, 0 zero, as in Triton."""
    rows = np.arange(256, dtype=np.uint8).reshape(256, 1)
    got, want, bound = run(rng, ("e2m1", "bf16"), scales=(rows, False), sizes=(256, 16, 32))
    assert np.isnan(got[255]).all()
    fits = bound < 1e38
    assert fits[:240].all()
    assert (np.abs(got - want)[fits] <= (bound * SUMS)[fits]).all()


@proton.jit
def unscaled(a_ptr, b_ptr, c_ptr, A_FORMAT: tl.constexpr, SCALE: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    a, b = tl.load(a_ptr + i * N + j), tl.load(b_ptr + i * N + j)
    scale = tl.full(SCALE, 127, tl.uint8) if SCALE is not None else None
    tl.store(c_ptr + i * N + j, tl.dot_scaled(a, scale, A_FORMAT, b, None, "fp16"))


def test_what_dot_scaled_refuses() -> None:
    half, byte = np.ones((64, 64), np.float16), np.ones((64, 64), np.uint8)
    for a, format_, scale, why in (
        (half, "e3m4", None, "lhs_format must be one of e2m1, e4m3, e5m2, bf16, fp16, got 'e3m4'"),
        (half, "e2m1", None, "lhs in the format e2m1 must be u8, got fp16"),
        (half, "bf16", None, "lhs in the format bf16 must be bf16 or u16, got fp16"),
        (byte, "e2m1", None, "inner sizes must agree, got 128 and 64 elements"),
        (
            byte, "e4m3", (64, 1),
            r"lhs_scale must have shape \[64, 2\] or \[64, 4\], got u8\[64, 1\]",
        ),
    ):  # fmt: skip
        with pytest.raises(CompilationError, match=why):
            unscaled[(1,)](a, half, half.astype(np.float32), A_FORMAT=format_, SCALE=scale, N=64)
