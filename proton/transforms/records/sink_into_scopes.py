"""Indices and masks that a scope begins with move behind the wait for a dot, to its other work.

    %i = arith.muli %row, %n   (scope store)     %s = ttng.warp_group_dot_wait %r {pendings = 0}
    %s = ttng.warp_group_dot_wait %r       =>    %i = arith.muli %row, %n
    %h = arith.truncf %s       (scope store)     %h = arith.truncf %s
    tt.store %p, %h                              tt.store %p, %h

Ahead of the wait they are a slice of their own. The assembler moves nothing across the samples of
the clock around it: it computed what follows from these indices where all threads had waited, and
not beside the exchange of the result, as it does without records. A mask that crosses a sample is
packed into registers, bit by bit, and unpacked where it is used.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import ttng
from proton.dialect.diagnostics import element_of
from proton.dialect.mlir import Module, Operation, ir
from proton.dialect.scopes import scope_paths
from proton.dialect.traits import FloatArithmetic, Loop, Pure, Speculatable, has
from proton.dialect.walk import ops_named, users
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class SinkIntoScopes(Pass):
    """Moves arithmetic on integers and pointers of a scope behind a wait, to the scope's other
    work, if nothing needs it before."""

    name: ClassVar[str] = "sink-into-scopes"

    def run(self, module: Module) -> None:
        for wait in ops_named(module, ttng.WarpGroupDotWaitOp):
            if not wait.attributes["pendings"].value:
                _sink(wait)


def _sink(wait: Operation) -> None:
    ops = [view.operation for view in wait.block.operations]
    place = ops.index(wait)
    ahead, behind = ops[:place], ops[place + 1 :]
    loops = [number for number, op in enumerate(ahead) if has(op, Loop)]
    sunk: set[Operation] = set()
    for op in reversed(ahead[loops[-1] + 1 if loops else 0 :]):
        if not _is_index(op):
            continue
        paths, uses = scope_paths(op.location), users(op.results[0])
        first = next((other for other in behind if scope_paths(other.location) == paths), None)
        # In a loop there is time for indices while the dot runs, but for those of a mask alone.
        if not paths or first is None or not (loops or _is_mask(op) or sunk.issuperset(uses)):
            continue
        if all(user in behind and _is_ahead(behind, first, user) for user in uses):
            op.move_before(first)
            behind.insert(behind.index(first), op)
            sunk.add(op)


def _is_ahead(ops: list[Operation], first: Operation, second: Operation) -> bool:
    return ops.index(first) <= ops.index(second)


def _is_index(op: Operation) -> bool:
    """Whether an op is pure, on tensors of integers or pointers."""
    if not has(op, Pure) or not has(op, Speculatable) or has(op, FloatArithmetic):
        return False
    if len(op.results) != 1 or len(list(op.regions)):
        return False
    element = element_of(op.results[0])
    return hasattr(op.results[0].type, "shape") and not isinstance(element, ir.FloatType)


def _is_mask(op: Operation) -> bool:
    element = element_of(op.results[0])
    return isinstance(element, ir.IntegerType) and element.width == 1
