"""HTML for notebooks: small pieces, with every name escaped."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape

from proton.base.text import printable

MOST_TEXT = 200_000  # characters of a listing; a notebook keeps what it shows


def text(value: object) -> str:
    """A value as text of a page."""
    return escape(printable(str(value)))


def attribute(value: str) -> str:
    """Text, as it is, between double quotes."""
    return escape(value)


def facts(entries: Mapping[str, object]) -> str:
    """A name and a value per row."""
    rows = (f"<tr><th>{text(name)}</th><td>{text(v)}</td></tr>" for name, v in entries.items())
    return f'<table style="text-align:left">{"".join(rows)}</table>' if entries else ""


def table(columns: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    """Rows of values below the names of their columns."""
    head = "".join(f"<th>{text(name)}</th>" for name in columns)
    body = "".join(
        "<tr>" + "".join(f"<td>{text(value)}</td>" for value in row) + "</tr>" for row in rows
    )
    return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"


def listing(title: str, content: str) -> str:
    """Text that a click opens."""
    lines = content[:MOST_TEXT].split("\n")
    cut = (
        f"\n... and {len(content) - MOST_TEXT} more characters" if len(content) > MOST_TEXT else ""
    )
    shown = "\n".join(text(line.replace("\t", "    ")) for line in lines) + cut
    return f"<details><summary>{text(title)}</summary><pre>{shown}</pre></details>"


def warnings(lines: Iterable[str]) -> str:
    """A line a warning."""
    return "".join(f'<div style="color:#92400e">warning: {text(line)}</div>' for line in lines)
