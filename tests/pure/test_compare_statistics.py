"""The statistics of the gate: against definitions, tables and simulated noise of processes."""

import itertools
import math

import numpy as np
import pytest

from proton.viewer.compare import statistics
from tests.draws import times

# The 1.57-fold spread of p50s that was seen on a loaded machine, as that of 95 % of processes.
LOADED = math.log(1.57) / 4
GPU = 0.03


@pytest.mark.parametrize(  # a printed table of Student's t
    "probability, degrees, quantile",
    [
        (0.975, 1, 12.706),
        (0.95, 2, 2.920),
        (0.99, 3, 4.541),
        (0.995, 4, 4.604),
        (0.99, 9, 2.821),
        (0.9995, 10, 4.587),
        (0.975, 120, 1.980),
    ],
)
def test_quantiles_of_student_are_those_of_the_table(probability, degrees, quantile) -> None:
    assert statistics.student(probability, degrees) == pytest.approx(quantile, abs=6e-4)


def test_estimates_are_hodges_and_lehmanns(rng) -> None:
    before, after = np.exp(rng.normal(8, 1, 7)), np.exp(rng.normal(8, 1, 7))
    change = np.log(after / before)
    means = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(change, 2)]
    paired = statistics.ratio(before, after, error=0.01, in_turns=True)
    assert paired.value == pytest.approx(math.exp(np.median(means)))
    differences = [math.log(a / b) for a in after for b in before]
    apart = statistics.ratio(before, after, error=0.01)
    assert apart.value == pytest.approx(math.exp(np.median(differences)))
    logs = np.log(before)
    means = [(a + b) / 2 for a, b in itertools.combinations_with_replacement(logs, 2)]
    assert statistics.level(before, error=0.01).value == pytest.approx(math.exp(np.median(means)))


def test_the_standard_error_is_that_of_processes_drawn_anew(rng) -> None:
    """Against all 4^4 draws of four processes, one by one."""
    change = rng.normal(0, 1, 4)
    means = [
        np.median([(a + b) / 2 for a, b in itertools.combinations_with_replacement(draw, 2)])
        for draw in itertools.product(change, repeat=4)
    ]
    spread = np.std(means) * math.sqrt(4 / 3)
    found = statistics.ratio(np.full(4, 1e3), np.exp(change) * 1e3, error=0.01, in_turns=True)
    reach = math.log(found.high / found.value)
    assert reach == pytest.approx(spread * statistics.student(0.99, 3), rel=0.12)
    assert math.log(found.value / found.low) == pytest.approx(reach)


def test_one_process_tells_nothing_and_equal_ones_everything() -> None:
    alone = statistics.ratio(np.array([5.0]), np.array([7.0]), error=0.01)
    assert (alone.value, alone.low, alone.high) == (pytest.approx(1.4), 0.0, math.inf)
    same = statistics.ratio(np.full(5, 10.0), np.full(5, 11.0), error=0.01)
    assert same.low == pytest.approx(1.1)
    assert same.high == pytest.approx(1.1)


def test_many_processes_stay_in_memory() -> None:
    values = np.exp(np.random.default_rng(0).normal(7, 0.1, 150))
    found = statistics.ratio(values, values[::-1] * 1.1, error=0.01)
    assert found.low < 1.1 < found.high


@pytest.mark.parametrize("in_turns", [True, False])
@pytest.mark.parametrize("noise, processes", [(GPU, 5), (GPU, 10), (LOADED, 10)])
def test_ends_of_intervals_miss_as_often_as_stated(rng, noise, processes, in_turns) -> None:
    """One end of the interval misses in 5 % of samples, within four standard deviations."""
    missed, samples = 0, times(400)
    for _ in range(samples):
        before, after = np.exp(rng.normal(8, noise, (2, processes)))
        missed += statistics.ratio(before, after, error=0.05, in_turns=in_turns).low > 1
    assert missed / samples < 0.05 + 4 * math.sqrt(0.05 * 0.95 / samples)
