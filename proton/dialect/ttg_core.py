"""The `ttg` dialect: tile IR whose tensors know which thread holds which element.

A tensor's encoding is a linear layout, `#ttg.linear<register, lane, warp, block>`: the bases of
each input dimension (proton/layout/linear.py teaches what they mean). Arithmetic and `tt` ops
keep their meaning; operands and results of an elementwise op have one layout. `ttg` adds what
moves data between layouts, and into shared memory and back (ttg_memory.py).
"""

import functools

from proton.base.chips.chip import WARP_SIZE
from proton.dialect import traits as t
from proton.dialect.attributes import NUM_WARPS, THREADS_PER_WARP
from proton.dialect.builtin import i64_attr
from proton.dialect.diagnostics import check_block, element_of, reject, shape_of
from proton.dialect.mlir import (
    AnyAttr,
    AnyType,
    Attribute,
    Module,
    Operand,
    Operation,
    Result,
    Type,
    ext,
    ir,
)
from proton.layout import LinearLayout
from proton.layout.named import DISTRIBUTED, dim
from proton.layout.shared_view import SharedView


class TTG(ext.Dialect, name="ttg"):
    """Layouts, and what moves data between them."""


class LinearAttr(TTG.Attribute, name="linear"):
    """`#ttg.linear<[[1], [2]], [[4], ...], [[128]], []>`: bases of register, lane, warp, block."""

    register: AnyAttr
    lane: AnyAttr
    warp: AnyAttr
    block: AnyAttr


class SharedAttr(TTG.Attribute, name="shared"):
    """`#ttg.shared<[[0, 1], [0, 2], [1, 0]]>`: the index of each power of two of an offset."""

    offset: AnyAttr


class SharedViewAttr(TTG.Attribute, name="shared_view"):
    """`#ttg.shared_view<[[[4], [8]], [[1], [2]]], 16, 0, []>`: a part of a tensor in memory, or one
    with paddings (proton/layout/shared_view.py): of each dimension the offsets of its powers of
    two, the offsets of the whole, the first one, and pairs of an interval and a padding."""

    places: AnyAttr
    size: ir.IntegerAttr
    start: ir.IntegerAttr
    paddings: AnyAttr


class MemDescType(TTG.Type, name="memdesc"):
    """`!ttg.memdesc<[64, 32], f16, #ttg.shared<...>>`: a tensor in shared memory, which nothing
    changes."""

    sizes: AnyAttr
    element: ir.TypeAttr
    encoding: AnyAttr


class MutableMemDescType(TTG.Type, name="mutable_memdesc"):
    """`!ttg.mutable_memdesc<[3, 64, 32], f16, #ttg.shared<...>>`: memory that ops write. Where the
    layout has one dimension less, tensors lie one behind the other along the first dimension, and
    `ttg.memdesc_index` takes one."""

    sizes: AnyAttr
    element: ir.TypeAttr
    encoding: AnyAttr


# Between attributes and the algebra. Attributes and types are unique and live as long as the one
# context does, so both directions are remembered.
_attributes: dict[LinearLayout, Attribute] = {}
_layouts: dict[Type, LinearLayout] = {}
_types: dict[tuple[Type, LinearLayout], Type] = {}


def _bases_attr(bases: tuple[tuple[int, ...], ...]) -> Attribute:
    return ir.ArrayAttr.get([ir.ArrayAttr.get([i64_attr(v) for v in basis]) for basis in bases])


def _integers(attribute: Attribute) -> tuple[int, ...]:
    return tuple(ir.IntegerAttr(value).value for value in ir.ArrayAttr(attribute))


def _bases(attribute: Attribute) -> list[tuple[int, ...]]:
    return [_integers(basis) for basis in ir.ArrayAttr(attribute)]


def layout_attr(layout: LinearLayout) -> Attribute:
    """The encoding of a distributed layout."""
    found = _attributes.get(layout)
    if found is None:
        found = LinearAttr.get(*[_bases_attr(layout.bases(name)) for name in DISTRIBUTED])
        _attributes[layout] = found
    return found


