"""Chooses layouts for whole expressions, so that data moves between threads only where it must.

The layouts of some values are given: of what a load reads, of what a product or a scan makes, of
what a store takes. Every other op computes in any layout, and so does a load whose addresses
follow from data (`proton/analysis/gathers.py`). So the pass looks through the conversions that are
there, carries the given layouts *forward* (`preferred_layouts.py`), and makes each operand
available in the layout that its user wants: as it is, computed again *backward* in that layout
where it is made of constants and ranges, or of small loads (`proton/analysis/reloads.py`), or else
converted.

    %x = tt.load %p            : #blocked           %x = tt.load %p : #blocked
    %c = ttg.convert_layout %x : #default     =>    %e = math.exp %x : #blocked
    %e = math.exp %c           : #default           tt.store %q, %e : #blocked
    %d = ttg.convert_layout %e : #blocked
    tt.store %q, %d            : #blocked
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.axis_rules import element_bytes
from proton.analysis.cost import Cost, cost, widens
from proton.analysis.layout_rules import operand_layouts, result_layout
from proton.analysis.reloads import Reloads
from proton.analysis.scratch import is_exchanged, stored_bytes
from proton.analysis.takers import through
from proton.base.chips.chip import ACCESS_BYTES
from proton.dialect import isa, tt, ttg
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import again
from proton.dialect.mlir import Block, Module, Operation, Type, Value, func, ir, scf
from proton.dialect.regions import ForLoop, If, end_of
from proton.dialect.traits import LayoutAnchor, has
from proton.dialect.ttg import ConvertLayoutOp, is_tensor, lanes, layout_of, num_warps, with_layout
from proton.dialect.walk import all_ops, constant_in, defining_op, parent_of
from proton.layout import LinearLayout, shapes
from proton.passes import Pass, register
from proton.transforms.layout.preferred_layouts import ANY_LAYOUT, preferred_layouts

WORD_BYTES = 4  # fewer of an element are moved by as many instructions


@register
@dataclass(frozen=True)
class RemoveLayoutConversions(Pass):
    """Solves for layouts anew in every function, and leaves the conversions that it takes."""

    name: ClassVar[str] = "tritongpu-remove-layout-conversions"

    num_stages: int = 3

    def run(self, module: Module) -> None:
        threads = lanes(module) * num_warps(module)
        for op in module.body.operations:
            if isa(op.operation, func.FuncOp) and len(op.operation.regions[0].blocks):
                function = op.operation
                reloads = Reloads(function, threads, self.num_stages)
                rewriter = _Rewriter(preferred_layouts(function, reloads), reloads)
                rewriter.function(function)
                _erase_unused(function, {*rewriter.copied, *rewriter.copied.values()})


def _erase_unused(function: Operation, copies: set[Value]) -> None:
    """Conversions, and what was computed in several layouts, where nobody takes them."""
    for op in reversed(all_ops(function)):
        is_ours = isa(op, ttg.ConvertLayoutOp) or (op.results and op.results[0] in copies)
        if is_ours and not list(op.results[0].uses):
            op.erase()


class _Rewriter:
    """Gives values their layouts in program order, and operands theirs through `get`."""

    def __init__(self, layouts: dict[Value, LinearLayout], reloads: Reloads) -> None:
        self.layouts, self.reloads = layouts, reloads
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
        if isa(op, tt.GatherOp):
            source, indices = op.operands
            self._retype(op.results[0])
            op.operands[0] = self.get(source, self._liked(source))
            op.operands[1] = self.get(indices, layout_of(op.results[0].type))
            return
        is_placed = isa(op, tt.LoadOp, tt.ScanOp) and results and self._is_placed(results[0])
        if (has(op, LayoutAnchor) and not is_placed) or not results or self._is_moved(op):
            self._as_it_is(op)
            return
        layout = self.layouts[results[0]]
        tensors = [n for n, operand in enumerate(op.operands) if is_tensor(operand.type)]
        wanted = [layout] * len(tensors) if is_placed else self._wanted_operands(op, layout)
        for result in results:
            self._retype(result)
        for number, operand_layout in zip(tensors, wanted, strict=True):
            op.operands[number] = self.get(op.operands[number], operand_layout)

    def _is_moved(self, op: Operation) -> bool:
        """True of a split of what has no layout that can be split, or another one."""
        return isa(op, tt.SplitOp) and self.layouts[op.results[0]] != result_layout(
            op, self._liked(op.operands[0])
        )

    def _is_placed(self, loaded: Value) -> bool:
        return is_tensor(loaded.type) and self.layouts[loaded] != layout_of(loaded.type)

    def _wanted_operands(self, op: Operation, layout: LinearLayout) -> list[LinearLayout]:
        wanted = operand_layouts(op, layout)
        if wanted is None:  # no rule that goes backward: the preference of the first operand is it
            tensors = [operand for operand in op.operands if is_tensor(operand.type)]
            wanted = [self._liked(op.operands[0])] * len(tensors)
        return wanted

    def _liked(self, value: Value) -> LinearLayout:
        return self.layouts.get(through(value)) or layout_of(value.type)

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
                is_free = op.name in ANY_LAYOUT
                layout = self._liked(operand) if is_free else self._given(operand)
                op.operands[number] = self.get(operand, layout)

    def _store(self, op: Operation) -> None:
        """Operands in the layout of the store; where the value moves for its sake, in one without
        gaps between the lanes of a store of 16 bytes."""
        layout, source = self._given(op.operands[1]), through(op.operands[1])
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
        source = through(value)
        source = self.copied.get(source, source)
        type_ = with_layout(source.type, layout)
        if source.type == type_:
            return source
        key = source, layout
        if key not in self.made:
            op = defining_op(source)
            is_free = op is not None and source not in self.layouts and cost(op) is Cost.INDEX
            # What is transposed moves nothing: the conversion goes to where the data comes from.
            # What is widened has fewer bytes there. Pointers at a distance from others are so in
            # any layout: one conversion is for all distances.
            is_cheap = is_free or isa(op, tt.TransOp) or (op is not None and widens(op))
            is_cheap = is_cheap or _is_at_a_distance(op) or self._is_moved_ahead(op, layout)
            if op is not None and (is_cheap or self._is_loaded_again(source, layout)):
                self.made[key] = self._again(op, layout)
                self.copied[self.made[key]] = source
            else:
                self.made[key] = _converted(source, type_)
        return self.made[key]

    def _is_moved_ahead(self, op: Operation | None, layout: LinearLayout) -> bool:
        """True if a thread computes an op with no more instructions in the layout, and one value is
        moved for it: who else wants what is made of that need not move it again."""
        if op is None or not _is_index(op) or _takers(op.results[0]) > 1:
            return False
        (made,), moved = op.results, self._begins(op)
        if layout.in_size("register") > layout_of(made.type).in_size("register"):
            return False
        return len(moved) == 1 and _moved_bytes(*moved) <= max(WORD_BYTES, _moved_bytes(made))

    def _begins(self, op: Operation) -> set[Value]:
        """The values with a layout that an op's is computed from by arithmetic of indices, whose
        results nobody else takes."""
        found, seen, waiting = set[Value](), set[Value](), list(op.operands)
        while waiting:
            value = through(waiting.pop())
            if value in self.layouts and value not in seen:
                seen.add(value)
                made = defining_op(value)
                if made is not None and _is_index(made) and _takers(value) == 1:
                    waiting += made.operands
                else:
                    found.add(value)
        return found

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


def _is_index(op: Operation) -> bool:
    """True of arithmetic of indices that goes backward in any layout, and chooses no numbers."""
    if cost(op) is not Cost.INDEX or not is_tensor(op.results[0].type):
        return False
    is_float = isinstance(element_of(op.results[0]), ir.FloatType)
    return not is_float and operand_layouts(op, layout_of(op.results[0].type)) is not None


def _takers(value: Value) -> int:
    """How many operands a value is, or a conversion of it."""
    return sum(
        _takers(user.results[0]) if isa(user, ttg.ConvertLayoutOp) else 1
        for user in (use.owner.operation for use in value.uses)
    )


def _moved_bytes(value: Value) -> int:
    return stored_bytes(element_of(value))


def _is_at_a_distance(op: Operation | None) -> bool:
    """True of pointers that are others, and a number further."""
    return isa(op, tt.AddPtrOp) and constant_in(op.operands[1]) is not None


def _converted(value: Value, type_: Type) -> Value:
    op = defining_op(value)
    if op is None:
        block = ir.BlockArgument(value).owner
        with ir.InsertionPoint.at_block_begin(block), block.owner.location:
            return ConvertLayoutOp(value, type_).result
    with ir.InsertionPoint.after(op), op.location:
        return ConvertLayoutOp(value, type_).result
