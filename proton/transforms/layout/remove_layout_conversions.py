"""Chooses layouts for whole expressions, so that data moves between threads only where it must.

The layouts of some values are given: of what a load reads, of what a product or a scan makes, of
what a store takes. Every other op computes in any layout, and so does a load whose addresses
follow from data (`proton/analysis/gathers.py`). So the pass looks through the
conversions that are there, carries the given layouts *forward* (what is computed from a load is
computed where the load left it), and makes each operand available in the layout that its user
wants: as it is, computed again *backward* in that layout where it is made of constants and ranges,
or of small loads (`proton/analysis/reloads.py`), or else converted.

    %x = tt.load %p            : #blocked           %x = tt.load %p : #blocked
    %c = ttg.convert_layout %x : #default     =>    %e = math.exp %x : #blocked
    %e = math.exp %c           : #default           tt.store %q, %e : #blocked
    %d = ttg.convert_layout %e : #blocked
    tt.store %q, %d            : #blocked
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.axis_rules import element_bytes
from proton.analysis.cost import Cost, cost, widens
from proton.analysis.gathers import gathered
from proton.analysis.layout_rules import operand_layouts, result_layout
from proton.analysis.reloads import Reloads
from proton.analysis.scratch import axis_of, is_exchanged, stored_bytes
from proton.base.chips.chip import ACCESS_BYTES
from proton.dialect import isa, names_of, tt, ttg, ttng
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import again
from proton.dialect.mlir import Block, Module, Operation, Type, Value, func, ir, scf
from proton.dialect.regions import ForLoop, If, end_of
from proton.dialect.traits import Accesses, Elementwise, LayoutAnchor, has
from proton.dialect.ttg import ConvertLayoutOp, is_tensor, lanes, layout_of, num_warps, with_layout
from proton.dialect.walk import all_ops, defining_op, parent_of
from proton.layout import LinearLayout, shapes
from proton.layout.conversion import Permutation, plan
from proton.layout.reduction import plan_reduction
from proton.passes import Pass, register

# These take each operand in any layout.
_ANY_LAYOUT = names_of(tt.UnsplatOp, tt.AssertOp, tt.PrintOp, ttg.LocalAllocOp, ttng.TMAStoreOp)


@register
@dataclass(frozen=True)
class RemoveLayoutConversions(Pass):
    """Solves for layouts anew in every function, and leaves the conversions that it takes."""

    name: ClassVar[str] = "tritongpu-remove-layout-conversions"

    def run(self, module: Module) -> None:
        threads = lanes(module) * num_warps(module)
        for op in module.body.operations:
            if isa(op.operation, func.FuncOp) and len(op.operation.regions[0].blocks):
                function = op.operation
                gathers = gathered(function)
                layouts = _preferences(function, gathers)
                rewriter = _Rewriter(layouts, Reloads(function, threads), gathers)
                rewriter.function(function)
                _erase_unused(function, {*rewriter.copied, *rewriter.copied.values()})


def _erase_unused(function: Operation, copies: set[Value]) -> None:
    """Conversions, and what was computed in several layouts, where nobody takes them."""
    for op in reversed(all_ops(function)):
        is_ours = isa(op, ttg.ConvertLayoutOp) or (op.results and op.results[0] in copies)
        if is_ours and not list(op.results[0].uses):
            op.erase()


def _through(value: Value) -> Value:
    """The value behind conversions."""
    while isa(op := defining_op(value), ttg.ConvertLayoutOp):
        value = op.operands[0]
    return value


# Forward: which layout each value would like to have


class _Preferences:
    """`layouts[value]`: where the given layouts reach, going forward; of what they do not reach
    and is not cheap, the layout of what it is combined with, or of the access that it goes to. A
    value that is not there is made of constants and ranges, and has no opinion."""

    def __init__(self, gathers: set[Value]) -> None:
        self.gathers = gathers
        self.layouts: dict[Value, LinearLayout] = {}
        self.undecided: set[Value] = set()  # made of what loops carry that has no layout yet

    def of(self, value: Value) -> LinearLayout | None:
        return self.layouts.get(_through(value))

    def block(self, block: Block) -> None:
        for op in block.operations:
            self._visit(op.operation)

    def _visit(self, op: Operation) -> None:
        if isa(op, scf.ForOp):
            self._for(op)
        elif isa(op, scf.IfOp):
            self._if(op)
        elif isa(op, scf.WhileOp):
            for region in op.regions:
                for block in region.blocks:
                    self._given(block.arguments)
                    self.block(block)
            self._given(op.results)
        elif op.results and op.results[0] in self.gathers:
            self._gather(op)
        elif has(op, LayoutAnchor):
            self._given(op.results)
        elif isa(op, tt.ReduceOp):
            self._forward(op, self.of(op.operands[0]) or layout_of(op.operands[0].type))
        elif isa(op, tt.SplitOp):
            self._given(op.results)
        elif not isa(op, ttg.ConvertLayoutOp):
            known = {v: layout for v in op.operands if is_tensor(v.type) and (layout := self.of(v))}
            if known:
                self._forward(op, self._best(op, known))
            elif has(op, Elementwise) and cost(op) > Cost.INDEX and is_tensor(op.results[0].type):
                # Made of rows and columns, say, which are smaller than it is.
                wanted = self._wanted(op.results[0])
                for result in op.results:
                    self._decide(result, list(op.operands), wanted)

    def _gather(self, op: Operation) -> None:
        """The layout of a load's addresses, unless more threads would load the same."""
        addresses, result = op.operands[0], op.results[0]
        layout, given = self.of(addresses), layout_of(result.type)
        if layout is not None and layout.in_bits("register") > given.in_bits("register"):
            layout = given
        self._decide(result, [addresses], layout)

    def _best(self, op: Operation, known: dict[Value, LinearLayout]) -> LinearLayout:
        """Of the layouts of operands the one that spreads elements over most threads; of more such,
        the one in which fewer reductions of what is computed from them exchange data between warps;
        of more such, the one for which fewer bytes move: of other operands, and of what is made of
        the result for who takes it in a given layout."""
        least = min(layout.in_bits("register") for layout in known.values())
        widest = dict.fromkeys(one for one in known.values() if one.in_bits("register") == least)
        if len(widest) == 1 or not has(op, Elementwise):
            return next(iter(widest))
        takers = list(_takers(op.results[0], set()))

        def bytes_moved(layout: LinearLayout) -> int:
            moved = sum(_moved(_narrow(v), source, layout) for v, source in known.items())
            for user, number in takers:
                target = self._given_by(user, number)
                if target is not None:
                    moved += _moved(user.operands[number], layout, target)
            return moved

        return min(widest, key=lambda one: (_exchanges(takers, one), bytes_moved(one)))

    def _given_by(self, op: Operation, number: int) -> LinearLayout | None:
        """The layout in which an op takes an operand; None where it takes any."""
        if isa(op, scf.YieldOp) and isa(loop := parent_of(op), scf.ForOp):
            return self.layouts.get(ForLoop(loop).iter_args[number])
        if op.results and op.results[0] in self.gathers:
            return None
        is_given = has(op, Accesses) or (has(op, LayoutAnchor) and op.name not in _ANY_LAYOUT)
        return layout_of(op.operands[number].type) if is_given else None

    def _decide(self, result: Value, sources: Sequence[Value], layout: LinearLayout | None) -> None:
        """Gives a result a layout: without another one the one that it has, if not all depends on
        what a loop carries and nobody has decided."""
        if layout is None and any(_through(source) in self.undecided for source in sources):
            self.undecided.add(result)
        else:
            self.layouts[result] = layout or layout_of(result.type)

    def _wanted(self, value: Value, depth: int = 8) -> LinearLayout | None:
        """The layout of what a value, or what is computed from it element by element, is combined
        with, or in which an access takes it."""
        for use in value.uses:
            op = use.owner.operation
            if op.results and op.results[0] in self.gathers:
                continue
            if has(op, Accesses):
                return layout_of(op.operands[use.operand_number].type)
            if not depth or not (has(op, Elementwise) or isa(op, ttg.ConvertLayoutOp)):
                continue
            for other in op.operands:
                if other != value and (given := self._given_of(other, depth)) is not None:
                    return given
            for result in op.results:
                found = self._wanted(result, depth - 1) if is_tensor(result.type) else None
                if found is not None:
                    return found
        return None

    def _given_of(self, value: Value, depth: int) -> LinearLayout | None:
        """A layout that is given for what a value is computed from, element by element; it need not
        have been reached yet."""
        if not is_tensor(value.type) or not depth:
            return None
        if (known := self.of(value)) is not None:
            return known
        op = defining_op(_through(value))
        if op is None:
            return None
        if has(op, LayoutAnchor) and op.results[0] not in self.gathers:
            return layout_of(op.results[0].type)
        if not has(op, Elementwise):
            return None
        found = (self._given_of(operand, depth - 1) for operand in op.operands)
        return next((layout for layout in found if layout is not None), None)

    def _given(self, values: Sequence[Value]) -> None:
        for value in values:
            if is_tensor(value.type):
                self.layouts[value] = layout_of(value.type)

    def _forward(self, op: Operation, source: LinearLayout) -> None:
        layout = result_layout(op, source)
        for result in op.results:
            if layout is not None and is_tensor(result.type):
                self.layouts[result] = layout

    def _for(self, op: Operation) -> None:
        loop = ForLoop(op)
        block, carried, yielded = loop.body, loop.iter_args, loop.yielded
        for argument, value in zip(carried, loop.init_args, strict=True):
            if is_tensor(argument.type) and (layout := self.of(value)) is not None:
                self.layouts[argument] = layout
        self.undecided.update(a for a in carried if a not in self.layouts)
        while True:
            self.block(block)
            changed = False
            for argument, value in zip(carried, yielded, strict=True):
                if is_tensor(argument.type) and argument not in self.layouts:
                    layout = self.of(value)
                    if layout is not None:
                        self.layouts[argument], changed = layout, True
            if not changed:
                break
        undecided = [a for a in carried if is_tensor(a.type) and a not in self.layouts]
        for argument in undecided:
            self.layouts[argument] = self._wanted(argument) or layout_of(argument.type)
        self.undecided.difference_update(carried)
        if undecided:
            self.block(block)  # what is computed from them follows
        for argument, result in zip(carried, op.results, strict=True):
            if is_tensor(argument.type):
                self.layouts[result] = self.layouts[argument]

    def _if(self, op: Operation) -> None:
        branch = If(op)
        for block in branch.blocks:
            self.block(block)
        yielded = branch.yielded
        for number, result in enumerate(op.results):
            if is_tensor(result.type):
                layouts = [self.of(values[number]) for values in yielded]
                known = [layout for layout in layouts if layout is not None]
                layout = known[0] if known else self._wanted(result)
                given = [values[number] for values in yielded]
                self._decide(result, given, layout)


