"""Adds the function that runs a range of a kernel's programs, one after the other.

`NAME__range(user arguments, i32 grid x, y, z, i64 first, i64 last, extras)` runs programs
[first, last) by linear id (x fastest). It is the only symbol that the object code exports; the
kernel itself becomes internal, and LLVM inlines it, which it may not do with `noinline` functions
that the kernel calls. The extras are, where the kernel has them, the status word, the table of
bounds, the base of the profile buffer, the thread's number, and the host function that takes full
segments (`proton.dialect.abi`).
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect.abi import AddedArgument, added_arguments
from proton.dialect.attributes import SCRATCH_BYTES
from proton.dialect.builtin import integer, string_attr
from proton.dialect.emit import call_c, constant, loop
from proton.dialect.memory import BUFFER_ALIGNMENT, element_pointer, pointer_type
from proton.dialect.mlir import Attribute, Module, Operation, Value, arith, func, ir
from proton.dialect.profile import profile_of
from proton.dialect.walk import called_functions, kernel_functions
from proton.passes import Pass, register

RANGE_SUFFIX = "__range"
PROGRAM_SUFFIX = "__program"
_EXTRAS = (
    AddedArgument.STATUS,
    AddedArgument.BOUNDS,
    AddedArgument.PROFILE,
    AddedArgument.THREAD,
    AddedArgument.FLUSH,
)


@register
@dataclass(frozen=True)
class GridToLoop(Pass):
    """Adds a range function for each kernel."""

    name: ClassVar[str] = "grid-to-loop"

    noalias: bool = False  # mark the user's pointers as not overlapping

    def run(self, module: Module) -> None:
        names = [(f, f.attributes["sym_name"].value) for f in kernel_functions(module)]
        for function, name in names:
            # The user's name may be that of a C function, which LLVM would take the kernel for.
            function.attributes["sym_name"] = string_attr(name + PROGRAM_SUFFIX)
        for function, name in names:
            _add_range(module, function, name, self.noalias)


def extra_arguments(function: Operation) -> list[AddedArgument]:
    """The arguments of the range function behind `last`."""
    return [kind for kind in added_arguments(function) if kind in _EXTRAS]


def _add_range(module: Module, function: Operation, name: str, noalias: bool) -> None:
    added = added_arguments(function)
    arguments = list(function.regions[0].blocks[0].arguments)
    user = [value.type for value in arguments[: len(arguments) - len(added)]]
    i32, i64 = (integer(bits) for bits in (32, 64))
    extras = extra_arguments(function)
    extra_types = [i32 if kind is AddedArgument.THREAD else pointer_type() for kind in extras]
    inputs = [*user, i32, i32, i32, i64, i64, *extra_types]
    with ir.InsertionPoint(module.body), function.location:
        wrapper = func.FuncOp(name + RANGE_SUFFIX, (inputs, []))
        block = wrapper.add_entry_block()
    called = called_functions(function)
    for op in (function, wrapper.operation, *called):
        passthrough: list[str | list[str]] = ["nounwind", ["prefer-vector-width", "512"]]
        if op != wrapper.operation:
            passthrough.append("noinline" if op in called else "alwaysinline")
        op.attributes["llvm.passthrough"] = _strings(passthrough)
    for op in (function, *called):
        op.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")
    _mark_pointers(function, len(user), noalias)
    _mark_pointers(wrapper.operation, len(user), noalias)
    with ir.InsertionPoint(block), function.location:
        _emit_loop(function, name + PROGRAM_SUFFIX, added, list(block.arguments), len(user), extras)


def _strings(values: Sequence[str | list[str]]) -> Attribute:
    return ir.ArrayAttr.get(
        [_strings(v) if isinstance(v, list) else string_attr(v) for v in values]
    )


def _mark_pointers(function: Operation, count: int, noalias: bool) -> None:
    """Pointers carry `llvm.noalias` where the launcher has checked it."""
    arguments = list(function.regions[0].blocks[0].arguments)
    attributes = []
    for position, value in enumerate(arguments):
        is_pointer = position < count and value.type == pointer_type()
        marks = {"llvm.noalias": ir.UnitAttr.get()} if noalias and is_pointer else {}
        attributes.append(ir.DictAttr.get(marks))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get(attributes)


def _emit_loop(
    function: Operation,
    name: str,
    added: list[AddedArgument],
    arguments: list[Value],
    count: int,
    extras: list[AddedArgument],
) -> None:
    user, (grid_x, grid_y, grid_z, first, last) = arguments[:count], arguments[count : count + 5]
    i64 = integer(64)
    values: dict[AddedArgument, Value] = dict(zip(extras, arguments[count + 5 :], strict=True))
    values |= {
        AddedArgument.GRID_X: grid_x,
        AddedArgument.GRID_Y: grid_y,
        AddedArgument.GRID_Z: grid_z,
    }
    scratch = None
    if AddedArgument.SCRATCH in added:
        size = function.attributes[SCRATCH_BYTES].value
        sizes = [constant(BUFFER_ALIGNMENT, i64), constant(size, i64)]
        scratch = call_c("aligned_alloc", sizes, pointer_type())
        values[AddedArgument.SCRATCH] = scratch
    with loop(first, last, constant(1, i64)) as program:
        values |= _program_ids(program, grid_x, grid_y)
        if AddedArgument.PROFILE in values:
            profile = profile_of(function)
            assert profile is not None
            offset = arith.MulIOp(program, constant(profile.block.bytes, i64)).result
            i8 = integer(8)
            values[AddedArgument.PROFILE] = element_pointer(
                values[AddedArgument.PROFILE], offset, i8
            )
        operands = [*user, *(values[kind] for kind in added)]
        func.CallOp([], ir.FlatSymbolRefAttr.get(name), operands)
    if scratch is not None:
        call_c("free", [scratch], None)
    func.ReturnOp([])


def _program_ids(program: Value, grid_x: Value, grid_y: Value) -> dict[AddedArgument, Value]:
    """x, y, z of a linear id, in 32 bits: the launcher checks that the grid fits."""
    i32 = integer(32)
    linear = arith.TruncIOp(i32, program).result
    rows = arith.DivUIOp(linear, grid_x).result
    return {
        AddedArgument.PROGRAM_X: arith.RemUIOp(linear, grid_x).result,
        AddedArgument.PROGRAM_Y: arith.RemUIOp(rows, grid_y).result,
        AddedArgument.PROGRAM_Z: arith.DivUIOp(rows, grid_y).result,
    }