def layout_of(type_: Type) -> LinearLayout:
    """The layout of a tensor type; raises ValueError where it has none."""
    found = _layouts.get(type_)
    if found is None:
        encoding = type_.encoding
        if encoding is None or not isinstance(encoding, LinearAttr):
            raise ValueError(f"{type_} has no layout")
        parts = [getattr(LinearAttr(encoding), name) for name in DISTRIBUTED]
        ins = {name: _bases(part) for name, part in zip(DISTRIBUTED, parts, strict=True)}
        outs = {dim(axis): size for axis, size in enumerate(type_.shape)}
        found = _layouts[type_] = LinearLayout.of(ins, outs)
    return found


def with_layout(type_: Type, layout: LinearLayout) -> Type:
    """The tensor type in another layout."""
    key = type_, layout
    found = _types.get(key)
    if found is None:
        shape, element = tuple(type_.shape), type_.element_type
        found = ir.RankedTensorType.get(shape, element, encoding=layout_attr(layout))
        _types[key] = found
        _layouts[found] = layout
    return found


def is_tensor(type_: Type) -> bool:
    """True if a type is a tensor."""
    return isinstance(type_, ir.RankedTensorType)


def is_mem_desc(type_: Type) -> bool:
    """True if a type is shared memory."""
    return isinstance(type_, MemDescType | MutableMemDescType)


def shared_attr(layout: LinearLayout) -> Attribute:
    """The encoding of a layout of memory, from offsets to indices."""
    return SharedAttr.get(_bases_attr(layout.bases("offset")))


def shared_layout(encoding: Attribute, shape: tuple[int, ...]) -> LinearLayout:
    """The layout of a block of a shape in memory with such an encoding."""
    bases = _bases(SharedAttr(encoding).offset)
    return LinearLayout.of({"offset": bases}, {dim(a): size for a, size in enumerate(shape)})


@functools.cache
def mem_desc(
    shape: tuple[int, ...], element: Type, layout: LinearLayout, is_mutable: bool = False
) -> Type:
    """The type of a tensor in shared memory; `layout` maps offsets (in elements) to indices."""
    sizes = ir.ArrayAttr.get([i64_attr(size) for size in shape])
    encoding = shared_attr(layout)
    kind = MutableMemDescType if is_mutable else MemDescType
    return kind.get(sizes, ir.TypeAttr.get(element), encoding)


@functools.cache  # each part of memory that is indexed asks for it
def view_desc(
    shape: tuple[int, ...], element: Type, view: SharedView, is_mutable: bool = True
) -> Type:
    """The type of a view; `shape` has the dimensions ahead of the view's, too."""
    layout = view.layout
    if layout is not None and layout.total_in_bits:  # of one element there are no bases
        return mem_desc(shape, element, layout, is_mutable)
    places = [_bases_attr(view.places.bases(name)) for name in view.places.in_names]
    encoding = SharedViewAttr.get(
        ir.ArrayAttr.get(places),
        i64_attr(view.size),
        i64_attr(view.start),
        _bases_attr(view.paddings),
    )
    sizes = ir.ArrayAttr.get([i64_attr(size) for size in shape])
    kind = MutableMemDescType if is_mutable else MemDescType
    return kind.get(sizes, ir.TypeAttr.get(element), encoding)


def _desc(type_: Type) -> MemDescType | MutableMemDescType:
    is_mutable = isinstance(type_, MutableMemDescType)
    return (MutableMemDescType if is_mutable else MemDescType)(type_)


def _encoding(type_: Type) -> Attribute:
    """A SharedAttr, or a SharedViewAttr."""
    plain: Attribute = _desc(type_).encoding
    return plain.maybe_downcast()


@functools.cache
def mem_desc_block(type_: Type) -> tuple[tuple[int, ...], Type]:
    """(shape, element type) of a tensor in shared memory."""
    desc = _desc(type_)
    return _integers(desc.sizes), ir.TypeAttr(desc.element).value


