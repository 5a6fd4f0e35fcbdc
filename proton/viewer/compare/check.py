"""The gate: whether the candidate keeps to its budgets, and where that cannot be told.

Against a baseline, with a budget of `max_regression` m and the ratio's interval:

- **regression** where the estimate is beyond 1 + m and the whole interval is beyond 1: it is slower
  for sure, and by more than the budget as far as one can tell.
- **pass** where the estimate is within 1 + m and the whole interval is below 1 + 2 m.
- **inconclusive** otherwise: more processes will tell.

So code that did not change fails with at most the probability `false_alarms`, and code that is
slower by 2 m or more passes with at most the same. Each end of each interval has its share of it
(Bonferroni: over all rules, things and looks at growing samples), so that both hold for the
check as a whole. Of `max_ns` the interval of the candidate's value decides: above it a
regression, below it a pass, else inconclusive.
"""

from __future__ import annotations

import enum
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from proton.base.symbols import shortened
from proton.base.words import counted, known_names
from proton.viewer.compare import statistics
from proton.viewer.compare.budget import Budget, BudgetError, Budgets
from proton.viewer.compare.diff import Change, Comparison, compare, group_called
from proton.viewer.compare.samples import (
    AVERAGED,
    LAUNCHES,
    PROCESSES,
    Group,
    Process,
    Side,
    amount,
)
from proton.viewer.compare.statistics import Estimate
from proton.viewer.compare.structure import MEASURES, NOTHING, Measure, unknown
from proton.viewer.explain.subject import Subject

LARGEST = 100.0  # ratio that is written as it is


class Status(enum.Enum):
    """What became of a rule; the value is the exit status of a check with such an end."""

    PASS = 0
    REGRESSION = 1
    INCONCLUSIVE = 3
    SKIPPED = 4  # of a rule whose `where` holds for nothing here; never of a check

    @property
    def word(self) -> str:
        return self.name.lower()


