"""The offsets of elements in shared memory, as tensors that code computes.

A `SharedView` says where elements lie by the offset of each bit of their indices; here these are
combined for all elements at once.
"""

import functools
import operator
from collections.abc import Sequence

from proton.dialect import tt
from proton.dialect.builtin import i32_attr, integer
from proton.dialect.diagnostics import shape_of
from proton.dialect.emit import filled
from proton.dialect.mlir import Value, arith, ir
from proton.layout.linear import log2
from proton.layout.named import dim
from proton.layout.shared_view import SharedView


def _range(size: int, axis: int, rank: int) -> Value:
    """0 to size - 1 along a dimension of as many, the others of size 1."""
    i32 = integer(32)
    value = tt.MakeRangeOp(i32_attr(0), i32_attr(size), ir.RankedTensorType.get([size], i32)).result
    for other in range(rank):
        if other != axis:
            sizes = list(shape_of(value))
            sizes.insert(other, 1)
            type_ = ir.RankedTensorType.get(sizes, i32)
            value = tt.ExpandDimsOp(value, i32_attr(other), type_).result
    return value


def _spread(value: Value, shape: Sequence[int]) -> Value:
    if shape_of(value) == tuple(shape):
        return value
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    return tt.BroadcastOp(value, type_).result


def _combined(index: Value, bases: Sequence[int]) -> Value:
    """The offsets of indices along a dimension, by the offset of each of their bits."""
    step = bases[0] if bases else 0
    is_one_bit = not step & (step - 1)  # else a product carries
    if is_one_bit and list(bases) == [step << bit for bit in range(len(bases))]:
        return arith.MulIOp(index, filled(index.type, step)).result
    total = filled(index.type, 0)
    for bit, basis in enumerate(bases):
        low = arith.ShRUIOp(index, filled(index.type, bit)).result
        one = arith.AndIOp(low, filled(index.type, 1)).result
        own = arith.MulIOp(one, filled(index.type, basis)).result
        total = arith.XOrIOp(total, own).result
    return total


def offsets(view: SharedView, indices: Value | None = None, axis: int = -1) -> Value:
    """The offset of each element of a view; along an axis those of indices."""
    shape = view.shape if indices is None else shape_of(indices)
    rank = len(shape)
    total: Value | None = None
    reached = 0
    for number, size in enumerate(shape):
        bases = [basis[0] for basis in view.places.bases(dim(number))]
        index = indices if number == axis and indices is not None else _range(size, number, rank)
        own = _spread(_combined(index, bases), shape)
        span = functools.reduce(operator.or_, bases, 0)
        is_apart = not reached & span
        if total is None:
            total = own
        else:
            total = (arith.AddIOp if is_apart else arith.XOrIOp)(total, own).result
        reached |= span
    assert total is not None, "memory has a dimension"
    if view.start:
        total = arith.XOrIOp(total, filled(total.type, view.start)).result
    padded = total
    for interval, padding in view.paddings:
        count = arith.ShRUIOp(total, filled(total.type, log2(interval))).result
        room = arith.MulIOp(count, filled(total.type, padding)).result
        padded = arith.AddIOp(padded, room).result
    return padded
