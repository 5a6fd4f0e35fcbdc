"""Values that are computed again in another layout, from where they begin."""

from collections.abc import Callable
from dataclasses import dataclass, field

from proton.analysis.layout_rules import operand_layouts
from proton.dialect import isa
from proton.dialect.emit import again
from proton.dialect.mlir import Operation, Type, Value
from proton.dialect.ttg import ConvertLayoutOp, is_tensor, with_layout
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
