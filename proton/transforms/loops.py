"""Rebuilding `scf.for` with other carried values: what the loop transforms share."""

from collections.abc import Sequence
from typing import Any

from proton.dialect.mlir import ir
from proton.dialect.regions import ForLoop, end_of
from proton.dialect.walk import before


def is_inside(op: Any, loop: Any) -> bool:
    """Whether an op lies in a loop's body, however deep."""
    while op is not None:
        if op == loop:
            return True
        op = op.parent
    return False


def is_invariant(value: Any, loop: Any) -> bool:
    """Whether a value is defined outside of a loop."""
    owner = value.owner
    op = owner.operation if isinstance(value, ir.OpResult) else owner.owner.operation
    return not is_inside(op, loop)


def with_carried(loop: Any, initial: Sequence[Any]) -> Any:
    """A loop in the place of `loop` that carries more values, whose first ones are `initial`.

    The old loop goes. The body's block gets an argument for each, which its terminator yields
    unchanged until the caller puts something else there; new results come last.
    """
    old = ForLoop(loop).body
    attributes = {name: loop.attributes[name] for name in loop.attributes}
    with before(loop):
        new = ir.Operation.create(
            "scf.for",
            results=[*(r.type for r in loop.results), *(value.type for value in initial)],
            operands=[*loop.operands, *initial],
            attributes=attributes,
            regions=1,
        )
    old.append_to(new.regions[0])
    block = ForLoop(new).body
    arguments = [block.add_argument(value.type, loop.location) for value in initial]
    end = end_of(block)
    with ir.InsertionPoint(end), end.location:
        ir.Operation.create("scf.yield", operands=[*end.operands, *arguments])
    end.erase()
    for result, value in zip(loop.results, new.results, strict=False):
        result.replace_all_uses_with(value)
    loop.erase()
    return new
