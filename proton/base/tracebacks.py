"""Tracebacks with the program's own lines only: where it launched a kernel, not how Proton
found what is wrong in it. An error's text has the kernel's lines.

A boundary is a function that programs call: there an error of theirs loses the frames of Proton.
Each may be called by another one, whose frames the outer one takes away.
"""

import functools
from collections.abc import Callable
from types import TracebackType
from typing import ParamSpec, TypeVar

from proton.base.errors import PassError, ProtonError, PTXASError
from proton.base.knobs import knobs

Parameters = ParamSpec("Parameters")
Result = TypeVar("Result")

_PACKAGE = __name__.partition(".")[0]


def boundary(function: Callable[Parameters, Result]) -> Callable[Parameters, Result]:
    """A function whose errors show no frames of Proton, nor of this wrapper."""

    @functools.wraps(function)
    def call(*args: Parameters.args, **kwargs: Parameters.kwargs) -> Result:
        try:
            return function(*args, **kwargs)
        except ProtonError as error:
            shorten(error)
            raise  # as it is: a bare `raise` adds no frame

    return call


def shorten(error: ProtonError) -> None:
    """Takes Proton's frames out of an error and of what it was raised from. Those of a failing pass
    stay: the fault is Proton's, and its report needs them. So do all with PROTON_FULL_TRACEBACK."""
    if knobs.full_traceback or (isinstance(error, PassError) and not isinstance(error, PTXASError)):
        return
    seen, rest = set[int](), [error]
    while rest:
        link: BaseException = rest.pop()
        seen.add(id(link))
        link.__traceback__ = _without_our_frames(link.__traceback__)
        chained = (link.__cause__, link.__context__)
        rest += [e for e in chained if isinstance(e, ProtonError) and id(e) not in seen]


def _without_our_frames(trace: TracebackType | None) -> TracebackType | None:
    """The frames of a traceback that are not of this package; generated code has no module."""
    frames = list[TracebackType]()
    while trace is not None:
        frames.append(trace)
        trace = trace.tb_next
    kept: TracebackType | None = None
    for at in reversed(frames):
        module = str(at.tb_frame.f_globals.get("__name__", _PACKAGE))
        if module.partition(".")[0] != _PACKAGE:
            kept = TracebackType(kept, at.tb_frame, at.tb_lasti, at.tb_lineno)
    return kept
