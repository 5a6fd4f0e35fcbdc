"""Operators and elementwise functions, bit for bit against numpy."""

import dataclasses
import fractions
import itertools
import operator
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.frontend.promotion import promote_integers
from tests.cpu.harness import (
    DTYPES,
    FLOATS,
    INTEGERS,
    NUMBERS,
    SIGNED,
    UNSIGNED,
    WIDE_FLOATS,
    apply,
    apply_all,
    apply_each,
    assert_number,
    assert_same,
    decode,
    encode,
    ordinary,
    sample,
    storage,
    truncated_division,
)
from tests.pairs import covering
from tests.tables import check_rows

SIZE = 777  # four blocks of 256, the last one partial


@pytest.fixture(autouse=True)
def quiet_numpy() -> Any:
    """The reference overflows and makes NaN on purpose."""
    with np.errstate(all="ignore"):
        yield


@dataclasses.dataclass(frozen=True)
class Row:
    """An expression of inputs that are all of one dtype, or each of its own, and what it gives."""

    expression: str
    inputs: Sequence[np.ndarray]
    dtypes: str | Sequence[str]
    out: str
    want: np.ndarray

    @property
    def typed(self) -> list[tuple[np.ndarray, str]]:
        same = isinstance(self.dtypes, str)
        dtypes = [self.dtypes] * len(self.inputs) if same else self.dtypes
        return list(zip(self.inputs, dtypes, strict=True))


def check_each(rows: dict[str, Row], compare: Callable[..., None] = assert_same) -> None:
    """Rows by name, computed by one kernel."""
    found = apply_each((row.expression, row.typed, row.out) for row in rows.values())
    got = dict(zip(rows, found, strict=True))

    def check(name: str) -> None:
        row = rows[name]
        compare(got[name], row.want, row.out, [decode(*given) for given in row.typed])

    check_rows(check, [(name,) for name in rows])


def binary(
    rng: np.random.Generator, expression: str, reference: Callable[..., Any], dtype: str, out: str
) -> Row:
    a, b = sample(rng, dtype, SIZE), sample(rng, dtype, SIZE)
    want = encode(np.asarray(reference(decode(a, dtype), decode(b, dtype))), out)
    return Row(expression, (a, b), dtype, out, want)


def check_operators(
    rng: np.random.Generator, functions: dict[str, Callable[..., Any]], dtype: str, out: str
) -> None:
    """Each `a symbol b` of one kernel against its function."""
    a, b = sample(rng, dtype, SIZE), sample(rng, dtype, SIZE)
    left, right = decode(a, dtype), decode(b, dtype)
    got = apply_all({f"a {symbol} b": out for symbol in functions}, (a, dtype), (b, dtype))

    def check(symbol: str) -> None:
        want = encode(np.asarray(functions[symbol](left, right)), out)
        assert_same(got[f"a {symbol} b"], want, out, [left, right])

    check_rows(check, [(symbol,) for symbol in functions])


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", NUMBERS)
def test_arithmetic(rng: np.random.Generator, dtype: str) -> None:
    functions = {"+": np.add, "-": np.subtract, "*": np.multiply}
    check_operators(rng, functions, dtype, dtype)


def in_fp32(
    rng: np.random.Generator, expression: str, reference: Callable[..., Any], dtype: str
) -> Row:
    """... of all but fp64."""
    out = dtype if dtype in WIDE_FLOATS else "float32"
    return binary(rng, expression, lambda a, b: reference(a.astype(out), b.astype(out)), dtype, out)


def test_true_division_of_narrow_floats_and_integers_is_done_in_fp32(
    rng: np.random.Generator,
) -> None:
    check_each({dtype: in_fp32(rng, "a / b", np.divide, dtype) for dtype in NUMBERS})


def nonzero_divisors(rng: np.random.Generator, dtype: str) -> tuple[np.ndarray, np.ndarray]:
    a, b = sample(rng, dtype, SIZE), sample(rng, dtype, SIZE)
    b = np.where(b == 0, 1, b).astype(dtype)
    if dtype in SIGNED:  # the least number by -1 overflows
        b = np.where((b == -1) & (a == np.iinfo(dtype).min), 2, b).astype(dtype)
    return a, b


def divided(rng: np.random.Generator, expression: str, function: Callable[..., Any]) -> None:
    rows = {}
    for dtype in INTEGERS:
        a, b = nonzero_divisors(rng, dtype)
        rows[dtype] = Row(expression, (a, b), dtype, dtype, function(a, b))
    check_each(rows)


def test_integer_division_rounds_towards_zero(rng: np.random.Generator) -> None:
    divided(rng, "a // b", truncated_division)


