"""The op of the `tt` dialect that multiplies operands with scales, which Triton's text has.

`proton/triton_text/scaled.py` puts in its place what the language makes of `tl.dot_scaled`, so no
pass meets it.
"""

from typing import Any

from proton.dialect.diagnostics import check_type
from proton.dialect.mlir import AnyType, Operand, Result, ir
from proton.dialect.traits import Multiplies, Pure
from proton.dialect.tt import TT


class DotScaledOp(TT.Operation, name="dot_scaled", traits=[Pure, Multiplies]):
    """`tt.dot_scaled %a, %b, %acc, %a_scale?, %b_scale? {lhs, rhs, lhs_k_pack, rhs_k_pack}`: as
    `tl.dot_scaled`, in formats with these names."""

    a: Operand[AnyType]
    b: Operand[AnyType]
    acc: Operand[AnyType]
    lhs: ir.StringAttr
    rhs: ir.StringAttr
    lhs_k_pack: ir.IntegerAttr
    rhs_k_pack: ir.IntegerAttr
    result: Result[AnyType]
    a_scale: Operand[AnyType] | None = None
    b_scale: Operand[AnyType] | None = None

    @staticmethod
    def verify_invariants(op: Any) -> bool:
        return check_type(op, "result", op.result, op.acc.type)
