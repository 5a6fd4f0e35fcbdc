"""`triton.profiler`: sessions that end in a file, as programs for Triton's Proton expect.

    proton.start("step", hook="triton")
    proton.finalize()                   # step.hatchet; the run, too, which Triton does not give

A tree has Proton's kernels, and on a GPU those of other libraries, where CUPTI tells of them. The
scopes inside of kernels are in the run. Of a session that goes on `data` has the phases.
"""

import functools
import importlib.util
from collections.abc import Callable
from typing import Any

from proton import _profiling
from proton._start_options import Mode, PeriodicFlushing, parse
from proton.base.errors import ProfileError
from proton.compat.triton import profiler_data as data
from proton.compat.triton import profiler_scopes as context
from proton.compat.triton import profiler_specs as specs
from proton.compat.triton.profiler_data import PhasedSession, sessions
from proton.compat.triton.profiler_hooks import Hook, HookManager, LaunchHook, PythonContext
from proton.compat.triton.profiler_scopes import cpu_timed_scope as cpu_timed_scope
from proton.compat.triton.profiler_scopes import enter_scope as enter_scope
from proton.compat.triton.profiler_scopes import enter_state as enter_state
from proton.compat.triton.profiler_scopes import exit_scope as exit_scope
from proton.compat.triton.profiler_scopes import exit_state as exit_state
from proton.compat.triton.profiler_scopes import metadata_state as metadata_state
from proton.compat.triton.profiler_scopes import scope as scope
from proton.compat.triton.profiler_scopes import state as state
from proton.compat.triton.profiler_tree import TRACE, TREE, checked_format
from proton.profiler import language as language
from proton.profiler import mark as mark
from proton.profiler import mode as mode
from proton.runtime import driver
from proton.viewer import Run

__all__ = ["context", "data", "specs"]
DEFAULT_PROFILE_NAME = "proton"
_FORMATS = {"tree": TREE, "trace": TRACE}


def start(
    name: str | None = None,
    *,
    context: str | None = "shadow",
    data: str | None = "tree",
    backend: str | None = None,
    mode: Mode | str | None = None,
    hook: str | Hook | None = None,
    **options: Any,
) -> int | None:
    """Opens a session, as `proton.start`. `name` is that of the file, without a suffix; `hook` is
    "triton", which takes what `launch_metadata` says, or a Hook; with `context="python"` launches
    lie in Python's call stack; with `mode="periodic_flushing:format=..."` each phase has a file.
    The back end "cupti" is what there is. Raises ProfileError for another hook or format."""
    if not (hook is None or hook == "triton" or isinstance(hook, Hook)):
        raise ProfileError(f"hook must be None, 'triton' or a Hook, got {hook!r}")
    file, kind = DEFAULT_PROFILE_NAME if name is None else str(name), data or "tree"
    format, asked = "", parse(mode) if isinstance(mode, str) else mode
    if isinstance(asked, PeriodicFlushing):
        format, mode = checked_format(asked.format), None
    if backend != "instrumentation" and _sees_others():
        options.setdefault("activities", "all")
    hooks: list[Hook] = []
    if context == "python":
        hooks, context = [PythonContext()], "shadow"
    number = _profiling.start(
        file,
        data=kind,
        context=context or "shadow",
        backend=None if backend == "cupti" else backend,
        mode=mode,
        **options,
    )
    if number is None:
        return None
    sessions[number] = PhasedSession(
        number, file, format or _FORMATS[kind], writes_phases=bool(format)
    )
    if hook is not None:
        hooks.append(hook if isinstance(hook, Hook) else LaunchHook())
    for each in hooks:
        HookManager.register(each, number)
    return number


def _sees_others() -> bool:
    """True if CUPTI can tell of kernels of other libraries."""
    on_gpu = driver.active.get_current_target().backend != "cpu"
    return on_gpu and importlib.util.find_spec("cupti") is not None


def profile(func: Callable[..., Any] | None = None, **options: Any) -> Callable[..., Any]:
    """`@profile`, or `@profile(name=...)`: each call of the function is a session, which `finalize`
    ends."""
    if func is None:
        return functools.partial(profile, **options)
    name = options.pop("name", None)

    @functools.wraps(func)
    def call(*args: Any, **kwargs: Any) -> Any:
        session = start(name, **options)
        try:
            return func(*args, **kwargs)
        finally:
            if session is not None:
                deactivate(session)

    return call


def activate(session: int | None = None) -> None:
    """Has a session record again, or all; its hooks hear of launches again."""
    _profiling.activate(session)
    HookManager.activate(session)


def deactivate(session: int | None = None, flushing: bool = False) -> None:
    """Has a session record nothing until `activate`, or all. `flushing` changes nothing: what asks
    for data waits for it."""
    _profiling.deactivate(session)
    HookManager.deactivate(session)


def finalize(session: int | None = None, output_format: str | None = "") -> Run | None:
    """Ends a session, or all that are open, and writes the file of each, or of each of its phases:
    a tree (`hatchet`, `hatchet_msgpack`) or a trace (`chrome_trace`), as `data`, `mode` or
    `output_format` says. Gives the last one's run, None where none was open. Raises ProfileError
    for another format."""
    format = checked_format(output_format) if output_format else ""
    run = None
    for number in [*sessions] if session is None else [session]:
        ended = sessions.pop(number, None)
        HookManager.unregister(number)
        run = _profiling.finalize(number)
        if ended is not None:
            ended.write(run, format)
    return run
