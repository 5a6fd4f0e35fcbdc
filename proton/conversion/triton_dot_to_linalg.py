"""`tt.dot` on tensors of one type becomes `linalg.matmul`, or `linalg.batch_matmul`."""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import names_of, tt
from proton.dialect.diagnostics import shape_of
from proton.dialect.linalg import batch_matmul, matmul
from proton.dialect.mlir import Module
from proton.dialect.walk import before, ops_named, replace
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class TritonDotToLinalg(Pass):
    """Rewrites the products that `triton-arith-to-linalg` has left."""

    name: ClassVar[str] = "triton-dot-to-linalg"
    only_for: ClassVar[frozenset[str]] = names_of(tt.DotOp)

    def run(self, module: Module) -> None:
        for op in ops_named(module, tt.DotOp):
            product = matmul if len(shape_of(op.results[0])) == 2 else batch_matmul
            with before(op):
                replace(op, [product(*op.operands)])
