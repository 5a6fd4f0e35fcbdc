"""What types, functions and errors of the language are called where Proton stands for Triton.

torch writes the source of a kernel, and of what it uses, into a file of its own: `from __module__
import __name__` for what says that it is of Triton, and `repr` for types. Of an error of another
process it has the text.
"""

from types import ModuleType

from proton.base.errors import CompilationError
from proton.language.types import dtype

_OURS = "proton.language"
_LANGUAGE, _ERRORS = "triton.language", "triton.compiler.errors"
_PARTS = ("core", "math", "random", "standard", "libdevice", "extra.libdevice")


def name_as_triton(module: ModuleType, name: str) -> None:
    """Has what is defined in a module say that it is of Triton's module `name`."""
    if name == _ERRORS:
        for value in vars(module).values():
            if isinstance(value, type) and issubclass(value, CompilationError):
                value.__module__ = name
        return
    dtype.__repr__ = _as_expression  # type: ignore[method-assign]
    if name == _LANGUAGE:
        name = f"{_LANGUAGE}.core"  # has all that is not named yet
    elif name not in {f"{_LANGUAGE}.{part}" for part in _PARTS}:
        return
    for value in vars(module).values():
        home = getattr(value, "__module__", None)
        is_named = hasattr(value, "__name__") and not isinstance(value, ModuleType)
        if is_named and isinstance(home, str) and home.startswith(_OURS):
            value.__module__ = name


def _as_expression(type_: dtype) -> str:
    """Of a scalar type text that is evaluated where Triton is imported."""
    return f"triton.language.{type_.name}" if type(type_) is dtype else type_.mangle()
