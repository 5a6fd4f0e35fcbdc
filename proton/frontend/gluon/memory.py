"""Rules of Gluon's shared memory: what is allocated, its views, what lies there.

A view's type has the memory's type in IR, which says where each element lies; its layout is what
the author would call that.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from math import gcd, prod
from typing import Any

from proton.base.chips.chip import ACCESS_BYTES
from proton.base.words import shown
from proton.dialect import isa, ttg
from proton.dialect.builtin import i32_attr
from proton.dialect.emit import number_of
from proton.dialect.mlir import Type, Value, ir
from proton.dialect.walk import defining_op
from proton.frontend.builder import as_tensor, error, memory_type, to_ir, wrap
from proton.frontend.gluon.tensors import block, check_warps, laid_out
from proton.frontend.interface import CodeGenerator
from proton.frontend.promotion import cast
from proton.frontend.rules import generator_rule, rule
from proton.frontend.shapes import item
from proton.language import types as ty
from proton.language.gluon import core
from proton.language.gluon.core import shared_memory_descriptor
from proton.language.gluon.layouts import (
    Bases,
    NVMMASharedLayout,
    PaddedSharedLayout,
    SharedLayout,
    SharedLinearLayout,
    SwizzledSharedLayout,
)
from proton.language.gluon.types import shared_memory_descriptor_type
from proton.language.value import tensor
from proton.layout.linear import LinearLayout
from proton.layout.shared_view import SharedView

Memory = shared_memory_descriptor_type
_BYTE = 8


def memory(value: object, what: str) -> tensor:
    """A value that must be shared memory."""
    if not isinstance(value, shared_memory_descriptor):
        found = value.type if isinstance(value, tensor) else shown(value)
        raise error(
            f"{what}: expected a shared_memory_descriptor, got {found}",
            "make one with gl.allocate_shared_memory",
        )
    assert isinstance(value, tensor)
    return value


def accessed(value: object, what: str) -> tensor:
    """Memory that an op takes whole: none of several parts."""
    found = memory(value, what)
    own = type_of(found)
    if _leading(own):
        raise error(
            f"{what}: memory of {list(own.shape)} in the layout {own.layout} is "
            f"{prod(own.shape[: _leading(own)])} parts",
            "take one with memory.index(i), or give the memory a layout of all its dimensions",
        )
    return found


def type_of(value: tensor) -> Memory:
    """The type of memory."""
    assert isinstance(value.type, Memory)
    return value.type


def sizes(shape: object, what: str) -> tuple[int, ...]:
    """A shape from the user, each size a power of two but that of a first dimension, which counts
    parts."""
    found = shape if isinstance(shape, tuple | list) else (shape,)
    for size in found:
        if not isinstance(size, int) or size < 1:
            raise error(f"{what}: all elements of 'shape' must be integers but got {shown(shape)}",
                        "pass constexprs")  # fmt: skip
    return tuple(found)


def shared_type(
    element: ty.dtype, shape: tuple[int, ...], layout: object, alloc_shape: object, what: str
) -> Memory:
    """The type of memory of a shape in a layout from the user."""
    if not isinstance(element, ty.dtype):
        raise error(
            f"{what}: expected 'element_ty' to be a dtype but got {shown(element)}", "gl.float16"
        )
    if not isinstance(layout, SharedLayout):
        raise error(
            f"{what}: expected 'layout' to be a SharedLayout but got {shown(layout)}",
            "pass gl.NVMMASharedLayout(...), gl.SwizzledSharedLayout(...) or another of memory",
        )
    rank = layout.order_rank
    if rank > len(shape):
        raise error(
            f"{what}: {layout} is of {rank} dimensions, and the shape {list(shape)}",
            "give it one of each",
        )
    try:
        linear = layout.linear(shape[len(shape) - rank :], element.primitive_bitwidth)
        view = SharedView.of(linear, layout.paddings)
    except (ValueError, IndexError) as problem:
        raise error(
            f"{what}: {layout} is no layout of {list(shape)} elements of {element}: {problem}",
            "sizes are powers of two, and rows as long as the swizzle at least",
        ) from None
    return _typed(element, shape, layout, alloc_shape, view)


def _typed(
    element: ty.dtype,
    shape: Sequence[int],
    layout: SharedLayout,
    alloc_shape: object,
    view: SharedView,
) -> Memory:
    desc = ttg.view_desc(tuple(shape), to_ir(held(element)), view)
    return Memory(element, shape, layout, alloc_shape, desc)


def held(type_: ty.dtype) -> ty.dtype:
    """What memory has of elements of a type: the address of a pointer, a byte of a bool."""
    return ty.with_scalar(type_, ty.int64) if type_.scalar.is_ptr() else memory_type(type_)


@generator_rule(core.allocate_shared_memory)
def _allocate(
    g: CodeGenerator, element_ty: ty.dtype, shape: object, layout: object, value: object = None
) -> Any:
    what = "gl.allocate_shared_memory"
    found = sizes(shape, what)
    type_ = shared_type(element_ty, found, layout, list(found), what)
    made = wrap(ttg.LocalReserveOp(to_ir(type_)), type_)
    if value is not None:
        _store(made, value)
    return made


@generator_rule(shared_memory_descriptor.load)
def load(g: CodeGenerator, self: object, layout: object) -> tensor:
    """What lies in memory."""
    source = accessed(self, "load")
    own = type_of(source)
    target = block(own.element_ty, own.shape, layout, "load")
    check_warps(g, target)
    stored = held(target)
    value = wrap(ttg.LocalLoadOp(source.handle, to_ir(stored)), stored)
    return cast(value, own.element_ty)


@rule(shared_memory_descriptor.store)
def _store(self: object, value: object) -> None:
    stored(self, value, "store")


def stored(memory: object, value: object, what: str) -> Memory:
    """The type of memory, to which a tensor is stored."""
    target = accessed(memory, what)
    own, source = type_of(target), laid_out(value, what)
    _check_same(what, own, source)
    ttg.LocalStoreOp(cast(source, held(own.element_ty)).handle, target.handle)
    return own


def _check_same(what: str, own: Memory, value: tensor) -> None:
    if value.shape != own.shape:
        raise error(
            f"{what}: source shape {list(value.shape)} and destination shape {list(own.shape)} "
            "must match",
            "store to memory.slice(...), or to memory.index(i)",
        )
    if value.dtype != own.element_ty:
        raise error(
            f"{what}: source dtype {value.dtype} and destination dtype {own.element_ty} must match",
            f"convert it with .to({own.element_ty!s})",
        )


# Views


def _viewed(source: tensor, type_: Memory, offset: int = 0) -> tensor:
    op = ttg.MemDescViewOp(source.handle, i32_attr(offset), to_ir(type_))
    return wrap(op, type_)


def _view(type_: Memory) -> SharedView:
    found: SharedView = ttg.mem_desc_view(_desc(type_))
    return found


def _desc(type_: Memory) -> Type:
    return to_ir(type_)


def _element_bytes(type_: Memory) -> int:
    return max(1, int(type_.element_ty.primitive_bitwidth) // _BYTE)


def _leading(type_: Memory) -> int:
    """The dimensions ahead of those that lie in the memory's layout."""
    return len(type_.shape) - len(_view(type_).shape)


