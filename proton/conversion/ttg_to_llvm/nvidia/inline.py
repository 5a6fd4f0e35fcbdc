"""Inline assembly of PTX, and how its operands are written."""

from typing import Any

from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Type, Value, ir, llvm

LETTERS = {16: "h", 32: "r", 64: "l"}  # of registers of so many bits


def assembly(
    text: str,
    constraints: str,
    type_: Type | None,
    *operands: Value,
    effects: bool = True,
    note: str = "",
) -> Any:
    """Inline PTX; None where `type_` is None."""
    attributes = {
        "asm_string": string_attr(f"{text} {note}" if note else text),
        "constraints": string_attr(constraints),
    }
    if effects:
        attributes["has_side_effects"] = ir.UnitAttr.get()
    op = ir.Operation.create(
        llvm.InlineAsmOp.OPERATION_NAME,
        results=[] if type_ is None else [type_],
        operands=list(operands),
        attributes=attributes,
    )
    return None if type_ is None else op.result


def suffix(count: int, bits: int) -> str:
    """`.v4.b32` and the like."""
    return (f".v{count}" if count > 1 else "") + f".b{bits}"


def braced(first: int, count: int) -> str:
    """The operands `$first...` as a vector of PTX."""
    return f"{{{', '.join(f'${first + number}' for number in range(count))}}}"


def listed(first: int, count: int) -> str:
    """The same; one operand stands alone."""
    return braced(first, count) if count > 1 else f"${first}"
