"""Tables of statistics as people read them: times and shares with units."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from proton.base.units import duration

if TYPE_CHECKING:
    import pandas as pd

PERCENT = "share"  # a column of percents


def with_units(frame: pd.DataFrame, times: Collection[str]) -> pd.DataFrame:
    """The table with these columns of ns, and the share, as texts with units."""
    shown = frame.copy(deep=False)
    for name in times:
        if name in shown:
            shown[name] = [_with_unit(ns) for ns in frame[name]]
    if PERCENT in shown:
        shown[PERCENT] = ["" if part != part else f"{part:.1f} %" for part in frame[PERCENT]]
    return shown


def _with_unit(ns: float) -> str:
    return "" if ns != ns else duration(float(ns))
