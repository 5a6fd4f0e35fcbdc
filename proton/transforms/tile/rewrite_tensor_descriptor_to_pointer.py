"""Tensor descriptors become ordinary pointers and masks, arguments of kernels included."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any, ClassVar

from proton.dialect import OpRules, tt, ttng
from proton.dialect.attributes import DIVISIBILITY
from proton.dialect.builtin import i32_attr, integer, string_attr, with_element
from proton.dialect.diagnostics import shape_of
from proton.dialect.emit import constant, filled
from proton.dialect.mlir import Attribute, Module, Operation, Type, Value, arith, ir
from proton.layout.tensor_map import TF32
from proton.passes import Pass, register
from proton.transforms.tile.block_addresses import (
    Tensor,
    index_range,
    splat,
    spread,
    widened,
    within,
)
from proton.transforms.tile.im2col import pixels_from
from proton.transforms.tile.unpack import Parts, Unpacking

ALIGNMENT = 16  # bytes: what TMA asks for, and so every launcher


_RULES = OpRules[Callable[[Operation, Unpacking], Parts | None]]()


@register
@dataclass(frozen=True)
class RewriteTensorDescriptorToPointer(Pass):
    """A descriptor becomes its base, the tensor's sizes (i32) and its strides (i64), without the
    last one, which is 1, in im2col mode also the corners of the bounding box and the steps of the
    walk (i32): what a launcher passes in its place.

        %d = tt.make_tensor_descriptor %base, [%m], [%one] : !tt.tensordesc<tensor<16xf32>, "zero">
        %x = tt.descriptor_load %d, [%i] : tensor<16xf32>
    becomes
        %x = tt.load %base + %i + range(0, 16), 0 <= %i + range(0, 16) < %m, 0.0
    """

    name: ClassVar[str] = "rewrite-tensor-descriptor-to-pointer"

    def run(self, module: Module) -> None:
        maker = tt.MakeTensorDescOp
        Unpacking(_parts_of, maker, _RULES, _argument_attributes).run(module)


def _parts_of(type_: Type) -> list[Type] | None:
    if not tt.is_descriptor(type_):
        return None
    rank, i32, i64 = type_.rank, integer(32), integer(64)
    pointer = tt.PointerType.get(ir.TypeAttr.get(type_.target.element_type))
    return [pointer, *[i32] * rank, *[i64] * (rank - 1), *[i32] * _pixel_count(type_)]


def _pixel_count(type_: Type) -> int:
    """How many numbers say which pixels of images there are."""
    return 0 if isinstance(type_, tt.TensorDescType) else 3 * (type_.rank - 2)


@dataclass(frozen=True)
class _Descriptor:
    """The parts of a descriptor, named."""

    base: Value
    shape: list[Value]
    strides: list[Value]
    pixels: list[Value]
    type: Type

    @property
    def block(self) -> Type:
        """The type of a block."""
        return self.type.target

    @classmethod
    def of(cls, value: Value, unpacking: Unpacking) -> "_Descriptor":
        rank = value.type.rank
        base, *numbers = unpacking.parts(value)
        strides = [*numbers[rank : 2 * rank - 1], constant(1, integer(64))]
        return cls(base, numbers[:rank], strides, numbers[2 * rank - 1 :], value.type)

    def pointers(self, indices: Sequence[Value]) -> tuple[Value, Value | None]:
        """The pointers to the block at indices, and which of them are in the tensor."""
        if self.pixels:
            return self._of_images(indices)
        tensor = Tensor(self.base, [widened(size) for size in self.shape], self.strides)
        offsets, block = [widened(index) for index in indices], list(self.block.shape)
        return tensor.pointers(offsets, block), tensor.inside(offsets, block, range(len(block)))

    def rows(self, x_offsets: Value, y_offset: Value) -> tuple[Value, Value]:
        """The same of single rows."""
        sizes = [shape_of(x_offsets)[0], self.block.shape[1]]
        rows, first = widened(x_offsets), widened(y_offset)
        columns = arith.AddIOp(splat(first, sizes[1:]), index_range(sizes[1])).result
        begins = arith.MulIOp(rows, splat(self.strides[0], sizes[:1])).result
        inside = [
            within(along, widened(self.shape[axis]), may_be_negative=True)
            for axis, along in enumerate((rows, columns))
        ]
        return self._crossed((begins, columns), inside, sizes)

    def _crossed(
        self, places: Sequence[Value], inside: Sequence[Value], sizes: Sequence[int]
    ) -> tuple[Value, Value]:
        """Pointers and a mask, of how far each row and each column lie from the base, and which
        are inside."""
        offsets = arith.AddIOp(*[spread(p, axis, sizes) for axis, p in enumerate(places)]).result
        pointers = splat(self.base, sizes)
        pointers = tt.AddPtrOp(pointers, offsets, pointers.type).result
        masks = [spread(mask, axis, sizes) for axis, mask in enumerate(inside)]
        return pointers, arith.AndIOp(*masks).result

    def _of_images(self, indices: Sequence[Value]) -> tuple[Value, Value]:
        """The same of pixels and their channels."""
        (count, channel_count), rank = self.block.shape, self.type.rank
        at, box = [widened(index) for index in indices], [widened(n) for n in self.pixels]
        *shape, channels = [widened(size) for size in self.shape]
        number, *others = pixels_from(at[: rank - 1], shape, box, count)
        moved = [
            arith.AddIOp(index, splat(offset, [count])).result
            for index, offset in zip(others, at[rank:], strict=True)
        ]
        pixels = [number, *moved]
        steps = [splat(stride, [count]) for stride in self.strides[:-1]]
        places = [arith.MulIOp(p, s).result for p, s in zip(pixels, steps, strict=True)]
        inside = [within(p, n, may_be_negative=True) for p, n in zip(pixels, shape, strict=True)]
        along = arith.AddIOp(splat(at[rank - 1], [channel_count]), index_range(channel_count))
        return self._crossed(
            (_all(arith.AddIOp, places), along.result),
            (_all(arith.AndIOp, inside), within(along.result, channels, may_be_negative=True)),
            [count, channel_count],
        )

    def padding(self, type_: Type) -> Value:
        """What a block of a type has outside of the tensor."""
        return filled(type_, float("nan") if self.type.outside == "nan" else 0)


@_RULES.of(tt.MakeTensorDescOp)
def _make(op: Operation, unpacking: Unpacking) -> Parts:
    view = op.opview
    return [view.base, *view.shape, *list(view.strides)[:-1]]


@_RULES.of(tt.DescriptorLoadOp)
def _load(op: Operation, unpacking: Unpacking) -> None:
    view = op.opview
    descriptor = _Descriptor.of(view.desc, unpacking)
    _read(op, descriptor, descriptor.pointers(list(view.indices)), view.cache, view.evict)


@_RULES.of(tt.DescriptorGatherOp)
def _gather(op: Operation, unpacking: Unpacking) -> None:
    view, none = op.opview, string_attr("")
    descriptor = _Descriptor.of(view.desc, unpacking)
    _read(op, descriptor, descriptor.rows(view.x_offsets, view.y_offset), none, none)


def _read(
    op: Operation, descriptor: _Descriptor, where: tuple[Value, Value | None], *caching: Attribute
) -> None:
    pointers, mask = where
    type_ = op.results[0].type
    other, volatile = descriptor.padding(type_), ir.BoolAttr.get(False)
    found = tt.LoadOp(pointers, *caching, volatile, type_, mask=mask, other=other).result
    rounds = descriptor.type.loaded == TF32
    op.results[0].replace_all_uses_with(_rounded(found) if rounds else found)


def _rounded(value: Value) -> Value:
    """fp32 to the nearest tf32, ties to even, as TMA rounds it; what is not finite stays."""
    type_ = with_element(value.type, integer(32))
    bits = arith.BitcastOp(type_, value).result
    odd = arith.AndIOp(arith.ShRUIOp(bits, filled(type_, 13)).result, filled(type_, 1)).result
    half = arith.AddIOp(odd, filled(type_, (1 << 12) - 1)).result
    nearest = arith.AndIOp(arith.AddIOp(bits, half).result, filled(type_, -1 << 13)).result
    exponent = filled(type_, 0xFF << 23)
    own = arith.AndIOp(bits, exponent).result
    is_finite = arith.CmpIOp(arith.CmpIPredicate.ne, own, exponent).result
    return arith.BitcastOp(value.type, arith.SelectOp(is_finite, nearest, bits).result).result


@_RULES.of(tt.DescriptorStoreOp)
def _store(op: Operation, unpacking: Unpacking) -> None:
    view = op.opview
    descriptor = _Descriptor.of(view.desc, unpacking)
    _write(view.src, descriptor.pointers(list(view.indices)))


@_RULES.of(tt.DescriptorScatterOp)
def _scatter(op: Operation, unpacking: Unpacking) -> None:
    view = op.opview
    descriptor = _Descriptor.of(view.desc, unpacking)
    _write(view.src, descriptor.rows(view.x_offsets, view.y_offset))


def _write(value: Value, where: tuple[Value, Value | None]) -> None:
    pointers, mask = where
    none = string_attr("")
    tt.StoreOp(pointers, value, none, none, mask=mask)


@_RULES.of(tt.DescriptorReduceOp)
def _reduce(op: Operation, unpacking: Unpacking) -> None:
    view = op.opview
    descriptor = _Descriptor.of(view.desc, unpacking)
    pointers, mask = descriptor.pointers(list(view.indices))
    attributes = [string_attr(text) for text in (view.rmw_op, "relaxed", "gpu")]
    tt.AtomicRMWOp(pointers, view.src, *attributes, view.src.type, mask=mask)


@_RULES.of(tt.DescriptorSizeOp)
def _size(op: Operation, unpacking: Unpacking) -> None:
    shape = _Descriptor.of(op.opview.desc, unpacking).shape
    op.results[0].replace_all_uses_with(shape[op.opview.axis.value])


@_RULES.of(tt.DescriptorStrideOp)
def _stride(op: Operation, unpacking: Unpacking) -> None:
    strides = _Descriptor.of(op.opview.desc, unpacking).strides
    op.results[0].replace_all_uses_with(strides[op.opview.axis.value])


@_RULES.of(ttng.TensorMapOp)
def _map(op: Operation, unpacking: Unpacking) -> None:
    """TMA's map of the tensor is of the same parts."""
    descriptor = _Descriptor.of(op.operands[0], unpacking)
    numbers = descriptor.shape, descriptor.strides[:-1], descriptor.pixels
    made = ttng.TensorMapOp(descriptor.base, *numbers, op.results[0].type).result
    op.results[0].replace_all_uses_with(made)


def _all(op: Callable[[Value, Value], Any], values: Sequence[Value]) -> Value:
    return reduce(lambda x, y: op(x, y).result, values)


def _argument_attributes(type_: Type, known: Attribute) -> list[Attribute]:
    """What is known of the parts of a kernel's argument. A launcher passes tensors that begin at
    multiples of 16 bytes, and whose strides, but for the last one, are such multiples, too. Where
    it says that the argument is divisible, the last size is a multiple of 16."""
    rank = type_.rank
    base = {name.name: name.attr for name in known}
    stride = max(1, ALIGNMENT // _element_bytes(type_.target.element_type))
    none = ir.DictAttr.get({})
    return [
        ir.DictAttr.get({**base, **_divisible(ALIGNMENT)}),
        *[none] * (rank - 1),
        ir.DictAttr.get(_divisible(ALIGNMENT) if DIVISIBILITY in base else {}),
        *[ir.DictAttr.get(_divisible(stride))] * (rank - 1),
        *[none] * _pixel_count(type_),
    ]


def _element_bytes(element: Type) -> int:
    return max(1, int(element.width) // 8)


def _divisible(number: int) -> dict[str, Attribute]:
    return {DIVISIBILITY: i32_attr(number)} if number > 1 else {}
