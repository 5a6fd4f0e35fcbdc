"""Elements that are divided by one number are multiplied by its reciprocal.

    %d = tt.splat %y                       %s = 0.25, 2^24 or 1, by the size of %y
    %q = arith.divf %x, %d                 %r = arith.divf 1, %y * %s    fastmath<arcp>
                                   =>      %p = arith.mulf %x, splat %r
                                           %q = arith.mulf %p, splat %s

A GPU divides by a reciprocal as well: `div.full` scales a divisor whose reciprocal would be no
normal number, and the dividend by the same power of two, which are three instructions for each
element. Here the scale is the second factor, 1 for most divisors, and the result has the same bits
but where a factor makes a number denormal. So it is two instructions, of which the second may be
fused with an addition behind it.

In `%x / %m[:, None]` the divisor is a row's, of which a thread has several elements. A divisor from
memory, in front of a loop that divides by it, stays as it is: the loop's first loads would wait for
the reciprocal.

A power of two has an exact reciprocal: to divide by it is one factor, and has the same bits.
"""

import math as numbers
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of, tt
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import create, filled
from proton.dialect.mlir import Block, Module, Operation, Type, Value, arith, func, ir, math, scf
from proton.dialect.traits import Accesses, Loop, has
from proton.dialect.ttg import is_tensor, layout_of
from proton.dialect.walk import (
    all_ops,
    backward_slice,
    before,
    constant_in,
    defining_op,
    ops_named,
    parent_of,
    replace,
)
from proton.passes import Pass, register

_EACH = 4  # elements of a thread, at least, that one divisor is for
# What scales divisors above and below these bounds, so that their reciprocals are normal numbers.
_LARGE, _DOWN = 2.0**126, 0.25
_SMALL, _UP = 2.0**-126, 2.0**24
_MANTISSA = 0.5  # of a power of two, as `frexp` has it


@register
@dataclass(frozen=True)
class ShareReciprocals(Pass):
    """Divides fp32 by a number that several elements of a thread have in common only once."""

    name: ClassVar[str] = "tritongpu-share-reciprocals"
    only_for: ClassVar[frozenset[str]] = names_of(arith.DivFOp)

    def run(self, module: Module) -> None:
        factors: dict[Value, list[Value]] = {}  # of each divisor
        for op in ops_named(module, arith.DivFOp):
            type_, divisor = op.results[0].type, op.operands[1]
            if (inverse := _exact_reciprocal(divisor)) is not None:
                with before(op):
                    product = arith.MulFOp(op.operands[0], filled(type_, inverse)).result
                replace(op, [product])
                continue
            if not is_tensor(type_) or element_of(op.results[0]) != ir.F32Type.get():
                continue
            spread = defining_op(divisor)
            if spread is None or not _is_shared(spread) or _is_awaited(spread.operands[0], op):
                continue
            if divisor not in factors:
                factors[divisor] = _factors(spread)
            with before(op):
                result = op.operands[0]
                for factor in factors[divisor]:
                    result = arith.MulFOp(result, factor).result
            replace(op, [result])


def _exact_reciprocal(divisor: Value) -> float | None:
    """The reciprocal of a constant power of two, if both are normal numbers of fp32."""
    known = constant_in(divisor)
    if known is None or element_of(divisor) != ir.F32Type.get():
        return None
    number = float(ir.FloatAttr(known).value)
    is_exact = _SMALL <= abs(number) <= _LARGE and abs(numbers.frexp(number)[0]) == _MANTISSA
    return 1 / number if is_exact else None


def _is_shared(spread: Operation) -> bool:
    """True if an op gives a number to several elements of a thread."""
    if not isa(spread, tt.SplatOp, tt.BroadcastOp):
        return False
    source = spread.operands[0].type
    own = _register_bits(source) if is_tensor(source) else 0
    return _EACH << own <= 1 << _register_bits(spread.results[0].type)


def _register_bits(type_: Type) -> int:
    return sum(any(basis) for basis in layout_of(type_).bases("register"))


def _is_awaited(number: Value, division: Operation) -> bool:
    """True if what is computed of a number ahead of the division's loops waits for memory there,
    where nothing else does."""
    for _, source in backward_slice([number], lambda op: not _reads(op) and not len(op.regions)):
        if source is not None and _reads(source):
            loop = _within(source.block, division)
            if loop is not None and has(loop, Loop) and not _waits_between(source, loop):
                return True
    return False


def _reads(op: Operation) -> bool:
    if isa(op, scf.IfOp):
        return any(has(inner, Accesses) for inner in all_ops(op))
    return has(op, Accesses)


def _within(block: Block, op: Operation) -> Operation | None:
    """The op of a block that is, or has in it, another one."""
    while op.block != block:
        if isa(op, func.FuncOp):
            return None
        op = parent_of(op)
    return op


def _waits_between(source: Operation, loop: Operation) -> bool:
    """True if something between two ops of a block, a loop or a reduction, waits by itself."""
    ops = [view.operation for view in source.block.operations]
    return any(len(op.regions) for op in ops[ops.index(source) + 1 : ops.index(loop)])


def _factors(spread: Operation) -> list[Value]:
    """What to multiply by, one after the other, in the place of a division by a spread number."""
    number = spread.operands[0]
    with before(spread):
        scale = _scale(number)
        one = filled(number.type, 1.0)
        scaled = arith.MulFOp(number, scale).result
        flags = ir.Attribute.parse("#arith.fastmath<arcp>")
        reciprocal = create(arith.DivFOp, number.type, one, scaled, fastmath=flags)
        type_ = spread.results[0].type
        return [create(spread.name, type_, factor) for factor in (reciprocal, scale)]


def _scale(number: Value) -> Value:
    """What makes the reciprocal of a multiple of a number a normal number: 1 for most."""

    def chosen(comparison: str, bound: float, scale: float, other: Value) -> Value:
        predicate = getattr(arith.CmpFPredicate, comparison)
        is_so = arith.CmpFOp(predicate, size, filled(number.type, bound)).result
        return arith.SelectOp(is_so, filled(number.type, scale), other).result

    size = create(math.AbsFOp, number.type, number)
    down = chosen("OGT", _LARGE, _DOWN, filled(number.type, 1.0))
    return chosen("OLT", _SMALL, _UP, down)
