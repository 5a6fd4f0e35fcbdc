"""The analysis of one function: what is known of each value."""

from dataclasses import dataclass, field

from proton.analysis.scalar import Leaf
from proton.analysis.structure.carried import CarriedParts, analyse_regions
from proton.analysis.structure.masks import Mask, mask_of
from proton.analysis.structure.rules import RULES
from proton.analysis.structure.values import Dim, Structure
from proton.dialect import isa
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import shape_of
from proton.dialect.mlir import Block, Operation, Type, Value, arith, ir
from proton.dialect.tt import is_pointer_like
from proton.dialect.walk import defining_op

MIN_WIDTH = 32  # of the integers that addresses are made of


@dataclass
class StructureAnalysis:
    """Answers for one function, once `analyse` has run on its blocks."""

    # What loops and branches carry in the place of tensors, by what they give or receive.
    carried: CarriedParts = field(default_factory=dict)
    # Their block arguments and results -> the structure, in which leaves stand for the parts that
    # the transform will carry in the tensor's place.
    carried_values: dict[Value, Structure] = field(default_factory=dict)
    memo: dict[Value, Structure | None] = field(default_factory=dict)

    def analyse(self, block: Block) -> None:
        """Analyses every loop and branch below a block, outer ones first."""
        analyse_regions(self, block)

    def structure(self, value: Value) -> Structure | None:
        """The structure of a scalar or tensor of integers or pointers; None where it has none."""
        if value in self.carried_values:
            return self.carried_values[value]
        if value not in self.memo:
            self.memo[value] = None  # a cycle has no structure
            self.memo[value] = self._compute(value)
        return self.memo[value]

    def mask(self, mask: Value) -> Mask:
        """A mask, as a box as far as it is one."""
        return mask_of(self, mask)

    def _compute(self, value: Value) -> Structure | None:
        shape = shape_of(value)
        op = defining_op(value)
        if not shape:
            constant = _scalar_constant(op)
            if constant is not None:
                return Structure((), constant)
            if is_pointer_like(value.type):
                return Structure((), 0, Leaf(value))
            return Structure((), Leaf(value)) if _is_number(value.type) else None
        if _wraps_on_purpose(value.type.element_type):
            return None
        rule = RULES.get(op.name) if op is not None else None
        found = rule(self, op, shape) if rule is not None and op is not None else None
        return found or _gathered(value, shape)


def _gathered(value: Value, shape: tuple[int, ...]) -> Structure | None:
    """A tensor of integers along one dimension, as places of its own."""
    long = [axis for axis, size in enumerate(shape) if size != 1]
    if len(long) > 1 or not _is_number(value.type.element_type):
        return None
    axis = long[0] if long else len(shape) - 1
    dims = [Dim()] * len(shape)
    dims[axis] = Dim(gathers=((Leaf(value), 1),))
    return Structure(tuple(dims))


def _wraps_on_purpose(type_: Type) -> bool:
    """True if arithmetic may well leave the range of an integer type; that of `Expr` would not."""
    return isinstance(type_, ir.IntegerType) and type_.width < MIN_WIDTH


def _is_number(type_: Type) -> bool:
    """True if the type is an integer of more than one bit, or index."""
    is_bool = type_ == integer(1)
    return isinstance(type_, ir.IntegerType | ir.IndexType) and not is_bool


def _scalar_constant(op: Operation | None) -> int | None:
    if not isa(op, arith.ConstantOp):
        return None
    attribute = op.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None
