"""Rules of creation and shape ops."""

import math
from typing import Any

from proton.base.knobs import VERSIONS, knobs
from proton.base.words import shown
from proton.dialect import tt, ttg
from proton.dialect.attributes import CONSTANCY, CONTIGUITY, DIVISIBILITY
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Attribute, ir
from proton.frontend.builder import (
    as_tensor,
    broadcast_all,
    broadcast_to,
    changed,
    constant,
    error,
    splat,
    to_ir,
    warn,
    wrap,
)
from proton.frontend.promotion import bitcast, cast
from proton.frontend.rules import rule
from proton.language import core
from proton.language import types as ty
from proton.language.gluon.changes import rejoined
from proton.language.gluon.types import distributed_type
from proton.language.value import tensor


def _axis_attr(axis: object, what: str) -> Attribute:
    if not isinstance(axis, int) or not 0 <= axis <= 2:
        raise error(
            f"{what} axis must be 0, 1, or 2 but got {shown(axis)}", "a grid has up to three axes"
        )
    return i32_attr(axis)


@rule(core.program_id)
def _program_id(axis: int) -> tensor:
    op = tt.GetProgramIdOp(_axis_attr(axis, "program_id"), to_ir(ty.int32))
    return wrap(op, ty.int32)


@rule(core.num_programs)
def _num_programs(axis: int) -> tensor:
    op = tt.GetNumProgramsOp(_axis_attr(axis, "num_programs"), to_ir(ty.int32))
    return wrap(op, ty.int32)


@rule(core.arange)
def _arange(start: Any, end: Any) -> tensor:
    for name, value in (("start", start), ("end", end)):
        if not isinstance(value, int):
            raise error(
                f"tl.arange: {name} must be a constexpr integer, got {shown(value)}",
                "mark the parameter as tl.constexpr",
            )
    size = end - start
    if size <= 0 or size & (size - 1):
        raise error(
            "arange's range must be a power of 2",
            f"end - start is {size}: round it up with proton.next_power_of_2 and mask the rest",
        )
    if not -(2**31) <= start <= end <= 2**31 - 1:
        raise error(
            f"tl.arange: bounds must fit in i32, got {start} and {end}",
            "add the large part after a .to(tl.int64)",
        )
    type_ = ty.block_type(ty.int32, check_shape((size,)))
    return wrap(tt.MakeRangeOp(i32_attr(start), i32_attr(end), to_ir(type_)), type_)


def check_shape(shape: Any) -> tuple[int, ...]:
    """A shape from the user: ints, each a power of two, not too many elements."""
    if isinstance(shape, int):
        shape = (shape,)
    try:
        return ty.check_block_shape(tuple(shape))
    except (ValueError, TypeError) as problem:
        raise error(
            str(problem),
            f"{shown(shape)} is no shape: sizes are constexpr powers of two, "
            f"{ty.TRITON_MAX_TENSOR_NUMEL} elements in all; mask the rest, or loop over smaller "
            "blocks",
        ) from None


@rule(core.full)
def _full(shape: Any, value: Any, dtype: ty.dtype) -> tensor:
    sizes = check_shape(shape)
    if not isinstance(dtype, ty.dtype):
        raise error(
            f"tl.full: dtype must be a dtype, got {shown(dtype)}", "pass tl.float32 or the like"
        )
    if not isinstance(value, tensor):
        return constant(value, ty.block_type(dtype, sizes) if sizes else dtype)
    if value.numel != 1:
        raise error(
            f"tl.full: value must be a scalar, got {value.type}", "use tl.broadcast_to for blocks"
        )
    scalar = cast(item(value), dtype)
    return splat(scalar, sizes) if sizes else scalar


@rule(core.zeros)
def _zeros(shape: object, dtype: ty.dtype) -> tensor:
    return _full(shape, 0, dtype)


@rule(core.zeros_like)
def _zeros_like(input: object) -> tensor:
    return constant(0, as_tensor(input).type)


@rule(core.to_tensor)
def _to_tensor(x: object) -> tensor:
    return as_tensor(x)


@rule(core.cast)
def _cast(
    input: object, dtype: ty.dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False
) -> tensor:
    if not isinstance(dtype, ty.dtype):
        raise error(
            f"cast: dtype must be a dtype, got {shown(dtype)}", "pass tl.float32 or the like"
        )
    if fp_downcast_rounding not in (None, "rtne", "rtz"):
        raise error(
            f'fp_downcast_rounding must be "rtne" or "rtz", got {shown(fp_downcast_rounding)}',
            "leave it out to round to nearest",
        )
    value = as_tensor(input)
    if bitcast:
        return _bitcast(value, dtype.scalar)
    return cast(value, dtype.scalar, fp_downcast_rounding)


