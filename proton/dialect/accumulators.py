"""Accumulators of the dots of warp groups, which a dot may overwrite."""

from proton.dialect.emit import emit_if
from proton.dialect.mlir import Operation, Value
from proton.dialect.ttg import mem_desc_parts
from proton.dialect.ttng import ZerosOp


def adds_outside(dot: Operation) -> bool:
    """True if threads add up parts of a dot, not the instruction."""
    (k, _), *_ = mem_desc_parts(dot.operands[1].type)
    return 0 < int(dot.attributes["imprecise"].value) <= k


def zeros_unless(has_value: Value, result: Value) -> None:
    """Puts zeros in the place of a result where it has no value."""
    uses, type_ = list(result.uses), result.type
    (chosen,) = emit_if(has_value, [type_], lambda: [result], lambda: [ZerosOp(type_).result])
    for use in uses:
        use.owner.operation.operands[use.operand_number] = chosen
