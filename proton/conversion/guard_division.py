"""Integer divisions never trap: a division by zero, or that overflows, divides by one instead.

On x86 both raise SIGFPE and end the process. A kernel divides by zero without meaning to where
a mask cuts a block: the lanes it masks off hold 0.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import names_of
from proton.dialect.builtin import bits_of
from proton.dialect.diagnostics import element_of
from proton.dialect.mlir import Attribute, Module, Operation, Value, arith, ir
from proton.dialect.walk import before, constant_in, ops_named
from proton.passes import Pass, register

_SIGNED = names_of(arith.DivSIOp, arith.RemSIOp)
_UNSIGNED = names_of(arith.DivUIOp, arith.RemUIOp)


@register
@dataclass(frozen=True)
class GuardDivision(Pass):
    """Replaces the divisors that trap, unless they are constants that do not."""

    name: ClassVar[str] = "guard-division"

    def run(self, module: Module) -> None:
        for op in ops_named(module, *_SIGNED, *_UNSIGNED):
            if not _is_safe_constant(op.operands[1]):
                with before(op):
                    op.operands[1] = _guarded(op)


def _is_safe_constant(divisor: Value) -> bool:
    known = constant_in(divisor)
    return known is not None and ir.IntegerAttr(known).value not in (0, -1)


def _guarded(op: Operation) -> Value:
    dividend, divisor = op.operands
    type_, element = divisor.type, element_of(divisor)

    def constant(value: int) -> Value:
        attribute: Attribute = ir.IntegerAttr.get(element, value)
        if type_ != element:
            attribute = ir.DenseElementsAttr.get_splat(type_, attribute)
        return arith.ConstantOp(type_, attribute).result

    def equal(left: Value, right: int) -> Value:
        return arith.CmpIOp(arith.CmpIPredicate.eq, left, constant(right)).result

    traps = equal(divisor, 0)
    if op.name in _SIGNED:
        # The least number by -1 is out of range; as its own quotient by 1 it wraps around.
        least = -(1 << (bits_of(element) - 1))
        overflows = arith.AndIOp(equal(dividend, least), equal(divisor, -1)).result
        traps = arith.OrIOp(traps, overflows).result
    return arith.SelectOp(traps, constant(1), divisor).result