@pytest.mark.interpreted
def test_integer_remainder_has_the_sign_of_the_dividend(rng: np.random.Generator) -> None:
    divided(rng, "a % b", np.fmod)


def test_division_by_zero_and_overflow_do_not_trap(rng: np.random.Generator) -> None:
    given = {}
    for dtype in INTEGERS:
        a, b = sample(rng, dtype, SIZE), sample(rng, dtype, SIZE)
        b[::3] = 0
        if dtype in SIGNED:
            a[1::3], b[1::3] = np.iinfo(dtype).min, -1
        given[dtype] = (a, dtype), (b, dtype)
    expressions = ("a // b", "a % b", "(a // b) + (a % b)")
    found = apply_each((e, given[dtype], dtype) for e in expressions for dtype in INTEGERS)
    quotients = dict(zip(INTEGERS, found, strict=False))

    def check(dtype: str) -> None:
        (a, _), (b, _) = given[dtype]
        a, b, got = a[2::3], b[2::3], quotients[dtype][2::3]
        fine = (b != 0) & ((a != a.min()) | (b.astype(np.float64) != -1))
        assert_same(got[fine], truncated_division(a[fine], b[fine]), dtype)

    check_rows(check, [(dtype,) for dtype in INTEGERS])


def test_float_remainder(rng: np.random.Generator) -> None:
    check_each({dtype: in_fp32(rng, "a % b", np.fmod, dtype) for dtype in FLOATS})


@pytest.mark.parametrize("dtype", ["bool", *INTEGERS])
def test_bitwise(rng: np.random.Generator, dtype: str) -> None:
    functions = {"&": operator.and_, "|": operator.or_, "^": operator.xor}
    check_operators(rng, functions, dtype, dtype)


@pytest.mark.parametrize("left", INTEGERS)
def test_shifts(rng: np.random.Generator, left: str) -> None:
    """... by every type, in one kernel."""
    # The left side is converted to the common type, and its own sign says what comes in. 64 bits
    # hold what any left side is shifted to the right to.
    a, amount = sample(rng, left, SIZE), rng.integers(0, 64, SIZE, dtype=np.int8)
    outs = {r: promote_integers(getattr(tl, left), getattr(tl, r)).name for r in INTEGERS}
    by = {r: f"(b & {np.iinfo(out).bits - 1}).to(tl.{r})" for r, out in outs.items()}
    expressions = {f"a {op} {by[r]}": out for r, out in outs.items() for op in (">>", "<<")}
    got = apply_all(expressions, (a, left), (amount, "int8"))
    wide = a.astype("int64" if left in SIGNED else "uint64")

    def check(right: str, out: str) -> None:
        places = amount & (np.iinfo(out).bits - 1)
        want = (wide >> places.astype(wide.dtype)).astype(out)
        assert_same(got[f"a >> {by[right]}"], want, out, [a, places])
        want = np.left_shift(a.astype(out), places.astype(out))
        assert_same(got[f"a << {by[right]}"], want, out, [a, places])

    check_rows(check, outs.items())


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", DTYPES)
def test_comparisons(rng: np.random.Generator, dtype: str) -> None:
    functions = {"==": np.equal, "!=": np.not_equal, "<": np.less, "<=": np.less_equal}
    functions |= {">": np.greater, ">=": np.greater_equal}
    check_operators(rng, functions, dtype, "bool")


def test_where(rng: np.random.Generator) -> None:
    rows = {}
    for dtype in DTYPES:
        dtypes = ("bool", dtype, dtype)
        a, b, c = given = [sample(rng, kind, SIZE) for kind in dtypes]
        rows[dtype] = Row("tl.where(a, b, c)", given, dtypes, dtype, np.where(a, b, c))
    check_each(rows)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_extrema(rng: np.random.Generator, dtype: str) -> None:
    functions = {
        "tl.maximum(a, b)": np.fmax,
        "tl.minimum(a, b)": np.fmin,
        'tl.maximum(a, b, propagate_nan="ALL")': np.maximum,
        'tl.minimum(a, b, propagate_nan="ALL")': np.minimum,
    }
    a, b = sample(rng, dtype, SIZE), sample(rng, dtype, SIZE)
    got = apply_all(dict.fromkeys(functions, dtype), (a, dtype), (b, dtype))

    def check(expression: str) -> None:
        want = functions[expression](decode(a, dtype), decode(b, dtype))
        assert_number(got[expression], encode(want, dtype), dtype)

    check_rows(check, [(expression,) for expression in functions])


