"""The colours of scopes in Perfetto's UI, which are those of all other pictures.

A trace has no colours. The UI makes one of a slice's name, or of its correlation id where it has
one: a hash of the text gives hue and lightness, at a saturation of 80 %. So each colour of the
palette has a text of which the UI makes nearly the same (CIE76 distance 2 to 17). The pale half of
the palette is lighter than any of the UI's, and is dark there, of the same hues.
"""

from collections.abc import Sequence

import numpy as np

from proton.trace.model import Scope
from proton.viewer.pictures.picture import PALETTE

SEEDS = (
    "3860 551 2602 575 343 2715 1141 911 773 496 2686 72 "
    "180 783 1429 2375 410 187 279 827 14 15 4960 1060"
).split()


def of_scopes(scopes: Sequence[Scope]) -> np.ndarray:
    """Of each scope the number of its colour, from 1 on: that of the first scope of its name, as
    timelines count."""
    first: dict[str, int] = {}
    numbers = [first.setdefault(scope.name, row) for row, scope in enumerate(scopes)]
    return np.array(numbers, np.int64) % len(PALETTE) + 1
