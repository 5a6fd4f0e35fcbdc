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
from typing import ParamSpec, TypeVar

import numpy as np

from proton.base import markup
from proton.base.errors import ProfileError
from proton.base.knobs import knobs
from proton.language.profiling import check_text
from proton.runtime import session
from proton.trace.instrumentation import SessionOptions, described_options
from proton.trace.model import Clock, RawRun
from proton.viewer import Run

P = ParamSpec("P")
R = TypeVar("R")


def _takes(
    options: Callable[P, SessionOptions],
) -> Callable[[Callable[[SessionOptions], R]], Callable[P, R]]:
    """Gives a function of options the parameters of these options, and says what they mean."""

    def wrap(function: Callable[[SessionOptions], R]) -> Callable[P, R]:
        @functools.wraps(function)
        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            return function(options(*args, **kwargs))

        own, given = inspect.signature(function), inspect.signature(options)
        call.__signature__ = given.replace(return_annotation=own.return_annotation)  # type: ignore[attr-defined]
        call.__doc__ = f"{inspect.getdoc(function)}\n\nOptions:\n\n{described_options()}\n"
        return call

    return wrap


def _start(options: SessionOptions) -> None:
    """Starts recording: every launch from here on is instrumented, if it has scopes.

    Raises ProfileError when a session is running, for a name that is no text, and for an option
    whose value is out of its range.
    """
    try:
        name = check_text(options.name, "a session's name")
    except ValueError as error:
        raise ProfileError(str(error)) from None
    if not knobs.profile_disable:
        atexit.unregister(say_what_is_lost)
        atexit.register(say_what_is_lost)
        session.start(replace(options, name=name))


start = _takes(SessionOptions)(_start)


def say_what_is_lost() -> None:
    """At the end of a process: a session that runs still, whose records nobody will have."""
    open_ = session.current()
    if open_ is not None and not open_.is_forked and not session.is_kept():
        print(
            f"proton: session {open_.name!r} was never ended: its {open_.begun} launches are lost; "
            "call proton.finalize(), and save the run that it gives",
            file=sys.stderr,
        )


def finalize() -> Run:
    """Ends the session and gives its run; an empty one where PROTON_PROFILE_DISABLE is set.

    Launches that other threads have under way are waited for. Raises ProfileError when no session
    is running, and in a process that was forked from that of the session.
    """
    if knobs.profile_disable and session.current() is None:
        return Run(_nothing())
    return Run(session.finalize())


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


@_takes(SessionOptions)
@contextlib.contextmanager
def profile(options: SessionOptions) -> Iterator[Recording]:
    """Records a block, as `start` and `finalize` do around it. A process that is forked inside and
    leaves the block, too, has no run.

    >>> with proton.profile("add") as run:
    ...     add[grid](x, y, out, n, BLOCK=1024)
    >>> run.frame
    """
    recording, process = Recording(), os.getpid()
    _start(options)
    try:
        yield recording
    finally:
        if os.getpid() == process:
            recording._raw = finalize().raw
