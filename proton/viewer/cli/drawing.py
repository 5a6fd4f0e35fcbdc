"""What the commands that draw have in common: which part of a run, and where the picture goes."""

import json
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import Annotated

import typer

from proton.base.errors import ProtonError
from proton.base.text import printable
from proton.base.words import known_names
from proton.trace import scope_path
from proton.viewer.cli import terminal
from proton.viewer.formats import FileFormat, format_of, formats
from proton.viewer.pictures.picture import Picture
from proton.viewer.pictures.selection import Selection, matching
from proton.viewer.pictures.text import Line
from proton.viewer.run import Run
from proton.viewer.tables.labels import kernel_labels

KernelName = Annotated[
    str, typer.Option("--kernel", help="Only kernels with this regex in their name.")
]
ScopePath = Annotated[
    str, typer.Option("--scope", help="Only scopes with this regex in their path.")
]
Launches = Annotated[
    list[int] | None, typer.Option("--launch", min=0, help="Only this launch; may be repeated.")
]
Sms = Annotated[
    list[int] | None, typer.Option("--sm", min=0, help="Only this SM; may be repeated.")
]
Warps = Annotated[
    list[int] | None, typer.Option("--warp", min=0, help="Only this warp; may be repeated.")
]


def _time(ns: int | None) -> int | None:
    """A time of an option, which tables can hold."""
    if ns is not None and abs(ns) >= 1 << 63:
        raise typer.BadParameter("must be a time in ns that 64 bits can hold")
    return ns


From = Annotated[
    int | None,
    typer.Option("--start", callback=_time, help="From this time on (ns, start_ns)."),
]
To = Annotated[int | None, typer.Option("--end", callback=_time, help="Up to this time.")]
Out = Annotated[
    Path | None, typer.Option("--out", "-o", help="Write a picture (.html, .svg, .png) instead.")
]
Width = Annotated[
    int,
    typer.Option(
        min=0, max=10_000, help="Columns on a terminal, 40 at least; 0 for as many as it has."
    ),
]


def check_suffix(out: Path, suffix: str) -> None:
    """Raises BadParameter for a file of another kind."""
    if out.suffix != suffix:
        rule = f"{printable(str(out))}: the suffix must be {suffix}"
        raise typer.BadParameter(rule, param_hint="'--out'")


def picture_format(out: Path, option: str = "picture") -> FileFormat:
    """The format that a file name asks for, of those that have an option."""
    known = [suffix for f in formats().values() if option in f.options for suffix in f.suffixes]
    try:
        found = format_of(out)
    except ProtonError:
        found = None
    if found is None or option not in found.options:
        rule = f"{printable(str(out))}: the suffix must be one of {', '.join(known)}"
        raise typer.BadParameter(rule, param_hint="'--out'")
    return found


def show(
    run: Run,
    out: Path | None,
    picture: Callable[[], Picture],
    lines: Callable[[int], Iterable[Line]],
    width: int,
    numbers: Callable[[], object] | None = None,
) -> None:
    """Writes a picture where a file is named, prints the `numbers` that it is of as JSON where they
    are asked for, and draws it in characters where neither is."""
    if out is not None:
        run.save(out, picture_format(out).name, picture=picture())
    if numbers is not None:
        print(json.dumps(numbers()))
    if out is None and numbers is None:
        terminal.print_lines(terminal.stdout(), lines(terminal.picture_width(width)))


def load(file: Path, where: Selection) -> Run:
    """The run of a file. Raises ProtonError where the selection asks for what it does not have."""
    run = Run.load(file)
    check_launches(run, where.launches)
    tracks = run.records.tracks
    for option, asked, there in (("sm", where.sms, tracks.sm), ("warp", where.warps, tracks.warp)):
        known = sorted({*there.tolist()} - {-1})
        if known and not {*asked} <= {*known}:  # a run of a CPU is drawn as what it is
            names = " ".join(map(str, asked))
            range_ = f"{known[0]} to {known[-1]}"
            raise ProtonError(f"no records of --{option} {names}: there are {range_}")
    check_found("--kernel", where.kernel, kernel_labels(run.raw.kernels))
    check_found("--scope", where.scope, [s.path for k in run.kernels for s in k.scopes])
    return run


def check_launches(run: Run, launches: Sequence[int]) -> None:
    """Raises ProtonError where a launch is named that is not there, and says which are."""
    count = len(run.raw.launches)
    missing = [number for number in launches if number >= count]
    if missing and count:  # a run without any is drawn as what it is
        names = ", ".join(map(str, missing))
        raise ProtonError(f"no launch {names}: there are 0 to {count - 1}")


def check_times(start: int | None, end: int | None) -> None:
    """Raises BadParameter where nothing is between them."""
    if start is not None and end is not None and start >= end:
        raise typer.BadParameter("must be after --start", param_hint="'--end'")


def check_found(option: str, pattern: str, names: Iterable[str]) -> None:
    """Raises ProtonError where a regular expression is found in no name, and says which are."""
    known = sorted(set(names))
    if pattern and known and not any(matching(pattern, known)):
        there = known_names(pattern, (scope_path.ScopePath(name).shown for name in known))
        raise ProtonError(f"nothing matches {option} {pattern}: there is {there}")


def selection(
    kernel: str,
    launch: Sequence[int] | None,
    scope: str,
    sm: Sequence[int] | None,
    warp: Sequence[int] | None,
    start: int | None,
    end: int | None,
) -> Selection:
    """What the options choose."""
    check_times(start, end)
    return Selection(
        kernel=kernel,
        scope=scope,
        launches=launch or (),
        sms=sm or (),
        warps=warp or (),
        start_ns=start,
        end_ns=end,
    )
