"""The timeline as one page that needs no network: it pans, zooms, searches, and shows details."""

from pathlib import Path
from typing import BinaryIO

from proton.viewer.formats import FileFormat
from proton.viewer.pictures.selection import EVERYTHING, Selection
from proton.viewer.tables import Tables


def write(tables: Tables, file: BinaryIO, target: Path, where: Selection = EVERYTHING) -> None:
    """Writes the page."""
    from proton.viewer.pictures.page import to_page
    from proton.viewer.pictures.timeline import Timeline

    file.write(to_page(Timeline(tables, where)).encode())


FORMAT = FileFormat(
    name="html",
    suffixes=(".html",),
    about="the timeline as a page for a browser",
    write=write,
    options=("where",),
)
