"""What program counters of kernels were sampled at (option `pc_sampling`): where warps were, and
what they waited for.

A sample is of an instruction, whose line the code says, and the line of what it waits for
(awaited.py). Its scope is the innermost one whose block in the source has that line: the code that
is sampled has no records.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING, Any

from proton.base.errors import ProtonError
from proton.base.locations import Place, places
from proton.base.nvidia_tools import disassemble_text
from proton.base.words import counted, did_you_mean
from proton.trace.model import Kernel, PCSamples, RawRun
from proton.viewer.tables.awaited import awaited
from proton.viewer.tables.labels import variant_numbers
from proton.viewer.tables.source import end_of_block

if TYPE_CHECKING:
    import pandas as pd

GROUPS = {  # what rows may be of, and the columns that say it
    "line": ("file", "line", "scope"),
    "scope": ("scope",),
    "instruction": ("function", "offset", "file", "line", "scope", "sass"),
    "reason": ("reason",),
    "awaited": ("awaited",),
}
WIDTH = 8  # of the column with samples, in a disassembly
BARRIER = "mbarrier"  # what an instruction waits for that looks at one
MOST = 3  # reasons of a line that are told
FEWER = "a larger pc_sampling takes fewer"  # what to do where samples were lost
_SECTION = re.compile(r"^\s*\.section\s+(\S+?),")
_LABEL = re.compile(r"^([\w$.]+):\s*$")
_CODE = re.compile(r"^\s*/\*([0-9a-f]{4,})\*/\s+(.*?)\s*;")


def samples_of(raw: RawRun) -> pd.DataFrame:
    """One row a kernel, instruction and reason. Raises ProtonError where nothing disassembles the
    code."""
    import pandas as pd

    rows = [
        {"kernel": kernel.name, "variant": variant, **row}
        for kernel, variant in zip(raw.kernels, variant_numbers(raw.kernels), strict=True)
        if kernel.pc_samples is not None
        for row in _rows(raw, kernel, kernel.pc_samples)
    ]
    names = ["kernel", "variant", *(name for of in GROUPS.values() for name in of), "samples"]
    return pd.DataFrame(rows, columns=list(dict.fromkeys(names)))


def losses(raw: RawRun) -> list[str]:
    """What samples were lost, a line each."""
    sampled = [kernel.pc_samples for kernel in raw.kernels if kernel.pc_samples is not None]
    dropped, full = (sum(getattr(of, name) for of in sampled) for name in ("dropped", "overflows"))
    launches = counted(sum(of.launches for of in sampled), "launch", "launches")
    said = {
        f"{counted(dropped, 'sample', 'samples')} of program counters dropped": dropped,
        f"{full} of {launches} filled the GPU's buffer of samples, which are lost": full,
    }
    return [f"{what}: {FEWER}" for what, is_so in said.items() if is_so]


def grouped(table: pd.DataFrame, by: Sequence[str]) -> pd.DataFrame:
    """One row a kernel and value of `by`, words of GROUPS: how many `samples` there are, and their
    `share` of the kernel's in percent, the most first. Raises ProtonError for another word."""
    for word in by:
        if word not in GROUPS:
            known = ", ".join(GROUPS)
            raise ProtonError(
                f"samples are by words of {known}, got {word!r}{did_you_mean(word, GROUPS)}"
            )
    keys = ["kernel", "variant", *dict.fromkeys(name for word in by for name in GROUPS[word])]
    found = table.groupby(keys, sort=False, as_index=False)["samples"].sum()
    whole = found.groupby(["kernel", "variant"])["samples"].transform("sum")
    found["share"] = 100.0 * found["samples"] / whole
    return found.sort_values("samples", ascending=False, kind="stable", ignore_index=True)


def by_line(table: pd.DataFrame) -> pd.DataFrame:
    """One row a kernel and line: `sampled`, its share in percent, and `stalls`, as text what the
    most of them wait for: `long_scoreboard 77 %, wait 12 %`."""
    found = grouped(table, ("line",)).drop(columns="samples")
    told: dict[tuple[object, ...], list[dict[str, Any]]] = {}
    keys = ["kernel", "variant", "file", "line"]
    for row in grouped(table, ("line", "reason")).to_dict("records"):
        told.setdefault(tuple(row[key] for key in keys), []).append(row)
    whole = {key: sum(row["share"] for row in rows) for key, rows in told.items()}
    found["stalls"] = [
        ", ".join(
            f"{row['reason']} {100 * row['share'] / whole[key]:.0f} %" for row in told[key][:MOST]
        )
        for key in found[keys].itertuples(index=False, name=None)
    ]
    return found.rename(columns={"share": "sampled"})