def _takers(value: Value, seen: set[Value]) -> Iterator[tuple[Operation, int]]:
    """The ops that take a value, or what is computed from it element by element, and are no such
    computation, with the number of the operand."""
    for use in value.uses:
        op = use.owner.operation
        if not (has(op, Elementwise) or isa(op, ttg.ConvertLayoutOp)):
            yield op, use.operand_number
            continue
        for result in op.results:
            if is_tensor(result.type) and result not in seen:
                seen.add(result)
                yield from _takers(result, seen)


def _exchanges(takers: list[tuple[Operation, int]], layout: LinearLayout) -> int:
    """How many reductions of values in a layout exchange data between warps."""
    reductions = [op for op, _ in takers if isa(op, tt.ReduceOp)]
    return sum(plan_reduction(layout, axis_of(op)).exchange is not None for op in reductions)


def _narrow(value: Value) -> Value:
    """What a value is widened from; else it."""
    op = defining_op(_through(value))
    return op.operands[0] if op is not None and widens(op) else value


def _moved(value: Value, source: LinearLayout, target: LinearLayout) -> int:
    """Bytes of an element of a value if threads pass it on to get from one layout to another."""
    bytes_ = stored_bytes(element_of(value))
    return 0 if isinstance(plan(source, target, bytes_), Permutation) else bytes_


