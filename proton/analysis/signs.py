"""Which integers are known to be at least 0."""

import itertools

from proton.dialect import isa, names_of, tt, ttg
from proton.dialect import proton_gpu as pg
from proton.dialect.attributes import NON_NEGATIVE
from proton.dialect.diagnostics import element_of
from proton.dialect.mlir import Operation, Value, arith, func, ir, scf
from proton.dialect.regions import ForLoop, If
from proton.dialect.walk import constant_in, defining_op

_NON_NEGATIVE = names_of(arith.ExtUIOp, tt.GetProgramIdOp, tt.GetNumProgramsOp)
INDEX_BITS = 32  # arithmetic of so many bits is taken not to overflow: it makes indices
_IS_SAME = names_of(
    *(arith.ExtSIOp, tt.SplatOp, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp, tt.TransOp),
    *(ttg.ConvertLayoutOp, pg.OptimizationBarrierOp),
)
# Of numbers that are not negative these give none that is, but for sums and products that wrap.
_KEEPS_SIGN = _IS_SAME | names_of(arith.AddIOp, arith.MulIOp, arith.MinSIOp, arith.AndIOp)
_GROWS = arith.AddIOp, arith.MulIOp
_DEEPEST = 200  # ops behind each other: of loops that are written out there may be thousands


def is_non_negative(value: Value, assumed: frozenset[Value] | None = None) -> bool:
    """True if an integer is known to be at least 0. A divisor that is computed is taken to be
    positive: it is a number of blocks. A number of columns is an argument, of which launches tell.
    `assumed`: block arguments that are at least 0; None where loops and branches may be under
    construction, and what they carry and give is not looked at."""
    return _Signs(assumed).holds(value)


class _Signs:
    """Asks it of values. Loops are taken to carry such ones, until one is seen to begin or to go on
    with another: then all is asked again, so that time does not grow as a power does."""

    def __init__(self, assumed: frozenset[Value] | None) -> None:
        self.assumed = assumed
        self.known: dict[Value, bool] = {}
        self.taken: list[Value] = []  # what loops carry, and is taken to be at least 0
        self.refuted = set[Value]()
        self.depth = 0

    def holds(self, value: Value) -> bool:
        while self._seems(value):
            wrong = next(itertools.filterfalse(self._goes_on, self.taken), None)
            if wrong is None:
                return True
            self.refuted.add(wrong)
            self.known, self.taken = {}, []
        return False

    def _goes_on(self, carried: Value) -> bool:
        """True if it seems so of what a loop begins and goes on with."""
        loop, number = ForLoop(carried.owner.owner.operation), ir.BlockArgument(carried).arg_number
        return all(map(self._seems, (loop.init_args[number - 1], loop.yielded[number - 1])))

    def _seems(self, value: Value) -> bool:
        """The answer, if that of what is taken to be so is right."""
        found = self.known.get(value)
        if found is None and self.depth < _DEEPEST:
            op = defining_op(value)
            self.depth += 1
            found = self._of_argument(value) if op is None else self._of_result(value, op)
            self.depth -= 1
            self.known[value] = found
        return bool(found)

    def _of_argument(self, value: Value) -> bool:
        if self.assumed is not None and value in self.assumed:
            return True
        owner, number = value.owner.owner.operation, ir.BlockArgument(value).arg_number
        if isa(owner, func.FuncOp):
            return _is_said(owner, number)
        if not isa(owner, scf.ForOp):
            return False
        if number == 0:
            return self._seems(ForLoop(owner).bounds[0])
        if self.assumed is None or value in self.refuted:
            return False
        self.taken.append(value)
        return True

    def _of_result(self, value: Value, op: Operation) -> bool:
        if isa(op, *_GROWS) and _is_narrow(value):
            return False
        if isa(op, arith.RemSIOp):  # has the dividend's sign
            return self._seems(op.operands[0])
        if isa(op, arith.SubIOp):
            return _counts_from(*op.operands) or _counts_back(*op.operands)
        if isa(op, arith.DivSIOp):
            return self._seems(op.operands[0]) and self._divides(op.operands[1])
        if isa(op, arith.ConstantOp):
            attribute = op.attributes["value"]
            if isinstance(attribute, ir.DenseElementsAttr):
                attribute = attribute.get_splat_value()
            return isinstance(attribute, ir.IntegerAttr) and attribute.value >= 0
        if isa(op, tt.MakeRangeOp):
            return ir.IntegerAttr(op.attributes["start"]).value >= 0
        if isa(op, arith.MaxSIOp):
            return any(map(self._seems, op.operands))
        if isa(op, arith.SelectOp):
            return all(map(self._seems, list(op.operands)[1:]))
        if isa(op, scf.IfOp, scf.ForOp) and self.assumed is not None:
            number = list(op.results).index(value)
            if isa(op, scf.ForOp):
                return self._seems(ForLoop(op).iter_args[number])
            return all(self._seems(values[number]) for values in If(op).yielded)
        keeps = op.name in _KEEPS_SIGN and all(map(self._seems, op.operands))
        return keeps or op.name in _NON_NEGATIVE

    def _divides(self, divisor: Value) -> bool:
        """True if a divisor is, or is taken to be, positive: no factor of it is known not to be."""
        factors = [divisor]
        for value in factors:
            op = defining_op(value)
            if op is not None and (op.name in _IS_SAME or isa(op, arith.MulIOp)):
                factors += [factor for factor in op.operands if factor not in factors]
            elif _is_given(value, op) and not self._seems(value):
                return False
        return True


def _is_given(value: Value, op: Operation | None) -> bool:
    """True of constants and arguments."""
    if op is not None:
        return isa(op, arith.ConstantOp)
    return isa(value.owner.owner.operation, func.FuncOp)


def _is_said(function: Operation, number: int) -> bool:
    """True if an argument of a kernel says so: launches look at it."""
    attributes = function.attributes
    said = ir.ArrayAttr(attributes["arg_attrs"]) if "arg_attrs" in attributes else ()
    return number < len(said) and NON_NEGATIVE in said[number]


def _is_narrow(value: Value) -> bool:
    """True if an integer has fewer bits than indices: sums of them wrap around."""
    element = element_of(value)
    return isinstance(element, ir.IntegerType) and element.width < INDEX_BITS


def _counts_from(value: Value, start: Value) -> bool:
    """True if a value is the variable of a loop that starts there."""
    if defining_op(value) is not None:
        return False
    owner = value.owner.owner.operation
    if not isa(owner, scf.ForOp):
        return False
    loop = ForLoop(owner)
    return bool(value == loop.induction_var and start == loop.bounds[0])


def _counts_back(start: Value, variable: Value) -> bool:
    """True if `variable` is that of a loop, and what it is taken from the loop's end, or one less:
    a loop that counts back."""
    if defining_op(variable) is not None:
        return False
    owner = variable.owner.owner.operation
    if not isa(owner, scf.ForOp) or variable != ForLoop(owner).induction_var:
        return False
    end, op = ForLoop(owner).bounds[1], defining_op(start)
    if start == end:
        return True
    if not isa(op, arith.AddIOp, arith.SubIOp) or op.operands[0] != end:
        return False
    less = constant_in(op.operands[1])
    return less is not None and (less.value if isa(op, arith.SubIOp) else -less.value) <= 1
