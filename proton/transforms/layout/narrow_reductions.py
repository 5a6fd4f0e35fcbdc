"""The largest of fp16 or bf16 numbers is found in fp16 or bf16.

    %w = arith.extf %x : tensor<2048xbf16> to tensor<2048xf32>      %r = tt.reduce %x, maxnumf
    %r = tt.reduce %w, maxnumf                                 =>   %w = arith.extf %r

Widening rounds nothing and keeps the order, so the result is the same. `tl.max` widens bf16, as
Triton's does, where the chip takes the larger of two pairs in one instruction.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of, tt, ttg
from proton.dialect.emit import create, remade
from proton.dialect.mlir import Module, Operation, Type, arith, ir, math
from proton.dialect.walk import all_ops, before, defining_op, ops_named, replace
from proton.passes import Pass, register
from proton.transforms.tile.widening import is_narrow

_EXTREMES = names_of(arith.MaxNumFOp, arith.MinNumFOp, arith.MaximumFOp, arith.MinimumFOp)
# What gives the same, or the same numbers elsewhere, on wide and on narrow numbers.
_BETWEEN = names_of(tt.ReshapeOp, tt.TransOp, ttg.ConvertLayoutOp, math.AbsFOp)


@register
@dataclass(frozen=True)
class NarrowReductions(Pass):
    """Rewrites maxima and minima of what was widened for them alone."""

    name: ClassVar[str] = "tritongpu-narrow-reductions"
    only_for: ClassVar[frozenset[str]] = names_of(tt.ReduceOp)

    def run(self, module: Module) -> None:
        for op in ops_named(module, tt.ReduceOp):
            if (chain := _widened_for(op)) is not None:
                _narrow(op, chain)


def _widened_for(op: Operation) -> list[Operation] | None:
    """The ops that a reduction takes its numbers from, the widening last; None where there is no
    widening, or something else takes what they give."""
    body = [inner.name for inner in all_ops(op)]
    if len(op.operands) != 1 or len(body) != 2 or body[0] not in _EXTREMES:
        return None
    chain: list[Operation] = []
    value = op.operands[0]
    while (source := defining_op(value)) is not None and len(list(value.uses)) == 1:
        chain.append(source)
        if isa(source, arith.ExtFOp):
            return chain if is_narrow(source.operands[0].type.element_type) else None
        if source.name not in _BETWEEN:
            break
        value = source.operands[0]
    return None


def _narrow(op: Operation, chain: list[Operation]) -> None:
    value = chain[-1].operands[0]
    element = value.type.element_type
    with before(op):
        for source in reversed(chain[:-1]):
            value = remade(source, [_of(source.results[0].type, element)], [value]).result
        wide = op.results[0].type
        narrow = remade(op, [_of(wide, element)], [value])
        block = op.regions[0].blocks[0]
        for argument in block.arguments:
            argument.set_type(element)
        for inner in all_ops(op):
            for result in inner.results:
                result.set_type(element)
        block.append_to(narrow.regions[0])
        replace(op, [create(arith.ExtFOp, wide, narrow.result)])
    for source in chain:
        source.erase()


def _of(type_: Type, element: Type) -> Type:
    """A type with another element."""
    if not isinstance(type_, ir.RankedTensorType):
        return element
    return ir.RankedTensorType.get(type_.shape, element, type_.encoding)
