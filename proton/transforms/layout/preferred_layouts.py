"""The layouts that the values of a function would like to have, before any is changed.

Given layouts go *forward*: what is computed from a load is computed where the load left it, and
what a loop carries as it begins. What a product in the loop adds to is carried as the product gives
it, and what is made of that follows: else each iteration would convert it there and back.
"""

from collections import Counter
from collections.abc import Sequence
from math import prod

from proton.analysis.cost import Cost, cost
from proton.analysis.gathers import gathered
from proton.analysis.layout_rules import operand_layouts, result_layout
from proton.analysis.networks import Network
from proton.analysis.reloads import Reloads
from proton.analysis.scratch import axis_of, stored_bytes
from proton.analysis.takers import carried_as, product_behind, takers, through, used, uses
from proton.dialect import isa, names_of, tt, ttg, ttng
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Block, Operation, Value, arith, ir, scf
from proton.dialect.regions import ForLoop, If, loop_around
from proton.dialect.traits import Accesses, Elementwise, LayoutAnchor, has
from proton.dialect.ttg import is_tensor, layout_of
from proton.dialect.walk import all_ops, defining_op, parent_of, producer_of
from proton.layout import LinearLayout, shapes
from proton.layout.conversion import Exchange, Permutation, plan
from proton.layout.reduction import is_scannable, plan_reduction

# These take each operand in any layout.
ANY_LAYOUT = names_of(tt.UnsplatOp, tt.AssertOp, tt.PrintOp, ttg.LocalAllocOp, ttng.TMAStoreOp)

_REPEATS = tt.ExpandDimsOp, tt.BroadcastOp
_DEPTH = 8  # ops between a value and what says a layout
# Ops between a value and who takes it. An interpolation has ten; of 1,226 kernels of seven
# libraries 16 changes none (layouts compared, 730f4a41).
_FAR = 16
# Elements of what is made of rows and columns that a thread combines in a row. With 16, 32 and 64
# twelve kernels (benchmarks/gpu_engine.py, from `ranks_of` on) take 0.343, 0.333 and 0.339 of
# Triton's time, and took 0.714 where neighbouring lanes had neighbours (an H200, b09bf179).
_RUN = 32


