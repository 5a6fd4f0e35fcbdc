"""Which type an operation computes in, and conversions to it: the rules are Triton's."""

from typing import Any

from proton.base.words import shown
from proton.dialect import tt
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import arith
from proton.frontend.builder import (
    as_tensor,
    broadcast_all,
    constant,
    default_type,
    emit,
    error,
    is_number,
    to_ir,
    wrap,
)
from proton.frontend.numbers import COMPARISONS, DIVISIONS, is_typed
from proton.language import types as ty
from proton.language.gluon.types import (
    shared_memory_descriptor_type,
    warpgroup_mma_accumulator_type,
)
from proton.language.value import tensor

_WITHOUT_NUMBERS = (
    ty.tensor_descriptor_type,
    shared_memory_descriptor_type,
    warpgroup_mma_accumulator_type,
)
_KIND_ORDER = {"int1": 0, "int": 1, "uint": 1, "float": 2}


def _kind(type_: ty.dtype) -> int:
    return 0 if type_.is_bool() else _KIND_ORDER[type_.kind]


def promote_integers(a: ty.dtype, b: ty.dtype) -> ty.dtype:
    """The wider type; where signs differ, unsigned wins unless it is the narrower."""
    if a.kind == b.kind:
        return a if a.primitive_bitwidth > b.primitive_bitwidth else b
    unsigned, signed = (a, b) if a.kind == "uint" else (b, a)
    return unsigned if unsigned.primitive_bitwidth >= signed.primitive_bitwidth else signed


def promote(a: ty.dtype, b: ty.dtype, *, division: bool = False, computes: bool = True) -> ty.dtype:
    """The type in which two scalar types meet; `division` is for /, // and %.

    fp8 is a type of memory: arithmetic on it is done in fp16 (`common_float8` says what is rounded
    to it again), divisions of floats in fp32. An op that only moves values (`computes` is False)
    leaves two values of one fp8 type as they are.
    """
    if a == b and a.is_fp8() and not computes:
        return a
    if a.is_fp64() or b.is_fp64():
        return ty.float64
    if division and (a.is_floating() or b.is_floating()):
        return ty.float32
    if a.is_fp32() or b.is_fp32():
        return ty.float32
    if a.is_fp16() or b.is_fp16():
        return ty.float16
    if a.is_bf16() and b.is_bf16():
        return ty.bfloat16
    if a.is_bf16() or b.is_bf16():
        return ty.float32
    if a.is_fp8() or b.is_fp8():
        if not (a.is_floating() and b.is_floating()):
            raise error(
                f"fp8 cannot be mixed with integers ({a} and {b})",
                "convert with .to(tl.float16) or .to(tl.float32) first",
            )
        return ty.float16
    if division and _is_unsigned(a) != _is_unsigned(b):
        raise error(
            f"Cannot use /, // or % on {a} and {b} because they have different signedness",
            "cast one side with .to(...)",
        )
    return promote_integers(a, b)


def _is_unsigned(type_: ty.dtype) -> bool:
    return type_.kind == "uint" or type_.is_bool()


def _promote_with_number(
    number: int | float, type_: ty.dtype, division: bool, computes: bool
) -> ty.dtype:
    """A Python number takes the tensor's type unless it is of a higher kind."""
    own = default_type(number)
    if type_.is_fp8() and not division:
        return ty.float16 if computes else type_
    if _kind(own) <= _kind(type_):
        return promote(type_, type_, division=division, computes=computes)
    return promote(own, type_, division=division)


def common_float8(*operands: object) -> ty.dtype | None:
    """The fp8 type of all operands but numbers, or None: what is computed of them has it."""
    types = {value.dtype for value in operands if isinstance(value, tensor)}
    return next((type_ for type_ in types if len(types) == 1 and type_.is_fp8()), None)


def scalar(value: Any) -> Any:
    """A number that has a type of its own as a tensor; anything else as it is."""
    return as_tensor(value) if is_typed(value) else value


def meeting(x: Any, y: Any, symbol: str) -> ty.dtype:
    """The type in which two numbers meet, one of which has a type of its own."""
    divides = symbol in DIVISIONS
    if is_typed(x) and is_typed(y):
        target = promote(x.dtype, y.dtype, division=divides)
    else:
        number, typed = (y, x) if is_typed(x) else (x, y)
        target = _promote_with_number(number, typed.dtype, division=divides, computes=True)
        if symbol not in COMPARISONS:
            _check_sign(number, target)
            _check_range(number, target)
    return ty.float32 if symbol == "/" and not target.is_floating() else target


