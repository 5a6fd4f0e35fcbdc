"""What a kernel tells its author: prints and assertions, by the CUDA runtime's device functions."""

import re

from proton.base.words import index_widths, number_format
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site
from proton.conversion.ttg_to_llvm.nvidia import primitives as nvidia
from proton.conversion.ttg_to_llvm.nvidia.libdevice import call, declare
from proton.conversion.ttg_to_llvm.nvidia.rules import lowers
from proton.dialect import isa, tt
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Type, Value, ir, llvm
from proton.dialect.ttg import is_tensor, layout_of

_ASSERTION = re.compile(
    r"(?P<file>.*):(?P<line>\d+): in (?P<function>[^:]+): (?P<text>.*)", re.DOTALL
)


def _generic() -> Type:
    return v.pointer(0)


def _string(ctx: Lowering, text: str) -> Value:
    """The address of a string constant."""
    data = text.encode() + b"\0"
    globals_ = [op for op in ctx.module.body.operations if isa(op.operation, llvm.GlobalOp)]
    name = f"string_{len(globals_)}"
    type_ = ir.Type.parse(f"!llvm.array<{len(data)} x i8>")
    with ir.InsertionPoint.at_block_begin(ctx.module.body), ir.Location.unknown():
        ir.Operation.create(
            llvm.GlobalOp.OPERATION_NAME,
            attributes={
                "sym_name": string_attr(name),
                "global_type": ir.TypeAttr.get(type_),
                "linkage": ir.Attribute.parse("#llvm.linkage<internal>"),
                "constant": ir.UnitAttr.get(),
                "value": string_attr(data),
                "addr_space": ir.IntegerAttr.get(v.integer(32), 0),
                "visibility_": ir.IntegerAttr.get(v.integer(64), 0),
            },
            regions=1,
        )
    symbol = ir.FlatSymbolRefAttr.get(name)
    return v.create(llvm.AddressOfOp, _generic(), global_name=symbol)


def _print_call(ctx: Lowering, text: str, arguments: list[Value]) -> None:
    """`vprintf`: the arguments lie in a struct in local memory."""
    declare(ctx.module, "vprintf", v.integer(32), [_generic(), _generic()])
    if arguments:
        type_ = v.struct([argument.type for argument in arguments])
        block = ctx.function.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(block):
            space = v.create(llvm.AllocaOp, _generic(), v.i32(1), elem_type=ir.TypeAttr.get(type_))
        for number, argument in enumerate(arguments):
            place = v.create(
                llvm.GEPOp,
                _generic(),
                space,
                rawConstantIndices=ir.DenseI32ArrayAttr.get([0, number]),
                elem_type=ir.TypeAttr.get(type_),
            )
            v.store(place, argument, v.bits_of(argument.type) // 8)
    else:
        space = v.create(llvm.ZeroOp, _generic())
    call("vprintf", v.integer(32), _string(ctx, text), space)


def _promoted(value: Value, signed: bool, hexadecimal: bool) -> tuple[str, Value]:
    """(the format, the value as C's variadic arguments want it)"""
    type_ = value.type
    if v.is_pointer(type_):
        return "0x%016llx", v.create(llvm.PtrToIntOp, v.integer(64), value)
    is_float, bits = isinstance(type_, ir.FloatType), v.bits_of(type_)
    form = number_format(bits, is_float=is_float, is_signed=signed, in_hex=hexadecimal)
    if is_float:
        wide = ir.F64Type.get()
        return form, value if type_ == wide else v.create(llvm.FPExtOp, wide, value)
    target = v.integer(64 if bits > 32 else 32)
    if bits < target.width:
        widens_sign = signed and bits > 1 and not hexadecimal
        value = v.create(llvm.SExtOp if widens_sign else llvm.ZExtOp, target, value)
    return form, value


@lowers(tt.PrintOp)
def _print(ctx: Lowering, site: Site) -> list[Value]:
    """One line per element: `pid (x, y, z) idx (i, j) prefix: value`. What is no block is printed
    by each thread, as in Triton."""
    ids = [nvidia.program_id(axis) for axis in range(3)]
    prefix = site.text("prefix").replace("%", "%%")
    hexadecimal = bool(site.op.attributes["hex"].value)
    signed = list(ir.DenseI32ArrayAttr(site.op.attributes["signed"]))
    if not site.operands:
        _print_call(ctx, f"pid (%u, %u, %u){prefix}\n", ids)
        return []
    for number, (operand, type_) in enumerate(zip(site.operands, site.operand_types, strict=True)):
        which = f"(operand {number}) " if len(site.operands) > 1 else ""
        is_signed = bool(signed[number])
        if not is_tensor(type_):
            form, promoted = _promoted(operand, is_signed, hexadecimal)
            text = f"pid (%u, %u, %u) idx (){prefix}{which}{form}\n"
            _print_call(ctx, text, [*ids, promoted])
            continue
        layout = layout_of(type_)
        rank = len(layout.outs)
        indices = [ctx.threads.indices(layout, axis) for axis in range(rank)]
        places = ", ".join(f"%{width}u" for width in index_widths(type_.shape))

        def every(
            value: Value = operand,
            signed_: bool = is_signed,
            w: str = which,
            indices_: list[Value] = indices,
            places_: str = places,
        ) -> None:
            for register in range(v.count_of(value)):
                form, promoted = _promoted(v.extract(value, register), signed_, hexadecimal)
                text = f"pid (%u, %u, %u) idx ({places_}){prefix}{w}{form}\n"
                where = [v.extract(index, register) for index in indices_]
                _print_call(ctx, text, [*ids, *where, promoted])

        v.when(ctx.threads.owns(layout), every)
    return []


@lowers(tt.AssertOp)
def _assert(ctx: Lowering, site: Site) -> list[Value]:
    """`__assertfail` ends the kernel; the host sees CUDA_ERROR_ASSERT."""
    (condition,) = site.operands
    holds = condition
    if v.is_vector(condition.type):
        holds = v.create(llvm.vector_reduce_and, v.integer(1), condition)
    failed = v.binary(llvm.XOrOp, holds, v.constant(1, v.integer(1)))
    fail_where(ctx, failed, site.text("message"))
    return []


def fail_where(ctx: Lowering, failed: Value, message: str) -> None:
    """`__assertfail` of a message where a condition holds."""
    found = _ASSERTION.fullmatch(message)
    file, line, function, text = found.groups() if found else ("", "0", "", message)
    pointers = [_generic(), _generic(), v.integer(32), _generic(), v.integer(64)]
    declare(ctx.module, "__assertfail", "void", pointers)

    def fail() -> None:
        call(
            "__assertfail",
            None,
            _string(ctx, text),
            _string(ctx, file),
            v.i32(int(line)),
            _string(ctx, function),
            v.constant(1, v.integer(64)),
        )

    v.when(failed, fail)


@lowers(tt.GridDependencyOp)
def _grid_dependency(ctx: Lowering, site: Site) -> list[Value]:
    if ctx.chip.has_dependent_launch:
        nvidia.grid_dependency(site.text("kind"))
    return []


@lowers(tt.SpecialRegisterOp)
def _special_register(ctx: Lowering, site: Site) -> list[Value]:
    return [nvidia.special_register(site.text("register"), int(site.result_type.width))]
