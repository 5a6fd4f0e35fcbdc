"""Numbers in variables are scalars with a type, as in Triton; those in expressions have none.

The types are those that Triton 3.9 prints for the same kernel (`tl.static_print`).
"""

import re

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.cpu.harness import kernels_of

HALF = tl.constexpr(0.5)


@proton.jit
def half():
    return 0.5


@proton.jit
def same(x):
    return x


@proton.jit
def is_wide(x, scale):
    return (x * scale).dtype == tl.float32


@proton.jit
def printed(x_ptr, n, SIZE: tl.constexpr):
    i = tl.arange(0, 32)
    x = tl.load(x_ptr + i)
    byte, bits, word = i.to(tl.int8), i.to(tl.uint8), i.to(tl.uint32)
    a = 0.5
    b, c = -a, a * 2
    d, e, g, h = SIZE / 2, HALF, half(), same(0.5)
    written: tl.constexpr = SIZE * 0.5
    tl.static_print((x * b).dtype, (x * c).dtype, (x * d).dtype, (x * e).dtype, (x * g).dtype)
    tl.static_print((x * h).dtype, (x * HALF).dtype, (x * half()).dtype, (x * same(0.5)).dtype)
    tl.static_print((x * written).dtype, (x * (written * 2)).dtype, is_wide(x, a), is_wide(x, 0.5))
    pair = (0.5, 3)
    tl.static_print((x * pair[0]).dtype, (byte * pair[1]).dtype)
    m = 3
    z = SIZE * 3 + m
    tl.static_print((byte + m).dtype, (byte + 3).dtype, (byte + z).dtype, (byte + m * 3).dtype)
    tl.static_print((byte + SIZE * 3).dtype, (byte + tl.cdiv(SIZE, 2)).dtype, (bits >> m).dtype)
    tl.static_print(tl.minimum(byte, m).dtype, tl.maximum(x, a).dtype, (byte + max(m, 3)).dtype)
    tl.static_print(tl.where(x > 0, x, a).dtype, tl.where(x > 0, x, 0.5).dtype, (x / m).dtype)
    large, infinite, yes = 2654435769, float("-inf"), True
    tl.static_print((i * large).dtype, (word * large).dtype, (i.to(tl.int64) * large).dtype)
    tl.static_print(tl.where(x > 0, x, infinite).dtype, (x + yes).dtype, (byte + yes).dtype)
    s = a
    s *= 2
    tl.static_print((x * s).dtype, (x * tl.abs(b)).dtype, (tl.sum(x) * a).dtype, (n * a).dtype)
    if (w := 0.5) > 0:
        tl.static_print((x * w).dtype)
    total = 0.0
    for k in tl.static_range(1):
        total += x
        tl.static_print(total.dtype, (byte * k).dtype)


TYPES = """\
fp32 fp32 fp32 fp32 fp32
fp32 fp16 fp16 fp16
fp16 fp16 True False
fp32 int32
int32 int8 int32 int32
int8 int8 int32
int32 fp32 int32
fp32 fp16 fp32
uint32 uint32 int64
fp32 fp16 int8
fp32 fp32 fp32 fp32
fp32
fp32 int8
"""


@pytest.mark.interpreted
def test_types_are_those_that_triton_prints(capsys: pytest.CaptureFixture[str]) -> None:
    printed[(1,)](np.zeros(32, np.float16), 3, 2)
    out = capsys.readouterr().out
    assert out.endswith(TYPES), out


