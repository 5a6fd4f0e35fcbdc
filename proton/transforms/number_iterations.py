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
                    _numbered(op, iteration_number(loop, 64))
                op.erase()


def payload_of(op: Any) -> list[tuple[str, str, Any]]:
    """(name, kind, value) of each payload value of a record that is the user's."""
    return [field for field in _fields(op) if field[0] != ITERATION_FIELD]


def iteration_of(op: Any) -> Any:
    """The number of a record's iteration, i64, where the record has it; else None."""
    return next((value for name, _, value in _fields(op) if name == ITERATION_FIELD), None)


def _fields(op: Any) -> list[tuple[str, str, Any]]:
    columns = op.attributes["names"], op.attributes["kinds"], op.opview.payload
    return [(name.value, kind.value, value) for name, kind, value in zip(*columns, strict=True)]


def iteration_number(loop: Any, bits: int) -> Any:
    """Emits, in a loop's body, the number of its iteration, counted from 0, in so many bits."""
    variable = loop.regions[0].blocks[0].arguments[0]
    lower, step = loop.operands[0], loop.operands[2]
    number = arith.DivSIOp(arith.SubIOp(variable, lower).result, step).result
    type_ = ir.IntegerType.get_signless(bits)
    if isinstance(number.type, ir.IndexType):
        return arith.IndexCastOp(type_, number).result
    if number.type.width > bits:
        return arith.TruncIOp(type_, number).result
    return number if number.type == type_ else arith.ExtSIOp(type_, number).result


def _innermost_loop(op: Any) -> Any:
    """The loop around an op, if it is one that counts."""
    parent = op.parent
    while parent is not None and parent.operation.name not in ("func.func", "scf.while"):
        if parent.operation.name == "scf.for":
            return parent.operation
        parent = parent.operation.parent
    return None


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
