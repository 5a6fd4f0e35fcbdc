"""Which allocations of shared memory a value may name.

A `!ttg.memdesc` comes from a `ttg.local_alloc`; loops, branches and selections pass it on. The
answer is found by following values to a fixpoint, so a buffer that a loop rotates is known to be
any of those it rotates with.
"""

from typing import Any

from proton.dialect.ttg import MemDescType
from proton.dialect.walk import all_ops

Aliases = dict[Any, frozenset[Any]]  # value -> the `ttg.local_alloc` ops it may name


def shared_aliases(function: Any) -> Aliases:
    """The allocations behind every value of type `!ttg.memdesc` in a function."""
    known: Aliases = {}
    flows: list[tuple[Any, Any]] = []  # from, to
    for op in all_ops(function):
        if op.name == "ttg.local_alloc":
            known[op.results[0]] = frozenset([op])
        else:
            flows += [pair for pair in _flows(op) if isinstance(pair[0].type, MemDescType)]
    changed = True
    while changed:
        changed = False
        for source, target in flows:
            both = known.get(target, frozenset()) | known.get(source, frozenset())
            if both != known.get(target, frozenset()):
                known[target], changed = both, True
    return known


def _end(block: Any) -> Any:
    return list(block.operations)[-1].operation


def _flows(op: Any) -> list[tuple[Any, Any]]:
    """(source, target) of the values that an op hands on as they are."""
    match op.name:
        case "scf.for":
            block = op.regions[0].blocks[0]
            carried, initial = list(block.arguments)[1:], list(op.operands)[3:]
            yielded = list(_end(block).operands)
            return [
                *zip(initial, carried, strict=True),
                *zip(yielded, carried, strict=True),
                *zip(yielded, op.results, strict=True),
                *zip(initial, op.results, strict=True),
            ]
        case "scf.while":
            before, after = (region.blocks[0] for region in op.regions)
            passed, yielded = list(_end(before).operands)[1:], list(_end(after).operands)
            return [
                *zip(op.operands, before.arguments, strict=True),
                *zip(yielded, before.arguments, strict=True),
                *zip(passed, after.arguments, strict=True),
                *zip(passed, op.results, strict=True),
            ]
        case "scf.if":
            return [
                pair
                for region in op.regions
                for block in region.blocks
                for pair in zip(_end(block).operands, op.results, strict=True)
            ]
        case "arith.select":
            return [(value, op.results[0]) for value in list(op.operands)[1:]]
    return []
