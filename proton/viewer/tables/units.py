"""Tables as people read them: times and shares with units."""

from __future__ import annotations

from collections.abc import Collection
from typing import TYPE_CHECKING

from proton.base.units import duration

if TYPE_CHECKING:
    import pandas as pd

PERCENTS = ("share", "wall", "tail", "hidden")  # columns of percents
NS = "_ns"  # the end of the name of a column of times
START = "start_ns"  # one of them has moments


def with_units(frame: pd.DataFrame, times: Collection[str]) -> pd.DataFrame:
    """The table with these columns of ns, and percents, as texts with units."""
    shown = frame.copy(deep=False)
    for name in times:
        if name in shown:
            shown[name] = [_with_unit(ns) for ns in frame[name]]
    for name in PERCENTS:
        if name in shown:
            shown[name] = ["" if part != part else f"{part:.1f} %" for part in frame[name]]
    return shown


def readable(frame: pd.DataFrame) -> pd.DataFrame:
    """The table with all its times and percents: dur_ns is dur, and what has a part of that name
    (hidden_ns beside hidden) is "hidden time"."""
    times = [str(name) for name in frame if str(name).endswith(NS)]
    names = {name: name.removesuffix(NS) for name in times}
    names |= {name: f"{short} time" for name, short in names.items() if short in frame}
    shown = with_units(frame, [name for name in times if name != START])
    if START in shown:
        shown[START] = [moment(ns) for ns in frame[START]]
    return shown.rename(columns=names)


def numbers(frame: pd.DataFrame) -> list[str]:
    """The columns of `readable` that are numbers."""
    kinds = [dtype.kind for dtype in frame.dtypes]
    return [name for name, kind in zip(readable(frame[:0]), kinds, strict=True) if kind in "iuf"]


def moment(ns: float) -> str:
    """A time on the run's axis, which tells launches apart that follow each other."""
    return "" if ns != ns else f"{ns / 1e6:.3f} ms"


def _with_unit(ns: float) -> str:
    return "" if ns != ns else duration(float(ns))
