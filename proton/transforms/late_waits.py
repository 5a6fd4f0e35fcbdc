"""Waits for products that are under way when an iteration ends."""

from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Location, Operation, ir
from proton.dialect.regions import ForLoop
from proton.dialect.ttng import WarpGroupDotWaitOp
from proton.dialect.walk import replace

_PRODUCT = "ttng.warp_group_dot"


def wait_behind(loop: Operation, number: int, location: Location) -> None:
    """Waits for a result of a loop behind it."""
    result = loop.results[number]
    uses = list(result.uses)
    with ir.InsertionPoint.after(loop), location:
        landed = WarpGroupDotWaitOp(result, i32_attr(0), result.type).result
    for use in uses:
        use.owner.operation.operands[use.operand_number] = landed


def wait_in_next(wait: Operation, loop: Operation, first: Operation) -> Operation:
    """Has a product that only the next iteration takes go on until that has issued its first one;
    the wait there, in the place of the one for the product's own iteration."""
    (use,) = wait.results[0].uses
    number = use.operand_number
    argument = ForLoop(loop).iter_args[number]
    uses = list(argument.uses)
    is_added_to = all(use.owner.operation.name == _PRODUCT for use in uses)
    with ir.InsertionPoint.after(first), wait.location:
        late = WarpGroupDotWaitOp(argument, i32_attr(int(is_added_to)), argument.type)
    for inner in uses:
        inner.owner.operation.operands[inner.operand_number] = late.result
    wait_behind(loop, number, wait.location)
    replace(wait, [wait.operands[0]])
    return late.operation
