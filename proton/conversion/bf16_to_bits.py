"""bf16 becomes its bits, `i16`, wherever it is only moved, chosen or widened.

x86 has no registers for single bf16 numbers: where one goes from block to block, LLVM keeps it
as fp32 and narrows it again, by an instruction that flushes denormals (`vcvtneps2bf16`) where
there is one. Bits stay what they are; to widen them is to append 16 zeros. What computes with
bf16 has been expanded before (expand-narrow-floats); what is left of that, such as atomics,
takes and gives numbers by `arith.bitcast`.
"""

import functools
import struct
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import OpRules, names_of
from proton.dialect.abi import update_type
from proton.dialect.attributes import NOINLINE
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import element_of
from proton.dialect.emit import constant
from proton.dialect.mlir import Module, Operation, OpView, Type, Value, ir
from proton.dialect.upstream import arith, builtin, func, llvm, math, memref, scf
from proton.dialect.walk import all_ops, before, functions, replace
from proton.passes import Pass, register

_RULES = OpRules[Callable[[Operation], Value]]()
_MOVES_BITS = names_of(
    *(arith.SelectOp, builtin.UnrealizedConversionCastOp, llvm.LoadOp, llvm.StoreOp),
    *(func.CallOp, func.ReturnOp, memref.AllocaOp, memref.CastOp, memref.CollapseShapeOp),
    *(memref.ExpandShapeOp, memref.LoadOp, memref.PrefetchOp, memref.ReinterpretCastOp),
    *(memref.ExtractAlignedPointerAsIndexOp, memref.ExtractStridedMetadataOp),
    *(memref.StoreOp, memref.SubViewOp),
    *(scf.ConditionOp, scf.ForOp, scf.IfOp, scf.WhileOp, scf.YieldOp),
)


@register
@dataclass(frozen=True)
class BF16ToBits(Pass):
    """Turns bf16 into i16."""

    name: ClassVar[str] = "bf16-to-bits"

    def run(self, module: Module) -> None:
        for function in functions(module):
            _convert(function)


def _convert(function: Operation) -> None:
    ops = all_ops(function)
    if not any(map(_gives_bf16, (function, *ops))):
        return
    ops = [op for op in ops if _touches_bf16(op)]
    # What to do is known by the types that are about to change.
    rules = [_RULES.get(op.name) for op in ops]
    computes = [op.name not in _MOVES_BITS and op.name not in _RULES for op in ops]
    results = [[_is_bf16(result.type) for result in op.results] for op in ops]
    operands = [[_is_bf16(value.type) for value in op.operands] for op in ops]
    for op, is_computed in zip(ops, computes, strict=True):
        values = list(op.results) if not is_computed else []
        values += [a for region in op.regions for block in region.blocks for a in block.arguments]
        for value in values:
            value.set_type(_bits(value.type))
    if NOINLINE in function.attributes:
        for argument in function.regions[0].blocks[0].arguments:
            argument.set_type(_bits(argument.type))
    for op, rule, is_computed, gives, takes in zip(
        ops, rules, computes, results, operands, strict=True
    ):
        if is_computed:
            _compute(op, gives, takes)
        elif rule is not None:
            with before(op):
                replace(op, [rule(op)])
    if NOINLINE in function.attributes:
        update_type(function)


def _gives_bf16(op: Operation) -> bool:
    """True if a result, or an argument of a block of its regions, is bf16."""
    arguments = (a for region in op.regions for block in region.blocks for a in block.arguments)
    return any(_is_bf16(value.type) for value in (*op.results, *arguments))


def _touches_bf16(op: Operation) -> bool:
    return _gives_bf16(op) or any(_is_bf16(value.type) for value in op.operands)


@functools.cache  # most values of a kernel have one of a few types
def _is_bf16(type_: Type) -> bool:
    if isinstance(type_, ir.MemRefType | ir.VectorType):
        type_ = type_.element_type
    return isinstance(type_, ir.BF16Type)


def _bits(type_: Type) -> Type:
    """The type with i16 in the place of bf16."""
    if not _is_bf16(type_):
        return type_
    i16 = integer(16)
    if isinstance(type_, ir.MemRefType):
        return ir.MemRefType.get(type_.shape, i16, type_.layout, type_.memory_space)
    return ir.VectorType.get(type_.shape, i16) if isinstance(type_, ir.VectorType) else i16


def _number(type_: Type) -> Type:
    """The type with bf16 in the place of i16."""
    bf16 = ir.BF16Type.get()
    return ir.VectorType.get(type_.shape, bf16) if isinstance(type_, ir.VectorType) else bf16


def _compute(op: Operation, gives: list[bool], takes: list[bool]) -> None:
    """Keeps an op as it is, between bitcasts."""
    with before(op):
        for place, (value, is_number) in enumerate(zip(op.operands, takes, strict=True)):
            if is_number:
                op.operands[place] = arith.BitcastOp(_number(value.type), value).result
    with ir.InsertionPoint(op), op.location:
        for result, is_number in zip(op.results, gives, strict=True):
            if is_number:
                cast = arith.BitcastOp(_bits(result.type), result)
                cast.operation.move_after(op)
                result.replace_all_uses_except(cast.result, cast.operation)


@_RULES.of(arith.ConstantOp)
def _constant(op: Operation) -> Value:
    (bits,) = struct.unpack(">I", struct.pack(">f", ir.FloatAttr(op.attributes["value"]).value))
    upper = bits >> 16
    return constant(upper - (1 << 16) if upper >> 15 else upper, integer(16))


@_RULES.of(arith.ExtFOp)
def _widen(op: Operation) -> Value:
    i32, f32 = integer(32), ir.F32Type.get()
    bits = arith.ExtUIOp(i32, op.operands[0]).result
    value = arith.BitcastOp(f32, arith.ShLIOp(bits, constant(16, i32)).result).result
    wide = op.results[0].type
    return value if wide == f32 else arith.ExtFOp(wide, value).result


@_RULES.of(arith.BitcastOp)
def _reinterpret(op: Operation) -> Value:
    value, wanted = op.operands[0], op.results[0].type  # the other side may be fp16
    return value if value.type == wanted else arith.BitcastOp(wanted, value).result


def _sign(emit: type[OpView], mask: int) -> Callable[[Operation], Value]:
    """A rule that changes the sign."""

    def rule(op: Operation) -> Value:
        i16 = element_of(op.operands[0])
        return emit(op.operands[0], constant(mask, i16)).result

    return rule


_RULES.of(arith.NegFOp)(_sign(arith.XOrIOp, -(1 << 15)))
_RULES.of(math.AbsFOp)(_sign(arith.AndIOp, 32767))
