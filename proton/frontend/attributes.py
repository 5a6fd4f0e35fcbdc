"""Attributes and globals that a kernel names, and what to say of those that are not there."""

import enum
import inspect
import types
from typing import Any

import proton.language as tl
from proton.base.errors import CompilationError
from proton.base.knobs import knobs
from proton.base.words import did_you_mean, shown
from proton.frontend import aggregates, descriptors, shapes
from proton.frontend.builder import as_tensor, at_compile_time, error, is_number
from proton.frontend.gluon import memory
from proton.frontend.interface import CodeGenerator
from proton.frontend.numbers import is_typed
from proton.frontend.operators import OF_TENSORS
from proton.frontend.suggestions import instead_of
from proton.language import profiling
from proton.language import types as ty
from proton.language.aggregate import Aggregate
from proton.language.composite import constexpr_type, tuple_type
from proton.language.function import (
    MARK,
    MEMBERS,
    Builtin,
    BuiltinPython,
    ConstexprFunction,
    DeviceFunction,
    ExternFunction,
    ExternPython,
)
from proton.language.gluon.core import METHODS as MEMORY_METHODS
from proton.language.gluon.core import shared_memory_descriptor
from proton.language.gluon.types import layout_descriptor_type
from proton.language.surroundings import OF_LANGUAGE
from proton.language.value import tensor

BY_PYTHON = "this is known while compiling: Python evaluates it"
PYTHON_BUILTINS: dict[str, object] = {
    fn.__name__: fn
    for fn in (
        *(abs, bool, dict, float, getattr, hasattr, int, isinstance, len, list, max, min, print),
        *(range, repr, reversed, slice, str, sum, tuple, type, zip),
    )
}

OF_LAYOUT = ("layout", "nbytes_per_cta")  # attributes of Gluon's descriptors
TENSOR_ATTRIBUTES = ("shape", "dtype", "type", "numel", "T")
# Modules whose functions are about what is known. As Triton's, the functions say other ones.
_OF_TYPES = tuple(of.__globals__["__name__"] for of in (ty.str_to_ty, ty.unwrap))
_NUMBERS = (ty.constexpr, bool, int, float, str)
_GLOBAL_KINDS = (
    types.ModuleType,
    DeviceFunction,
    ConstexprFunction,
    Builtin,
    ExternFunction,
    ExternPython,
    ty.dtype,
    profiling._HostOp,
)


def check_global(name: str, value: object) -> object:
    """A global that a kernel may read: constexprs, functions, modules, types."""
    if isinstance(value, ty.constexpr):
        return value.value
    if value is None or isinstance(value, _GLOBAL_KINDS) or inspect.isclass(value):
        return value
    if isinstance(value, enum.Enum) or _is_library_dtype(value):
        return value
    if value is PYTHON_BUILTINS.get(name) or isinstance(value, types.BuiltinFunctionType):
        return value
    if isinstance(value, types.FunctionType) and value.__globals__["__name__"] in _OF_TYPES:
        return value  # such as tl.core.get_int_dtype
    kinds = (ty.constexpr, *_GLOBAL_KINDS)
    if isinstance(value, tuple) and all(isinstance(v, kinds) for v in value):
        return tuple(ty.unwrap(v) for v in value)
    if type(value).__module__.startswith(OF_LANGUAGE):
        return value  # such as a layout, which is known while compiling
    if knobs.allow_non_constexpr_globals and not callable(value):
        return value
    if getattr(value, MARK, False):
        return BuiltinPython(value)  # type: ignore[arg-type]  # a function
    if callable(value):
        raise error(
            f"{name} is a plain Python function",
            ("." in name and instead_of(name.rpartition(".")[2]))
            or "decorate it with @proton.jit, or @proton.constexpr_function for constexprs",
        )
    raise error(
        f"the global variable {name} = {shown(value)} is not a constexpr",
        f"write `{name} = tl.constexpr({shown(value)})`, or pass it as a parameter",
    )


def _is_library_dtype(value: object) -> bool:
    """True if a value is a dtype of torch or numpy; neither need be there."""
    return any(kind.__name__ == "dtype" for kind in type(value).__mro__)


