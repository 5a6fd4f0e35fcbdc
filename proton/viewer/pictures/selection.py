"""Which part of a run a picture shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from proton.base.errors import ProtonError
from proton.trace.scope_path import ScopePath


@dataclass(frozen=True, kw_only=True)
class Selection:
    """What is shown: all that meets each condition that is given.

    `kernel` and `scope` are regular expressions, looked for in a kernel's label and in a scope's
    path; `launches`, `sms` and `warps` are numbers. A slice is within the time when some of it is.
    A program is shown around the slices that are.
    """

    kernel: str = ""
    scope: str = ""
    launches: Sequence[int] = ()
    sms: Sequence[int] = ()
    warps: Sequence[int] = ()
    start_ns: int | None = None
    end_ns: int | None = None

    def __post_init__(self) -> None:
        if self.start_ns is not None and self.end_ns is not None and self.start_ns >= self.end_ns:
            raise ProtonError(f"start must be before end, got {self.start_ns} and {self.end_ns}")

    @property
    def inside_programs(self) -> bool:
        """Whether there is a condition that only what programs recorded can meet."""
        return bool(self.scope or self.sms or self.warps)

    @property
    def of_kernels(self) -> bool:
        """Whether there is a condition that nothing of the host's own meets."""
        return bool(self.kernel or self.launches or self.inside_programs)

    @property
    def is_of_a_part(self) -> bool:
        """Whether there is any condition."""
        return self.of_kernels or self.start_ns is not None or self.end_ns is not None


EVERYTHING = Selection()


def matching(pattern: str, texts: Sequence[str]) -> list[bool]:
    """Of each name whether the regular expression is found in it, or in its short form."""
    try:
        compiled = re.compile(pattern)
    except re.error as error:
        raise ProtonError(f"{pattern!r} is no regular expression: {error}") from None
    return [bool(compiled.search(t) or compiled.search(ScopePath(t).shown)) for t in texts]
