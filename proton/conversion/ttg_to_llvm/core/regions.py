"""The regions of reductions, scans and maps, as functions of vectors of registers.

What a region is known to do is asked once (proton/analysis/choices.py): whether the order counts,
and where it chooses values and their indices.
"""

from proton.analysis.choices import RisingChoice, chooses_alike, least_index
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import (
    Lowering,
    Site,
    llvm_type,
    lowers,
    needs_rule,
)
from proton.dialect import isa, names_of, tt
from proton.dialect.emit import remade
from proton.dialect.mlir import Operation, Value, arith, ir
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import all_ops

Values = list[Value]

_EXTREMA = names_of(
    *(arith.MaxNumFOp, arith.MinNumFOp, arith.MaximumFOp, arith.MinimumFOp),
    *(arith.MaxSIOp, arith.MinSIOp, arith.MaxUIOp, arith.MinUIOp),
)
_COMMUTATIVE = _EXTREMA | names_of(
    *(arith.AddFOp, arith.AddIOp, arith.MulFOp, arith.MulIOp, arith.AndIOp, arith.OrIOp),
    arith.XOrIOp,
)


class RegionCode:
    """The region of an op, as a function of a list of vectors."""

    def __init__(self, ctx: Lowering, op: Operation) -> None:
        self.ctx, self.op, self.block = ctx, op, op.regions[0].blocks[0]
        self.ops = [view.operation for view in self.block.operations]
        self.commutes = self._commutes()
        self.is_extremum = self.commutes and self.ops[0].name in _EXTREMA and len(self.ops) == 2
        self.has_control_flow = any(len(inner.regions) for inner in self.ops)

    def _commutes(self) -> bool:
        """Whether it is one commutative op of its two arguments (of one and a constant, which
        passes move out of the region, it is not), or a choice that knows no order."""
        if len(self.ops) == 2 and self.ops[0].name in _COMMUTATIVE:
            return set(self.ops[0].operands) == set(self.block.arguments)
        return chooses_alike(self.block)

    def __call__(self, arguments: Values) -> Values:
        if self.has_control_flow:
            return self._by_element(arguments)
        made = dict(zip(self.block.arguments, arguments, strict=True))
        count = v.count_of(arguments[0])
        for op in self.ops[:-1]:
            operands = [made.get(operand, operand) for operand in op.operands]
            operands = [o if v.is_vector(o.type) else v.splat(o, count) for o in operands]
            types = [v.vector(count, result.type) for result in op.results]
            changed = {}
            if isa(op, arith.ConstantOp):
                changed["value"] = ir.DenseElementsAttr.get_splat(types[0], op.attributes["value"])
            results = self._lowered(op, remade(op, types, operands, **changed))
            made |= dict(zip(op.results, results, strict=True))
        return [made.get(value, value) for value in self.ops[-1].operands]

    def _by_element(self, arguments: Values) -> Values:
        """A branch is of one element: the region once for each."""
        columns = zip(*map(v.to_elements, arguments), strict=True)
        rows = zip(*[self.scalar(list(column)) for column in columns], strict=True)
        return [v.from_elements(list(row)) for row in rows]

    def scalar(self, arguments: Values) -> Values:
        """A copy of the region on scalars, moved to the insertion point and lowered."""
        place = ir.InsertionPoint.current.ref_operation
        assert place is not None, "rules emit before the op that they lower"
        copy = self.op.clone()
        block = copy.regions[0].blocks[0]
        *body, end = [view.operation for view in block.operations]
        ops = [op for inner in body for op in (inner, *all_ops(inner))]
        sites = [Site(op, [operand.type for operand in op.operands]) for op in ops]
        for old, new in zip(block.arguments, arguments, strict=True):
            old.replace_all_uses_with(new)  # whose types are LLVM's
        for inner in body:
            inner.move_before(place)
        for site in sites:
            self.ctx.lower(site)
        values = list(end.operands)
        copy.erase()
        return values

    def _lowered(self, scalar: Operation, op: Operation) -> Values:
        """An op that has a rule goes through it at once: nobody comes by here again."""
        site = Site(op, [operand.type for operand in scalar.operands])
        rule = self.ctx.hardware.rule(op)
        if rule is None or (op.name.startswith("arith.") and not needs_rule(site)):
            for result in op.results:
                result.set_type(v.like(result, llvm_type(v.element(result))))
            return list(op.results)
        if isa(op, arith.ConstantOp):
            return list(op.results)
        with ir.InsertionPoint(op):
            found = rule(self.ctx, site)
        op.erase()
        return found


class Combiner(RegionCode):
    """The region of a reduction or scan, as a function of two lists of vectors."""

    def __init__(self, ctx: Lowering, op: Operation, *, is_counted: bool = False) -> None:
        super().__init__(ctx, op)
        self.least_index = least_index(self.block) if is_counted else None

    def __call__(self, left: Values, right: Values) -> Values:  # type: ignore[override]
        return super().__call__(left + right)


class RisingCombiner(Combiner):
    """The region of a reduction of values and their indices, where each on the right is greater:
    of equal values the left one's comes first, which nobody has to compare."""

    def __init__(self, ctx: Lowering, op: Operation, choice: RisingChoice) -> None:
        super().__init__(ctx, op)
        self.choice = choice

    def __call__(self, left: Values, right: Values) -> Values:  # type: ignore[override]
        best, _ = super().__call__(left, right)
        (value, index), (other, later) = left, right
        predicate = self.choice.predicate
        if predicate is None:
            predicate, other = arith.CmpFPredicate.UNE, best
        is_float = isinstance(predicate, arith.CmpFPredicate)
        compare = arith.CmpFOp if is_float else arith.CmpIOp
        is_later = compare(predicate, value, other).result
        if self.choice.has_value:
            best = v.select(is_later, other, value)
        return [best, v.select(is_later, later, index)]

    def ended(self, values: Values, first: Value) -> Values:
        """What all came to; `first` are the least indices."""
        if self.choice.predicate is not None:
            return values
        best, index = values
        is_number = arith.CmpFOp(arith.CmpFPredicate.ORD, best, best).result
        return [best, v.select(is_number, index, first)]


@lowers(tt.MapElementwiseOp)
def _map_elementwise(ctx: Lowering, site: Site) -> Values:
    code = RegionCode(ctx, site.op)
    return code(site.operands) if is_tensor(site.result_type) else code.scalar(site.operands)
