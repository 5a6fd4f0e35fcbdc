"""Gluon, Triton's language of layouts and threads, as far as programs import it.

Kernels in Gluon may be decorated, tuned and passed on. Whatever compiles one is told that they are
not supported. `gluon.language` has the names that are `triton.language`'s, too, which is what
stands outside of kernels: types, constexprs, annotations. What is of one chip (`gluon.amd`,
`gluon.language.nvidia`) is not there.
"""

import ast
import sys
from collections.abc import Callable
from typing import Any

from proton.base.errors import SourceSpan, UnsupportedLanguageConstruct
from proton.compat.triton import gluon_language as language
from proton.language.aggregate import aggregate as aggregate
from proton.language.function import constexpr_function as constexpr_function
from proton.language.function import must_use_result as must_use_result
from proton.runtime.launch.jit import JITFunction

gluon = sys.modules[__name__]  # `from triton.experimental import gluon`


class GluonJITFunction(JITFunction):
    """A kernel in Gluon: it is never compiled."""

    def parse(self) -> ast.FunctionDef:
        """Raises: who compiles begins here."""
        raise UnsupportedLanguageConstruct(
            f"{self.__name__} is a kernel in Gluon, which is not supported",
            SourceSpan(file=self.file, line=self.fn.__code__.co_firstlineno),
            language.HINT,
        )

    def is_gluon(self) -> bool:
        """True if it is in Gluon."""
        return True


class GluonASTSource:
    """What `triton.compile` would take for Gluon: making one is an error."""

    def __init__(self, fn: GluonJITFunction, *args: object, **kwargs: object) -> None:
        fn.parse()


def jit(fn: Callable[..., object] | None = None, **options: Any) -> Any:
    """Marks a kernel in Gluon; it takes the options of `proton.jit`."""
    options.pop("version", None)  # which means nothing in Triton, either

    def decorate(function: Callable[..., Any]) -> GluonJITFunction:
        return GluonJITFunction(function, **options)

    return decorate if fn is None else decorate(fn)
