"""Comparisons and checks as rows, Markdown, JSON, JUnit XML and GitHub annotations."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from pathlib import Path
from xml.etree import ElementTree

import numpy as np

from proton.base.text import printable
from proton.viewer.compare.check import Report, Status, Verdict, percent
from proton.viewer.compare.diff import Beside, Change
from proton.viewer.compare.matching import arguments
from proton.viewer.compare.samples import COUNT, LAUNCHES, PROCESSES, amount
from proton.viewer.compare.statistics import Estimate
from proton.viewer.documents import document

# Columns: those of a reference are there where one is, those of sides where there is a baseline.
SIDES = ("before", "after", "change")
REFERENCE = ("reference", "normalised")
NUMBERS = (*SIDES, *REFERENCE, "value", "interval")
APART = 0.01  # of ratios, from which both are told
ONE = {PROCESSES: "process", LAUNCHES: "launch"}


def change_table(changes: Sequence[Change]) -> tuple[tuple[str, ...], list[list[str]]]:
    """Columns, and a row a scope."""
    beside = REFERENCE if any(change.beside for change in changes) else ()
    columns = ("scope", "stat", *SIDES, *beside, "interval", "n", "")
    rows = [
        {"scope": name(change), "stat": change.stat, "n": _count(change), "": change.kind,
         "interval": interval(change.ratio), **_sides(change)}
        for change in changes
    ]  # fmt: skip
    return columns, [[row[column] for column in columns] for row in rows]


def finding_table(
    report: Report, columns: Sequence[str] = ()
) -> tuple[Sequence[str], list[list[str]]]:
    """Columns, those that are asked for or those that have something, and a row a finding."""
    if not columns:
        sides = SIDES if report.processes[0] else ("value",)
        changes = [finding.change for finding in report.findings if finding.change]
        beside = REFERENCE if any(change.beside for change in changes) else ()
        columns = ("status", "what", *sides, *beside, "interval", "why")
    rows = map(_finding, report.findings)
    return columns, [[row[column] for column in columns] for row in rows]


def _finding(finding: Verdict) -> dict[str, str]:
    change = finding.change
    sides = dict.fromkeys((*SIDES, *REFERENCE), "") if change is None else _sides(change)
    if not _is_ratio(finding):
        sides |= {"change": "", "reference": "", "normalised": ""}
    if change is None:
        sides["after"] = finding.value
    return {
        "status": finding.status.word,
        "what": finding.title,
        "value": _value(finding),
        "interval": _span(finding),
        "why": finding.reason,
        **sides,
    }


def _sides(change: Change) -> dict[str, str]:
    """Both medians, and the ratio; of the reference, too, and of what is divided by it."""
    beside = change.beside
    of = both = ""
    if beside is not None:
        of = " -> ".join(typical(values, change.stat) for values in beside.values)
        both = " -> ".join(f"{np.median(v):.4g}" for v in beside.normalised if v.size)
    return {
        "before": typical(change.before, change.stat),
        "after": typical(change.after, change.stat),
        "change": _change(change),
        "reference": of,
        "normalised": both if beside is None or beside.is_used else f"{both}: noise, not used",
    }


def _change(change: Change) -> str:
    """The estimate of the ratio; with that of the medians beside it where the two are apart, as
    processes that vary are compared pair by pair."""
    if change.ratio is None:
        return ""
    found, beside = percent(change.ratio.value), change.beside
    sides = beside.normalised if beside and beside.is_used else (change.before, change.after)
    before, after = (float(np.median(values)) if values.size else 0.0 for values in sides)
    if not before or abs(after / before - change.ratio.value) < APART:
        return found
    return f"{found} (medians {percent(after / before)})"


def name(change: Change) -> str:
    """The scope, and what of its kernel's arguments is another than it was."""
    if change.was is None or change.was.variant == change.group.variant:
        return change.title
    old = arguments(change.was.variant.signature)
    new = arguments(change.group.variant.signature)
    other = [
        f"{key} {old.get(key, 'none')} -> {new.get(key, 'none')}"
        for key in dict.fromkeys((*old, *new))
        if old.get(key) != new.get(key)
    ]
    return f"{change.group.shown} ({', '.join(other)})"


def typical(values: np.ndarray, stat: str) -> str:
    """The median of what processes measured, with its unit."""
    if not values.size:
        return ""
    return amount(float(np.median(values)), stat)


def interval(ratio: Estimate | None) -> str:
    """`-1.2 % to +3.0 %`; nothing where it has no end."""
    if ratio is None or math.isinf(ratio.high):
        return ""
    return f"{percent(ratio.low)} to {percent(ratio.high)}"


def _count(change: Change) -> str:
    there = max(change.before.size, change.after.size)
    count = there if change.ratio is None else change.ratio.processes
    return f"1 {ONE[change.unit]}" if count == 1 else f"{count} {change.unit}"


def _is_ratio(finding: Verdict) -> bool:
    return finding.change is not None and finding.estimate is finding.change.ratio


def _value(finding: Verdict) -> str:
    if finding.estimate is None:
        return finding.value
    value = finding.estimate.value
    return percent(value) if _is_ratio(finding) else _amount(value, finding)


def _amount(value: float, finding: Verdict) -> str:
    """A time, or a count."""
    return amount(value, "" if finding.change is None else finding.change.stat)


def _span(finding: Verdict) -> str:
    found = finding.estimate
    if found is None or _is_ratio(finding):
        return interval(found)
    return (
        ""
        if math.isinf(found.high)
        else " to ".join(_amount(end, finding) for end in (found.low, found.high))
    )


