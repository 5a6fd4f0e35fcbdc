"""Which shared memory a value may name, and which copies a token may stand for.

Memory comes from ops that allocate it; loops, branches and selections pass it on, and an index
takes a part of it. The answer goes forward to a fixpoint, so a buffer that a loop rotates is known
to be any of those it rotates with. Tokens of copies go the same ways.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import TypeVar

from proton.analysis.dataflow import ForwardDataflow
from proton.analysis.scratch import desc_bytes, held_bytes, stored_bytes
from proton.dialect import isa, ttg
from proton.dialect.emit import number_of
from proton.dialect.mlir import Operation, Type, Value, ir
from proton.dialect.regions import Branch
from proton.dialect.traits import (
    AllocatesShared,
    Asynchronous,
    PassesMemory,
    PassesTokens,
    SharedEffects,
    has,
)

_T = TypeVar("_T")
_INDEX = ttg.MemDescIndexOp


@dataclass(frozen=True)
class SharedPart:
    """Bytes of what an op allocated; where not all of them are meant, which is not known
    (`is_any`)."""

    op: Operation
    start: int
    size: int
    is_any: bool = False


@dataclass
class SharedAliases(ForwardDataflow[None]):
    """`memory[value]`: the parts of allocations that a value may name; `copies[token]`: the
    asynchronous ops that a token may be of; `products[value]`: the ops that may go on reading
    memory until the value is waited for."""

    function: Operation
    memory: dict[Value, frozenset[SharedPart]] = field(default_factory=dict)
    copies: dict[Value, frozenset[Operation]] = field(default_factory=dict)
    products: dict[Value, frozenset[Operation]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.block(self.function.regions[0].blocks[0], None)

    def takes_part(self, op: Operation) -> bool:
        """True if an op gives memory, or something that is waited for."""
        if has(op, PassesMemory, AllocatesShared, Asynchronous, PassesTokens):
            return True
        return SharedEffects.are_known(op) or isa(op, _INDEX)

    def transfer(self, op: Operation, state: None) -> None:
        if has(op, AllocatesShared):
            self.memory[op.results[0]] = frozenset(
                [SharedPart(op, 0, desc_bytes(op.results[0].type))]
            )
        elif has(op, Asynchronous):
            self.copies[op.results[0]] = frozenset([op])
        elif SharedEffects.of(op).reads_later and len(op.results):
            self.products[op.results[0]] = frozenset([op])
        elif has(op, PassesTokens):
            known = [self.copies.get(token, frozenset()) for token in op.operands]
            self.copies[op.results[0]] = frozenset().union(*known)
        elif isa(op, _INDEX):
            self.memory[op.results[0]] = frozenset(
                _indexed(part, op) for part in self.memory.get(op.operands[0], ())
            )
        elif isa(op, ttg.MemDescViewOp):
            self.memory[op.results[0]] = frozenset(
                _viewed(part, op) for part in self.memory.get(op.operands[0], ())
            )
        elif has(op, PassesMemory) and op.results:
            is_view = len(op.operands) == 1
            passed = [v for v in op.operands if is_view or v.type == op.results[0].type]
            self._pass(passed, [op.results[0]] * len(passed))

    def flow(self, branch: Branch) -> bool:
        return self._pass(branch.passed, branch.received)

    def _pass(self, sources: Sequence[Value], targets: Sequence[Value]) -> bool:
        is_new = False
        for source, target in zip(sources, targets, strict=True):
            if ttg.is_mem_desc(source.type) and ttg.is_mem_desc(target.type):
                is_new |= _add(self.memory, source, target)
            elif isinstance(source.type, ttg.AsyncTokenType):
                is_new |= _add(self.copies, source, target)
            elif source in self.products:
                is_new |= _add(self.products, source, target)
        return is_new


def _add(known: dict[Value, frozenset[_T]], source: Value, target: Value) -> bool:
    before = known.get(target, frozenset())
    known[target] = before | known.get(source, frozenset())
    return known[target] != before


def _viewed(part: SharedPart, op: Operation) -> SharedPart:
    """A part as another type, from a byte of it on; all that was allocated, where that takes more
    than the part."""
    start, size = int(ir.IntegerAttr(op.attributes["offset"]).value), _extent(op.results[0].type)
    if start + size > part.size:
        return SharedPart(part.op, 0, desc_bytes(part.op.results[0].type), is_any=True)
    return part if part.is_any else SharedPart(part.op, part.start + start, size)


def _indexed(part: SharedPart, op: Operation) -> SharedPart:
    """The part of a part: any of them, where the index is not known."""
    number, count = number_of(op.operands[1]), ttg.mem_desc_block(op.operands[0].type)[0][0]
    if part.is_any or number is None or not 0 <= number < count:
        return replace(part, is_any=True)
    type_ = op.results[0].type
    return SharedPart(part.op, part.start + number * held_bytes(type_), _extent(type_))


def _extent(type_: Type) -> int:
    """The bytes up to the last one that memory of a type may name."""
    element, view = ttg.mem_desc_block(type_)[1], ttg.mem_desc_view(type_)
    behind = view.padded(view.size) - view.padded(view.last) - 1
    return held_bytes(type_) - behind * stored_bytes(element)
