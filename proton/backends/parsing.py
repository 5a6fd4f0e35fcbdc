"""A module from the text of a file, in our own syntax or in Triton's."""

import importlib
from collections.abc import Callable

from proton.base.errors import CompilationError, ProtonError, SourceSpan
from proton.dialect.mlir import Module, ir
from proton.dialect.readable import check_readable
from proton.dialect.walk import source_span
from proton.language.ir_text import IRText

NO_FILE = "-"  # what MLIR calls a text that is in none
_SYNTAX = (
    "ops are written as kernel.asm[level] shows them, most of them in MLIR's generic form: "
    '%0 = "tt.get_program_id"() {axis = 0 : i32} : () -> i32'
)
_TRITON = "proton.compat.triton.text.reader"  # is not in every install


def parsed(text: IRText) -> Module:
    """The module of a file, verified; its ops have their place in it, unless the text says another.
    Raises CompilationError with the place of what does not parse."""
    check_readable(text.text, text.file)
    if not text.is_triton:
        return _ours(text)
    module: Module = importlib.import_module(_TRITON).module_of(text)
    return module


def _ours(text: IRText) -> Module:
    try:
        if _is_there(text):
            return ir.Module.parseFile(text.file)
        return ir.Module.parse(text.text)  # whose places have no file
    except ir.MLIRError as problem:
        raise refused(problem, text, _SYNTAX) from None


def _is_there(text: IRText) -> bool:
    """True if a file is still what was read."""
    try:
        return IRText.read(text.file) == text
    except ProtonError:
        return False


def refused(
    problem: ir.MLIRError,
    text: IRText,
    hint: str,
    origin: Callable[[int, int], tuple[int, int]] | None = None,
) -> CompilationError:
    """What MLIR says of a text, as an error with the place in the text. `origin`: the line and
    column in the text of those that MLIR has read."""
    first = problem.error_diagnostics[0]
    # Diagnostics do not say of which class their location is.
    place = source_span(ir.Location.from_attr(first.location.attr, first.location.context))
    notes = [f" ({note.message})" for note in first.notes if note.message]
    rule = f"{first.message}{''.join(notes)}"
    if place.file not in (NO_FILE, text.file):  # where the op's text says that it is from
        return CompilationError(f"{rule}, in {text.file}", place, hint)
    line, column = place.line, place.column
    if origin is not None:
        line, column = origin(line, column + 1)
        column -= 1
    span = SourceSpan(
        file=text.file,
        line=line,
        column=column,
        end_line=line,
        end_column=column + 1,
        lines=text.text.splitlines(),
    )
    return CompilationError(rule, span, hint)
