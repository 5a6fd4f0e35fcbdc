"""A picture as SVG."""

from __future__ import annotations

from html import escape

from proton.base.text import printable
from proton.viewer.pictures.picture import Label, Picture, Rectangle

FONTS = "system-ui,-apple-system,'Segoe UI','DejaVu Sans',sans-serif"


def to_svg(picture: Picture) -> str:
    """The picture as one `svg` element, which stands alone and inside of a page."""
    size = f'width="{picture.width}" height="{picture.height}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} '
        f'viewBox="0 0 {picture.width} {picture.height}" font-family="{FONTS}">\n'
        '<rect width="100%" height="100%" fill="#fff"/>\n'
    )
    lines = [*map(_box, picture.boxes), *map(_label, picture.labels)]
    return head + "\n".join(lines) + "\n</svg>\n"


def _box(box: Rectangle) -> str:
    shape = (
        f'<rect x="{box.x:.2f}" y="{box.y:.2f}" width="{box.width:.2f}" '
        f'height="{box.height:.2f}" fill="{box.fill}"'
    )
    if not box.title:
        return f"{shape}/>"
    lines = "\n".join(escape(printable(line), quote=False) for line in box.title.split("\n"))
    return f"{shape}><title>{lines}</title></rect>"


def _label(label: Label) -> str:
    anchor = "" if label.anchor == "start" else f' text-anchor="{label.anchor}"'
    text = escape(printable(label.text), quote=False)
    return (
        f'<text x="{label.x:.2f}" y="{label.y:.2f}" font-size="{label.size}" '
        f'fill="{label.fill}"{anchor}>{text}</text>'
    )
