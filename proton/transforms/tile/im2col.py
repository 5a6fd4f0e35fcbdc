"""The pixels of a block in im2col mode: those that a walk meets, W fastest, then H, D and N.

Along a dimension it goes by a step from the lower end of the bounding box to the upper one, then
on from the lower end, one step further along the next dimension. With steps of 2 in a box from -1
to 3 along W, pixels are

    W   1  3  -1  1  3  -1  1  3
    H   0  0   2  2  2   4  4  4

where 1 and 0 are the indices of the first one; it need not be where steps from the lower end lead.
All of this is in 64 bits. Each function emits at the current insertion point and location.
"""

from collections.abc import Sequence

from proton.dialect.builtin import integer
from proton.dialect.diagnostics import shape_of
from proton.dialect.emit import constant
from proton.dialect.mlir import Value, arith
from proton.transforms.tile.block_addresses import index_range, splat


def pixels_from(
    first: Sequence[Value], sizes: Sequence[Value], box: Sequence[Value], count: int
) -> list[Value]:
    """The indices of `count` pixels, a row for each of N, D, H and W, which are what `first` and
    `sizes` are of. `box` has the lower corners, the upper ones, and the steps, along D, H and W."""
    moves, found, rank = index_range(count), list[Value](), len(first) - 1
    one = constant(1, integer(64))
    for axis in reversed(range(rank)):
        lower, corner, step = box[axis::rank]
        upper = arith.AddIOp(arith.SubIOp(sizes[1 + axis], one).result, corner).result
        index, moves = _along(moves, first[1 + axis], lower, upper, step)
        found.append(index)
    return [arith.AddIOp(moves, splat(first[0], [count])).result, *reversed(found)]


def _along(
    moves: Value, first: Value, lower: Value, upper: Value, step: Value
) -> tuple[Value, Value]:
    """Where so many steps from `first` lead, and how many are left for the next dimension."""
    shape = shape_of(moves)

    def row(value: Value) -> Value:
        return splat(value, shape)

    one = constant(1, integer(64))
    ahead = arith.AddIOp(arith.SubIOp(upper, first).result, step).result
    ahead = arith.MaxSIOp(arith.DivSIOp(ahead, step).result, one).result  # until the upper end
    whole = arith.DivSIOp(arith.SubIOp(upper, lower).result, step).result
    whole = arith.AddIOp(whole, one).result
    rest = arith.SubIOp(moves, row(ahead)).result
    zero = row(constant(0, integer(64)))
    is_before = arith.CmpIOp(arith.CmpIPredicate.slt, rest, zero).result
    start = arith.SelectOp(is_before, row(first), row(lower)).result
    taken = arith.SelectOp(is_before, moves, arith.RemSIOp(rest, row(whole)).result).result
    index = arith.AddIOp(start, arith.MulIOp(taken, row(step)).result).result
    wraps = arith.AddIOp(arith.DivSIOp(rest, row(whole)).result, row(one)).result
    return index, arith.SelectOp(is_before, zero, wraps).result
