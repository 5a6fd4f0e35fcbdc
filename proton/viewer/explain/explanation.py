"""All findings of a run, in order of the time at stake, as text, JSON and HTML."""

from __future__ import annotations

import shlex
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass

import numpy as np

from proton.base import markup
from proton.base.symbols import shortened
from proton.base.text import printable
from proton.base.units import duration
from proton.base.words import counted
from proton.trace.chrome import UNKNOWN_GPU
from proton.viewer.explain.finding import ALL, OF_TRITON, Finding, SliceToOpen, Unrecorded
from proton.viewer.explain.rule import rules
from proton.viewer.explain.subject import KernelView, Subject
from proton.viewer.tables import Tables

TOP = 3  # scopes of a kernel that are named
NOTHING = "no finding: nothing that was recorded stands out"
LINES = "; proton-tile source has the time by line"
EMPTY = "no finding: no launch was recorded"


@dataclass(frozen=True, kw_only=True)
class KernelTime:
    """What a kernel took: its launches, and the part of each of its longest scopes in percent of
    what is recorded."""

    kernel: str
    launches: int
    time_ns: float
    scopes: tuple[tuple[str, float], ...]


@dataclass(frozen=True, kw_only=True)
class Explanation:
    """What `explain` says of a run: findings, those with most time at stake first;
    what happens once stands behind them."""

    run: str
    time_ns: float  # of all launches, as far as they repeat
    kernels: Sequence[KernelTime]
    findings: Sequence[Finding]
    unrecorded: Sequence[Unrecorded]
    warnings: Sequence[str]
    has_lines: bool = False  # whether scopes in kernels were recorded

    def __iter__(self) -> Iterator[Finding]:
        return iter(self.findings)

    def __len__(self) -> int:
        return len(self.findings)

    def share(self, finding: Finding) -> float:
        """What a finding's gain is of the time of all launches, in percent; of what is between
        them, or happens once, of both together."""
        is_beside = finding.between_launches or finding.happens_once
        whole = self.time_ns + finding.gain_ns * is_beside
        return 100 * finding.gain_ns / max(whole, 1.0)

    def to_json(self) -> dict[str, object]:
        """The fields of its document."""
        found = [{**asdict(f), "numbers": dict(f.numbers), "gain_percent": self.share(f)}
                 for f in self.findings]  # fmt: skip
        return {
            "run": self.run,
            "time_ns": self.time_ns,
            "kernels": [asdict(kernel) for kernel in self.kernels],
            "findings": found,
            "unrecorded": [asdict(each) for each in self.unrecorded],
            "warnings": list(self.warnings),
        }

    def lines(self, file: str) -> Iterator[tuple[str, Sequence[str]]]:
        """A sentence, and the lines below it, for each finding; `file` is what commands name."""
        for finding in self.findings:
            opens = (f"open: {command(s, file, finding.between_launches)}" for s in finding.slices)
            yield head(finding), [*self.reasons(finding), *opens]

    def reasons(self, finding: Finding) -> Iterator[str]:
        """What is at stake, what to try or to record, and what that rests on: a line each."""
        if finding.gain_ns:
            yield (
                f"at stake: {duration(finding.gain_ns)} "
                f"{'beside' if finding.between_launches or finding.happens_once else 'of'} "
                f"{duration(self.time_ns)} of "
                f"launches ({self.share(finding):.0f} %)"
            )
        if finding.advice:
            yield f"try: {finding.advice}"
        if finding.record:
            yield f"record: {finding.record}"
        yield f"rests on: {basis(finding)}"

    @property
    def nothing(self) -> str:
        """What is said where there is no finding."""
        return NOTHING + LINES * self.has_lines if self.kernels else EMPTY

    def _repr_html_(self) -> str:
        """The findings in a notebook."""
        parts = [
            f"<li><b>{markup.text(title)}</b><br>{'<br>'.join(map(markup.text, below))}</li>"
            for title, below in self.lines("RUN")
        ]
        found = f"<ol>{''.join(parts)}</ol>" if parts else f"<div>{self.nothing}</div>"
        missing = "".join(f"<div>{markup.text(line)}</div>" for line in unrecorded(self))
        return found + missing + markup.warnings(self.warnings)


def head(finding: Finding) -> str:
    """The finding in a sentence."""
    place = f" ({finding.file.rpartition('/')[2]}:{finding.line})" if finding.file else ""
    kernel = shortened(finding.kernel)
    return f"{kernel}: {finding.sentence}{place}" if kernel else finding.sentence


def basis(finding: Finding) -> str:
    """What it rests on, in a line."""
    parts = [f"{finding.visits} measured"] if finding.visits else []
    parts += [f"times within {duration(finding.error_ns)}"] if finding.error_ns else []
    parts += [f"{_words(name)} {_number(name, value)}" for name, value in finding.numbers.items()]
    return f"{', '.join(parts)} [{finding.rule}]"


