"""Functions of libdevice that C's library lacks, on the CPU, by what they are inverse to, by
integrals and exact fractions; and arithmetic in all directions of rounding, against exact
fractions."""

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import proton
from tests.cpu.harness import elementwise, sample
from tests.cpu.test_libdevice import EPS, apply, apply_all, apply_each, in_python
from tests.tables import check_rows


def bessel(order: int, x: float) -> float:
    """The power series of I_n, whose terms have one sign, so that it is exact near 0, too."""
    terms = [(x / 2) ** order / math.factorial(order)]
    for k in range(1, 120):
        terms.append(terms[-1] * (x / 2) ** 2 / (k * (k + order)))
    return math.fsum(terms)


def sine_of_pi(x: float) -> float:
    """Of an exactly reduced argument."""
    turn = Fraction(x) % 2
    sign = -1 if turn >= 1 else 1
    turn %= 1
    return sign * math.sin(math.pi * float(min(turn, 1 - turn)))


def scaled_erfc(x: float) -> float:
    return float((Decimal(x) * Decimal(x)).exp() * Decimal(math.erfc(x)))


FUNCTIONS: dict[str, tuple[Callable[[float], float], float, float]] = {
    "cyl_bessel_i0": (lambda x: bessel(0, x), -40, 40),
    "cyl_bessel_i1": (lambda x: bessel(1, x), -40, 40),
    "sinpi": (sine_of_pi, -30, 30),
    "cospi": (lambda x: sine_of_pi(Fraction(x) + Fraction(1, 2)), -30, 30),  # type: ignore[arg-type]
    "erfcx": (scaled_erfc, -3, 25),
    "rsqrt_rn": (lambda x: 1 / math.sqrt(x), 0.01, 100),
}


@pytest.mark.parametrize("dtype", EPS)
def test_functions(rng: np.random.Generator, dtype: str) -> None:
    names = [name for name in FUNCTIONS if (name, dtype) != ("rsqrt_rn", "float64")]
    given = [rng.uniform(*FUNCTIONS[name][1:], 300).astype(dtype) for name in names]
    calls = ((f"{name}(a)", [x], dtype) for name, x in zip(names, given, strict=True))
    results = dict(zip(names, zip(given, apply_each(*calls), strict=True), strict=True))

    def check(name: str) -> None:
        x, got = results[name]
        # sinpi is as exact near its zeros as anywhere.
        want = in_python(FUNCTIONS[name][0], x)
        np.testing.assert_allclose(got, want, rtol=128 * EPS[dtype], atol=1e-300)

    check_rows(check, [(name,) for name in names])


def test_special_values() -> None:
    x = np.array([0.0, -0.0, 1.0, -2.0, 0.5, np.inf, -np.inf, np.nan])
    nan, inf = math.nan, math.inf
    wanted = {
        "sinpi": [0.0, -0.0, 0.0, -0.0, 1.0, nan, nan, nan],
        "cospi": [1.0, 1.0, -1.0, 1.0, 0.0, nan, nan, nan],
        "cyl_bessel_i0": [1.0, 1.0, bessel(0, 1), bessel(0, 2), bessel(0, 0.5), inf, inf, nan],
        "erfinv": [0.0, -0.0, inf, nan, 0.4769362762044699, nan, nan, nan],
        "erfcinv": [inf, inf, 0.0, nan, 0.4769362762044699, nan, nan, nan],
        "normcdfinv": [-inf, -inf, inf, nan, 0.0, nan, nan, nan],
    }
    found = apply_all([f"{name}(a)" for name in wanted], x, out=np.float64)
    for name, want in wanted.items():
        got = found[f"{name}(a)"]
        np.testing.assert_allclose(got, want, rtol=1e-14, atol=1e-300, err_msg=name)
    signs = found["sinpi(a)"][:2], found["erfinv(a)"][:2]
    assert np.signbit(signs).tolist() == [[False, True]] * 2


@pytest.mark.parametrize("dtype", EPS)
def test_inverse_error_functions(rng: np.random.Generator, dtype: str) -> None:
    """The functions themselves give the arguments back, as well as their slopes let them."""
    small = 10.0 ** -rng.uniform(0, 30 if dtype == "float32" else 300, 200)
    y = np.concatenate([small, 2 - 10.0 ** -rng.uniform(0, 6, 100)]).astype(dtype)
    p = (y / 2).astype(dtype)
    z = np.concatenate([rng.uniform(-1, 1, 200), rng.uniform(-1, 1, 100) * 1e-8]).astype(dtype)
    calls = {"erfcinv(a)": y, "normcdfinv(a)": p, "erfinv(a)": z}
    x, got, erf = apply_each(*((call, [given], dtype) for call, given in calls.items()))
    x = x.astype(np.float64)
    slope = 2 / math.sqrt(math.pi) * np.exp(-x * x)
    error = np.abs(in_python(math.erfc, x) - y)
    assert (error <= 8 * EPS[dtype] * (np.abs(x) * slope + y)).all()
    np.testing.assert_allclose(got, -math.sqrt(2) * x, rtol=16 * EPS[dtype], atol=1e-300)
    x = erf.astype(np.float64)
    slope = 2 / math.sqrt(math.pi) * np.exp(-x * x)
    error = np.abs(in_python(math.erf, x) - z)
    assert (error <= 8 * EPS[dtype] * (np.abs(x) * slope + np.abs(z))).all()


def test_reciprocals_of_the_upper_half() -> None:
    x = np.array([3.0, -7.0, 1e300, 2.0])
    got = apply("rcp64h(a)", x, out=np.float64)
    assert (got.view(np.uint64) & 0xFFFFFFFF == 0).all()
    np.testing.assert_allclose(got, 1 / x, rtol=2.0**-19)


