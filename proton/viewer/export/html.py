"""The timeline as one page that needs no network: it pans, zooms, searches, and shows details. Or
another picture that is given, as a page."""

from pathlib import Path
from typing import BinaryIO

from proton.viewer.formats import FileFormat
from proton.viewer.pictures.picture import Picture
from proton.viewer.pictures.selection import EVERYTHING, Selection
from proton.viewer.tables import Tables


def write(
    tables: Tables,
    file: BinaryIO,
    target: Path,
    where: Selection = EVERYTHING,
    picture: Picture | None = None,
) -> None:
    """Writes the page."""
    from proton.viewer.pictures.drawn_page import to_drawn_page
    from proton.viewer.pictures.page import to_page
    from proton.viewer.pictures.timeline import Timeline

    if picture is None:
        file.write(to_page(Timeline(tables, where)).encode())
    else:
        file.write(to_drawn_page(picture, tables.name).encode())


FORMAT = FileFormat(
    name="html",
    suffixes=(".html",),
    about="the timeline as a page for a browser",
    write=write,
    options=("where", "picture"),
)
