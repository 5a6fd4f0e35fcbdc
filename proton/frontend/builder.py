"""Small steps that every rule of the front end takes: types, constants, elementwise ops."""

import functools
import warnings
from collections.abc import Callable
from typing import Any

from proton.base.errors import CompilationError
from proton.base.float8 import BY_NAME
from proton.base.words import shown
from proton.dialect import Kind, name_of, tt, tt_block, ttg
from proton.dialect.builtin import i32_attr, integer, string_attr
from proton.dialect.mlir import Attribute, Operation, Type, arith, ir
from proton.dialect.walk import source_span
from proton.frontend.numbers import is_typed, typed
from proton.language import types as ty
from proton.language.gluon.changes import SHAPES, layout_of
from proton.language.gluon.layouts import AutoLayout
from proton.language.gluon.types import (
    distributed_type,
    im2col_descriptor_type,
    shared_memory_descriptor_type,
    warpgroup_mma_accumulator_type,
)
from proton.language.value import tensor

_FLOATS = {
    "float16": "F16Type",
    "bfloat16": "BF16Type",
    "float32": "F32Type",
    "float64": "F64Type",
    "float8e5": "Float8E5M2Type",
    "float8e4nv": "Float8E4M3FNType",
    "float8e5b16": "Float8E5M2FNUZType",
    "float8e4b8": "Float8E4M3FNUZType",
    "float8e4b15": "Float8E4M3B11FNUZType",
}


def error(rule: str, hint: str) -> CompilationError:
    """An error about the piece of source that is being compiled; codegen adds the place."""
    return CompilationError(rule, hint=hint)


_warned: dict[Any, Any] = {}  # Python's notes of what it has shown


def warn(text: str) -> None:
    """A UserWarning about the piece of source that is being compiled: of what Triton deprecates.
    Where Python's filters make an error of it, it is the kernel's."""
    span = source_span(ir.Location.current)
    try:
        warnings.warn_explicit(text, UserWarning, span.file, span.line, registry=_warned)
    except UserWarning as problem:
        raise error(text, "a filter of warnings (-W error) makes an error of this") from problem


def at_compile_time(
    what: str, hint: str, function: Callable[..., Any], /, *args: Any, **kwargs: Any
) -> Any:
    """What Python itself makes of compile-time values; what it raises is the kernel's error."""
    try:
        return function(*args, **kwargs)
    except CompilationError:
        raise
    except Exception as problem:
        raise error(f"{what}: {type(problem).__name__}: {problem}", hint) from problem


def truth(value: object) -> bool:
    """True if a compile-time value is true."""
    hint = "this is known while compiling: Python evaluates it"
    return bool(at_compile_time(f"bool({shown(value)})", hint, bool, value))


@functools.cache  # a type is asked for by each op, and lives as long as the one context
def to_ir(type_: ty.dtype) -> Type:
    """The MLIR type. Integers are signless; a pointer to int1 points to bytes."""
    if isinstance(type_, distributed_type):
        return _laid_out(type_)
    if type_.is_block():
        return ir.RankedTensorType.get(type_.shape, to_ir(type_.scalar))
    if isinstance(type_, shared_memory_descriptor_type):
        assert isinstance(type_.memory, Type)
        return type_.memory
    if isinstance(type_, warpgroup_mma_accumulator_type):
        return to_ir(type_.tensor_type)
    if isinstance(type_, ty.pointer_type):
        return tt.PointerType.get(to_ir(memory_type(type_.element_ty)))
    if isinstance(type_, ty.tensor_descriptor_type):  # of any layout: the map of it has that
        block = ir.TypeAttr.get(to_ir(memory_type(type_.block_type)))
        said = block, ir.StringAttr.get(type_.padding)
        if isinstance(type_, im2col_descriptor_type):
            return tt_block.TensorDescIm2colType.get(*said, i32_attr(type_.rank))
        return tt_block.TensorDescType.get(*said)
    if type_.is_floating():
        return getattr(ir, _FLOATS[type_.name]).get()
    return integer(type_.primitive_bitwidth)


def _laid_out(type_: distributed_type) -> Type:
    """A tensor in its layout; without one where that is still to be chosen."""
    plain = ir.RankedTensorType.get(type_.shape, to_ir(type_.scalar))
    if not type_.layout.is_known:
        return plain
    try:
        return ttg.with_layout(plain, type_.layout.linear(type_.shape))
    except (ValueError, IndexError) as problem:
        raise error(
            f"{type_.layout} is no layout of a tensor of {list(type_.shape)}: {problem}",
            "see what it is with layout.format_tensor_view(shape)",
        ) from None


