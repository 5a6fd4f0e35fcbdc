"""Arithmetic on scalars from memory moves behind loops that do not need it.

    %x = tt.load %p                        %x = tt.load %p
    %y = arith.subf %x, %m                 scf.for { ... }
    scf.for { ... }                =>      %y = arith.subf %x, %m
    tt.store %q, %y                        tt.store %q, %y

What uses a load's result waits for it. In front of a loop the first loads of the loop would wait as
well, one round trip to memory longer; behind it the scalar has long been there. So does arithmetic
that is the end of a branch: the branch gives what it has loaded, and the result is selected later.

    %y = scf.if %c {                       %x = scf.if %c {
      scf.yield %zero                        scf.yield 0
    } else {                               } else {
      %x = tt.load %p                        %x = tt.load %p
      %z = arith.subf %x, %m       =>        scf.yield %x
      scf.yield %z                         }
    }                                      scf.for { ... }
    scf.for { ... }                        %z = arith.subf %x, %m
    tt.store %q, %y                        %y = arith.select %c, %zero, %z

Only scalars move: a tensor's operands may take more registers in the loop than it does.
"""

from dataclasses import dataclass, field
from typing import ClassVar

from proton.dialect import isa, names_of
from proton.dialect.emit import zero_of
from proton.dialect.mlir import Block, Module, Operation, Value, arith, ir, scf
from proton.dialect.regions import block_of, end_of, giving
from proton.dialect.traits import Accesses, Speculatable, has
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import all_ops, backward_slice, before, ops_named, parent_of
from proton.passes import Pass, register

_LOOPS = names_of(scf.ForOp, scf.WhileOp)
_MOST = 2  # values that a branch gives in the place of one


@register
@dataclass(frozen=True)
class SinkScalars(Pass):
    """Moves scalar arithmetic that waits for memory, and is first needed behind a loop, there."""

    name: ClassVar[str] = "sink-scalars"
    only_for: ClassVar[frozenset[str]] = frozenset(_LOOPS)

    def run(self, module: Module) -> None:
        by_block: dict[Block, list[Operation]] = {}
        for loop in ops_named(module, *_LOOPS):
            by_block.setdefault(loop.block, []).append(loop)
        for block, loops in by_block.items():
            _sink(block, loops)


def _sink(block: Block, loops: list[Operation]) -> None:
    """Those of a block with these loops, the last first, so that a chain moves as one."""
    ahead, waiting = list[Operation](), set[Operation]()
    for view in block.operations:
        if view.operation == loops[-1]:
            break
        ahead.append(view.operation)
        if _waits(view.operation, waiting):
            waiting.add(view.operation)
    for op in reversed(ahead):
        if isa(op, scf.IfOp):
            for number in range(len(op.results)):
                op = _split(op, number, loops)
        elif (
            op in waiting
            and _is_arithmetic(op)
            and (first := _behind(op, op.results[0], loops)) is not None
        ):
            op.move_before(first)


def _waits(op: Operation, waiting: set[Operation]) -> bool:
    """True if an op gives what memory does, or computes a scalar of results of those `waiting`."""
    if isa(op, scf.IfOp):
        return any(has(inner, Accesses) for inner in all_ops(op))
    if has(op, Accesses):
        return True
    values = [value for value in op.operands if isinstance(value, ir.OpResult)]
    return _is_arithmetic(op) and any(value.owner.operation in waiting for value in values)


def _is_arithmetic(op: Operation) -> bool:
    """True if an op computes a scalar of scalars, and may do so anywhere."""
    if len(op.results) != 1 or not len(op.operands) or len(op.regions):
        return False
    values = *op.operands, op.results[0]
    return has(op, Speculatable) and not any(is_tensor(value.type) for value in values)


def _behind(op: Operation, value: Value, loops: list[Operation]) -> Operation | None:
    """The op of `op`'s block that uses a value first, or something inside of it does, if that is
    behind a loop."""
    first = None
    for use in value.uses:
        user = use.owner.operation
        while user.block != op.block:
            user = parent_of(user)
        if first is None or user.is_before_in_block(first):
            first = user
    if first is None:
        return None
    crossed = [lo for lo in loops if op.is_before_in_block(lo) and lo.is_before_in_block(first)]
    return first if crossed else None


@dataclass
class _Tail:
    """The arithmetic at the end of a branch that a result comes from, in order, and the values from
    memory that it begins with."""

    block: Block
    ops: list[Operation] = field(default_factory=list)
    loaded: list[Value] = field(default_factory=list)

    def _is_repeated(self, op: Operation) -> bool:
        return op.block == self.block and (isa(op, arith.ConstantOp) or _is_arithmetic(op))

    def follow(self, value: Value) -> bool:
        """Notes what computes a value; False where that cannot stand elsewhere."""
        needed = set[Operation]()
        for source, op in backward_slice([value], self._is_repeated):
            if op is None or op.block != self.block:
                continue
            if self._is_repeated(op):
                needed.add(op)
            elif has(op, Accesses) and isinstance(source.type, ir.IntegerType | ir.FloatType):
                if source not in self.loaded:
                    self.loaded.append(source)
            else:
                return False
        self.ops = [view.operation for view in self.block.operations if view.operation in needed]
        return True

    def again(self, value: Value, known: dict[Value, Value]) -> Value:
        """Emits the arithmetic; gives what it makes of what `known` has in the place of values."""
        for op in self.ops:
            copy = op.clone().operation
            for number, operand in enumerate(op.operands):
                copy.operands[number] = known.get(operand, operand)
            known[op.results[0]] = copy.results[0]
        return known.get(value, value)


def _split(branch: Operation, number: int, loops: list[Operation]) -> Operation:
    """The branch, or one in its place, of which a result is computed where it is first used, if
    that is behind a loop, from what the branch loads."""
    tails = [_Tail(block) for n in range(2) if (block := block_of(branch, n)) is not None]
    first = _behind(branch, branch.results[number], loops)
    if first is None or len(tails) < 2:
        return branch
    given = [end_of(tail.block).operands[number] for tail in tails]
    if not all(tail.follow(value) for tail, value in zip(tails, given, strict=True)):
        return branch
    loaded = [value for tail in tails for value in tail.loaded]
    if not 0 < len(loaded) <= _MOST or not any(map(_is_arithmetic, tails[0].ops + tails[1].ops)):
        return branch
    new = _giving(branch, tails, loaded)
    known = dict(zip(loaded, list(new.results)[-len(loaded) :], strict=True))
    with ir.InsertionPoint(first), new.location:
        found = [tail.again(value, known) for tail, value in zip(tails, given, strict=True)]
        late = arith.SelectOp(new.operands[0], *found).result
    new.results[number].replace_all_uses_with(late)
    return new


def _giving(branch: Operation, tails: list[_Tail], loaded: list[Value]) -> Operation:
    """The branch, which gives values of its blocks, too: zeros in the block that has them not."""
    given = []
    for tail in tails:
        with before(end_of(tail.block)):
            given += [[v if v in tail.loaded else zero_of(v.type) for v in loaded]]
    return giving(branch, *given)
