"""What a covering set of rows has, for axes of any length."""

import itertools
from collections import Counter

import numpy as np

from tests.pairs import covering


def test_rows_have_each_value_and_what_is_together(rng: np.random.Generator) -> None:
    for _ in range(50):
        lengths = rng.integers(1, 6, int(rng.integers(1, 5))).tolist()
        axes = {
            name: [f"{name}{n}" for n in range(count)]
            for name, count in zip("abcd", lengths, strict=False)
        }
        groups = [g for g in itertools.combinations(axes, 2) if rng.random() < 0.5]
        groups += [g for g in itertools.combinations(axes, 3) if rng.random() < 0.2]
        least = int(rng.integers(1, 4))
        rows = covering(axes, *map(" ".join, groups), least=least)
        every = list(itertools.product(*axes.values()))
        assert rows == [row for row in every if row in set(rows)], "in order, and none twice"
        for place, values in enumerate(axes.values()):
            counts = Counter(row[place] for row in rows)
            assert min(counts[v] for v in values) >= min(least, len(every) // len(values))
        for group in groups:
            places = [list(axes).index(name) for name in group]
            found = {tuple(row[n] for n in places) for row in rows}
            assert found == set(itertools.product(*(axes[name] for name in group)))


def test_rows_are_few_and_spread() -> None:
    """As many as the largest group has, and values of other axes as often as each other."""
    axes = {"how": range(5), "m": range(2), "stages": range(3)}
    assert len(covering(axes, "how m", "how stages", "m stages")) == 15
    assert len(covering(axes)) == 10
    modes = Counter(mode for _, mode in covering({"case": range(20), "mode": range(5)}))
    assert set(modes.values()) == {8}
    assert covering(axes) == covering(axes)
