"""The timeline as SVG, or another picture that is given."""

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
    """Writes the picture."""
    from proton.viewer.pictures.svg import to_svg
    from proton.viewer.pictures.timeline import Timeline
    from proton.viewer.pictures.timeline_picture import draw

    file.write(to_svg(picture or draw(Timeline(tables, where))).encode())


FORMAT = FileFormat(
    name="svg",
    suffixes=(".svg",),
    about="the timeline as a picture",
    write=write,
    options=("where", "picture"),
)
