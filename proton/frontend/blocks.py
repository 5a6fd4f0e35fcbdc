"""Rules that make and move block pointers."""

from typing import Any

from proton.base.words import shown
from proton.dialect import tt_block
from proton.dialect.mlir import ir
from proton.frontend.builder import as_tensor, error, to_ir, wrap
from proton.frontend.promotion import cast
from proton.frontend.rules import rule
from proton.frontend.shapes import check_shape, item
from proton.language import memory
from proton.language import types as ty
from proton.language.value import tensor


def listed(values: Any) -> tuple[Any, ...]:
    """The elements of a tuple or list; a value alone is the only one."""
    return tuple(values) if isinstance(values, tuple | list) else (values,)


def integers(
    what: str, values: object, type_: ty.dtype, rank: int, cut: bool = False
) -> list[object]:
    """The SSA values of `rank` integer scalars, of type i32 or i64. With `cut` those that a kernel
    computes may be wider: their low bits are taken."""
    values = listed(values)
    if len(values) != rank:
        raise error(
            f"{what} must have {rank} entries, one for each dimension of the block, got "
            f"{len(values)}",
            "write 0 or 1 where nothing else is meant",
        )
    return [_integer(f"{what}[{n}]", value, type_, cut).handle for n, value in enumerate(values)]


def _integer(what: str, value: object, type_: ty.dtype, cut: bool) -> tensor:
    scalar = as_tensor(value, what)
    if scalar.is_block() and scalar.numel == 1:
        scalar = item(scalar)
    if scalar.is_block() or not scalar.dtype.is_int():
        raise error(f"{what} must be an integer scalar, got {scalar.type}", "convert it first")
    may_be_wider = cut and isinstance(value, tensor)
    if scalar.dtype.primitive_bitwidth > type_.primitive_bitwidth and not may_be_wider:
        raise error(
            f"{what} must fit in {type_}, got {scalar.dtype}",
            "add .to(tl.int32), or put the large part into the base pointer",
        )
    return cast(scalar, type_)


@rule(memory.make_block_ptr)
def _make_block_ptr(
    base: Any, shape: Any, strides: Any, offsets: Any, block_shape: Any, order: Any
) -> tensor:
    type_ = base.type if isinstance(base, tensor) else None
    if not isinstance(type_, ty.pointer_type) or type_.block is not None:
        raise error(
            "tl.make_block_ptr: base must be a pointer, got "
            f"{shown(base) if type_ is None else type_}",
            "pass the pointer to the tensor's first element",
        )
    sizes = check_shape(block_shape)
    rank, order = len(sizes), listed(order)
    if sorted(order) != list(range(rank)):
        raise error(
            f"order must be a permutation of the dimensions 0 to {rank - 1}, got {shown(order)}",
            "for a row-major tensor of two dimensions it is (1, 0)",
        )
    result = ty.pointer_type(ty.block_type(type_.element_ty, sizes), const=type_.const)
    op = tt_block.MakeTensorPtrOp(
        base.handle,
        integers("shape", shape, ty.int64, rank),
        integers("strides", strides, ty.int64, rank),
        integers("offsets", offsets, ty.int32, rank),
        ir.DenseI32ArrayAttr.get(order),
        to_ir(result),
    )
    return wrap(op, result)


@rule(memory.advance)
def _advance(base: Any, offsets: Any) -> tensor:
    type_ = base.type if isinstance(base, tensor) else None
    if not isinstance(type_, ty.pointer_type) or type_.block is None:
        raise error(
            f"tl.advance moves a block pointer, got {shown(base) if type_ is None else type_}",
            "add an integer to an ordinary pointer",
        )
    moves = integers("offsets", offsets, ty.int32, len(type_.block.shape))
    return wrap(tt_block.AdvanceOp(base.handle, moves, to_ir(type_)), type_)
