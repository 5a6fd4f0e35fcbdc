"""The sessions that are open, and which of them record.

A session is active from `start` on, but for the time between `deactivate` and `activate`. Those
that are active at once are instrumented alike, and one recorder (a `Session` of launches) works for
all of them; each has of what it recorded the part in its own windows. With none active, nothing is
instrumented.

    one   |======|     |=====|        two windows
    two            |=========|===|    one
    recorder       ^         ^ ends with session one; another one goes on for session two
"""

import contextlib
import itertools
import math
import os
import threading
import time
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, replace

from proton.base.errors import ProfileError
from proton.language import profiling
from proton.runtime.launch.grid import host_thread
from proton.runtime.session import session as sessions
from proton.runtime.session.host_scopes import HostRecorder
from proton.runtime.session.launch_budget import LaunchBudget
from proton.runtime.session.session import Session
from proton.trace.instrumentation import Instrumentation, SessionOptions
from proton.trace.join import join
from proton.trace.model import HostSlice, RawRun
from proton.trace.monitor_options import MonitorOptions
from proton.trace.window import Window, union, within, without

ALWAYS: Window = (-math.inf, math.inf)


@dataclass(eq=False)
class OpenSession:
    """A session that has not been finalized: when it was active, and what recorders that have
    ended left for it."""

    number: int
    options: SessionOptions
    windows: list[Window] = field(default_factory=list)  # the last is endless while it is active
    parts: list[RawRun] = field(default_factory=list)

    @property
    def name(self) -> str:
        return self.options.name

    @property
    def kind(self) -> SessionOptions:
        """The options that sessions with one recorder share: all options but the name."""
        return replace(self.options, name="")

    @property
    def is_active(self) -> bool:
        return bool(self.windows) and self.windows[-1][1] == math.inf

    def run(self, host: list[HostSlice]) -> RawRun:
        """The run that it recorded, given all slices of the host."""
        whole = join(self.parts)
        whole = replace(whole, name=self.name, host=[*whole.host, *host])
        return within(whole, union(self.windows))


