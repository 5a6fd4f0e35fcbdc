"""Kernels with explicit layouts: `@gluon.jit`, written in `gluon.language`.

    from proton import gluon
    from proton.gluon import language as gl

    @gluon.jit
    def copy(x, y, n, BLOCK: gl.constexpr, layout: gl.constexpr):
        offsets = gl.program_id(0) * BLOCK + gl.arange(0, BLOCK, layout=layout)
        gl.store(y + offsets, gl.load(x + offsets, offsets < n), offsets < n)

Names and meanings are those of Triton's `triton.experimental.gluon`.
"""

import sys
from collections.abc import Callable
from typing import Any, ClassVar

from proton.compiler import ASTSource
from proton.gluon import nvidia as nvidia
from proton.language import gluon as language
from proton.language.aggregate import aggregate as aggregate
from proton.language.function import constexpr_function as constexpr_function
from proton.language.function import must_use_result as must_use_result
from proton.language.gluon import amd as amd
from proton.runtime.launch.jit import JITFunction

# The language is `proton.language.gluon`, and has this name, too, with all that is in it.
_HOME, _OTHER = language.__name__, f"{__name__}.language"
for _name, _module in list(sys.modules.items()):
    if _name == _HOME or _name.startswith(f"{_HOME}."):
        sys.modules[_OTHER + _name.removeprefix(_HOME)] = _module

__all__ = ["GluonASTSource", "GluonJITFunction", "jit", "language"]


class GluonASTSource(ASTSource):
    """A kernel in Gluon and what it is compiled for, where nothing is launched that says it."""

    ext = "ttir"  # the level that the front end makes


class GluonJITFunction(JITFunction):
    """A kernel in Gluon."""

    has_layouts = True
    ASTSource: ClassVar = GluonASTSource

    def is_gluon(self) -> bool:
        """True: its tensors have layouts."""
        return True


def jit(fn: Callable[..., object] | None = None, **options: Any) -> Any:
    """Marks a kernel in Gluon; it takes the options of `proton.jit`."""
    options.pop("version", None)  # which means nothing in Triton, either

    def decorate(function: Callable[..., Any]) -> GluonJITFunction:
        return GluonJITFunction(function, **options)

    return decorate if fn is None else decorate(fn)
