"""Functions that a GPU approximates, as far as NVIDIA's documents say they err.

Sources: PTX ISA (div.full, ex2.approx, lg2.approx, sqrt.approx), CUDA C++ Programming Guide,
"Mathematical Functions" (libdevice).
"""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.compile.test_shared_reciprocals import (
    BLOCK,
    DIVISORS,
    assert_quotients,
    divided,
    divided_by_rows,
    dividends,
)
from tests.cpu.harness import apply, assert_same, kernels_of, sample

STAGED = True
SIZE = 1 << 16
Bound = Callable[[np.ndarray, np.ndarray], np.ndarray]  # of (input, exact result): the error


def ulp(count: float) -> Bound:
    """So many units in the last place of the result."""
    return lambda x, exact: count * np.spacing(np.abs(exact).astype(np.float32)).astype(float)


def exponential(x: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """ex2.approx of a product that was rounded: the error grows with the argument."""
    return np.abs(exact) * 2.0**-23 * (3 + np.abs(x))


def logarithm(x: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """lg2.approx: absolute near 1, relative elsewhere."""
    return np.maximum(2.0**-21, np.abs(exact) * 2.0**-21)


FUNCTIONS: dict[str, tuple[Callable[..., Any], Bound, float, float]] = {
    "exp": (np.exp, exponential, -87.0, 88.0),
    "exp2": (np.exp2, ulp(4), -125.0, 127.0),
    "log": (np.log, logarithm, 1e-6, 1e6),
    "log2": (np.log2, logarithm, 1e-6, 1e6),
    "sin": (np.sin, ulp(3), -100.0, 100.0),
    "cos": (np.cos, ulp(3), -100.0, 100.0),
    "sqrt": (np.sqrt, ulp(2), 0.0, 1e30),
    "rsqrt": (lambda x: 1 / np.sqrt(x), ulp(3), 1e-30, 1e30),
    "floor": (np.floor, ulp(0), -1e6, 1e6),
    "ceil": (np.ceil, ulp(0), -1e6, 1e6),
    "sigmoid": (lambda x: 1 / (1 + np.exp(-x)), exponential, -80.0, 80.0),
}


@pytest.mark.parametrize("bound", [448.0, 1e-39, 3e38])
def test_a_clamp_around_zero_is_exact(rng: np.random.Generator, bound: float) -> None:
    x = sample(rng, "float32", SIZE)
    got = apply(f"tl.clamp(a, -{bound}, {bound})", (x, "float32"), out="float32")
    most = np.float32(bound)
    want = np.clip(x, -most, most)
    want[np.isnan(x)] = np.copysign(most, x)[np.isnan(x)]  # docs/math.md
    assert_same(got, want, "float32", [x])


@pytest.mark.parametrize("name", FUNCTIONS)
def test_fp32(rng: np.random.Generator, name: str) -> None:
    function, bound, low, high = FUNCTIONS[name]
    x = rng.uniform(low, high, SIZE).astype(np.float32)
    x[: SIZE // 2] = rng.uniform(max(low, 0.5), min(high, 2.0), SIZE // 2)
    got = apply(f"tl.{name}(a)", (x, "float32"), out="float32")
    exact = function(x.astype(np.float64))
    worst = np.abs(got - exact) - bound(x.astype(float), exact)
    at = int(np.argmax(worst))
    assert worst[at] <= 0, (name, x[at], got[at], exact[at])


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2", "sin", "cos", "sqrt", "rsqrt"])
def test_fp64(rng: np.random.Generator, name: str) -> None:
    x = rng.uniform(0.1, 40, SIZE)
    got = apply(f"tl.{name}(a)", (x, "float64"), out="float64")
    np.testing.assert_allclose(got, FUNCTIONS[name][0](x), rtol=1e-14, atol=1e-15)


def test_special_values() -> None:
    x = np.array([np.inf, -np.inf, np.nan, 0.0, -0.0], np.float32)
    with np.errstate(all="ignore"):
        for name in ("exp", "exp2", "log", "log2", "sqrt", "rsqrt", "sin", "cos"):
            got = apply(f"tl.{name}(a)", (x, "float32"), out="float32")
            assert_same(got, FUNCTIONS[name][0](x).astype(np.float32), "float32", [x])


@pytest.mark.parametrize("expression", ["a / b", "tl.fdiv(a, b)"])
def test_division(rng: np.random.Generator, expression: str) -> None:
    a, b = (rng.standard_normal(SIZE).astype(np.float32) * 1e3 for _ in range(2))
    got = apply(expression, (a, "float32"), (b, "float32"), out="float32")
    exact = a.astype(np.float64) / b
    assert (np.abs(got - exact) <= ulp(2)(a, exact)).all()


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_division_by_one_number(rng: np.random.Generator, divisor: float, sign: int) -> None:
    n = int(rng.integers(BLOCK // 2, BLOCK + 1))
    x, y = dividends(rng, n), np.array([sign * divisor], np.float32)
    out = np.zeros_like(x)
    divided[(1,)](x, y, out, n, BLOCK=BLOCK, num_warps=4)
    assert_quotients(out, x, np.broadcast_to(y, x.shape))


def test_division_of_rows(rng: np.random.Generator) -> None:
    x, y = dividends(rng, 16, 256), np.resize(np.array(DIVISORS, np.float32), 16)
    out = np.zeros_like(x)
    divided_by_rows[(1,)](x, y, out, 0, ROWS=16, COLUMNS=256, num_warps=4)
    assert_quotients(out, x, np.broadcast_to(y[:, None], x.shape))


@pytest.mark.parametrize("function", ["div_rn(a, b)", "sqrt_rn(a)"])
def test_correctly_rounded(rng: np.random.Generator, function: str) -> None:
    a, b = np.abs(sample(rng, "float32", SIZE)), sample(rng, "float32", SIZE)
    with np.errstate(all="ignore"):
        want = a / b if "div" in function else np.sqrt(a)
    inputs = [(a, "float32"), (b, "float32")][: 2 if "div" in function else 1]
    assert_same(apply(f"tl.{function}", *inputs, out="float32"), want, "float32", [a, b])


@pytest.mark.parametrize("dtype", ["int8", "int64", "uint16", "float16"])
def test_division_of_narrow_types_is_done_in_fp32(rng: np.random.Generator, dtype: str) -> None:
    a, b = (rng.integers(1, 100, SIZE).astype(dtype) for _ in range(2))
    got = apply("a / b", (a, dtype), (b, dtype), out="float32")
    np.testing.assert_allclose(got, a.astype(np.float64) / b, rtol=2.0**-21)


FUSED = """
@proton.jit
def kernel(a_ptr, b_ptr, c_ptr, out_ptr, N: tl.constexpr):
    i = tl.arange(0, N)
    a, b, c = tl.load(a_ptr + i), tl.load(b_ptr + i), tl.load(c_ptr + i)
    tl.store(out_ptr + i, a * b + c)
    tl.store(out_ptr + N + i, b * c - a)
    tl.store(out_ptr + 2 * N + i, b - a * c)
"""


@pytest.mark.parametrize("dtype", ["float32", "float16"])
@pytest.mark.parametrize("fuse", [False, True])
def test_multiply_adds_round_once_or_twice(
    rng: np.random.Generator, fuse: bool, dtype: str
) -> None:
    size = 1024
    a, b, c = (rng.standard_normal(size).astype(dtype) for _ in range(3))
    out = np.zeros((3, size), dtype)
    kernels_of(FUSED).kernel[(1,)](a, b, c, out, N=size, enable_fp_fusion=fuse)
    if fuse:  # products are exact in fp64
        a, b, c = (x.astype(np.float64) for x in (a, b, c))
    want = [a * b + c, b * c - a, b - a * c]
    assert_same(out, np.array(want, dtype), dtype)


def test_softmax_of_rows(rng: np.random.Generator) -> None:
    from kernels.cases import SOFTMAX

    (x,) = SOFTMAX.inputs(rng, 33, 1000)
    assert SOFTMAX.check((x * 10,)) <= 2e-6


@pytest.mark.parametrize("target", ["int", "uint", "ll", "ull"])
def test_conversions_of_libdevice_saturate(rng: np.random.Generator, target: str) -> None:
    from tests.cpu.test_libdevice import ROUNDINGS, TARGETS
    from tests.cpu.test_libdevice import apply as apply_libdevice

    info = np.iinfo(TARGETS[target])
    for source, dtype in (("float", np.float32), ("double", np.float64)):
        x = (rng.standard_normal(300) * 10.0 ** rng.integers(0, 25, 300)).astype(dtype)
        for mode, rounded in ROUNDINGS.items():
            got = apply_libdevice(f"{source}2{target}_{mode}(a)", x, out=TARGETS[target])
            for value, result in zip(rounded(x.astype(np.float64)), got.tolist(), strict=True):
                assert result == min(max(int(value), info.min), info.max)
