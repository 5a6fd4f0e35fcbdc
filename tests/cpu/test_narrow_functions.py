"""Functions of reductions and scans on fp16 and bf16: computed in fp32, rounded once."""

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.language.extra import libdevice
from tests.cpu.harness import decode, encode, ordinary, pointer

pytestmark = pytest.mark.interpreted

ROWS, N = 3, 256
EPS = {"float16": 2.0**-11, "bfloat16": 2.0**-8}


@proton.jit
def added(a, b):
    return a + b


@proton.jit
def composed(a, b, c, d):
    """Two linear functions, one after the other."""
    return a * c, b * c + d


@proton.jit
def of_means(mean, count, other, number):
    total = count + number
    return mean + (other - mean) * (number / total), total


@proton.jit
def larger_and_half(a, b):
    if a > b:
        c = a + b * 0.5
    else:
        c = b + a * 0.5
    return c


@proton.jit
def scans(x_ptr, out_ptr, means_ptr, ROWS: tl.constexpr, N: tl.constexpr):
    rows, columns = tl.arange(0, 4)[:, None], tl.arange(0, N)[None, :]
    mask = rows < ROWS
    place, size = rows * N + columns, ROWS * N
    x = tl.load(x_ptr + place, mask=mask, other=1)
    tl.store(out_ptr + place, tl.cumsum(x, 1), mask=mask)
    tl.store(out_ptr + size + place, tl.associative_scan(x, 1, added, reverse=True), mask=mask)
    _, y = tl.associative_scan((x * 0 + 0.75, x), 1, composed)
    tl.store(out_ptr + 2 * size + place, y, mask=mask)
    tl.store(out_ptr + 3 * size + place, tl.associative_scan(x, 1, larger_and_half), mask=mask)
    tl.store(out_ptr + 4 * size + place, tl.cumprod(x * 0 + 1.0078125, 1), mask=mask)
    mean, count = tl.reduce((x, x * 0 + 1), 1, of_means)
    places = tl.arange(0, 4)
    tl.store(means_ptr + places, mean, mask=places < ROWS)
    tl.store(means_ptr + ROWS + places, count, mask=places < ROWS)


def folded(x: np.ndarray, function: object) -> np.ndarray:
    """A scan in fp64, along the rows."""
    found = [x[:, 0]]
    for n in range(1, x.shape[1]):
        found.append(function(found[-1], x[:, n]))  # type: ignore[operator]
    return np.stack(found, axis=1)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_what_is_combined_is_rounded_once(rng: np.random.Generator, dtype: str) -> None:
    bits = encode(rng.random((ROWS, N)).astype(np.float32), dtype)
    out, means = np.zeros((5, ROWS, N), bits.dtype), np.zeros((2, ROWS), bits.dtype)
    scans[(1,)](*(pointer(array, dtype) for array in (bits, out, means)), ROWS=ROWS, N=N)
    x = decode(bits, dtype).astype(np.float64)
    want = [
        np.cumsum(x, axis=1),
        np.cumsum(x[:, ::-1], axis=1)[:, ::-1],
        folded(x, lambda a, b: a * 0.75 + b),
        folded(x, lambda a, b: np.maximum(a, b) + np.minimum(a, b) * 0.5),
        np.cumprod(np.full_like(x, 1.0078125), axis=1),
    ]
    # Half a unit in the last place, and what fp32 adds in 256 steps.
    tolerance = EPS[dtype] + 256 * 2.0**-24
    for got, right in zip(decode(out, dtype), want, strict=True):
        np.testing.assert_allclose(got, right, rtol=tolerance)
    got = decode(means, dtype)
    np.testing.assert_allclose(got[0], x.mean(axis=1), rtol=2 * tolerance)
    assert (got[1] == N).all()


@proton.jit
def of_bits(a, b):
    return (a.to(tl.int16, bitcast=True) ^ b.to(tl.int16, bitcast=True)).to(a.dtype, bitcast=True)


@proton.jit
def bits(x_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.associative_scan(x, 0, of_bits))
    tl.store(out_ptr + N, tl.reduce(x, 0, of_bits))


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_functions_that_look_at_bits_have_those(rng: np.random.Generator, dtype: str) -> None:
    x = rng.integers(0, 0x7000, N, np.uint16)
    given = x.view(encode(np.zeros(1), dtype).dtype)
    out = np.zeros(N + 1, given.dtype)
    bits[(1,)](pointer(given, dtype), pointer(out, dtype), N=N)
    want = np.bitwise_xor.accumulate(x)
    assert (out.view(np.uint16) == [*want, want[-1]]).all()


@proton.jit
def hypotenuse(a, b):
    return libdevice.hypot(a, b)


@proton.jit
def larger(a, b):
    return tl.inline_asm_elementwise("max.f32 $0, $1, $2;", "=f,f,f", [a, b], tl.float32, True, 1)


@proton.jit
def by(x_ptr, out_ptr, FUNCTION: tl.constexpr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x = tl.load(x_ptr + offs)
    tl.store(out_ptr + offs, tl.associative_scan(x, 0, FUNCTION))
    tl.store(out_ptr + N, tl.reduce(x, 0, FUNCTION))


def test_functions_of_libraries_and_assembly_combine(rng: np.random.Generator) -> None:
    x = np.abs(ordinary(rng, "float32", N)) + 1
    for function, want in (
        (hypotenuse, np.sqrt(np.cumsum(x.astype(np.float64) ** 2))),
        (larger, np.maximum.accumulate(x)),
    ):
        out = np.zeros(N + 1, np.float32)
        by[(1,)](x, out, FUNCTION=function, N=N)
        np.testing.assert_allclose(out, [*want, want[-1]], rtol=1e-5)
