"""The type of `x op y`, against Triton's rules written down once more, by hand.

A kernel computes on two scalar parameters and hands the dtype of the result to a function
that runs while compiling, so no back end takes part.
"""

import itertools
from typing import Any

import pytest

import proton.language as tl
from proton.base.errors import CompilationError
from proton.dialect.context import mlir_context
from proton.frontend import Signature, build_module
from proton.language.function import DeviceFunction
from tests.tables import check_rows

SIGNED = ("int8", "int16", "int32", "int64")
UNSIGNED = ("uint8", "uint16", "uint32", "uint64")
INTEGERS = (*SIGNED, *UNSIGNED)
FLOATS = ("float16", "bfloat16", "float32", "float64")
TYPES = ("int1", *INTEGERS, *FLOATS)

# Two floating-point types, without regard to order: where they meet, and where for / and %.
FLOAT_PAIRS = {
    ("float64", "float64"): ("float64", "float64"),
    ("float64", "float32"): ("float64", "float64"),
    ("float64", "float16"): ("float64", "float64"),
    ("float64", "bfloat16"): ("float64", "float64"),
    ("float32", "float32"): ("float32", "float32"),
    ("float32", "float16"): ("float32", "float32"),
    ("float32", "bfloat16"): ("float32", "float32"),
    ("float16", "float16"): ("float16", "float32"),
    ("float16", "bfloat16"): ("float16", "float32"),
    ("bfloat16", "bfloat16"): ("bfloat16", "float32"),
}
# A floating-point type with an integer or boolean tensor.
FLOAT_WITH_INTEGER = {
    "float64": ("float64", "float64"),
    "float32": ("float32", "float32"),
    "float16": ("float16", "float32"),
    "bfloat16": ("float32", "float32"),
}


def bits(name: str) -> int:
    return int(name.lstrip("uint"))


def meet(a: str, b: str, *, division: bool = False) -> str:
    """The type in which two tensors meet."""
    if a in FLOATS and b in FLOATS:
        pair = (a, b) if (a, b) in FLOAT_PAIRS else (b, a)
        return FLOAT_PAIRS[pair][division]
    if a in FLOATS or b in FLOATS:
        return FLOAT_WITH_INTEGER[a if a in FLOATS else b][division]
    return meet_integers(a, b)


def meet_integers(a: str, b: str) -> str:
    """The wider one; of two equally wide ones the unsigned; a boolean gives way to any."""
    if bits(a) != bits(b):
        return a if bits(a) > bits(b) else b
    return a if a.startswith("u") else b


SEEN: list[Any] = []


@tl.constexpr_function
def see(dtype: Any) -> None:
    SEEN.append(dtype)


@DeviceFunction
def add(x, y):
    see((x + y).dtype)


@DeviceFunction
def multiply(x, y):
    see((x * y).dtype)


@DeviceFunction
def maximum(x, y):
    see(tl.maximum(x, y).dtype)


@DeviceFunction
def where(x, y):
    see(tl.where(True, x, y).dtype)


@DeviceFunction
def bitwise_and(x, y):
    see((x & y).dtype)


@DeviceFunction
def shift(x, y):
    see((x << y).dtype)


@DeviceFunction
def less(x, y):
    see((x < y).dtype)


@DeviceFunction
def remainder(x, y):
    see((x % y).dtype)


@DeviceFunction
def divide(x, y):
    see((x / y).dtype)


