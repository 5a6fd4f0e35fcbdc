"""What records launches while sessions are active (open_sessions.py says which).

What is recorded, and how it gets here, is each back end's own: a session has a recorder of each
(recording.py), up to `knobs.profile_memory` bytes for all of them; launches beyond that run and are
counted.

A run has the launches that began in the session: its end waits for those that other threads have
under way. Launches in processes that were forked meanwhile are counted.
"""

import threading
import time
from dataclasses import replace
from functools import cached_property
from typing import Any

from proton.language import profiling
from proton.runtime.backend import backends
from proton.runtime.session.described import machine_facts, source_files
from proton.runtime.session.host_scopes import HostRecorder
from proton.runtime.session.operators import OperatorRecorder
from proton.runtime.session.recording import Recorded, Recorder, Running, SessionState
from proton.trace.instrumentation import Instrumentation, SessionOptions
from proton.trace.model import FORKED, UNFINISHED, HostSlice, Launch, RawRun
from proton.trace.window import with_launches

LOW_HALF = (1 << 32) - 1  # of a thread's ident

_current: "Session | None" = None


def current() -> "Session | None":
    """The one that records now."""
    return _current


def instrumentation_of(asked: object = None) -> Instrumentation | None:
    """How kernels record in a session that is asked for the options of a dict; without one in that
    which records now, if one does. Raises ProfileError for options that there are not."""
    if asked is not None:
        return SessionOptions.of(asked).instrumentation
    return None if _current is None else _current.instrumentation


def recorder_of(backend: str) -> Any:
    """The recorder of a back end, by its name, in the session that records now, if one does."""
    return None if _current is None else _current.recorders.get(backend)


def install(session: "Session | None") -> None:
    """Makes this the one whose recorders launches ask for."""
    global _current
    _current = session


class Session(SessionState):
    """Records launches, under the scopes that are open on the host; `finish` gives the raw run,
    without host scopes; of what ran besides its slices."""

    def __init__(self, options: SessionOptions, host: HostRecorder) -> None:
        super().__init__(options, host)
        self.recorders: dict[str, Recorder] = {}  # by the back end's name, the host's first
        for backend in reversed(backends()):
            recorder = backend.recorder(self)
            if recorder is not None:
                self.recorders[backend.name] = recorder
        self.operators = OperatorRecorder(host) if options.activities == "all" else None
        self.origin_ns, self.origin_unix_ns = time.perf_counter_ns(), time.time_ns()
        self.taken_ns = self.origin_ns  # when `take` was called last

    @cached_property
    def facts(self) -> dict[str, object]:
        """The machine, for display; the same for each part of a run."""
        return machine_facts()

    def leave(self) -> None:
        if _current is self:
            install(None)
            profiling.set_host_recorder(None)

    def disown(self) -> None:
        """Makes this the copy of a session in a process that was just forked: other threads are
        gone, and what they held."""
        self.lock = threading.Lock()
        self.running = Running(self.lock)
        self.is_forked = True
        for recorder in self.recorders.values():
            recorder.disown()
        if self.operators is not None:
            self.operators.disown()

    def take(self) -> RawRun:
        """What has ended since the last call, in no later run, with the kernels that were launched;
        nothing is waited for."""
        now = time.perf_counter_ns()
        recorded = [recorder.take() for recorder in self.recorders.values()]
        with self.lock:
            self.dropped += sum(found.dropped for found in recorded)
            raw = self._run(recorded, {})
            self.dropped = 0
        begins = [launch.host_start for launch in raw.launches]
        later = max(min([self.taken_ns, *begins]) - self.origin_ns, 0)
        self.taken_ns = now
        raw.origin_ns, raw.origin_unix_ns = self.origin_ns + later, self.origin_unix_ns + later
        return with_launches(raw, raw.launches)

    def finish(self) -> RawRun:
        """Everything recorded; the session is over."""
        with self.lock:
            unfinished = self.running.wait()
            self.is_finished = True
        recorded = [recorder.finish() for recorder in self.recorders.values()]
        if self.operators is not None:
            recorded.append(self.operators.finish())
        with self.lock:
            forked = self.forked_counts.close()
            self.dropped += unfinished + forked + sum(found.dropped for found in recorded)
            counted = {name: n for name, n in ((UNFINISHED, unfinished), (FORKED, forked)) if n}
            return self._run(recorded, counted)

    def _run(self, recorded: list[Recorded], counted: dict[str, int]) -> RawRun:
        machine = dict(self.facts)
        for found in recorded:
            machine |= found.machine
            for number, facts in found.measured.items():
                self.kernels[number].options.update(facts)
            for number, samples in found.pc_samples.items():
                self.kernels[number] = replace(self.kernels[number], pc_samples=samples)
        launches = [launch for found in recorded for launch in found.launches]
        return RawRun(
            name=self.options.name,
            origin_ns=self.origin_ns,
            origin_unix_ns=self.origin_unix_ns,
            clock=next(found.clock for found in recorded if found.clock is not None),
            gpus=[clock for found in recorded for clock in found.gpus],
            kernels=self.kernels,
            launches=sorted(launches, key=lambda launch: launch.host_start),
            host=_with_issuers([slice_ for found in recorded for slice_ in found.host], launches),
            counters=[samples for found in recorded for samples in found.counters],
            dropped_launches=self.dropped,
            machine=machine | counted,
            sources=source_files(self.kernels),
        )


def _with_issuers(host: list[HostSlice], launches: list[Launch]) -> list[HostSlice]:
    """The slices, of which those on GPUs name the thread that asked for them by its whole ident:
    CUPTI has the low half, and only a thread that did something else that is recorded matters."""
    threads = [launch.thread for launch in launches] + [s.thread for s in host if s.device < 0]
    whole = {thread & LOW_HALF: thread for thread in threads}
    return [replace(s, issuer=whole.get(s.issuer, 0)) if s.issuer else s for s in host]
