"""What the ops of `arith` and `math` are in numpy.

Functions of floats are computed in fp64 and rounded to the type, but for those that numpy rounds
correctly anyway.
"""

import ctypes
import ctypes.util
import functools
import operator
from collections.abc import Callable

import numpy as np

from proton.dialect import by_name, isa, tt
from proton.dialect.emit import predicate_of
from proton.dialect.mlir import Operation, arith, ir, llvm, math, ub
from proton.interpreter.formats import Array, Format, format_of, signed, unsigned
from proton.interpreter.interface import RunningProgram
from proton.interpreter.plan import Function, evaluates


def _type(op: Operation) -> Format:
    return format_of(op.results[0].type)


def _shape(op: Operation) -> tuple[int, ...]:
    type_ = op.results[0].type
    return tuple(type_.shape) if isinstance(type_, ir.RankedTensorType) else ()


@evaluates(arith.ConstantOp)
def _constant(op: Operation) -> Function:
    attribute = op.attributes["value"]
    if isinstance(attribute, ir.DenseElementsAttr):
        attribute = attribute.get_splat_value()
    form, number = _type(op), attribute.value
    if isinstance(attribute, ir.IntegerAttr):
        number = bool(number) if form.bits == 1 else int(number)
        value = np.full(_shape(op), number, form.storage)
    else:
        value = np.full(_shape(op), form.narrow(np.float64(number)), form.storage)
    value.flags.writeable = False
    return lambda program: value


@evaluates(ub.PoisonOp)
def _poison(op: Operation) -> Function:
    return lambda program: None


# Integers

_WITH_BITS: dict[str, Callable[[Array, Array], Array]] = {  # what i1 has in the place of arithmetic
    "addi": operator.xor,
    "subi": operator.xor,
    "muli": operator.and_,
    "shli": lambda a, b: a & ~b,
    "shrui": lambda a, b: a & ~b,
    "shrsi": lambda a, b: a,
    "divui": lambda a, b: a,
    "divsi": lambda a, b: a,
    "remui": lambda a, b: a & ~b,
    "remsi": lambda a, b: a & ~b,
}


def _or_one(b: Array) -> Array:
    """Divisors: of a division by zero the result is any number."""
    return np.where(b == 0, np.ones((), np.asarray(b).dtype), b)


def _quotient(a: Array, b: Array) -> Array:
    b = _or_one(b)
    return (a - np.fmod(a, b)) // b


def _of_unsigned(function: Callable[..., Array]) -> Callable[..., Array]:
    return lambda a, b: signed(function(unsigned(a), unsigned(b)))


