"""tl.extra.libdevice on the CPU: functions against Python's and numpy's, with their specials."""

import math
from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.conversion.triton_arith_to_linalg.extern import RULES, SIGNED, UNSIGNED
from proton.language import core
from proton.language.extra import libdevice
from tests.cpu import harness
from tests.cpu.harness import kernels_of, sample
from tests.tables import check_rows


def apply_all(calls: Iterable[str], *inputs: np.ndarray, out: Any) -> dict[str, np.ndarray]:
    """libdevice.`call` of a, b, c, d for each of the calls, by one kernel."""
    names = {call: f"tl.extra.libdevice.{call}" for call in calls}
    given = [(x, x.dtype.name) for x in inputs]
    found = harness.apply_all(dict.fromkeys(names.values(), np.dtype(out).name), *given, block=128)
    return {call: found[name] for call, name in names.items()}


def apply(call: str, *inputs: np.ndarray, out: Any) -> np.ndarray:
    """The same for one."""
    return apply_all([call], *inputs, out=out)[call]


def apply_each(*rows: tuple[str, Sequence[np.ndarray], Any]) -> list[np.ndarray]:
    """libdevice.`call` of each row's inputs, with the type of its result, by one kernel."""
    return harness.apply_each(
        (
            (f"tl.extra.libdevice.{call}", [(x, x.dtype.name) for x in inputs], np.dtype(out).name)
            for call, inputs, out in rows
        ),
        block=128,
    )


def in_python(function: Callable[..., Any], *inputs: np.ndarray) -> np.ndarray:
    """A function of Python floats, element by element; NaN where it raises."""

    def one(*x: Any) -> float:
        try:
            return float(function(*map(float, x)))
        except (ValueError, OverflowError):
            return math.nan

    return np.array([one(*x) for x in zip(*inputs, strict=True)])


UNARY: dict[str, Any] = {
    **{name: getattr(np, name) for name in "ceil cos cosh exp exp2 expm1 floor log log10".split()},
    **{name: getattr(np, name) for name in "log1p log2 rint sin sinh sqrt tan tanh".split()},
    **{name: getattr(np, name) for name in "trunc cbrt fabs".split()},
    **{name: getattr(np, f"arc{name[1:]}") for name in "acos acosh asin asinh atan atanh".split()},
    "erf": lambda x: in_python(math.erf, x),
    "erfc": lambda x: in_python(math.erfc, x),
    "exp10": lambda x: 10.0**x,
    "nearbyint": np.rint,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "rcbrt": lambda x: 1 / np.cbrt(x),
    "normcdf": lambda x: 0.5 * in_python(math.erfc, -x / math.sqrt(2)),
    "abs": np.abs,
    "rcp_rn": lambda x: 1 / x,
    "sqrt_rn": np.sqrt,
    "round": lambda x: np.sign(x) * np.floor(np.abs(x) + 0.5),
    "logb": lambda x: np.frexp(x)[1] - 1.0,
}
del UNARY["fabs"]
EPS = {"float32": 2.0**-23, "float64": 2.0**-52}


def check_functions(functions: dict[str, Any], dtype: str, *inputs: np.ndarray) -> None:
    """Each function of one kernel against numpy's in fp64."""
    arguments = ", ".join("ab"[: len(inputs)])
    got = apply_all([f"{name}({arguments})" for name in functions], *inputs, out=dtype)

    def check(name: str) -> None:
        with np.errstate(all="ignore"):
            want = functions[name](*(x.astype(np.float64) for x in inputs))
        rtol, atol = 8 * EPS[dtype], 4 * EPS[dtype]
        np.testing.assert_allclose(got[f"{name}({arguments})"], want, rtol=rtol, atol=atol)

    check_rows(check, [(name,) for name in functions])


@pytest.mark.parametrize("dtype", EPS)
def test_functions_of_one_number(rng: np.random.Generator, dtype: str) -> None:
    x = np.concatenate([rng.uniform(-1, 1, 300), rng.uniform(-9, 9, 300)]).astype(dtype)
    check_functions(UNARY, dtype, x)


