"""Quantiles of many values in little memory, each with a bounded relative error.

A value x lies in the bucket i = ceil(log(x) / log(g)), and of a bucket the count alone is known.
All values there lie between g^(i-1) and g^i, so with g = (1 + e) / (1 - e) what is given for them,
2 g^i / (g + 1), is off by no more than the part e. The counts of two sketches add up. This is the
sketch of C. Masson, J. E. Rim and H. K. Lee, "DDSketch: a fast and fully-mergeable quantile sketch
with relative-error guarantees", PVLDB 12 (12), 2019. It collapses no buckets: from 1 to 10^18 there
are fewer than 2,100.
"""

import math
from collections import Counter

import numpy as np

RELATIVE_ERROR = 0.01
_GROWTH = (1 + RELATIVE_ERROR) / (1 - RELATIVE_ERROR)
_ZERO = -1  # the bucket of what is below 1: these count as 0
_MOST = 1e18


class QuantileSketch:
    """Values from 1 to 10^18; smaller ones count as 0, larger ones as that."""

    def __init__(self) -> None:
        self.buckets: Counter[int] = Counter()
        self.count = 0

    def add(self, values: np.ndarray) -> None:
        """Adds values; not numbers are left out."""
        values = values[~np.isnan(values)].clip(0, _MOST)
        index = np.full(values.size, _ZERO)
        some = values >= 1
        index[some] = np.ceil(np.log(values[some]) / math.log(_GROWTH))
        found, counts = np.unique(index, return_counts=True)
        self.buckets.update(dict(zip(found.tolist(), counts.tolist(), strict=True)))
        self.count += values.size

    def merge(self, other: "QuantileSketch") -> None:
        """Adds what another one has."""
        self.buckets.update(other.buckets)
        self.count += other.count

    def quantile(self, part: float) -> float:
        """About the value of rank floor(part * (count - 1)), from 0 on, in ascending order; numpy's
        method "lower". There must be a value."""
        left = math.floor(part * (self.count - 1))
        for index in sorted(self.buckets):
            left -= self.buckets[index]
            if left < 0:
                return 0.0 if index == _ZERO else 2 * _GROWTH**index / (_GROWTH + 1)
        raise ValueError("a sketch without values has no quantiles")
