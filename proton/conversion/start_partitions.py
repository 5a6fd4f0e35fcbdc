"""Calls of partitions become their beginnings: a function that takes a frame calls the partition.

    call @f(%scheduler, %x, ...)            %frame has %scheduler, %x, ...
                                  becomes   call @proton_partitions_start(%scheduler, @f$, %frame)

The frame is on the stack of the kernel, which is there until all partitions have ended.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.call_graph import callee_name, function_name
from proton.dialect import names_of
from proton.dialect.attributes import PARTITION
from proton.dialect.builtin import i64_attr, integer, string_attr
from proton.dialect.emit import call_c, constant, create
from proton.dialect.memory import byte_pointer, pointer_type
from proton.dialect.mlir import Module, Operation, Type, func, ir, llvm
from proton.dialect.partitions import Runtime
from proton.dialect.walk import before, functions, ops_named
from proton.passes import Pass, register

_SLOT = 8  # bytes of an argument in a frame: numbers and addresses


@register
@dataclass(frozen=True)
class StartPartitions(Pass):
    """Begins partitions where they are called."""

    name: ClassVar[str] = "start-partitions"
    only_for: ClassVar[frozenset[str]] = names_of(func.CallOp)

    def run(self, module: Module) -> None:
        partitions = {function_name(f) for f in functions(module) if PARTITION in f.attributes}
        if not partitions:
            return
        for call in ops_named(module, func.CallOp):
            if callee_name(call) in partitions:
                _start(module, call)


def _start(module: Module, call: Operation) -> None:
    operands, i64 = list(call.operands), integer(64)
    entry = _entry(module, callee_name(call), [value.type for value in operands], call)
    with before(call):
        slots = constant(len(operands), integer(32))
        frame = llvm.AllocaOp(pointer_type(), slots, i64).result
        for number, value in enumerate(operands):
            llvm.StoreOp(value, byte_pointer(frame, number * _SLOT))
        attributes = {"global_name": ir.FlatSymbolRefAttr.get(entry)}
        address = create(llvm.AddressOfOp, pointer_type(), **attributes)
        numbers = [llvm.PtrToIntOp(i64, pointer).result for pointer in (address, frame)]
        call_c(Runtime.START, [operands[0], *numbers], None)
    call.erase()


def _entry(module: Module, callee: str, types: list[Type], call: Operation) -> str:
    name = f"{callee}$"
    with ir.InsertionPoint(module.body), call.location:
        function = ir.Operation.create(
            llvm.LLVMFuncOp.OPERATION_NAME,
            attributes={
                "sym_name": string_attr(name),
                "function_type": ir.TypeAttr.get(ir.Type.parse("!llvm.func<void (ptr)>")),
                "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
                "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
                "visibility_": i64_attr(0),
            },
            regions=1,
        )
        block = ir.Block.create_at_start(function.regions[0], [pointer_type()])
        with ir.InsertionPoint(block):
            frame = block.arguments[0]
            values = [
                llvm.LoadOp(type_, byte_pointer(frame, number * _SLOT)).result
                for number, type_ in enumerate(types)
            ]
            func.CallOp([], ir.FlatSymbolRefAttr.get(callee), values)
            llvm.ReturnOp()
    return name