def headline(report: Report) -> str:
    """The end of a check in a line."""
    counts = [f"{len(found)} {status.word}" for status in Status
              if (found := report.having(status))]  # fmt: skip
    before, after = report.processes
    how = "in turns" if report.in_turns else "apart"
    against = f" against {before} measured {how}" if before else ""
    processes = ONE[PROCESSES] if after == 1 else PROCESSES
    return (
        f"{report.status.word}: {', '.join(counts) or 'nothing to check'}; {after} {processes}"
        f"{against}; false alarms: {100 * report.false_alarms:g} % of checks at most"
    )


def markdown(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """A table."""
    lines = [columns, ["---"] * len(columns), *rows]
    return "\n".join("| " + " | ".join(_cell(value) for value in line) + " |" for line in lines)


def report_markdown(report: Report, title: str) -> str:
    """A check, as the summary of a step of a CI job shows it."""
    heading = f"### {_cell(title)}: {report.status.word}\n\n{_cell(headline(report))}\n\n"
    return heading + markdown(*finding_table(report)) + "\n"


def _cell(text: str) -> str:
    """Text that is no markup."""
    shown = printable(text)
    for sign in "\\`*_<>|[]":
        shown = shown.replace(sign, f"\\{sign}" if sign not in "<>" else f"&{'lg'[sign == '>']}t;")
    return shown


def changes_json(changes: Iterable[Change]) -> list[dict[str, object]]:
    """The same as JSON has it."""
    return [_change_json(change) for change in changes]


def _change_json(change: Change) -> dict[str, object]:
    variant = change.group.variant
    return {
        "kernel": variant.kernel,
        "signature": variant.signature,
        "baseline_signature": change.was.variant.signature if change.was else None,
        "scope": change.group.scope,
        "warp": change.group.warp if change.group.warp >= 0 else None,
        "stat": change.stat,
        "kind": change.kind,
        "baseline": change.before.tolist(),
        "candidate": change.after.tolist(),
        "unit": change.unit,
        "ratio": _estimate_json(change.ratio),
        "reference": None if change.beside is None else _beside_json(change.beside),
    }


def _beside_json(beside: Beside) -> dict[str, object]:
    return {
        "name": beside.name,
        "is_noise": beside.is_noise,
        "is_used": beside.is_used,
        "baseline": beside.values[0].tolist(),
        "candidate": beside.values[1].tolist(),
        "normalised_baseline": beside.normalised[0].tolist(),
        "normalised_candidate": beside.normalised[1].tolist(),
    }


def report_json(report: Report) -> str:
    """A check as its document."""
    fields = {
        "status": report.status.word,
        "exit_status": report.status.value,
        "false_alarms": report.false_alarms,
        "in_turns": report.in_turns,
        "processes": {"baseline": report.processes[0], "candidate": report.processes[1]},
        "findings": [
            {
                "title": finding.title,
                "status": finding.status.word,
                "reason": finding.reason,
                "limit": finding.limit,
                "estimate": _estimate_json(finding.estimate),
                "change": None if finding.change is None else _change_json(finding.change),
                "file": finding.source[0],
                "line": finding.source[1],
                "measured": list(finding.measured),
            }
            for finding in report.findings
        ],
    }
    return document("check", fields)


def _estimate_json(found: Estimate | None) -> dict[str, float | None] | None:
    if found is None:
        return None
    bounded = not math.isinf(found.high)
    return {
        "value": found.value,
        "low": found.low if bounded else None,
        "high": found.high if bounded else None,
        "processes": found.processes,
    }


def junit(report: Report, title: str) -> bytes:
    """JUnit's XML: a regression is a failure, an inconclusive finding an error."""
    found = report.findings
    suite = ElementTree.Element(
        "testsuite",
        name=_xml(title),
        tests=str(len(found)),
        failures=str(len(report.having(Status.REGRESSION))),
        errors=str(len(report.having(Status.INCONCLUSIVE))),
        skipped=str(len(report.having(Status.SKIPPED))),
    )
    tags = {
        Status.REGRESSION: "failure",
        Status.INCONCLUSIVE: "error",
        Status.SKIPPED: "skipped",
    }
    for finding in found:
        case = ElementTree.SubElement(
            suite, "testcase", _seconds(finding), classname="proton", name=_xml(finding.title)
        )
        if finding.status in tags:
            ElementTree.SubElement(case, tags[finding.status], message=_xml(finding.reason))
        else:
            ElementTree.SubElement(case, "system-out").text = _xml(finding.reason)
    suites = ElementTree.Element("testsuites")
    suites.append(suite)
    return bytes(ElementTree.tostring(suites, encoding="utf-8", xml_declaration=True))


def _seconds(finding: Verdict) -> dict[str, str]:
    """The candidate's median, where that is a time."""
    change = finding.change
    if change is None or change.stat == COUNT or not change.after.size:
        return {}
    return {"time": f"{float(np.median(change.after)) * 1e-9:.9f}"}


def _xml(text: str) -> str:
    """Text that XML can hold: control characters are escapes."""
    return printable(text)


def github_commands(report: Report) -> list[str]:
    """Commands of a GitHub workflow: errors and warnings at the lines of scopes."""
    levels = {Status.REGRESSION: "error", Status.INCONCLUSIVE: "warning"}
    return [
        f"::{levels[finding.status]} {_place(finding)}title={_property(finding.title)}"
        f"::{_data(finding.reason)}"
        for finding in report.findings
        if finding.status in levels
    ]


def _place(finding: Verdict) -> str:
    file, line = finding.source
    if not file:
        return ""
    path, here = Path(file), Path.cwd()
    shown = path.relative_to(here) if path.is_relative_to(here) else path
    return f"file={_property(str(shown))},line={line},"


def _data(text: str) -> str:
    return text.replace("%", "%25").replace("\r", "%0D").replace("\n", "%0A")


def _property(text: str) -> str:
    return _data(text).replace(":", "%3A").replace(",", "%2C")