class _Preferences:
    """`layouts[value]`: where the given layouts reach, going forward; of what they do not reach
    and is not cheap, the layout of what it is combined with, or of the access that it goes to. A
    value that is not there is made of constants and ranges, and has no opinion."""

    def __init__(self, reloads: Reloads, gathers: set[Value], fewest: bool) -> None:
        self.reloads, self.gathers, self.fewest = reloads, gathers, fewest
        self.has_ties = False
        self.layouts: dict[Value, LinearLayout] = {}
        self.undecided: set[Value] = set()  # made of what loops carry that has no layout yet
        self.moved: set[tuple[Value, LinearLayout]] = set()  # values, and where another op has them
        self.asked: set[Value] = set()  # of networks, as their first reshapes are
        self.in_networks: set[Value] = set()  # those that have a layout of their own

    def of(self, value: Value) -> LinearLayout | None:
        return self.layouts.get(through(value))

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
            self._as_indices(op, op.operands[0])
        elif isa(op, tt.GatherOp):
            self._as_indices(op, op.operands[1], self._wanted(op.results[0]))
        elif self.reloads.go_anywhere(op):
            self.layouts[op.results[0]] = self._of_small_load(op.results[0])
        elif isa(op, tt.ScanOp):
            self._given(op.results)
            if (layout := self._of_scan(op)) is not None:
                self.layouts |= dict.fromkeys(op.results, layout)
        elif has(op, LayoutAnchor):
            self._given(op.results)
        elif isa(op, tt.ReduceOp):
            if self.of(op.operands[0]) is None and not any(map(self._is_undecided, op.operands)):
                self._ask(op.operands, _within_threads(op))
            self._forward(op, self.of(op.operands[0]) or layout_of(op.operands[0].type))
        elif isa(op, tt.SplitOp):
            layout = self.of(op.operands[0])
            if layout is not None and result_layout(op, layout) is not None:
                self._forward(op, layout)
            else:  # no thread has both halves of an element there
                self._given(op.results)
        elif isa(op, tt.ReshapeOp) and (layout := self._of_network(op)) is not None:
            self.layouts[op.results[0]] = layout
        elif not isa(op, ttg.ConvertLayoutOp):
            known = {v: layout for v in op.operands if is_tensor(v.type) and (layout := self.of(v))}
            placed = {v: known[v] for v in known if through(v) in self.in_networks}
            if known:
                self._forward(op, self._best(op, placed or known))
            elif has(op, Elementwise) and cost(op) > Cost.INDEX and is_tensor(op.results[0].type):
                # Made of rows and columns, say, which are smaller than it is.
                wanted = self._wanted(op.results[0])
                if wanted is None and not any(map(self._is_undecided, op.operands)):
                    ends = [use.owner.operation for use in takers(op.results[0], set())]
                    if ends and all(isa(end, tt.ReduceOp) for end in ends):
                        wanted = _within_threads(ends[0])
                for result in op.results:
                    self._decide(result, list(op.operands), wanted)

    def _ask(self, values: Sequence[Value], layout: LinearLayout) -> None:
        """Gives a layout to those that have none, and are made in any: a join is not. A constant
        has the one that its user asks for."""
        for value in {through(value) for value in values} - self.layouts.keys():
            op = defining_op(value)
            if op is None or isa(op, arith.ConstantOp) or operand_layouts(op, layout) is None:
                continue
            self.layouts[value] = layout

    def _of_scan(self, op: Operation) -> LinearLayout | None:
        """The layout of an operand, if it takes two shuffles at most for each of its registers to
        scan it there: a store and a load of shared memory move it elsewhere, and the same back."""
        axis = axis_of(op)
        for layout in filter(None, map(self.of, op.operands)):
            if not is_scannable(layout, axis):
                continue
            others = sum(not basis[axis] for basis in layout.bases("register"))
            steps = sum(bool(basis[axis]) for basis in layout.bases("lane"))
            if steps << others <= 2 * layout.in_size("register"):
                return layout
        return None

    def _of_network(self, op: Operation) -> LinearLayout | None:
        """The layout of a network that begins with a reshape, if it asks for one."""
        result = op.results[0]
        if result in self.asked:
            return None
        network = Network.behind(result)
        self.asked |= network.values
        layout = self.of(op.operands[0]) or layout_of(op.operands[0].type)
        found = network.layout(shapes.reshape(layout, shape_of(result)))
        if found is not None:
            self.in_networks |= network.values
        return found

    def _as_indices(
        self, op: Operation, indices: Value, wanted: LinearLayout | None = None
    ) -> None:
        """The layout of addresses or indices, or a wanted one where these have none, unless more
        threads would load the same."""
        result = op.results[0]
        layout, given = self.of(indices) or wanted, layout_of(result.type)
        if layout is not None and layout.in_bits("register") > given.in_bits("register"):
            layout = given
        self._decide(result, [indices], layout)

    def _best(self, op: Operation, known: dict[Value, LinearLayout]) -> LinearLayout:
        """Of the layouts of operands the one that spreads elements over most threads; of more such,
        the one in which fewer reductions of what is computed from them exchange data between warps;
        of more such, the one for which fewer bytes move: of other operands, and of what is made of
        the result for who takes it in a given layout; of more such, the first, or that for which
        fewer values move."""
        least = min(layout.in_bits("register") for layout in known.values())
        widest = dict.fromkeys(one for one in known.values() if one.in_bits("register") == least)
        if len(widest) == 1 or not has(op, Elementwise):
            return next(iter(widest))
        others = list(takers(op.results[0], set()))

        def moved(layout: LinearLayout) -> tuple[int, int]:
            found = [self._to_move(v, source, layout) for v, source in known.items()]
            for use in others:
                target = self._given_by(use)
                if target is not None:
                    found.append(_moved(used(use), layout, target))
            return sum(found), sum(map(bool, found))

        costs = {one: (_exchanges(others, one), *moved(one)) for one in widest}
        least_bytes = [cost for cost in costs.values() if cost[:2] == min(costs.values())[:2]]
        self.has_ties |= len(least_bytes) > 1
        best = min(widest, key=lambda one: costs[one] if self.fewest else costs[one][:2])
        self.moved.update((through(v), best) for v in known)
        return best

    def _to_move(
        self, value: Value, source: LinearLayout, target: LinearLayout, depth: int = _DEPTH
    ) -> int:
        """Bytes of an element that threads pass on for a value to be in another layout: its own, or
        those of what it is computed from element by element, if these are fewer."""
        own = _moved(value, source, target)
        op = defining_op(through(value))
        if (through(value), target) in self.moved:
            return 0
        if not own or not depth or op is None or not has(op, Elementwise):
            return own
        operands = {through(v) for v in op.operands if self.of(v) is not None}
        if not operands or any(self.of(v) != source for v in operands):
            return own
        return min(own, sum(self._to_move(v, source, target, depth - 1) for v in operands))

    def settle(self, function: Operation) -> None:
        """Backward: what all who take it want in one other layout is computed there, if what it is
        computed from has fewer bytes to move, or none."""
        self.moved.clear()
        for op in reversed(all_ops(function)):
            if not has(op, Elementwise) or len(op.results) != 1:
                continue
            result, is_index = op.results[0], cost(op) <= Cost.INDEX
            own, targets = self.layouts.get(result), set(map(self._target, uses(result)))
            target = targets.pop() if len(targets) == 1 else None
            if own is None or target is None or own == target:
                continue
            if of_ranges := self._of_ranges(result):
                self.layouts |= dict.fromkeys(of_ranges, target)
            elif not is_index and self._to_move(result, own, target) < _moved(result, own, target):
                self.layouts[result] = target

    def _of_ranges(self, value: Value) -> set[Value]:
        """A value and all that it is computed from, if nothing else takes it, and it is ranges."""
        found, pending = {value}, [value]
        while pending:
            op = defining_op(pending.pop())
            if op is None or not has(op, Elementwise) or len(op.results) > 1:
                return set()
            new = {v for v in map(through, op.operands) if self.of(v) is not None} - found
            found |= new
            pending += new
        others = {use.owner.operation for v in found - {value} for use in uses(v)}
        is_all = others <= {producer_of(v) for v in found}
        return found if is_all and len({self.layouts[v] for v in found}) == 1 else set()

    def _target(self, use: ir.OpOperand) -> LinearLayout | None:
        """The layout in which an op takes what it uses; None where it is not known, or matters."""
        op = use.owner.operation
        if not op.results or not is_tensor(op.results[0].type) or isa(op, tt.ReduceOp, tt.SplatOp):
            return None
        layout = self.layouts.get(op.results[0])
        if layout is None or has(op, LayoutAnchor):
            return None
        if has(op, Elementwise):
            return layout
        wanted = operand_layouts(op, layout)
        return None if wanted is None else wanted[use.operand_number]

    def all_moved(self) -> list[tuple[int, int, int]]:
        """For each number of loops, the most first, the bytes of values in so many loops that
        threads pass on, and the number of these values."""
        size, count = Counter[int](), Counter[int]()
        for value, own in self.layouts.items():
            wanted = {self._target(use) or self._given_by(use) for use in uses(value)}
            found = [_moved(value, own, one) for one in wanted if one is not None]
            loops = _loops_around(value)
            size[loops] += sum(found) * prod(shape_of(value))
            count[loops] += sum(map(bool, found))
        return [(loops, size[loops], count[loops]) for loops in sorted(size, reverse=True)]

    def _given_by(self, use: ir.OpOperand) -> LinearLayout | None:
        """The layout in which an op takes an operand; None where it takes any."""
        op, number = use.owner.operation, use.operand_number
        if isa(op, scf.YieldOp) and isa(loop := parent_of(op), scf.ForOp):
            return self.layouts.get(ForLoop(loop).iter_args[number])
        if op.results and op.results[0] in self.gathers:
            return None
        if isa(op, tt.ScanOp) and op.results[0] in self.layouts:
            return self.layouts[op.results[0]]
        is_given = has(op, Accesses) or (has(op, LayoutAnchor) and op.name not in ANY_LAYOUT)
        return layout_of(op.operands[number].type) if is_given else None

    def _decide(self, result: Value, sources: Sequence[Value], layout: LinearLayout | None) -> None:
        """Gives a result a layout: without another one the one that it has, if not all depends on
        what a loop carries and nobody has decided."""
        if layout is None and any(map(self._is_undecided, sources)):
            self.undecided.add(result)
        else:
            self.layouts[result] = layout or layout_of(result.type)

    def _is_undecided(self, value: Value, depth: int = _DEPTH) -> bool:
        """True if a value is computed element by element from what nobody has decided."""
        op = defining_op(value := through(value))
        if value in self.undecided or op is None or not depth or not has(op, Elementwise):
            return value in self.undecided
        return any(self._is_undecided(operand, depth - 1) for operand in op.operands)

    def _wanted(
        self, value: Value, depth: int = _FAR, failed: dict[Value, int] | None = None
    ) -> LinearLayout | None:
        """The layout of what a value, or what is computed from it element by element, is combined
        with, or in which an access takes it, or a loop carries it. `failed`: how deep it has been
        looked for in vain."""
        failed = {} if failed is None else failed
        if failed.get(value, -1) >= depth:
            return None
        failed[value] = depth
        for use in value.uses:
            op = use.owner.operation
            if op.results and op.results[0] in self.gathers:
                continue
            if (carried := carried_as(value, op)) is not None:
                found = self.layouts.get(carried)
                if found is None and isa(op, scf.ForOp):
                    found = self._wanted(carried, failed=failed)
                if found is not None:
                    return found
                continue
            if has(op, Accesses):
                loaded = self.layouts.get(op.results[0]) if isa(op, tt.LoadOp) else None
                return loaded or layout_of(op.operands[use.operand_number].type)
            is_index = isa(op, tt.GatherOp) and use.operand_number == 1
            if not depth or not (has(op, Elementwise) or isa(op, ttg.ConvertLayoutOp) or is_index):
                continue
            for other in op.operands if not is_index else ():
                if other != value and (given := self._given_of(other, min(depth, _DEPTH))):
                    return given
            for result in op.results:
                if is_tensor(result.type):
                    found = self._wanted(result, depth - 1, failed)
                    if found is not None:
                        return found
        return None

    def _of_small_load(self, value: Value) -> LinearLayout:
        """The layout in which it is taken, if it would get there by way of shared memory."""
        own, taken = layout_of(value.type), self._taken(value)
        if taken is None:
            return own
        way = plan(own, taken, stored_bytes(element_of(value)))
        return taken if isinstance(way, Exchange) else own

    def _taken(self, value: Value, depth: int = _DEPTH) -> LinearLayout | None:
        """The layout in which a value, or the rows or columns that it is repeated to, are combined
        with what has one, or in which an access takes them."""
        for use in value.uses if depth else ():
            op = use.owner.operation
            if has(op, Accesses) and not (op.results and op.results[0] in self.gathers):
                return layout_of(op.operands[use.operand_number].type)
            if isa(op, scf.YieldOp) and isa(branch := parent_of(op), scf.IfOp):
                given_on = self._taken(branch.results[use.operand_number], depth - 1)
                if given_on is not None:
                    return given_on
                continue
            if not (has(op, Elementwise) or isa(op, ttg.ConvertLayoutOp, *_REPEATS)):
                continue
            others = [v for v in op.operands if v != value] if has(op, Elementwise) else []
            given = (self._given_of(other, depth) for other in others)
            found = next((layout for layout in given if layout is not None), None)
            if found is None:
                found = self._taken(op.results[0], depth - (not isa(op, ttg.ConvertLayoutOp)))
            if found is not None:
                wanted = operand_layouts(op, found)
                return found if wanted is None else wanted[0]
        return None

    def _given_of(self, value: Value, depth: int) -> LinearLayout | None:
        """A layout that is given for what a value is computed from, element by element; it need not
        have been reached yet."""
        if not is_tensor(value.type) or not depth:
            return None
        if (known := self.of(value)) is not None:
            return known
        op = defining_op(through(value))
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
        known = ((a, self.of(v)) for a, v in zip(carried, loop.init_args, strict=True))
        begin = {argument: layout for argument, layout in known if layout is not None}
        summed = {
            argument: layout_of(product.type)
            for argument, last in zip(carried, yielded, strict=True)
            if argument in begin and (product := product_behind(last, op, set())) is not None
        }
        self.layouts.update(summed or begin)  # the others follow what is summed up
        self.undecided.update(a for a in carried if a not in self.layouts)
        before = set(self.moved)
        while True:
            self.moved = set(before)
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
            wanted = begin.get(argument) or self._wanted(argument) or self._taken(argument)
            self.layouts[argument] = wanted or layout_of(argument.type)
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


