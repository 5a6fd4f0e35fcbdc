"""What loops and branches carry of structured tensors: the parts that they change.

A `CarriedGroup` of an op with regions is a place where values meet: what is `received` at a
position (block arguments, results) is one of what is `passed` there. Its structure is that of the
first of these, with leaves for the parts that may differ:

    scf.for     iter_args and results      from init_args and yielded values
    scf.if      results                    from both yielded values
    scf.while   arguments of `before`      from operands and what `after` yields
                arguments of `after`, results   from what the condition passes on

For a loop that is an assumption, which its own end must bear out. A part that does not stay is
carried, too, and the loop analysed anew; a tensor whose structure does not stay is carried as it
is.
"""

from dataclasses import dataclass

from proton.analysis import scalar as sc
from proton.analysis.scalar import Awaited, Expr, Leaf
from proton.analysis.structure.values import (
    SCALAR,
    Analysis,
    Part,
    Structure,
    differences,
    leaf_of,
    leaves,
    parts_of,
)
from proton.dialect import isa
from proton.dialect.diagnostics import shape_of
from proton.dialect.mlir import Block, Operation, Value, ir, scf
from proton.dialect.regions import ForLoop, If, WhileLoop, end_of, is_inside


@dataclass(frozen=True)
class CarriedGroup:
    """Lists of values that are received, and lists of those that may be passed, by position."""

    received: tuple[list[Value], ...]
    passed: tuple[list[Value], ...]


# What is received at each position of the first list -> the parts that are carried in its place.
CarriedParts = dict[Value, tuple[Part, ...]]


def groups_of(op: Operation) -> list[CarriedGroup]:
    """The groups of a loop or branch; none of other ops."""
    match op.name:
        case scf.ForOp.OPERATION_NAME:
            loop = ForLoop(op)
            received = (loop.iter_args, list(op.results))
            return [CarriedGroup(received, (loop.init_args, loop.yielded))]
        case scf.IfOp.OPERATION_NAME:
            branch = If(op)
            return [CarriedGroup((list(op.results),), tuple(branch.yielded))] if op.results else []
        case scf.WhileOp.OPERATION_NAME:
            while_loop = WhileLoop(op)
            after = list(while_loop.after.arguments)
            return [
                CarriedGroup(
                    (list(while_loop.before.arguments),),
                    (list(op.operands), list(end_of(while_loop.after).operands)),
                ),
                CarriedGroup((after, list(op.results)), (while_loop.passed,)),
            ]
    return []


def analyse_regions(analysis: Analysis, block: Block) -> None:
    """Analyses every loop and branch below a block, outer ones first."""
    for op in block.operations:
        operation = op.operation
        if isa(operation, scf.ForOp, scf.WhileOp):
            _Loop(analysis, operation).run()
        else:
            for region in operation.regions:
                for inner in region.blocks:
                    analyse_regions(analysis, inner)
            if isa(operation, scf.IfOp):
                for group in groups_of(operation):
                    _meet(analysis, operation, group)


