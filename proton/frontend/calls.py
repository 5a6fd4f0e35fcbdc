"""Calls of device functions: compiled in place, or kept as calls of functions of their own.

A `@proton.jit(noinline=True)` function becomes one private `func.func` for each combination of
argument types and constants that it is called with. What it returns may hold values that are
known while compiling; those need no result, only its tensors do.
"""

from dataclasses import dataclass, field
from typing import Any

from proton.dialect.attributes import NOINLINE
from proton.dialect.mlir import Module, func, ir
from proton.frontend import scopes
from proton.frontend.builder import error, to_ir
from proton.frontend.flow import FELL_OFF
from proton.frontend.interface import CodeGenerator, KeptFunctions
from proton.frontend.numbers import is_typed, untyped
from proton.frontend.trees import leaves, parts_of, tensors, with_handles
from proton.language import types as ty
from proton.language.function import DeviceFunction
from proton.language.gluon.types import layout_descriptor_type, shared_memory_descriptor_type
from proton.language.surroundings import describe, is_told_by_text
from proton.language.value import tensor

MAX_CALL_DEPTH = 64


@dataclass
class Function:
    """A compiled callee; `value` is what it returned, with the callee's own tensors in it."""

    name: str
    value: Any


@dataclass
class Functions:
    """The functions of a module that calls are kept to; None stands for one that is open."""

    module: Module
    made: dict[object, Function | None] = field(default_factory=dict)
    kept: list[object] = field(default_factory=list)  # objects whose text may be their address

    def new_name(self, name: str) -> str:
        """A symbol that the module does not have."""
        used = {op.operation.attributes["sym_name"].value for op in self.module.body.operations}
        number = len(used)
        while f"{name}__{number}" in used:
            number += 1
        return f"{name}__{number}"


def call(
    g: CodeGenerator, fn: DeviceFunction, args: object, kwargs: dict[str, object], in_place: bool
) -> object:
    """The value of a call of another device function; `g` is the caller's generator.

    Raises CompilationError for arguments that do not fit and for recursion.
    """
    if g.depth >= MAX_CALL_DEPTH:
        raise error(
            f"calls nest deeper than {MAX_CALL_DEPTH} at {fn.__name__}",
            "recursion is not supported: write it as a loop",
        )
    env = _bind(g, fn, args, kwargs)
    keeps = fn.noinline and not in_place and not any(map(_names_memory, env.values()))
    if keeps and g.functions is not None:
        return _call_function(g, g.functions, fn, env)
    callee = g.callee(fn, env, functions=None if in_place else g.functions)
    return _run(callee, fn)


def _names_memory(value: object) -> bool:
    """Whether a value names shared memory, or a tensor whose map is the kernel's: these are known
    where the call stands, and the function is compiled there."""
    kinds = shared_memory_descriptor_type, layout_descriptor_type
    return any(isinstance(getattr(leaf, "type", None), kinds) for leaf in leaves(value))


def _run(callee: CodeGenerator, fn: DeviceFunction) -> object:
    """Compiles the body; what it returns."""
    outcome = callee.run(fn.parse().body, tail=True)
    scopes.check_closed(callee)
    assert outcome is not None, "the end of a function returns"
    return None if outcome.value is FELL_OFF else outcome.value


def _bind(
    g: CodeGenerator, fn: DeviceFunction, args: Any, kwargs: dict[str, Any]
) -> dict[str, object]:
    """The parameters' values by name."""
    try:
        bound = fn.signature.bind(*args, **kwargs)
    except TypeError as problem:
        raise error(f"{fn.__name__}: {problem}", f"its parameters are {fn.signature}") from None
    bound.apply_defaults()
    env: dict[str, object] = {}
    for name, value in bound.arguments.items():
        parameter = fn.signature.parameters[name]
        if parameter.kind is parameter.VAR_KEYWORD:
            raise g.unsupported(f"**{name} in {fn.__name__}", "name each parameter")
        value = ty.unwrap(value)  # also a run-time value for a constexpr, as in Triton
        env[name] = untyped(value) if name in fn.constexpr_names else value
    return env


# Calls that are kept


def _call_function(
    g: CodeGenerator, functions: KeptFunctions, fn: DeviceFunction, env: dict[str, object]
) -> object:
    made = functions.made
    key = fn, tuple((name, _key(functions, value)) for name, value in env.items())
    if key not in made:
        made[key] = None
        made[key] = _compile(g, functions, fn, env)
    function = made[key]
    if function is None:
        raise error(f"{fn.__name__} calls itself", "recursion is not supported: write it as a loop")
    types = [to_ir(value.type) for value in tensors(function.value)]
    operands = [value.handle for value in tensors(tuple(env.values()))]
    op = func.CallOp(types, ir.FlatSymbolRefAttr.get(function.name), operands)
    return with_handles(function.value, iter(op.operation.results))


def _compile(
    g: CodeGenerator, functions: KeptFunctions, fn: DeviceFunction, env: dict[str, object]
) -> Function:
    """Compiles `fn` as a private function of the module."""
    module, name = functions.module, functions.new_name(fn.__name__)
    inputs = [to_ir(value.type) for value in tensors(tuple(env.values()))]
    location = ir.Location.file(fn.file, fn.parse().lineno, 1)
    with ir.InsertionPoint(module.body), location:
        function = func.FuncOp(name, (inputs, []), visibility="private")
        function.attributes[NOINLINE] = ir.BoolAttr.get(True)
        block = function.add_entry_block([location] * len(inputs))
    arguments = iter(block.arguments)
    own = {parameter: with_handles(value, arguments) for parameter, value in env.items()}
    callee = g.callee(fn, own, functions=functions, own_function=True)
    with ir.InsertionPoint(block), location:
        value = _run(callee, fn)
        results = list(tensors(value))
        func.ReturnOp([result.handle for result in results])
    type_ = ir.FunctionType.get(inputs, [to_ir(result.type) for result in results])
    function.attributes["function_type"] = ir.TypeAttr.get(type_)
    return Function(name, value)


def _key(functions: KeptFunctions, value: Any) -> object:
    """What of an argument the callee's code depends on."""
    if isinstance(value, tensor):
        return tensor, value.type.mangle()
    if parts_of(value) is not None:
        return type(value), tuple(_key(functions, part) for part in parts_of(value) or ())
    if is_typed(value):
        return type(value), value.dtype, repr(value)
    if isinstance(value, float):
        return float, repr(value)  # 0.0 and -0.0 differ
    if is_told_by_text(value):
        functions.kept.append(value)
        return type(value), describe(value)
    return type(value), value
