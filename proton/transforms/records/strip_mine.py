"""Loops in chunks: a loop becomes the inner one of two.

scf.for %i = %lower to %upper step %step      scf.for %chunk = 0 to %chunks step 1 {
                                         ->     scf.for %i = %begin to %end step %step
                                              }
"""

from proton.dialect.emit import constant
from proton.dialect.mlir import Operation, Value, arith, ir
from proton.dialect.regions import ForLoop, end_of, yield_values
from proton.dialect.walk import before


def strip_mine(loop: Operation, size: int) -> Value:
    """Puts an `scf.for` into another one, which runs `size` of its iterations at a time, a power of
    two; what either carries is the same. Gives the number of the first iteration of a chunk, a
    value in the outer loop."""
    view = ForLoop(loop)
    lower, upper, step = view.bounds
    with before(loop):
        trips = _trips(loop)
        chunks = _rounded_up(trips, constant(size, trips.type))
        zero, one = (constant(n, trips.type) for n in (0, 1))
        last = arith.SubIOp(chunks, one).result
        locations = [argument.location for argument in view.body.arguments]
        outer = ForLoop.create((zero, chunks, one), view.init_args, None, locations)
        outer.op.attributes["unsignedCmp"] = ir.UnitAttr.get()
    with ir.InsertionPoint(outer.body), loop.location:
        first = arith.MulIOp(outer.induction_var, constant(size, trips.type)).result
        begin = arith.AddIOp(lower, arith.MulIOp(first, step).result).result
        # The last chunk ends where the loop does: beyond that a sum may overflow.
        group = arith.MulIOp(step, constant(size, step.type)).result
        is_last = arith.CmpIOp(arith.CmpIPredicate.eq, outer.induction_var, last).result
        end = arith.SelectOp(is_last, upper, arith.AddIOp(begin, group).result).result
        yield_values(outer.iter_args)
    for result, value in zip(loop.results, outer.op.results, strict=True):
        result.replace_all_uses_with(value)
    loop.move_before(end_of(outer.body))
    for number, value in enumerate((begin, end, step, *outer.iter_args)):
        loop.operands[number] = value
    for number, value in enumerate(loop.results):
        end_of(outer.body).operands[number] = value
    return first


def _trips(loop: Operation) -> Value:
    """How many iterations a loop has. The way from its lower bound to the upper one is unsigned, so
    that it has no sign to overflow into."""
    lower, upper, step = ForLoop(loop).bounds
    larger = arith.MaxUIOp if "unsignedCmp" in loop.attributes else arith.MaxSIOp
    return _rounded_up(arith.SubIOp(larger(lower, upper).result, lower).result, step)


def _rounded_up(number: Value, by: Value) -> Value:
    """An unsigned quotient, rounded up."""
    rest = arith.RemUIOp(number, by).result
    is_more = arith.CmpIOp(arith.CmpIPredicate.ne, rest, constant(0, number.type)).result
    type_ = number.type
    if isinstance(type_, ir.IndexType):
        more = arith.SelectOp(is_more, constant(1, type_), constant(0, type_)).result
    else:
        more = arith.ExtUIOp(type_, is_more).result
    return arith.AddIOp(arith.DivUIOp(number, by).result, more).result
