"""Loops and branches that carry structured tensors carry the parts that change instead.

The tensors are built again where something else needs them than what was planned; where nothing
does they are dead.
"""

from dataclasses import dataclass

from proton.analysis.scalar import Expr, Materializer, Substitutes
from proton.analysis.structure import (
    CarriedGroup,
    CarriedPart,
    Dim,
    Part,
    Structure,
    StructureAnalysis,
    groups_of,
)
from proton.dialect import isa, tt
from proton.dialect.builtin import i32_attr, integer
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import remade
from proton.dialect.mlir import Block, Operation, Type, Value, arith, ir, scf
from proton.dialect.regions import end_of
from proton.dialect.walk import before, ops_named

SCALAR = Part("scalar")


@dataclass
class _Slot:
    """What is carried at a position of a group: one value for each part, or one as it was."""

    parts: tuple[Part, ...]  # none where the value is carried as it is
    received: list[Structure]  # of each list that is received
    passed: list[Structure]


@dataclass
class Rewriting:
    """One loop or branch, planned before any IR changes."""

    op: Operation
    groups: list[CarriedGroup]
    slots: list[list[_Slot]]  # of each group, by position

    @classmethod
    def of(cls, op: Operation, analysis: StructureAnalysis) -> "Rewriting | None":
        """The plan for an op; None where it carries nothing that is structured."""
        groups = groups_of(op)
        slots = [_slots(group, analysis) for group in groups]
        if not any(slot.parts for own in slots for slot in own):
            return None
        return cls(op, groups, slots)

    def rewrite_head(self, substitutes: Substitutes) -> None:
        """Puts an op that carries the parts in the place of the old one. Its blocks still end with
        the tensors."""
        old = self.op
        first, last = self.slots[0], self.slots[-1]
        with before(old):
            emit = Materializer(substitutes)
            operands = list(old.operands)
            if not isa(old, scf.IfOp):
                # Those of the plan are gone where an outer loop has been rewritten.
                bounds, initial = _split(operands, len(first))
                operands = bounds + _flat(initial, first, 0, emit)
            received = self.groups[-1].received[-1]
            types = [type_ for values in _types(received, last) for type_ in values]
            new = remade(old, types, operands)
        for number, region in enumerate(old.regions):
            for block in region.blocks:
                self._move(block, new, number, substitutes)
        with before(old):
            _receive(received, list(new.results), last, -1, substitutes)
        old.erase()
        self.op = new

    def _move(self, block: Block, new: Operation, number: int, substitutes: Substitutes) -> None:
        """Moves a block's ops into one of the new op that takes the parts."""
        received: list[Value] = []
        slots: list[_Slot] = []
        leading: list[Value] = []
        if not isa(new, scf.IfOp):
            group = min(number, len(self.groups) - 1)
            received, slots = self.groups[group].received[0], self.slots[group]
            leading, _ = _split(list(block.arguments), len(received))
        types = [value.type for value in leading]
        places = [value.location for value in leading]
        for value, own in zip(received, _types(received, slots), strict=True):
            types += own
            places += [value.location] * len(own)
        fresh = ir.Block.create_at_start(new.regions[number], types, places)
        for op in list(block.operations):
            fresh.append(op.operation)
        arguments = list(fresh.arguments)
        for old, value in zip(leading, arguments, strict=False):
            substitutes[old] = value
            old.replace_all_uses_with(value)
        with ir.InsertionPoint.at_block_begin(fresh), new.location:
            _receive(received, arguments[len(leading) :], slots, 0, substitutes)

    def rewrite_ends(self, substitutes: Substitutes) -> None:
        """Has the blocks end with the parts."""
        for number, region in enumerate(self.op.regions):
            for block in region.blocks:
                end = end_of(block)
                slots, passed = self._passed_by(number)
                leading, values = _split(list(end.operands), len(slots))
                with before(end):
                    flat = _flat(values, slots, passed, Materializer(substitutes))
                    remade(end, [], [*leading, *flat])
                end.erase()

    def _passed_by(self, number: int) -> tuple[list[_Slot], int]:
        """Of the block of a region: its group's slots, and which of the lists passed it ends
        with."""
        match self.op.name:
            case scf.IfOp.OPERATION_NAME:
                return self.slots[0], number
            case scf.WhileOp.OPERATION_NAME if number == 0:
                return self.slots[1], 0
        return self.slots[0], 1


def plan(function: Operation, analysis: StructureAnalysis) -> list[Rewriting]:
    """What is to be rewritten in a function, outer ops first."""
    found = [
        Rewriting.of(op, analysis) for op in ops_named(function, scf.ForOp, scf.IfOp, scf.WhileOp)
    ]
    return [rewriting for rewriting in found if rewriting is not None]


def _split(values: list[Value], count: int) -> tuple[list[Value], list[Value]]:
    """The last `count` values apart from those before them."""
    return values[: len(values) - count], values[len(values) - count :]


