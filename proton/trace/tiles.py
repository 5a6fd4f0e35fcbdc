"""Which tile each record belongs to.

A persistent kernel works on one tile after the other, and scopes inside of a tile know only their
own loop's iteration. So a scope may say it, `with proton.scope("tile", tile=tile):`, and its value
is that of all that its slices enclose, in each warp, on each SM and in each launch:

    tile     [ 7             ] [ 9             ]
    dot        [7] [7] [7]       [9] [9]
"""

from collections.abc import Sequence

import numpy as np

from proton.trace.model import Scope
from proton.trace.nesting import Nesting

FIELD = "tile"  # of the payload, an integer
NO_TILE = -1


def find_tiles(
    *, scopes: Sequence[Scope], scope: np.ndarray, payload: np.ndarray, nesting: Nesting
) -> np.ndarray | None:
    """The tile of each record, that of the innermost slice which has one, itself included; NO_TILE
    outside of tiles. None where no scope says it."""
    slots = {
        number: slot
        for number, scope in enumerate(scopes)
        for slot, field in enumerate(scope.payload)
        if field.name == FIELD and field.kind == "int"
    }
    if not slots:
        return None
    slot = np.full(len(scopes), -1)
    slot[[*slots]] = [*slots.values()]
    of = slot[scope]
    rows = np.flatnonzero(of >= 0)
    rows = rows[np.argsort(nesting.begin_at[rows])]
    begin, end = nesting.begin_at[rows], nesting.end_at[rows]
    value = np.append(payload[rows, of[rows]].view(np.int64), NO_TILE)
    around = np.array(_parents(begin.tolist(), end.tolist()), np.int64)
    found = np.searchsorted(begin, nesting.begin_at, side="right") - 1  # the last that began before
    while (gone := (found >= 0) & (end[found] < nesting.end_at)).any():
        found[gone] = around[found[gone]]
    tiles: np.ndarray = value[found]
    return tiles


def _parents(begins: list[int], ends: list[int]) -> list[int]:
    """Of intervals in order of their begins the one around each; -1 for none."""
    found, open_ = [], list[int]()
    for number, begin in enumerate(begins):
        while open_ and ends[open_[-1]] < begin:
            open_.pop()
        found.append(open_[-1] if open_ else -1)
        open_.append(number)
    return found