@rule(shared_memory_descriptor.slice)
def _slice(self: object, start: int, length: int, dim: int = 0) -> tensor:
    source = memory(self, "slice")
    own = type_of(source)
    for name, value in (("start", start), ("length", length), ("dim", dim)):
        if not isinstance(value, int):
            raise error(
                f"expected '{name}' to be an int but got {shown(value)}",
                "bounds of a slice are known while compiling; .index(i) takes any index",
            )
    if not 0 <= dim < len(own.shape) or length < 1 or not 0 <= start <= own.shape[dim] - length:
        raise error(
            f"slice [{start}, {start + length}) of dimension {dim} is not in memory of "
            f"{list(own.shape)}",
            "the slice lies inside",
        )
    shape = list(own.shape)
    shape[dim] = length
    view, leading, size = _view(own), _leading(own), _element_bytes(own)
    if dim < leading:
        step = view.padded(view.size) * prod(own.shape[dim + 1 : leading])
        type_ = _typed(own.element_ty, shape, own.layout, own.alloc_shape, view)
        return _viewed(source, type_, start * step * size)
    if start % length or length & (length - 1):
        raise error(
            f"a slice of {length} from {start} on is not supported",
            "the length is a power of two, and the start a multiple of it",
        )
    starts = [0] * len(view.shape)
    starts[dim - leading] = start
    return _folded(source, own, shape, view.sliced(starts, shape[leading:]))