def _slots(group: CarriedGroup, analysis: StructureAnalysis) -> list[_Slot]:
    slots = []
    for position, value in enumerate(group.received[0]):
        parts = analysis.carried.get(value, ())
        if not parts:
            slots.append(_Slot((), [], []))
            continue
        received = [analysis.carried_values[values[position]] for values in group.received]
        passed = [analysis.structure(values[position]) for values in group.passed]
        slots.append(_Slot(parts, received, [structure for structure in passed if structure]))
    return slots


def _types(values: list[Value], slots: list[_Slot]) -> list[list[Type]]:
    index = ir.IndexType.get()

    def type_of(value: Value, part: Part) -> Type:
        return element_of(value) if part.name == "source" else index

    return [
        [type_of(value, part) for part in slot.parts] or [value.type]
        for value, slot in zip(values, slots, strict=True)
    ]


def _flat(values: list[Value], slots: list[_Slot], passed: int, emit: Materializer) -> list[Value]:
    """What is passed in the place of values: their parts, or they themselves."""
    flat: list[Value] = []
    for value, slot in zip(values, slots, strict=True):
        if not slot.parts:
            flat.append(value)
            continue
        for part in slot.parts:
            expr = part.of(slot.passed[passed])
            assert expr is not None
            flat.append(emit(expr))
    return flat


def _receive(
    old: list[Value],
    fresh: list[Value],
    slots: list[_Slot],
    received: int,
    substitutes: Substitutes,
) -> None:
    """Puts a new op's values in the place of the old one's: as they are, or as the parts of a
    structured tensor. An integer's scalar is cut to the tensor's width, where the sum wraps."""
    values = iter(fresh)
    for tensor, slot in zip(old, slots, strict=True):
        if not slot.parts:
            value = next(values)
            substitutes[tensor] = value
            tensor.replace_all_uses_with(value)
            continue
        structure = slot.received[received]
        for part in slot.parts:
            value = next(values)
            if part != SCALAR:
                substitutes[CarriedPart(tensor, part)] = value
            elif structure.source is None:
                substitutes[tensor] = arith.IndexCastOp(element_of(tensor), value).result
            else:
                substitutes[tensor] = value
        tensor.replace_all_uses_with(_rebuild(structure, tensor.type, Materializer(substitutes)))


def _rebuild(structure: Structure, type_: Type, emit: Materializer) -> Value:
    """The tensor of a structure."""
    shape = tuple(type_.shape)
    is_pointer = structure.source is not None
    element = integer(64) if is_pointer else type_.element_type
    offsets = ir.RankedTensorType.get(shape, element)
    total = tt.SplatOp(_cast(emit(structure.scalar), element), offsets).result
    for axis, dim in enumerate(structure.dims):
        if dim == Dim():
            continue
        ones = [1] * len(shape)
        ones[axis] = shape[axis]
        line = tt.ReshapeOp(
            line_of(dim, shape[axis], element, emit), ir.RankedTensorType.get(ones, element)
        ).result
        line = tt.BroadcastOp(line, offsets).result
        total = arith.AddIOp(total, line).result
    if structure.source is None:
        return total
    source = tt.SplatOp(emit(structure.source), type_).result
    return tt.AddPtrOp(source, total, type_).result


def line_of(dim: Dim, size: int, element: Type, emit: Materializer) -> Value:
    """The places along a dimension, a row of integers."""
    row = ir.RankedTensorType.get([size], element)
    i32 = integer(32)
    line = tt.MakeRangeOp(i32_attr(0), i32_attr(size), ir.RankedTensorType.get([size], i32)).result
    line = _times(_sized(line, element), dim.stride, emit)
    if dim.parent is not None:
        line = arith.AddIOp(line, _splat(dim.offset, row, emit)).result
        line = arith.RemSIOp(line, _splat(dim.parent, row, emit)).result
    if dim.gathers:
        line = arith.AddIOp(line, gathered_line(dim, size, element, emit)).result
    return line


def gathered_line(dim: Dim, size: int, element: Type, emit: Materializer) -> Value:
    """The sum of a dimension's gathers, a row of integers."""
    total = None
    for index, factor in dim.gathers:
        flat = emit(index)
        row = ir.RankedTensorType.get([size], element_of(flat))
        if flat.type != row:
            flat = tt.ReshapeOp(flat, row).result
        term = _times(_sized(flat, element), factor, emit)
        total = term if total is None else arith.AddIOp(total, term).result
    assert total is not None
    return total


def _times(line: Value, factor: Expr, emit: Materializer) -> Value:
    return line if factor == 1 else arith.MulIOp(line, _splat(factor, line.type, emit)).result


def _splat(expr: Expr, type_: Type, emit: Materializer) -> Value:
    return tt.SplatOp(_cast(emit(expr), type_.element_type), type_).result


def _cast(value: Value, element: Type) -> Value:
    return value if value.type == element else arith.IndexCastOp(element, value).result


def _sized(line: Value, element: Type) -> Value:
    """A row of integers of another width."""
    own, type_ = element_of(line), ir.RankedTensorType.get(line.type.shape, element)
    if own == element:
        return line
    if isinstance(own, ir.IndexType):
        return arith.IndexCastOp(type_, line).result
    return (arith.ExtSIOp if own.width < element.width else arith.TruncIOp)(type_, line).result
