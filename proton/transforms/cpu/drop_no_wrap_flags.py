"""Takes the promises that nothing wraps around off the address arithmetic.

Upstream's lowerings of `memref` and `affine` mark offsets `nsw nuw` and addresses
`inbounds|nuw`: a memref has no negative strides, and a view lies inside of its memory. A block
of a kernel may run backwards, and may begin before its array where it is masked; with those
marks LLVM may take such an address for anything. Nothing of ours sets any, so all of them go.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import names_of
from proton.dialect.emit import remade
from proton.dialect.mlir import Module, Operation, llvm
from proton.dialect.walk import all_ops, before, replace
from proton.passes import Pass, register

# They may say nsw, nuw or inbounds, and are poison where that is not so.
_FLAGGED = names_of(llvm.AddOp, llvm.SubOp, llvm.MulOp, llvm.ShlOp, llvm.TruncOp, llvm.GEPOp)


@register
@dataclass(frozen=True)
class DropNoWrapFlags(Pass):
    """Makes integer and address arithmetic of the `llvm` dialect wrap around."""

    name: ClassVar[str] = "drop-no-wrap-flags"

    def run(self, module: Module) -> None:
        for op in all_ops(module):
            if op.name in _FLAGGED:
                _recreate(op)


def _recreate(op: Operation) -> None:
    """The same op anew: the bindings neither show nor change these flags, and leave them out."""
    with before(op):
        replace(op, [remade(op, [op.results[0].type], op.operands).result])
