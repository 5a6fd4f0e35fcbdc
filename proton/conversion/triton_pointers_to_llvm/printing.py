"""The rule of `tt.print` in `triton-pointers-to-llvm`: a call of C's `printf` for each element.

A line is `pid (x, y, z) idx (i, j) prefix: value`, as Triton has it.
"""

import functools
from collections.abc import Callable

from proton.base.words import index_widths, number_format
from proton.dialect.builtin import i32_attr, i64_attr, integer, string_attr
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import call_c, create, for_each_element, module_block, symbol
from proton.dialect.memory import pointer_type
from proton.dialect.mlir import Operation, Type, Value, arith, ir, llvm, tensor


def lower_print(op: Operation, program: list[Value], addresses: list[bool]) -> None:
    """Replaces a `tt.print`; `program` are the program's three indices, i32, and `addresses` tells
    which operands were pointers. The insertion point is before the op.
    """
    prefix = op.attributes["prefix"].value.replace("%", "%%")
    in_hex, signed = bool(op.attributes["hex"].value), list(op.attributes["signed"])
    operands = list(op.operands)
    if not operands:
        _printf(f"pid (%u, %u, %u){prefix}\n", program)
    for number, value in enumerate(operands):
        which = f"(operand {number}) " if len(operands) > 1 else ""
        head = f"{prefix}{which}"
        if addresses[number]:
            show = _address
        else:
            show = functools.partial(_promoted, signed=bool(signed[number]), in_hex=in_hex)
        for_each_element(shape_of(value), functools.partial(_line, value, head, program, show))
    # Python has its own buffer: what C holds back would come out after what Python prints next.
    everything = create(llvm.ZeroOp, pointer_type())
    call_c("fflush", [everything], integer(32))
    op.erase()


def _line(
    value: Value,
    head: str,
    program: list[Value],
    show: Callable[[Value], tuple[str, Value]],
    indices: list[Value],
) -> None:
    """Prints one element; `show` gives how it looks in the format, and what to pass for it."""
    form, shown = show(tensor.ExtractOp(value, indices).result if indices else value)
    i32 = integer(32)
    at = [arith.IndexCastOp(i32, index).result for index in indices]
    places = ", ".join(f"%{width}u" for width in index_widths(shape_of(value)))
    _printf(f"pid (%u, %u, %u) idx ({places}){head}{form}\n", [*program, *at, shown])


def _address(value: Value) -> tuple[str, Value]:
    i64 = integer(64)
    is_pointer = value.type == pointer_type()
    return "0x%016llx", llvm.PtrToIntOp(i64, value).result if is_pointer else value


def _promoted(value: Value, signed: bool, in_hex: bool) -> tuple[str, Value]:
    """The value as C's variadic arguments want it."""
    type_ = element_of(value)
    is_float, bits = isinstance(type_, ir.FloatType), type_.width
    form = number_format(bits, is_float=is_float, is_signed=signed, in_hex=in_hex)
    if is_float:
        f64 = ir.F64Type.get()
        return form, value if type_ == f64 else arith.ExtFOp(f64, value).result
    target = integer(64 if bits > 32 else 32)
    if bits < target.width:
        extend = arith.ExtSIOp if signed and not in_hex else arith.ExtUIOp
        value = extend(target, value).result
    return form, value


def _printf(text: str, values: list[Value]) -> None:
    """A call of `printf`, which is declared on first use."""
    type_ = ir.Type.parse("!llvm.func<i32 (ptr, ...)>")
    if symbol("printf") is None:
        _declare_printf(type_)
    ir.Operation.create(
        llvm.CallOp.OPERATION_NAME,
        results=[integer(32)],
        operands=[_string(text), *values],
        attributes={
            "callee": ir.FlatSymbolRefAttr.get("printf"),
            "var_callee_type": ir.TypeAttr.get(type_),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1 + len(values), 0]),
            "op_bundle_sizes": ir.DenseI32ArrayAttr.get([]),
        },
    )


def _declare_printf(type_: Type) -> None:
    with ir.InsertionPoint.at_block_begin(module_block()), ir.Location.unknown():
        ir.Operation.create(
            llvm.LLVMFuncOp.OPERATION_NAME,
            attributes={
                "sym_name": string_attr("printf"),
                "function_type": ir.TypeAttr.get(type_),
                "linkage": ir.Attribute.parse("#llvm.linkage<external>"),
                "CConv": ir.Attribute.parse("#llvm.cconv<ccc>"),
                "visibility_": i64_attr(0),
            },
            regions=1,
        )


def _string(text: str) -> Value:
    """The address of a string constant of the module."""
    data = text.encode() + b"\0"
    number = 0
    while symbol(f"text_{number}") is not None:
        number += 1
    name = f"text_{number}"
    with ir.InsertionPoint.at_block_begin(module_block()), ir.Location.unknown():
        ir.Operation.create(
            llvm.GlobalOp.OPERATION_NAME,
            attributes={
                "sym_name": string_attr(name),
                "global_type": ir.TypeAttr.get(ir.Type.parse(f"!llvm.array<{len(data)} x i8>")),
                "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
                "constant": ir.UnitAttr.get(),
                "value": string_attr(data),
                "addr_space": i32_attr(0),
                "visibility_": i64_attr(0),
            },
            regions=1,
        )
    attributes = {"global_name": ir.FlatSymbolRefAttr.get(name)}
    return create(llvm.AddressOfOp, pointer_type(), **attributes)
