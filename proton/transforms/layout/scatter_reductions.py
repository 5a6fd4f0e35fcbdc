"""Results of reductions lie in the lanes that want them, and in no others.

    %r = tt.reduce %x {axis = 0} : #without_axis       %r = tt.reduce %x {axis = 0} : #scattered
    %s = arith.truncf %r : #without_axis          =>   %s = arith.truncf %r : #scattered
    %t = ttg.convert_layout %s : #target               %t = ttg.convert_layout %s : #target

Where all lanes would have all results, and the only conversion of them leaves each some: lanes keep
these as they combine (`scattered` in proton/layout/reduction.py), with a fifth of the shuffles
where it is 32 lanes, and there is less to convert.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.scratch import axis_of
from proton.dialect import isa, names_of, tt
from proton.dialect.mlir import Module, Operation, Value, arith, ir
from proton.dialect.traits import Elementwise, has
from proton.dialect.ttg import ConvertLayoutOp, is_tensor, layout_of, with_layout
from proton.dialect.walk import (
    before,
    constant_in,
    defining_op,
    ops_named,
    producer_of,
    replace,
    users,
)
from proton.layout import LinearLayout
from proton.layout.reduction import scattered
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class ScatterReductions(Pass):
    """Gives reductions, and what is computed of their results alone, such layouts."""

    name: ClassVar[str] = "tritongpu-scatter-reductions"
    only_for: ClassVar[frozenset[str]] = names_of(tt.ReduceOp)

    def run(self, module: Module) -> None:
        for op in ops_named(module, tt.ReduceOp):
            if not is_tensor(op.results[0].type):
                continue
            computed: dict[Value, None] = dict.fromkeys(op.results)
            target = _target(computed)
            if target is None:
                continue
            layout = scattered(layout_of(op.operands[0].type), axis_of(op), target)
            if layout != layout_of(op.results[0].type):
                _place(computed, layout)


def _target(computed: dict[Value, None]) -> LinearLayout | None:
    """The one layout that values, and what is computed of them alone, are converted to; None where
    they are taken otherwise. Adds to the values what is computed of them."""
    targets = set[LinearLayout]()
    for value in (pending := list(computed)):
        for user in users(value):
            if isa(user, ConvertLayoutOp):
                targets.add(layout_of(user.results[0].type))
            elif has(user, Elementwise) and user.block == producer_of(value).block:
                added = [result for result in user.results if result not in computed]
                computed.update(dict.fromkeys(added))
                pending += added
            else:
                return None
    is_alone = all(_is_uniform(v) for op in _computing(computed) for _, v in _others(op, computed))
    return targets.pop() if is_alone and len(targets) == 1 else None


def _computing(computed: dict[Value, None]) -> list[Operation]:
    made = dict.fromkeys(map(producer_of, computed))
    return [op for op in made if not isa(op, tt.ReduceOp)]


def _others(op: Operation, computed: dict[Value, None]) -> list[tuple[int, Value]]:
    """The blocks that an op takes besides, and the number of each among its operands."""
    operands = enumerate(op.operands)
    return [(n, value) for n, value in operands if is_tensor(value.type) and value not in computed]


def _is_uniform(value: Value) -> bool:
    """True if all elements are one number, of which another layout can be made."""
    return isa(defining_op(value), tt.SplatOp) or constant_in(value) is not None


def _place(computed: dict[Value, None], layout: LinearLayout) -> None:
    for value in computed:
        value.set_type(with_layout(value.type, layout))
    for op in _computing(computed):
        for number, operand in _others(op, computed):
            with before(op):
                op.operands[number] = _uniform(operand, layout)
    for value in computed:
        for user in users(value):
            if isa(user, ConvertLayoutOp) and user.results[0].type == value.type:
                replace(user, [value])


def _uniform(value: Value, layout: LinearLayout) -> Value:
    type_, number = with_layout(value.type, layout), constant_in(value)
    if number is None:
        return tt.SplatOp(producer_of(value).operands[0], type_).result
    return arith.ConstantOp(type_, ir.DenseElementsAttr.get_splat(type_, number)).result
