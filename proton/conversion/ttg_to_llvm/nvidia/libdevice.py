"""Calls of NVIDIA's libdevice, whose bitcode is linked when the code becomes PTX."""

from typing import TYPE_CHECKING, overload

from proton.conversion.ttg_to_llvm.core import values as v
from proton.dialect import isa
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Module, Type, Value, ir, llvm

if TYPE_CHECKING:
    from proton.conversion.ttg_to_llvm.core.lowering import Lowering


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


def symbol_of(name: str, element: Type) -> str:
    """The symbol of a function by C's name for it in double precision."""
    return f"__nv_{name}{'f' if element.width == 32 else ''}"


def call_libdevice(ctx: "Lowering", name: str, result: Type, *operands: Value) -> Value:
    """A call of a libdevice function on scalars."""
    declare(ctx.module, name, result, [operand.type for operand in operands])
    return call(name, result, *operands)
