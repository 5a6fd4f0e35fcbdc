"""`proton-opt`: runs passes on IR text, for tests and for finding out what a pass does."""

import contextlib
import dataclasses
import importlib
import inspect
import pkgutil
import re
import sys
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, NoReturn

import typer

from proton import passes
from proton.base.errors import LocatedError, PassError
from proton.base.knobs import knobs
from proton.dialect.context import mlir_context
from proton.dialect.mlir import Context, ir
from proton.dialect.readable import check_readable
from proton.tools.expected import Diagnostic, expectations, mismatches

PASS_PACKAGES = ("proton.transforms", "proton.conversion")
SEPARATOR = "// -----"
_NO_FILE = "-"  # as MLIR names text that is in none


def register_all_passes() -> None:
    """Imports every module of the pass packages: importing one registers its passes."""
    for name in PASS_PACKAGES:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            importlib.import_module(module.name)


@dataclass
class ModuleText:
    """One module of a file; empty lines in front of its text make lines count as in the file."""

    text: str
    diagnostics: list[Diagnostic] = field(default_factory=list)
    output: str | None = None  # None where it failed

    def run(self, steps: list[passes.Pass], *, debug_info: bool) -> None:
        """Parses, runs the passes with a verifier after each, and prints the module."""
        with mlir_context() as context, _collect(context, self.diagnostics):
            try:
                check_readable(self.text, _NO_FILE)
                module = ir.Module.parse(self.text)
                with knobs.scope(verify_each=True):
                    module = passes.Pipeline(steps, label="proton-opt").run(module)
                self.output = module.operation.get_asm(enable_debug_info=debug_info)
            except ir.MLIRError as error:
                self._report(str(error))
            except PassError as error:
                self._report(str(error))
            except LocatedError as error:
                self.diagnostics.append(_from_source(error))

    def _report(self, message: str) -> None:
        """An exception is told only where MLIR has not said what is wrong, with its place."""
        if not any(d.severity == "error" for d in self.diagnostics):
            self.diagnostics.append(Diagnostic(severity="error", message=message))


def _from_source(error: LocatedError) -> Diagnostic:
    span = error.span
    if span is None:
        return Diagnostic(severity="error", message=str(error))
    return Diagnostic(
        severity="error",
        message=error.rule,
        file=span.file,
        line=span.line,
        column=span.column + 1,
    )


@contextlib.contextmanager
def _collect(context: Context, diagnostics: list[Diagnostic]) -> Iterator[None]:
    """Gathers what MLIR reports inside the `with` block instead of printing it."""

    def take(diagnostic: ir.Diagnostic) -> bool:
        diagnostics.append(Diagnostic.from_mlir(diagnostic))
        diagnostics.extend(
            dataclasses.replace(Diagnostic.from_mlir(note), severity="note")
            for note in diagnostic.notes
        )
        return True

    before = context.emit_error_diagnostics
    context.emit_error_diagnostics = True  # else errors go into the exception only
    handler = context.attach_diagnostic_handler(take)
    try:
        yield
    finally:
        handler.detach()
        context.emit_error_diagnostics = before


def split(text: str) -> list[str]:
    """The modules between `// -----` lines, each at the lines it has in the file."""
    pieces: list[list[str]] = [[]]
    for number, line in enumerate(text.splitlines(), 1):
        if line.strip() == SEPARATOR:
            pieces.append([""] * number)
        else:
            pieces[-1].append(line)
    return ["\n".join(lines) + "\n" for lines in pieces if any(line.strip() for line in lines)]


def describe_passes() -> str:
    """Every registered pass with its docstring and its options, in the form of pipeline text."""
    blocks = []
    for name, cls in sorted(passes.REGISTRY.items()):
        lines = [name, *(f"    {line}" for line in (inspect.getdoc(cls) or "").splitlines())]
        for option in dataclasses.fields(cls):  # type: ignore[arg-type]
            shown = option.name.replace("_", "-")
            default = "" if option.default is dataclasses.MISSING else f" = {option.default}"
            type_name = getattr(option.type, "__name__", option.type)
            lines.append(f"    {{{shown}}}: {type_name}{default}")
        blocks.append("\n".join(line.rstrip() for line in lines))
    return "\n\n".join(blocks)