def check_numbers(what: str, value: object) -> None:
    """Refuses what stands for memory, or for a dot under way, as an operand."""
    if isinstance(value, tensor) and isinstance(value.type, _WITHOUT_NUMBERS):
        kind, hint = "tensor descriptors", "load a block, and take that"
        if not isinstance(value.type, ty.tensor_descriptor_type):
            kind = f"{value.type}"
        if isinstance(value.type, warpgroup_mma_accumulator_type):
            kind, hint = (
                f"{kind}, which a dot may still write",
                "take warpgroup_mma_wait(0, (acc,))",
            )
        raise error(f"{what} is not defined on {kind}", hint)


def binary_operands(
    x: Any, y: Any, *, symbol: str, division: bool = False, computes: bool = True
) -> tuple[tensor, tensor]:
    """Both operands in one type and one shape; numbers become constants of that type."""
    x, y = scalar(x), scalar(y)
    for value in (x, y):
        if not isinstance(value, tensor) and not is_number(value):
            raise error(
                f"operands of {symbol} must be tensors or numbers, got {shown(value)}",
                "pass a tensor, a number, or a constexpr number",
            )
    for value in (x, y):
        check_numbers(symbol, value)
        if isinstance(value, tensor) and value.dtype.is_ptr():
            raise error(
                f"{symbol} is not defined on pointers ({value.type})",
                "pointers take + and - with integers, and comparisons with pointers",
            )
    if isinstance(x, tensor) and isinstance(y, tensor):
        target = promote(x.dtype, y.dtype, division=division, computes=computes)
    elif isinstance(x, tensor):
        target = _promote_with_number(y, x.dtype, division, computes)
    elif isinstance(y, tensor):
        target = _promote_with_number(x, y.dtype, division, computes)
    else:
        target = promote(default_type(x), default_type(y), division=division)
    for value in (x, y):
        if not isinstance(value, tensor):
            _check_sign(value, target)
    left, right = broadcast_all(_in_type(x, target), _in_type(y, target))
    return left, right


def rounded(value: tensor, *operands: object) -> tensor:
    """What was computed of the operands, in the type that Triton gives it."""
    target = common_float8(*operands)
    return value if target is None else cast(value, target)


def _in_type(value: Any, target: ty.dtype) -> tensor:
    if isinstance(value, tensor):
        return cast(value, target)
    _check_range(value, target)
    return constant(value, target)


def _check_sign(number: int | float, target: ty.dtype) -> None:
    """Raises CompilationError for a negative number that meets an unsigned type."""
    if target.is_int_unsigned() and number < 0:
        raise error(
            f"negative number {shown(number)} cannot be used with unsigned {target}",
            "cast the other side to a signed type first",
        )


def _check_range(number: int | float, target: ty.dtype) -> None:
    """Raises CompilationError for an integer that the type it meets does not have."""
    if target.is_int() and not isinstance(number, float) and not target.is_bool():
        low, high = target.get_int_min_value(), target.get_int_max_value()
        if not low <= number <= high:
            raise error(
                f"number {shown(number)} is out of range of {target}",
                "cast the other side to a wider type",
            )


def cast(value: Any, target: ty.dtype, rounding: str | None = None) -> tensor:
    """`value` converted to the scalar type `target`, in its own shape."""
    if not isinstance(value, tensor):
        return constant(value, target) if is_number(value) else as_tensor(value)
    source = value.dtype
    if source == target:
        return value
    if isinstance(source, _WITHOUT_NUMBERS):
        raise error(f"cannot cast {source} to {target}", "load a block, and cast that")
    type_ = ty.with_scalar(value.type, target)
    if source.is_ptr() or target.is_ptr():
        return _cast_pointer(value, type_)
    if rounding is not None:
        floats = source.is_floating() and target.is_floating()
        if not floats or target.primitive_bitwidth >= source.primitive_bitwidth:
            raise error(
                "fp_downcast_rounding is for conversions to narrower floats, got "
                f"{source} to {target}",
                "leave fp_downcast_rounding out",
            )
    if rounding == "rtz":
        return wrap(tt.FpToFpOp(value.handle, string_attr("rtz"), to_ir(type_)), type_)
    if source.is_floating() and target.is_floating():
        return _cast_float(value, type_)
    if source.is_fp8() or target.is_fp8():  # exact: what fp32 has not saturates
        return cast(cast(value, ty.float32), target)
    if target.is_bool():
        return _not_zero(value, type_)
    if source.is_floating():
        return emit(arith.FPToSIOp if target.is_int_signed() else arith.FPToUIOp, type_, value)
    if target.is_floating():
        signed = source.is_int_signed()
        return emit(arith.SIToFPOp if signed else arith.UIToFPOp, type_, value)
    return _cast_integer(value, type_)


