"""Diagnostics as values, and the comments of a test file that say which ones it expects.

A comment `// expected-error@+1 {{text}}` asks for an error on the next line whose message
contains `text`. The severities are error, warning, remark and note; the place is this line
(nothing), a distance in lines (`@+2`, `@-1`), or none at all (`@unknown`).
"""

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Self

if TYPE_CHECKING:
    from proton.dialect.mlir import ir

_EXPECTED = re.compile(
    r"//\s*expected-(error|warning|remark|note)(?:@([+-]\d+|unknown))?\s*\{\{(.*?)\}\}"
)
_PLACE = re.compile(r'"([^"]*)":(\d+):(\d+)')


@dataclass(frozen=True, kw_only=True)
class Diagnostic:
    """One message of a verifier, parser or pass; line 0 where its place is unknown."""

    severity: str
    message: str
    file: str = ""
    line: int = 0
    column: int = 0

    @classmethod
    def from_mlir(cls, diagnostic: "ir.Diagnostic") -> Self:
        """Reads MLIR's own, at the innermost place in a file that its location names."""
        severity = str(diagnostic.severity).rpartition(".")[2].lower()
        return cls._at(str(diagnostic.location), severity, str(diagnostic.message))

    @classmethod
    def _at(cls, location: str, severity: str, message: str) -> Self:
        place = _PLACE.search(location)
        if place is None:
            return cls(severity=severity, message=message)
        return cls(
            severity=severity,
            message=message,
            file=place[1],
            line=int(place[2]),
            column=int(place[3]),
        )

    def render(self, input_name: str) -> str:
        """`file:line:column: severity: message`; MLIR calls the text it parses "-"."""
        file = input_name if self.file in ("", "-") else self.file
        place = f"{file}:{self.line}:{self.column}" if self.line else file
        return f"{place}: {self.severity}: {self.message}"


@dataclass(frozen=True)
class Expectation:
    """What one comment asks for; line 0 stands for `@unknown`."""

    severity: str
    line: int
    text: str

    def meets(self, found: Diagnostic) -> bool:
        """True if the diagnostic is the expected one."""
        return (self.severity, self.line) == (found.severity, found.line) and (
            self.text in found.message
        )


def expectations(text: str) -> list[Expectation]:
    """All expectations that the comments of a file state, in order."""
    found = []
    for number, line in enumerate(text.splitlines(), 1):
        for severity, place, message in _EXPECTED.findall(line):
            at = 0 if place == "unknown" else number + int(place or 0)
            found.append(Expectation(severity, at, message))
    return found


def mismatches(expected: list[Expectation], found: list[Diagnostic], name: str) -> list[str]:
    """One line for each expectation that nothing meets and each diagnostic nobody expected.

    A note that nobody expected is no mismatch: it belongs to an error that is judged itself.
    """
    left = list(found)
    problems = []
    for expectation in expected:
        match = next((d for d in left if expectation.meets(d)), None)
        if match is not None:
            left.remove(match)
            continue
        place = f"{name}:{expectation.line}" if expectation.line else name
        wanted = f'{expectation.severity} "{expectation.text}"'
        problems.append(f"{place}: expected {wanted} was not seen")
    problems += [f"unexpected: {d.render(name)}" for d in left if d.severity != "note"]
    return problems
