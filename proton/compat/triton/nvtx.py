"""Ranges of NVTX that torch announces (`torch.cuda.nvtx`): scopes of the host while a session runs,
as in Triton's Proton, and as there not with TRITON_ENABLE_NVTX=0."""

import threading
from collections.abc import Callable
from types import ModuleType
from typing import Any

from proton.base.knobs import knobs
from proton.compat.triton.profiler_scopes import kept_name
from proton.language import profiling
from proton.runtime.session.import_watch import ImportWatch

_UNNAMED = "range"


class _Open(threading.local):
    """The ranges of this thread."""

    def __init__(self) -> None:
        self.ranges: list[profiling.scope | None] = []


_open = _Open()


def watch(name: str) -> ImportWatch:
    """What finds torch's module, and has it tell of ranges and marks, too."""
    return ImportWatch(name, _show_ranges)


def _show_ranges(nvtx: ModuleType) -> None:
    changed: Any = nvtx
    changed.range_push = _before(nvtx.range_push, _enter)
    changed.range_pop = _before(nvtx.range_pop, _exit)
    changed.mark = _before(nvtx.mark, _mark)


def _before(function: Callable[..., Any], tell: Callable[..., None]) -> Callable[..., Any]:
    def call(*args: Any) -> Any:
        tell(*args)
        return function(*args)

    call.__doc__ = function.__doc__
    return call


def _is_heard() -> bool:
    return profiling.host is not None and bool(knobs.proton.enable_nvtx)


def _enter(message: object) -> None:
    scope = profiling.scope(kept_name(str(message)) or _UNNAMED) if _is_heard() else None
    if scope is not None:
        scope.__enter__()
    _open.ranges.append(scope)


def _exit() -> None:
    scope = _open.ranges.pop() if _open.ranges else None
    if scope is not None:
        scope.__exit__(None)


def _mark(message: object) -> None:
    if _is_heard():
        profiling.mark(kept_name(str(message)) or _UNNAMED)