def _not_zero(value: tensor, type_: ty.dtype) -> tensor:
    left, right = value.handle, constant(0, value.type).handle
    if value.dtype.is_floating():
        return wrap(arith.CmpFOp(arith.CmpFPredicate.UNE, left, right), type_)
    return wrap(arith.CmpIOp(arith.CmpIPredicate.ne, left, right), type_)


def _cast_integer(value: tensor, type_: ty.dtype) -> tensor:
    source, target = value.dtype, type_.scalar
    if source.primitive_bitwidth == target.primitive_bitwidth:
        return tensor(value.handle, type_)  # signless in the IR
    if source.primitive_bitwidth > target.primitive_bitwidth:
        return emit(arith.TruncIOp, type_, value)
    signed = source.is_int_signed()
    return emit(arith.ExtSIOp if signed else arith.ExtUIOp, type_, value)


def _cast_float(value: tensor, type_: ty.dtype) -> tensor:
    source, target = value.dtype.primitive_bitwidth, type_.scalar.primitive_bitwidth
    if source == target:  # fp16 and bf16, and 8-bit floats, meet in fp32
        return _cast_float(_cast_float(value, ty.with_scalar(value.type, ty.float32)), type_)
    if type_.scalar.is_fp8() or value.dtype.name == "float8e4b15":  # MLIR's has another bias
        return wrap(tt.FpToFpOp(value.handle, string_attr("rtne"), to_ir(type_)), type_)
    return emit(arith.ExtFOp if source < target else arith.TruncFOp, type_, value)


def _cast_pointer(value: tensor, type_: ty.dtype) -> tensor:
    source, target = value.dtype, type_.scalar
    if any(isinstance(t, ty.pointer_type) and t.block is not None for t in (source, target)):
        raise error(f"cannot cast {source} to {target}", "cast the base before tl.make_block_ptr")
    if source.is_ptr() and target.is_ptr():
        if to_ir(source) == to_ir(target):
            return tensor(value.handle, type_)
        return wrap(tt.BitcastOp(value.handle, to_ir(type_)), type_)
    if source.is_ptr() and target.is_int() and target.primitive_bitwidth == 64:
        return wrap(tt.PtrToIntOp(value.handle, to_ir(type_)), type_)
    if target.is_ptr() and source.is_int() and source.primitive_bitwidth == 64:
        return wrap(tt.IntToPtrOp(value.handle, to_ir(type_)), type_)
    raise error(f"cannot cast {source} to {target}", "pointers convert to and from 64-bit integers")


def bitcast(value: tensor, target: ty.dtype) -> tensor:
    """The same bits as another type of the same width."""
    source = value.dtype
    if source == target:
        return value
    type_ = ty.with_scalar(value.type, target)
    if source.is_ptr() or target.is_ptr():
        return _cast_pointer(value, type_)
    if source.primitive_bitwidth != target.primitive_bitwidth:
        raise error(
            f"bitcast keeps the width, got {source} ({source.primitive_bitwidth} bits) to "
            f"{target} ({target.primitive_bitwidth} bits)",
            "convert the value with .to(...) without bitcast, or choose a type of that width",
        )
    if source.is_int() and target.is_int():
        return tensor(value.handle, type_)
    return emit(arith.BitcastOp, type_, value)


def to_bool(value: object) -> tensor:
    """`value != 0` as int1; of a pointer, whether it points somewhere."""
    check_numbers("a condition", value)
    value = as_tensor(value)
    if value.dtype.is_ptr():
        value = cast(value, ty.uint64)
    return value if value.dtype.is_bool() else cast(value, ty.int1)
