"""The profiler's front door: sessions that end as a `Run`."""

import atexit
import contextlib
import os
import sys
import time
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from proton.base.errors import ProfileError
from proton.base.knobs import knobs
from proton.language.profiling import check_text
from proton.runtime import session
from proton.trace.model import Clock, RawRun
from proton.viewer import Run


def start(
    name: str = "proton",
    *,
    strategy: str = "circular",
    capacity: int = 0,
    placement: str = "schedule",
    clock_bits: int = 32,
    granularity: str = "warp",
    buffer: str = "auto",
    sample_warps: Sequence[int] = (),
    sample_programs: int = 1,
    every: int = 1,
    compare_run_time: bool = False,
) -> None:
    """Starts recording: every launch from here on is instrumented, if it has scopes.

    `strategy` says what happens when a program has made `capacity` records: "circular" keeps
    the newest, "flush" moves them to host memory and loses none, "counting" only counts.
    `capacity` 0 lets the compiler choose. `placement` "schedule" shows when the work ran;
    "program" keeps records where they are written, and keeps the work of scopes apart at a
    price. With `every` n, only iterations 0, n, 2n, ... are kept of what is recorded in a loop: the
    innermost one around a scope or a mark, where it counts. Others are kept always.

    On a GPU the unit that records is a warp, or by `granularity` the first of "warp_2", "warp_4",
    "warp_8", "warp_group" (4 warps), "warp_group_2", "warp_group_4" or "cta"; `capacity` is that
    of a unit, rounded up to a power of two; and records have `clock_bits` of the SM's cycle
    counter: 32, which are unambiguous for kernels of up to 2^32 cycles (two seconds), or 64. The
    rings of strategy "circular" lie in `buffer` "shared" or "global" memory while the kernel runs;
    with "auto" in shared memory where a kernel has scopes in loops and that leaves as many programs
    on an SM as there were. Of the warps of a program those in `sample_warps` record (none named:
    all; it is an error where a kernel has none of them), and of the programs each
    `sample_programs`-th. With `compare_run_time` each second launch
    of a kernel runs as it would without profiling, and the run says the median time of both kinds
    (`run_ns` and `run_ns_off` in `run.kernels[...].options`).
    Raises ProfileError when a session is running, and for a name that is no text.
    """
    try:
        name = check_text(name, "a session's name")
    except ValueError as error:
        raise ProfileError(str(error)) from None
    if not knobs.profile_disable:
        atexit.unregister(say_what_is_lost)
        atexit.register(say_what_is_lost)
        session.start(
            name,
            strategy=strategy,
            capacity=capacity,
            placement=placement,
            clock_bits=clock_bits,
            granularity=granularity,
            buffer=buffer,
            sample_warps=sample_warps,
            sample_programs=sample_programs,
            every=every,
            compare_run_time=compare_run_time,
        )


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


class Recording:
    """What `with proton.profile(...) as run` gives: the `Run`, once the block has ended."""

    def __init__(self) -> None:
        self._run: Run | None = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if self._run is None:
            raise ProfileError(f"the run has no {name} yet: it is complete when the block ends")
        return getattr(self._run, name)

    def __repr__(self) -> str:
        return "<profile in progress>" if self._run is None else repr(self._run)


@contextlib.contextmanager
def profile(name: str = "proton", **options: Any) -> Iterator[Recording]:
    """Records a block; see `start` for the options. A process that is forked inside and leaves the
    block, too, has no run.

    >>> with proton.profile("add") as run:
    ...     add[grid](x, y, out, n, BLOCK=1024)
    >>> run.frame
    """
    recording, process = Recording(), os.getpid()
    start(name, **options)
    try:
        yield recording
    finally:
        if os.getpid() == process:
            recording._run = finalize()
