"""Carried values that are always equal become one.

Common subexpressions that meet only through a loop (two pointers advanced alike, two copies of a
mask) are not equal to CSE, because each is an argument of its own. Two carried values are equal in
every iteration if they start equal and what they become is equal *given that they are*.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa
from proton.dialect.mlir import Module, Operation, Value, ir, scf
from proton.dialect.regions import ForLoop, is_inside
from proton.dialect.traits import Pure, Speculatable, has
from proton.dialect.walk import all_ops, defining_op
from proton.passes import Pass, Upstream, register


@register
@dataclass(frozen=True)
class LoopAwareCSE(Pass):
    """CSE that knows carried values of `scf.for` to be equal, after which one of them is left."""

    name: ClassVar[str] = "tritongpu-loop-aware-cse"

    def run(self, module: Module) -> None:
        Upstream("cse").run(module)
        found = [_merge_equal(op) for op in all_ops(module) if isa(op, scf.ForOp)]
        if any(found):
            Upstream("canonicalize,cse").run(module)


def _merge_equal(loop: Operation) -> bool:
    """Replaces each carried value by an earlier one that always equals it."""
    view = ForLoop(loop)
    arguments, initial, yielded = view.iter_args, view.init_args, view.yielded
    merged = False
    for later in range(1, len(arguments)):
        for earlier in range(later):
            if initial[earlier] != initial[later]:
                continue
            equal = {(arguments[earlier], arguments[later])}
            if _same(yielded[earlier], yielded[later], equal, loop):
                arguments[later].replace_all_uses_with(arguments[earlier])
                loop.results[later].replace_all_uses_with(loop.results[earlier])
                merged = True
                break
    return merged


def _same(left: Value, right: Value, equal: set[tuple[Value, Value]], loop: Operation) -> bool:
    """True if two values of a loop's body are the same, given pairs that are equal."""
    if left == right or (left, right) in equal:
        return True
    a, b = defining_op(left), defining_op(right)
    if a is None or b is None or not is_inside(a, loop) or not is_inside(b, loop):
        return False
    if a.name != b.name or len(a.regions) or left.type != right.type:
        return False
    if not has(a, Speculatable, Pure):
        return False
    if ir.OpResult(left).result_number != ir.OpResult(right).result_number:
        return False
    if {n: a.attributes[n] for n in a.attributes} != {n: b.attributes[n] for n in b.attributes}:
        return False
    pairs = list(zip(a.operands, b.operands, strict=True))
    if all(_same(x, y, equal, loop) for x, y in pairs):
        equal.add((left, right))
        return True
    return False
