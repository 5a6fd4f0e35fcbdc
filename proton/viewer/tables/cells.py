"""Names as a spreadsheet may see them: it runs a cell that begins as a formula does."""

from __future__ import annotations

from typing import TYPE_CHECKING

from proton.base.text import printable

if TYPE_CHECKING:
    import pandas as pd

FORMULA_STARTS = ("=", "+", "-", "@")  # and tab and carriage return, which `printable` writes out


def cell(text: str) -> str:
    """The text as a cell of a table that a spreadsheet opens: printable, and no formula."""
    shown = printable(text)
    return f"'{shown}" if shown.startswith(FORMULA_STARTS) else shown


def as_cells(table: pd.DataFrame) -> pd.DataFrame:
    """The table with its text as cells, names of columns among it; numbers are as they were."""
    shown = table.copy(deep=False)
    for name, column in table.items():
        if column.dtype in ("category", "object", "str"):
            shown[name] = column.map(lambda value: cell(value) if isinstance(value, str) else value)
    return shown.set_axis([cell(str(name)) for name in shown], axis="columns")
