"""Names as a terminal and a spreadsheet may see them.

Files hold names as they are. A terminal obeys control characters, and text that changes direction
shows what is not there; a spreadsheet runs a cell that begins as a formula does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

FORMULA_STARTS = ("=", "+", "-", "@")  # and tab and carriage return, which `printable` writes out


def printable(text: str) -> str:
    """The text with everything that has no shape of its own as an escape: `\\x1b`, `\\u202e`."""
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in text)


def cell(text: str) -> str:
    """The text as a cell of a table that a spreadsheet opens: printable, and no formula."""
    shown = printable(text)
    return f"'{shown}" if shown.startswith(FORMULA_STARTS) else shown


def as_cells(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its columns of text as cells; other columns are as they were."""
    shown = table.copy(deep=False)
    for name, column in table.items():
        if column.dtype in ("category", "object", "str"):
            shown[name] = column.map(lambda value: cell(value) if isinstance(value, str) else value)
    return shown