@proton.jit
def computed(x_ptr, byte_ptr, sum_ptr, product_ptr, wrapped_ptr, ROWS: tl.constexpr):
    i = tl.arange(0, 64)
    total, factor, large = 0.0, 100, 2147483647
    for row in tl.static_range(ROWS):
        total += tl.load(x_ptr + row * 64 + i)
    tl.store(sum_ptr + i, total)
    tl.store(product_ptr + i, tl.load(byte_ptr + i) * factor)
    tl.store(wrapped_ptr, large + 1)
    tl.store(wrapped_ptr + 1, (0 - 7) // 2)
    negative = -7
    tl.store(wrapped_ptr + 2, negative // 2)
    tl.store(wrapped_ptr + 3, negative % 3)
    tl.store(wrapped_ptr + 4, tl.sum(tl.zeros([factor // 25], tl.int32) + 1))


@pytest.mark.interpreted
def test_sums_and_products_are_computed_in_the_type_of_the_variable(
    rng: np.random.Generator,
) -> None:
    x = rng.uniform(0, 4096, (40, 64)).astype(np.float16)
    byte = rng.integers(0, 256, 64, np.uint8)
    total, product, wrapped = (
        np.empty(64, np.float32),
        np.empty(64, np.int32),
        np.empty(5, np.int64),
    )
    computed[(1,)](x, byte, total, product, wrapped, 40)
    np.testing.assert_allclose(total, x.astype(np.float64).sum(0), rtol=1e-5)
    assert (product == byte.astype(np.int64) * 100).all()  # beyond 8 bits
    # A scalar wraps around and is divided as C does; what is written at one place is Python's.
    assert wrapped.tolist() == [-(2**31), -4, -3, -1, 4]


@proton.jit(noinline=True)
def scaled(x, factor):
    return (x * factor).to(tl.float32)


@proton.jit
def call_both(x_ptr, out_ptr):
    i = tl.arange(0, 64)
    factor = 0.1
    tl.store(out_ptr + i, scaled(tl.load(x_ptr + i), factor))
    tl.store(out_ptr + 64 + i, scaled(tl.load(x_ptr + i), 0.1))


@pytest.mark.interpreted
def test_a_function_is_compiled_for_each_of_two_types_of_a_number(rng: np.random.Generator) -> None:
    x, out = rng.normal(size=64).astype(np.float16), np.empty((2, 64), np.float32)
    call_both[(1,)](x, out)
    np.testing.assert_array_equal(out[0], x.astype(np.float32) * np.float32(0.1))
    np.testing.assert_array_equal(out[1], (x * np.float16(0.1)).astype(np.float32))


@proton.jit
def carries(x_ptr, out_ptr, n):
    i = tl.arange(0, 16)
    width = 16
    pair = (width, 1)
    for k in range(n):
        pair = (width, k)
    tl.static_assert(pair[0] == 16)
    if n > 2:
        width = 16
    else:
        width = 16
    tl.store(out_ptr + tl.arange(0, width), tl.load(x_ptr + i) + pair[1])


@pytest.mark.interpreted
def test_what_loops_and_branches_leave_alone_stays_known(rng: np.random.Generator) -> None:
    x, out = rng.integers(-9, 9, 16).astype(np.int32), np.zeros(16, np.int32)
    carries[(1,)](x, out, 5)
    assert (out == x + 4).all()


@proton.jit(do_not_specialize=["x", "y"])
def meets(
    out_ptr, wide_ptr, x, y, X: tl.constexpr, Y: tl.constexpr, KNOWN: tl.constexpr,
    OP: tl.constexpr,
):  # fmt: skip
    if KNOWN:
        a, b = X, Y
    else:
        a, b = x.to(tl.uint32) if 2147483647 < X < 4294967296 else x, y
    if OP == "//":
        r = a // b
    elif OP == "%":
        r = a % b
    elif OP == "/":
        r = a / b
    elif OP == "*":
        r = a * b
    elif OP == ">>":
        r = a >> (b & 15)
    elif OP == "<":
        r = a < b
    elif OP == "-":
        r = -a
    else:
        r = tl.maximum(a, b)
    tl.store(out_ptr, r)
    tl.store(wide_ptr, r)


NUMBERS = (7, -7, 3, 16777217, 2**31 - 1, -(2**31), 3000000000, 2**40 + 1, -(2**62) + 1, 0.1, -7.5)
OPERATORS = ("//", "%", "/", "*", ">>", "<", "-", "max")


def found(x: float, y: float, op: str, *, known: bool) -> tuple[np.ndarray, np.ndarray]:
    out = np.zeros(1, np.float64), np.zeros(1, np.int64)
    meets[(1,)](*out, x, y, x, y, KNOWN=known, OP=op)
    return out


@pytest.mark.interpreted
def test_numbers_that_are_known_are_computed_as_those_that_are_not(
    rng: np.random.Generator,
) -> None:
    """The same kernel with numbers in variables and with arguments."""
    refused = "invalid operands|signedness"
    compared = 0
    for op in OPERATORS:
        for _ in range(6):
            x, y = (NUMBERS[n] for n in rng.integers(len(NUMBERS), size=2))
            if isinstance(y, int) and 2**31 <= y < 2**32:
                y = 5
            try:
                was, whole = found(x, y, op, known=False)
            except proton.CompilationError as problem:
                if not re.search(refused, str(problem)):
                    raise
                continue
            now, whole_now = found(x, y, op, known=True)
            compared += 1
            assert was == now, (op, x, y)
            assert abs(was) > 2**52 or whole == whole_now, (op, x, y)
    assert compared >= 20


@proton.jit
def remainders(out_ptr):
    large, small = 4611686018427387903, -5000000001
    tl.store(out_ptr, small % 3)
    tl.store(out_ptr + 1, -large % 4611686018427387900)
    tl.store(out_ptr + 2, -large // 3)
    tl.static_assert((small % 3).dtype == tl.int64)


@pytest.mark.interpreted
def test_remainders_of_integers_are_exact() -> None:
    out = np.zeros(3, np.int64)
    remainders[(1,)](out)
    large = 4611686018427387903
    assert out.tolist() == [-(5000000001 % 3), -3, -(large // 3)]


@proton.jit
def compares(out_ptr, SCALE: tl.constexpr):
    scale, negative, bits = 0.3, -1, 4294967295
    given = SCALE
    tl.store(out_ptr, scale == 0.3)
    tl.store(out_ptr + 1, scale > 0.3)
    tl.store(out_ptr + 2, SCALE > 0.1)
    tl.store(out_ptr + 3, given != SCALE)
    tl.store(out_ptr + 4, negative == bits)
    tl.store(out_ptr + 5, bits > -1)
    if scale == 0.3:
        tl.store(out_ptr + 6, 1)


@pytest.mark.interpreted
def test_a_number_is_compared_in_the_type_of_the_variable() -> None:
    """0.3 as fp32 is more than 0.3."""
    out = np.full(7, 7, np.int32)
    compares[(1,)](out, 0.1)
    assert out.tolist() == [1, 0, 0, 0, 1, 1, 1]


@proton.jit
def beyond(out_ptr, OP: tl.constexpr):
    factor, bits = 7, 4294967295
    if OP == "wide":
        tl.store(out_ptr, factor * 5000000000)
    if OP == "negative":
        tl.store(out_ptr, bits & -2)
    if OP == "signs":
        tl.store(out_ptr, bits // factor)


@pytest.mark.interpreted
@pytest.mark.parametrize(
    ("operation", "message"),
    [
        ("wide", "number 5000000000 is out of range of i32"),
        ("negative", "negative number -2 cannot be used with unsigned u32"),
        ("signs", "u32 and i32 because they have different signedness"),
    ],
)
def test_a_number_that_a_type_does_not_have_is_refused(operation: str, message: str) -> None:
    with pytest.raises(proton.CompilationError, match=message):
        beyond[(1,)](np.zeros(1, np.int64), operation)


@proton.jit
def zeros_of_both_signs(out_ptr, n):
    if n > 2:
        zero = 0.0
    else:
        zero = -0.0
    turned = 0.0
    for _ in range(n):
        turned = -0.0
    tl.store(out_ptr, zero)
    tl.store(out_ptr + 1, turned)


@pytest.mark.interpreted
@pytest.mark.parametrize("n", [0, 1, 3])
def test_zeros_of_both_signs_are_two_numbers(n: int) -> None:
    out = np.ones(2, np.float32)
    zeros_of_both_signs[(1,)](out, n)
    assert np.signbit(out).tolist() == [n <= 2, n > 0]


# expression -> the type and the number that Triton 3.9 gives it (in its IR, simplified); t, f, n
# are variables, FLAG, N constexprs, one and byte are tensors
BOOLS = {
    "~t": ("int1", 0), "-t": ("int1", 1), "+t": ("int1", 1), "not t": ("int1", 0),
    "~f": ("int1", 1), "-f": ("int1", 0), "not n": ("int1", 0), "~~t": ("int1", 1),
    "t + t": ("int1", 0), "t + True": ("int1", 0), "f - t": ("int1", 1), "t * t": ("int1", 1),
    "t - FLAG": ("int1", 0), "FLAG + f": ("int1", 1), "t ^ t": ("int1", 0), "t | f": ("int1", 1),
    "t // t": ("int1", 1), "t % t": ("int1", 0), "t >> t": ("int1", 0),
    "-1 >> t": ("int32", 2**31 - 1),
    "-1 >> one": ("int32", 2**31 - 1), "-n >> 1": ("int32", -2),
    "t + n": ("int32", 4), "t + 1": ("int32", 2), "t & 6": ("int32", 0), "t | 6": ("int32", 7),
    "t * 0.5": ("fp32", 0.5), "t / t": ("fp32", 1),
    "t + one": ("int1", 0), "one + True": ("int1", 0), "True - one": ("int1", 0),
    "~one": ("int1", 0),
    "byte + t": ("int8", 6), "byte * (n > 5)": ("int8", 0), "t == 1": ("int1", 1),
    "~(n > 2)": ("int1", 0), "-(n > 2)": ("int1", 1), "~(t == f)": ("int1", 1),
    "(n > 2) + (n > 2)": ("int1", 0), "(n > 2) + 1": ("int32", 2), "~(1 < n < 5)": ("int1", 0),
    "~(t and n > 2)": ("int1", 0), "~(f or n > 2)": ("int1", 0), "~(t and one)": ("int1", 0),
    "n and 2": ("int32", 3), "~(1 < N < 5)": ("int32", -2),
    "~(N > 2)": ("int32", -2), "~FLAG": ("int32", -2), "-True": ("int32", -1),
    "True + FLAG": ("int32", 2),
    "tl.add(True, FLAG)": ("int1", 0), "tl.maximum(True, N)": ("int32", 3),
    "tl.abs(True)": ("int1", 1),
    "tl.minimum(0.5, N) * half": ("fp32", 1.25), "min(0.5, N) * half": ("fp16", 1.25),
    "isinstance(t, tl.tensor)": ("int1", 1), "isinstance(t, tl.constexpr)": ("int1", 0),
    "isinstance(FLAG, tl.constexpr)": ("int1", 1),
}  # fmt: skip


@pytest.mark.interpreted
def test_bools_in_variables_are_numbers_of_one_bit(capfd: pytest.CaptureFixture[str]) -> None:
    lines = "".join(
        f"    y = {text}\n    tl.static_print(y.dtype)\n    tl.store(out + {place}, y)\n"
        for place, text in enumerate(BOOLS)
    )
    source = (
        "@proton.jit\ndef kernel(out, FLAG: tl.constexpr, N: tl.constexpr):\n"
        "    t, f, n, one = True, False, 3, tl.full((), 1, tl.int1)\n"
        "    byte, half = tl.full((), 5, tl.int8), tl.full((), 2.5, tl.float16)\n"
    )
    out = np.full(len(BOOLS), -9, np.float64)
    kernels_of(source + lines).kernel[(1,)](out, FLAG=True, N=3)
    types = capfd.readouterr().out.split()
    found = dict(zip(BOOLS, zip(types, out.tolist(), strict=True), strict=True))
    assert found == BOOLS


@proton.jit
def negates(flag):
    return ~flag


@proton.jit
def flips(x_ptr, out_ptr, n, UP: tl.constexpr):
    flag, seen, upwards = True, False, UP
    for k in range(n):
        flag = ~flag
        seen |= tl.load(x_ptr + k) > 3
    if ~seen:
        flag = not negates(flag)
    tl.store(out_ptr, flag)
    tl.store(out_ptr + 1, seen)
    i = tl.arange(0, 8)
    x = tl.load(x_ptr + i, mask=(i < n) & upwards, other=0)
    tl.store(out_ptr + 2 + i, tl.associative_scan(x, 0, smaller, reverse=upwards))


@proton.jit
def smaller(a, b):
    return tl.minimum(a, b)


@pytest.mark.interpreted
def test_bools_are_carried_passed_and_asked_for(rng: np.random.Generator) -> None:
    for n in (0, 1, 5, 8):
        x = rng.integers(0, 6, 8).astype(np.int32)
        for up in (True, False):
            out = np.full(10, -9, np.int32)
            flips[(1,)](x, out, n, UP=up)
            kept = np.where((np.arange(8) < n) & up, x, 0)
            least = np.minimum.accumulate(kept[::-1])[::-1] if up else np.minimum.accumulate(kept)
            assert out.tolist() == [n % 2 == 0, (x[:n] > 3).any(), *least]
