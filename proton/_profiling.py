"""The profiler's front door: sessions that end as a `Run`."""

import atexit
import contextlib
import functools
import inspect
import os
import sys
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import ParamSpec, TypeVar, cast

import numpy as np

from proton._start_options import StartOptions
from proton.base import markup
from proton.base.errors import ProfileError, ProtonError, UnknownOption
from proton.base.knobs import knobs
from proton.base.tracebacks import boundary, shorten
from proton.base.words import counted, did_you_mean
from proton.language.profiling import check_text
from proton.monitoring import Monitor
from proton.runtime.session import open_sessions
from proton.trace.instrumentation import SessionOptions, described_options
from proton.trace.model import Clock, RawRun
from proton.trace.monitor_options import MonitorOptions
from proton.viewer import Run

P = ParamSpec("P")
R = TypeVar("R")
Options = TypeVar("Options", bound=SessionOptions)


def _takes(
    options: Callable[P, Options],
) -> Callable[[Callable[[Options], R]], Callable[P, R]]:
    """Gives a function of options the parameters of these options, and says what they mean."""

    def wrap(function: Callable[[Options], R]) -> Callable[P, R]:
        own, given = inspect.signature(function), inspect.signature(options)

        @boundary
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            for name in kwargs:
                if name not in given.parameters:
                    hint = did_you_mean(name, given.parameters)
                    raise UnknownOption(f"a session has no option {name!r}{hint}")
            return function(options(*args, **kwargs))

        call.__signature__ = given.replace(return_annotation=own.return_annotation)  # type: ignore[attr-defined]
        call.__doc__ = (
            f"{inspect.getdoc(function)}\n\nOptions:\n\n"
            f"{described_options(cast(type[SessionOptions], options))}\n"
        )
        return call

    return wrap


def _start(options: StartOptions) -> int | None:
    """Opens a session and gives its number: every launch from here on is recorded in it.

    Several may be open, and each records while it is active: from its start on, but for the time
    between `deactivate` and `activate`. Those that are active at once have the same options.
    Raises ProfileError where they have not, for a name that is no text, and for an option whose
    value is out of its range. None where PROTON_PROFILE_DISABLE is set.
    """
    session = options.session()
    if callable(session.name):
        raise ProfileError(
            "a session takes no function: call it in `with proton.profile('name') as run:`"
        )
    name = _checked_name(session.name)
    if knobs.profile_disable:
        return None
    atexit.unregister(say_what_is_lost)
    atexit.register(say_what_is_lost)
    return open_sessions.start(replace(session, name=name))


def _checked_name(name: object) -> str:
    try:
        return check_text(name, "a session's name")
    except ValueError as error:
        raise ProfileError(str(error)) from None


start = _takes(StartOptions)(_start)


def say_what_is_lost() -> None:
    """At the end of a process: sessions that are open still, whose records nobody will have."""
    for name, launches in open_sessions.unsaved():
        print(
            f"proton: session {name!r} was never ended: the records of "
            f"{counted(launches, 'launch', 'launches')} are lost; call proton.finalize(), and save "
            "the run that it gives",
            file=sys.stderr,
        )


def activate(session: int | None = None) -> None:
    """Has a session record again after `deactivate`, or all that are open.

    Raises ProfileError where it is not open, or another one is active with other options.
    """
    if not knobs.profile_disable:
        open_sessions.activate(session)


def deactivate(session: int | None = None) -> None:
    """Has a session record nothing until `activate`, or all that are open. With none active, what
    is launched is the code without records."""
    if not knobs.profile_disable:
        open_sessions.deactivate(session)


def finalize(session: int | None = None) -> Run:
    """Ends a session and gives its run; an empty one where PROTON_PROFILE_DISABLE is set.

    Without a number it ends all that are open; of several it gives one run, which has what any of
    them recorded. Launches that other threads have under way are waited for. Raises ProfileError
    when there is no such session, and in a process that was forked from that of the session.
    """
    if knobs.profile_disable and not open_sessions.any_open():
        return Run(_nothing())
    return Run(open_sessions.finalize(session))


def _nothing() -> RawRun:
    """The run of a session that was switched off."""
    clock = Clock(ticks=np.zeros(0, np.uint64), host_ns=np.zeros(0, np.int64))
    now, unix = time.perf_counter_ns(), time.time_ns()
    return RawRun(name="disabled", origin_ns=now, origin_unix_ns=unix, clock=clock)


class Recording(Run):
    """What `with proton.profile(...) as run` gives: a run, complete once the block has ended."""

    def __init__(self) -> None:
        self._raw: RawRun | None = None

    @property
    def raw(self) -> RawRun:  # type: ignore[override] # what all tables are made of
        if self._raw is None:
            raise ProfileError(
                "the run has nothing to show yet: it is complete when the block ends"
            )
        return self._raw

    def __repr__(self) -> str:
        return "<profile in progress>" if self._raw is None else super().__repr__()

    def _repr_html_(self) -> str:
        return markup.text(self) if self._raw is None else super()._repr_html_()


@_takes(StartOptions)
@contextlib.contextmanager
def profile(options: StartOptions) -> Iterator[Recording]:
    """Records a block, as `start` and `finalize` do around it. A process that is forked inside and
    leaves the block, too, has no run.

    >>> with proton.profile("add") as run:
    ...     add[grid](x, y, out, n, BLOCK=1024)
    >>> run.frame
    """
    recording, process = Recording(), os.getpid()
    try:
        session = _start(options)
    except ProtonError as error:
        shorten(error)
        raise
    try:
        yield recording
    finally:
        if os.getpid() == process:
            recording._raw = finalize(session).raw


@_takes(MonitorOptions)
def monitor(options: MonitorOptions) -> Monitor:
    """Samples the launches of this process, within a budget, until `stop` or the process's end, in
    memory that does not grow: writes runs into a folder, and tells percentiles.

    A monitor is a context manager, too. Raises ProfileError for a folder that cannot be written,
    an option out of its range, and where the process has a monitor already.

    >>> monitor = proton.monitor("runs", budget="0.5%", metrics="prometheus:9400")
    """
    _checked_name(options.name)
    return Monitor(options)