def _rows(raw: RawRun, kernel: Kernel, samples: PCSamples) -> Iterator[dict[str, object]]:
    code = Disassembly(disassemble_text(samples.cubin))
    scope_at = _scopes(raw, kernel)
    for function, offset, reason, count in samples.rows:
        name, why = samples.functions[function], samples.reasons[reason]
        number = code.numbers.get((name, offset))
        file, line = ("", 0) if number is None else code.place(number)
        yield {
            "function": name, "offset": offset, "file": file, "line": line,
            "scope": scope_at.get((file, line), ""),
            "sass": "" if number is None else code.texts[number],
            "reason": why, "awaited": "" if number is None else code.awaited(number, why),
            "samples": count,
        }  # fmt: skip


class Disassembly:
    """A disassembly: the text of each instruction, its number by its function and the offset there
    in bytes, and the line of the listing that it is on. A label begins a function: what is in a
    kernel's section has an offset from the kernel, too."""

    def __init__(self, listing: str) -> None:
        text, self.places = places("sass", listing)
        self.lines = text.split("\n")
        self.texts: list[str] = []
        self.line_of: list[int] = []
        self.numbers: dict[tuple[str, int], int] = {}
        self.labels: dict[str, int] = {}
        bases, is_code = dict[str, int](), False
        begun = list[str]()  # functions whose first instruction is next
        for line, content in enumerate(self.lines):
            if match := _SECTION.match(content):
                bases, begun, is_code = {}, [], match[1].startswith(".text.")
            elif match := _LABEL.match(content):
                self.labels[match[1]] = len(self.texts)
                begun += [match[1]] if not match[1].startswith(".") else []
            elif is_code and (match := _CODE.match(content)):
                offset = int(match[1], 16)
                bases |= dict.fromkeys(begun, offset)
                begun = []
                for name, base in bases.items():
                    self.numbers.setdefault((name, offset - base), len(self.texts))
                self.texts.append(match[2])
                self.line_of.append(line)

    def place(self, number: int) -> Place:
        """The line of the source that an instruction is of; ("", 0) if that is not known."""
        return next(iter(self.places[self.line_of[number]]), ("", 0))

    def awaited(self, number: int, reason: str) -> str:
        """What a stalled instruction waits for: `mbarrier`, or the line that makes it (`line 94`),
        with the file where that is another one; empty if that is not to be seen."""
        found = awaited(self.texts, self.labels, number, reason)
        if found is None:
            return ""
        if self.texts[found].startswith("SYNCS"):
            return BARRIER
        (file, line), (own, _) = self.place(found), self.place(number)
        return f"line {line}" if file == own else f"{file.rpartition('/')[2]}:{line}"


def sampled_code(samples: PCSamples) -> tuple[str, list[tuple[Place, ...]]]:
    """The disassembly of what was sampled, each instruction behind its number of samples, and the
    places of each line."""
    code, counts = Disassembly(disassemble_text(samples.cubin)), Counter[int]()
    for function, offset, _, count in samples.rows:
        number = code.numbers.get((samples.functions[function], offset))
        if number is not None:
            counts[code.line_of[number]] += count
    shown = [f"{counts[n] or '':>{WIDTH}}{line}" for n, line in enumerate(code.lines)]
    return "\n".join(shown), code.places


def _scopes(raw: RawRun, kernel: Kernel) -> dict[Place, str]:
    """The innermost scope of each line that is in one."""
    blocks = []
    for scope in kernel.scopes:
        if scope.file and not scope.work and scope.kind in ("slice", "event"):
            text = raw.sources.get(scope.file, "").splitlines()
            blocks.append((scope.file, scope.line, end_of_block(text, scope.line), scope.path))
    found: dict[Place, str] = {}
    for file, first, last, path in sorted(set(blocks), key=lambda block: block[1]):
        found |= {(file, line): path for line in range(first, last + 1)}
    return found
