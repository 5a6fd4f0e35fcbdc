"""Offsets that a loop moves on by the same number each time follow from the iteration's number.

    scf.for %i = %a to %b step 4                  scf.for %i = %a to %b step 4 {
         iter_args(%o = %init) {             =>     %n = (%i - %a) / 4
      ... %o ...                                    %o = arith.addi %init, (tt.splat (%n * %s))
      %p = arith.addi %o, (tt.splat %s)             ... %o ...
      scf.yield %p                                }
    }

That is an addition for each element, as before. But a tensor of what is known outside of the loop
and of a scalar is in any layout for as much, and a carried one is in one: a load and a store that
want their offsets in different layouts would exchange them in each iteration.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of, tt
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import constant, create, number_of
from proton.dialect.mlir import Module, Value, arith, ir, scf
from proton.dialect.regions import ForLoop, is_invariant, without_carried
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import constant_in, defining_op, ops_named, producer_of
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class ComputeCarriedOffsets(Pass):
    """Carried tensors of integers that move by scalars are computed in each iteration."""

    name: ClassVar[str] = "triton-compute-carried-offsets"
    only_for: ClassVar[frozenset[str]] = names_of(scf.ForOp)

    def run(self, module: Module) -> None:
        for loop in ops_named(module, scf.ForOp):
            view = ForLoop(loop)
            if (each := number_of(view.bounds[2])) is None or each <= 0:
                continue
            numbers = [n for n in range(len(view.init_args)) if _is_moved(view, n)]
            for number in numbers:
                _rewrite(view, number, each)
            if numbers:
                without_carried(loop, set(numbers))


def _is_moved(loop: ForLoop, number: int) -> bool:
    """True if a carried tensor of integers is moved on by a scalar, and is not asked for behind the
    loop."""
    argument = loop.iter_args[number]
    if not is_tensor(argument.type) or not isinstance(element_of(argument), ir.IntegerType):
        return False
    return not list(loop.op.results[number].uses) and _step(loop, number) is not None


def _step(loop: ForLoop, number: int) -> Value | None:
    """The tensor of one number by which a carried tensor is moved on."""
    op, argument = defining_op(loop.yielded[number]), loop.iter_args[number]
    if not isa(op, arith.AddIOp) or argument not in op.operands:
        return None
    step = op.operands[int(op.operands[0] == argument)]
    if constant_in(step) is not None:
        return step
    op = defining_op(step)
    return step if isa(op, tt.SplatOp) and is_invariant(op.operands[0], loop.op) else None


def _rewrite(loop: ForLoop, number: int, each: int) -> None:
    """Computes a carried tensor anew; `each` is what the loop's variable moves by."""
    argument, step = loop.iter_args[number], _step(loop, number)
    assert step is not None, "asked before"
    type_ = ir.IntegerType(element_of(argument))
    with ir.InsertionPoint.at_block_begin(loop.body), loop.op.location:
        count = arith.SubIOp(loop.induction_var, loop.bounds[0]).result
        if each != 1:
            count = arith.DivUIOp(count, constant(each, count.type)).result
        known = constant_in(step)
        by = constant(known, type_) if known is not None else producer_of(step).operands[0]
        moved = arith.MulIOp(_resized(count, type_), by).result
        splat = create(tt.SplatOp, argument.type, moved)
        made = arith.AddIOp(loop.init_args[number], splat).result
    argument.replace_all_uses_with(made)


def _resized(count: Value, type_: ir.IntegerType) -> Value:
    """A count, which is not negative, as a number of another type; modulo what fits in there."""
    if isinstance(count.type, ir.IndexType):
        return arith.IndexCastUIOp(type_, count).result
    if count.type.width > type_.width:
        return arith.TruncIOp(type_, count).result
    return count if count.type == type_ else arith.ExtUIOp(type_, count).result
