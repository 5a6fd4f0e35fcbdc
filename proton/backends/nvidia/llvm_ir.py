"""The code of a kernel before the back end of LLVM, as LLVM writes it."""

from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir, translate_to_llvm_ir


def llvm_ir(text: str) -> str:
    """LLVM IR of what is in the `gpu.module` of a module."""
    with mlir_context():
        given, made = ir.Module.parse(text), ir.Module.parse("module {}")
        (inner,) = given.body.operations
        for op in list(inner.operation.regions[0].blocks[0].operations):
            made.body.append(op)
        return translate_to_llvm_ir(made)