def _loops_around(value: Value) -> int:
    made, count = defining_op(value), 0
    op = value.owner.owner.operation if made is None else parent_of(made)
    while (loop := loop_around(op)) is not None:
        count, op = count + 1, parent_of(loop)
    return count


def _exchanges(takers: list[ir.OpOperand], layout: LinearLayout) -> int:
    """How many reductions of values in a layout exchange data between warps."""
    ops = [use.owner.operation for use in takers]
    reductions = [op for op in ops if isa(op, tt.ReduceOp)]
    return sum(plan_reduction(layout, axis_of(op)).exchange is not None for op in reductions)


def _within_threads(reduction: Operation) -> LinearLayout:
    """The layout of what a reduction takes, made of rows and columns, in which threads do most of
    it alone: warps do not meet, and what it gives is spread over them."""
    value = reduction.operands[0]
    given = layout_of(value.type)
    warps, lanes = given.in_size("warp"), given.in_size("lane")
    return shapes.scan(shape_of(value), axis_of(reduction), warps, lanes, _RUN)


def _moved(value: Value, source: LinearLayout, target: LinearLayout) -> int:
    """Bytes of an element of a value if threads pass it on to get from one layout to another."""
    bytes_ = stored_bytes(element_of(value))
    return 0 if isinstance(plan(source, target, bytes_), Permutation) else bytes_


def preferred_layouts(function: Operation, reloads: Reloads) -> dict[Value, LinearLayout]:
    """The layout of each tensor of a function; `reloads` are its small loads."""
    first = _preferences(function, reloads, fewest=False)
    if not first.has_ties:
        return first.layouts
    second = _preferences(function, reloads, fewest=True)
    return min(first, second, key=lambda found: found.all_moved()).layouts


def _preferences(function: Operation, reloads: Reloads, *, fewest: bool) -> _Preferences:
    found = _Preferences(reloads, gathered(function), fewest)
    block = function.regions[0].blocks[0]
    found._given(block.arguments)
    found.block(block)
    found.settle(function)
    return found
