"""A picture as a page for a browser, with its legend: who points at a box reads what it is, and a
click fills the width with it."""

from __future__ import annotations

import json
import re
from html import escape
from importlib import resources

from proton.base.text import printable
from proton.viewer.pictures.picture import FAINT, Picture
from proton.viewer.pictures.svg import to_svg


def to_drawn_page(picture: Picture, name: str) -> str:
    """The page; it needs no network."""
    page = resources.files(__package__).joinpath("drawn.html").read_text("utf-8")
    legend = "".join(
        f'<li><i style="background:{fill}"></i>{escape(printable(text))}</li>'
        for fill, text in picture.legend
    )
    parts = {
        "TITLE": escape(printable(name)),
        "WIDTH": str(picture.width),
        "CLASS": "scale" if picture.is_scale else "",
        "LEFT": json.dumps(picture.left),
        "FAINT": FAINT,
        "LEGEND": legend,
        "SVG": to_svg(picture),
    }
    return re.sub(r"/\*([A-Z]+)\*/", lambda mark: parts[mark[1]], page)
