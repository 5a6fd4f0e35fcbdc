"""Calls of Python that runs while a kernel is compiled, and what it sees of tensors: types."""

import inspect
from typing import Any, NoReturn

from proton.base.words import shown
from proton.frontend.builder import at_compile_time, error
from proton.frontend.numbers import untyped
from proton.frontend.suggestions import instead_of
from proton.language import types as ty
from proton.language.constants import constexpr
from proton.language.descriptor import tensor_descriptor
from proton.language.function import ConstexprFunction
from proton.language.value import tensor


class SeenTensor(tensor):
    """A tensor whose value nobody may ask for."""

    __slots__ = ()

    def _unknown(self, *_: object) -> NoReturn:
        raise TypeError(f"the value of {self!r} is not known while compiling, its type is")

    __bool__ = __int__ = __float__ = __index__ = __len__ = __iter__ = _unknown
    __eq__ = __ne__ = __lt__ = __le__ = __gt__ = __ge__ = _unknown
    __hash__ = tensor.__hash__


class SeenDescriptor(tensor_descriptor):
    """A tensor descriptor, which is no tensor to Python: what its type says."""

    def __init__(self, type: ty.tensor_descriptor_type) -> None:
        self.type, self.block_type = type, type.block_type
        self.block_shape, self.dtype = list(type.block_type.shape), type.block_type.scalar


def _seen(value: Any) -> Any:
    """An argument as such a function gets it."""
    if not isinstance(value, tensor):
        return untyped(value)
    if isinstance(value.type, ty.tensor_descriptor_type):
        return SeenDescriptor(value.type)
    return SeenTensor(value.handle, value.type)


def _call_on_types(function: ConstexprFunction, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """What the function returns; raises CompilationError where that is a tensor."""
    name = function.__name__
    given = {word: _seen(value) for word, value in kwargs.items()}
    found = ty.unwrap(
        at_compile_time(name, "it runs while compiling", function, *map(_seen, args), **given)
    )
    parts = found if isinstance(found, tuple | list) else (found,)
    if any(isinstance(part, SeenTensor | SeenDescriptor) for part in parts):
        raise error(
            f"{name} runs while compiling, and returned {shown(found)}",
            "return what is known then, as a dtype or a shape, or write a @proton.jit function",
        )
    return found


def call_python(function: Any, args: list[Any], kwargs: dict[str, Any]) -> Any:
    """Runs a Python function while compiling; every argument must be known, or the function be a
    `constexpr_function`."""
    if isinstance(function, ConstexprFunction):
        return _call_on_types(function, args, kwargs)
    if function is constexpr and len(args) == 1 and isinstance(args[0], tensor):
        return args[0]  # as an annotation, it means nothing here
    name = getattr(function, "__name__", shown(function))
    is_named_tuple = inspect.isclass(function) and issubclass(function, tuple)
    if not is_named_tuple and any(isinstance(value, tensor) for value in (*args, *kwargs.values())):
        module = getattr(function, "__module__", None) or "it"
        raise error(
            f"{name} of {module} is Python that runs while compiling, and cannot take a tensor",
            instead_of(name) or "use the ops of proton.language, or a @proton.jit function",
        )
    made = (tensor, tensor_descriptor)
    if inspect.isclass(function) and issubclass(function, made):
        raise error(f"a kernel makes no {name} by its class", "use tl.full, tl.zeros or tl.arange")
    if not is_named_tuple:
        args, kwargs = untyped(args), {key: untyped(value) for key, value in kwargs.items()}
    return ty.unwrap(at_compile_time(name, "it runs while compiling", function, *args, **kwargs))
