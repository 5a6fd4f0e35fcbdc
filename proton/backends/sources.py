"""What compilation begins with: the IR that the front end makes of Python, or that of a file."""

from proton.backends.parsing import parsed
from proton.base.errors import CompilationError, LaunchError
from proton.base.symbols import mangled, written
from proton.base.targets import GPUTarget, Target
from proton.dialect.attributes import (
    ARGUMENT_NAME,
    DIVISIBILITY,
    ELEMENT,
    KERNEL,
    NON_NEGATIVE,
    NUM_WARPS,
    UNSIGNED,
)
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Module, Operation, Value, func, ir
from proton.dialect.walk import functions, kernel_functions, ops_named
from proton.frontend import build_module
from proton.frontend.arguments import argument_type, argument_types
from proton.frontend.builder import to_ir
from proton.frontend.interface import DOT_PRECISION
from proton.language import types as ty
from proton.language.function import DeviceFunction
from proton.language.ir_text import IRArgument, IRText
from proton.language.signature import Signature

FRONT = "ttir"  # the level that the front end makes
POINTER_DIVISOR = 16  # bytes: what is asked of an address


def first_module(
    fn: DeviceFunction,
    signature: Signature,
    text: IRText | None,
    *,
    debug: bool,
    sanitize_overflow: bool,
    dot_precision: str = DOT_PRECISION,
    keep_calls: bool,
    target: Target,
    num_warps: int = 0,
    num_ctas: int = 1,
) -> Module:
    """The module that the passes begin with: that of `text`, if there is one, whose kernel then has
    the name and the arguments of `fn`. Layouts in it must be for `num_warps`, a program's."""
    if text is None:
        return build_module(
            fn,
            signature,
            debug=debug,
            sanitize_overflow=sanitize_overflow,
            dot_precision=dot_precision,
            keep_calls=keep_calls,
            target=target,
            num_warps=num_warps,
            num_ctas=num_ctas,
        )
    module = parsed(text)
    kernel = kernel_of(module, text)
    _check_types(kernel, text, signature)
    if isinstance(target, GPUTarget):  # a CPU loads from anywhere
        _check_facts(kernel, text, signature, of_file=text is fn.ir)
    if not keep_calls and len(functions(module)) > 1:
        raise CompilationError(
            f"PROTON_CHECK_BOUNDS: {text.file} has functions besides its kernel, in which accesses "
            "are not checked",
            hint="leave the variable out, or write the functions in the place of their calls",
        )
    name = fn.name_of(signature)
    name = name if text.level == FRONT else mangled(name)
    kernel.attributes["sym_name"] = string_attr(name)
    if text.level == FRONT:
        _restore_names(module)
    warps = warps_of(module, text)
    if warps not in (0, num_warps):
        raise CompilationError(
            f"{text.file} is for {warps} warps (its attribute {NUM_WARPS}), and num_warps is "
            f"{num_warps}",
            hint=f"launch it with num_warps={warps}",
        )
    return module


def _restore_names(module: Module) -> None:
    """Gives functions that are called the names that they had before the last pass of ttir, which
    comes again."""
    for function in functions(module):
        if KERNEL not in function.attributes:
            name = written(function.attributes["sym_name"].value)
            function.attributes["sym_name"] = string_attr(name)
    for call in ops_named(module, func.CallOp):
        callee = written(call.attributes["callee"].value)
        call.attributes["callee"] = ir.FlatSymbolRefAttr.get(callee)


def kernel_of(module: Module, text: IRText) -> Operation:
    """The kernel of a file: the function with the attribute `tt.kernel`, or the only one."""
    kernels = kernel_functions(module) or functions(module)
    if len(kernels) != 1:
        raise CompilationError(
            f"{text.file} has {len(kernels) or 'no'} functions that may be its kernel, where "
            "one is compiled",
            hint=f"give one func.func the attribute {KERNEL}",
        )
    (kernel,) = kernels
    kernel.attributes[KERNEL] = ir.UnitAttr.get()
    return kernel


