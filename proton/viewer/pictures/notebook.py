"""What a run shows of itself in a notebook: its timeline, the scopes that took most time, and what
is missing."""

from __future__ import annotations

from proton.base import markup
from proton.viewer.pictures.svg import to_svg
from proton.viewer.pictures.timeline import Timeline
from proton.viewer.pictures.timeline_picture import draw
from proton.viewer.tables import Summary, Tables

TRACKS, WIDTH = 12, 1000


def to_html(tables: Tables, summary: Summary, title: str) -> str:
    """The timeline above the summary."""
    picture = to_svg(draw(Timeline(tables), WIDTH, TRACKS))
    return f"<div><b>{markup.text(title)}</b></div>{picture}{summary._repr_html_()}"