def test_special_values_are_those_of_the_c_library() -> None:
    x = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0], np.float32)
    names = ("tanh", "atan", "log1p", "cbrt", "exp", "sqrt", "acosh", "rint")
    found = apply_all([f"{name}(a)" for name in names], x, out=np.float32)
    with np.errstate(all="ignore"):
        for name in names:
            got, want = found[f"{name}(a)"], UNARY[name](x)
            np.testing.assert_allclose(got, want, rtol=1e-6, atol=0, err_msg=name)
            assert (np.signbit(got) == np.signbit(want))[~np.isnan(want)].all(), name


BINARY: dict[str, Any] = {
    "atan2": np.arctan2,
    "copysign": np.copysign,
    "fdim": lambda x, y: np.where(x > y, x - y, 0.0),
    "fmod": np.fmod,
    "hypot": np.hypot,
    "pow": np.power,
    "remainder": lambda x, y: in_python(math.remainder, x, y),
    "rhypot": lambda x, y: 1 / np.hypot(x, y),
    "fmax": np.fmax,
    "fmin": np.fmin,
    **{f"{name}_rn": f for name, f in (("add", np.add), ("sub", np.subtract))},
    **{f"{name}_rn": f for name, f in (("mul", np.multiply), ("div", np.divide))},
}


