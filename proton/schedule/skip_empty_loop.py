"""A loop behind a branch, which is not entered where the loop has no iteration."""

from proton.dialect.mlir import Operation, ir
from proton.dialect.regions import ForLoop, If, yield_values
from proton.dialect.walk import before
from proton.schedule.pipelined_loop import is_less


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
