"""`python -m proton script.py`: profiles a program as it is.

The run ends when the program has: after its last thread that is no daemon, and after what it does
`atexit`. Exit status: the program's own; 2 for bad usage of these options.
"""

import atexit
import concurrent.futures.thread  # noqa: F401  # tables do when the program has ended: too late
import enum
import importlib.util
import inspect
import os
import runpy
import sys
from collections.abc import Callable, Sequence
from dataclasses import Field, fields
from pathlib import Path
from types import TracebackType
from typing import Annotated, Any

import typer
from rich.console import Console
from rich.markup import escape

import proton
from proton.base.errors import ProfileError, ProtonError, reason
from proton.base.knobs import knobs
from proton.base.packages import MissingPackage
from proton.base.text import printable
from proton.language.profiling import check_text
from proton.trace import archive
from proton.trace.instrumentation import SessionOptions, option_of
from proton.trace.model import RawRun
from proton.trace.monitor_options import MonitorOptions

try:
    from proton.runtime.session import open_sessions
except MissingPackage as problem:  # where only runs are read
    sys.exit(f"proton: {problem}")

FAILED, INTERRUPTED = 1, 130
NAMES = {"folder": "monitor"}  # options that have another name in a command
_SESSION = {of.name for of in fields(SessionOptions)}
OF_MONITOR = {of.name: of.default for of in fields(MonitorOptions) if of.name not in _SESSION}
SUMMARY_SCOPES = 20

app = typer.Typer(add_completion=False, pretty_exceptions_enable=False, rich_markup_mode="rich")


class ScriptProgram:
    """What is run: a script or a module, and its arguments."""

    def __init__(self, name: str, arguments: list[str], module: bool) -> None:
        self.name, self.arguments, self.module = name, arguments, module

    @property
    def stem(self) -> str:
        """A name for the run's file."""
        return self.name.rsplit(".", 1)[-1] if self.module else Path(self.name).stem

    @property
    def title(self) -> str:
        """A name for the run: a file's may have bytes that are no text."""
        return os.fsencode(self.stem).decode(errors="replace")

    def exists(self) -> bool:
        """True if there is anything to run."""
        if not self.module:
            return Path(self.name).exists()
        try:
            return importlib.util.find_spec(self.name) is not None
        except (ImportError, ValueError):
            return False

    def run(self) -> None:
        """Runs it as Python would: `__main__`, its own sys.argv and sys.path[0]."""
        sys.argv = [self.name, *self.arguments]
        if self.module:
            runpy.run_module(self.name, run_name="__main__", alter_sys=True)
            return
        if not sys.flags.safe_path:  # else sys.path[0] is nobody's folder
            sys.path[0] = str(Path(self.name).resolve().parent)
        runpy.run_path(self.name, run_name="__main__")


def _numbers(text: str) -> tuple[int, ...]:
    """`0,4` as numbers."""
    parts = [part.strip() for part in text.split(",")] if text else []
    if not all(part.isdecimal() for part in parts):
        raise typer.BadParameter(f"numbers of warps are written as 0,4, got {text!r}")
    return tuple(map(int, parts))


def _words(text: str) -> tuple[str, ...]:
    """`loads,dots` as words."""
    return tuple(part.strip() for part in text.split(",") if part.strip())


def _choices(texts: Sequence[str]) -> Any:
    return enum.Enum("Choice", [(text, text) for text in texts])


def _parameter(of: "Field[Any]") -> inspect.Parameter:
    """The command's option for an option of a session."""
    kind: Any = of.type
    option, default, known = option_of(of), of.default, dict[str, Any]()
    if option.choices and kind is str:
        kind = _choices(option.choices)
        default = kind(default)
    elif option.choices and kind not in (int, bool):
        kind, default, known = str, "", {"parser": _words, "metavar": "WORD,WORD,..."}
    elif kind == float | str:
        kind = str
    elif of.name == "metrics":
        kind, default, known = str, "", {"metavar": "WORD,WORD,..."}
    elif kind not in (int, bool, float, str):
        kind, default, known = str, "", {"parser": _numbers, "metavar": "N,N,..."}
    name = "--" + NAMES.get(of.name, of.name).replace("_", "-")
    help_ = f"GPU: {option.help}" if option.on_gpu else option.help
    help_ = f"With --monitor: {help_}" if of.name in OF_MONITOR and of.name not in NAMES else help_
    annotation = Annotated[kind, typer.Option(name, help=escape(help_), **known)]
    place = inspect.Parameter.KEYWORD_ONLY
    return inspect.Parameter(of.name, place, default=default, annotation=annotation)


