"""Waits for products that are under way when an iteration ends."""

from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Location, Operation, ir
from proton.dialect.ttng import WarpGroupDotWaitOp


def wait_behind(loop: Operation, number: int, location: Location) -> None:
    """Waits for a result of a loop behind it."""
    result = loop.results[number]
    uses = list(result.uses)
    with ir.InsertionPoint.after(loop), location:
        landed = WarpGroupDotWaitOp(result, i32_attr(0), result.type).result
    for use in uses:
        use.owner.operation.operands[use.operand_number] = landed