def memory_type(type_: ty.dtype) -> ty.dtype:
    """The type that memory has for a scalar or block: bytes for truth values."""
    return ty.with_scalar(type_, ty.int8) if type_.scalar.is_bool() else type_


def emit(
    kind: Kind, type_: ty.dtype, *operands: tensor, attributes: dict[str, Attribute] | None = None
) -> tensor:
    """An op with one result of `type_` on the operands' SSA values."""
    op = ir.Operation.create(
        name_of(kind),
        results=[to_ir(type_)],
        operands=[operand.handle for operand in operands],
        attributes=attributes,
    )
    return tensor(op.result, type_)


def wrap(op: Operation, type_: ty.dtype) -> tensor:
    """The only result of an op of ours, as a value of `type_`."""
    return tensor(op.operation.result, type_)


_WIDER = "choose a type that can hold the number"


def constant(value: int | float | bool, type_: ty.dtype) -> tensor:
    """A constant scalar, or a block filled with one."""
    scalar = type_.scalar
    if scalar.is_ptr():
        raise error(f"a constant cannot be a pointer ({type_})", "cast an integer tensor instead")
    if not is_number(value):
        raise error(f"{shown(value)} cannot be of type {type_}", "pass a number or a tensor")
    kind = float if scalar.is_floating() else bool if scalar.is_bool() else int
    number = at_compile_time(f"{shown(value)} as {scalar}", _WIDER, kind, value)
    if scalar.is_fp8() and number == number:  # saturates, as a conversion does
        largest = BY_NAME[scalar.name].largest
        number = max(-largest, min(largest, number))
    if scalar.name == "float8e4b15":  # MLIR's type has another bias
        wide = constant(number, ty.with_scalar(type_, ty.float32))
        return wrap(tt.FpToFpOp(wide.handle, string_attr("rtne"), to_ir(type_)), type_)
    if scalar.is_floating():
        attribute: Attribute = ir.FloatAttr.get(to_ir(scalar), number)
    else:
        _check_holds(scalar, value, number)
        attribute = ir.IntegerAttr.get(to_ir(scalar), wrapped(number, scalar))
    if type_.is_block():
        attribute = ir.DenseElementsAttr.get_splat(to_ir(type_), attribute)
    return emit(arith.ConstantOp, type_, attributes={"value": attribute})


def _check_holds(type_: ty.dtype, value: int | float, number: int) -> None:
    """Raises CompilationError for a number that does not become one of an integer type: integers
    are modulo its width, but have 64 bits at most, and floats are in its range, as conversions
    have it, to 8 bits by way of 16."""
    low, high = ty.int64.get_int_min_value(), ty.uint64.get_int_max_value()
    if isinstance(value, float):
        bits = max(16, type_.primitive_bitwidth) - type_.is_int_signed()
        low, high = -(1 << bits) * type_.is_int_signed(), (1 << bits) - 1
    if not low <= number <= high:
        raise error(f"{shown(value)} does not fit in {type_}", _WIDER)


def wrapped(value: int, type_: ty.dtype) -> int:
    """`value` modulo the type's width, as the signed number that IntegerAttr wants."""
    bits = type_.primitive_bitwidth
    value &= (1 << bits) - 1
    return value - (1 << bits) if bits > 1 and value >> (bits - 1) else value


def default_type(value: int | float | bool) -> ty.dtype:
    """The type that a Python number has by default, as in Triton, or that it has been given."""
    if is_typed(value):
        return value.dtype  # type: ignore[union-attr]
    if isinstance(value, bool):
        return ty.int1
    if isinstance(value, int):
        for type_ in (ty.int32, ty.uint32, ty.int64, ty.uint64):
            if type_.get_int_min_value() <= value <= type_.get_int_max_value():
                return type_
        raise error(f"{shown(value)} does not fit in 64 bits", "split it into two numbers")
    magnitude = abs(value)
    finite_in_fp32 = 2.0**-126 <= magnitude <= (2 - 2**-23) * 2.0**127
    if finite_in_fp32 or magnitude == 0 or value != value or magnitude == float("inf"):
        return ty.float32
    return ty.float64


