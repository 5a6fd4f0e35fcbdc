"""Elementary functions over the whole range of fp32 and fp64, against numpy in higher precision."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.cpu.harness import WIDE_FLOATS, apply, assert_same, sample, special_floats

SWEEP = 1 << 20
BLOCK = 4096

# function -> (numpy's, greatest error in ulp where the fp32 result is normal)
ULPS: dict[str, tuple[Callable[..., Any], float]] = {
    "exp": (np.exp, 1.1),
    "exp2": (np.exp2, 1.1),
    "log": (np.log, 0.9),
    "log2": (np.log2, 1.2),
    "sin": (np.sin, 1.0),
    "cos": (np.cos, 1.0),
}
EXACT: dict[str, Callable[..., Any]] = {
    "sqrt": np.sqrt,
    "floor": np.floor,
    "ceil": np.ceil,
}


@pytest.fixture(autouse=True)
def quiet_numpy() -> Any:
    """The reference meets NaN and infinities on purpose."""
    with np.errstate(all="ignore"):
        yield


def run(name: str, values: np.ndarray) -> np.ndarray:
    dtype = values.dtype.name
    return apply(f"tl.{name}(a)", (values, dtype), out=dtype, block=BLOCK)


def sweep(rng: np.random.Generator) -> np.ndarray:
    """Random bits of fp32: every exponent and both signs, with all the specials."""
    bits = rng.integers(0, 1 << 32, SWEEP, dtype=np.uint32).view(np.float32)
    return np.concatenate([bits, special_floats("float32")])


def near(rng: np.random.Generator, low: float, high: float) -> np.ndarray:
    """Random fp32 where a function neither overflows nor vanishes."""
    return rng.uniform(low, high, SWEEP).astype(np.float32)


def errors_in_ulp(got: np.ndarray, exact: np.ndarray) -> np.ndarray:
    """|got - exact| in units of the last place of `exact` as fp32; 0 where it is not normal."""
    info = np.finfo(np.float32)
    normal = (np.abs(exact) >= info.smallest_normal) & (np.abs(exact) <= info.max)
    place = np.spacing(np.abs(exact).astype(np.float32)).astype(np.float64)
    # At a power of two the spacing below is half; take the larger, as the definition does.
    return np.where(normal, np.abs(got.astype(np.float64) - exact) / place, 0.0)


def check_ulps(name: str, values: np.ndarray) -> None:
    """... a part of the values at a time, since they take 50 bytes each meanwhile."""
    for part in range(0, len(values), _PART):
        _check_part(name, values[part : part + _PART])


_PART = 1 << 18


def _check_part(name: str, values: np.ndarray) -> None:
    function, bound = ULPS[name]
    got, exact = run(name, values), function(values.astype(np.float64))
    errors = errors_in_ulp(got, exact)
    worst = int(np.argmax(errors))
    assert errors[worst] <= bound, (
        f"{name}({values[worst]!r}) is {got[worst]!r}, want {exact[worst]!r}: "
        f"{errors[worst]:.3f} ulp"
    )
    want = exact.astype(np.float32)
    special = ~np.isfinite(want) | (want == 0)
    special &= ~(np.isfinite(exact) & np.isinf(want) & np.isfinite(got))  # within the bound
    special &= ~((want == 0) & (exact != 0))
    assert_same(got[special], want[special], "float32", [values[special]])
    denormal = ~special & np.isfinite(want) & (np.abs(want) < np.finfo(np.float32).smallest_normal)
    steps = np.abs(got[denormal].astype(np.float64) - exact[denormal]) / 2.0**-149
    assert (steps <= 1.0 + bound).all()


@pytest.mark.parametrize("name", ULPS)
def test_error_over_all_of_fp32(rng: np.random.Generator, name: str) -> None:
    check_ulps(name, sweep(rng))


@pytest.mark.parametrize(
    "name, low, high",
    [
        ("exp", -104.5, 89.5),
        ("exp", -1.0, 1.0),
        ("exp2", -151.0, 129.0),
        ("exp2", -1.0, 1.0),
        ("log", 0.0, 4.0),
        ("log", 0.9, 1.1),
        ("log2", 0.0, 4.0),
        ("log2", 0.9, 1.1),
        ("sin", -10.0, 10.0),
        ("cos", -10.0, 10.0),
    ],
)
def test_error_where_it_matters(
    rng: np.random.Generator, name: str, low: float, high: float
) -> None:
    check_ulps(name, near(rng, low, high))


@pytest.mark.parametrize("name", ["exp", "exp2", "log", "log2"])
def test_error_of_every_mantissa(name: str) -> None:
    for exponent in (-1, 0):
        first = np.float32(2.0**exponent).view(np.uint32)
        for part in range(0, 1 << 23, _PART):
            _check_part(name, (first + np.arange(part, part + _PART, dtype=np.uint32)).view("f4"))


def test_log2_and_exp2_of_powers_of_two_are_exact() -> None:
    powers = np.arange(-149, 128).astype(np.float32)
    numbers = np.ldexp(np.float32(1), powers.astype(int)).astype(np.float32)
    assert_same(run("log2", numbers), powers, "float32")
    assert_same(run("exp2", powers), numbers, "float32")


@pytest.mark.parametrize("dtype", WIDE_FLOATS)
@pytest.mark.parametrize("name", EXACT)
def test_exactly_rounded_functions(rng: np.random.Generator, name: str, dtype: str) -> None:
    values = sweep(rng) if dtype == "float32" else sample(rng, dtype, 10_000)
    assert_same(run(name, values), EXACT[name](values), dtype, [values])


def test_sqrt_rn(rng: np.random.Generator) -> None:
    values = sweep(rng)
    assert_same(run("sqrt_rn", values), np.sqrt(values), "float32", [values])


@pytest.mark.parametrize("dtype", WIDE_FLOATS)
def test_rsqrt(rng: np.random.Generator, dtype: str) -> None:
    values = sweep(rng) if dtype == "float32" else sample(rng, dtype, 10_000)
    got, want = run("rsqrt", values), (1 / np.sqrt(values.astype(np.longdouble)))
    finite = np.isfinite(want.astype(dtype))
    assert_same(got[~finite], want[~finite].astype(dtype), dtype, [values[~finite]])
    error = np.abs(got[finite].astype(np.longdouble) / want[finite] - 1)
    zero = want[finite] == 0
    assert (error[~zero] <= 1.6 * np.finfo(dtype).eps).all()
    assert (got[finite][zero] == 0).all()


@pytest.mark.parametrize("dtype", WIDE_FLOATS)
def test_erf(rng: np.random.Generator, dtype: str) -> None:
    values = np.concatenate([rng.normal(0, 2, 5000), [0.0, -0.0, np.inf, -np.inf, np.nan, 1e-30]])
    values = values.astype(dtype)
    want = np.array([math.erf(x) for x in values.tolist()]).astype(dtype)
    got = run("erf", values)
    assert (np.isnan(got) == np.isnan(want)).all()
    number = ~np.isnan(want)
    steps = np.abs(got - want)[number] / np.spacing(np.abs(want[number]))
    assert (steps <= 2).all()


@pytest.mark.parametrize("name", ULPS)
def test_fp64(rng: np.random.Generator, name: str) -> None:
    values = np.concatenate([sample(rng, "float64", 10_000), rng.uniform(-700, 700, 10_000)])
    values = np.where(np.abs(values) < 1e15, values, 1.0) if name in ("sin", "cos") else values
    got, want = run(name, values), ULPS[name][0](values)
    assert (np.isnan(got) == np.isnan(want)).all()
    finite = np.isfinite(want)
    numbers = ~finite & ~np.isnan(want)
    assert (got[numbers] == want[numbers]).all()
    steps = np.abs(got[finite] - want[finite]) / np.spacing(np.abs(want[finite]))
    assert steps.max() <= 4, (values[finite][steps.argmax()], steps.max())


@pytest.mark.parametrize("size", [0, 1, 3, 4097])
@pytest.mark.parametrize("name", [*ULPS, *EXACT, "rsqrt", "erf"])
def test_every_size(name: str, size: int) -> None:
    values = np.linspace(0.25, 3, size, dtype=np.float32)
    got = run(name, values)
    assert np.isfinite(got).all()
    assert got.shape == values.shape


def test_sigmoid(rng: np.random.Generator) -> None:
    values = near(rng, -30, 30)
    got, want = run("sigmoid", values), 1 / (1 + np.exp(-values.astype(np.float64)))
    assert (np.abs(got - want) <= 4 * np.spacing(want.astype(np.float32))).all()
