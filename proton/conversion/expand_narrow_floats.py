"""bf16 arithmetic, and conversions between floats and others, in ops that every x86 has and LLVM
inlines.

Left to LLVM they become calls of a library that is not there (`__truncdfhf2`, `fmaf16`), or an
instruction that flushes denormals (`vcvtneps2bf16`). Arithmetic on bf16 is done in fp32 and
rounded after each operation, fp16 and bf16 `fma` in fp64, which is rounded to odd on the way
(rounding.py). Conversions to integers saturate, and NaN becomes 0; to 8 bits they give the low byte
of 16. What `arith` leaves open outside of the integer's range would depend on how LLVM vectorises.
"""

import functools
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.conversion.rounding import to_odd_f32
from proton.dialect import by_name, isa, names_of
from proton.dialect.builtin import integer
from proton.dialect.emit import constant, create, intrinsic, remade
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir, math
from proton.dialect.traits import FloatArithmetic, has
from proton.dialect.walk import all_ops, before, replace
from proton.passes import Pass, register

# op -> (the predicate for which it takes the left operand, what it takes of a NaN on the right)
_EXTREMA = by_name(
    {
        arith.MaxNumFOp: (arith.CmpFPredicate.OGT, "left"),
        arith.MinNumFOp: (arith.CmpFPredicate.OLT, "left"),
        arith.MaximumFOp: (arith.CmpFPredicate.UGT, "right"),
        arith.MinimumFOp: (arith.CmpFPredicate.ULT, "right"),
    }
)
_FROM_INTEGER = names_of(arith.SIToFPOp, arith.UIToFPOp)
_TO_INTEGER = by_name({arith.FPToSIOp: "llvm.fptosi.sat", arith.FPToUIOp: "llvm.fptoui.sat"})
NAN_BITS = 0x7FC0  # bf16's quiet NaN


@register
@dataclass(frozen=True)
class ExpandNarrowFloats(Pass):
    """Expands operations on scalars of 16-bit floating point, and conversions to integers."""

    name: ClassVar[str] = "expand-narrow-floats"

    def run(self, module: Module) -> None:
        for op in all_ops(module):
            rule = _rule(op)
            if rule is not None:
                with before(op):
                    replace(op, [rule(op)])


def _rule(op: Operation) -> Callable[[Operation], Value] | None:
    """How to expand an op; None where LLVM does it right."""
    if not op.name.startswith(("arith.", "math.fma")) or not len(op.operands):
        return None
    source, result = op.operands[0].type, op.results[0].type
    if op.name in _TO_INTEGER:
        return _saturated
    if not (_is_narrow(source) or _is_narrow(result)):
        return None
    bf16, f64 = ir.BF16Type.get(), ir.F64Type.get()
    if isa(op, arith.TruncFOp) and (result == bf16 or source == f64) and result.width == 16:
        return lambda op: _truncate(op.operands[0], result)
    if isa(op, math.FmaOp) and isinstance(source, ir.FloatType) and source.width == 16:
        return lambda op: _compute_in(f64, op)
    if source == bf16 and has(op, FloatArithmetic):
        return lambda op: _compute_in(ir.F32Type.get(), op)
    if source == bf16 and op.name in _EXTREMA:
        return _extremum
    if result == bf16 and op.name in _FROM_INTEGER:
        return _from_integer
    return None


@functools.cache  # most values of a kernel have one of a few types
def _is_narrow(type_: Type) -> bool:
    return isinstance(type_, ir.FloatType) and type_.width == 16


def _compute_in(wide: Type, op: Operation) -> Value:
    """The op on operands of a wider type, its result rounded back if it is a narrow float."""
    narrow, result = op.operands[0].type, op.results[0].type
    operands = [arith.ExtFOp(wide, operand).result for operand in op.operands]
    value = remade(op, [wide if result == narrow else result], operands).result
    return _truncate(value, result) if result == narrow else value


def _saturated(op: Operation) -> Value:
    """To an integer: the nearest that the type has, of NaN 0; to 8 bits the low byte of 16."""
    value, type_ = op.operands[0], op.results[0].type
    if _is_narrow(value.type):
        value = arith.ExtFOp(ir.F32Type.get(), value).result
    if type_ == integer(8):
        return arith.TruncIOp(type_, intrinsic(_TO_INTEGER[op.name], integer(16), value)).result
    return intrinsic(_TO_INTEGER[op.name], type_, value)


def _extremum(op: Operation) -> Value:
    """By comparison: LLVM would narrow an fp32 maximum of bf16 values, and round its result."""
    predicate, kept = _EXTREMA[op.name]
    left, right = op.operands
    wide = arith.ExtFOp(ir.F32Type.get(), left).result, arith.ExtFOp(ir.F32Type.get(), right).result
    chosen = arith.SelectOp(arith.CmpFOp(predicate, *wide).result, left, right).result
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, wide[1], wide[1]).result
    return arith.SelectOp(is_nan, left if kept == "left" else right, chosen).result


def _from_integer(op: Operation) -> Value:
    f64 = ir.F64Type.get()
    wide = create(op.name, f64, *op.operands)
    return _truncate(wide, op.results[0].type)


def _truncate(value: Value, type_: Type) -> Value:
    """fp32 or fp64 to bf16 or fp16, to nearest even."""
    if value.type == ir.F64Type.get():
        value = to_odd_f32(value)
    if type_ == ir.BF16Type.get():
        return _to_bf16(value)
    return arith.TruncFOp(type_, value).result


def _to_bf16(value: Value) -> Value:
    """The upper half of the bits, after adding just under half of its last place."""
    i16, i32 = integer(16), integer(32)
    bits = arith.BitcastOp(i32, value).result
    sixteen = constant(16, i32)
    last = arith.AndIOp(arith.ShRUIOp(bits, sixteen).result, constant(1, i32)).result
    carried = arith.AddIOp(bits, arith.AddIOp(last, constant(0x7FFF, i32)).result).result
    upper = arith.TruncIOp(i16, arith.ShRUIOp(carried, sixteen).result).result
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, value, value).result
    kept = arith.SelectOp(is_nan, constant(NAN_BITS, i16), upper).result
    return arith.BitcastOp(ir.BF16Type.get(), kept).result
