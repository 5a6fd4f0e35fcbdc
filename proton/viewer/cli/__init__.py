"""`proton-viewer`: read a `.proton` file in a terminal, or turn it into something else.

Exit status: 0 fine, 2 bad usage or a file that cannot be read or written; of a check moreover
1 regression and 3 inconclusive.

A module of `proton.viewer.cli.commands` is a command.
"""

import importlib
import pkgutil
import sys

from proton.base.errors import ProtonError
from proton.base.text import printable
from proton.viewer.cli import commands, terminal
from proton.viewer.cli.app import app

BAD = 2  # what typer itself exits with for bad usage, too


def _add_commands() -> None:
    """Has each command add itself; others use the package's terminal without them."""
    for module in pkgutil.iter_modules(commands.__path__):
        importlib.import_module(f"{commands.__name__}.{module.name}")


def main() -> None:
    """The entry point: errors become one line and an exit status."""
    terminal.open_streams()
    _add_commands()
    try:
        try:
            app()
        finally:
            terminal.close_streams()
    except (ProtonError, OSError) as error:
        print(f"proton-viewer: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        sys.exit(BAD)
