"""A loop behind a branch, which is not entered where the loop has no iteration."""

from proton.dialect.mlir import Operation, ir
from proton.dialect.regions import ForLoop, If, yield_values
from proton.dialect.traits import Loop, has
from proton.dialect.walk import all_ops, before
from proton.transforms.schedule.pipelined_loop import is_less


def is_rest(loop: Operation) -> bool:
    """Whether another loop of its block comes first, at whatever depth: the rest of a range, which
    is often empty."""
    for view in loop.block.operations:
        if view.operation == loop:
            return False
        if any(has(op, Loop) for op in (view.operation, *all_ops(view.operation))):
            return True
    return False


def skip_empty(loop: Operation) -> None:
    """Moves a loop into an `scf.if` that asks for its first iteration; else the results are the
    initial values."""
    view = ForLoop(loop)
    lower, upper, _ = view.bounds
    initial = view.init_args
    with before(loop):
        branch = If.create(is_less(loop, lower, upper), [value.type for value in initial])
    for old, new in zip(loop.results, branch.op.results, strict=True):
        old.replace_all_uses_with(new)
    for region, values in enumerate((list(loop.results), initial)):
        with ir.InsertionPoint(branch.add_block(region)), loop.location:
            end = yield_values(values)
        if region == 0:
            loop.move_before(end)