def is_number(value: object) -> bool:
    """True if a compile-time value can become a tensor."""
    return isinstance(value, bool | int | float)


def as_tensor(value: Any, what: str = "the operand") -> tensor:
    """A tensor unchanged, a Python number as a constant of its default type."""
    if isinstance(value, tensor):
        return value
    if is_number(value):
        return constant(value, default_type(value))
    hint = "pass a tensor, a number, or a constexpr number"
    if value is None:
        hint += (
            "; a function gives None where it ends without a return, and a branch whose condition "
            "is known while compiling may leave that out"
        )
    raise error(f"{what} must be a tensor or a number, got {shown(value)}", hint)


def named(value: Any) -> Any:
    """What a variable holds to which a value is assigned: of numbers, and of those in a tuple,
    scalars with a type."""
    if isinstance(value, tuple | list):
        return getattr(value, "_make", type(value))(map(named, value))
    if not is_number(value) or is_typed(value):
        return value
    return typed(value, default_type(value))


def splat(value: tensor, like: tuple[int, ...] | ty.dtype) -> tensor:
    """A scalar repeated in a block of a shape, or like one of a type."""
    if isinstance(like, tuple):
        like = ty.block_type(value.type, like)
    type_ = ty.with_scalar(like, value.type)
    return wrap(tt.SplatOp(value.handle, to_ir(type_)), type_)


def changed(value: tensor, how: str, *arguments: object) -> ty.dtype:
    """The type that a change of shape gives a block (proton/language/gluon/changes.py)."""
    shape = SHAPES[how](value.shape, *arguments)
    if not shape:
        return value.dtype
    if not isinstance(value.type, distributed_type):
        return ty.block_type(value.dtype, shape)
    try:
        layout = layout_of(how, value.type.layout, value.shape, *arguments)
    except ValueError as problem:
        raise error(
            str(problem), f"the value has {value.type}: gl.convert_layout gives it another layout"
        ) from None
    return distributed_type(value.dtype, shape, layout)


def broadcast_to(value: tensor, like: tuple[int, ...] | ty.dtype) -> tensor:
    """`value` in a larger shape, or in that of a type; missing dimensions are added in front."""
    shape = like if isinstance(like, tuple) else like.shape
    if isinstance(like, ty.block_type) and value.is_block():
        value = _in_layout(value, like)
    if value.shape == shape:
        return value
    if not value.is_block():
        return splat(value, like)
    source = value.shape
    while len(source) < len(shape):
        source = (1, *source)
        type_ = changed(value, "expanded", 0)
        value = wrap(tt.ExpandDimsOp(value.handle, i32_attr(0), to_ir(type_)), type_)
    if len(source) != len(shape) or any(
        a not in (1, b) for a, b in zip(source, shape, strict=True)
    ):
        raise error(
            f"shape {list(source)} cannot be broadcast to {list(shape)}",
            "sizes must be equal or 1; add dimensions with x[:, None]",
        )
    if source == shape:
        return value
    type_ = changed(value, "broadcast", shape)
    return wrap(tt.BroadcastOp(value.handle, to_ir(type_)), type_)


def broadcast_shape(*shapes: tuple[int, ...]) -> tuple[int, ...]:
    """The common shape, by the rule of numpy."""
    rank = max(len(shape) for shape in shapes)
    result = []
    for sizes in zip(*[(1,) * (rank - len(s)) + s for s in shapes], strict=True):
        large = {size for size in sizes if size != 1}
        if len(large) > 1:
            raise error(
                f"shapes {' and '.join(str(list(s)) for s in shapes)} cannot be broadcast together",
                "sizes must be equal or 1; add dimensions with x[:, None]",
            )
        result.append(large.pop() if large else 1)
    return tuple(result)


def broadcast_all(*values: tensor) -> list[tensor]:
    """All values in their common shape, and in the layout of those that have one."""
    shape = broadcast_shape(*(value.shape for value in values))
    laid_out = [value for value in values if isinstance(value.type, distributed_type)]
    if not laid_out:
        return [broadcast_to(value, shape) for value in values]
    first = max(laid_out, key=_choice)
    _check_ranks(laid_out)
    for other in laid_out:
        _check_layouts(first, other)
    like = distributed_type(first.dtype, shape, _layout(first))
    return [broadcast_to(value, like) for value in values]


# Layouts of Gluon's tensors


