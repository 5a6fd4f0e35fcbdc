"""What programs import from `triton.compiler.code_generator`: errors of kernels, and the class that
compiles a function's body."""

import importlib
from typing import Any

from proton.base import errors
from proton.base.errors import CompilationError as CompilationError
from proton.base.errors import CompileTimeAssertionFailure as CompileTimeAssertionFailure
from proton.base.errors import UnsupportedLanguageConstruct as UnsupportedLanguageConstruct


def __getattr__(name: str) -> Any:
    if name == "CodeGenerator":  # with MLIR, which who asks for errors does not need
        return importlib.import_module("proton.frontend.codegen").Generator
    try:
        return getattr(errors, name)
    except AttributeError:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}") from None
