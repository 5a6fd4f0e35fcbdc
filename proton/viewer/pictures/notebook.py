"""What a run shows of itself in a notebook: its timeline, the scopes that took most time, and what
is missing."""

from __future__ import annotations

from proton.base import markup
from proton.viewer.pictures.page import to_page
from proton.viewer.pictures.svg import to_svg
from proton.viewer.pictures.timeline import Timeline
from proton.viewer.pictures.timeline_picture import draw
from proton.viewer.tables import Summary, Tables

TRACKS, WIDTH, HEIGHT = 12, 1000, 480
MOST_SLICES = 200_000  # of a page within a notebook, which keeps it: 1 MB


def to_html(tables: Tables, summary: Summary, title: str) -> str:
    """The timeline above the summary: as a page to move in, of more slices as a picture."""
    timeline = Timeline(tables)
    if len(timeline) <= MOST_SLICES:
        shown = framed(to_page(timeline))
    else:
        shown = to_svg(draw(timeline, WIDTH, TRACKS))
        shown += f"<div>a picture, as there are {len(timeline)} slices: run.save('run.html')</div>"
    return f"<div><b>{markup.text(title)}</b></div>{shown}{summary._repr_html_()}"


def framed(page: str, height: int = HEIGHT) -> str:
    """A page as a part of a notebook, whose scripts and style are its own."""
    return (
        f'<iframe srcdoc="{markup.attribute(page)}" sandbox="allow-scripts" width="100%" '
        f'height="{height}" style="box-sizing:border-box;border:1px solid #9ca3af55"></iframe>'
    )
