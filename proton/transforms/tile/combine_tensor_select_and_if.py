"""A selection by the condition of a branch becomes a result of the branch.

    %v = arith.select %c, %a, %b : tensor         %v, ... = scf.if %c { ...
    scf.if %c { ... %v ... }                 =>     scf.yield %a, ... (inside, %v is %a)
    use %v                                        } else { scf.yield %b, ... }

The tensor that is not chosen need not live across the branch, and nothing is selected element by
element.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of
from proton.dialect.mlir import Module, Operation, Value, arith, ir, scf
from proton.dialect.regions import giving, is_inside
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import ops_named, parent_of
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class CombineTensorSelectAndIf(Pass):
    """Merges `arith.select` of tensors with an `scf.if` on the same condition in its block."""

    name: ClassVar[str] = "tritongpu-combine-tensor-select-and-if"
    only_for: ClassVar[frozenset[str]] = names_of(arith.SelectOp)

    def run(self, module: Module) -> None:
        # Only selections are looked at again: merging erases branches and their ends.
        for op in ops_named(module, arith.SelectOp):
            if is_tensor(op.results[0].type):
                branch = _branch(op)
                if branch is not None:
                    _merge(op, branch)


def _branch(select: Operation) -> Operation | None:
    """The branch that a selection can join: every use of it comes after, or is inside."""
    condition = select.operands[0]
    if is_tensor(condition.type):
        return None
    block = list(select.block.operations)
    order = {view.operation: number for number, view in enumerate(block)}
    for use in condition.uses:
        branch = use.owner.operation
        if not isa(branch, scf.IfOp) or branch not in order:
            continue
        if order[branch] < order[select]:
            ready = [_is_before(value, branch, order) for value in list(select.operands)[1:]]
            if all(ready):
                return branch
            continue
        uses = [_outermost(u.owner.operation, select) for u in select.results[0].uses]
        if all(order[user] >= order[branch] for user in uses):
            return branch
    return None


def _is_before(value: Value, branch: Operation, order: dict[Operation, int]) -> bool:
    """True if a value is known where the branch begins."""
    if not isinstance(value, ir.OpResult):
        return True
    op = value.owner.operation
    return op not in order or order[op] < order[branch]


def _outermost(op: Operation, beside: Operation) -> Operation:
    """The op of `beside`'s block that `op` is, or lies in."""
    while op.block != beside.block:
        op = parent_of(op)
    return op


def _merge(select: Operation, branch: Operation) -> None:
    _, chosen, other = select.operands
    new = giving(branch, [chosen], [other])
    result = new.results[len(new.results) - 1]
    for use in list(select.results[0].uses):
        user = use.owner.operation
        value = result
        if is_inside(user, new):
            in_then = _region_number(user, new) == 0
            value = chosen if in_then else other
        user.operands[use.operand_number] = value
    select.erase()


def _region_number(op: Operation, branch: Operation) -> int:
    while op.parent != branch:
        op = parent_of(op)
    return next(n for n, region in enumerate(branch.regions) if region.blocks[0] == op.block)
