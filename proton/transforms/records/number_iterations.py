"""Gives records in loops that will be unrolled the number of their iteration.

A record's iteration is counted by the loop that it is in when records are lowered. Where a loop is
unrolled that counts groups of iterations, and what is left over is a loop of its own. So before
that, records of such loops get the number as a payload value of a name that no user can choose:

    scf.for %i = %lower to %upper step %s { proton.record {phase = "start"} }
->
    scf.for %i = %lower to %upper step %s { %n = (%i - %lower) / %s
                                            proton.record {names = ["#iteration"]} %n }

The copies of the body then have a number each.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, proton
from proton.dialect.builtin import string_attr
from proton.dialect.emit import iteration_number
from proton.dialect.mlir import Module, Operation, Value, ir
from proton.dialect.proton import MarkOp, RecordOp
from proton.dialect.records import ITERATION_FIELD, is_start
from proton.dialect.regions import ForLoop, innermost_loop
from proton.dialect.walk import before, ops_named
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class NumberIterations(Pass):
    """Adds the payload value `ITERATION_FIELD` to starts of scopes and to marks whose innermost
    loop asks to be unrolled."""

    name: ClassVar[str] = "number-iterations"

    def run(self, module: Module) -> None:
        for op in ops_named(module, proton.RecordOp, proton.MarkOp):
            loop = innermost_loop(op)
            is_end = isa(op, proton.RecordOp) and not is_start(op)
            if loop is not None and not is_end and ForLoop(loop).unroll_factor > 1:
                with before(op):
                    _numbered(op, iteration_number(loop, 64))
                op.erase()


def _numbered(op: Operation, number: Value) -> None:
    """The same record with one more payload value."""
    names = [*op.attributes["names"], string_attr(ITERATION_FIELD)]
    kinds = [*op.attributes["kinds"], string_attr("int")]
    payload, when = [*op.opview.payload, number], op.opview.when
    listed = ir.ArrayAttr.get(names), ir.ArrayAttr.get(kinds)
    with op.location:
        if isa(op, proton.MarkOp):
            MarkOp(payload, op.attributes["mark"], *listed, when=when)
        else:
            RecordOp(payload, op.attributes["scope"], op.attributes["phase"], *listed, when=when)