# Directions of rounding

MODES = ("rz", "rd", "ru")


@np.errstate(over="ignore")
def rounded(exact: Fraction, dtype: str, mode: str) -> Any:
    """An exact number as a float."""
    kind = np.dtype(dtype).type
    low = kind(-np.finfo(dtype).max) if exact < -Fraction(float(np.finfo(dtype).max)) else None
    if low is None:
        high = Fraction(float(np.finfo(dtype).max))
        low = kind(float(exact)) if exact <= high else kind(np.finfo(dtype).max)
        while Fraction(float(low)) > exact:
            low = np.nextafter(low, kind(-np.inf))
        while (
            low < np.finfo(dtype).max and Fraction(float(np.nextafter(low, kind(np.inf)))) <= exact
        ):
            low = np.nextafter(low, kind(np.inf))
        is_exact = Fraction(float(low)) == exact
        above = low if is_exact else np.nextafter(low, kind(np.inf))
    else:
        low, above = kind(-np.inf), low
    return {"rd": low, "ru": above, "rz": above if exact < 0 else low}[mode]


OPERATIONS: dict[str, Callable[..., Fraction]] = {
    "add": lambda x, y: x + y,
    "sub": lambda x, y: x - y,
    "mul": lambda x, y: x * y,
    "div": lambda x, y: x / y,
    "rcp": lambda x: 1 / x,
    "fma": lambda x, y, z: x * y + z,
}


def in_each_direction(call: str, *inputs: np.ndarray, dtype: str) -> dict[str, np.ndarray]:
    """The results of `call`, in which MODE stands for the direction."""
    expressions = tuple(f"tl.extra.libdevice.{call.replace('MODE', mode)}" for mode in MODES)
    kernel, n = elementwise(expressions, len(inputs)), inputs[0].size
    outputs = [np.zeros(n, dtype) for _ in MODES]
    kernel[(proton.cdiv(n, 128),)](*inputs, *outputs, n, BLOCK=128)
    return dict(zip(MODES, outputs, strict=True))


@pytest.mark.parametrize("dtype", EPS)
@pytest.mark.parametrize("name", OPERATIONS)
def test_arithmetic_in_each_direction(rng: np.random.Generator, name: str, dtype: str) -> None:
    function = OPERATIONS[name]
    count = {"rcp": 1, "fma": 3}.get(name, 2)
    spread = rng.choice([3, 40 if dtype == "float32" else 300])
    inputs = [
        (rng.uniform(1, 2, 200) * rng.choice([-1, 1], 200) * 2.0 ** rng.integers(-s, s, 200))
        for s in [spread] * count
    ]
    inputs = [x.astype(dtype) for x in inputs]
    inputs[0][:20] = 3.0  # exact ones, and what cancels
    inputs[-1][:10] = -3.0
    call = f"{name}_MODE({', '.join('abc'[:count])})"
    for mode, got in in_each_direction(call, *inputs, dtype=dtype).items():
        for number, x in enumerate(zip(*inputs, strict=True)):
            want = rounded(function(*[Fraction(float(v)) for v in x]), dtype, mode)
            assert got[number] == want, (mode, x, got[number], want)


@pytest.mark.parametrize("dtype", EPS)
def test_overflow_in_each_direction(dtype: str) -> None:
    largest = np.finfo(dtype).max
    x = np.array([largest, -largest, 1.0, -1.0, np.inf], dtype)
    y = np.array([2.0, 2.0, 0.0, 0.0, 1.0], dtype)
    products = in_each_direction("mul_MODE(a, b)", x, y, dtype=dtype)
    quotients = in_each_direction("div_MODE(a, b)", x, y, dtype=dtype)
    zeros = in_each_direction("sub_MODE(a, a)", y, dtype=dtype)
    for mode in MODES:
        high = np.inf if mode == "ru" else largest
        low = -np.inf if mode == "rd" else -largest
        assert products[mode][[0, 1, 4]].tolist() == [high, low, np.inf]
        assert quotients[mode][2:].tolist() == [np.inf, -np.inf, np.inf]
        assert np.signbit(zeros[mode]).tolist() == [mode == "rd"] * 5


SHORT = {"int32": "int", "uint32": "uint", "int64": "ll", "uint64": "ull", "float64": "double"}


@pytest.mark.parametrize("source", SHORT)
def test_conversions_in_each_direction(rng: np.random.Generator, source: str) -> None:
    x = sample(rng, source, 200)
    if source == "float64":
        x = x[np.isfinite(x)]
    else:
        x[:2] = np.iinfo(source).min, np.iinfo(source).max
    targets = {"float32": "float"} | ({"float64": "double"} if source.endswith("int64") else {})
    for target, name in targets.items():
        found = in_each_direction(f"{SHORT[source]}2{name}_MODE(a)", x, dtype=target)
        for mode, got in found.items():
            for value, result in zip(x, got, strict=True):
                exact = Fraction(float(value)) if source == "float64" else Fraction(int(value))
                assert result == rounded(exact, target, mode), (mode, value, result)


@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_square_roots_in_each_direction(rng: np.random.Generator, dtype: str) -> None:
    """fp16 is computed with as fp32, by any function of that."""
    x = rng.uniform(0, 100, 200).astype(dtype)
    down, up = (apply(f"sqrt_{mode}(a)", x, out=np.float32) for mode in ("rd", "ru"))
    for value, low, high in zip(x, down, up, strict=True):
        exact = Fraction(float(value))
        assert Fraction(float(low)) ** 2 <= exact <= Fraction(float(high)) ** 2
        assert high in (low, np.nextafter(low, np.float32(np.inf)))