def _folded(source: tensor, own: Memory, shape: Sequence[int], view: SharedView) -> tensor:
    """A part of memory, whose first element has an address of its own where offsets are not
    exchanged."""
    offset = view.padded(view.start) * _element_bytes(own) if view.is_foldable else 0
    part = view.folded() if view.is_foldable else view
    type_ = _typed(own.element_ty, shape, own.layout, own.alloc_shape, part)
    return _viewed(source, type_, offset)


@rule(shared_memory_descriptor.index)
def _index(self: object, index: object) -> tensor:
    source = memory(self, "index")
    own, number = type_of(source), item(as_tensor(index))
    if not number.dtype.is_int() or number.dtype.primitive_bitwidth > 32:
        raise error(f"expected 'index' to be int32 but got {number.type}", "add .to(gl.int32)")
    shape = own.shape[1:]
    if not shape:
        raise error("index: memory of one dimension has no parts", "take .slice(i, 1)")
    known = number_of(number.handle)
    if known is not None and not 0 <= known < own.shape[0]:
        raise error(
            f"index {known} is not in memory of {own.shape[0]} parts ({list(own.shape)})",
            f"parts are counted from 0 to {own.shape[0] - 1}",
        )
    if not _leading(own):
        return _index_inside(source, own, number)
    type_ = _typed(own.element_ty, shape, own.layout, list(shape), _view(own))
    op = ttg.MemDescIndexOp(source.handle, cast(number, ty.int32).handle, to_ir(type_))
    return wrap(op, type_)


def _index_inside(source: tensor, own: Memory, number: tensor) -> tensor:
    """Of memory whose layout is of all dimensions: parts lie one behind the other where the first
    dimension is the slowest, and not exchanged."""
    view, rank = _view(own), len(own.shape)
    inner = view.sliced([0] * rank, [1, *own.shape[1:]])
    size = prod(own.shape[1:])
    firsts = [basis[0] for basis in view.places.bases("dim0")]
    is_slowest = firsts == [size << bit for bit in range(len(firsts))] and not view.paddings
    if not is_slowest or view.start:
        raise error(
            f"index: the parts of {own.layout} do not lie one behind the other",
            "give the memory a layout of one dimension less, or take .slice(i, 1)",
        )
    places = inner.reshaped(own.shape[1:]).places
    part = SharedView(LinearLayout.of(dict(places.ins), {"offset": size}), size)
    whole = _typed(own.element_ty, own.shape, own.layout, own.alloc_shape, part)
    parts = _viewed(source, whole)
    shape = own.shape[1:]
    type_ = _typed(own.element_ty, shape, _layout_of(part, own.layout, shape), list(shape), part)
    op = ttg.MemDescIndexOp(parts.handle, cast(number, ty.int32).handle, to_ir(type_))
    return wrap(op, type_)


def _layout_of(view: SharedView, like: SharedLayout, shape: tuple[int, ...]) -> SharedLayout:
    """What the author would call where a view lies."""
    layout = view.layout
    if layout is None:
        return like
    if isinstance(like, SwizzledSharedLayout) and like.max_phase == 1:
        order = [axis - 1 for axis in like.order if axis]
        found = SwizzledSharedLayout(1, 1, 1, order)
        if found.linear(shape, _BYTE) == layout:
            return found
    return SharedLinearLayout.of(layout)