def _words(name: str) -> str:
    for suffix in ("_ns", "_percent", "_bytes"):
        name = name.removesuffix(suffix)
    return name.replace("_", " ")


def _number(name: str, value: float) -> str:
    if name.endswith("_ns"):
        return duration(value)
    if name.endswith("_percent"):
        return f"{value:.1f} %"
    return f"{value:g}"


def command(shown: SliceToOpen, file: str, is_pause: bool = False) -> str:
    """The command that draws it; of a pause what is around, so that the launch before is there."""
    around = max(shown.dur_ns, 1)
    launch = "" if is_pause else f" --launch {shown.launch}"
    place = f" --sm {shown.sm}" if shown.sm >= 0 else ""
    times = f" --start {max(shown.start_ns - around, 0)} --end {shown.start_ns + 2 * around}"
    part = times if is_pause or shown.unit >= 0 else ""
    return printable(f"proton-tile timeline {shlex.quote(file)}{launch}{place}{part}")


def unrecorded(found: Explanation) -> list[str]:
    """Each thing that was not recorded, once, with the option that records it."""
    asked: dict[tuple[str, str], list[str]] = {}
    for each in found.unrecorded:
        asked.setdefault((each.option, each.needs), []).append(shortened(each.kernel))
    known = {shortened(kernel.kernel) for kernel in found.kernels}
    return [
        f"{option} records {needs} ({ALL if is_of_all else ', '.join(dict.fromkeys(kernels))})"
        for (option, needs), kernels in asked.items()
        for is_of_all in [len(known) > 1 and known <= set(kernels)]
    ]


def title(kernel: KernelTime, found: Explanation) -> str:
    """What a kernel took, in a line, without what its first launch took longer."""
    once = sum(f.gain_ns for f in found if f.happens_once and f.kernel == kernel.kernel)
    without = f" without {duration(once)} of its start" if once else ""
    parts = ", ".join(f"{path} {part:.0f} %" for path, part in kernel.scopes)
    launches = counted(kernel.launches, "launch", "launches")
    return f"{shortened(kernel.kernel)}: {launches}, {duration(kernel.time_ns)}{without}" + (
        f"; {parts}" if parts else "; no scopes"
    )


def explain(tables: Tables) -> Explanation:
    """Asks all rules."""
    subject = Subject(tables)
    said = [each for rule in rules().values() for each in rule.find(subject)]
    findings = [each for each in said if isinstance(each, Finding)]
    kernels = sorted(subject.kernels, key=lambda kernel: -kernel.time_ns)
    return Explanation(
        run=tables.name,
        time_ns=subject.time_ns,
        kernels=tuple(map(_time, kernels)),
        findings=tuple(_ranked(findings)),
        unrecorded=_of_triton(subject)
        or tuple(each for each in said if isinstance(each, Unrecorded)),
        warnings=tuple(tables.loss_warnings()),
        has_lines=bool(tables.totals.slices),
    )


def _of_triton(subject: Subject) -> tuple[Unrecorded, ...]:
    """What a trace of Triton's Proton lacks, which has kernels or what is inside of them; nothing
    for other runs."""
    if not subject.kernels or any(k.kernel.target != UNKNOWN_GPU for k in subject.kernels):
        return ()
    has = {"launch-gaps", "waits"} if subject.tables.totals.slices else {"launch-gaps"}
    return tuple(each for each in OF_TRITON if each.rule not in has)


def _ranked(findings: list[Finding]) -> list[Finding]:
    """By what is at stake; ahead of what comes behind others the greatest of these."""
    by_gain = sorted(findings, key=lambda f: (f.happens_once, -f.gain_ns))
    ranked: list[Finding] = []
    for each in by_gain:
        reasons = (f for f in by_gain if f.kernel == each.kernel and not f.happens_once)
        why = next((f for f in reasons if f.rule in rules()[each.rule].behind), None)
        ranked += [f for f in (why, each) if f and not any(f is other for other in ranked)]
    return ranked


def _time(kernel: KernelView) -> KernelTime:
    subject = kernel.subject
    rows = kernel.rows
    times = subject.self_ns[rows] * subject.weight[rows]
    sums = np.bincount(subject.records.scope[rows], times, len(subject.scopes))
    paths: dict[str, float] = {}
    for scope in kernel.scope_rows:
        path = subject.scopes[scope].path
        paths[path] = paths.get(path, 0.0) + float(sums[scope])
    whole = max(sum(paths.values()), 1.0)
    order = sorted(paths.items(), key=lambda item: -item[1])[:TOP]
    return KernelTime(
        kernel=kernel.label,
        launches=kernel.launches.size,
        time_ns=kernel.time_ns,
        scopes=tuple((path, 100 * ns / whole) for path, ns in order),
    )
