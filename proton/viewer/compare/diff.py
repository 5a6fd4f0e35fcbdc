"""What changed between two sides, scope by scope."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from proton.base.errors import ProtonError
from proton.base.words import did_you_mean
from proton.viewer.compare import statistics
from proton.viewer.compare.matching import differences, match
from proton.viewer.compare.samples import (
    COUNT,
    LAUNCHES,
    LOSSES,
    PROCESSES,
    STATS,
    Group,
    Side,
    Variant,
    in_turns,
)
from proton.viewer.compare.statistics import Estimate

ERROR = 0.01  # that any of all intervals misses its value on a side
NOISIER = 1.02  # times the width of an interval: less is a matter of chance
LEAST = 5  # processes, or launches, of a side: fewer tell nothing


@dataclass(frozen=True, kw_only=True)
class Beside:
    """What was measured beside a scope: the reference, and the scope divided by it, both of
    baseline and candidate.

    It `is_used` unless sides that alternated agree better without it: it takes out what slows down
    a whole process, and brings in its own noise. Sides that did not alternate need it all the same,
    against what changed in between.
    """

    name: str
    values: tuple[np.ndarray, np.ndarray]
    normalised: tuple[np.ndarray, np.ndarray]
    is_noise: bool
    is_used: bool


@dataclass(frozen=True, kw_only=True)
class Change:
    """One scope on both sides; what only one side has is `added` or `vanished`.

    `before` and `after` are what the processes of either side measured. `ratio` is of them, of
    those divided by what is `beside` where that is used, and of `unit`: "launches" where each side
    is one process, which says nothing of other processes.
    """

    group: Group  # the candidate's; the baseline's where it vanished
    was: Group | None  # the baseline's
    stat: str
    before: np.ndarray
    after: np.ndarray
    title: str = ""  # the group, and of several variants which
    unit: str = PROCESSES
    ratio: Estimate | None = None
    beside: Beside | None = None
    is_alone: bool = False  # nothing was there to compare with
    unlike: str = ""  # why sums of both sides are not of the same visits; empty where they are

    @property
    def kind(self) -> str:
        """What became of the scope, as far as that is sure; empty where nothing is compared."""
        if self.is_alone:
            return ""
        if not self.after.size or not self.before.size:
            return "vanished" if self.before.size else "added"
        if self.ratio is None or self.ratio.processes < LEAST:
            return "too few"
        if self.unlike:
            return "unclear"
        more, less = ("more", "fewer") if self.stat == COUNT else ("slower", "faster")
        if self.ratio.low == self.ratio.high == 1:
            return "same"
        if self.ratio.low > 1:
            return more
        return less if self.ratio.high < 1 else "unclear"


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
        return f"{group.shown} ({which})" if which else group.shown

    def _unit(self, group: Group, stat: str, reference: str) -> str:
        """What is compared of a thing: launches where each side is one process. How many there are
        of them is of the process all the same, and so is what a reference divides."""
        sides = [self.baseline.processes, self.candidate.processes]
        is_number = stat == COUNT and not group.scope
        has_launches = all(len(side) == 1 and side[0].batches for side in sides)
        return LAUNCHES if has_launches and not is_number and not reference else PROCESSES

    def change(
        self, group: Group, stat: str, error: float, reference: str = "", unit: str = ""
    ) -> Change:
        """One scope of the candidate; `error` is the probability that one end misses. `unit` is
        what is compared, where that is not to be chosen."""
        was = self.was.get(group)
        unit = unit or self._unit(group, stat, reference)
        pairs = self.in_turns and unit == PROCESSES
        before = np.zeros(0) if was is None else self.baseline.of_unit(unit, was, stat)
        after = self.candidate.of_unit(unit, group, stat)
        is_beside = bool(reference and was) and not group.is_called(reference) and stat != COUNT
        if is_beside and self.in_turns:
            error /= 2  # of two intervals the narrower one is taken: either may miss
        ratio = None if was is None else _ratio(before, after, error, pairs)
        beside = None
        if is_beside:
            ratio, beside = self._with_reference(reference, stat, ratio, (before, after), error)
        return Change(
            group=group, was=was, stat=stat, title=self.title(group), unit=unit, ratio=ratio,
            beside=beside, before=_there(before), after=_there(after),
            is_alone=not self.baseline.processes,
            unlike="" if was is None else self._unlike(was, group, stat),
        )  # fmt: skip

    def _unlike(self, was: Group, group: Group, stat: str) -> str:
        old, new = self.baseline.sampled(was, stat), self.candidate.sampled(group, stat)
        is_alike = old == new and LOSSES not in old
        return "" if is_alike else (
            f"recorded with {new or 'all visits'}, the baseline with {old or 'all visits'}"
        )  # fmt: skip

    def _with_reference(
        self,
        reference: str,
        stat: str,
        plain: Estimate | None,
        values: tuple[np.ndarray, np.ndarray],
        error: float,
    ) -> tuple[Estimate | None, Beside]:
        """The ratio of what is divided by the reference, or the plain one where that tells more."""
        sides = [_beside(side, reference, stat) for side in (self.baseline, self.candidate)]
        before, after = (own / of for own, of in zip(values, sides, strict=True))
        ratio = _ratio(before, after, error, self.in_turns)
        is_noise = plain is not None and ratio is not None and _adds_noise(ratio, plain)
        is_used = not (is_noise and self.in_turns)
        beside = Beside(
            name=reference, values=(_there(sides[0]), _there(sides[1])),
            normalised=(_there(before), _there(after)), is_noise=is_noise, is_used=is_used,
        )  # fmt: skip
        return ratio if is_used else plain, beside

    def lost(self, group: Group, stat: str, reference: str = "") -> Change:
        """One that vanished."""
        unit = self._unit(group, stat, reference)
        before = _there(self.baseline.of_unit(unit, group, stat))
        return Change(
            group=group, was=group, stat=stat, title=self.title(group), unit=unit, before=before,
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
    found = [*changes, *(both.lost(group, stat, reference) for group in both.vanished)]
    return sorted(found, key=lambda change: (bool(change.group.scope), -_time(both, change)))


def _time(both: Comparison, change: Change) -> float:
    """What a thing takes in all, on the side where that is more."""
    sides = (both.baseline, change.was), (both.candidate, change.group)
    totals = [_there(side.totals(group)) for side, group in sides if group is not None]
    return max((float(np.median(values)) for values in totals if values.size), default=0.0)


def _there(values: np.ndarray) -> np.ndarray:
    return values[~np.isnan(values)]


def _adds_noise(with_: Estimate, without: Estimate) -> bool:
    """Whether an interval is wider, by more than rounding."""
    return with_.noise > without.noise * NOISIER + 1e-9


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
    return side.values(group_called(side, reference), stat)


def group_called(side: Side, reference: str) -> Group:
    """The first thing of a side with the name of a reference; raises ProtonError for none."""
    found = [group for group in side.groups if group.is_called(reference)]
    if not found:
        known = [group.shown for group in side.groups]
        hint = did_you_mean(reference, known)
        rule = "reference must be a KERNEL or KERNEL/SCOPE of the runs"
        raise ProtonError(f"{rule}, got {reference!r}{hint}")
    return found[0]
