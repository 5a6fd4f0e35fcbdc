"""Values that are computed again in another layout, from where they begin."""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import NamedTuple

from proton.analysis.cost import Cost, cost
from proton.analysis.layout_rules import operand_layouts
from proton.dialect import isa, tt
from proton.dialect.emit import again, remade
from proton.dialect.mlir import Operation, Type, Value, ir
from proton.dialect.traits import Elementwise, has
from proton.dialect.ttg import ConvertLayoutOp, is_tensor, layout_of, with_layout
from proton.dialect.walk import defining_op, producer_of, replace
from proton.layout import LinearLayout, shapes

Made = dict[Value, dict[LinearLayout, Value]]  # of values those in other layouts


@dataclass
class ComputedAgain:
    """Tensors in other layouts. `begins` gives one that is not computed, of a type, or None where
    the op is to be computed again."""

    begins: Callable[[Operation, Type], Value | None]
    kept: frozenset[Operation] = frozenset()  # conversions that stay, to other layouts
    made: Made = field(default_factory=dict)

    def get(self, value: Value, layout: LinearLayout) -> Value:
        """A value in a layout, computed right behind where it was."""
        type_ = with_layout(value.type, layout)
        op = defining_op(value)
        assert op is not None, "as it can be computed again"
        if value.type == type_:
            return value
        if isa(op, ConvertLayoutOp) and op not in self.kept:
            return self.get(op.operands[0], layout)
        if layout not in self.made.get(value, {}):
            found = self.begins(op, type_)
            results = self._again(op, layout) if found is None else [found]
            for old, new in zip(op.results, results, strict=True):
                self.made.setdefault(old, {})[layout] = new
        return self.made[value][layout]

    def replace(self, conversion: Operation, kept: frozenset[Operation] = frozenset()) -> None:
        """Has users of a conversion take its source computed again, but for conversions that stay,
        and erases what nobody takes then."""
        (value,) = conversion.operands
        self.kept = kept
        found = self.get(value, layout_of(conversion.results[0].type))
        self.kept = frozenset()  # ahead of what erases them
        replace(conversion, [found])
        erase_unused(value, self.made)

    def _again(self, op: Operation, layout: LinearLayout) -> list[Value]:
        """The results of an op in a layout."""
        if isa(op, ConvertLayoutOp):
            return [again(op, with_layout(op.results[0].type, layout), list(op.operands))]
        wanted = iter(_operand_layouts(op, layout) or [])
        operands = [self.get(v, next(wanted)) if is_tensor(v.type) else v for v in op.operands]
        if isa(op, tt.JoinOp):
            joined = shapes.join(layout_of(operands[0].type))
            found = again(op, with_layout(op.results[0].type, joined), operands)
            if joined == layout:
                return [found]
            with ir.InsertionPoint.after(producer_of(found)), op.location:
                return [ConvertLayoutOp(found, with_layout(found.type, layout)).result]
        types = [with_layout(result.type, layout) for result in op.results]
        if len(types) == 1:
            return [again(op, types[0], operands)]
        with ir.InsertionPoint.after(op), op.location:
            return list(remade(op, types, operands).results)


def _operand_layouts(op: Operation, layout: LinearLayout) -> list[LinearLayout] | None:
    """The layouts of tensor operands that give an op's results a layout, but for the order of a
    thread's registers: numbers that are joined may be any two. Assembly of several elements may
    take them for more than its own: which of a thread's are together stays."""
    if isa(op, tt.JoinOp):
        return None if shapes.split_bit(layout) is None else [shapes.split(layout)] * 2
    if isa(op, *tt.ASSEMBLY):
        together = int(ir.IntegerAttr(op.attributes["packed_element"]).value).bit_length() - 1
        given = layout_of(op.results[0].type).bases("register")[:together]
        if layout.bases("register")[:together] != given:
            return None
    return operand_layouts(op, layout)


class Again(NamedTuple):
    """What it takes to compute a value again: instructions more of a thread, and the conversions on
    the way that stay, as what is ahead of them cannot be computed again."""

    more: int
    kept: frozenset[Operation]


@dataclass
class Chains:
    """Whether values are computed again: back to ops of `begins`, by ops that `takes` allows. A
    special function is so many instructions. With `keeps` conversions may stay on the way, and give
    the layout that is asked for."""

    begins: Callable[[Operation], bool]
    takes: Callable[[Operation], bool]
    special: int
    keeps: bool = False
    known: dict[tuple[Value, LinearLayout], Again | None] = field(default_factory=dict)

    def of(self, value: Value, layout: LinearLayout) -> Again | None:
        """What it takes for a value in a layout; None where it cannot be. Asked once."""
        if (value, layout) not in self.known:
            self.known[value, layout] = self._of(value, layout)
        return self.known[value, layout]

    def _of(self, value: Value, layout: LinearLayout) -> Again | None:
        more, waiting, seen, is_begun = 0, [(value, layout)], {value}, False
        kept = set[Operation]()
        while waiting:
            value, layout = waiting.pop()
            op = defining_op(value)
            if op is None:
                return None
            if self.begins(op):
                is_begun = True
                continue
            if isa(op, ConvertLayoutOp):
                ahead = self.of(op.operands[0], layout)
                if ahead is not None:
                    more, is_begun = more + ahead.more, True
                    kept |= ahead.kept
                elif self.keeps and self.takes(op):
                    more += _more_registers(value, layout)
                    kept.add(op)
                else:
                    return None
                continue
            wanted = _operand_layouts(op, layout)
            kind = cost(op)
            is_other = kind is Cost.OTHER and not isa(op, tt.JoinOp)  # which numbers registers anew
            if wanted is None or is_other or len(op.regions) or not self.takes(op):
                return None
            weight = self.special if kind is Cost.SPECIAL else 1
            more += weight * _more_registers(value, layout) if has(op, Elementwise) else 0
            tensors = [operand for operand in op.operands if is_tensor(operand.type)]
            for operand, its in zip(tensors, wanted, strict=True):
                if operand not in seen:
                    seen.add(operand)
                    waiting.append((operand, its))
        return Again(more, frozenset(kept)) if is_begun else None


def _more_registers(value: Value, layout: LinearLayout) -> int:
    """How many registers more a thread computes: those in a layout, for those that a value was in,
    or beside them where others take it."""
    is_shared = len(list(value.uses)) > 1
    return layout.in_size("register") - (
        0 if is_shared else layout_of(value.type).in_size("register")
    )


def erase_unused(value: Value, made: Made | None = None) -> None:
    """Erases what gives a value that nobody uses, and what only that used, from `made`, too: a new
    value may be where one was. An op may be used twice: it waits once, and is asked for its users
    when all of those are gone."""
    waiting = [defining_op(value)]
    while waiting:
        op = waiting.pop()
        if op is None or any(list(result.uses) for result in op.results):
            continue
        ahead = [defining_op(operand) for operand in op.operands if is_tensor(operand.type)]
        if made is not None:
            for result in op.results:
                made.pop(result, None)
        op.erase()
        for producer in ahead:
            if producer not in waiting:
                waiting.append(producer)