_INTEGERS: dict[str, Callable[..., object]] = {
    "addi": operator.add,
    "subi": operator.sub,
    "muli": operator.mul,
    "divsi": _quotient,
    "remsi": lambda a, b: np.fmod(a, _or_one(b)),
    "divui": _of_unsigned(lambda a, b: a // _or_one(b)),
    "remui": _of_unsigned(lambda a, b: a % _or_one(b)),
    "andi": operator.and_,
    "ori": operator.or_,
    "xori": operator.xor,
    "shli": np.left_shift,
    "shrsi": np.right_shift,
    "shrui": _of_unsigned(np.right_shift),
    "minsi": np.minimum,
    "maxsi": np.maximum,
    "minui": _of_unsigned(np.minimum),
    "maxui": _of_unsigned(np.maximum),
}


@evaluates(*(f"arith.{name}" for name in _INTEGERS))
def _integers(op: Operation) -> Function:
    name = op.name.partition(".")[2]
    function = _INTEGERS[name]
    if _type(op).bits == 1:
        function = _WITH_BITS.get(name, function)
    return lambda program, a, b: function(a, b)


_COMPARED = {name: getattr(operator, name) for name in ("eq", "ne", "lt", "le", "gt", "ge")}


@evaluates(arith.CmpIOp)
def _compare_integers(op: Operation) -> Function:
    name = predicate_of(op).name
    function = _COMPARED[name[-2:]]
    if name.startswith("u"):
        function = _of_unsigned(function)
    return lambda program, a, b: function(a, b)


@evaluates(arith.CmpFOp)
def _compare_floats(op: Operation) -> Function:
    name = arith.CmpFPredicate(ir.IntegerAttr(op.attributes["predicate"]).value).name
    function = _COMPARED.get(name[1:].lower())  # ORD and UNO have none
    widen = format_of(op.operands[0].type).widen

    def compare(program: RunningProgram, a: Array, b: Array) -> Array:
        a, b = widen(a), widen(b)
        unordered = np.isnan(a) | np.isnan(b)
        if function is None:
            return unordered if name == "UNO" else ~unordered
        return function(a, b) | unordered if name[0] == "U" else function(a, b) & ~unordered

    return compare


@evaluates(arith.SelectOp)
def _select(op: Operation) -> Function:
    def select(program: RunningProgram, condition: Array, a: object, b: object) -> object:
        if isinstance(a, np.ndarray | np.generic) and isinstance(b, np.ndarray | np.generic):
            return np.where(condition, a, b)
        return a if condition else b

    return select


# Floats

_FLOATS: dict[str, Callable[..., Array]] = by_name(
    {
        arith.AddFOp: operator.add,
        arith.SubFOp: operator.sub,
        arith.MulFOp: operator.mul,
        arith.DivFOp: np.divide,
        arith.RemFOp: np.fmod,
        arith.NegFOp: operator.neg,
        arith.MaxNumFOp: np.fmax,
        arith.MinNumFOp: np.fmin,
        arith.MaximumFOp: np.maximum,
        arith.MinimumFOp: np.minimum,
        math.AbsFOp: np.abs,
        math.SqrtOp: np.sqrt,
        math.FloorOp: np.floor,
        math.CeilOp: np.ceil,
        math.TruncOp: np.trunc,
        math.RoundEvenOp: np.rint,
        math.CopySignOp: np.copysign,
        tt.PreciseSqrtOp: np.sqrt,
        tt.PreciseDivFOp: np.divide,
    }
)


@evaluates(*_FLOATS)
def _floats(op: Operation) -> Function:
    function, form = _FLOATS[op.name], _type(op)
    if form.widen is form.narrow or form.storage.kind == "f":
        return lambda program, *x: function(*x)
    widen, narrow = form.widen, form.narrow
    return lambda program, *x: narrow(function(*map(widen, x)))


@functools.cache
def c_function(name: str, arguments: tuple[str, ...], result: str) -> Callable[..., Array]:
    """A function of C's math library, on arrays; types by numpy's names."""
    library = ctypes.CDLL(ctypes.util.find_library("m"))
    function = getattr(library, name)
    function.argtypes = [np.ctypeslib.as_ctypes_type(dtype) for dtype in arguments]
    function.restype = np.ctypeslib.as_ctypes_type(result)
    each = np.frompyfunc(function, len(arguments), 1)
    return lambda *x: np.asarray(each(*x)).astype(result)


def _erf(x: Array) -> Array:
    return c_function("erf", ("float64",), "float64")(x)


_MATH: dict[str, Callable[..., Array]] = {
    "exp": np.exp,
    "exp2": np.exp2,
    "log": np.log,
    "log2": np.log2,
    "sin": np.sin,
    "cos": np.cos,
    "erf": _erf,
    "rsqrt": lambda x: 1 / np.sqrt(x),
}


@evaluates(*(f"math.{name}" for name in _MATH))
def _math(op: Operation) -> Function:
    function, form = _MATH[op.name.partition(".")[2]], _type(op)
    return lambda program, x: form.narrow(function(form.widen(x).astype(np.float64)))


@evaluates(math.FmaOp)
def _fma(op: Operation) -> Function:
    form = _type(op)
    if form.bits == 64:
        exact = c_function("fma", ("float64",) * 3, "float64")
        return lambda program, a, b, c: exact(a, b, c)

    def fma(program: RunningProgram, a: Array, b: Array, c: Array) -> Array:
        """The product is exact in fp64, and the sum there rounded to odd."""
        product = form.widen(a).astype(np.float64) * form.widen(b).astype(np.float64)
        third = np.asarray(form.widen(c), np.float64)
        total = product + third
        back = total - product
        rest = (product - (total - back)) + (third - back)
        is_even = (np.asarray(total).view(np.int64) & 1) == 0
        inexact = (rest != 0) & np.isfinite(total) & is_even
        return form.narrow(np.where(inexact, np.nextafter(total, np.sign(rest) * np.inf), total))

    return fma


# Conversions


@evaluates(arith.ExtFOp, arith.TruncFOp)
def _convert_float(op: Operation) -> Function:
    source, target = format_of(op.operands[0].type), _type(op)
    return lambda program, x: target.narrow(source.widen(x))


@evaluates(tt.FpToFpOp)
def _convert_with_rounding(op: Operation) -> Function:
    source, target = format_of(op.operands[0].type), _type(op)
    if op.attributes["rounding"].value == "rtne":
        return lambda program, x: target.narrow(source.widen(x))

    def towards_zero(program: RunningProgram, x: Array) -> Array:
        exact = np.asarray(source.widen(x), np.float64)
        size = np.abs(exact)
        near = np.asarray(target.narrow(size))
        away = np.asarray(target.widen(near), np.float64) > size
        # One less in the bits of a positive float is the next number towards zero.
        bits = near.view(f"u{near.dtype.itemsize}")
        down = np.where(away & np.isfinite(exact), bits - bits.dtype.type(1), bits)
        return target.narrow(np.copysign(target.widen(down.view(near.dtype)), exact))

    return towards_zero


@evaluates(arith.SIToFPOp, arith.UIToFPOp)
def _from_integer(op: Operation) -> Function:
    form, take = _type(op), unsigned if isa(op, arith.UIToFPOp) else np.asarray
    if form.storage.kind == "f" and form.bits > 16:
        return lambda program, x: take(x).astype(form.storage)
    return lambda program, x: form.narrow(take(x).astype(np.float64))


@evaluates(arith.FPToSIOp, arith.FPToUIOp)
def _to_integer(op: Operation) -> Function:
    """Saturates, and NaN becomes 0; to 8 bits the low byte of 16."""
    source, target = format_of(op.operands[0].type), _type(op).storage
    is_signed = isa(op, arith.FPToSIOp)
    integer = np.dtype(f"{'i' if is_signed else 'u'}{max(2, target.itemsize)}")
    least, greatest = integer.type(np.iinfo(integer).min), integer.type(np.iinfo(integer).max)
    below, above = float(least), float(int(greatest) + 1)  # exact, unlike the greatest of 64 bits

    def convert(program: RunningProgram, x: Array) -> Array:
        value = np.asarray(source.widen(x), np.float64)
        whole = np.where((value >= below) & (value < above), value, 0).astype(integer)
        whole = np.where(value < below, least, np.where(value >= above, greatest, whole))
        return signed(whole).astype(target)

    return convert


@evaluates(arith.ExtSIOp)
def _extend_signed(op: Operation) -> Function:
    target = _type(op).storage
    if format_of(op.operands[0].type).bits == 1:
        return lambda program, x: -np.asarray(x).astype(target)
    return lambda program, x: np.asarray(x).astype(target)


@evaluates(arith.ExtUIOp)
def _extend_unsigned(op: Operation) -> Function:
    target = _type(op).storage
    return lambda program, x: unsigned(x).astype(target)


@evaluates(arith.TruncIOp)
def _truncate(op: Operation) -> Function:
    target = _type(op).storage
    if target.kind == "b":
        return lambda program, x: (np.asarray(x) & 1) != 0
    if format_of(op.operands[0].type).bits == 128:
        half = 1 << (target.itemsize * 8 - 1)
        return lambda program, x: ((x + half) % (2 * half) - half).astype(target)
    return lambda program, x: np.asarray(x).astype(target)


@evaluates(arith.BitcastOp)
def _bitcast(op: Operation) -> Function:
    target = _type(op).storage
    return lambda program, x: np.ascontiguousarray(x).view(target).reshape(np.shape(x))


# Bits


def _reversed_bits(x: Array) -> Array:
    bits = unsigned(x)
    result, count = np.zeros_like(bits), bits.dtype.itemsize * 8
    for place in range(count):
        bit = (bits >> bits.dtype.type(place)) & bits.dtype.type(1)
        result = result | (bit << bits.dtype.type(count - 1 - place))
    return signed(result)


def _leading_zeros(x: Array) -> Array:
    bits = unsigned(x)
    for shift in (1, 2, 4, 8, 16, 32):
        if shift < bits.dtype.itemsize * 8:
            bits = bits | (bits >> bits.dtype.type(shift))
    return _count(signed(~bits))


def _count(x: Array) -> Array:
    x = np.asarray(x)
    return np.bitwise_count(unsigned(x)).astype(x.dtype)


_BITS: dict[str, Callable[[Array], Array]] = by_name(
    {
        math.AbsIOp: np.abs,
        math.CtPopOp: _count,
        math.CountLeadingZerosOp: _leading_zeros,
        math.CountTrailingZerosOp: lambda x: _count(~x & (x - 1)),
        llvm.BitReverseOp: _reversed_bits,
    }
)


@evaluates(*_BITS)
def _bits(op: Operation) -> Function:
    function = _BITS[op.name]
    return lambda program, x: function(x)
