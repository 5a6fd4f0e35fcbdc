"""Indices that wrap around, as runs of contiguous ones.

    (offset + i) mod parent, i = start .. limit - 1

is one run that ends at the parent, and further ones from 0 on: a division for each run in the
place of one for each element, and loops that LLVM makes vectors of. Where the parent or the first
index is negative, which C's remainder keeps, each element is a run.
"""

from dataclasses import dataclass

from proton.dialect.emit import index_constant
from proton.dialect.mlir import Value, arith


@dataclass(frozen=True)
class WrappedRuns:
    """The runs of a dimension, all values of `index`."""

    count: Value
    even: Value  # an i1: whether runs end at the parent
    offset: Value  # the first element's index, ahead of wrapping
    start: Value
    limit: Value
    parent: Value

    def run(self, number: Value) -> tuple[Value, Value, Value]:
        """Of one of the runs its first i, the one behind its last, and the first's place."""
        zero, one = index_constant(0), index_constant(1)
        before = arith.RemSIOp(self.offset, self.parent).result
        end = _sum(arith.MulIOp(_sum(number, one), self.parent).result, before, minus=True)
        begin = arith.MaxSIOp(_sum(end, self.parent, minus=True), zero).result
        begin = self._select(begin, number)
        end = _sum(self.start, self._select(end, _sum(number, one)))
        place = arith.RemSIOp(_sum(self.offset, begin), self.parent).result
        return _sum(self.start, begin), arith.MinSIOp(end, self.limit).result, place

    def _select(self, even: Value, single: Value) -> Value:
        return arith.SelectOp(self.even, even, single).result


def wrapped_runs(offset: Value, start: Value, limit: Value, parent: Value) -> WrappedRuns:
    """The runs of (offset + i) mod parent, where i goes from `start` to `limit`."""
    zero, one = index_constant(0), index_constant(1)
    offset, length = _sum(offset, start), _sum(limit, start, minus=True)
    is_forward = arith.CmpIOp(arith.CmpIPredicate.sgt, parent, zero).result
    is_positive = arith.CmpIOp(arith.CmpIPredicate.sge, offset, zero).result
    even = arith.AndIOp(is_forward, is_positive).result
    last = _sum(_sum(arith.RemSIOp(offset, parent).result, length), one, minus=True)
    whole = _sum(arith.DivSIOp(last, parent).result, one)
    count = arith.SelectOp(even, whole, length).result
    return WrappedRuns(count, even, offset, start, limit, parent)


def _sum(left: Value, right: Value, *, minus: bool = False) -> Value:
    return (arith.SubIOp if minus else arith.AddIOp)(left, right).result
