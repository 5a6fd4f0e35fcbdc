"""What rules say: findings, and what was not recorded."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field

LEAST_PART = 0.05  # of a kernel's time: less is not worth a sentence


@dataclass(frozen=True, kw_only=True)
class SliceToOpen:
    """A slice, or a launch where `scope` is empty, that shows what a finding says; of a pause the
    times are those of pause and launch together."""

    launch: int
    scope: str = ""
    sm: int = -1  # -1 on the CPU
    unit: int = -1  # of the program; -1 for a launch
    program: int = -1
    start_ns: int = 0
    dur_ns: int = 0


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One thing that costs time, and what it rests on.

    `gain_ns` is the time at stake: what a fix would take off the launches of the run, together; or
    off the time between them, where it is `between_launches`. What `happens_once` comes behind the
    others.
    `numbers` are what the sentence was made of, by names that end in their unit (`_ns`, `_bytes`,
    `_percent`) where they have one; `visits` how many visits (or launches) they are of, and
    `error_ns` how far any of their times may be off. `advice` says what to try, `record` what a
    next run could record.
    """

    rule: str
    sentence: str
    gain_ns: float
    kernel: str = ""  # its label; empty for the run as a whole
    advice: str = ""
    record: str = ""
    visits: int = 0
    error_ns: float = 0.0
    between_launches: bool = False
    happens_once: bool = False
    numbers: Mapping[str, float] = field(default_factory=dict)
    slices: tuple[SliceToOpen, ...] = ()
    file: str = ""
    line: int = 0


@dataclass(frozen=True, kw_only=True)
class Unrecorded:
    """What a rule needs that is not in the run, and the option that records it."""

    rule: str
    kernel: str
    needs: str
    option: str


ALL = "all kernels"
# What rules need that files of Triton's Proton do not have, and what records it.
OF_TRITON = tuple(
    Unrecorded(rule=rule, kernel=ALL, needs=needs, option=option)
    for rule, needs, option in (
        ("launch-gaps", "when launches ran: pauses, slow starts, clocks", 'data="trace"'),
        ("waits", "scopes inside of kernels: waits, late warps, tails, unequal programs",
         'backend="instrumentation", data="trace"'),
        ("spills", "registers, spills, occupancy and stalls",
         "python -m proton --as-triton SCRIPT"),
    )
)  # fmt: skip
Said = Iterable[Finding | Unrecorded]
