"""Objects of `@proton.aggregate` classes in a kernel: how they are made, and their attributes."""

import inspect
from typing import Any

from proton.base.words import did_you_mean
from proton.frontend.builder import as_tensor, at_compile_time, error, is_number
from proton.frontend.interface import CodeGenerator
from proton.frontend.rules import rule
from proton.language import aggregate as agg
from proton.language import core
from proton.language.function import Caller, ConstexprFunction, DeviceFunction, ExternPython
from proton.language.value import tensor


def make(
    g: CodeGenerator, caller: Caller, cls: Any, args: list[Any], kwargs: dict[str, Any]
) -> agg.Aggregate:
    """`cls(...)` in a kernel; `caller` calls what an `__init__` in Python calls of the language."""
    init, made, what = agg.constructor(cls), agg.opened(cls), cls.__name__
    hint = f"its fields are {', '.join(cls.fields)}"
    if isinstance(init, DeviceFunction):
        g.call(init, [made, *args], kwargs)
    elif init is not None:
        python = init.fn if isinstance(init, ConstexprFunction) else init
        at_compile_time(what, hint, ExternPython(python).run, caller, [made, *args], kwargs)
    else:
        made.__dict__.update(at_compile_time(what, hint, agg.bound_fields, cls, args, kwargs))
    at_compile_time(what, hint, agg.closed, made)
    return _checked(made)


def _checked(made: Any) -> agg.Aggregate:
    """The object with each field as it is annotated: numbers are tensors where those are meant."""
    cls = type(made)
    for name, value in list(made.__dict__.items()):
        if isinstance(value, tensor) and agg.is_constexpr(cls, name):
            raise error(
                f"{cls.__name__}.{name} is a constexpr, got {value!r}",
                "annotate the field with tl.tensor",
            )
        if is_number(value) and agg.is_annotated(cls, name, tensor):
            made.__dict__[name] = as_tensor(value)
    return made


@rule(core.aggregate_replace)
def _replace(instance: object, **changes: object) -> agg.Aggregate:
    if not isinstance(instance, agg.Aggregate):
        raise error("tl.aggregate_replace takes an aggregate", "decorate its class")
    for name in changes:
        if name not in instance.fields:
            raise _no_attribute(instance, name)
    made = agg.opened(type(instance))
    made.__dict__.update(instance.__dict__ | changes)
    return _checked(agg.closed(made))


def set_field(g: CodeGenerator, owner: object, name: str, value: object) -> None:
    """`self.name = value` in an `__init__`."""
    if g.block_depth > g.first_block_depth or g.loop is not None:
        raise error(
            f"{type(owner).__name__}.{name} is set under a condition, or in a loop",
            "choose the value first, and set the field at the function's own level",
        )
    at_compile_time(f"{name} = ...", "fields are set by __init__", setattr, owner, name, value)


def member(owner: agg.Aggregate, name: str) -> tuple[object, bool]:
    """(what an attribute is, whether it is a method, to be called with the object)."""
    if name in owner.__dict__:
        return owner.__dict__[name], False
    found = inspect.getattr_static(type(owner), name, None)
    if found is None:
        raise _no_attribute(owner, name)
    if isinstance(found, staticmethod):
        return as_called(found.__func__), False
    if inspect.isfunction(found):
        return as_called(found), True
    return found, isinstance(found, DeviceFunction | ConstexprFunction)


def as_called(found: Any) -> Any:
    """A member as a kernel calls it: of Python it calls what this takes, tensors, too."""
    return ExternPython(found) if inspect.isfunction(found) or inspect.ismethod(found) else found


def _no_attribute(owner: agg.Aggregate, name: str) -> Exception:
    names = (*owner.fields, *(n for n in dir(type(owner)) if not n.startswith("_")))
    return error(
        f"{type(owner).__name__} has no attribute {name!r}{did_you_mean(name, names)}",
        f"its fields are {', '.join(owner.fields)}",
    )
