"""Rules of tensor descriptors."""

from collections.abc import Callable
from typing import Any

from proton.base.targets import CPUTarget, GPUTarget, Target
from proton.base.words import shown
from proton.dialect import tt_block
from proton.dialect.builtin import i32_attr, string_attr
from proton.dialect.mlir import ir
from proton.frontend.blocks import integers, listed
from proton.frontend.builder import error, memory_type, to_ir, wrap
from proton.frontend.interface import CodeGenerator
from proton.frontend.memory import check_atomic_element, load_caching
from proton.frontend.promotion import cast
from proton.frontend.rules import generator_rule, rule
from proton.language import descriptor as dsc
from proton.language import types as ty
from proton.language.gluon.core import tensor_descriptor_im2col
from proton.language.value import tensor

_LEAST_ROWS = 8  # of a gather, as Triton has it


@generator_rule(dsc.make_tensor_descriptor)
def _make(
    g: CodeGenerator,
    base: Any,
    shape: Any,
    strides: Any,
    block_shape: Any,
    padding_option: Any = "zero",
) -> tensor:
    """A CPU has no TMA, which copies rows of 16 bytes: torch relies on smaller ones there."""
    what = "tl.make_tensor_descriptor"
    pointer = base.type if isinstance(base, tensor) else None
    if not isinstance(pointer, ty.pointer_type) or pointer.block is not None:
        found = shown(base) if pointer is None else pointer
        raise error(
            f"{what}: base must be a pointer, got {found}",
            "pass the pointer to the tensor's first element",
        )
    element, sizes, last = pointer.element_ty, listed(block_shape), listed(strides)[-1:]
    try:
        least = 0 if isinstance(g.target, CPUTarget) else ty.DESCRIPTOR_ROW_BYTES
        ty.check_descriptor_block(element, sizes, least)
    except ValueError as problem:
        raise error(f"{what}: {problem}", "use pointers for smaller blocks") from None
    if isinstance(last[0] if last else None, tensor) or last != (1,):
        raise error(
            f"{what}: the last stride must be 1, and known while compiling, got "
            f"{shown(last[0]) if last else 'none'}",
            "write 1; transpose the block after loading it",
        )
    if padding_option not in tt_block.PADDINGS:
        raise error(f'padding_option must be "zero" or "nan", got {shown(padding_option)}', '"nan"')
    if padding_option == "nan" and not element.is_floating():
        raise error(f'padding_option="nan" needs floats, got {element}', 'pass "zero"')
    type_ = ty.tensor_descriptor_type(ty.block_type(element, tuple(sizes)), padding_option)
    op = tt_block.MakeTensorDescOp(
        base.handle,
        integers("shape", shape, ty.int32, len(sizes), cut=True),
        integers("strides", strides, ty.int64, len(sizes)),
        to_ir(type_),
    )
    return wrap(op, type_)


# What a kernel reads of one


def _sizes(desc: tensor) -> tuple[tensor, ...]:
    axes = range(_type(desc).rank)
    ops = [tt_block.DescriptorSizeOp(desc.handle, i32_attr(axis), to_ir(ty.int32)) for axis in axes]
    return tuple(wrap(op, ty.int32) for op in ops)


def _strides(desc: tensor) -> tuple[tensor, ...]:
    axes = range(_type(desc).rank)
    ops = [
        tt_block.DescriptorStrideOp(desc.handle, i32_attr(axis), to_ir(ty.int64)) for axis in axes
    ]
    return tuple(wrap(op, ty.int64) for op in ops)


def _type(desc: Any) -> ty.tensor_descriptor_type:
    assert isinstance(desc.type, ty.tensor_descriptor_type)
    return desc.type


def _block(desc: Any) -> ty.block_type:
    return _type(desc).block_type


def class_of(desc: object) -> type:
    """What a kernel calls the class of a descriptor."""
    is_im2col = isinstance(desc, tensor_descriptor_im2col)
    return tensor_descriptor_im2col if is_im2col else dsc.tensor_descriptor


ATTRIBUTES: dict[str, Callable[[tensor], object]] = {
    "shape": _sizes,
    "strides": _strides,
    "block_shape": lambda desc: _block(desc).shape,
    "block_type": _block,
    "dtype": lambda desc: _block(desc).element_ty,
    "type": lambda desc: desc.type,
}


# Accesses


def _checked(desc: object, what: str) -> ty.block_type:
    """The block of what must be a descriptor."""
    if not isinstance(desc, dsc.tensor_descriptor) or class_of(desc) is tensor_descriptor_im2col:
        found = desc.type if isinstance(desc, tensor) else shown(desc)
        raise error(
            f"{what} takes a tensor descriptor, got {found}",
            "make one of a pointer with tl.make_tensor_descriptor",
        )
    return _block(desc)


@rule(dsc.load_tensor_descriptor)
@rule(dsc.tensor_descriptor.load)
def _load(desc: Any, offsets: Any, cache_modifier: str = "", eviction_policy: str = "") -> tensor:
    block = _checked(desc, "a load")
    op = tt_block.DescriptorLoadOp(
        desc.handle,
        integers("offsets", offsets, ty.int32, len(block.shape)),
        *load_caching(cache_modifier, eviction_policy),
        to_ir(memory_type(block)),
    )
    return cast(wrap(op, memory_type(block)), block.element_ty)


