"""Calls of NVIDIA's libdevice, whose bitcode is linked when the code becomes PTX."""

from typing import overload

from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.elementwise import scalar_type
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, llvm_type
from proton.conversion.ttg_to_llvm.nvidia.rules import lowers
from proton.dialect import isa, tt
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Module, Type, Value, ir, llvm


def declare(module: Module, name: str, result: str | Type, arguments: list[Type]) -> None:
    """Declares an external function once in a module."""
    for op in module.body.operations:
        if isa(op.operation, llvm.LLVMFuncOp) and op.operation.attributes["sym_name"].value == name:
            return
    listed = ", ".join(map(str, arguments))
    type_ = ir.Type.parse(f"!llvm.func<{result} ({listed})>")
    with ir.InsertionPoint.at_block_begin(module.body), ir.Location.unknown():
        ir.Operation.create(
            llvm.LLVMFuncOp.OPERATION_NAME,
            attributes={
                "sym_name": string_attr(name),
                "function_type": ir.TypeAttr.get(type_),
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
                "visibility_": ir.IntegerAttr.get(v.integer(64), 0),
            },
            regions=1,
        )


@overload
def call(name: str, result: Type, *operands: Value) -> Value: ...
@overload
def call(name: str, result: None, *operands: Value) -> None: ...
def call(name: str, result: Type | None, *operands: Value) -> Value | None:
    """Calls an LLVM function by name; None where `result` is None."""
    op = ir.Operation.create(
        llvm.CallOp.OPERATION_NAME,
        results=[] if result is None else [result],
        operands=list(operands),
        attributes={
            "callee": ir.FlatSymbolRefAttr.get(name),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(operands), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )
    return None if result is None else op.result


def function(module: Module, name: str, *scalars: Value) -> Value:
    """A function by C's name for it in double precision."""
    type_ = scalars[0].type
    return _called(module, f"__nv_{name}{'f' if type_.width == 32 else ''}", type_, *scalars)


@lowers(tt.ExternElementwiseOp)
def _extern(ctx: Lowering, site: Site) -> list[Value]:
    symbol, result = site.text("symbol"), llvm_type(scalar_type(site.result_type))

    def one(*scalars: Value) -> Value:
        return _called(ctx.module, symbol, result, *scalars)

    operands = site.operands
    if v.is_vector(operands[0].type):
        columns = zip(*map(v.to_elements, operands), strict=True)
        return [v.from_elements([one(*column) for column in columns])]
    return [one(*operands)]


def _called(module: Module, symbol: str, result: Type, *operands: Value) -> Value:
    declare(module, symbol, result, [operand.type for operand in operands])
    return call(symbol, result, *operands)
