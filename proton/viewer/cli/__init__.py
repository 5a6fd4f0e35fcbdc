"""`proton-viewer`: read a `.proton` file in a terminal, or turn it into something else.

Exit status: 0 fine, 1 bad usage, 2 a file that cannot be read or written.

A module of `proton.viewer.cli.commands` is a command.
"""

import importlib
import pkgutil
import sys

from proton.base.errors import ProtonError
from proton.base.text import printable
from proton.viewer.cli import commands, terminal
from proton.viewer.cli.app import app

BAD_USAGE, BAD_FILE = 1, 2
TYPER_BAD_USAGE = 2  # what typer itself exits with


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
    except SystemExit as exit_:
        sys.exit(BAD_USAGE if exit_.code == TYPER_BAD_USAGE else exit_.code)
    except (ProtonError, OSError) as error:
        print(f"proton-viewer: {printable(' '.join(str(error).split()))}", file=sys.stderr)
        sys.exit(BAD_FILE)