class _Loop:
    """One loop: what is assumed of the values that it begins with."""

    def __init__(self, analysis: Analysis, op: Operation) -> None:
        self.analysis, self.op = analysis, op
        self.group, *self.rest = groups_of(op)
        self.assumed: dict[int, tuple[Structure, set[Part]]] = {}
        for position, value in enumerate(self.group.passed[0]):
            structure = analysis.structure(value) if shape_of(value) else None
            if structure is not None and (structure.source is not None or not structure.gathers):
                self.assumed[position] = structure, {SCALAR}

    def run(self) -> None:
        analysis = self.analysis
        known = dict(analysis.carried), dict(analysis.carried_values)
        while True:
            # What inner loops were found to carry rests on what is assumed here: start anew.
            analysis.carried, analysis.carried_values = dict(known[0]), dict(known[1])
            analysis.memo.clear()
            for position, (structure, parts) in self.assumed.items():
                _receive(analysis, self.group, position, structure, parts)
            self._analyse_body()
            if self._holds():
                break
        analysis.memo.clear()

    def _analyse_body(self) -> None:
        for number, region in enumerate(self.op.regions):
            for block in region.blocks:
                analyse_regions(self.analysis, block)
            if number == 0:  # what the condition passes on is known before the body is analysed
                for group in self.rest:
                    _meet(self.analysis, self.op, group)

    def _holds(self) -> bool:
        """True if the loop ends with what was assumed; changes the assumptions if it does not."""
        holds = True
        for position, (structure, parts) in list(self.assumed.items()):
            argument = self.group.received[0][position]
            end = self.analysis.structure(self.group.passed[1][position])
            found = None if end is None else differences(structure, end)
            if (
                end is None
                or found is None
                or not self._may_carry(argument, structure, end, found | parts)
            ):
                del self.assumed[position]
                holds = False
            elif not found <= parts:
                self.assumed[position] = structure, parts | found
                holds = False
        return holds

    def _may_carry(
        self, argument: Value, structure: Structure, end: Structure, parts: set[Part]
    ) -> bool:
        """A carried integer tensor may be used for more than addresses, so its scalar must be exact
        in the tensor's own width: it may only move by constants of the loop, as 32-bit sums wrap
        where the sum of the 64-bit scalars, cut to 32 bits, does."""
        if structure.source is not None:
            return True
        return parts == {SCALAR} and _moves_evenly(self.op, argument, end.scalar)


def _receive(
    analysis: Analysis,
    group: CarriedGroup,
    position: int,
    structure: Structure,
    parts: set[Part],
) -> None:
    """Notes what stands for the values that are received at a position."""
    ordered = tuple(part for part in parts_of(structure) if part in parts)
    for values in group.received:
        value = values[position]
        found = structure
        for part in ordered:
            found = part.put(found, leaf_of(value, part))
        analysis.carried_values[value] = found
        analysis.carried[value] = ordered


def _meet(analysis: Analysis, op: Operation, group: CarriedGroup) -> None:
    """Notes what is received where all that is passed is known already."""
    for position, value in enumerate(group.received[0]):
        if not shape_of(value):
            continue
        asked = [analysis.structure(values[position]) for values in group.passed]
        found = [structure for structure in asked if structure is not None]
        if len(found) < len(asked):
            continue
        first, parts = found[0], {SCALAR}
        for other in found[1:]:
            more = differences(first, other)
            if more is None:
                break
            parts |= more
        else:
            parts |= {part for part in parts_of(first) if _needs(op, part.of(first))}
            if _may_meet(op, first, parts):
                _receive(analysis, group, position, first, parts)


def _may_meet(op: Operation, structure: Structure, parts: set[Part]) -> bool:
    gathers = [gather for dim in structure.dims for gather in dim.gathers]
    if any(_needs(op, expr) for gather in gathers for expr in gather):
        return False
    return structure.source is not None or (parts == {SCALAR} and not structure.gathers)


def _needs(op: Operation, expr: Expr | None) -> bool:
    """True if an expression is of a value that is made inside an op."""
    return any(_is_inside(leaf.value, op) for leaf in leaves(expr))


def _moves_evenly(loop: Operation, argument: Value, expr: Expr) -> bool:
    """True if an expression is the argument plus and minus what the loop does not change."""

    def is_constant(term: Expr) -> bool:
        if isinstance(term, Leaf):
            return not _is_inside(term.value, loop)
        return isinstance(term, int)

    while isinstance(expr, sc.Node) and expr.op in ("add", "sub"):
        left, right = expr.args
        if is_constant(right):
            expr = left
        elif expr.op == "add" and is_constant(left):
            expr = right
        else:
            return False
    return expr == Leaf(argument)


def _is_inside(leaf: Value | Awaited, loop: Operation) -> bool:
    """True if a value is made inside an op's regions, the op's own arguments included."""
    value = leaf if isinstance(leaf, Value) else leaf.tensor
    owner = value.owner
    if isinstance(owner, ir.Block):
        return is_inside(owner.owner.operation, loop)
    parent = owner.operation.parent
    return parent is not None and is_inside(parent.operation, loop)
