"""Tensors whose layout is said where they are used, as Gluon's `AutoLayout` has it."""

from dataclasses import dataclass, field
from typing import ClassVar

from proton.analysis.layout_rules import operand_layouts
from proton.dialect import isa, names_of, tt
from proton.dialect.emit import remade
from proton.dialect.layouts import set_constant_type
from proton.dialect.mlir import Module, Operation, Value, arith
from proton.dialect.traits import Pure, has
from proton.dialect.ttg import ConvertLayoutOp, SetAutoLayoutOp, is_tensor, layout_of, with_layout
from proton.dialect.walk import before, defining_op, functions, ops_named, replace
from proton.layout import LinearLayout
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class ResolveAutoEncodings(Pass):
    """What a `ttg.set_auto_layout` takes is computed in the layout that it says, as far back as
    nothing but arithmetic made it.

        %r = tt.make_range : tensor<64xi32>
        %x = ttg.set_auto_layout %r : tensor<64xi32, #a>
    becomes
        %x = tt.make_range : tensor<64xi32, #a>

    Loops carry, and loads make, what is converted instead: such tensors get a layout with all
    others that still have none.
    """

    name: ClassVar[str] = "resolve-auto-encodings"
    only_for: ClassVar[frozenset[str]] = names_of(SetAutoLayoutOp)

    def run(self, module: Module) -> None:
        for function in functions(module):
            resolved = _Resolved()
            for op in ops_named(function, SetAutoLayoutOp):
                layout = layout_of(op.results[0].type)
                replace(op, [resolved.value(op.operands[0], layout, op)])


@dataclass
class _Resolved:
    """What has been computed once more: by value and layout."""

    made: dict[tuple[Value, LinearLayout], Value] = field(default_factory=dict)

    def value(self, value: Value, layout: LinearLayout, user: Operation) -> Value:
        """A value in a layout; what is new stands where the value is made."""
        if not is_tensor(value.type) or value.type.encoding is not None:
            return value
        key = value, layout
        if key not in self.made:
            self.made[key] = self._computed(value, layout, user)
        return self.made[key]

    def _computed(self, value: Value, layout: LinearLayout, user: Operation) -> Value:
        op = defining_op(value)
        type_ = with_layout(value.type, layout)
        needed = None
        if op is not None and len(op.results) == 1 and not len(op.regions):
            is_own = isa(op, tt.LoadOp) and len(list(value.uses)) == 1
            if has(op, Pure) or is_own:
                needed = _operand_layouts(op, layout)
        if op is None or needed is None:
            with before(user):
                return ConvertLayoutOp(value, type_).result
        layouts = iter(needed)
        operands = [
            self.value(operand, next(layouts), op) if is_tensor(operand.type) else operand
            for operand in op.operands
        ]
        with before(op):
            made = remade(op, [type_], operands)
        if isa(op, arith.ConstantOp):
            set_constant_type(made)
        return made.results[0]


def _operand_layouts(op: Operation, layout: LinearLayout) -> list[LinearLayout] | None:
    """Of each tensor that an op takes the layout that it has then; None where that is not known."""
    if isa(op, tt.LoadOp):
        return [layout for operand in op.operands if is_tensor(operand.type)]
    return operand_layouts(op, layout)