def _layout(value: tensor) -> Any:
    assert isinstance(value.type, distributed_type)
    return value.type.layout


def _choice(value: tensor) -> int:
    """How much is said of a layout: all, by which rule to choose it, or nothing."""
    layout = _layout(value)
    return 2 if layout.is_known else 0 if isinstance(layout, AutoLayout) else 1


def _in_layout(value: tensor, like: ty.block_type) -> tensor:
    """A block that has the layout of a type where both have one; one whose layout is still to be
    chosen gets that, and so does one of `tl`, which has none."""
    if not isinstance(like, distributed_type):
        if isinstance(value.type, distributed_type):
            raise error(
                f"{value.type} meets {like}: one has a layout, and the other has none",
                "make blocks in Gluon with gl.arange, gl.full and gl.zeros",
            )
        return value
    if not isinstance(value.type, distributed_type):
        value = set_layout(value, AutoLayout())
    if _layout(value) == like.layout:
        return value
    if len(value.shape) != len(like.shape):
        raise error(
            f"Cannot broadcast, rank mismatch: {list(value.shape)}, {list(like.shape)}",
            "add dimensions with x[:, None]: in Gluon none is added in front",
        )
    if isinstance(_layout(value), AutoLayout):
        return set_layout(value, like.layout)
    raise _mismatch(value, like.layout, _layout(value), "")


def agreed(*values: Any) -> tuple[Any, ...]:
    """Operands of one access: blocks whose layout is still to be chosen get that of another one."""
    laid_out = [v for v in values if isinstance(getattr(v, "type", None), distributed_type)]
    known = max(laid_out, key=_choice, default=None)
    if known is None or not _choice(known):
        return values
    layout, rank = _layout(known), len(known.shape)
    return tuple(
        set_layout(v, layout) if v in laid_out and not _choice(v) and len(v.shape) == rank else v
        for v in values
    )


def set_layout(value: tensor, layout: Any) -> tensor:
    """A block in the layout that it was still to get."""
    type_ = distributed_type(value.dtype, value.shape, layout)
    if not layout.is_known:
        return tensor(value.handle, type_)
    return wrap(ttg.SetAutoLayoutOp(value.handle, to_ir(type_)), type_)


def _check_ranks(values: list[tensor]) -> None:
    first = values[0].shape
    for value in values:
        if len(value.shape) != len(first):
            raise error(
                f"Cannot broadcast, rank mismatch: {list(first)}, {list(value.shape)}",
                "add dimensions with x[:, None]: in Gluon none is added in front",
            )


def _check_layouts(left: tensor, right: tensor) -> None:
    """Raises CompilationError where two known layouts differ."""
    mine, theirs = _layout(left), _layout(right)
    if mine != theirs and not isinstance(theirs, AutoLayout):
        raise _mismatch(right, mine, theirs, _made_at(left))


def _mismatch(right: tensor, mine: Any, theirs: Any, place: str) -> CompilationError:
    return error(
        f"Layout mismatch in broadcast: {mine}{place} vs {theirs}{_made_at(right)}",
        "convert one of them: gl.convert_layout(x, y.type.layout), or make both in one layout",
    )


def _made_at(value: tensor) -> str:
    """Where a value comes from, as a piece of a message."""
    owner = value.handle.owner
    if isinstance(owner, ir.Block):
        return " (of a loop, a branch or a parameter)"
    span = source_span(owner.operation.location)
    return f" (of line {span.line} of {span.file.rpartition('/')[2]})" if span.file else ""


def check_unpacked(value: object, names: int) -> None:
    """Raises CompilationError unless so many names can have the elements of a value."""
    if not isinstance(value, tuple | list):
        what = f"cannot unpack non-iterable value {shown(value)}"
    elif len(value) > names:
        what = f"too many values to unpack (expected {names}, got {len(value)})"
    elif len(value) < names:
        what = f"not enough values to unpack (expected {names}, got {len(value)})"
    else:
        return
    raise error(what, "write one name for each value")


def joined_by(left: object, right: object, instead: str) -> str:
    """A hint how to make one type of two: by another layout, if they differ in that alone."""
    laid = [one for one in (left, right) if isinstance(one, distributed_type)]
    if len({(one.scalar, one.shape) for one in laid}) == 1 and len(laid) == 2:
        return "convert one of them: gl.convert_layout(x, y.type.layout)"
    return instead
