"""Rules of elementwise ops: Python operators and `tl` functions to `arith` and `math`."""

import contextlib
import functools
import operator
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from proton.base.float8 import BY_NAME
from proton.base.words import shown
from proton.dialect import Kind, tt
from proton.dialect.mlir import OpView, arith, math
from proton.frontend.builder import (
    as_tensor,
    at_compile_time,
    broadcast_all,
    constant,
    emit,
    error,
    named,
    to_ir,
    warn,
    wrap,
)
from proton.frontend.numbers import DIVISIONS, is_typed, of_binary, of_unary
from proton.frontend.promotion import (
    binary_operands,
    bitcast,
    cast,
    check_numbers,
    meeting,
    rounded,
    scalar,
    to_bool,
)
from proton.frontend.rules import rule
from proton.language import core
from proton.language import types as ty
from proton.language.function import Builtin
from proton.language.value import tensor

# symbol -> (float op, signed op, unsigned op); None where the kind has no such op
_Ops = type[OpView] | None
_BINARY: dict[str, tuple[_Ops, _Ops, _Ops]] = {
    "+": (arith.AddFOp, arith.AddIOp, arith.AddIOp),
    "-": (arith.SubFOp, arith.SubIOp, arith.SubIOp),
    "*": (arith.MulFOp, arith.MulIOp, arith.MulIOp),
    "//": (None, arith.DivSIOp, arith.DivUIOp),
    "%": (arith.RemFOp, arith.RemSIOp, arith.RemUIOp),
    "&": (None, arith.AndIOp, arith.AndIOp),
    "|": (None, arith.OrIOp, arith.OrIOp),
    "^": (None, arith.XOrIOp, arith.XOrIOp),
    "<<": (None, arith.ShLIOp, arith.ShLIOp),
    ">>": (None, arith.ShRSIOp, arith.ShRUIOp),
}
# symbol -> predicates of (cmpf ordered or unordered for !=, cmpi signed, cmpi unsigned)
_F, _I = arith.CmpFPredicate, arith.CmpIPredicate
_COMPARE = {
    "==": (_F.OEQ, _I.eq, _I.eq),
    "!=": (_F.UNE, _I.ne, _I.ne),
    "<": (_F.OLT, _I.slt, _I.ult),
    "<=": (_F.OLE, _I.sle, _I.ule),
    ">": (_F.OGT, _I.sgt, _I.ugt),
    ">=": (_F.OGE, _I.sge, _I.uge),
}
_KNOWN = "both sides are known while compiling: Python evaluates this"
_PYTHON: dict[str, Callable[[Any, Any], Any]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": operator.truediv,
    "//": operator.floordiv,
    "%": operator.mod,
    "**": operator.pow,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


def binary(symbol: str, x: object, y: object) -> Any:
    """`x symbol y`; on two compile-time values it is Python's own, but for what Python refuses of
    numbers with a type: that is for the program (x / 0) or an error (x & 0.5)."""
    if not isinstance(x, tensor) and not isinstance(y, tensor):
        known = of_binary, symbol, _PYTHON[symbol], x, y, meeting
        if not is_typed(x) and not is_typed(y):
            return at_compile_time(f"{shown(x)} {symbol} {shown(y)}", _KNOWN, *known)
        with contextlib.suppress(ArithmeticError, TypeError, ValueError):
            return of_binary(*known[1:])
    x, y = scalar(x), scalar(y)
    if symbol in _COMPARE:
        return compare(symbol, x, y)
    if symbol in ("+", "-") and (_is_pointer(x) or _is_pointer(y)):
        return _pointer_arithmetic(symbol, x, y)
    if symbol == "/":
        return _true_divide(x, y)
    if symbol not in _BINARY:
        raise error(
            f"operator {symbol} is not defined on tensors",
            "multiply, or use tl.exp2(y * tl.log2(x)) for powers",
        )
    left, right = binary_operands(x, y, division=symbol in DIVISIONS, symbol=symbol)
    # What a shift brings in is the sign of the left side, also where the types meet in another; a
    # number has that of the other side.
    shifted: Any = x if isinstance(x, tensor) else y
    of = shifted.dtype if symbol == ">>" else left.dtype
    result = _apply(symbol, left, right, signed=of.is_int_signed())
    return result if symbol in DIVISIONS else rounded(result, x, y)


def _apply(symbol: str, left: tensor, right: tensor, *, signed: bool = True) -> tensor:
    """The op on two tensors of one type; `signed` says which of the integer ops."""
    float_op, signed_op, unsigned_op = _BINARY[symbol]
    type_ = left.dtype
    name = float_op if type_.is_floating() else signed_op if signed else unsigned_op
    if name is None:
        raise error(
            f"operator {symbol}: invalid operands of type {type_}",
            "use / for floating point, // for integers"
            if symbol == "//"
            else "convert with .to(tl.int32), or with bitcast=True to work on the bits",
        )
    return emit(name, left.type, left, right)


def _is_pointer(value: object) -> bool:
    return isinstance(value, tensor) and value.dtype.is_ptr()


def _pointer_arithmetic(symbol: str, x: Any, y: Any) -> tensor:
    if _is_pointer(x) and _is_pointer(y):
        raise error(
            f"two pointers cannot be combined by {symbol}",
            "add an integer offset to one of them, or compare .to(tl.int64) of both",
        )
    if symbol == "-" and _is_pointer(y):
        raise error("an integer minus a pointer is not defined", "write pointer - integer")
    pointer, offset = (x, y) if _is_pointer(x) else (y, x)
    if isinstance(pointer.type, ty.pointer_type) and pointer.type.block is not None:
        raise error(f"{symbol} is not defined on block pointers", "move one with tl.advance")
    offset = as_tensor(offset, "the offset")
    if not offset.dtype.is_int():
        raise error(
            f"a pointer moves by integers, got {offset.dtype}",
            "convert the offset with .to(tl.int32); it counts elements",
        )
    if offset.dtype.is_bool():
        offset = cast(offset, ty.int32)
    if offset.dtype.is_int_unsigned() and offset.dtype.primitive_bitwidth < 64:
        offset = cast(offset, ty.int64)  # offsets are signed in the IR
    if symbol == "-":
        offset = negate(offset)
    pointer, offset = broadcast_all(pointer, offset)
    op = tt.AddPtrOp(pointer.handle, offset.handle, to_ir(pointer.type))
    return wrap(op, pointer.type)


def _true_divide(x: object, y: object) -> tensor:
    left, right = binary_operands(x, y, division=True, symbol="/")
    if left.dtype.is_int():
        left, right = cast(left, ty.float32), cast(right, ty.float32)
    return emit(arith.DivFOp, left.type, left, right)


def compare(symbol: str, x: object, y: object) -> tensor:
    """An elementwise comparison, as int1."""
    if _is_pointer(x) and _is_pointer(y):
        x, y = cast(x, ty.uint64), cast(y, ty.uint64)
    left, right = binary_operands(x, y, symbol=symbol)
    float_code, signed_code, unsigned_code = _COMPARE[symbol]
    type_ = ty.with_scalar(left.type, ty.int1)
    if left.dtype.is_floating():
        return wrap(arith.CmpFOp(float_code, left.handle, right.handle), type_)
    code = signed_code if left.dtype.is_int_signed() else unsigned_code
    return wrap(arith.CmpIOp(code, left.handle, right.handle), type_)


def negate(x: tensor) -> tensor:
    """-x"""
    if x.dtype.is_ptr():
        raise error("a pointer has no negative", "negate the offset instead")
    if x.dtype.is_fp8():
        return rounded(negate(cast(x, ty.float16)), x)
    if x.dtype.is_floating():
        return emit(arith.NegFOp, x.type, x)
    return _apply("-", constant(0, x.type), x)


def unary(symbol: str, x: Any) -> Any:
    """`symbol x` for -, +, ~ and not."""
    if not isinstance(x, tensor):
        functions: dict[str, Callable[[Any], Any]] = {
            "-": operator.neg,
            "+": operator.pos,
            "~": operator.invert,
            "not": operator.not_,
        }
        return at_compile_time(f"{symbol} {shown(x)}", _KNOWN, of_unary, functions[symbol], x)
    check_numbers(symbol, x)
    if symbol == "+":
        return x
    if symbol == "-":
        return negate(x)
    if symbol == "not":
        return logical_not(x)
    if not x.dtype.is_int():
        raise error(
            f"~ is not defined on {x.dtype}",
            "use `not` for a condition, or .to(tl.int32, bitcast=True) for the bits",
        )
    return _apply("^", x, constant(-1, x.type))


def logical_not(x: object) -> tensor:
    """Whether x is 0."""
    value = to_bool(x)
    return _apply("^", value, constant(1, value.type))


def logical(word: str, x: object, y: object) -> tensor:
    """`x and y` or `x or y` of values that are not known while compiling."""
    left, right = broadcast_all(to_bool(x), to_bool(y))
    return _apply("&" if word == "and" else "|", left, right)


def undecided(word: str, values: Sequence[Any]) -> Any:
    """`and` or `or` of values of which none that is known decides it. Those have no say where there
    are others, nor have constexprs where there are numbers with a type."""
    if tensors := [value for value in values if isinstance(value, tensor)]:
        return functools.reduce(functools.partial(logical, word), tensors)
    return ([value for value in values if is_typed(value)] or values)[-1]


@rule(core.logical_and)
def _logical_and(input: object, other: object) -> tensor:
    return logical("and", input, other)


@rule(core.logical_or)
def _logical_or(input: object, other: object) -> tensor:
    return logical("or", input, other)


@rule(core.where)
def where(condition: Any, x: Any, y: Any) -> tensor:
    """Elementwise choice."""
    check_numbers("where", condition)
    if isinstance(condition, tensor) and not condition.dtype.is_bool():
        warn(
            "tl.where with a non-boolean condition is deprecated, as in Triton: got "
            f"{condition.type}, write x != 0"
        )
    condition = to_bool(condition)
    if _is_pointer(x) and _is_pointer(y):
        if x.dtype != y.dtype:
            raise error(
                f"tl.where: pointers must be of one type, got {x.dtype} and {y.dtype}",
                "cast one with .to(other.dtype, bitcast=True)",
            )
        left, right = x, y
    else:
        left, right = binary_operands(x, y, symbol="tl.where", computes=False)
    condition, left, right = broadcast_all(condition, left, right)
    type_ = right.type if right.dtype.is_const() else left.type
    return emit(arith.SelectOp, type_, condition, left, right)


class _Extremum(NamedTuple):
    symbol: str
    nan: Kind
    number: Kind
    signed: Kind
    unsigned: Kind


def _extremum(x: object, y: object, propagate_nan: object, of: _Extremum) -> tensor:
    left, right = binary_operands(x, y, symbol=of.symbol)
    if left.dtype.is_floating():
        kind = of.nan if _propagates(propagate_nan) else of.number
    else:
        kind = of.signed if left.dtype.is_int_signed() else of.unsigned
    return rounded(emit(kind, left.type, left, right), x, y)


def _propagates(propagate_nan: object) -> bool:
    name = getattr(propagate_nan, "name", propagate_nan)
    if name not in (None, "NONE", "ALL"):
        raise error(
            f"propagate_nan must be PropagateNan.NONE or ALL, got {shown(propagate_nan)}",
            'leave it out, or pass "NONE" or "ALL"',
        )
    return name == "ALL"


_MAXIMUM = _Extremum("tl.maximum", arith.MaximumFOp, arith.MaxNumFOp, arith.MaxSIOp, arith.MaxUIOp)
_MINIMUM = _Extremum("tl.minimum", arith.MinimumFOp, arith.MinNumFOp, arith.MinSIOp, arith.MinUIOp)


def check_order(name: str, values: Sequence[object]) -> None:
    """Raises CompilationError for known numbers that Python orders by where they stand."""
    if any(isinstance(value, tensor) for value in values):
        return
    for value in values:
        if isinstance(value, float) and (value != value or str(value) == "-0.0"):
            raise error(
                f"{name} of numbers that are known while compiling takes no {shown(value)}",
                f"take it of tensors, with tl.{name}imum",
            )


def greater(x: object, y: object, propagate_nan: object = None) -> Any:
    """The greater element, as Python's `max`: a number where both are known."""
    if not isinstance(x, tensor) and not isinstance(y, tensor):
        what = f"tl.maximum({shown(x)}, {shown(y)})"
        return at_compile_time(what, _KNOWN, of_binary, "max", max, x, y, meeting)
    return _extremum(x, y, propagate_nan, _MAXIMUM)


def lesser(x: object, y: object, propagate_nan: object = None) -> Any:
    """The lesser element, as Python's `min`."""
    if not isinstance(x, tensor) and not isinstance(y, tensor):
        what = f"tl.minimum({shown(x)}, {shown(y)})"
        return at_compile_time(what, _KNOWN, of_binary, "min", min, x, y, meeting)
    return _extremum(x, y, propagate_nan, _MINIMUM)


def with_types(values: tuple[object, object]) -> tuple[object, object]:
    """Both operands of a function of the language: where all are known while compiling they are
    numbers with a type, and so is what it gives."""
    x, y = values
    known = not isinstance(x, tensor) and not isinstance(y, tensor)
    return (named(x), named(y)) if known else values


@rule(core.maximum)
def maximum(x: object, y: object, propagate_nan: object = None) -> Any:
    """The greater element."""
    return greater(*with_types((x, y)), propagate_nan)


@rule(core.minimum)
def minimum(x: object, y: object, propagate_nan: object = None) -> Any:
    """The lesser element."""
    return lesser(*with_types((x, y)), propagate_nan)


def _alike(x: object, y: object, z: object, *, symbol: str) -> tuple[tensor, tensor, tensor]:
    """Three operands in one type and one shape."""
    left, right = binary_operands(x, y, symbol=symbol)
    left, third = binary_operands(left, z, symbol=symbol)
    left, right, third = broadcast_all(left, cast(right, left.dtype), third)
    return left, right, third


@rule(core.clamp)
def _clamp(x: object, min: object, max: object, propagate_nan: object = None) -> tensor:
    value, least, most = _alike(x, min, max, symbol="tl.clamp")
    clamped = minimum(maximum(value, least, propagate_nan), most, propagate_nan)
    return rounded(clamped, x, min, max)


@rule(core.fma)
def _fma(x: object, y: object, z: object) -> tensor:
    left, right, third = _alike(x, y, z, symbol="tl.fma")
    _floating(left, "tl.fma")
    return rounded(emit(math.FmaOp, left.type, left, right, third), x, y, z)


@rule(core.fdiv)
def _fdiv(x: object, y: object, ieee_rounding: bool = False, approx: bool = False) -> tensor:
    left, right = binary_operands(x, y, division=True, symbol="tl.fdiv")
    _floating(left, "tl.fdiv")
    if ieee_rounding and left.dtype.is_fp32():
        return wrap(tt.PreciseDivFOp(left.handle, right.handle, to_ir(left.type)), left.type)
    return emit(arith.DivFOp, left.type, left, right)


def _only(name: str, types: tuple[ty.dtype, ...], *operands: object) -> None:
    """Raises CompilationError for a run-time operand of another type, before any is promoted."""
    for value in operands:
        if isinstance(value, tensor) and value.dtype not in types:
            raise error(
                f"{name} takes {' or '.join(map(str, types))}, got {value.dtype}",
                f"convert with .to(tl.{types[0].name})",
            )


@rule(core.div_rn)
def _div_rn(x: object, y: object) -> tensor:
    _only("tl.div_rn", (ty.float32,), x, y)
    left, right = binary_operands(x, y, division=True, symbol="tl.div_rn")
    op = tt.PreciseDivFOp(left.handle, right.handle, to_ir(left.type))
    return wrap(op, left.type)


@rule(core.umulhi)
def _umulhi(x: object, y: object) -> tensor:
    _only("tl.umulhi", (ty.uint32, ty.int32, ty.uint64, ty.int64), x, y)
    left, right = binary_operands(x, y, symbol="tl.umulhi")
    if not left.dtype.is_int():
        raise error("tl.umulhi takes integers", "convert with .to(tl.uint32)")
    op = tt.MulhiUIOp(left.handle, right.handle, to_ir(left.type))
    return wrap(op, left.type)


@rule(core.abs)
def _abs(x: object) -> object:
    return absolute(named(x))


def absolute(x: object) -> object:
    """|x|"""
    if not isinstance(x, tensor):
        return at_compile_time(f"abs({shown(x)})", _KNOWN, of_unary, abs, x)
    if x.dtype.is_ptr():
        raise error("a pointer has no absolute value", "take tl.abs of the offset instead")
    if x.dtype.is_fp8():
        return _float8_magnitude(x)
    if x.dtype.is_floating():
        return emit(math.AbsFOp, x.type, x)
    if x.dtype.is_int_unsigned():
        return x
    return emit(math.AbsIOp, x.type, x)


_FLOAT8_SIGN = 0x80


def _float8_magnitude(x: tensor) -> tensor:
    """|x| of an 8-bit float, exact: its code without the sign. NaN stays where it is -0's code."""
    code = bitcast(x, ty.uint8)
    magnitude = emit(arith.AndIOp, code.type, code, constant(_FLOAT8_SIGN - 1, code.type))
    if BY_NAME[x.dtype.name].nan_bits == _FLOAT8_SIGN:
        is_nan = compare("==", code, constant(_FLOAT8_SIGN, code.type))
        magnitude = where(is_nan, code, magnitude)
    return bitcast(magnitude, x.dtype)


def _floating(x: object, name: str) -> tensor:
    x = as_tensor(x)
    if not x.dtype.is_floating():
        raise error(f"{name} takes floating point, got {x.dtype}", "convert with .to(tl.float32)")
    return x


_MATH = {
    core.exp: math.ExpOp,
    core.exp2: math.Exp2Op,
    core.log: math.LogOp,
    core.log2: math.Log2Op,
    core.sin: math.SinOp,
    core.cos: math.CosOp,
    core.sqrt: math.SqrtOp,
    core.rsqrt: math.RsqrtOp,
    core.erf: math.ErfOp,
    core.floor: math.FloorOp,
    core.ceil: math.CeilOp,
}


def _define_math(op: Builtin, kind: Kind) -> None:
    @rule(op)
    def _(x: object) -> tensor:
        x = _floating(as_tensor(x), f"tl.{op.__name__}")
        if x.dtype.primitive_bitwidth < 32:
            raise error(
                f"tl.{op.__name__} takes fp32 or fp64, got {x.dtype}",
                "convert with .to(tl.float32)",
            )
        return emit(kind, x.type, x)


for _op, _kind in _MATH.items():
    _define_math(_op, _kind)


@rule(core.sqrt_rn)
def _sqrt_rn(x: object) -> tensor:
    x = _floating(x, "tl.sqrt_rn")
    if not x.dtype.is_fp32():
        raise error(f"tl.sqrt_rn takes fp32, got {x.dtype}", "convert with .to(tl.float32)")
    return wrap(tt.PreciseSqrtOp(x.handle, to_ir(x.type)), x.type)
