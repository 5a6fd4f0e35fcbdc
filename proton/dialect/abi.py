"""The arguments that passes add to a kernel behind the user's, and how they are found again.

`proton.abi` on the kernel lists them by name, in order. The grid loop passes them on. Functions
that a kernel calls get the same ones, which each call passes on; LLVM drops what they do not use.
"""

import enum
from collections.abc import Mapping, Sequence

from proton.dialect.attributes import ABI
from proton.dialect.builtin import strings_attr
from proton.dialect.mlir import Operation, Type, Value, func, ir
from proton.dialect.regions import end_of
from proton.dialect.walk import before, called_functions, ops_named, replace


class AddedArgument(enum.Enum):
    """An argument that a pass adds."""

    PROGRAM_X = "program_x"  # i32
    PROGRAM_Y = "program_y"
    PROGRAM_Z = "program_z"
    GRID_X = "grid_x"  # i32
    GRID_Y = "grid_y"
    GRID_Z = "grid_z"
    STATUS = "status"  # !llvm.ptr to an i64: the number of a failed assertion
    BOUNDS = "bounds"  # !llvm.ptr to the arrays by which accesses are checked (base/bounds.py)
    SCRATCH = "scratch"  # !llvm.ptr to local buffers that are too large for the stack
    TENSOR_MAP = "tensor_map"  # !ttng.tensormap, by value: one for each that the kernel has
    GLOBAL_SCRATCH = "global_scratch"  # !llvm.ptr<1> to memory that all programs share out
    PROFILE = "profile"  # !llvm.ptr to the program's block of the profile buffer; on a GPU to all
    FLUSH = "flush"  # !llvm.ptr to the host function that takes full segments
    SLAB = "slab"  # !llvm.ptr<1> to the slab that chunks are taken from, on a GPU
    LAUNCH = "launch"  # i32: the number of the launch in the slab
    THREAD = "thread"  # i32: which host thread runs the program; only in profiled kernels


def added_arguments(function: Operation) -> list[AddedArgument]:
    """The arguments behind the user's."""
    if ABI not in function.attributes:
        return []
    return [AddedArgument(name.value) for name in function.attributes[ABI]]


def add_argument(function: Operation, kind: AddedArgument, type_: Type) -> Value:
    """Appends an argument to a `func.func`; gives its value."""
    return _add(function, {kind: type_})[0]


def _add(function: Operation, added: Mapping[AddedArgument, Type]) -> list[Value]:
    block = function.regions[0].blocks[0]
    values = [block.add_argument(type_, ir.Location.unknown()) for type_ in added.values()]
    kinds = [*added_arguments(function), *added]
    function.attributes[ABI] = strings_attr(kind.value for kind in kinds)
    update_type(function)
    return values


def pass_arguments(function: Operation, added: Mapping[AddedArgument, Type]) -> None:
    """Appends arguments to a function, and to all that it calls, directly or not: each call passes
    them on."""
    called = called_functions(function)
    for other in (function, *called):
        _add(other, added)
    if not called:
        return
    names = {callee.attributes["sym_name"].value for callee in called}
    for caller in (function, *called):
        for call in ops_named(caller, "func.call"):
            if call.attributes["callee"].value in names:  # no function of C
                passed = [argument(caller, kind) for kind in added]
                replace_call(call, [*call.operands, *passed])


def replace_call(
    call: Operation, operands: Sequence[Value], types: Sequence[Type] | None = None
) -> Operation:
    """Puts a call of the same function with other operands in the place of a call; the results
    are put in the place of the old ones unless `types` says what they are now."""
    results = [result.type for result in call.results] if types is None else list(types)
    with before(call):
        new = func.CallOp(results, call.attributes["callee"], list(operands)).operation
    if types is None:
        replace(call, new.results)
    return new


def argument(function: Operation, kind: AddedArgument) -> Value:
    """The value of an argument that was added; raises ValueError where it was not."""
    added = added_arguments(function)
    arguments = list(function.regions[0].blocks[0].arguments)
    return arguments[len(arguments) - len(added) + added.index(kind)]


def update_type(function: Operation) -> None:
    """Makes a function's type and argument attributes agree with its entry block and its end."""
    inputs = [value.type for value in function.regions[0].blocks[0].arguments]
    results = [value.type for value in end_of(function.regions[0].blocks[0]).operands]
    function.attributes["function_type"] = ir.TypeAttr.get(ir.FunctionType.get(inputs, results))
    old = list(function.attributes["arg_attrs"]) if "arg_attrs" in function.attributes else []
    padding = [ir.DictAttr.get({})] * (len(inputs) - len(old))
    function.attributes["arg_attrs"] = ir.ArrayAttr.get([*old, *padding])
