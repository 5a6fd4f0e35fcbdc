"""`memref.copy` becomes `linalg.copy`: the former calls a run-time library that we do not have."""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect.linalg import copy_into
from proton.dialect.mlir import Module, memref
from proton.dialect.walk import before, ops_named
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class MemrefCopyToLinalg(Pass):
    """Rewrites each `memref.copy`."""

    name: ClassVar[str] = "memref-copy-to-linalg"

    def run(self, module: Module) -> None:
        for op in ops_named(module, memref.CopyOp):
            with before(op):
                copy_into(op.operands[0], op.operands[1])
            op.erase()