_bitcast = bitcast


@rule(core.to)
def _to(
    input: object, dtype: ty.dtype, fp_downcast_rounding: str | None = None, bitcast: bool = False
) -> tensor:
    return _cast(input, dtype, fp_downcast_rounding, bitcast)


@rule(core.broadcast)
def _broadcast(input: object, other: object) -> tuple[tensor, ...]:
    return tuple(broadcast_all(as_tensor(input), as_tensor(other)))


def _flat(args: tuple[object, ...]) -> tuple[object, ...]:
    """`f(x, 2, 3)` and `f(x, (2, 3))` mean the same."""
    if len(args) == 1 and isinstance(args[0], tuple | list):
        return tuple(args[0])
    return args


@rule(core.broadcast_to)
def _broadcast_to(input: object, *shape: object) -> tensor:
    return broadcast_to(as_tensor(input), check_shape(_flat(shape)))


def normalize_axis(axis: object, rank: int, what: str) -> int:
    """An axis counted from the front."""
    if not isinstance(axis, int) or not -rank <= axis < rank:
        raise error(
            f"{what}: invalid axis {shown(axis)}, which must lie in [{-rank}, {rank})",
            f"the block has {rank} dimensions; negative axes count from the last",
        )
    return axis % rank


@rule(core.expand_dims)
def expand_dims(input: object, axis: object) -> tensor:
    """A dimension of size 1 at each axis of the result."""
    value = as_tensor(input)
    axes = axis if isinstance(axis, tuple | list) else (axis,)
    rank = len(value.shape) + len(axes)
    positions = sorted(normalize_axis(a, rank, "tl.expand_dims") for a in axes)
    if len(set(positions)) < len(positions):
        raise error(
            f"tl.expand_dims: duplicate axes, normalized axes = {positions}", "name each once"
        )
    for position in positions:
        shape = (*value.shape[:position], 1, *value.shape[position:])
        if not value.is_block():
            value = splat(value, shape)
            continue
        type_ = changed(value, "expanded", position)
        op = tt.ExpandDimsOp(value.handle, i32_attr(position), to_ir(type_))
        value = wrap(op, type_)
    return value


@rule(core.unsqueeze)
def _unsqueeze(x: object, dim: int) -> tensor:
    return expand_dims(x, dim)


@rule(core.squeeze)
def _squeeze(x: object, dim: int) -> tensor:
    value = as_tensor(x)
    axis = normalize_axis(dim, len(value.shape), "tl.squeeze")
    if value.shape[axis] != 1:
        raise error(
            f"tl.squeeze: dimension {axis} must have size 1, got {value.shape[axis]}",
            "reduce along it, or reshape",
        )
    return reshape(value, (*value.shape[:axis], *value.shape[axis + 1 :]))


@rule(core.reshape)
def reshape(input: object, *shape: object, can_reorder: bool = False) -> tensor:
    """The same elements, row-major, in another shape."""
    if can_reorder:
        deprecated = "can_reorder=True is deprecated, as in Triton, and not in its 3.10"
        if knobs.triton_version != VERSIONS[0]:
            raise error(deprecated, "leave it out: elements keep their order")
        warn(f"{deprecated}: leave it out")
    value, sizes = as_tensor(input), check_shape(_flat(shape))
    if math.prod(sizes) != value.numel:
        raise error(
            f"reshape keeps the number of elements, got {list(value.shape)} ({value.numel}) "
            f"to {list(sizes)} ({math.prod(sizes)})",
            "choose sizes with the same product, or use tl.broadcast_to to repeat elements",
        )
    if value.shape == sizes:
        return value
    if not sizes:
        return item(value)
    if not value.is_block():
        return splat(value, sizes)
    type_ = changed(value, "reshaped", sizes)
    return wrap(tt.ReshapeOp(value.handle, to_ir(type_)), type_)


@rule(core.view)
def _view(input: object, *shape: object) -> tensor:
    warn("tl.view is deprecated, as in Triton: use tl.reshape")
    return reshape(input, *shape)


@rule(core.ravel)
def _ravel(x: object, can_reorder: bool = False) -> tensor:
    value = as_tensor(x)
    return reshape(value, (value.numel,), can_reorder=can_reorder)


@rule(core.item)
def item(input: object) -> tensor:
    value = as_tensor(input)
    if not value.is_block():
        return value
    if value.numel != 1:
        raise error(
            f"item() needs one element, got shape {list(value.shape)}",
            "reduce first, with tl.sum or tl.max",
        )
    return wrap(tt.UnsplatOp(value.handle, to_ir(value.dtype)), value.dtype)


