"""Where values go, and where they come from, element by element: through conversions of layouts,
loops and branches."""

from collections.abc import Iterator

from proton.dialect import isa, ttg, ttng
from proton.dialect.mlir import Operation, Value, ir, scf
from proton.dialect.regions import ForLoop, If, is_inside
from proton.dialect.traits import Elementwise, Multiplies, has
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import defining_op, parent_of


def through(value: Value) -> Value:
    """The value behind conversions."""
    while isa(op := defining_op(value), ttg.ConvertLayoutOp):
        value = op.operands[0]
    return value


def uses(value: Value) -> Iterator[ir.OpOperand]:
    """Those of a value, and of what it is converted to."""
    for use in value.uses:
        op = use.owner.operation
        if isa(op, ttg.ConvertLayoutOp):
            yield from uses(op.results[0])
        else:
            yield use


def carried_as(value: Value, user: Operation) -> Value | None:
    """What a loop carries a value as that it begins, or an iteration ends, with; None where the
    user is neither."""
    loop = user if isa(user, scf.ForOp) else parent_of(user)
    if not isa(loop, scf.ForOp) or not isa(user, scf.ForOp, scf.YieldOp):
        return None
    view = ForLoop(loop)
    passed = view.init_args if user == loop else view.yielded
    return next((a for a, v in zip(view.iter_args, passed, strict=True) if v == value), None)


def used(use: ir.OpOperand) -> Value:
    return use.owner.operands[use.operand_number]


def takers(value: Value, seen: set[Value]) -> Iterator[ir.OpOperand]:
    """The uses of a value, or of what is computed from it element by element, by ops that are no
    such computation."""
    for use in value.uses:
        op = use.owner.operation
        if not (has(op, Elementwise) or isa(op, ttg.ConvertLayoutOp)):
            yield use
            continue
        for result in op.results:
            if is_tensor(result.type) and result not in seen:
                seen.add(result)
                yield from takers(result, seen)


def product_behind(value: Value, loop: Operation, seen: set[Value]) -> Value | None:
    """The product, made in each iteration of a loop, that a value is computed from element by
    element, if there is one."""
    value = through(value)
    op = defining_op(value)
    if op is None or value in seen or not is_inside(op, loop):
        return None
    seen.add(value)
    if has(op, Multiplies):
        return value
    number = list(op.results).index(value)
    sources: list[Value] = []
    if isa(op, scf.ForOp):
        sources = [ForLoop(op).yielded[number]]
    elif isa(op, scf.IfOp):
        sources = [values[number] for values in If(op).yielded]
    elif isa(op, ttng.WarpGroupDotWaitOp):
        sources = [op.operands[number]]
    elif has(op, Elementwise):
        sources = list(op.operands)
    found = (product_behind(source, loop, seen) for source in sources)
    return next((product for product in found if product is not None), None)