@rule(shared_memory_descriptor.permute)
def _permute(self: object, order: object) -> tensor:
    source = memory(self, "permute")
    own = type_of(source)
    dims = tuple(order) if isinstance(order, tuple | list) else (order,)
    if not all(isinstance(axis, int) for axis in dims):
        raise error(
            f"all elements of 'order' must be integers but got {shown(order)}", "write [1, 0]"
        )
    rank, leading = len(own.shape), _leading(own)
    if sorted(dims) != list(range(rank)):
        raise error(
            f"source rank ({rank}) and order length ({len(dims)}) must match: {shown(order)} is no "
            "order of the dimensions",
            "name each once",
        )
    if dims[:leading] != tuple(range(leading)):
        raise error("permute: the first dimensions, which count parts, stay first", ".index(i)")
    inner = [axis - leading for axis in dims[leading:]]
    shape = [own.shape[axis] for axis in dims]
    head = own.alloc_shape[: len(own.alloc_shape) - rank]
    tail = own.alloc_shape[len(own.alloc_shape) - rank :]
    alloc_shape = [*head, *(tail[axis] for axis in dims)]
    view, layout = _view(own).permuted(inner), _permuted_layout(own, inner)
    return _viewed(source, _typed(own.element_ty, shape, layout, alloc_shape, view))


def _permuted_layout(own: Memory, order: list[int]) -> SharedLayout:
    layout, view = own.layout, _view(own)
    if order == list(range(len(order))):
        return layout

    def moved(bases: Bases) -> Bases:
        return [[basis[axis] for axis in order] for basis in bases]

    if isinstance(layout, SwizzledSharedLayout):
        places = [order.index(axis) for axis in layout.order]
        return replace(layout, order=places, cga_layout=moved(layout.cga_layout))
    if isinstance(layout, NVMMASharedLayout) and order == [1, 0]:
        transposed = not layout.transposed
        return replace(layout, transposed=transposed, cga_layout=moved(layout.cga_layout))
    if isinstance(layout, PaddedSharedLayout):
        return replace(
            layout,
            offset_bases=moved(layout.offset_bases),
            cga_layout=moved(layout.cga_layout),
            shape=[layout.shape[axis] for axis in order],
        )
    found = view.permuted(order).layout
    return layout if found is None else SharedLinearLayout.of(found)


@rule(shared_memory_descriptor.reshape)
def _reshape(self: object, shape: object) -> tensor:
    source = memory(self, "reshape")
    own, new = type_of(source), sizes(shape, "reshape")
    if prod(new) != prod(own.shape):
        raise error(
            f"memdesc_reshape total elements mismatch: {list(own.shape)} -> {list(new)}",
            "choose sizes with the same product",
        )
    leading = _leading(own)
    if new[:leading] != own.shape[:leading]:
        raise error("reshape: the first dimensions, which count parts, stay first", ".index(i)")
    view = _view(own).reshaped(new[leading:])
    layout = _reshaped_layout(own, view, new[leading:])
    prefix = own.alloc_shape[: len(own.alloc_shape) - len(own.shape)]
    return _viewed(source, _typed(own.element_ty, new, layout, [*prefix, *new], view))


def _reshaped_layout(own: Memory, view: SharedView, shape: tuple[int, ...]) -> SharedLayout:
    """The swizzle stays where it is one of the new shape, too."""
    layout, bits = own.layout, own.element_ty.primitive_bitwidth
    candidates: list[SharedLayout] = []
    if isinstance(layout, NVMMASharedLayout) and not layout.transposed:
        swizzle, width = layout.swizzle_byte_width, layout.element_bitwidth
        candidates.append(NVMMASharedLayout(swizzle, width, len(shape)))
    if isinstance(layout, SwizzledSharedLayout) and layout.max_phase == 1:
        candidates.append(SwizzledSharedLayout(1, 1, 1, list(reversed(range(len(shape))))))
    whole = view.layout
    for candidate in candidates:
        try:
            if candidate.linear(shape, bits) == whole:
                return candidate
        except ValueError:
            continue
    return layout if whole is None else SharedLinearLayout.of(whole)


