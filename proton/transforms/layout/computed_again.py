"""Values that are computed again in another layout, from where they begin."""

from collections.abc import Callable
from dataclasses import dataclass, field

from proton.analysis.cost import Cost, cost
from proton.analysis.layout_rules import operand_layouts
from proton.dialect import isa, tt
from proton.dialect.emit import again
from proton.dialect.mlir import Operation, Type, Value
from proton.dialect.traits import Elementwise, has
from proton.dialect.ttg import ConvertLayoutOp, is_tensor, layout_of, with_layout
from proton.dialect.walk import defining_op
from proton.layout import LinearLayout


@dataclass
class ComputedAgain:
    """Tensors in other layouts. `begins` gives one that is not computed, of a type, or None where
    the op is to be computed again."""

    begins: Callable[[Operation, Type], Value | None]
    made: dict[tuple[Value, LinearLayout], Value] = field(default_factory=dict)

    def get(self, value: Value, layout: LinearLayout) -> Value:
        """A value in a layout, computed right behind where it was."""
        type_ = with_layout(value.type, layout)
        op = defining_op(value)
        assert op is not None, "as it can be computed again"
        if value.type == type_:
            return value
        if isa(op, ConvertLayoutOp):
            return self.get(op.operands[0], layout)
        if (value, layout) not in self.made:
            found = self.begins(op, type_)
            if found is None:
                wanted = iter(operand_layouts(op, layout) or [])
                operands = [
                    self.get(v, next(wanted)) if is_tensor(v.type) else v for v in op.operands
                ]
                found = again(op, type_, operands)
            self.made[value, layout] = found
        return self.made[value, layout]


def more_instructions(
    value: Value,
    layout: LinearLayout,
    begins: Callable[[Operation], bool],
    takes: Callable[[Operation], bool],
    special: int,
) -> int | None:
    """How many instructions more a thread has where a value is computed again in a layout, of which
    a special function is so many. None where it does not go back to ops of `begins` by ops that
    `takes` allows."""
    more, waiting, seen, is_begun = 0, [(value, layout)], {value}, False
    while waiting:
        value, layout = waiting.pop()
        op = defining_op(value)
        if op is None:
            return None
        if begins(op):
            is_begun = True
            continue
        if isa(op, ConvertLayoutOp):
            waiting.append((op.operands[0], layout))
            continue
        wanted = operand_layouts(op, layout)
        kind = cost(op)
        is_other = kind is Cost.OTHER and not isa(op, tt.JoinOp)  # which numbers registers anew
        if wanted is None or is_other or len(op.regions) or not takes(op):
            return None
        is_shared = len(list(value.uses)) > 1
        before = 0 if is_shared else layout_of(value.type).in_size("register")
        weight = (special if kind is Cost.SPECIAL else 1) if has(op, Elementwise) else 0
        more += weight * (layout.in_size("register") - before)
        tensors = [operand for operand in op.operands if is_tensor(operand.type)]
        for operand, its in zip(tensors, wanted, strict=True):
            if operand not in seen:
                seen.add(operand)
                waiting.append((operand, its))
    return more if is_begun else None


def erase_unused(value: Value) -> None:
    """Erases what gives a value that nobody uses, and what only that used. A value may be used
    twice: it waits once, and is asked for its users when all of those are gone."""
    waiting = [value]
    while waiting:
        value = waiting.pop()
        op = defining_op(value)
        if op is None or list(value.uses):
            continue
        operands = [v for v in op.operands if is_tensor(v.type)]
        op.erase()
        for operand in operands:
            if operand not in waiting:
                waiting.append(operand)
