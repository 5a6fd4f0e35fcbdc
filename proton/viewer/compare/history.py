"""How the times of scopes changed over many stored runs, and at which run.

Runs come in order of time. Neighbours of one commit were often measured together, on one machine,
and are more alike than others: their median is one value. The series of these values is cut where
the ranks of what is before and of what is behind differ most (the largest standardised rank sum
over all cuts and some windows), as long as shuffled series seldom differ as much; then each part is
looked at in the same way:

    1.00 1.02 0.99 1.01 | 1.21 1.20 1.19 1.22        a change at the fifth commit

Shuffling assumes that measurements of equal code differ by chance alone: a machine that gets slower
over weeks is a change, too.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import pairwise

import numpy as np

from proton.viewer.compare.matching import differences
from proton.viewer.compare.samples import Group, Process, Side, Variant

ERROR = 0.01  # that any series of equal runs is cut
SHUFFLES = 20_000
AT_ONCE = 256  # shuffles: what is computed of them stays in the cache
SEED = 20130801
LEAST = 4  # commits of a part, or runs that say none
LEAST_CHANGE = 0.01  # of the medians of both parts: less is not said


@dataclass(frozen=True, kw_only=True)
class Shift:
    """A change: the first run that has it, and the medians of the parts on either side."""

    at: int
    process: Process
    before: float
    after: float


@dataclass(frozen=True, kw_only=True)
class Trend:
    """A scope, or a kernel's launches: the statistic in each run, NaN where a run has none of it,
    and its changes, the oldest first."""

    group: Group
    title: str
    values: np.ndarray
    shifts: tuple[Shift, ...]
    measurements: int  # neighbouring runs of a commit are one

    @property
    def levels(self) -> list[float]:
        """The median of each part, the oldest first."""
        if not self.shifts:
            return [float(np.nanmedian(self.values))]
        return [self.shifts[0].before, *(shift.after for shift in self.shifts)]

    @property
    def change(self) -> float:
        """The last part's median, as a multiple of the first one's."""
        return self.levels[-1] / self.levels[0]


def history(side: Side, stat: str) -> list[Trend]:
    """The trend of each scope, those that changed first, then by time."""
    side = _joined(side)
    which, groups = differences(side.groups), side.groups
    found = []
    for group in groups:
        of = which.get(group.variant, "")
        found.append(_trend(side, group, stat, f"{group.shown} ({of})" if of else group.shown))
    return sorted(
        found,
        key=lambda t: (not t.shifts, bool(t.group.scope), -float(np.nanmax(side.totals(t.group)))),
    )


def are_too_few(trends: list[Trend]) -> bool:
    """True if not even commits each of which is slower than all before would show a change of any
    of these scopes."""
    longest = max((trend.measurements for trend in trends), default=0)
    return not trends or not _cuts(np.arange(1.0, longest + 1), ERROR / len(trends))


def _joined(side: Side) -> Side:
    """The runs with one variant of each kernel that no run has several of, whatever its constants
    were."""
    counts = [Counter(variant.kernel for variant in p.targets) for p in side.processes]
    several = {kernel for count in counts for kernel, n in count.items() if n > 1}

    def of(group: Group) -> Group:
        kernel = group.variant.kernel
        return group if kernel in several else group._replace(variant=Variant(kernel, ""))

    processes = [replace(p, rows={of(g): row for g, row in p.rows.items()}) for p in side.processes]
    return replace(side, processes=processes)


def _trend(side: Side, group: Group, stat: str, title: str) -> Trend:
    values = side.values(group, stat)
    there = np.flatnonzero(~np.isnan(values)).tolist()
    commits = [side.processes[n].commit for n in there]
    begins = [
        n for n in range(len(there)) if not n or not commits[n] or commits[n] != commits[n - 1]
    ]
    medians = [float(np.median(part)) for part in np.split(values[there], begins[1:])]
    cuts = [begins[cut] for cut in _cuts(np.array(medians), ERROR / len(side.groups))]
    edges = [0, *cuts, len(there)]
    levels = [float(np.median(values[there[a:b]])) for a, b in pairwise(edges)]
    shifts = tuple(
        Shift(at=there[cut], process=side.processes[there[cut]], before=before, after=after)
        for cut, before, after in zip(cuts, levels, levels[1:], strict=False)
        if abs(after / before - 1) >= LEAST_CHANGE
    )
    return Trend(group=group, title=title, values=values, shifts=shifts, measurements=len(begins))


def _cuts(values: np.ndarray, error: float) -> list[int]:
    """Where a series is cut; once all cuts are known, each is the best between its neighbours."""
    found = _divided(values, error)
    for number, _ in enumerate(found):
        low, high = [0, *found, values.size][number : number + 3 : 2]
        found[number] = low + _best(values[low:high])
    return found


def _divided(values: np.ndarray, error: float) -> list[int]:
    """The window whose ranks differ most is cut, then what is before and behind the cut."""
    windows = list(_windows(values.size))
    found = max((_excess(values, window, error / len(windows)) for window in windows),
                default=(0.0, 0))  # fmt: skip
    if found[0] <= 0:
        return []
    cut = found[1]
    behind = _divided(values[cut:], error)
    return [*_divided(values[:cut], error), cut, *(cut + other for other in behind)]


def _windows(n: int) -> Iterator[tuple[int, int]]:
    """All, and overlapping halves and quarters, which see a change that was taken back later."""
    for size in (n, n // 2, n // 4):
        if size >= 2 * LEAST:
            for low in range(0, n - size + 1, max(size // 2, 1)):
                yield low, low + size


def _excess(values: np.ndarray, window: tuple[int, int], error: float) -> tuple[float, int]:
    """How far the largest score in a window is above what chance gives, and the best cut."""
    low, high = window
    part = values[low:high]
    if part.min() == part.max():
        return 0.0, 0
    # Equal values have their order by chance.
    order = np.lexsort((np.random.default_rng(SEED).random(part.size), part))
    score = float(_scores(np.argsort(order)[None]).max())
    return score - _limit(part.size, max(error, 1 / SHUFFLES)), low + _best(part)


def _best(values: np.ndarray) -> int:
    """The cut whose parts have logarithms nearest to their means (least squares)."""
    logs = np.log(values)
    cuts = np.arange(LEAST, values.size - LEAST + 1)
    sums = np.cumsum(logs)[cuts - 1]
    explained = sums**2 / cuts + (logs.sum() - sums) ** 2 / (values.size - cuts)
    return int(cuts[np.argmax(explained)])


def _scores(ranks: np.ndarray) -> np.ndarray:
    """Of each series of ranks (rows) and each cut how far the sum of ranks before the cut is from
    what it is by chance, in standard deviations."""
    n = ranks.shape[1]
    cuts = np.arange(LEAST, n - LEAST + 1)
    sums = np.cumsum(ranks, axis=1)[:, cuts - 1]
    deviation = np.sqrt(cuts * (n - cuts) * (n + 1) / 12)
    return np.asarray(np.abs(sums - cuts * (n - 1) / 2) / deviation)


@lru_cache(maxsize=256)
def _limit(n: int, error: float) -> float:
    """What the largest score of a shuffled series exceeds with this probability."""
    draws = np.random.default_rng(SEED)
    counts = np.diff([*range(0, SHUFFLES, AT_ONCE), SHUFFLES]).tolist()
    largest = [
        _scores(draws.permuted(np.tile(np.arange(n), (count, 1)), axis=1)).max(axis=1)
        for count in counts
    ]
    return float(np.quantile(np.concatenate(largest), 1 - error, method="higher"))
