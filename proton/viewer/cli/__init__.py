"""`proton-tile`: read a `.proton` file in a terminal, or turn it into something else.

A file without a command is for `summary`.

Exit status: 0 fine, 2 bad usage or a file that cannot be read or written; of a check moreover
1 regression and 3 inconclusive.

A module of `proton.viewer.cli.commands` is a command.
"""

import functools
import importlib
import inspect
import pkgutil
import sys
from collections.abc import Callable
from pathlib import Path

import typer

from proton.base.errors import ProtonError, reason
from proton.base.text import printable
from proton.viewer.cli import commands, terminal
from proton.viewer.cli.app import APP_OPTIONS, app
from proton.viewer.compare.samples import SUFFIX
from proton.viewer.tables.metrics import is_hatchet

BAD = 2  # what typer itself exits with for bad usage, too


@functools.cache
def command() -> "typer.core.TyperGroup":
    """All commands. Each adds itself now, as others use the package's terminal without them."""
    for module in pkgutil.iter_modules(commands.__path__):
        importlib.import_module(f"{commands.__name__}.{module.name}")
    for info in app.registered_commands:
        info.help = _unwrapped(inspect.getdoc(info.callback) or "")
    group = typer.main.get_command(app)
    assert isinstance(group, typer.core.TyperGroup)
    return group


def _unwrapped(text: str) -> str:
    """A line a paragraph, as the terminal's columns are not those of the source."""
    paragraphs = text.split("\n\n")
    return "\n\n".join(p if p.startswith(" ") else " ".join(p.split()) for p in paragraphs)


def _with_command(words: list[str]) -> list[str]:
    """The words with the command that is meant where none is: a file alone is for `summary`, or
    `metrics` where it is Triton's; options of Triton's proton-viewer are for `metrics`."""
    known = {info.name or _name(info.callback) for info in app.registered_commands}
    if not words or words[0] in known or words[0] in APP_OPTIONS:
        return words
    if words[0].startswith("-"):
        return ["metrics", *words]
    file = Path(words[0])
    if file.is_file() and is_hatchet(file):
        return ["metrics", *words]
    looks_like_one = file.suffix == SUFFIX or len(file.parts) > 1
    return ["summary", *words] if file.exists() or looks_like_one else words


def _name(callback: Callable[..., object] | None) -> str:
    return callback.__name__ if callback else ""


def main() -> None:
    """The entry point: errors become one line and an exit status."""
    terminal.open_streams()
    group = command()
    try:
        try:
            group(_with_command(sys.argv[1:]))
        finally:
            terminal.close_streams()
    except BrokenPipeError:
        sys.exit(1)  # as click does where a reader leaves: nobody is there to be told
    except (ProtonError, OSError) as error:
        print(f"proton-tile: {printable(' '.join(reason(error).split()))}", file=sys.stderr)
        sys.exit(BAD)