WORST_FIRST = (Status.REGRESSION, Status.INCONCLUSIVE, Status.PASS, Status.SKIPPED)


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What one rule says of one scope: a limit, and the estimate that is held against it.

    `estimate` is a ratio where `limit` is one (1.05 of 5 %), and in ns where `limit` is.
    """

    title: str
    status: Status
    reason: str
    limit: float = 0.0
    estimate: Estimate | None = None
    change: Change | None = None
    source: tuple[str, int] = ("", 0)
    measured: tuple[float, ...] = ()  # a measure of structure, of each process
    value: str = ""  # their median, with its unit
    is_final: bool = False  # whether more processes would say the same


@dataclass(frozen=True, kw_only=True)
class Report:
    """The end of a check."""

    findings: Sequence[Verdict]
    false_alarms: float
    in_turns: bool
    processes: tuple[int, int]  # of baseline and candidate
    changes: Sequence[Change] = ()  # all scopes, for pictures and tables

    @property
    def status(self) -> Status:
        """The worst of all."""
        found = [f.status for f in self.findings if f.status is not Status.SKIPPED]
        return min(found, key=WORST_FIRST.index, default=Status.PASS)

    @property
    def is_open(self) -> bool:
        """Whether it is inconclusive, and more processes may tell."""
        left = self.having(Status.INCONCLUSIVE) if self.status is Status.INCONCLUSIVE else ()
        return any(not finding.is_final for finding in left)

    def having(self, status: Status) -> list[Verdict]:
        """The findings of one status."""
        return [finding for finding in self.findings if finding.status is status]


def check(candidate: Side, baseline: Side | None, budgets: Budgets, *, looks: int = 1) -> Report:
    """Holds the candidate against its budgets; `looks` is how often this is asked of growing
    samples until there is an answer."""
    if baseline is None and any(rule.max_regression for rule in budgets.budgets):
        raise BudgetError("a budget has max_regression, which needs a baseline to compare with")
    both = compare(baseline or Side(processes=()), candidate)
    timed = [rule for rule in budgets.budgets if rule.is_timed]
    for reference in {rule.reference for rule in timed if rule.reference}:
        group_called(candidate, reference)  # also where none is compared with a baseline
    todo = [(rule, group) for rule in timed for group in _covered(rule, both)]
    questions = sum((rule.max_ns is not None) + (rule.max_regression is not None)
                    for rule, _ in todo)  # fmt: skip
    questions += sum(len(rule.structure) for rule in budgets.budgets)
    error = budgets.false_alarms / max(questions * looks, 1)
    findings = _wholeness(budgets, [*both.baseline.processes, *candidate.processes])
    for rule, group in todo:
        findings += _findings(rule, group, both, error, budgets.min_processes)
    findings += [_skipped(rule) for rule in timed if rule not in {r for r, _ in todo}]
    findings += structural(candidate, budgets.budgets, error)
    findings = list(_apart(findings))
    shown = [f.change for f in findings if f.change]
    return Report(
        findings=sorted(findings, key=lambda f: WORST_FIRST.index(f.status)),
        false_alarms=budgets.false_alarms,
        in_turns=both.in_turns,
        processes=(len(both.baseline.processes), len(candidate.processes)),
        changes=shown,
    )


def _covered(rule: Budget, both: Comparison) -> list[Group]:
    """What the rule is about: things of the candidate, and those that vanished; raises BudgetError
    where there is nothing of that name."""
    groups = [*both.candidate.groups, *both.vanished]
    named = [group for group in groups if rule.covers(group)]
    if not named:
        known = list(dict.fromkeys(group.shown for group in groups))
        name = f"{rule.kernel}/{rule.scope}" if rule.scope else rule.kernel
        raise BudgetError(f"budget {rule.title}: {_unnamed('nothing', name, known)}")
    return [group for group in named if rule.holds_for(group, _facts(both, group))]


def _apart(findings: Sequence[Verdict]) -> Iterator[Verdict]:
    """The findings with titles that differ: several budgets may be of one thing."""
    seen = Counter[str]()
    for finding in findings:
        seen[finding.title] += 1
        again = f" ({seen[finding.title]})" if seen[finding.title] > 1 else ""
        yield replace(finding, title=finding.title + again)


def _unnamed(nothing: str, name: str, known: Sequence[str]) -> str:
    """Why a rule is about nothing."""
    if not known:
        return "no launch was recorded"
    return f"{nothing} has that name; there is {known_names(name, known)}"


def _facts(both: Comparison, group: Group) -> dict[str, str]:
    return both.candidate.facts(group.variant) or both.baseline.facts(group.variant)


def _wholeness(budgets: Budgets, processes: Sequence[Process]) -> list[Verdict]:
    """A regression for each run that lacks something that may not be missing."""
    found = []
    for process in processes:
        bad = process.lost and not budgets.allow_losses
        bad |= process.partial and not budgets.allow_partial
        if bad:
            reason = "; ".join(process.missing)
            found.append(
                Verdict(title=f"{process.path} is whole", status=Status.REGRESSION, reason=reason)
            )
    return found


def _skipped(rule: Budget) -> Verdict:
    return Verdict(
        title=rule.title, status=Status.SKIPPED, reason="its where holds for nothing here"
    )


def _findings(
    rule: Budget, group: Group, both: Comparison, error: float, least: int
) -> list[Verdict]:
    """What a rule says of one thing: an answer for each of its limits."""
    source = both.candidate.sources.get(group._replace(warp=Group._field_defaults["warp"]), ("", 0))
    title = f"{both.title(group)} {rule.stat}"
    if group in both.vanished and group not in both.candidate.groups:
        change = both.lost(group, rule.stat, rule.reference)
        reason = "vanished: the baseline has it, the candidate does not"
        return [Verdict(title=title, status=Status.INCONCLUSIVE, reason=reason, change=change,
                        is_final=True)]  # fmt: skip
    found = []
    if rule.max_regression is not None:
        change = both.change(group, rule.stat, error, rule.reference)
        step = max(both.baseline.step_ns(group), both.candidate.step_ns(group))
        found.append(_against_baseline(rule, title, change, least, source, step))
    if rule.max_ns is not None:
        change = both.change(group, rule.stat, error, unit=PROCESSES)
        by = " by itself" if rule.max_regression is not None else ""
        sampled = both.candidate.sampled(group, rule.stat)
        found.append(_absolute(rule, title + by, change, error, least, source, sampled))
    return found


def _against_baseline(
    rule: Budget, title: str, change: Change, least: int, source: tuple[str, int], step_ns: float
) -> Verdict:
    """... by clocks that go in steps of `step_ns`: a percentile of either side is off by up to one,
    where a mean of many is not."""
    assert rule.max_regression is not None
    allowed, ratio, note = rule.max_regression, change.ratio, ""
    steps = 0.0 if rule.stat in AVERAGED else 2 * step_ns
    if change.before.size and max(rule.min_change_ns, steps):
        typical = statistics.level(change.before, error=0.5).value
        if steps / typical > max(allowed, rule.min_change_ns / typical):
            note = f", two of the clock's steps of {step_ns:g} ns"
        allowed = max(allowed, rule.min_change_ns / typical, steps / typical)
    limit = 1 + allowed
    said = f"allowed {percent(limit)}{note}"
    if ratio is None:
        status, reason = Status.INCONCLUSIVE, "added: the baseline does not have it"
    elif change.unlike:
        status, reason = Status.INCONCLUSIVE, change.unlike
    elif change.unit != PROCESSES or ratio.processes < least:
        status, reason = Status.INCONCLUSIVE, _too_few(ratio.processes, change, least)
    elif ratio.value > limit and ratio.low > 1:
        status, reason = Status.REGRESSION, f"{percent(ratio.value)}, {said}"
    elif ratio.value <= limit and ratio.high < 1 + 2 * allowed:
        status, reason = Status.PASS, f"{percent(ratio.value)}, {said}"
    else:
        status, reason = Status.INCONCLUSIVE, _unsure(ratio, said)
    return Verdict(
        title=title, status=status, reason=reason + _of_reference(change), limit=limit,
        estimate=ratio, change=change, source=source, is_final=bool(change.unlike),
    )  # fmt: skip


def _of_reference(change: Change) -> str:
    """What became of the reference."""
    beside = change.beside
    if beside is None:
        return ""
    if not beside.is_noise:
        return f"; beside {beside.name}"
    if beside.is_used:
        return f"; {beside.name} adds noise: measure both sides in turns, or without a reference"
    return f"; {beside.name} adds noise and is not used"


def _absolute(
    rule: Budget, title: str, change: Change, error: float, least: int, source: tuple[str, int],
    sampled: str,
) -> Verdict:  # fmt: skip
    """Of a sum of which options left out a part, `sampled`, there is no answer."""
    assert rule.max_ns is not None
    found = statistics.level(change.after, error=error)
    value, most, *ends = (
        amount(ns, rule.stat) for ns in (found.value, rule.max_ns, found.low, found.high)
    )
    said = f"{value}, allowed {most}"
    if sampled:
        status, reason = Status.INCONCLUSIVE, f"some visits alone are on record ({sampled})"
    elif found.processes < least:
        status, reason = Status.INCONCLUSIVE, _too_few(found.processes, None, least)
    elif found.low > rule.max_ns:
        status, reason = Status.REGRESSION, said
    elif found.high <= rule.max_ns:
        status, reason = Status.PASS, said
    else:
        status = Status.INCONCLUSIVE
        reason = f"{said}: it may be anything from {' to '.join(ends)}"
    return Verdict(
        title=title, status=status, reason=reason, limit=rule.max_ns, estimate=found,
        change=change, source=source, is_final=bool(sampled),
    )  # fmt: skip


# Structure


def structural(candidate: Side, rules: Sequence[Budget], error: float) -> list[Verdict]:
    """What the budgets of structure say. Of what is exact the worst process counts; of the rest
    the median of processes, told by how many of them keep to the limit (a sign test)."""
    rules = [rule for rule in rules if rule.structure]
    if not rules:
        return []
    found: dict[tuple[int, str, str], list[float | str]] = {}
    named, lacking, known = set[int](), dict[int, str](), dict[str, None]()
    for process in candidate.processes:
        run = process.run()
        variants = dict(zip(map(id, run.kernels), Side.variants(run.kernels), strict=True))
        for view in Subject(run).kernels:
            group = Group(variants[id(view.kernel)], "")
            known[group.shown] = None
            for number, rule in enumerate(rules):
                if not rule.is_of_kernel(view.kernel.name):
                    continue
                if lacks := unknown(view, rule.asked):
                    lacking.setdefault(number, lacks)
                    continue
                named.add(number)
                if not rule.holds_for(group, candidate.facts(group.variant)):
                    continue
                for name in rule.structure:
                    values = found.setdefault((number, name, view.label), [])
                    values.append(MEASURES[name].worst(view, rule.asked))
    for number, rule in enumerate(rules):
        if number not in named:
            why = lacking.get(number) or _unnamed("no kernel", rule.kernel, list(known))
            raise BudgetError(f"budget {rule.title}: {why}")
    verdicts = [_held(rules[number], name, kernel, values, len(candidate.processes), error)
                for (number, name, kernel), values in found.items()]  # fmt: skip
    skipped = set(range(len(rules))) - {number for number, _, _ in found}
    return verdicts + [_skipped(rules[number]) for number in sorted(skipped)]


def _held(
    rule: Budget, name: str, kernel: str, found: list[float | str], processes: int, error: float
) -> Verdict:
    """One measure of a kernel against its limit: what each process has, or why it has not."""
    measure, limit = MEASURES[name], rule.structure[name]
    kernel = shortened(kernel)
    values = [value for value in found if not isinstance(value, str)]
    thing = f"{kernel}/{rule.scope}" if rule.scope else kernel
    warp = f", warp {rule.warp}" if rule.warp is not None else ""
    warp += f", role {rule.role}" if rule.role else ""
    of = f" of {' < '.join(rule.order)}" if name == "order" else ""
    of += f" per {rule.per}" if rule.per and of else ""
    by = f" by {rule.hidden_by}" if rule.hidden_by else ""
    title = f"{thing}{warp} {measure.title}{by}{of}"
    if len(values) < processes:
        why = next((value for value in found if isinstance(value, str)), NOTHING)
        reason = f"{processes - len(values)} of {processes} runs {why}"
        return Verdict(title=title, status=Status.INCONCLUSIVE, reason=reason, limit=limit,
                       is_final=not values)  # fmt: skip
    middle = sorted(values)[len(values) // 2]
    if measure.is_exact:
        middle = max(values) if measure.is_most else min(values)
    bad = sum(value > limit if measure.is_most else value < limit for value in values)
    word = "most" if measure.is_most else "least"
    said = f"{measure.shown(middle)}, allowed at {word} {measure.shown(limit)}"
    status, why = _answer(measure, bad, len(values), error)
    return Verdict(title=title, status=status, reason=said + why, limit=limit,
                   measured=tuple(values), value=measure.shown(middle))  # fmt: skip


def _answer(measure: Measure, bad: int, count: int, error: float) -> tuple[Status, str]:
    """Of `count` processes that many break the limit."""
    if measure.is_exact:
        return (Status.REGRESSION if bad else Status.PASS), ""
    if statistics.sign_test(bad, count) <= error:
        return Status.REGRESSION, ""
    if statistics.sign_test(count - bad, count) <= error:
        return Status.PASS, ""
    of = counted(count, "process", "processes")
    return Status.INCONCLUSIVE, f"; broken by {bad} of {of}: measure more"


def percent(ratio: float) -> str:
    """1.053 as +5.3 %; the end of an interval that tells nothing may be a number of 200 digits."""
    if ratio > LARGEST:
        return f"beyond {percent(LARGEST)}"
    return f"{100 * (ratio - 1):+.1f} %"


def _too_few(count: int, change: Change | None, least: int) -> str:
    several = 1 if change is not None and change.unit == LAUNCHES else count
    return f"{several} of the {least} processes a side that an answer takes"


def _unsure(ratio: Estimate, said: str) -> str:
    span = f"{percent(ratio.low)} to {percent(ratio.high)}"
    return f"it may be anything from {span}, {said}: measure more processes"
