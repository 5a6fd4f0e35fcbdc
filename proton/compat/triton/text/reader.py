"""A module from a text of Triton's."""

from proton.backends.parsing import NO_FILE, refused
from proton.compat.triton.text.inline import inline_calls
from proton.compat.triton.text.scaled import expand_scaled_products
from proton.compat.triton.text.translator import translated
from proton.dialect.mlir import Location, Module, ir
from proton.dialect.walk import all_ops, source_span
from proton.language.ir_text import IRText
from proton.passes import Upstream

_HINT = "the file has tt.func, so it is read as Triton's: ops are written as Triton prints them"


def module_of(text: IRText) -> Module:
    """The module of a text, not verified. Branches between blocks become those of `scf`, which is
    all that passes know. Functions whose calls are not to stay are taken in by their callers.
    Raises CompilationError with the place of what does not parse."""
    translation = translated(text.text, text.file, text.level)
    try:
        module = ir.Module.parse(translation.text)
    except ir.MLIRError as problem:
        raise refused(problem, text, _HINT, translation.origin) from None
    ops = all_ops(module)
    for op in ops:
        if (place := _place(op.location)) is not None:
            line, column = translation.origin(*place)
            op.location = ir.Location.file(text.file, line, column)
    if any(len(region.blocks) > 1 for op in ops for region in op.regions):
        Upstream("canonicalize,lift-cf-to-scf,canonicalize").run(module)
    inline_calls(module)
    expand_scaled_products(module)
    return module


def _place(location: Location) -> tuple[int, int] | None:
    """Line and column of a location in the translation; None for another one."""
    if not isinstance(location, ir.FileLineColLoc):
        return None
    span = source_span(location)
    return (span.line, span.column + 1) if span.file == NO_FILE else None
