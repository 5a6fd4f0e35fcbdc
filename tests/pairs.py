"""A few rows of a table of axes, in which is what a fault may depend on."""

import itertools
from collections import Counter
from collections.abc import Sequence
from typing import Any

from tests.draws import IS_FUZZ


def chosen(axes: dict[str, Sequence[Any]], *together: str, least: int = 2) -> list[tuple[Any, ...]]:
    """The rows of `covering`; under `make fuzz` the whole product."""
    if IS_FUZZ:
        return list(itertools.product(*axes.values()))
    return covering(axes, *together, least=least)


def covering(
    axes: dict[str, Sequence[Any]], *together: str, least: int = 2
) -> list[tuple[Any, ...]]:
    """Rows of one value of each axis, the same ones each time, in the order of their product.

    Of axes that meet in the code under test, such as `together="dtype size"`, each combination of
    values is in a row. Any value is in `least` rows, if there are so many.
    """
    names = list(axes)
    groups = [(n,) for n in range(len(names))]
    groups += [tuple(map(names.index, words.split())) for words in together]
    rows = list(itertools.product(*(range(len(values)) for values in axes.values())))
    seen, chosen = Counter[Any](), []

    def parts(row: tuple[int, ...]) -> list[Any]:
        return [(group, tuple(row[n] for n in group)) for group in groups]

    def some(row: tuple[int, ...]) -> list[Any]:
        return [*enumerate(row), *itertools.combinations(enumerate(row), 2)]

    def worth(row: tuple[int, ...]) -> tuple[int, int]:
        """How much is in it that is missing, and how little that others have."""
        return sum(missing[part] > 0 for part in parts(row)), -sum(seen[part] for part in some(row))

    counts = Counter(part for row in rows for part in parts(row))
    missing = {of: min(count, least if len(of[0]) == 1 else 1) for of, count in counts.items()}
    while any(count > 0 for count in missing.values()):
        chosen.append(max(rows, key=worth))
        rows.remove(chosen[-1])
        seen.update(some(chosen[-1]))
        for part in parts(chosen[-1]):
            missing[part] -= 1
    columns = [list(values) for values in axes.values()]
    return [tuple(of[n] for of, n in zip(columns, row, strict=True)) for row in sorted(chosen)]