@rule(shared_memory_descriptor.reinterpret)
def _reinterpret(
    self: object, dtype: ty.dtype | None = None, shape: object = None, layout: object = None
) -> tensor:
    source = memory(self, "reinterpret")
    own = type_of(source)
    element = own.element_ty if dtype is None else dtype
    new = own.shape if shape is None else sizes(shape, "reinterpret")
    target = own.layout if layout is None else layout
    type_ = shared_type(element, new, target, list(new), "reinterpret")
    before, after = _whole(source), _bytes(_desc(type_))
    if after > before:
        raise error(
            f"reinterpret: {list(new)} elements of {element} are {after} bytes, and the memory has "
            f"{before}",
            "allocate as much as the larger one needs",
        )
    if _block_copies(target) != _block_copies(own.layout):
        raise error(
            f"reinterpret: blocks of a cluster would each have a copy of their own in {target}, "
            "and a program is one block of threads",
            "reinterpret between layouts of as many copies, or launch with num_ctas=1",
        )
    view = _view(own)
    if view.start:
        raise error(
            "reinterpret of a part whose elements are exchanged is not supported",
            "reinterpret the whole",
        )
    check_begin(source, min(ACCESS_BYTES, _view(type_).size * _element_bytes(type_)), "reinterpret")
    return _viewed(source, type_)


def _block_copies(layout: object) -> int:
    """How many of a cluster's bits choose between copies."""
    bases = getattr(layout, "cga_layout", None) or getattr(layout, "block_bases", None) or []
    return sum(not any(basis) for basis in bases)


def _whole(source: tensor) -> int:
    """Bytes of memory; of a part at an index, those of all parts from there on, since they lie in a
    row: from the first, where the index is not known."""
    op = defining_op(source.handle)
    part = _bytes(source.handle.type)
    if op is None or not isa(op, ttg.MemDescIndexOp):
        return part
    shape, _ = ttg.mem_desc_block(op.operands[0].type)
    return (int(shape[0]) - (number_of(op.operands[1]) or 0)) * part


def _bytes(type_: Type) -> int:
    (shape, element), view = ttg.mem_desc_block(type_), ttg.mem_desc_view(type_)
    count = prod(shape[: len(shape) - len(view.shape)])
    return count * view.padded(view.size) * max(1, int(element.width) // _BYTE)


def check_begin(value: tensor, multiple: int, what: str) -> None:
    """Raises CompilationError for a part of memory that may not begin at such a multiple."""
    divisor = _offset_divisor(value.handle)
    if divisor % multiple:
        raise error(
            f"{what}: the memory begins {divisor} bytes or a multiple behind that of others, and "
            f"is taken at multiples of {multiple}",
            "make blocks larger, or allocate each by itself",
        )


def _offset_divisor(value: Value) -> int:
    """What divides the offset, in bytes, of a part in what was allocated; 0 where that is 0."""
    op = defining_op(value)
    if op is None or not isa(op, ttg.MemDescIndexOp, ttg.MemDescViewOp):
        return 0
    if isa(op, ttg.MemDescViewOp):
        own = int(ir.IntegerAttr(op.attributes["offset"]).value)
    else:
        (parts, *_), _ = ttg.mem_desc_block(op.operands[0].type)
        number = number_of(op.operands[1]) if parts > 1 else 0
        own = _bytes(op.results[0].type) * (1 if number is None else number)
    return gcd(_offset_divisor(op.operands[0]), own)


@rule(shared_memory_descriptor._keep_alive)
def _keep_alive(self: object) -> None:
    ttg.LocalDeallocOp(memory(self, "_keep_alive").handle)


# What a kernel reads of memory

ATTRIBUTES: dict[str, Callable[[tensor], Any]] = {
    "dtype": lambda value: type_of(value).element_ty,
    "shape": lambda value: type_of(value).shape,
    "rank": lambda value: len(type_of(value).shape),
    "numel": lambda value: prod(type_of(value).shape),
    "layout": lambda value: type_of(value).layout,
    "nbytes_per_cta": lambda value: type_of(value).nbytes_per_cta,
    "type": lambda value: value.type,
}
