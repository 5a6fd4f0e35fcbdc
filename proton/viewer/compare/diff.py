"""What changed between two sides, scope by scope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proton.base.errors import ProtonError
from proton.base.words import did_you_mean
from proton.viewer.compare import statistics
from proton.viewer.compare.matching import differences, match
from proton.viewer.compare.samples import STATS, Group, Side, Variant, in_turns
from proton.viewer.compare.statistics import Estimate

ERROR = 0.01  # that any of all intervals misses its value on a side
LEAST = 5  # processes, or launches, of a side: fewer tell nothing
PROCESSES, LAUNCHES = "processes", "launches"


@dataclass(frozen=True, kw_only=True)
class Change:
    """One scope on both sides; what only one side has is `added` or `vanished`.

    `before` and `after` are what the processes of either side measured, and `ratio` is of them, of
    `unit`: "launches" where each side is one process, which says nothing of other processes.
    """

    group: Group  # the candidate's; the baseline's where it vanished
    was: Group | None  # the baseline's
    stat: str
    before: np.ndarray
    after: np.ndarray
    title: str = ""  # the group, and of several variants which
    unit: str = PROCESSES
    ratio: Estimate | None = None

    @property
    def kind(self) -> str:
        """What became of the scope, as far as that is sure."""
        if not self.after.size or not self.before.size:
            return "vanished" if self.before.size else "added"
        if self.ratio is None or self.ratio.processes < LEAST:
            return "too few"
        if self.ratio.low > 1:
            return "slower"
        return "faster" if self.ratio.high < 1 else "unclear"


@dataclass(frozen=True, kw_only=True)
class Comparison:
    """Two sides, and which of their things are the same."""

    baseline: Side
    candidate: Side
    in_turns: bool
    was: dict[Group, Group]  # the baseline's group for each of the candidate's
    vanished: tuple[Group, ...]
    variants: dict[Variant, str]  # what tells those of one kernel apart

    def title(self, group: Group) -> str:
        """What a thing is called."""
        which = self.variants.get(group.variant, "")
        return f"{group} ({which})" if which else str(group)

    def change(self, group: Group, stat: str, error: float, reference: str = "") -> Change:
        """One scope of the candidate; `error` is the probability that one end misses."""
        was = self.was.get(group)
        after = self.candidate.values(group, stat)
        before = np.zeros(0) if was is None else self.baseline.values(was, stat)
        unit, pairs = PROCESSES, self.in_turns
        if was and before.size == after.size == 1 and not reference:
            unit, pairs = LAUNCHES, False
            before = self.baseline.launch_values(was, stat)
            after = self.candidate.launch_values(group, stat)
        shown = {"before": _there(before), "after": _there(after)}
        if reference and was:
            before = before / _beside(self.baseline, reference, stat)
            after = after / _beside(self.candidate, reference, stat)
        ratio = None if was is None else _ratio(before, after, error, pairs)
        title = self.title(group)
        return Change(group=group, was=was, stat=stat, title=title, unit=unit, ratio=ratio, **shown)

    def lost(self, group: Group, stat: str) -> Change:
        """One that vanished."""
        before = _there(self.baseline.values(group, stat))
        return Change(
            group=group, was=group, stat=stat, title=self.title(group), before=before,
            after=np.zeros(0),
        )  # fmt: skip


def compare(baseline: Side, candidate: Side) -> Comparison:
    """Matches what the sides have."""
    known = set(baseline.groups)
    variants = match(baseline.groups, candidate.groups)
    was = {}
    for group in candidate.groups:
        old = variants.get(group.variant)
        if old is not None and group._replace(variant=old) in known:
            was[group] = group._replace(variant=old)
    gone = tuple(group for group in baseline.groups if group not in set(was.values()))
    return Comparison(
        baseline=baseline,
        candidate=candidate,
        in_turns=in_turns(baseline, candidate),
        was=was,
        vanished=gone,
        variants=differences([*candidate.groups, *gone]),
    )


def diff(
    baseline: Side,
    candidate: Side,
    *,
    stat: str = "p50",
    error: float = ERROR,
    reference: str = "",
) -> list[Change]:
    """All changes: launches, then scopes, those with most time first. All intervals together miss
    on a side with probability `error` at most (Bonferroni: each with its share of it)."""
    if stat not in STATS:
        known = ", ".join(STATS)
        raise ProtonError(f"stat must be one of {known}, got {stat}{did_you_mean(stat, STATS)}")
    both = compare(baseline, candidate)
    groups = candidate.groups
    share = error / max(len(both.was), 1)
    changes = [both.change(group, stat, share, reference) for group in groups]
    found = [*changes, *(both.lost(group, stat) for group in both.vanished)]
    return sorted(found, key=lambda change: (bool(change.group.scope), -_time(both, change)))


def _time(both: Comparison, change: Change) -> float:
    """What a thing takes in all, on the side where that is more."""
    sides = (both.baseline, change.was), (both.candidate, change.group)
    totals = [_there(side.totals(group)) for side, group in sides if group is not None]
    return max((float(np.median(values)) for values in totals if values.size), default=0.0)


def _there(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _ratio(before: np.ndarray, after: np.ndarray, error: float, pairs: bool) -> Estimate | None:
    """The estimate from what is there on both sides."""
    if pairs:
        both = ~np.isnan(before) & ~np.isnan(after)
        before, after = before[both], after[both]
    before, after = _there(before), _there(after)
    if not before.size or not after.size:
        return None
    return statistics.ratio(before, after, error=error, in_turns=pairs)


def _beside(side: Side, reference: str, stat: str) -> np.ndarray:
    """What the reference took in each process."""
    found = [group for group in side.groups if str(group) == reference]
    if not found:
        known = [str(group) for group in side.groups]
        hint = did_you_mean(reference, known)
        rule = "reference must be a KERNEL or KERNEL/SCOPE of the runs"
        raise ProtonError(f"{rule}, got {reference!r}{hint}")
    return side.values(found[0], stat)