EXTREMA = ("maximum", "minimum")
CHANGES = {"-": np.negative, "~": np.invert}


@pytest.mark.parametrize("dtype", INTEGERS)
def test_extrema_of_three(rng: np.random.Generator, dtype: str) -> None:
    """One instruction on some chips, for which some assemblers have dropped the sign."""
    axes = {"outer": EXTREMA, "inner": EXTREMA, "change": list(CHANGES), "place": range(3)}
    rows = covering(axes, *(f"{x} {y}" for x, y in itertools.combinations(axes, 2)))
    values = [sample(rng, dtype, SIZE) for _ in range(3)]

    def expression(outer: str, inner: str, change: str, place: int) -> str:
        names = ["a", "b", "c"]
        names[place] = f"({change}{names[place]})"
        return f"tl.{outer}(tl.{inner}({names[0]}, {names[1]}), {names[2]})"

    expressions = {expression(*row): dtype for row in rows}
    got = apply_all(expressions, *((value, dtype) for value in values))

    def check(outer: str, inner: str, change: str, place: int) -> None:
        a, b, c = (CHANGES[change](v) if i == place else v for i, v in enumerate(values))
        want = getattr(np, outer)(getattr(np, inner)(a, b), c)
        assert_same(got[expression(outer, inner, change, place)], want, dtype, values)

    check_rows(check, rows)


@pytest.mark.parametrize("dtype", FLOATS)
def test_clamp(rng: np.random.Generator, dtype: str) -> None:
    a = sample(rng, dtype, SIZE)
    bounds = [encode(np.full(SIZE, x, np.float32), dtype) for x in (-3.5, 4.25)]
    functions = {
        "tl.clamp(a, b, c)": (np.fmin, np.fmax),
        'tl.clamp(a, b, c, propagate_nan="ALL")': (np.minimum, np.maximum),
    }
    got = apply_all(dict.fromkeys(functions, dtype), *((x, dtype) for x in (a, *bounds)))
    low, high = (decode(b, dtype) for b in bounds)

    def check(expression: str, lesser: Any, greater: Any) -> None:
        want = encode(lesser(greater(decode(a, dtype), low), high), dtype)
        assert_number(got[expression], want, dtype)

    check_rows(check, [(expression, *two) for expression, two in functions.items()])


def test_clamp_of_integers(rng: np.random.Generator) -> None:
    rows = {}
    for dtype in INTEGERS:
        a = sample(rng, dtype, SIZE)
        low, high = np.sort(sample(rng, dtype, 2 * SIZE).reshape(2, SIZE), axis=0)
        want = np.clip(a, low, high)
        rows[dtype] = Row("tl.clamp(a, b, c)", (a, low, high), dtype, dtype, want)
    check_each(rows)


def test_integers_of_one_width_are_joined_whatever_their_sign(rng: np.random.Generator) -> None:
    rows = {}
    for dtypes in zip(SIGNED, UNSIGNED, strict=True):
        a, b = given = [sample(rng, dtype, SIZE) for dtype in dtypes]
        for names, out, want in (("a, b", dtypes[0], b), ("b, a", dtypes[1], a)):
            expression = f"tl.split(tl.join({names}))[1]"
            rows[out] = Row(expression, given, dtypes, out, want.view(out))
    check_each(rows)


def exact_fma(a: np.ndarray, b: np.ndarray, c: np.ndarray, dtype: str) -> np.ndarray:
    """a * b + c of finite numbers, rounded once."""
    sums = [
        fractions.Fraction(x) * fractions.Fraction(y) + fractions.Fraction(z)
        for x, y, z in zip(a.tolist(), b.tolist(), c.tolist(), strict=True)
    ]
    near = np.array([float(s) for s in sums])
    # Rounded to odd, so that rounding again to fewer bits is exact.
    signs = np.array(
        [
            (s > fractions.Fraction(x)) - (s < fractions.Fraction(x))
            for s, x in zip(sums, near.tolist(), strict=True)
        ]
    )
    even = (near.view(np.int64) & 1) == 0
    odd = np.where((signs != 0) & even, np.nextafter(near, np.copysign(np.inf, signs)), near)
    return encode(near if dtype == "float64" else odd, dtype)


@pytest.mark.interpreted
def test_fma_rounds_once(rng: np.random.Generator) -> None:
    rows = {}
    for dtype in FLOATS:
        a, b, c = given = [ordinary(rng, dtype, SIZE) for _ in range(3)]
        c[::2] = encode(-decode(a, dtype)[::2] * decode(b, dtype)[::2], dtype)  # cancels
        want = exact_fma(*(decode(x, dtype) for x in given), dtype)
        rows[dtype] = Row("tl.fma(a, b, c)", given, dtype, dtype, want)
    check_each(rows, assert_number)