class OpenSessions:
    """All that are open in this process."""

    def __init__(self) -> None:
        self.lock = threading.RLock()
        self.open: dict[int, OpenSession] = {}
        self.program: OpenSession | None = None  # it has all that any session records
        self.recorders: dict[SessionOptions, Session] = {}
        self.host = HostRecorder()
        self.pauses = 0  # in which nothing is recorded, whatever is active,
        self.aside: Session | None = None  # but by this one
        self.is_forked = False  # a copy, in a process that was forked

    def start(self, options: SessionOptions, number: int) -> None:
        """Opens a session that is active."""
        with self.lock:
            session = OpenSession(number, options)
            self._check_alike(session)
            if not self.open and self.program is None:
                self.host = HostRecorder()
                profiling.set_host_recorder(self.host)
            self.open[number] = session
            try:
                self.activate([session])
            except BaseException:
                del self.open[number]
                self._settle()
                raise

    def start_program(self, options: SessionOptions) -> None:
        """Opens the session of a whole program, which records where no other is active."""
        with self.lock:
            if self.program is not None:
                raise ProfileError(
                    f"all of this process is recorded already, by {self.program.name!r}: a monitor "
                    "stands alone, and under `python -m proton` there is none but by --monitor"
                )
            if not self.open:
                self.host = HostRecorder()
            self.program = OpenSession(-1, options, [ALWAYS])
            profiling.set_host_recorder(self.host)
            try:
                self._settle()
            except BaseException:
                self.program = None
                self._settle()
                raise

    def activate(self, chosen: Iterable[OpenSession]) -> None:
        """Sessions record from now on."""
        with self.lock:
            for session in chosen:
                if session.is_active:
                    continue
                self._check_alike(session)
                # All that a recorder of its own has is the session's.
                is_new = session.kind not in self.recorders
                begin = -math.inf if is_new and not session.windows else time.perf_counter_ns()
                session.windows.append((begin, math.inf))
                self._settle()

    def deactivate(self, chosen: Iterable[OpenSession]) -> None:
        """Sessions record no more, until they are activated."""
        with self.lock:
            for session in chosen:
                if session.is_active:
                    session.windows[-1] = session.windows[-1][0], time.perf_counter_ns()
            self._settle()

    def finalize(self, chosen: list[OpenSession]) -> RawRun:
        """Ends sessions; the run of one, or all that any of several recorded."""
        with self.lock:
            ended = [self.recorders.pop(s.kind) for s in chosen if s.kind in self.recorders]
            for session in chosen:
                del self.open[session.number]
            self._settle()
            self._give_out(ended, chosen)
            first, host = chosen[0], self.host.so_far()
            windows = [window for session in chosen for window in session.windows]
            parts = {id(part): part for session in chosen for part in session.parts}
            whole = OpenSession(first.number, first.options, windows, list(parts.values()))
            return whole.run(host)

    def so_far(self, session: OpenSession) -> RawRun:
        """What a session has recorded until now. Its recorder ends, which waits for launches and
        for devices; another one goes on."""
        with self.lock:
            ended = self.recorders.pop(session.kind, None)
            self._settle()
            self._give_out([] if ended is None else [ended])
            return session.run(self.host.so_far())

    def _give_out(self, ended: list[Session], closed: Iterable[OpenSession] = ()) -> None:
        """Has recorders end, and each session that one worked for keep what it recorded; `closed`
        are those that are not open any more."""
        program = [] if self.program is None else [self.program]
        for recorder in ended:
            raw, kind = recorder.finish(), replace(recorder.options, name="")
            alike = (s for s in (*closed, *self.open.values()) if s.kind == kind)
            for session in (*alike, *program):
                session.parts.append(raw)

    def forget(self, session: OpenSession, window: Window) -> None:
        """Leaves the time of a window, which is over, out of what a session recorded. What it has
        of that goes; slices of the host go where no session needs them."""
        with self.lock:
            session.windows = without(session.windows, window)
            if session.parts:
                session.parts = [within(join(session.parts), union(session.windows))]
            if self.program is None:
                starts = (start for each in self.open.values() for start, _ in each.windows)
                self.host.forget(min(starts, default=math.inf))

    def take_program(self) -> tuple[RawRun | None, LaunchBudget | None]:
        """What the program's session has of launches that have ended, which it forgets; nothing
        where it is over. Host scopes come once no session needs them any more."""
        with self.lock:
            program = self.program
            if program is None or program.kind not in self.recorders:
                return None, None
            recorder = self.recorders[program.kind]
            parts, program.parts = [*program.parts, recorder.take()], []
            return self._with_host(join(parts), program), recorder.budget

    def leave_program(self) -> tuple[RawRun | None, LaunchBudget | None]:
        """Ends the program's session alone; the same of what it has still."""
        with self.lock:
            program = self.program
            if program is None:
                return None, None
            self.program = None
            ended = self.recorders.pop(program.kind, None)
            self._settle()
            parts = [*program.parts, *([] if ended is None else [ended.finish()])]
            budget = None if ended is None else ended.budget
            return (self._with_host(join(parts), program) if parts else None), budget

    def _with_host(self, raw: RawRun, program: OpenSession) -> RawRun:
        host = [] if self.open else self.host.take()
        return replace(raw, name=program.name, host=[*raw.host, *host])

    def finalize_program(self) -> RawRun:
        """Ends the program's session, and with it all others."""
        with self.lock:
            program, ended = self.program, list(self.recorders.values())
            assert program is not None
            self.program, self.open, self.recorders = None, {}, {}
            self._settle()
            program.parts += [recorder.finish() for recorder in ended]
            return program.run(self.host.so_far())

    def _check_alike(self, session: OpenSession) -> None:
        """Raises ProfileError where an active session is instrumented otherwise."""
        for other in self.open.values():
            if other.is_active and other.kind != session.kind:
                differs = [
                    f"{of.name}={getattr(other.kind, of.name)!r}"
                    for of in fields(SessionOptions)
                    if getattr(other.kind, of.name) != getattr(session.kind, of.name)
                ]
                raise ProfileError(
                    f"session {other.name!r} is active, with {', '.join(differs)}; sessions that "
                    "are active at once have the same options: deactivate or finalize it first"
                )

    def _settle(self) -> None:
        """Has the recorder of the active sessions record."""
        if self.pauses:
            sessions.install(self.aside)
            return
        active = [session for session in self.open.values() if session.is_active]
        if self.program is not None:
            active.append(self.program)
        if not active:
            sessions.install(None)
            if not self.open:
                profiling.set_host_recorder(None)
            return
        kind = active[0].kind
        if kind not in self.recorders:
            with self.host.muted():  # what it compiles to calibrate with is no part of a run
                self.recorders[kind] = Session(active[0].options, self.host)
        sessions.install(self.recorders[kind])

    @contextlib.contextmanager
    def paused(self) -> Iterator[None]:
        """Records no launch meanwhile; host scopes go on."""
        with self.lock:
            self.pauses += 1
            self._settle()
        try:
            yield
        finally:
            with self.lock:
                self.pauses -= 1
                if self.open or self.program is not None:
                    self._settle()

    @contextlib.contextmanager
    def recorded_aside(self, options: SessionOptions) -> Iterator[list[RawRun]]:
        """Records the launches meanwhile in a run of their own, and in no session; those of other
        threads are in none. The list has the run once the block has ended."""
        found: list[RawRun] = []
        with self.paused():
            recorder, outer = Session(options, HostRecorder()), self.aside
            self._put_aside(recorder)
            try:
                yield found
            finally:
                self._put_aside(outer)
                raw, me = recorder.finish(), host_thread()
            raw.launches = [launch for launch in raw.launches if launch.thread == me]
            found.append(raw)

    def _put_aside(self, recorder: Session | None) -> None:
        with self.lock:
            self.aside = recorder
            self._settle()

    def disown(self) -> None:
        """Makes these the copies of sessions in a process that was just forked."""
        self.lock = threading.RLock()
        self.is_forked = True
        for recorder in self.recorders.values():
            recorder.disown()