@functools.cache
def mem_desc_view(type_: Type) -> SharedView:
    """Where the elements of a tensor in shared memory lie; of the last dimensions, where several
    tensors lie one behind the other."""
    encoding = _encoding(type_)
    if not isinstance(encoding, SharedViewAttr):
        return SharedView.of(mem_desc_parts(type_)[2])
    said = SharedViewAttr(encoding)
    places = [_bases(part) for part in ir.ArrayAttr(said.places)]
    size, start = (int(ir.IntegerAttr(number).value) for number in (said.size, said.start))
    layout = LinearLayout.of(
        {dim(axis): bases for axis, bases in enumerate(places)}, {"offset": size}
    )
    paddings = tuple((interval, padding) for interval, padding in _bases(said.paddings))
    return SharedView(layout, size, start, paddings)


@functools.cache
def mem_desc_parts(type_: Type) -> tuple[tuple[int, ...], Type, LinearLayout]:
    """(shape, element type, layout) of a tensor in shared memory; the layout is of the last
    dimensions, where several tensors lie one behind the other. Raises ValueError for a part of
    one, which has a view alone."""
    desc = _desc(type_)
    shape = _integers(desc.sizes)
    if isinstance(_encoding(type_), SharedViewAttr):
        raise ValueError(f"{type_} is a part of a tensor, or has paddings")
    bases = _bases(SharedAttr(desc.encoding).offset)
    # Of one element there are no bases: it is what all last dimensions of size 1 have.
    ones = next((n for n, size in enumerate(reversed(shape)) if size > 1), len(shape))
    rank = len(bases[0]) if bases else ones
    outs = {dim(axis): size for axis, size in enumerate(shape[len(shape) - rank :])}
    return shape, ir.TypeAttr(desc.element).value, LinearLayout.of({"offset": bases}, outs)


def num_warps(module: Module | Operation) -> int:
    """Warps of a program, as `convert-triton-to-tritongpu` noted them on the module."""
    return int(module.operation.attributes[NUM_WARPS].value)


def lanes(module: Module) -> int:
    """Threads of a warp, likewise."""
    attributes = module.operation.attributes
    return int(attributes[THREADS_PER_WARP].value) if THREADS_PER_WARP in attributes else WARP_SIZE


class ConvertLayoutOp(
    TTG.Operation, name="convert_layout", traits=[t.Pure, t.Speculatable, t.PassesPointers]
):
    """`ttg.convert_layout %src`: the same tensor in the result's layout."""

    src: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "ConvertLayoutOp") -> bool:
        if not is_tensor(op.src.type):
            return reject(op, f"operand must be a tensor, got {op.src.type}")
        return check_block(op, "result", op.result, shape_of(op.src), element_of(op.src))


class SwapOp(TTG.Operation, name="swap", traits=[t.Pure, t.Speculatable]):
    """`ttg.swap %src {axis}`: each element in the place of the other one along an axis of two."""

    src: Operand[AnyType]
    axis: ir.IntegerAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "SwapOp") -> bool:
        if not is_tensor(op.src.type) or op.src.type != op.result.type:
            return reject(op, f"operand and result must be one type of tensor, got {op.src.type}")
        shape, axis = shape_of(op.src), op.axis.value
        if not 0 <= axis < len(shape) or shape[axis] != 2:
            return reject(op, f"axis {axis} of {shape} must have two elements")
        return True


class SetAutoLayoutOp(TTG.Operation, name="set_auto_layout", traits=[t.Pure, t.PassesPointers]):
    """`ttg.set_auto_layout %src`: the tensor, whose layout is still to be chosen, in the result's:
    what it is made of is laid out so that nothing moves."""

    src: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "SetAutoLayoutOp") -> bool:
        if not is_tensor(op.src.type):
            return reject(op, f"operand must be a tensor, got {op.src.type}")
        return check_block(op, "result", op.result, shape_of(op.src), element_of(op.src))


class BarrierOp(TTG.Operation, name="barrier", traits=[t.Writes, t.Barrier]):
    """`ttg.barrier`: all threads of the program arrive before any goes on."""