def _with_session_options(command: Callable[..., None]) -> Callable[..., None]:
    """Gives a command the options of a session and of a monitor, but for the name, in place of its
    `**options`."""
    own = inspect.signature(command)
    *parameters, _ = own.parameters.values()
    parameters += [_parameter(of) for of in fields(MonitorOptions) if of.name != "name"]
    command.__signature__ = own.replace(parameters=parameters)  # type: ignore[attr-defined]
    command.__annotations__ = {p.name: p.annotation for p in parameters} | {"return": None}
    return command


@app.command(
    context_settings={"allow_interspersed_args": False, "help_option_names": ["-h", "--help"]}
)
@_with_session_options
def main(
    script: Annotated[str, typer.Argument(metavar="SCRIPT", help="The program.")],
    arguments: Annotated[
        list[str] | None, typer.Argument(metavar="[ARGS]...", help="All of the rest is its own.")
    ] = None,
    module: Annotated[bool, typer.Option("-m", help="SCRIPT is a module, as for python.")] = False,
    output: Annotated[
        Path | None,
        typer.Option(
            "--output",
            "-o",
            help="Where the run goes: .proton (everything), .pftrace (Perfetto), .json (Chrome) "
            "or .csv; the default is SCRIPT.proton in this folder, wherever the program goes.",
        ),
    ] = None,
    name: Annotated[str | None, typer.Option(help="Of the run; by default SCRIPT's.")] = None,
    quiet: Annotated[bool, typer.Option("--quiet", "-q", help="Print no summary.")] = False,
    as_triton: Annotated[
        bool, typer.Option("--as-triton", help="`import triton` gives Proton, in all of SCRIPT.")
    ] = False,
    **options: Any,
) -> None:
    """Run a Python program, unmodified, and profile the kernels it launches.

    The summary goes to stderr. A program that fails is profiled up to
    there; its traceback and exit status are kept.

    [bold]Examples[/bold]

        python -m proton train.py --steps 3

        python -m proton -o train.pftrace train.py

        python -m proton --strategy flush --placement program -m package.module

        python -m proton --as-triton train_with_triton.py

        python -m proton --monitor runs --budget 0.5% --metrics prometheus:9400 serve.py
    """
    what = ScriptProgram(script, arguments or [], module)
    target = (output or Path(f"{what.stem}.proton")).absolute()  # the program may change its folder
    _check(what, target)
    try:
        if as_triton:
            proton.install_as_triton()
            importlib.import_module("proton.compat.triton").install_in_processes()
            importlib.import_module("proton.compat.triton.inductor").keep_origins()
        title = check_text(name or what.title, "a session's name")
        given = {n: v.value if isinstance(v, enum.Enum) else v for n, v in options.items()}
        is_monitored = _start(title, given, output)
    except MissingPackage as problem:
        sys.exit(f"proton: {problem}")
    except (ProtonError, ValueError) as error:
        raise typer.BadParameter(str(error)) from None
    if is_monitored:
        raise typer.Exit(run(what))  # the monitor's end is the process's
    ending = Ending(target.absolute(), quiet)
    atexit.register(ending)  # before the program registers anything: what is first comes last
    ending.status = run(what)
    raise typer.Exit(ending.status)


def _start(name: str, options: dict[str, Any], output: Path | None) -> bool:
    """Starts to record the process; whether a monitor does, as it is asked for. Raises ProfileError
    for options that go without one, or with one alone."""
    if options["folder"]:
        if output is not None:
            raise ProfileError("--monitor says where runs go: leave --output out")
        proton.monitor(name=name, **options)
        return True
    for of, default in OF_MONITOR.items():
        if options.pop(of) not in (default, ""):
            raise ProfileError(f"--{of.replace('_', '-')} goes with --monitor FOLDER")
    if not knobs.profile_disable:
        open_sessions.start_program(SessionOptions(name, **options))
    return False