def _preferences(function: Operation, gathers: set[Value]) -> dict[Value, LinearLayout]:
    preferences = _Preferences(gathers)
    block = function.regions[0].blocks[0]
    preferences._given(block.arguments)
    preferences.block(block)
    return preferences.layouts


# Backward: every operand in the layout that its user wants


class _Rewriter:
    """Gives values their layouts in program order, and operands theirs through `get`."""

    def __init__(
        self, layouts: dict[Value, LinearLayout], reloads: Reloads, gathers: set[Value]
    ) -> None:
        self.layouts, self.reloads, self.gathers = layouts, reloads, gathers
        self.made: dict[tuple[Value, LinearLayout], Value] = {}
        self.copied: dict[Value, Value] = {}  # of copies in other layouts: what they are copies of
        self.given: dict[Value, LinearLayout] = {}  # of values whose type was changed: as it was

    def function(self, function: Operation) -> None:
        self._block(function.regions[0].blocks[0])

    def _block(self, block: Block) -> None:
        for op in list(block.operations):
            self._visit(op.operation)

    def _visit(self, op: Operation) -> None:
        if isa(op, ttg.ConvertLayoutOp):
            return
        if isa(op, scf.ForOp):
            self._for(op)
        elif isa(op, scf.IfOp):
            for result in op.results:
                self._retype(result)
            for block in If(op).blocks:
                self._block(block)
                self._ends_with(block, list(op.results))
        elif isa(op, tt.ReduceOp, tt.ScanOp):
            self._operands(op)
        elif isa(op, tt.StoreOp) and is_tensor(op.operands[1].type):
            self._store(op)
        elif op.regions:
            self._as_it_is(op)
            for region in op.regions:
                for block in region.blocks:
                    self._block(block)
        elif not isa(op, scf.YieldOp) or isa(parent_of(op), scf.WhileOp):
            self._operands(op)

    def _operands(self, op: Operation) -> None:
        """Operands in the layout that goes with the results'."""
        results = [result for result in op.results if result in self.layouts]
        if isa(op, tt.ReduceOp):
            self._alike(op)
            return
        is_given = has(op, LayoutAnchor) and not (results and results[0] in self.gathers)
        if is_given or not results or isa(op, tt.SplitOp):
            self._as_it_is(op)
            return
        layout = self.layouts[results[0]]
        wanted = self._wanted_operands(op, layout)
        for result in results:
            self._retype(result)
        tensors = [n for n, operand in enumerate(op.operands) if is_tensor(operand.type)]
        for number, operand_layout in zip(tensors, wanted, strict=True):
            op.operands[number] = self.get(op.operands[number], operand_layout)

    def _wanted_operands(self, op: Operation, layout: LinearLayout) -> list[LinearLayout]:
        if op.results[0] in self.gathers:
            return [layout for operand in op.operands if is_tensor(operand.type)]
        wanted = operand_layouts(op, layout)
        if wanted is None:  # no rule that goes backward: the preference of the first operand is it
            tensors = [operand for operand in op.operands if is_tensor(operand.type)]
            wanted = [self._liked(op.operands[0])] * len(tensors)
        return wanted

    def _liked(self, value: Value) -> LinearLayout:
        return self.layouts.get(_through(value)) or layout_of(value.type)

    def _alike(self, op: Operation) -> None:
        """All operands in the layout that the first one likes."""
        source = self._liked(op.operands[0])
        for number, operand in enumerate(op.operands):
            op.operands[number] = self.get(operand, source)
        for result in op.results:
            self._retype(result)

    def _as_it_is(self, op: Operation) -> None:
        """Operands in the layouts that their types said, or, where any will do, that they like."""
        if isa(op, tt.HistogramOp):
            self._alike(op)
            return
        for number, operand in enumerate(op.operands):
            if is_tensor(operand.type):
                is_free = op.name in _ANY_LAYOUT or (isa(op, tt.GatherOp) and number == 0)
                layout = self._liked(operand) if is_free else self._given(operand)
                op.operands[number] = self.get(operand, layout)

    def _store(self, op: Operation) -> None:
        """Operands in the layout of the store; where the value moves for its sake, in one without
        gaps between the lanes of a store of 16 bytes."""
        layout, source = self._given(op.operands[1]), _through(op.operands[1])
        if (source, layout) not in self.made and is_exchanged(source, layout):
            layout = shapes.narrowed(layout, ACCESS_BYTES // element_bytes(op.operands[0]))
        for number, operand in enumerate(op.operands):
            op.operands[number] = self.get(operand, layout)

    def _for(self, op: Operation) -> None:
        loop = ForLoop(op)
        carried, initial = loop.iter_args, loop.init_args
        for argument, result in zip(carried, op.results, strict=True):
            self._retype(argument)
            self._retype(result)
        for number, argument in enumerate(carried):
            if is_tensor(argument.type):
                loop.set_init_arg(number, self.get(initial[number], layout_of(argument.type)))
        self._block(loop.body)
        self._ends_with(loop.body, list(op.results))

    def _ends_with(self, block: Block, targets: list[Value]) -> None:
        end = end_of(block)
        for number, target in enumerate(targets):
            if is_tensor(target.type):
                end.operands[number] = self.get(end.operands[number], layout_of(target.type))

    def _given(self, value: Value) -> LinearLayout:
        """The layout that a value had: what its users expect that have no other wish."""
        return self.given.get(value) or layout_of(value.type)

    def _retype(self, value: Value) -> None:
        layout = self.layouts.get(value)
        if layout is not None and is_tensor(value.type):
            self.given[value] = layout_of(value.type)
            value.set_type(with_layout(value.type, layout))

    def get(self, value: Value, layout: LinearLayout) -> Value:
        """The value in a layout: itself, computed again, or converted."""
        source = _through(value)
        source = self.copied.get(source, source)
        type_ = with_layout(source.type, layout)
        if source.type == type_:
            return source
        key = source, layout
        if key not in self.made:
            op = defining_op(source)
            is_free = op is not None and source not in self.layouts and cost(op) is Cost.INDEX
            # What is transposed moves nothing: the conversion goes to where the data comes from.
            # What is widened has fewer bytes there.
            is_cheap = is_free or isa(op, tt.TransOp) or (op is not None and widens(op))
            if op is not None and (is_cheap or self._is_loaded_again(source, layout)):
                self.made[key] = self._again(op, layout)
                self.copied[self.made[key]] = source
            else:
                self.made[key] = _converted(source, type_)
        return self.made[key]

    def _is_loaded_again(self, value: Value, layout: LinearLayout) -> bool:
        """True if the value comes from memory in the layout, since it would have to be moved."""
        return is_exchanged(value, layout) and self.reloads.allow(value)

    def _again(self, op: Operation, layout: LinearLayout) -> Value:
        """A copy of a cheap op that computes in another layout, right behind it."""
        tensors = sum(is_tensor(operand.type) for operand in op.operands)
        wanted = iter(
            [layout] * tensors if isa(op, tt.LoadOp) else operand_layouts(op, layout) or []
        )
        operands = [
            self.get(operand, next(wanted)) if is_tensor(operand.type) else operand
            for operand in op.operands
        ]
        return again(op, with_layout(op.results[0].type, layout), operands)


def _converted(value: Value, type_: Type) -> Value:
    op = defining_op(value)
    if op is None:
        block = ir.BlockArgument(value).owner
        with ir.InsertionPoint.at_block_begin(block), block.owner.location:
            return ConvertLayoutOp(value, type_).result
    with ir.InsertionPoint.after(op), op.location:
        return ConvertLayoutOp(value, type_).result
