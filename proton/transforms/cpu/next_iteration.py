"""Values as the next iteration of a loop has them, computed an iteration before.

for i, (offset = 0):                for i, (offset = 0):
  address = base + offset             then = last iteration ? offset : offset + step
  ...                                 next = base + then
  yield offset + step                 address = base + offset
                                      ...
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import cached_property

from proton.dialect.emit import cloned
from proton.dialect.mlir import Block, Operation, Value, arith, ir
from proton.dialect.regions import ForLoop, is_inside
from proton.dialect.traits import Recomputed, has
from proton.dialect.walk import defining_op


@dataclass
class NextIteration:
    """What a loop has in its next iteration. Values are computed anew, where the insertion point
    is: the beginning of the loop's body."""

    loop: Operation
    _later: dict[Value, Value] = field(default_factory=dict)
    _now: dict[Value, Value] = field(default_factory=dict)  # of this one, at its beginning

    @property
    def block(self) -> Block:
        """The loop's body."""
        return ForLoop(self.loop).body

    def is_known(self, value: Value) -> bool:
        """True if a value's next one can be computed."""
        return self._reaches(value) is not None

    def changes(self, value: Value) -> bool:
        """True if it can, and the value changes with the iteration."""
        return bool(self._reaches(value))

    def _reaches(self, value: Value) -> bool | None:
        """Whether a value depends on what the loop carries; None where that cannot be said."""
        changes, seen, pending = False, set(), [value]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            op = defining_op(value)
            if op is None:
                if value.owner == self.block:
                    changes = True
                    pending += self._yielded(value)
                elif is_inside(value.owner.owner.operation, self.loop):
                    return None
            elif is_inside(op, self.loop):
                if not has(op, Recomputed):
                    return None
                pending += op.operands
        return changes

    def _yielded(self, argument: Value) -> list[Value]:
        """What an iteration gives to the next for an argument of its block, but the loop's
        variable."""
        number = ir.BlockArgument(argument).arg_number
        return [ForLoop(self.loop).yielded[number - 1]] if number else []

    @cached_property
    def goes_on(self) -> Value:
        """Whether there is a next iteration. What is left is without sign: it may have all bits."""
        _, end, step = ForLoop(self.loop).bounds
        left = arith.SubIOp(end, self.block.arguments[0]).result
        return arith.CmpIOp(arith.CmpIPredicate.ugt, left, step).result

    def later(self, value: Value) -> Value:
        """A value as the next iteration has it, or this one if it is the last."""
        if value not in self._later:
            if self._is_argument(value):
                given = self._yielded(value)
                step = ForLoop(self.loop).bounds[2]
                then = self.now(given[0]) if given else arith.AddIOp(value, step).result
                self._later[value] = arith.SelectOp(self.goes_on, then, value).result
            else:
                self._later[value] = self._copied(value, self.later)
        return self._later[value]

    def now(self, value: Value) -> Value:
        """A value of this iteration, computed anew where it may come too late."""
        if value not in self._now:
            self._now[value] = self._copied(value, self.now)
        return self._now[value]

    def _is_argument(self, value: Value) -> bool:
        return defining_op(value) is None and value.owner == self.block

    def _copied(self, value: Value, operand: Callable[[Value], Value]) -> Value:
        op = defining_op(value)
        if op is None or not is_inside(op, self.loop):
            return value
        copy = cloned(op, [operand(v) for v in op.operands])
        return copy.results[ir.OpResult(value).result_number]