@rule(dsc.store_tensor_descriptor)
@rule(dsc.tensor_descriptor.store)
def _store(desc: Any, offsets: Any, value: Any) -> None:
    block = _checked(desc, "a store")
    stored = _stored(block.shape, value, block.element_ty)
    indices = integers("offsets", offsets, ty.int32, len(block.shape))
    tt_block.DescriptorStoreOp(desc.handle, stored.handle, indices)


def _stored(shape: tuple[int, ...], value: object, element: ty.dtype) -> tensor:
    """A block as memory has it."""
    if not isinstance(value, tensor) or value.shape != shape:
        found = value.type if isinstance(value, tensor) else shown(value)
        raise error(
            f"a block of {list(shape)} is written, got {found}", "reshape it, or use tl.full"
        )
    return cast(cast(value, element), memory_type(element))


def _row_type(desc: Any, what: str, x_offsets: Any) -> ty.block_type:
    """The type of as many rows as there are offsets."""
    block = _checked(desc, what)
    if len(block.shape) != 2 or block.shape[0] != 1:
        raise error(
            f"{what}: the descriptor's block must be one row, got {list(block.shape)}",
            "make the descriptor with block_shape=[1, columns]",
        )
    is_row = isinstance(x_offsets, tensor) and len(x_offsets.shape) == 1
    if not is_row or not x_offsets.dtype.is_int() or x_offsets.dtype.primitive_bitwidth > 32:
        found = x_offsets.type if isinstance(x_offsets, tensor) else shown(x_offsets)
        raise error(f"{what}: x_offsets must be a row of i32, got {found}", "add .to(tl.int32)")
    if x_offsets.shape[0] < _LEAST_ROWS:
        raise error(
            f"{what}: {_LEAST_ROWS} rows at least, got {x_offsets.shape[0]}", "use desc.load"
        )
    least = 32 // block.element_ty.itemsize
    if block.shape[1] < least:
        raise error(f"{what}: {least} columns at least, got {block.shape[1]}", "use tl.load")
    return ty.block_type(block.element_ty, (x_offsets.shape[0], block.shape[1]))


@rule(dsc.tensor_descriptor.gather)
def _gather(
    desc: Any, x_offsets: Any, y_offset: Any, cache_modifier: str = "", eviction_policy: str = ""
) -> tensor:
    if cache_modifier or eviction_policy:
        raise error("desc.gather takes no cache_modifier or eviction_policy", "leave them out")
    rows = _row_type(desc, "desc.gather", x_offsets)
    op = tt_block.DescriptorGatherOp(
        desc.handle,
        cast(x_offsets, ty.int32).handle,
        *integers("y_offset", y_offset, ty.int32, 1),
        to_ir(memory_type(rows)),
    )
    return cast(wrap(op, memory_type(rows)), rows.element_ty)


@rule(dsc.tensor_descriptor.scatter)
def _scatter(desc: Any, value: Any, x_offsets: Any, y_offset: Any) -> None:
    rows = _row_type(desc, "desc.scatter", x_offsets)
    stored = _stored(rows.shape, value, rows.element_ty)
    tt_block.DescriptorScatterOp(
        desc.handle,
        cast(x_offsets, ty.int32).handle,
        *integers("y_offset", y_offset, ty.int32, 1),
        stored.handle,
    )


def _check_least_or_most(element: ty.dtype, what: str, target: Target) -> None:
    """Raises CompilationError for a minimum or maximum of floats that TMA does not have: Triton
    refuses these, too."""
    if not element.is_floating():
        return
    if element not in (ty.float16, ty.bfloat16):
        raise error(
            f"{what} is not defined on {element}",
            "use tl.atomic_min and tl.atomic_max of pointers",
        )
    if not isinstance(target, GPUTarget) or not target.facts.has_tma:
        raise error(
            f"{what} of {element} needs TMA, of compute capability 9.0 or later",
            "use integers, or pointers",
        )


def _define_reduction(kind: str) -> None:
    @generator_rule(getattr(dsc.tensor_descriptor, f"atomic_{kind}"))
    def _(g: CodeGenerator, desc: Any, offsets: Any, value: Any) -> None:
        what = f"desc.atomic_{kind}"
        block = _checked(desc, what)
        element = block.element_ty
        check_atomic_element(element, what, kind in tt_block.ORDERED_KINDS)
        if kind in ("min", "max"):
            _check_least_or_most(element, what, g.target)
        stored = _stored(block.shape, value, element)
        tt_block.DescriptorReduceOp(
            desc.handle,
            stored.handle,
            integers("offsets", offsets, ty.int32, len(block.shape)),
            string_attr(kind),
            ir.BoolAttr.get(element.is_int_unsigned()),
        )


for _kind in tt_block.REDUCE_KINDS:
    _define_reduction(_kind)
