"""HTML for notebooks: small pieces, with every name escaped."""

import re
from collections.abc import Iterable, Mapping, Sequence
from html import escape

from proton.base.text import printable

MOST_TEXT = 200_000  # characters of a listing; a notebook keeps what it shows
MOST_COLOURED = 40_000  # of these: colours make the text four times as long
# Of code at any level, with colours that are read on white and on black.
_WORDS = re.compile(
    r"(?P<comment>//.*|/\*.*?\*/|^\s*#(?= ).*)"
    r'|(?P<string>"(?:[^"\\]|\\.)*")'
    r"|(?P<value>%[\w$.#-]+)"
    r"|(?P<name>[!#@][\w$.]+)"
    r"|(?P<op>\b[A-Za-z_]\w*(?:\.\w+)+)"
    r"|(?P<number>\b\d[\w.]*)"
)
COLOURS = {
    "comment": "#808080", "string": "#a16207", "value": "#0f8a7e", "name": "#9061c2",
    "op": "#3478d6", "number": "#c2562d",
}  # fmt: skip


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


def listing(title: str, content: str, *, is_open: bool = False) -> str:
    """Code that a click opens, and folds; coloured by what its words are at any level."""
    cut = (
        f"\n... and {len(content) - MOST_TEXT} more characters" if len(content) > MOST_TEXT else ""
    )
    head = content[:MOST_COLOURED].rpartition("\n")[0] if len(content) > MOST_COLOURED else content
    plain = content[len(head) : MOST_TEXT]
    shown = "\n".join(_coloured(line.replace("\t", "    ")) for line in head.split("\n"))
    shown += "\n".join(text(line.replace("\t", "    ")) for line in plain.split("\n")) + cut
    state = " open" if is_open else ""
    return f"<details{state}><summary>{text(title)}</summary><pre>{shown}</pre></details>"


def _coloured(line: str) -> str:
    parts, end = [], 0
    for match in _WORDS.finditer(line):
        shade = COLOURS[match.lastgroup or ""]
        parts.append(text(line[end : match.start()]))
        parts.append(f'<span style="color:{shade}">{text(match[0])}</span>')
        end = match.end()
    return "".join([*parts, text(line[end:])])


def warnings(lines: Iterable[str]) -> str:
    """A line a warning."""
    return "".join(f'<div style="color:#92400e">warning: {text(line)}</div>' for line in lines)