@rule(core.permute)
def permute(input: object, *dims: object) -> tensor:
    """Dimensions in another order."""
    value = as_tensor(input)
    order = tuple(normalize_axis(d, len(value.shape), "permute") for d in _flat(dims))
    if sorted(order) != list(range(len(value.shape))):
        raise error(
            f"dims must permute {len(value.shape)} dimensions, got {order}",
            f"name each of 0 to {len(value.shape) - 1} once",
        )
    if order == tuple(range(len(order))):
        return value
    type_ = changed(value, "permuted", order)
    attribute = ir.DenseI64ArrayAttr.get(order)
    return wrap(tt.TransOp(value.handle, attribute, to_ir(type_)), type_)


@rule(core.trans)
def transpose(input: object, *dims: object) -> tensor:
    """The last two dimensions swapped, or `permute`."""
    value, order = as_tensor(input), _flat(dims)
    if not order:
        rank = len(value.shape)
        if rank < 2:
            raise error(
                f"trans needs at least two dimensions, got shape {list(value.shape)}",
                "add one with x[:, None]",
            )
        order = (*range(rank - 2), rank - 1, rank - 2)
    return permute(value, *order)


@rule(core.join)
def join(a: object, b: object) -> tensor:
    """Both along a new last dimension."""
    left, right = broadcast_all(as_tensor(a), as_tensor(b))
    if to_ir(left.dtype) != to_ir(right.dtype):  # integers of one width may differ in their sign
        raise error(
            f"tl.join: dtypes must agree, got {left.dtype} and {right.dtype}",
            "cast one side with .to(...)",
        )
    if not left.is_block():
        left, right = splat(left, (1,)), splat(right, (1,))
        return reshape(join(left, right), (2,))
    type_ = changed(left, "joined")
    both = wrap(tt.JoinOp(left.handle, right.handle, to_ir(type_)), type_)
    if isinstance(left.type, distributed_type):
        layout = rejoined(left.type.layout, left.shape)
        if layout is not None:
            whole = distributed_type(both.dtype, both.shape, layout)
            return wrap(ttg.ConvertLayoutOp(both.handle, to_ir(whole)), whole)
    return both


@rule(core.split)
def _split(a: object) -> tuple[tensor, tensor]:
    value = as_tensor(a)
    if value.shape[-1:] != (2,):
        raise error(
            f"tl.split: the last dimension must have size 2, got {list(value.shape)}",
            "reshape to (..., 2) first",
        )
    is_pair = value.shape == (2,)
    if is_pair:
        value = reshape(value, (1, 2))
    type_ = changed(value, "halved")
    op = tt.SplitOp(value.handle, to_ir(type_), to_ir(type_))
    halves = tensor(op.lhs, type_), tensor(op.rhs, type_)
    return (item(halves[0]), item(halves[1])) if is_pair else halves


def subscript(value: tensor, key: object) -> tensor:
    """`x[None, :]`: None adds a dimension, `:` keeps one."""
    keys = key if isinstance(key, tuple) else (key,)
    # Of a scalar `:` keeps nothing, as in Triton up to 3.8: `[:, None]` and `[None, :]` are alike.
    if value.is_block() and sum(k == slice(None) for k in keys) > len(value.shape):
        raise error(f"too many indices for shape {list(value.shape)}", "write one ':' a dimension")
    for axis, k in enumerate(keys):
        if k is None:
            value = expand_dims(value, min(axis, len(value.shape)))
        elif k != slice(None):
            raise error(
                f"unsupported tensor index {shown(k)}",
                "a block is indexed by None and ':' only: load the element through a pointer, or "
                "reduce over a mask",
            )
    return value


@rule(core.multiple_of)
def _multiple_of(input: object, values: object) -> tensor:
    return _hint(input, values, DIVISIBILITY)


@rule(core.max_contiguous)
def _max_contiguous(input: object, values: object) -> tensor:
    return _hint(input, values, CONTIGUITY)


@rule(core.max_constancy)
def _max_constancy(input: object, values: object) -> tensor:
    return _hint(input, values, CONSTANCY)


def _hint(input: object, values: object, name: str) -> tensor:
    """Attaches the promise to the op that makes the value; a block argument has no place."""
    value = as_tensor(input)
    numbers = values if isinstance(values, tuple | list) else (values,)
    positive = all(isinstance(n, int) and 0 < n < 2**63 for n in numbers)
    if len(numbers) != max(1, len(value.shape)) or not positive:
        raise error(
            f"{name[3:]} takes one positive integer a dimension, got {shown(values)}",
            f"the value has shape {list(value.shape)}",
        )
    if isinstance(value.handle, ir.OpResult):
        value.handle.owner.attributes[name] = ir.DenseI64ArrayAttr.get(numbers)
    return value