def test_products_and_sums_are_not_contracted(rng: np.random.Generator) -> None:
    rows = {}
    for dtype in WIDE_FLOATS:
        a, b, c = given = [ordinary(rng, dtype, SIZE) for _ in range(3)]
        rows[dtype] = Row("a * b + c", given, dtype, dtype, a * b + c)
    check_each(rows)


def unary(
    rng: np.random.Generator, expression: str, reference: Callable[..., Any], dtypes: Sequence[str]
) -> dict[str, Row]:
    rows = {}
    for dtype in dtypes:
        a = sample(rng, dtype, SIZE)
        want = encode(reference(decode(a, dtype)), dtype)
        rows[f"{expression} of {dtype}"] = Row(expression, [a], dtype, dtype, want)
    return rows


def test_invert(rng: np.random.Generator) -> None:
    check_each(unary(rng, "~a", np.invert, ("bool", *INTEGERS)))


def test_negation_and_absolute_value(rng: np.random.Generator) -> None:
    rows = unary(rng, "-a", np.negative, NUMBERS)
    for expression in ("tl.abs(a)", "abs(a)"):
        rows |= unary(rng, expression, np.abs, NUMBERS)
    check_each(rows)


@pytest.mark.interpreted
def test_umulhi(rng: np.random.Generator) -> None:
    rows = {}
    for dtype in ("uint32", "uint64", "int32", "int64"):
        a, b = given = [sample(rng, dtype, SIZE) for _ in range(2)]
        unsigned, bits = dtype.removeprefix("u"), np.iinfo(dtype).bits
        wide = a.view(f"u{unsigned}").astype(object) * b.view(f"u{unsigned}").astype(object)
        want = (wide >> bits).astype(f"u{unsigned}").view(dtype)
        rows[dtype] = Row("tl.umulhi(a, b)", given, dtype, dtype, want)
    check_each(rows)


def test_named_divisions(rng: np.random.Generator) -> None:
    names = ("tl.fdiv(a, b)", "tl.div_rn(a, b)")
    check_each({name: binary(rng, name, np.divide, "float32", "float32") for name in names})


def saturated(values: np.ndarray, out: str) -> np.ndarray:
    """Floats as integers: the nearest that the type has, of NaN 0; of 8 bits the low byte of 16, as
    Triton's code for GPUs has it."""
    if np.dtype(out).itemsize == 1:
        return saturated(values, out.replace("8", "16")).astype(out)
    info = np.iinfo(out)
    exact = np.nan_to_num(values.astype(np.float64), nan=0.0)
    inside = (exact > float(info.min) - 1) & (exact < float(info.max) + 1)
    whole = np.where(inside, exact, 0).astype(out)
    ends = np.array([info.max, info.min], out)
    return np.where(inside, whole, ends[(exact < 0).astype(int)])


@pytest.mark.interpreted
@pytest.mark.parametrize("dtype", DTYPES)
def test_casts(rng: np.random.Generator, dtype: str) -> None:
    """... to every dtype, by one kernel."""
    a = sample(rng, dtype, SIZE)
    casts = {f"a.to(tl.{'int1' if out == 'bool' else out})": out for out in DTYPES}
    found, values = apply_all(casts, (a, dtype)), decode(a, dtype)

    def check(cast: str, out: str) -> None:
        if dtype in FLOATS and out in INTEGERS:
            want = saturated(values, out)
        else:
            want = values != 0 if out == "bool" else encode(values, out)
        assert_same(found[cast], want, out, [values])

    check_rows(check, casts.items())


@pytest.mark.interpreted
def test_casts_towards_zero(rng: np.random.Generator) -> None:
    rows = {}
    for dtype, out in itertools.product(WIDE_FLOATS, FLOATS):
        if storage(dtype).itemsize <= storage(out).itemsize:
            continue
        a = sample(rng, dtype, SIZE)
        nearest = encode(a, out)
        too_far = np.abs(decode(nearest, out).astype(dtype)) > np.abs(a)
        bits = nearest.view(f"u{nearest.itemsize}")
        want = np.where(too_far, bits - 1, bits).astype(bits.dtype).view(nearest.dtype)
        expression = f'a.to(tl.{out}, fp_downcast_rounding="rtz")'
        rows[f"{dtype} to {out}"] = Row(expression, [a], dtype, out, want)
    check_each(rows)


