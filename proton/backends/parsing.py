"""A module from the text of a file, in our own syntax or in Triton's."""

from proton.base.errors import CompilationError, ProtonError, SourceSpan
from proton.dialect.mlir import Location, Module, ir
from proton.dialect.readable import check_readable
from proton.dialect.walk import all_ops, source_span
from proton.language.ir_text import IRText
from proton.passes import Upstream
from proton.triton_text import Translation, is_triton, translated
from proton.triton_text.inline import inline_calls
from proton.triton_text.scaled import expand_scaled_products

_NO_FILE = "-"  # what MLIR calls a text that is in none
_SYNTAX = (
    "ops are written as kernel.asm[level] shows them, most of them in MLIR's generic form: "
    '%0 = "tt.get_program_id"() {axis = 0 : i32} : () -> i32'
)
_TRITON = "the file has tt.func, so it is read as Triton's: ops are written as Triton prints them"


def parsed(text: IRText) -> Module:
    """The module of a file, verified; its ops have their place in it, unless the text says another.
    Raises CompilationError with the place of what does not parse."""
    check_readable(text.text, text.file)
    module = _translated(text) if is_triton(text.text) else _ours(text)
    expand_scaled_products(module)
    return module


def _ours(text: IRText) -> Module:
    try:
        if _is_there(text):
            return ir.Module.parseFile(text.file)
        return ir.Module.parse(text.text)  # whose places have no file
    except ir.MLIRError as problem:
        raise _refused(problem, text, None) from None


def _is_there(text: IRText) -> bool:
    """Whether a file is still what was read."""
    try:
        return IRText.read(text.file) == text
    except ProtonError:
        return False


def _translated(text: IRText) -> Module:
    """The module of Triton's text. Branches between blocks become those of `scf`, which is all that
    passes know, and functions whose calls are not to stay are taken in by their callers."""
    translation = translated(text.text, text.file, text.level)
    try:
        module = ir.Module.parse(translation.text)
    except ir.MLIRError as problem:
        raise _refused(problem, text, translation) from None
    ops = all_ops(module)
    for op in ops:
        if (place := _place(op.location)) is not None:
            line, column = translation.origin(*place)
            op.location = ir.Location.file(text.file, line, column)
    if any(len(region.blocks) > 1 for op in ops for region in op.regions):
        Upstream("canonicalize,lift-cf-to-scf,canonicalize").run(module)
    inline_calls(module)
    return module


def _place(location: Location) -> tuple[int, int] | None:
    """Line and column of a location in the translation; None for another one."""
    if not isinstance(location, ir.FileLineColLoc):
        return None
    span = source_span(location)
    return (span.line, span.column + 1) if span.file == _NO_FILE else None


def _refused(
    problem: ir.MLIRError, text: IRText, translation: Translation | None
) -> CompilationError:
    first = problem.error_diagnostics[0]
    # Diagnostics do not say of which class their location is.
    place = source_span(ir.Location.from_attr(first.location.attr, first.location.context))
    notes = [f" ({note.message})" for note in first.notes if note.message]
    rule, hint = f"{first.message}{''.join(notes)}", _TRITON if translation else _SYNTAX
    if place.file not in (_NO_FILE, text.file):  # where the op's text says that it is from
        return CompilationError(f"{rule}, in {text.file}", place, hint)
    line, column = place.line, place.column
    if translation is not None:
        line, column = translation.origin(line, column + 1)
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
