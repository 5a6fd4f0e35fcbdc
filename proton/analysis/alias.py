"""Which kernel arguments a pointer may point into, and which of them a kernel writes.

The answer follows pointers through arithmetic, shape changes, loops and branches. A pointer
that is loaded from memory or made from an integer may point anywhere: `UNKNOWN`.
"""

from dataclasses import dataclass
from typing import Any

from proton.dialect import traits
from proton.dialect.mlir import ir
from proton.dialect.traits import has
from proton.dialect.tt import is_pointer_like
from proton.dialect.walk import all_ops, defining_op

UNKNOWN = -1


@dataclass(frozen=True)
class Accesses:
    """Argument numbers that a kernel may read and write through; UNKNOWN among them for any."""

    read: frozenset[int]
    written: frozenset[int]


def kernel_accesses(function: Any) -> Accesses:
    """The accesses of a kernel in `tt` IR."""
    roots = Roots(function)
    read: set[int] = set()
    written: set[int] = set()
    for op in all_ops(function):
        if has(op, traits.Accesses):
            if has(op, traits.Writes):
                written |= roots.of(op.operands[0])
            if op.results:
                read |= roots.of(op.operands[0])
    return Accesses(frozenset(read), frozenset(written))


class Roots:
    """Follows the pointers of a kernel in `tt` IR back to its arguments."""

    def __init__(self, function: Any) -> None:
        self.entry = function.regions[0].blocks[0]

    def of(self, value: Any) -> frozenset[int]:
        """The arguments that a pointer may point into: those at the ends of all ways back."""
        seen, pending, found = {value}, [value], set()
        while pending:
            step = self._step(pending.pop())
            if isinstance(step, int):
                found.add(step)
                continue
            for source in step:
                if source not in seen:
                    seen.add(source)
                    pending.append(source)
        return frozenset(found)

    def _step(self, value: Any) -> int | list[Any]:
        """One step back: an argument's number (or UNKNOWN), or what the pointer may come from."""
        op = defining_op(value)
        if op is None:
            return self._argument(value)
        if has(op, traits.PassesPointers):
            return [v for v in op.operands if is_pointer_like(v.type)]
        if op.name in ("scf.for", "scf.while", "scf.if"):
            return self._sources(op, value.result_number)
        return UNKNOWN

    def _argument(self, value: Any) -> int | list[Any]:
        block = value.owner
        if block == self.entry:
            return int(value.arg_number)
        op = block.owner.operation
        if op.name == "scf.for":
            return self._sources(op, value.arg_number - 1)
        if op.name == "scf.while":
            return self._sources(op, value.arg_number)
        return UNKNOWN

    def _sources(self, op: Any, position: int) -> list[Any]:
        """What flows into a carried value or a result of a structured op."""
        ends = [list(region.blocks[0].operations)[-1].operation for region in op.regions]
        if op.name == "scf.if":
            return [end.operands[position] for end in ends]
        if op.name == "scf.for":
            return [op.operands[3 + position], ends[0].operands[position]]
        # What a while forwards may be reordered: take every pointer that enters it.
        values = [*op.operands, *list(ends[0].operands)[1:], *ends[1].operands]
        return [v for v in values if is_pointer_like(v.type)]


def pointer_argument(value: Any, entry: Any) -> int:
    """The argument that a lowered scalar pointer (`!llvm.ptr`) is an offset of, or UNKNOWN."""
    while (op := defining_op(value)) is not None and op.name == "llvm.getelementptr":
        value = op.operands[0]
    if isinstance(value, ir.BlockArgument) and value.owner == entry:
        return int(value.arg_number)
    return UNKNOWN