class Ending:
    """What is done when the program and all of its threads have ended."""

    def __init__(self, target: Path, quiet: bool) -> None:
        self.target, self.quiet = target, quiet
        self.process, self.status = os.getpid(), 0
        self.records = not knobs.profile_disable

    def __call__(self) -> None:
        if os.getpid() == self.process and not self._keep() and not self.status:
            sys.stdout.flush()
            sys.stderr.flush()
            os._exit(FAILED)  # no exception says it now

    def _keep(self) -> bool:
        """Saves the run; whether there is one as it should be."""
        if not self.records:
            _say("PROTON_PROFILE_DISABLE is set: nothing was recorded")
            return True
        return _keep(open_sessions.finalize_program(), self.target, self.quiet)


def _check(program: ScriptProgram, target: Path) -> None:
    """Refuses before anything runs what could not be run or saved after."""
    if target.suffix != archive.SUFFIX:
        from proton.viewer.formats import check_packages, format_of

        try:
            check_packages(format_of(target))
        except ProtonError as error:
            raise typer.BadParameter(str(error), param_hint="'--output'") from None
    if not target.parent.is_dir():
        raise typer.BadParameter(f"{target.parent} is not a folder", param_hint="'--output'")
    if target.is_dir():
        raise typer.BadParameter(f"{target} is a folder", param_hint="'--output'")
    if not os.access(target if target.exists() else target.parent, os.W_OK):
        raise typer.BadParameter(f"{target} may not be written", param_hint="'--output'")
    if not program.exists():
        kind = "module" if program.module else "file"
        raise typer.BadParameter(f"there is no {kind} {program.name}", param_hint="'SCRIPT'")


def run(program: ScriptProgram) -> int:
    """Runs it to its end, whatever that is; its exit status."""
    try:
        program.run()
    except SystemExit as end:
        if end.code is None or isinstance(end.code, int):
            return end.code or 0
        print(end.code, file=sys.stderr)
        return FAILED
    except BaseException as error:
        trace = _without_our_frames(error.__traceback__)
        sys.excepthook(type(error), error.with_traceback(trace), trace)
        return INTERRUPTED if isinstance(error, KeyboardInterrupt) else FAILED
    return 0


def _without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """The part that the program knows; all of it where there is no such part."""
    rest = trace
    while rest and (
        rest.tb_frame.f_globals is globals() or rest.tb_frame.f_globals["__name__"] == "runpy"
    ):
        rest = rest.tb_next
    return rest or trace


def _keep(raw: RawRun, target: Path, quiet: bool) -> bool:
    """Saves and shows the run; whether that worked."""
    try:
        _save(raw, target)
    except (OSError, ProtonError) as error:
        _say(f"the run was not saved: {printable(reason(error))}")
        return False
    if not quiet:
        _show(raw, target)
    return True


def _save(raw: RawRun, target: Path) -> None:
    """A `.proton` file needs no tables, which take as long to import as all else together: many
    short programs that are measured leave nothing but theirs."""
    if target.suffix == archive.SUFFIX:
        archive.save(raw, target)
    else:
        proton.Run(raw).save(target)


def _show(raw: RawRun, target: Path) -> None:
    from proton import _report
    from proton.viewer.cli.other_command import ALIAS, owner_of_alias

    console = Console(stderr=True, highlight=False)
    _report.show(proton.Run(raw), console, SUMMARY_SCOPES)
    if other := owner_of_alias():
        _say(f"{ALIAS} on PATH is {other[1]}'s ({other[0]}): proton-tile reads the run")
    if not raw.kernels:
        console.print("no launch of a kernel of Proton was recorded")
    console.print(f"wrote {printable(str(target))}", soft_wrap=True, markup=False)


def _say(message: str) -> None:
    print(f"proton: {message}", file=sys.stderr)


if __name__ == "__main__":
    app(prog_name="python -m proton")