_sessions = OpenSessions()
_numbers = itertools.count()


def _after_fork() -> None:
    _sessions.disown()


os.register_at_fork(after_in_child=_after_fork)


def _renew() -> None:
    """Leaves the copies of sessions that a forked process has: what it opens is its own."""
    global _sessions
    if _sessions.is_forked:
        _sessions = OpenSessions()


def start(options: SessionOptions) -> int:
    """Opens a session, which is active; its number."""
    _renew()
    number = next(_numbers)
    _sessions.start(options, number)
    return number


def _chosen(number: int | None) -> list[OpenSession]:
    """The session of that number, or all that are open. Raises ProfileError where there is none."""
    open_ = _sessions.open
    if not open_:
        raise ProfileError("no session is running; call proton.start first")
    if _sessions.is_forked:
        name = next(iter(open_.values())).name
        raise ProfileError(
            f"session {name!r} is that of the process that forked this one, whose run "
            "counts the launches here; call proton.start for a session of its own"
        )
    if number is None:
        return list(open_.values())
    if number not in open_:
        known = ", ".join(f"{s.number} ({s.name!r})" for s in open_.values())
        raise ProfileError(f"session {number!r} is not open; those that are: {known}")
    return [open_[number]]


def activate(number: int | None = None) -> None:
    """Has a session record, or all that are open."""
    _sessions.activate(_chosen(number))


def deactivate(number: int | None = None) -> None:
    """Has a session pause, or all that are open."""
    _sessions.deactivate(_chosen(number))


def finalize(number: int | None = None) -> RawRun:
    """Ends a session, or all that are open, and gives the run."""
    return _sessions.finalize(_chosen(number))


def so_far(number: int) -> RawRun:
    """The run of a session until now, which goes on."""
    (session,) = _chosen(number)
    return _sessions.so_far(session)


def forget(number: int, window: Window) -> None:
    """Leaves a time that is over out of a session's run."""
    (session,) = _chosen(number)
    _sessions.forget(session, window)


def start_program(options: SessionOptions) -> None:
    """Starts to record this process to its end: all that its own sessions record, and with these
    options all the rest."""
    _renew()
    _sessions.start_program(options)


def take_program() -> tuple[RawRun | None, LaunchBudget | None]:
    """What that session recorded of launches that have ended, which it forgets, and what chooses
    launches; without waiting for any."""
    return _sessions.take_program()


def leave_program() -> tuple[RawRun | None, LaunchBudget | None]:
    """Ends that session alone, before the process does; what is left of it."""
    return _sessions.leave_program()


def finalize_program() -> RawRun:
    """The run of all that the process did, its own sessions included."""
    return _sessions.finalize_program()


@contextlib.contextmanager
def paused() -> Iterator[None]:
    """Records no launch meanwhile, in no session: what is tried is no part of a program's work."""
    with _sessions.paused():
        yield


@contextlib.contextmanager
def recorded_aside(name: str, auto: Sequence[str] = ()) -> Iterator[list[RawRun]]:
    """Records this thread's launches meanwhile in a run of their own, and in no session: as the
    active ones are instrumented, or, where none is, with `auto`. The list has the run behind the
    block."""
    recording = sessions.current()
    instrumentation = Instrumentation(auto=auto) if recording is None else recording.instrumentation
    given = {of.name: getattr(instrumentation, of.name) for of in fields(Instrumentation)}
    with _sessions.recorded_aside(SessionOptions(name, **given)) as found:
        yield found


def any_open() -> bool:
    """True if the process has a session of its own, or had when it was forked."""
    return bool(_sessions.open)


def unsaved() -> list[tuple[str, int]]:
    """Name and launches of each open session, unless it becomes part of a run without anybody's
    doing."""
    program = _sessions.program
    is_part = program is not None and not isinstance(program.options, MonitorOptions)
    if _sessions.is_forked or is_part:
        return []
    found = []
    for session in _sessions.open.values():
        recorder = _sessions.recorders.get(session.kind)
        begun = 0 if recorder is None else recorder.begun
        found.append((session.name, begun + sum(len(part.launches) for part in session.parts)))
    return found
