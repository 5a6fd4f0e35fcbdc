"""Which integers are known to be at least 0."""

from proton.dialect import isa, names_of, tt, ttg
from proton.dialect import proton_gpu as pg
from proton.dialect.diagnostics import element_of
from proton.dialect.mlir import Value, arith, ir, scf
from proton.dialect.regions import ForLoop, If
from proton.dialect.walk import defining_op

_NON_NEGATIVE = names_of(arith.ExtUIOp, tt.GetProgramIdOp, tt.GetNumProgramsOp)
INDEX_BITS = 32  # arithmetic of so many bits is taken not to overflow: it makes indices
# Of numbers that are not negative these give none that is, but for sums and products that wrap.
_KEEPS_SIGN = names_of(
    *(arith.AddIOp, arith.MulIOp, arith.DivSIOp, arith.RemSIOp, arith.MinSIOp, arith.ExtSIOp),
    *(arith.AndIOp, tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp),
    *(ttg.ConvertLayoutOp, pg.OptimizationBarrierOp),
)
_GROWS = arith.AddIOp, arith.MulIOp


def is_non_negative(value: Value, assumed: frozenset[Value] | None = None) -> bool:
    """True if an integer is known to be at least 0. A divisor that is not a constant is taken to be
    positive: it is a number of blocks or columns. `assumed`: what loops carry, of which the same is
    being asked; None where loops and branches may be under construction, and are not looked at."""

    def ask(other: Value) -> bool:
        return is_non_negative(other, assumed)

    op = defining_op(value)
    if op is None:
        is_assumed = assumed is not None and value in assumed
        return (
            is_assumed
            or _is_counter(value)
            or (assumed is not None and _stays_non_negative(value, assumed))
        )
    if isa(op, *_GROWS) and _is_narrow(value):
        return False
    if isa(op, arith.RemSIOp):  # has the dividend's sign
        return ask(op.operands[0])
    if isa(op, arith.DivSIOp):
        divisor = defining_op(op.operands[1])
        is_constant = isa(divisor, arith.ConstantOp)
        return ask(op.operands[0]) and (not is_constant or ask(op.operands[1]))
    if isa(op, arith.ConstantOp):
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr):
            attribute = attribute.get_splat_value()
        return isinstance(attribute, ir.IntegerAttr) and attribute.value >= 0
    if isa(op, tt.MakeRangeOp):
        return ir.IntegerAttr(op.attributes["start"]).value >= 0
    if isa(op, arith.MaxSIOp):
        return any(map(ask, op.operands))
    if isa(op, arith.SelectOp):
        return all(map(ask, list(op.operands)[1:]))
    if isa(op, scf.IfOp, scf.ForOp) and assumed is not None:
        number = list(op.results).index(value)
        if isa(op, scf.ForOp):
            return ask(ForLoop(op).iter_args[number])
        return all(ask(values[number]) for values in If(op).yielded)
    return op.name in _NON_NEGATIVE or (op.name in _KEEPS_SIGN and all(map(ask, op.operands)))


def _is_narrow(value: Value) -> bool:
    """True if an integer has fewer bits than indices: sums of them wrap around."""
    element = element_of(value)
    return isinstance(element, ir.IntegerType) and element.width < INDEX_BITS


def _is_counter(value: Value) -> bool:
    """True if a block argument is the variable of a loop that starts at 0 or above."""
    owner = value.owner.owner.operation
    is_variable = isa(owner, scf.ForOp) and ir.BlockArgument(value).arg_number == 0
    return is_variable and is_non_negative(ForLoop(owner).bounds[0])


def _stays_non_negative(value: Value, assumed: frozenset[Value]) -> bool:
    """True if a block argument is what a loop carries, begins at 0 or above, and does not get
    below."""
    owner, place = value.owner.owner.operation, ir.BlockArgument(value).arg_number
    if not isa(owner, scf.ForOp) or place == 0:
        return False
    loop, number = ForLoop(owner), place - 1
    sides = loop.init_args[number], loop.yielded[number]
    return all(is_non_negative(side, assumed | {value}) for side in sides)
