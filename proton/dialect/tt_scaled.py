"""Ops of the `tt` dialect on numbers of narrow formats, which Triton's text has.

`proton/compat/triton/text/scaled.py` puts in their place what the language makes of
`tl.dot_scaled`, so no pass meets them.
"""

from proton.dialect.diagnostics import check_type, element_of, reject, shape_of
from proton.dialect.mlir import AnyType, Operand, OpView, Result, ir
from proton.dialect.traits import Multiplies, Pure
from proton.dialect.tt_core import TT


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
    def verify_invariants(op: OpView) -> bool:
        return check_type(op, "result", op.result, op.acc.type)


class Fp4ToFpOp(TT.Operation, name="fp4_to_fp", traits=[Pure]):
    """`tt.fp4_to_fp %src {axis}`: two numbers of E2M1 in each byte, along an axis, as bf16 or
    fp16."""

    src: Operand[AnyType]
    axis: ir.IntegerAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: OpView) -> bool:
        shape, axis = list(shape_of(op.src)), op.axis.value
        if not 0 <= axis < len(shape):
            return reject(op, f"axis must lie in [0, {len(shape)}), got {axis}")
        shape[axis] *= 2
        is_there = str(element_of(op.src)) == "i8" and str(element_of(op.result)) in ("f16", "bf16")
        return (is_there and shape == list(shape_of(op.result))) or reject(
            op, f"bytes of {op.src.type} give {shape} numbers of fp16 or bf16, not {op.result.type}"
        )