def attribute(g: CodeGenerator, owner: object, name: str) -> Any:
    """`owner.name`."""
    if isinstance(owner, tl.tensor_descriptor):
        return _of_descriptor(owner, name)
    if isinstance(owner, shared_memory_descriptor):
        return _of_memory(owner, name)
    if isinstance(owner, Aggregate):
        found, is_method = aggregates.member(owner, name)
        if isinstance(found, property):
            return call_property(g, found, owner)
        return Method(owner, found) if is_method else ty.unwrap(found)
    if isinstance(owner, tensor):
        if name == "T":
            return shapes.transpose(owner)
        if name in TENSOR_ATTRIBUTES:
            return getattr(owner, name)
        if found := MEMBERS.get(name) or OF_TENSORS.get(name):
            return Method(owner, found)
        guess = did_you_mean(name, (*TENSOR_ATTRIBUTES, *MEMBERS))
        raise error(
            f"a tensor has no attribute {name!r}{guess}",
            "it has dtype, type, shape, numel, T, and the methods of tl, such as .to and .sum",
        )
    if name == "value" and isinstance(owner, bool | int | float | str | ty.dtype):
        return owner  # of a constexpr
    if is_number(owner) and not hasattr(owner, name):  # a number is a scalar where one is asked for
        owner = as_tensor(owner)
        return attribute(g, owner, name)
    if not hasattr(owner, name):
        raise _no_attribute(owner, name)
    value = at_compile_time(f"attribute {name!r}", BY_PYTHON, getattr, owner, name)
    if inspect.isclass(owner) and issubclass(owner, Aggregate):
        return ty.unwrap(aggregates.as_called(value))
    if isinstance(value, _NUMBERS) or not isinstance(owner, types.ModuleType):
        return ty.unwrap(value)
    return check_global(f"{owner.__name__.split('.')[-1]}.{name}", value)


def type_of(g: CodeGenerator, owner: Any) -> Any:
    """`.type` of a value. A number is a scalar where it has a name, else a constexpr."""
    if isinstance(owner, tensor) or hasattr(owner, "type"):
        return attribute(g, owner, "type")
    if isinstance(owner, tuple | list):
        types = [type_of(g, value) for value in owner]
        return tuple_type(types, getattr(type(owner), "_fields", None))
    is_constant = owner is None or isinstance(owner, str | ty.dtype) or is_number(owner)
    if is_constant and not is_typed(owner):
        return constexpr_type(owner)
    return attribute(g, owner, "type")


def _of_descriptor(owner: Any, name: str) -> Any:
    """An attribute or a method of a tensor descriptor."""
    if name in OF_LAYOUT and isinstance(owner.type, layout_descriptor_type):
        return getattr(owner.type, name)
    if name in descriptors.ATTRIBUTES:
        return descriptors.ATTRIBUTES[name](owner)
    members = vars(descriptors.class_of(owner))
    function = members.get(name)
    if isinstance(function, Builtin):
        return Method(owner, function)
    names = [n for n, value in members.items() if isinstance(value, Builtin)]
    raise error(
        f"a tensor descriptor has no attribute {name!r}"
        f"{did_you_mean(name, (*names, *descriptors.ATTRIBUTES))}",
        f"it has {', '.join((*descriptors.ATTRIBUTES, *names))}",
    )


def _of_memory(owner: Any, name: str) -> Any:
    """An attribute or a method of shared memory."""
    if name in memory.ATTRIBUTES:
        return memory.ATTRIBUTES[name](owner)
    if name in MEMORY_METHODS:
        return Method(owner, MEMORY_METHODS[name])
    names = (*memory.ATTRIBUTES, *MEMORY_METHODS)
    raise error(
        f"shared memory has no attribute {name!r}{did_you_mean(name, names)}",
        f"it has {', '.join(names)}",
    )


# What to write in the place of a method that changes a list.
_LIST_METHODS = {
    "append": "x = x + (value,)",
    "extend": "x = x + values",
    "insert": "x = x[:i] + (value,) + x[i:]",
    "pop": "x = x[:-1]",
}


def _no_attribute(owner: object, name: str) -> CompilationError:
    if isinstance(owner, types.ModuleType):
        what = f"module {owner.__name__!r} has no name {name!r}{did_you_mean(name, dir(owner))}"
        return error(what, f"see the names that it has with dir({owner.__name__})")
    if isinstance(owner, tuple | list):
        if hasattr(list, name):
            return error(
                f"a list in a kernel is a tuple, and has no method {name!r}",
                f"write {_LIST_METHODS.get(name, 'a new tuple')}",
            )
        fields = getattr(owner, "_fields", ())
        return error(
            f"a {type(owner).__name__} has no field {name!r}{did_you_mean(name, fields)}",
            f"it has {', '.join(fields)}" if fields else "its elements have numbers: x[0]",
        )
    return error(
        f"{shown(owner)} has no attribute {name!r}{did_you_mean(name, dir(owner))}",
        "it is known while compiling: what Python says of it holds",
    )


def call_property(g: CodeGenerator, found: property, owner: Aggregate) -> object:
    """A property of an aggregate: its function, called."""
    function = found.fget
    if isinstance(function, DeviceFunction):
        return g.call(function, [owner], {})
    assert function is not None
    return ty.unwrap(at_compile_time("property", BY_PYTHON, function, owner))


class Method:
    """A tensor's or an aggregate's method, waiting for its call."""

    def __init__(self, owner: object, function: object) -> None:
        self.owner, self.function = owner, function