@pytest.mark.parametrize("dtype", EPS)
def test_functions_of_two_numbers(rng: np.random.Generator, dtype: str) -> None:
    check_functions(BINARY, dtype, *rng.uniform(-4, 4, (2, 500)).astype(dtype))


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", EPS)
def test_functions_of_more(rng: np.random.Generator, dtype: str) -> None:
    a, b, c, d = rng.uniform(-4, 4, (4, 300)).astype(dtype)
    wide = [x.astype(np.float64) for x in (a, b, c, d)]
    three, four = np.sqrt(sum(x * x for x in wide[:3])), np.sqrt(sum(x * x for x in wide))
    norms = {
        "norm3d(a, b, c)": three,
        "rnorm3d(a, b, c)": 1 / three,
        "norm4d(a, b, c, d)": four,
        "rnorm4d(a, b, c, d)": 1 / four,
    }
    sums = ("fma(a, b, c)", "fma_rn(a, b, c)")
    found = apply_all([*norms, *sums], a, b, c, d, out=dtype)
    for call, want in norms.items():
        np.testing.assert_allclose(found[call], want, rtol=8 * EPS[dtype], err_msg=call)
    for call in sums:
        got = found[call]
        if dtype == "float32":  # the product is exact in fp64, the sum nearly
            want = (wide[0] * wide[1] + wide[2]).astype(np.float32)
            assert (got == want).mean() > 0.99
        np.testing.assert_allclose(got, wide[0] * wide[1] + wide[2], rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("dtype", EPS)
def test_functions_with_integers(rng: np.random.Generator, dtype: str) -> None:
    x = rng.uniform(0.1, 5, 200).astype(dtype)
    n = rng.integers(-8, 8, 200, dtype=np.int32)
    exact = np.ldexp(x.astype(np.float64), n)
    away = np.floor(x.astype(np.float64) + 0.5).astype(np.int64)
    rows = {
        "ldexp(a, b)": exact.astype(dtype),
        "scalbn(a, b)": exact.astype(dtype),
        "ilogb(a)": np.frexp(x)[1].astype(np.int32) - 1,
        "llround(a)": away,
        "llrint(a)": np.rint(x).astype(np.int64),
    }
    calls = ((call, (x, n), want.dtype) for call, want in rows.items())
    *found, power = apply_each(*calls, ("powi(a, b)", (x, n), dtype))
    got = dict(zip(rows, found, strict=True))
    check_rows(
        lambda call: np.testing.assert_array_equal(got[call], rows[call]),
        [(call,) for call in rows],
    )
    np.testing.assert_allclose(power, x.astype(np.float64) ** n, rtol=4 * EPS[dtype])


@pytest.mark.parametrize("dtype", EPS)
def test_gamma_and_bessel_functions(rng: np.random.Generator, dtype: str) -> None:
    x = rng.uniform(0.2, 9, 200).astype(dtype)
    names = ("lgamma(a)", "tgamma(a)", "j0(a)", "j1(a)", "jn(2, a)", "y0(a)", "y1(a)", "yn(2, a)")
    found = apply_all(names, x, out=dtype)
    for name, function in (("lgamma(a)", math.lgamma), ("tgamma(a)", math.gamma)):
        want = in_python(function, x)
        bound = 64 * EPS[dtype]
        np.testing.assert_allclose(found[name], want, rtol=bound, atol=bound, err_msg=name)
    # J(n - 1) + J(n + 1) = 2 n / x J(n), and the same of Y
    for kind in "jy":
        parts = [found[f"{kind}0(a)"], found[f"{kind}1(a)"]]
        second = found[f"{kind}n(2, a)"]
        scale = np.abs(parts[0]) + np.abs(second) + 1
        # CUDA's are within 5e-12 in fp64 (Programming Guide, "Mathematical Functions").
        bound = max(256 * EPS[dtype], 5e-11) * scale
        assert (np.abs(parts[0] + second - 2 / x * parts[1]) < bound).all(), kind
    assert abs(apply("j0(a)", np.zeros(1, dtype), out=dtype)[0] - 1) <= EPS[dtype]


@pytest.mark.parametrize("dtype", EPS)
def test_questions_about_numbers(rng: np.random.Generator, dtype: str) -> None:
    x = sample(rng, dtype, 400)
    finite = "finitef" if dtype == "float32" else "isfinited"
    tests = {"isnan": np.isnan, "isinf": np.isinf, "signbit": np.signbit, finite: np.isfinite}
    found = apply_all([f"{name}(a)" for name in tests], x, out=bool)
    for name, function in tests.items():
        np.testing.assert_array_equal(found[f"{name}(a)"], function(x), err_msg=name)


def integers(rng: np.random.Generator, dtype: str) -> np.ndarray:
    return sample(rng, dtype, 300)


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_bits_of_integers(rng: np.random.Generator, dtype: str) -> None:
    x, bits = integers(rng, dtype), np.iinfo(dtype).bits
    text = [f"{int(v) & ((1 << bits) - 1):0{bits}b}" for v in x]
    want = {
        "popc": [t.count("1") for t in text],
        "clz": [bits - len(t.lstrip("0")) for t in text],
        "ffs": [bits - t.rindex("1") if "1" in t else 0 for t in text],
    }
    calls = ((f"{name}(a)", [x], np.int32) for name in want)
    *found, turned = apply_each(*calls, ("brev(a)", [x], dtype))
    assert {name: got.tolist() for name, got in zip(want, found, strict=True)} == want
    assert turned.view(f"uint{bits}").tolist() == [int(t[::-1], 2) for t in text]


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", ["int32", "uint32", "int64", "uint64"])
def test_arithmetic_of_integers(rng: np.random.Generator, dtype: str) -> None:
    x, y = integers(rng, dtype), integers(rng, dtype)
    bits = np.iinfo(dtype).bits
    pairs = [(int(a), int(b)) for a, b in zip(x, y, strict=True)]
    z = rng.integers(0, 1000, x.size).astype(np.uint32)
    rows = {
        "mulhi(a, b)": [a * b >> bits for a, b in pairs],
        "max(a, b)": [max(p) for p in pairs],
        "min(a, b)": [min(p) for p in pairs],
    }

    def low(value: int) -> int:
        value &= 0xFFFFFF
        return value - (1 << 24) if dtype == "int32" and value >> 23 else value

    if bits == 32:
        product = np.array([low(a) * low(b) & 0xFFFFFFFF for a, b in pairs], np.uint32)
        rows |= {
            "hadd(a, b)": [a + b >> 1 for a, b in pairs],
            "rhadd(a, b)": [a + b + 1 >> 1 for a, b in pairs],
            "mul24(a, b)": product.view(dtype).tolist(),
            "sad(a, b, c)": [
                abs(a - b) + int(c) & 0xFFFFFFFF for (a, b), c in zip(pairs, z, strict=True)
            ],
        }
    results = {"sad(a, b, c)": "uint32"}  # else the type of the operands
    found = apply_each(
        *((call, (x, y, z)[: call.count(",") + 1], results.get(call, dtype)) for call in rows)
    )

    got = dict(zip(rows, found, strict=True))

    def check(call: str) -> None:
        assert got[call].tolist() == rows[call]

    check_rows(check, [(call,) for call in rows])


@pytest.mark.interpreted
def test_byte_perm(rng: np.random.Generator) -> None:
    x, y, s = rng.integers(0, 1 << 32, (3, 300), dtype=np.uint32)
    want = []
    for a, b, selector in zip(x.tolist(), y.tolist(), s.tolist(), strict=True):
        bytes_ = (b << 32 | a).to_bytes(8, "little")
        chosen = bytes(bytes_[selector >> 4 * n & 7] for n in range(4))
        want.append(int.from_bytes(chosen, "little"))
    assert apply("byte_perm(a, b, c)", x, y, s, out=np.uint32).tolist() == want


ROUNDINGS = {"rn": np.rint, "rz": np.trunc, "rd": np.floor, "ru": np.ceil}
TARGETS = {"int": "int32", "uint": "uint32", "ll": "int64", "ull": "uint64"}


@pytest.mark.parametrize("target", TARGETS)
def test_floats_to_integers_saturate(rng: np.random.Generator, target: str) -> None:
    info = np.iinfo(TARGETS[target])
    sources = {kind: sample(rng, kind, 300) for kind in ("float32", "float64")}
    rows = [
        (f"{source}2{target}_{mode}(a)", [sources[kind]], TARGETS[target])
        for source, kind in (("float", "float32"), ("double", "float64"))
        for mode in ROUNDINGS
    ]
    functions = [*ROUNDINGS.values()] * 2
    for (call, (x,), _), function, got in zip(rows, functions, apply_each(*rows), strict=True):
        with np.errstate(all="ignore"):
            near = function(x.astype(np.float64))
        for value, result in zip(near, got.tolist(), strict=True):
            want = 0 if math.isnan(value) else min(max(value, float(info.min)), float(info.max))
            assert result == min(max(int(want), info.min), info.max), (call, value)


def test_integers_to_floats(rng: np.random.Generator) -> None:
    rows = [
        (f"{source}2{target}_rn(a)", [x], result)
        for source, x in ((source, integers(rng, dtype)) for source, dtype in TARGETS.items())
        for target, result in (("float", "float32"), ("double", "float64"))
    ]
    for (call, (x,), result), got in zip(rows, apply_each(*rows), strict=True):
        np.testing.assert_array_equal(got, x.astype(result), err_msg=call)


def test_bits_of_floats(rng: np.random.Generator) -> None:
    f, d = sample(rng, "float32", 200), sample(rng, "float64", 200)
    high, low = (d.view(np.uint64) >> 32).astype(np.uint32), d.view(np.uint64).astype(np.uint32)
    halves = high.view(np.int32), low.view(np.int32)
    with np.errstate(over="ignore"):
        narrow = d.astype(np.float32)
    rows: list[tuple[str, Sequence[np.ndarray], Any, np.ndarray]] = [
        ("float_as_int(a)", [f], np.int32, f),
        ("float_as_uint(a)", [f], np.uint32, f),
        ("int_as_float(a)", [f.view(np.int32)], np.float32, f),
        ("uint_as_float(a)", [f.view(np.uint32)], np.float32, f),
        ("double_as_longlong(a)", [d], np.int64, d),
        ("longlong_as_double(a)", [d.view(np.int64)], np.float64, d),
        ("double2hiint(a)", [d], np.int32, high),
        ("double2loint(a)", [d], np.int32, low),
        ("hiloint2double(a, b)", halves, np.float64, d),
    ]
    *found, rounded = apply_each(*(row[:3] for row in rows), ("double2float_rn(a)", [d], "float32"))
    for (call, _, _, want), got in zip(rows, found, strict=True):
        assert (got.view(f"u{got.itemsize}") == want.view(f"u{want.itemsize}")).all(), call
    np.testing.assert_array_equal(rounded, narrow)


@pytest.mark.interpreted
def test_saturation_and_fast_functions(rng: np.random.Generator) -> None:
    x = sample(rng, "float32", 300)
    y = rng.uniform(0.1, 4, 300).astype(np.float32)
    functions = {
        **{name: getattr(np, name) for name in ("sin", "cos", "tan", "log", "log2", "log10")},
        "exp": np.exp,
        "exp10": lambda v: 10.0**v,
    }
    calls = ("saturatef(b)", "fast_powf(a, a)", "fast_dividef(a, 3.0)")
    found = apply_all([*calls, *(f"fast_{name}f(a)" for name in functions)], y, x, out="float32")
    want = np.where(np.isnan(x), 0, np.clip(x, 0, 1)).astype(np.float32)
    assert (found["saturatef(b)"] == want).all()
    for name, function in functions.items():
        got, exact = found[f"fast_{name}f(a)"], function(y.astype(np.float64))
        np.testing.assert_allclose(got, exact, rtol=1e-5, atol=1e-6, err_msg=name)
    np.testing.assert_allclose(found["fast_powf(a, a)"], y.astype(np.float64) ** y, rtol=1e-5)
    np.testing.assert_allclose(found["fast_dividef(a, 3.0)"], y / 3, rtol=1e-6)


SHAPES = """
@proton.jit
def kernel(x_ptr, y_ptr, out_ptr, scalar_ptr, s):
    i, j = tl.arange(0, 8)[:, None], tl.arange(0, 4)[None, :]
    out = tl.extra.cuda.libdevice.hypot(tl.load(x_ptr + i), tl.load(y_ptr + j))
    tl.store(out_ptr + i * 4 + j, out)
    tl.store(scalar_ptr, tl.extra.libdevice.tanh(s))
"""


def test_arguments_are_broadcast_and_may_be_scalars(rng: np.random.Generator) -> None:
    x, y = rng.standard_normal(8), rng.standard_normal(4)
    out, scalar = np.zeros((8, 4)), np.zeros(1, np.float32)
    kernels_of(SHAPES).kernel[(1,)](x, y, out, scalar, 0.5)
    np.testing.assert_allclose(out, np.hypot(x[:, None], y), rtol=1e-14)
    np.testing.assert_allclose(scalar, np.tanh(0.5), rtol=1e-6)


def test_the_cpu_has_every_function() -> None:
    assert set(RULES) | set(SIGNED) | set(UNSIGNED) == set(libdevice.FUNCTIONS)


def test_narrow_floats_are_computed_with_in_fp32(rng: np.random.Generator) -> None:
    x, y = rng.uniform(-2, 2, (2, 100)).astype(np.float16)
    want = np.hypot(x.astype(np.float32), y.astype(np.float32))
    np.testing.assert_allclose(apply("hypot(a, b)", x, y, out=np.float32), want, rtol=1e-6)


def test_libdevice_is_found_in_tl() -> None:
    assert tl.extra.libdevice is libdevice


@core.extern
def larger_or_power(x, y, _semantic=None):
    table = {
        (core.dtype("fp32"),) * 2: ("__nv_powf", core.dtype("fp32")),
        (core.dtype("fp64"),) * 2: ("__nv_pow", core.dtype("fp64")),
        (core.dtype("int32"),) * 2: ("__nv_max", core.dtype("int32")),
    }
    return core.extern_elementwise("", "", [x, y], table, is_pure=True, _semantic=_semantic)


@proton.jit
def of_a_table(x_ptr, y_ptr, out_ptr, N: tl.constexpr):
    offs = tl.arange(0, N)
    x, y = tl.load(x_ptr + offs), tl.load(y_ptr + offs)
    tl.store(out_ptr + offs, larger_or_power(x, y))


@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_a_table_of_ones_own(rng: np.random.Generator, dtype: str) -> None:
    x, y = rng.uniform(1, 9, (2, 64)).astype(dtype)
    out = np.zeros(64, dtype)
    of_a_table[(1,)](x, y, out, N=64)
    want = np.maximum(x, y) if dtype == "int32" else np.power(x, y)
    np.testing.assert_allclose(out, want, rtol=1e-5)


def test_a_table_says_what_it_takes() -> None:
    x = np.zeros(64, np.int64)
    with pytest.raises(proton.CompilationError, match=r"takes \(fp32, fp32\) or .*got \(i64, i64"):
        of_a_table[(1,)](x, x, x, N=64)
