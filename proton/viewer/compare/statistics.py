"""How many times slower, and how sure that is.

Each process gives one number. Durations are compared as ratios, so all is done on logarithms:

- **Estimate.** The Hodges-Lehmann shift (Hodges and Lehmann, "Estimates of location based on rank
  tests", 1963): of processes measured in turns the median of the means of all pairs of
  differences; of two sets measured apart the median of all differences. A few processes that met
  a busy machine do not move it, and of normal noise it wastes 5 %.
- **Its uncertainty.** The cluster bootstrap: processes are drawn anew with replacement, a pair of
  processes measured in turns as one, and never single slices (Davison and Hinkley, "Bootstrap
  Methods and their Application", 1997, section 3.8). The spread of the estimate over the draws is
  its standard error, enlarged by sqrt(n / (n - 1)), for the draws' variance divides by n.
- **The interval** reaches Student's t times the standard error to either side (Efron and
  Tibshirani, "An Introduction to the Bootstrap", 1993, chapter 12): percentiles of the draws
  themselves are too narrow for few processes (Hesterberg, "What Teachers Should Know About the
  Bootstrap", 2015), and say nothing of the tails that many comparisons at once ask for.

The draws are the same each time: equal runs give equal answers.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import cache

import numpy as np

DRAWS = 1000  # of the bootstrap: they tell a standard error within 2.2 % (1 / sqrt(2 * 1000))
SEED = 20130801
AT_ONCE = 1 << 15  # numbers that are computed together: they stay in the cache
CLOSEST = 1e-9  # to which a quantile is found


@dataclass(frozen=True, kw_only=True)
class Estimate:
    """A value, and the interval that each end of misses with the asked-for probability."""

    value: float
    low: float
    high: float
    processes: int  # of the side that has fewer

    @property
    def noise(self) -> float:
        """The width of the interval, as the logarithm of a ratio."""
        return math.inf if not self.low else math.log(self.high / self.low)


def ratio(
    baseline: np.ndarray, candidate: np.ndarray, *, error: float, in_turns: bool = False
) -> Estimate:
    """How many times as long the candidate takes; `error` is the probability that one end of the
    interval misses. With `in_turns` the i-th processes of both sides were measured one after the
    other.

    Fewer than two processes on a side tell nothing: the interval is unbounded.
    """
    before, after = np.log(baseline), np.log(candidate)
    n = min(before.size, after.size)
    draws = np.random.default_rng(SEED)
    if in_turns:
        change = after - before
        value, spread = _location(change), _spread(change, draws)
    else:
        value = _shift(before, after)
        spread = _spread_apart(before, after, draws)
    return _interval(value, spread, n, error)


def level(values: np.ndarray, *, error: float) -> Estimate:
    """The typical one of what processes measured, such as a p50 in ns; all are positive."""
    if values.size > 1 and values.min() == values.max():  # a count: no logarithm rounds it
        same = float(values[0])
        return Estimate(value=same, low=same, high=same, processes=values.size)
    logs = np.log(values)
    spread = _spread(logs, np.random.default_rng(SEED))
    return _interval(_location(logs), spread, logs.size, error)


def student(probability: float, degrees: int) -> float:
    """The quantile of Student's t distribution, for probabilities of 0.5 and more."""
    low, high = 0.0, 1.0
    while _student_tail(high, degrees) > 1 - probability:
        high *= 2
    while high - low > CLOSEST * high:
        middle = (low + high) / 2
        inside = _student_tail(middle, degrees) > 1 - probability
        low, high = (middle, high) if inside else (low, middle)
    return high


def _student_tail(t: float, degrees: int) -> float:
    """The probability of more than t: a finite sum (Abramowitz and Stegun, 26.7.3 and 26.7.4)."""
    angle = math.atan(t / math.sqrt(degrees))
    cosine = math.cos(angle)
    odd = degrees % 2
    term = total = cosine if odd else 1.0
    for k in range(2 + odd, degrees - 1, 2):
        term *= cosine * cosine * (k - 1) / k
        total += term
    if not odd:
        return (1 - math.sin(angle) * total) / 2
    inside = angle + (math.sin(angle) * total if degrees > 1 else 0.0)
    return (1 - 2 / math.pi * inside) / 2


@cache
def _pairs(count: int) -> tuple[np.ndarray, np.ndarray]:
    """The pairs of so many, each with itself included."""
    return np.triu_indices(count)


def _location(values: np.ndarray) -> np.ndarray:
    """The median of the means of all pairs, along the last axis."""
    if not values.shape[-1]:
        return np.full(values.shape[:-1], math.nan)
    one, other = _pairs(values.shape[-1])
    return np.asarray(np.median((values[..., one] + values[..., other]) / 2, axis=-1))


def _shift(before: np.ndarray, after: np.ndarray) -> np.ndarray:
    """The median of all differences, along the last axis."""
    if not before.shape[-1] or not after.shape[-1]:
        return np.full(before.shape[:-1], math.nan)
    all_ = after[..., :, None] - before[..., None, :]
    return np.asarray(np.median(all_.reshape(*all_.shape[:-2], -1), axis=-1))


def _spread(values: np.ndarray, draws: np.random.Generator) -> float:
    """The standard error of the location of values."""
    if values.size < 2:
        return math.inf
    drawn = values[draws.integers(0, values.size, (DRAWS, values.size))]
    found = [_location(drawn[part]) for part in _portions(values.size * (values.size + 1) // 2)]
    return _enlarged(np.concatenate(found), values.size)


def _spread_apart(before: np.ndarray, after: np.ndarray, draws: np.random.Generator) -> float:
    """The standard error of the shift between two sets."""
    n = min(before.size, after.size)
    if n < 2:
        return math.inf
    one, other = (v[draws.integers(0, v.size, (DRAWS, v.size))] for v in (before, after))
    found = [_shift(one[part], other[part]) for part in _portions(before.size * after.size)]
    return _enlarged(np.concatenate(found), n)


def _portions(size: int) -> list[slice]:
    """The draws in portions, of each of which `size` numbers are computed."""
    most = max(1, AT_ONCE // size)
    return [slice(begun, begun + most) for begun in range(0, DRAWS, most)]


def _enlarged(found: np.ndarray, count: int) -> float:
    return float(found.std(ddof=1)) * math.sqrt(count / (count - 1))


def _interval(value: np.ndarray, spread: float, processes: int, error: float) -> Estimate:
    """From logarithms back to what they are of."""
    middle = float(value)
    reach = math.inf if processes < 2 else student(1 - error, processes - 1) * spread
    with np.errstate(over="ignore"):  # an interval without end is one
        low, high = np.exp([middle - reach, middle + reach]).tolist()
    return Estimate(value=math.exp(middle), low=low, high=high, processes=processes)


def sign_test(broken: int, count: int) -> float:
    """The probability that as many of `count` values lie on one side of their median."""
    return sum(math.comb(count, k) for k in range(broken, count + 1)) / 2**count
