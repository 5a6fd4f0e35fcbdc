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
from typing import Any, ClassVar

from proton.dialect.mlir import arith, ir
from proton.dialect.proton import MarkOp, RecordOp
from proton.dialect.walk import before, ops_named
from proton.passes import Pass, register
from proton.transforms.loop_unroll import unroll_factor

ITERATION_FIELD = "#iteration"


@register
@dataclass(frozen=True)
class NumberIterations(Pass):
    """Adds the payload value `ITERATION_FIELD` to starts of scopes and to marks whose innermost
    loop asks to be unrolled."""

    name: ClassVar[str] = "number-iterations"

    def run(self, module: Any) -> None:
        for op in ops_named(module, "proton.record", "proton.mark"):
            loop = _innermost_loop(op)
            is_end = op.name == "proton.record" and op.attributes["phase"].value == "end"
            if loop is not None and not is_end and unroll_factor(loop) > 1:
                with before(op):
                    _numbered(op, _number(loop))
                op.erase()


def iteration_of(op: Any) -> Any:
    """The number of a record's iteration, i64, where the record has it; else None."""
    for value, name in zip(op.opview.payload, op.attributes["names"], strict=True):
        if name.value == ITERATION_FIELD:
            return value
    return None


def _innermost_loop(op: Any) -> Any:
    """The loop around an op, if it is one that counts."""
    parent = op.parent
    while parent is not None and parent.operation.name not in ("func.func", "scf.while"):
        if parent.operation.name == "scf.for":
            return parent.operation
        parent = parent.operation.parent
    return None


def _number(loop: Any) -> Any:
    variable = loop.regions[0].blocks[0].arguments[0]
    lower, step = loop.operands[0], loop.operands[2]
    number = arith.DivSIOp(arith.SubIOp(variable, lower).result, step).result
    i64 = ir.IntegerType.get_signless(64)
    if isinstance(number.type, ir.IndexType):
        return arith.IndexCastOp(i64, number).result
    return number if number.type == i64 else arith.ExtSIOp(i64, number).result


def _numbered(op: Any, number: Any) -> None:
    """The same record with one more payload value."""
    names = [*op.attributes["names"], ir.StringAttr.get(ITERATION_FIELD)]
    kinds = [*op.attributes["kinds"], ir.StringAttr.get("int")]
    payload, when = [*op.opview.payload, number], op.opview.when
    listed = ir.ArrayAttr.get(names), ir.ArrayAttr.get(kinds)
    with op.location:
        if op.name == "proton.mark":
            MarkOp(payload, op.attributes["mark"], *listed, when=when)
        else:
            RecordOp(payload, op.attributes["scope"], op.attributes["phase"], *listed, when=when)
