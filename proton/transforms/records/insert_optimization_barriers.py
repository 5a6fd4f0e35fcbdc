"""Keeps arithmetic between the clock reads it was placed between.

A clock read orders nothing but itself: LLVM moves arithmetic across it. So at each read the values
that the next interval of work takes from outside of it, and those that the last interval made for
others, pass through `proton_gpu.optimization_barrier`, which nothing sees through:

    %a = arith.mulf ...                      %a = arith.mulf ...
                                             %p = proton_gpu.optimization_barrier %a
    %t = proton_gpu.read_counter     ->      %t = proton_gpu.read_counter
                                             %q = proton_gpu.optimization_barrier %p
    %b = arith.addf %a, ...                  %b = arith.addf %q, ...

A product that a sum is made of (`ttg.fused`) is computed with the sum, and comes along with it.

Only data gets barriers: floating point, and integers that were loaded or computed from such. What
indices and masks are made of stays as it was, and with it all that is known of alignment.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of, tt, ttg, ttng
from proton.dialect import proton_gpu as pg
from proton.dialect.asynchronous import Issues
from proton.dialect.attributes import FUSED
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import create
from proton.dialect.mlir import Block, Module, Operation, OpView, Value, arith, func, ir
from proton.dialect.regions import is_invariant
from proton.dialect.traits import Records, has
from proton.dialect.walk import all_ops, before, defining_op, functions, ops_named, producer_of
from proton.passes import Pass, register

# The integers that these give are data, whatever they were computed from.
_MAKES_DATA = names_of(
    *(tt.LoadOp, tt.DescriptorLoadOp, tt.DescriptorGatherOp, tt.AtomicRMWOp, tt.AtomicCASOp),
    *(tt.ReduceOp, tt.ScanOp, tt.HistogramOp, tt.GatherOp, tt.MapElementwiseOp),
    *tt.ASSEMBLY,
    *(tt.ExternElementwiseOp, ttg.SharedDotOp, ttg.LocalLoadOp, ttng.TMALoadOp),
    *(ttng.MmaSyncOp, ttng.WarpGroupDotOp, ttng.WarpGroupDotWaitOp, ttng.ZerosOp),
)


@register
@dataclass(frozen=True)
class InsertOptimizationBarriers(Pass):
    """Puts a barrier on data that crosses a clock read, on both of its sides."""

    name: ClassVar[str] = "insert-optimization-barriers"

    def run(self, module: Module) -> None:
        for reduction in ops_named(module, tt.ReduceOp):
            if FUSED in reduction.attributes:
                _bring_product(reduction)
        for function in functions(module):
            data, blocks = _Data(), list[Block]()
            for read in ops_named(function, pg.ReadCounterOp):
                if read.block not in blocks:
                    blocks.append(read.block)
            # Outer ones first: the results of their barriers are what inner ones take.
            for block in sorted(blocks, key=_depth):
                _insert_in(block, data)


def _bring_product(reduction: Operation) -> None:
    """A product that its sum is made of is computed with the sum: it stands right before it."""
    product = producer_of(reduction.operands[0])
    with before(reduction), product.location:
        copy = product.clone()
    reduction.operands[0] = copy.operation.results[0]
    if not list(product.results[0].uses):
        product.erase()


class _Data:
    """Which values are data."""

    def __init__(self) -> None:
        self.known: dict[Value, bool] = {}

    def __contains__(self, value: Value) -> bool:
        if value not in self.known:
            self.known[value] = False  # of a cycle, until it is known better
            self.known[value] = self._find(value)
        return self.known[value]

    def _find(self, value: Value) -> bool:
        element, op = element_of(value), defining_op(value)
        if op is not None and (isa(op, arith.ConstantOp) or Issues.of(op) is not None):
            return False  # what was issued is no data until something has waited for it
        if isinstance(element, ir.FloatType):
            return True
        if not isinstance(element, ir.IntegerType) or element.width == 1:
            return False
        if op is None or has(op, Records):
            return False
        return op.name in _MAKES_DATA or (
            not op.name.startswith("scf.") and any(operand in self for operand in op.operands)
        )


def _depth(block: Block) -> int:
    """How many ops are around a block."""
    depth = 0
    parent: OpView | None = block.owner
    while parent is not None and not isa(parent.operation, func.FuncOp):
        depth, parent = depth + 1, parent.operation.parent
    return depth


def _insert_in(block: Block, data: _Data) -> None:
    """An interval is what lies between two reads; each op of the block is in one of them."""
    operations = [view.operation for view in block.operations]
    reads = [op for op in operations if isa(op, pg.ReadCounterOp)]
    made: dict[Value, int] = {}
    # value -> interval -> its uses there
    uses: dict[Value, dict[int, list[tuple[Operation, int]]]] = {}
    interval = 0
    for op in operations:
        interval += isa(op, pg.ReadCounterOp)
        for result in op.results:
            made[result] = interval
        for inner in [op, *all_ops(op)]:
            if has(inner, Records):
                continue
            for number, operand in enumerate(inner.operands):
                if operand in data and is_invariant(operand, op):
                    uses.setdefault(operand, {}).setdefault(interval, []).append((inner, number))
    leaving: dict[int, list[Value]] = {}
    entering: dict[int, list[Value]] = {}
    for value, by_interval in uses.items():
        origin = made.get(value, -1)
        if origin >= 0 and any(s > origin for s in by_interval) and origin < len(reads):
            leaving.setdefault(origin, []).append(value)
        for s in by_interval:
            if 0 < s != origin:
                entering.setdefault(s, []).append(value)
    current: dict[Value, Value] = {}
    for number, read in enumerate(reads):
        values = leaving.get(number, [])
        with before(read):
            current |= zip(values, _barriers(values), strict=True)
        values = entering.get(number + 1, [])
        with ir.InsertionPoint.after(read), read.location:
            kept = _barriers([current.get(value, value) for value in values])
        for value, new in zip(values, kept, strict=True):
            for op, position in uses[value][number + 1]:
                op.operands[position] = new


def _barriers(values: list[Value]) -> list[Value]:
    return [create(pg.OptimizationBarrierOp, value.type, value) for value in values]
