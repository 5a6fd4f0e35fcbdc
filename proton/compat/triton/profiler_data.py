"""`triton.profiler.data`: what sessions that go on have recorded, by phases.

    session = proton.start("train", mode="periodic_flushing")
    ...                                  # phase 0
    proton.data.advance_phase(session)   # writes train.part_0.hatchet

A session is in phase 0 until `advance_phase`. A launch, and the metrics of a scope, are of the
phase in which they begin. What asks for data waits for launches and for devices, and ends what CUDA
graphs that were captured before record.
"""

import math
import time
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

from proton.base.errors import ProfileError
from proton.compat.triton import profiler_tree
from proton.runtime.session import open_sessions
from proton.trace.model import RawRun
from proton.trace.window import Window, within
from proton.viewer import Run
from proton.viewer.tables.msgpack import packed


class NoData(ProfileError, RuntimeError):
    """A phase was cleared, or is not there."""


@dataclass(eq=False)
class PhasedSession:
    """The phases of a session, and how it is written: into which files, in which format; each
    phase when it is over, where that is asked for."""

    number: int
    file: str
    format: str
    writes_phases: bool
    starts: list[float] = field(default_factory=lambda: [-math.inf])  # of phases, perf_counter_ns
    kept: set[int] = field(default_factory=lambda: {0})  # those that were not cleared

    @property
    def phase(self) -> int:
        """The one that goes on."""
        return len(self.starts) - 1

    def window(self, phase: int) -> Window:
        """The time of a phase. Raises NoData where it was cleared, or is not there."""
        if phase not in self.kept:
            raise NoData(f"phase {phase} of session {self.number} has no data: {self._left()}")
        return self.starts[phase], [*self.starts[1:], math.inf][phase]

    def _left(self) -> str:
        left = ", ".join(map(str, sorted(self.kept)))
        return f"there are {left}" if left else "all phases were cleared"

    def of(self, raw: RawRun, phase: int) -> Run:
        """The part of a session's run that is a phase's."""
        start, end = self.window(phase)
        host = [of if of.start >= start else replace(of, payload={}) for of in raw.host]
        return Run(within(replace(raw, host=host), [(start, end)]))

    def advance(self) -> int:
        """Begins the next phase."""
        self.starts.append(time.perf_counter_ns())
        self.kept.add(self.phase)
        if self.writes_phases:
            last = self.phase - 1
            self._write(self.of(open_sessions.so_far(self.number), last), last, self.format)
            self.clear(last, last)
        return self.phase

    def clear(self, first: int, last: int) -> None:
        """Forgets phases; of the one that goes on, what it has until now."""
        for phase in sorted(self.kept):
            if first <= phase <= last:
                start, end = self.window(phase)
                open_sessions.forget(self.number, (start, min(end, time.perf_counter_ns())))
                if phase < self.phase:
                    self.kept.remove(phase)

    def write(self, run: Run, format: str) -> None:
        """Writes the run of the session, which is over: a file for each phase that is left."""
        for phase in sorted(self.kept):
            part = self.of(run.raw, phase) if self.phase else run
            self._write(part, phase, format or self.format)

    def _write(self, run: Run, phase: int, format: str) -> None:
        part = f".part_{phase}" if self.phase else ""
        profiler_tree.write(run, Path(f"{self.file}{part}.{format}"), format)


sessions: dict[int, PhasedSession] = {}  # that are open, by number


def _session(number: int) -> PhasedSession:
    if number not in sessions:
        known = ", ".join(map(str, sessions)) or "none"
        raise ProfileError(f"session {number!r} is not open; those that are: {known}")
    return sessions[number]


def get(session: int | None = 0, phase: int = 0) -> list[Any] | None:
    """What a Hatchet file of a phase would have; None where profiling is off."""
    if session is None:
        return None
    found = _session(session)
    found.window(phase)
    return profiler_tree.document(found.of(open_sessions.so_far(session), phase))


def get_msgpack(session: int | None = 0, phase: int = 0) -> bytes | None:
    """The same in MessagePack."""
    content = get(session, phase)
    return None if content is None else packed(content)


def advance_phase(session: int | None = 0) -> int | None:
    """Begins the next phase, and gives its number; with the mode "periodic_flushing" the last one
    is written, and forgotten."""
    return None if session is None else _session(session).advance()


def is_phase_complete(session: int | None = 0, phase: int = 0) -> bool:
    """Whether a phase is over: `get` gives all of it."""
    return session is not None and phase < _session(session).phase


def clear(session: int | None = 0, phase: int = 0, clear_up_to_phase: bool = False) -> None:
    """Forgets a phase, or all up to it; of the one that goes on, what it has until now."""
    if session is not None:
        _session(session).clear(0 if clear_up_to_phase else phase, phase)
