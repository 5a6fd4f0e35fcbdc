"""The pointers and masks of a block of a tensor: what block pointers and descriptors stand for.

Element (i0, i1, ...) of the block at `offsets` lies at

    base + sum over d of offsets[d] * strides[d]  +  sum over d of i_d * strides[d]

where the first sum is a scalar, and the second one does not change with the offsets, so it leaves
loops. Of a row outside of loops both sums are one, which is an offset that tensors of the same
strides share: then no base is waited for to compute it. The element is inside of the tensor where
0 <= offsets[d] + i_d < shape[d] in each dimension. All of this is in 64 bits. Each function emits
at the current insertion point and location.
"""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from proton.analysis.signs import is_non_negative
from proton.dialect import tt
from proton.dialect.builtin import i32_attr, integer
from proton.dialect.diagnostics import shape_of
from proton.dialect.emit import constant
from proton.dialect.mlir import Value, arith, ir
from proton.dialect.regions import in_loop_here

_SIZE_BITS = 64


@dataclass(frozen=True)
class Tensor:
    """A tensor in memory: the pointer to its first element, and of each dimension the size and the
    stride in elements, i64."""

    base: Value
    shape: Sequence[Value]
    strides: Sequence[Value]

    def pointers(self, offsets: Sequence[Value], block: Sequence[int]) -> Value:
        """The pointers to the elements of the block at i64 `offsets`."""
        base, places = self.base, None
        is_shared = len(block) == 1 and not in_loop_here()
        for offset, stride in zip(offsets, self.strides, strict=True):
            ahead = arith.MulIOp(offset, stride).result
            if is_shared:
                places = splat(ahead, block)
            else:
                base = tt.AddPtrOp(base, ahead, base.type).result
        for axis, (size, stride) in enumerate(zip(block, self.strides, strict=True)):
            steps = arith.MulIOp(index_range(size), splat(stride, [size])).result
            along = spread(steps, axis, block)
            places = along if places is None else arith.AddIOp(places, along).result
        pointers = splat(base, block)
        return tt.AddPtrOp(pointers, places, pointers.type).result

    def inside(
        self, offsets: list[Value], block: Sequence[int], dims: Iterable[int]
    ) -> Value | None:
        """Which elements of the block lie inside of the tensor, as far as `dims` tell; None where
        there are none."""
        mask = None
        for axis in dims:
            size, offset = block[axis], offsets[axis]
            indices = arith.AddIOp(splat(offset, [size]), index_range(size)).result
            along = within(indices, self.shape[axis], may_be_negative=not is_non_negative(offset))
            along = spread(along, axis, block)
            mask = along if mask is None else arith.AndIOp(mask, along).result
        return mask


def within(indices: Value, end: Value, *, may_be_negative: bool) -> Value:
    """Whether each index of a row is one of 0 to `end` - 1."""
    shape = shape_of(indices)
    below = arith.CmpIOp(arith.CmpIPredicate.slt, indices, splat(end, shape)).result
    if not may_be_negative:
        return below
    zero = splat(constant(0, integer(_SIZE_BITS)), shape)
    above = arith.CmpIOp(arith.CmpIPredicate.sge, indices, zero).result
    return arith.AndIOp(above, below).result


def index_range(size: int) -> Value:
    """0, 1, ... in 64 bits."""
    type_ = ir.RankedTensorType.get([size], integer(32))
    return widened(tt.MakeRangeOp(i32_attr(0), i32_attr(size), type_).result)


def widened(value: Value) -> Value:
    """An i32, or a tensor of them, in 64 bits."""
    i64 = integer(_SIZE_BITS)
    shape = shape_of(value)
    return arith.ExtSIOp(ir.RankedTensorType.get(shape, i64) if shape else i64, value).result


def splat(value: Value, shape: Sequence[int]) -> Value:
    """A tensor filled with a scalar."""
    return tt.SplatOp(value, ir.RankedTensorType.get(shape, value.type)).result


def spread(row: Value, axis: int, shape: Sequence[int]) -> Value:
    """A row along one dimension of a block, the same in all others."""
    element, sizes = row.type.element_type, [row.type.shape[0]]
    for other in range(len(shape)):
        if other != axis:
            sizes.insert(other, 1)
            row = tt.ExpandDimsOp(
                row, i32_attr(other), ir.RankedTensorType.get(sizes, element)
            ).result
    block = ir.RankedTensorType.get(shape, element)
    return row if row.type == block else tt.BroadcastOp(row, block).result