def warps_of(module: Module, text: IRText) -> int:
    """For how many warps the layouts of a file are; 0 where it has none."""
    if text.level == FRONT:
        return 0
    if NUM_WARPS not in module.operation.attributes:
        raise CompilationError(
            f"{text.file} does not say for how many warps it is",
            hint=f'write module attributes {{"{NUM_WARPS}" = 4 : i32}}',
        )
    return int(module.operation.attributes[NUM_WARPS].value)


def arguments_of(kernel: Operation, text: IRText) -> dict[str, IRArgument]:
    """The arguments of a file's kernel by name. One without a name that Python has is `arg0` by its
    number."""
    found: dict[str, IRArgument] = {}
    for number, (value, attributes) in enumerate(_with_attributes(kernel)):
        element = attributes[ELEMENT].value if ELEMENT in attributes else None
        type_ = argument_type(value.type, element, unsigned=UNSIGNED in attributes)
        divisor = attributes[DIVISIBILITY].value if DIVISIBILITY in attributes else 1
        name = attributes[ARGUMENT_NAME].value if ARGUMENT_NAME in attributes else ""
        if type_ is None:
            raise CompilationError(
                f"{text.file}: argument {number} of the kernel has type {value.type}"
                f"{f' of {element}' if element else ''}, and no launch can give it one",
                hint="kernels take pointers, tensor descriptors, integers, f32 and f64",
            )
        if type_.is_ptr() and POINTER_DIVISOR % divisor:
            raise CompilationError(
                f"{text.file}: argument {number} of the kernel is a pointer that {divisor} divides",
                hint=f"launches see to {POINTER_DIVISOR} bytes, and to what divides these",
            )
        if not name.isidentifier() or name in found:
            name = f"arg{number}"
        found[name] = IRArgument(type_, divisor, NON_NEGATIVE in attributes)
    return found


def _with_attributes(kernel: Operation) -> list[tuple[Value, ir.DictAttr]]:
    """The arguments of a function, and what is said of each."""
    values = list(kernel.regions[0].blocks[0].arguments)
    attributes = kernel.attributes
    said = list(attributes["arg_attrs"]) if "arg_attrs" in attributes else []
    said += [ir.DictAttr.get({})] * (len(values) - len(said))
    return list(zip(values, said, strict=True))


def _check_types(kernel: Operation, text: IRText, signature: Signature) -> None:
    """Raises CompilationError unless a kernel takes what launches for a signature give: tensor
    descriptors whole, or in parts."""
    whole = argument_types(signature)
    parts = [to_ir(part) for type_ in signature.types.values() for part in ty.parts_of(type_)]
    types = [value.type for value, _ in _with_attributes(kernel)]
    if types not in (whole, parts):
        raise CompilationError(
            f"the kernel of {text.file} takes ({', '.join(map(str, types))}), and the launch gives "
            f"({', '.join(map(str, whole))})",
            hint=f"the launch's arguments are {signature}",
        )


def _check_facts(kernel: Operation, text: IRText, signature: Signature, *, of_file: bool) -> None:
    """Raises LaunchError where a kernel counts on addresses and numbers that are not what a launch
    gives. Numbers of a kernel that is the file's own (`of_file`) are looked at in each launch."""
    parts = [(name, part) for name, of in signature.types.items() for part in ty.parts_of(of)]
    values = _with_attributes(kernel)
    names = [name for name, _ in parts] if len(parts) == len(values) else [*signature.types]
    for name, (_, attributes) in zip(names, values, strict=True):
        type_ = signature.types[name]
        multiple = "lie at a multiple of 16 bytes" if type_.is_ptr() else "be a multiple of 16"
        for attribute, given_, what in (
            (DIVISIBILITY, signature.divisible, multiple),
            (NON_NEGATIVE, signature.non_negative, "be 0 or above"),
        ):
            is_seen = type_.is_ptr() or (type_.is_int() and not of_file)
            if is_seen and attribute in attributes and name not in given_:
                raise LaunchError(
                    f"argument {name} must {what}: {text.file} counts on it ({attribute})"
                )