def _read(file: Path | None) -> tuple[str, str]:
    """(text, the name that diagnostics show)"""
    if file is None or str(file) == "-":
        return sys.stdin.read(), "<stdin>"
    try:
        return file.read_text(), str(file)
    except OSError as error:
        _fail(f"cannot read {file}: {error.strerror}")


def _fail(message: str) -> NoReturn:
    print(f"proton-opt: {message}", file=sys.stderr)
    raise typer.Exit(1)


app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="markdown")
Verify = Annotated[
    bool,
    typer.Option(
        "--verify-diagnostics",
        help="Check that exactly the diagnostics are seen that comments such as "
        "'// expected-error@+1 {{text}}' ask for; print no IR.",
    ),
]
Passes = Annotated[
    str,
    typer.Option(
        help="Passes in order, e.g. 'canonicalize,cse'. Names that are not Proton's are "
        "MLIR's own; options go in braces: 'my-pass{size=64 fast=true}'."
    ),
]


@app.command()
def run(
    file: Annotated[
        Path | None, typer.Argument(help="IR text; standard input where it is left out or '-'.")
    ] = None,
    pipeline: Passes = "",
    split_input_file: Annotated[
        bool, typer.Option("--split-input-file", help="Treat text between '// -----' as files.")
    ] = False,
    verify_diagnostics: Verify = False,
    list_passes: Annotated[
        bool, typer.Option("--list", help="Print Proton's passes and their options, then stop.")
    ] = False,
    debuginfo: Annotated[
        bool, typer.Option("--debuginfo", help="Print the locations of ops, too.")
    ] = False,
    output: Annotated[
        Path | None, typer.Option("-o", help="Write there instead of to standard output.")
    ] = None,
) -> None:
    """Runs passes over IR text and prints what they make of it.

    Without --pipeline the text is parsed, verified and printed again. The IR is verified after
    each pass. The exit status is 1 where anything fails; what failed is on standard error.

    Examples:

      proton-opt kernel.mlir --pipeline='canonicalize,cse'

      proton-opt --list

      proton-opt bad.mlir --split-input-file --verify-diagnostics

    A pass that fails in a program leaves its input where PROTON_REPRODUCER_TO says; the first
    line of that file is the proton-opt command that fails in the same way.
    """
    register_all_passes()
    if list_passes:
        print(describe_passes())
        return
    text, name = _read(file)
    pieces = [ModuleText(part) for part in (split(text) if split_input_file else [text])]
    _run(pieces, pipeline, debug_info=debuginfo)
    found = [d for piece in pieces for d in piece.diagnostics]
    if verify_diagnostics:
        problems = mismatches(expectations(text), found, name)
        failed = bool(problems)
    else:
        problems = [diagnostic.render(name) for diagnostic in found]
        failed = any(piece.output is None for piece in pieces)
        _write(output, [piece.output for piece in pieces if piece.output is not None])
    for problem in problems:
        print(problem, file=sys.stderr)
    if failed:
        raise typer.Exit(1)


def _run(pieces: list[ModuleText], pipeline: str, *, debug_info: bool) -> None:
    """Runs the passes on all of them."""
    try:
        steps = passes.parse_pipeline(pipeline)
    except PassError as error:
        _fail(str(error))
    for piece in pieces:
        piece.run(steps, debug_info=debug_info)


def _write(output: Path | None, texts: list[str]) -> None:
    text = f"{SEPARATOR}\n".join(re.sub(r"\n*\Z", "\n", t) for t in texts)
    if output is None:
        sys.stdout.write(text)
    else:
        output.write_text(text)


def main() -> None:
    """The entry point."""
    app(prog_name="proton-opt")


if __name__ == "__main__":
    main()