@DeviceFunction
def floor_divide(x, y):
    see((x // y).dtype)


@DeviceFunction
def modulo(x, y):
    see((x % y).dtype)


@DeviceFunction
def add_blocks(x, y):
    see((tl.full((4,), x, x.dtype) + y).dtype)


@DeviceFunction
def number_right(x, NUMBER: tl.constexpr):
    see((x + NUMBER).dtype)


@DeviceFunction
def number_left(x, NUMBER: tl.constexpr):
    see((NUMBER * x).dtype)


@DeviceFunction
def divide_by_number(x, NUMBER: tl.constexpr):
    see((x / NUMBER).dtype)


@DeviceFunction
def negate(x):
    see((-x).dtype)


@DeviceFunction
def total(x):
    see(tl.sum(tl.full((4,), x, x.dtype), axis=0).dtype)


def result_of(kernel: DeviceFunction, types: list[str], **constants: Any) -> str:
    """The name of the dtype that the kernel shows for parameters of these types."""
    names = [n for n in kernel.arg_names if n not in constants]
    signature = Signature(
        {name: tl.dtype(type_) for name, type_ in zip(names, types, strict=True)}, constants
    )
    SEEN.clear()
    with mlir_context():
        assert build_module(kernel, signature).operation.verify()
    (dtype,) = SEEN
    return str(dtype.name)


PAIRS = list(itertools.product(TYPES, TYPES))


@pytest.mark.parametrize(
    "kernel", [add, multiply, maximum, where, add_blocks], ids=lambda k: k.__name__
)
def test_two_tensors_meet(kernel: DeviceFunction) -> None:
    def check(a: str, b: str) -> None:
        assert result_of(kernel, [a, b]) == meet(a, b)

    check_rows(check, PAIRS)


def test_a_comparison_is_int1() -> None:
    def check(a: str, b: str) -> None:
        assert result_of(less, [a, b]) == "int1"

    check_rows(check, PAIRS)


@pytest.mark.parametrize("kernel", [bitwise_and, shift], ids=lambda k: k.__name__)
def test_bitwise_ops_take_integers(kernel: DeviceFunction) -> None:
    def check(a: str, b: str) -> None:
        assert result_of(kernel, [a, b]) == meet_integers(a, b)

    check_rows(check, itertools.product(INTEGERS, INTEGERS))


def test_bitwise_ops_refuse_floats() -> None:
    def check(a: str, b: str) -> None:
        with pytest.raises(CompilationError, match="&: invalid operands of type"):
            result_of(bitwise_and, [a, b])

    check_rows(check, itertools.product(SIGNED, FLOATS))


# Division


def test_true_division_gives_floating_point() -> None:
    def check(a: str, b: str) -> None:
        both_integers = a in SIGNED and b in SIGNED
        expected = "float32" if both_integers else meet(a, b, division=True)
        assert result_of(divide, [a, b]) == expected

    check_rows(check, itertools.product((*SIGNED, *FLOATS), repeat=2))


@pytest.mark.parametrize("kernel", [floor_divide, modulo], ids=lambda k: k.__name__)
@pytest.mark.parametrize("kind", [SIGNED, UNSIGNED], ids=["signed", "unsigned"])
def test_integer_division_stays_integer(kernel: DeviceFunction, kind: tuple[str, ...]) -> None:
    def check(a: str, b: str) -> None:
        assert result_of(kernel, [a, b]) == meet_integers(a, b)

    check_rows(check, itertools.product(kind, kind))


@pytest.mark.parametrize("kernel", [floor_divide, modulo], ids=lambda k: k.__name__)
@pytest.mark.parametrize("a, b", [("int32", "uint32"), ("uint8", "int64"), ("int8", "uint64")])
def test_integer_division_does_not_mix_signs(kernel: DeviceFunction, a: str, b: str) -> None:
    with pytest.raises(CompilationError, match="because they have different signedness"):
        result_of(kernel, [a, b])


def test_the_remainder_of_halves_is_fp32() -> None:
    def check(a: str, b: str) -> None:
        assert result_of(modulo, [a, b]) == meet(a, b, division=True)

    check_rows(check, itertools.product(FLOATS, FLOATS))


@pytest.mark.parametrize("type_", FLOATS)
def test_floor_division_is_for_integers(type_: str) -> None:
    with pytest.raises(CompilationError, match="//: invalid operands of type"):
        result_of(floor_divide, [type_, type_])


# Python numbers


@pytest.mark.parametrize("kernel", [number_right, number_left], ids=lambda k: k.__name__)
def test_a_number_of_no_higher_kind_takes_the_type(kernel: DeviceFunction) -> None:
    kinds = {"int1": 0} | dict.fromkeys(INTEGERS, 1) | dict.fromkeys(FLOATS, 2)

    def check(type_: str, number: Any) -> None:
        own = {bool: ("int1", 0), int: ("int32", 1), float: ("float32", 2)}[type(number)]
        expected = type_ if own[1] <= kinds[type_] else meet(own[0], type_)
        assert result_of(kernel, [type_], NUMBER=number) == expected

    check_rows(check, itertools.product(TYPES, (True, 3, 2.5)))


@pytest.mark.parametrize(
    "type_, number, expected",
    [
        ("int1", 7, "int32"),
        ("int1", 2**31, "uint32"),
        ("int1", 2**40, "int64"),
        ("int1", 2**63, "uint64"),
        ("int32", 1e300, "float64"),  # not finite in fp32
        ("int32", 1e-300, "float64"),
        ("int32", float("inf"), "float32"),
        ("int32", 0.0, "float32"),
        ("float16", 1e300, "float16"),  # of no higher kind
    ],
)
def test_the_default_type_of_a_number_is_the_least_that_holds_it(
    type_: str, number: Any, expected: str
) -> None:
    assert result_of(number_right, [type_], NUMBER=number) == expected


@pytest.mark.parametrize("type_, number", [("int8", 128), ("uint8", 256), ("int32", 2**31)])
def test_a_number_must_fit(type_: str, number: int) -> None:
    with pytest.raises(CompilationError, match=f"number {number} is out of range"):
        result_of(number_right, [type_], NUMBER=number)


@pytest.mark.parametrize("type_", UNSIGNED)
def test_a_negative_number_does_not_meet_unsigned(type_: str) -> None:
    with pytest.raises(CompilationError, match="negative number -1 cannot be used with unsigned"):
        result_of(number_right, [type_], NUMBER=-1)


@pytest.mark.parametrize("type_", [*SIGNED, *FLOATS])
def test_division_by_a_number(type_: str) -> None:
    expected = "float64" if type_ == "float64" else "float32"
    assert result_of(divide_by_number, [type_], NUMBER=2) == expected


# One operand


@pytest.mark.parametrize("type_", [*INTEGERS, *FLOATS])
def test_negation_keeps_the_type(type_: str) -> None:
    assert result_of(negate, [type_]) == type_


@pytest.mark.parametrize("type_", TYPES)
def test_narrow_integers_are_summed_in_32_bits(type_: str) -> None:
    narrow = type_ == "int1" or (type_ in INTEGERS and bits(type_) < 32)
    wide = "uint32" if type_ == "int1" or type_.startswith("u") else "int32"
    assert result_of(total, [type_]) == (wide if narrow else type_)


# fp8 is a type of memory

FP8 = ("float8e5", "float8e4nv")


@pytest.mark.parametrize("kernel", [add, multiply, maximum], ids=lambda k: k.__name__)
def test_fp8_keeps_its_type_and_two_of_them_meet_in_fp16(kernel: DeviceFunction) -> None:
    def check(a: str, b: str) -> None:
        assert result_of(kernel, [a, b]) == (a if a == b else "float16")

    check_rows(check, itertools.product(FP8, FP8))


@pytest.mark.parametrize("type_", FP8)
def test_a_number_does_not_change_the_type_of_fp8(type_: str) -> None:
    assert result_of(number_right, [type_], NUMBER=2.0) == type_
    assert result_of(number_left, [type_], NUMBER=1) == type_
    assert result_of(negate, [type_]) == type_


@pytest.mark.parametrize("a", FP8)
@pytest.mark.parametrize(
    "b, met",
    [
        ("float16", "float16"),
        ("bfloat16", "float32"),
        ("float32", "float32"),
        ("float64", "float64"),
    ],
)
def test_fp8_meets_wider_floats(a: str, b: str, met: str) -> None:
    assert result_of(add, [a, b]) == met
    assert result_of(add, [b, a]) == met


@pytest.mark.parametrize("kernel", [divide, remainder], ids=lambda k: k.__name__)
def test_what_is_divided_with_a_float_is_fp32(kernel: DeviceFunction) -> None:
    """As in Triton: of all floats below fp64, and of integers with them."""

    def check(a: str, b: str) -> None:
        assert result_of(kernel, [a, b]) == "float32"

    floats = (*FP8, "float16", "bfloat16", "float32")
    check_rows(check, itertools.product(floats, floats))
    check_rows(check, [*itertools.product(FP8, INTEGERS), *itertools.product(INTEGERS, FP8)])


@pytest.mark.parametrize("kernel", [add, less, where], ids=lambda k: k.__name__)
def test_fp8_does_not_meet_integers(kernel: DeviceFunction) -> None:
    def check(*types: str) -> None:
        with pytest.raises(CompilationError, match="fp8 cannot be mixed with integers"):
            result_of(kernel, list(types))

    integers = ("int1", *INTEGERS)
    check_rows(check, [*itertools.product(FP8, integers), *itertools.product(integers, FP8)])


@pytest.mark.parametrize("type_", FP8)
def test_choosing_between_fp8_values_keeps_the_type(type_: str) -> None:
    assert result_of(where, [type_, type_]) == type_
    assert result_of(less, [type_, type_]) == "int1"
