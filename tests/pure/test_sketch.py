"""A sketch's quantiles against numpy's, within the error that it states."""

import numpy as np
import pytest

from proton.monitoring.sketch import RELATIVE_ERROR, QuantileSketch
from tests.draws import TIMES

PARTS = (0.0, 0.001, 0.1, 0.5, 0.9, 0.99, 1.0)


def drawn(rng: np.random.Generator) -> np.ndarray:
    size = int(rng.choice([1, 2, 7, 1000, 20_000]))
    return [
        rng.lognormal(rng.uniform(1, 20), rng.uniform(0, 3), size),
        rng.integers(0, 3, size),
        rng.uniform(0.9, 1.1, size),
        np.full(size, 10 ** rng.uniform(0, 15)),
        rng.pareto(0.7, size) * 1000,
    ][rng.integers(5)].astype(np.float64)


def assert_near(sketch: QuantileSketch, values: np.ndarray) -> None:
    assert sketch.count == values.size
    values = np.where(values < 1, 0, values).clip(0, 1e18)
    for part in PARTS:
        wanted = np.quantile(values, part, method="lower")
        assert sketch.quantile(part) == pytest.approx(wanted, rel=RELATIVE_ERROR * (1 + 1e-9))


def test_quantiles_are_as_near_as_is_said(rng: np.random.Generator) -> None:
    for _ in range(40 * TIMES):
        values = drawn(rng)
        sketch = QuantileSketch()
        for piece in np.array_split(values, int(rng.integers(1, 5))):
            sketch.add(piece)
        assert_near(sketch, values)


def test_sketches_add_up(rng: np.random.Generator) -> None:
    for _ in range(20 * TIMES):
        one, other = drawn(rng), drawn(rng)
        first, second = QuantileSketch(), QuantileSketch()
        first.add(one)
        second.add(other)
        first.merge(second)
        assert_near(first, np.concatenate([one, other]))
        assert second.count == other.size


def test_a_sketch_stays_small(rng: np.random.Generator) -> None:
    sketch = QuantileSketch()
    for _ in range(100):
        sketch.add(10 ** rng.uniform(-3, 20, 10_000))
    assert len(sketch.buckets) < 2100
    sketch.add(np.array([np.nan]))
    assert sketch.count == 1_000_000
    with pytest.raises(ValueError, match="without values"):
        QuantileSketch().quantile(0.5)
