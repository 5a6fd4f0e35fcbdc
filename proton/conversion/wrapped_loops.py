"""Indices that wrap around: whether they do, and loops over them without a division for each.

    for i = start .. limit - 1:  (offset + i) rem parent

becomes a loop over what comes before the first wrap, whose places are contiguous, and one over the
rest, in which an iteration hands the remainder to the next. Remainders of what is negative are
negative: they go from 1 - |parent| to 0, the others from 0 to |parent| - 1.
"""

import contextlib
import functools
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from proton.dialect import isa
from proton.dialect.emit import index_constant, index_loop
from proton.dialect.mlir import Value, arith, ir, tensor
from proton.dialect.regions import ForLoop, yield_values
from proton.dialect.walk import defining_op

Loop = Callable[[], contextlib.AbstractContextManager[tuple[Value, Value]]]


def does_not_wrap(offset: Value, parent: Value, needed: Value) -> Value:
    """Whether all elements of a dimension come before the parent's end; `needed` is how far the
    last one is from the first."""
    zero = index_constant(0)
    first = arith.RemSIOp(offset, parent).result
    room, last = _minus(parent, first), _sum(first, needed)
    # The last element, too, lies in [0, parent); in (parent, 0] where a negative factor has turned
    # the whole dimension around. Remainders of what is on the other side of 0, and wraps there,
    # have the other sign.
    ahead = all_of(
        _compared("slt", needed, room),
        _compared("sge", last, zero),
        _compared("sge", offset, first),
    )
    if _is_known_positive(needed):  # then `room` says that the parent is, too
        return ahead
    forward = _compared("sgt", parent, zero)
    behind = all_of(
        _compared("sgt", needed, room),
        _compared("sle", last, zero),
        _compared("sle", offset, first),
    )
    return _chosen(forward, ahead, behind)


@dataclass(frozen=True)
class IndexRun:
    """Elements from `start` to before `end`, in places one behind the other."""

    start: Value
    end: Value
    place: Value  # of the first one

    def loop(self) -> Loop:
        """A loop over them; what does not change in it is computed here."""
        shift = _minus(self.place, self.start)

        @contextlib.contextmanager
        def contiguous() -> Iterator[tuple[Value, Value]]:
            with index_loop(self.end, start=self.start) as variable:
                yield variable, _sum(variable, shift)

        return contiguous


def wrapped_loops(
    offset: Value, parent: Value | None, start: Value, limit: Value
) -> tuple[IndexRun, Loop | None]:
    """What comes before the first wrap, and the loop over the rest, which gives i and its place;
    without a parent i is the place, and there is no rest. The values before the loop are computed
    here."""
    if parent is None:
        return IndexRun(start, limit, start), None
    zero, one = index_constant(0), index_constant(1)
    size = arith.MaxSIOp(parent, _minus(zero, parent)).result
    lowest = _minus(one, size)
    number = _sum(offset, start)
    first = arith.RemSIOp(number, parent).result
    end = _chosen(_is_positive(_sum(number, one)), size, one)
    middle = arith.MinSIOp(_sum(start, _minus(end, first)), limit).result
    rest = arith.RemSIOp(_sum(offset, middle), parent).result

    @contextlib.contextmanager
    def wrapping() -> Iterator[tuple[Value, Value]]:
        loop = ForLoop.create([middle, limit, one], [rest])
        (place,) = loop.iter_args
        with ir.InsertionPoint(loop.body):
            yield loop.induction_var, place
            is_positive = _is_positive(_sum(_sum(offset, loop.induction_var), one))
            following, end = _sum(place, one), _chosen(is_positive, size, one)
            wraps = _compared("eq", following, end)
            yield_values([_chosen(wraps, _chosen(is_positive, zero, lowest), following)])

    return IndexRun(start, middle, first), wrapping


def all_of(*conditions: Value) -> Value:
    """The conjunction of conditions."""
    return functools.reduce(lambda one, other: arith.AndIOp(one, other).result, conditions)


def _compared(predicate: str, one: Value, other: Value) -> Value:
    return arith.CmpIOp(getattr(arith.CmpIPredicate, predicate), one, other).result


def _is_known_positive(number: Value) -> bool:
    op = defining_op(number)
    return isa(op, arith.ConstantOp) and op.attributes["value"].value > 0


def _is_positive(number: Value) -> Value:
    return _compared("sgt", number, index_constant(0))


def _chosen(condition: Value, one: Value, other: Value) -> Value:
    return arith.SelectOp(condition, one, other).result


def _sum(one: Value, other: Value) -> Value:
    return arith.AddIOp(one, other).result


def _minus(one: Value, other: Value) -> Value:
    return arith.SubIOp(one, other).result


def gathered(loop: Loop, row: Value) -> Loop:
    """A loop whose places are `row[i]` further."""

    @contextlib.contextmanager
    def gathering() -> Iterator[tuple[Value, Value]]:
        with loop() as (variable, place):
            index = tensor.ExtractOp(row, [variable]).result
            index = arith.IndexCastOp(ir.IndexType.get(), index).result
            yield variable, arith.AddIOp(place, index).result

    return gathering