@pytest.mark.parametrize("dtype", NUMBERS)
def test_bitcasts(rng: np.random.Generator, dtype: str) -> None:
    """... to every dtype of its width, stored or computed with."""
    a = sample(rng, dtype, SIZE)
    outs = [out for out in NUMBERS if storage(out).itemsize == storage(dtype).itemsize]
    casts = {f"a.to(tl.{out}, bitcast=True)": out for out in outs}
    stored = apply_all(casts, (a, dtype))
    wide = apply_all({f"{cast}.to(tl.float64)": "float64" for cast in casts}, (a, dtype))
    unsigned = f"u{a.itemsize}"
    for cast, out in casts.items():
        assert (stored[cast].view(unsigned) == a.view(unsigned)).all(), cast
        want = decode(a.view(storage(out)), out).astype(np.float64)
        assert_same(wide[f"{cast}.to(tl.float64)"], want, "float64", [want])


@pytest.mark.parametrize("size", [0, 1, 2, 255, 256, 257, 1000])
@pytest.mark.parametrize("dtype", ["int8", "bfloat16", "float64"])
def test_every_size(rng: np.random.Generator, dtype: str, size: int) -> None:
    a, b = ordinary(rng, dtype, size), ordinary(rng, dtype, size)
    got = apply("a + b", (a, dtype), (b, dtype), out=dtype)
    assert_same(got, encode(decode(a, dtype) + decode(b, dtype), dtype), dtype)


@pytest.mark.interpreted
def test_operands_of_two_dtypes_meet_in_one(rng: np.random.Generator) -> None:
    rows = {}
    for a, b, out in (
        ("int8", "int32", "int32"),
        ("uint8", "int16", "int16"),
        ("int32", "uint32", "uint32"),
        ("uint16", "int64", "int64"),
        ("int32", "float32", "float32"),
        ("float16", "float32", "float32"),
        ("bfloat16", "float32", "float32"),
        ("float16", "float64", "float64"),
        ("int64", "float16", "float16"),
        ("bool", "int32", "int32"),
    ):
        x, y = ordinary(rng, a, SIZE), ordinary(rng, b, SIZE)
        want = encode(decode(x, a), out) + encode(decode(y, b), out)
        rows[f"{a} + {b}"] = Row("a + b", (x, y), (a, b), out, want)
    check_each(rows)


def test_numbers_take_the_type_of_the_tensor(rng: np.random.Generator) -> None:
    rows = {}
    for dtype in UNSIGNED + SIGNED:
        a, (seven, three, one) = sample(rng, dtype, SIZE), (np.array(x, dtype) for x in (7, 3, 1))
        want = (a + seven) * three - one
        rows[dtype] = Row("(a + 7) * 3 - 1", [a], dtype, dtype, want)
    check_each(rows)


# Comparisons of positions


@proton.jit
def positions(x, out, n, B: tl.constexpr, LOW: tl.constexpr):
    """`x` at [LOW, n), else -1; and how many positions come before each."""
    at = tl.arange(0, B)
    inside = (at < n) & (at >= LOW)
    before = tl.sum(tl.where(at[None, :] < at[:, None], 1, 0), axis=1)
    tl.store(out + at, tl.where(inside, tl.load(x + at), -1))
    tl.store(out + B + at, before)
    shifted = tl.arange(LOW, LOW + B)
    tl.store(out + 2 * B + at, tl.where(shifted < n, 1, 0))


@pytest.mark.parametrize("size", [1, 2, 16, 128])
@pytest.mark.parametrize("low", [0, 3])
def test_comparisons_of_positions(rng: np.random.Generator, size: int, low: int) -> None:
    x, at = rng.integers(0, 1 << 30, size, dtype=np.int32), np.arange(size)
    for n in (-(1 << 31), -1, 0, 1, size - 1, size, size + 2, (1 << 31) - 1):
        out = np.full((3, size), -7, np.int32)
        positions[(1,)](x, out, n, B=size, LOW=low)
        assert_same(out[0], np.where((at < n) & (at >= low), x, np.int32(-1)), "int32")
        assert_same(out[1], at.astype(np.int32), "int32")
        assert_same(out[2], (at + low < n).astype(np.int32), "int32")


@proton.jit
def below(out, n, B: tl.constexpr):
    at = tl.arange(0, B)
    tl.store(out + at, tl.where(at < n, 1, 0))


@pytest.mark.parametrize("size", [4096, 8192])  # a table, and too large for one
def test_comparisons_of_many_positions(rng: np.random.Generator, size: int) -> None:
    n, out = int(rng.integers(1, size)), np.full(size, -7, np.int32)
    below[(1,)](out, n, B=size)
    assert_same(out, (np.arange(size) < n).astype(np.int32), "int32")
