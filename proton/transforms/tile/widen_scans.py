"""Scans of fp16 and bf16 combine in fp32: what comes out is rounded once, and not at each step.

tt.scan %x : tensor<64xbf16>   ->   %w = arith.extf %x
                                    %s = tt.scan %w : tensor<64xf32>
                                    arith.truncf %s
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import names_of, tt
from proton.dialect.emit import create, remade
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir
from proton.dialect.walk import before, ops_named, replace
from proton.passes import Pass, register
from proton.transforms.tile.widening import is_narrow, widen


@register
@dataclass(frozen=True)
class WidenScans(Pass):
    """Rewrites each `tt.scan` of narrow floats whose function rounds."""

    name: ClassVar[str] = "widen-scans"
    only_for: ClassVar[frozenset[str]] = names_of(tt.ScanOp)

    def run(self, module: Module) -> None:
        for op in ops_named(module, tt.ScanOp):
            if widen(op):
                _on_wide_blocks(op)


def _on_wide_blocks(op: Operation) -> None:
    """Gives a scan whose function takes fp32 blocks of fp32."""
    with before(op):
        for place, value in enumerate(op.operands):
            if is_narrow(value.type.element_type):
                op.operands[place] = arith.ExtFOp(_wide(value.type), value).result
        types = [result.type for result in op.results]
        again = remade(op, [value.type for value in op.operands], op.operands)
        op.regions[0].blocks[0].append_to(again.regions[0])
        replace(op, [_narrowed(*pair) for pair in zip(again.results, types, strict=True)])


def _wide(type_: Type) -> Type:
    return ir.RankedTensorType.get(type_.shape, ir.F32Type.get(), type_.encoding)


def _narrowed(value: Value, type_: Type) -> Value:
    return value if value.type == type_ else create(arith.TruncFOp, type_, value)
