"""How much an op on tiles costs a thread, for each element of its result, or an SM."""

from enum import IntEnum
from math import prod

from proton.base.chips.chip import Chip
from proton.dialect import isa, names_of, tt, ttng
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Module, Operation, arith
from proton.dialect.regions import innermost_loop
from proton.dialect.traits import Elementwise, Pure, has
from proton.dialect.ttg import is_tensor, mem_desc_parts
from proton.dialect.walk import all_ops, ops_named, source_span

_INDEX = names_of(
    *(tt.MakeRangeOp, tt.SplatOp, tt.AddPtrOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp),
    *(tt.TransOp, tt.IntToPtrOp, tt.PtrToIntOp, tt.BitcastOp, arith.ConstantOp, arith.AddIOp),
    *(arith.SubIOp, arith.MulIOp, arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.ShLIOp),
    *(arith.ShRUIOp, arith.ShRSIOp, arith.CmpIOp, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp),
    *(arith.IndexCastOp, arith.SelectOp, arith.MinSIOp, arith.MaxSIOp, arith.MinUIOp),
    *(arith.MaxUIOp, arith.DivSIOp, arith.DivUIOp, arith.RemSIOp, arith.RemUIOp, arith.BitcastOp),
)
_CASTS = names_of(arith.ExtFOp, arith.ExtSIOp, arith.ExtUIOp, arith.SIToFPOp, arith.UIToFPOp)
_SPECIAL = arith.DivFOp, arith.RemFOp, tt.PreciseDivFOp, tt.PreciseSqrtOp, tt.ExternElementwiseOp


class Cost(IntEnum):
    """The kinds of cost, lowest first."""

    INDEX = 0  # integer arithmetic of addresses and masks: less than moving the result
    ARITHMETIC = 1  # instructions of the units that add and multiply
    SPECIAL = 2  # functions that a special unit approximates: a division, an exponential
    OTHER = 3  # no arithmetic on elements: memory, exchanges, products, control flow


def cost(op: Operation) -> Cost:
    """The cost of an op."""
    if op.name in _INDEX:
        return Cost.INDEX
    if op.name.startswith("math.") or isa(op, *_SPECIAL):
        return Cost.SPECIAL
    return Cost.ARITHMETIC if has(op, Elementwise) and has(op, Pure) else Cost.OTHER


def widens(op: Operation) -> bool:
    """True if an op gives the elements of a tensor in a wider type: more registers, and bytes to
    move, for an instruction each."""
    if op.name not in _CASTS or not is_tensor(op.results[0].type):
        return False
    return bool(element_of(op.results[0]).width > element_of(op.operands[0]).width)


def special_cycles(op: Operation, chip: Chip) -> float:
    """The cycles of an SM that special functions take; 0 of other ops."""
    if cost(op) is not Cost.SPECIAL or not is_tensor(op.results[0].type):
        return 0
    return prod(shape_of(op.results[0])) / chip.special_per_cycle


def dot_cycles(op: Operation, chip: Chip) -> float:
    """The cycles of an SM that a dot takes."""
    (depth, _), element, _ = mem_desc_parts(op.operands[1].type)
    return prod(shape_of(op.results[0])) * depth * element.width / (16 * chip.dot_per_cycle)


def dot_loops(module: Module, chip: Chip) -> list[list[object]]:
    """Of each loop with asynchronous dots right inside: its file, its first and its last line, and
    the cycles of an SM that the dots of an iteration take."""
    cycles: dict[Operation, float] = {}
    for dot in ops_named(module, ttng.WarpGroupDotOp):
        if (loop := innermost_loop(dot)) is not None:
            cycles[loop] = cycles.get(loop, 0.0) + dot_cycles(dot, chip)
    found: list[list[object]] = []
    for loop, taken in cycles.items():
        spans = [source_span(op.location) for op in (loop, *all_ops(loop))]
        lines = [span.line for span in spans if span.file == spans[0].file]
        found.append([spans[0].file, min(lines), max(lines), taken])
    return found
