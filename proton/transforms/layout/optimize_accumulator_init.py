"""Products of warp groups that begin at zero overwrite the registers of their sums.

    %z = arith.constant dense<0.0>                %p = ub.poison
    %r = scf.for %i = %a to %b                    %r = scf.for %i = %a to %b
         iter_args(%acc = %z) {                        iter_args(%acc = %p) {
                                          =>        %old = arith.cmpi ne, %i, %a
      %d = ttng.warp_group_dot %x, %y, %acc         %d = ttng.warp_group_dot %x, %y, %acc, %old
    }                                             }
    %s = ttng.warp_group_dot_wait %r {0}          %s = ttng.warp_group_dot_wait %r {0}
                                                  %t = scf.if %ran { %s } else { ttng.zeros }

A thread of a large tile has a hundred sums and more. Zeroing them takes as long as an iteration
does, for each tile; the instruction can leave out what was there. Where the loop does not run, the
sums are zeroed behind it: `ttng.zeros` keeps that in its own branch.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of, ttng
from proton.dialect.accumulators import adds_outside, zeros_unless
from proton.dialect.emit import create, is_zeros, number_of
from proton.dialect.mlir import Module, Operation, arith, ir, scf, ub
from proton.dialect.regions import ForLoop
from proton.dialect.ttng import WarpGroupDotOp
from proton.dialect.walk import (
    before,
    defining_op,
    ops_named,
    parent_of,
    producer_of,
    replace,
    users,
)
from proton.passes import Pass, register

_WAIT = ttng.WarpGroupDotWaitOp


@register
@dataclass(frozen=True)
class OptimizeAccumulatorInit(Pass):
    """Sums that a loop carries from zero on are not zeroed ahead of it."""

    name: ClassVar[str] = "tritongpu-optimize-accumulator-init"
    only_for: ClassVar[frozenset[str]] = names_of(ttng.WarpGroupDotOp)

    def run(self, module: Module) -> None:
        for product in ops_named(module, ttng.WarpGroupDotOp):
            number = _carried_from_zero(product)
            if number is not None:
                loop = ForLoop(parent_of(product))
                _overwrite_first(product, loop)
                _begin_anywhere(loop, number)


def _carried_from_zero(product: Operation) -> int | None:
    """Which of its loop's carried values a product adds to, if that is zero at first and nothing
    else reads it."""
    if not isa(parent_of(product), scf.ForOp) or adds_outside(product):
        return None
    loop = ForLoop(parent_of(product))
    acc, taker = product.operands[2], product
    if isa(op := defining_op(acc), _WAIT) and users(acc) == [product]:
        acc, taker = op.operands[0], op  # the product of the iteration before goes on until there
    if acc not in loop.iter_args or users(acc) != [taker]:
        return None
    number = loop.iter_args.index(acc)
    return number if is_zeros(loop.init_args[number]) else None


def _overwrite_first(product: Operation, loop: ForLoop) -> None:
    with before(product):
        lower, *_ = loop.bounds
        is_old = arith.CmpIOp(arith.CmpIPredicate.ne, loop.induction_var, lower).result
        left, right, acc, *adds = product.operands
        for flag in adds:
            is_old = arith.AndIOp(is_old, flag).result
        imprecise = product.attributes["imprecise"]
        made = WarpGroupDotOp(left, right, acc, imprecise, acc.type, adds=is_old)
        replace(product, [made.result])


def _begin_anywhere(loop: ForLoop, number: int) -> None:
    zeros = loop.init_args[number]
    with before(loop.op):
        loop.set_init_arg(number, create(ub.PoisonOp, zeros.type))
    if _surely_runs(loop):
        return
    result = loop.op.results[number]
    readers = users(result)
    if len(readers) == 1 and isa(readers[0], _WAIT) and readers[0].block == loop.op.block:
        result = readers[0].results[0]
    if not list(result.uses):
        return
    with ir.InsertionPoint.after(producer_of(result)), producer_of(result).location:
        lower, upper, _ = loop.bounds
        zeros_unless(arith.CmpIOp(loop.below, lower, upper).result, result)


def _surely_runs(loop: ForLoop) -> bool:
    lower, upper, _ = (number_of(bound) for bound in loop.bounds)
    is_signed = loop.below is arith.CmpIPredicate.slt
    return is_signed and lower is not None and upper is not None and lower < upper
