"""`triton.profiler`: sessions that end in a file, as programs for Triton's Proton expect.

    proton.start("step", hook="triton")
    proton.finalize()                   # step.hatchet; the run, too, which Triton does not give

A tree has host scopes with their metrics, and below them kernels with times and counts: Proton's,
and on a GPU those of other libraries, where CUPTI tells of them. The scopes inside of kernels are
in the run.
"""

import functools
import importlib.util
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from proton import _profiling
from proton.base.errors import ProfileError
from proton.compat.triton.profiler_hooks import Hook, HookManager, LaunchHook, PythonContext
from proton.compat.triton.profiler_scopes import cpu_timed_scope as cpu_timed_scope
from proton.compat.triton.profiler_scopes import enter_scope as enter_scope
from proton.compat.triton.profiler_scopes import enter_state as enter_state
from proton.compat.triton.profiler_scopes import exit_scope as exit_scope
from proton.compat.triton.profiler_scopes import exit_state as exit_state
from proton.compat.triton.profiler_scopes import scope as scope
from proton.compat.triton.profiler_scopes import state as state
from proton.profiler import language as language
from proton.profiler import mark as mark
from proton.profiler import mode as mode
from proton.runtime import driver
from proton.trace.model import HostSlice, RawRun
from proton.trace.scope_path import ScopePath
from proton.viewer import Run
from proton.viewer.tables.metrics import COUNT, TIME, MetricNode

DEFAULT_PROFILE_NAME = "proton"
FORMATS = {"tree": "hatchet", "trace": "chrome_trace"}
_sessions: dict[int, tuple[str, str]] = {}  # number -> the file's name, its format


def start(
    name: str | None = None,
    *,
    context: str | None = "shadow",
    data: str | None = "tree",
    backend: str | None = None,
    hook: str | Hook | None = None,
    **options: Any,
) -> int | None:
    """Opens a session, as `proton.start`. `name` is that of the file, without a suffix; `hook` is
    "triton", which takes what `launch_metadata` says, or a Hook; with `context="python"` launches
    lie in Python's call stack. The back end "cupti" is what there is. Raises ProfileError for
    another hook."""
    if not (hook is None or hook == "triton" or isinstance(hook, Hook)):
        raise ProfileError(f"hook must be None, 'triton' or a Hook, got {hook!r}")
    file, kind = DEFAULT_PROFILE_NAME if name is None else str(name), data or "tree"
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
        **options,
    )
    if number is None:
        return None
    _sessions[number] = file, FORMATS[kind]
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
    """Has a session record nothing until `activate`, or all. `flushing` changes nothing: what was
    recorded is in the run."""
    _profiling.deactivate(session)
    HookManager.deactivate(session)


def finalize(session: int | None = None, output_format: str | None = "") -> Run | None:
    """Ends a session, or all that are open, and writes the file of each: a tree (`hatchet`) or a
    trace (`chrome_trace`), as `data` or `output_format` says. Gives the last one's run, None where
    none was open. Raises ProfileError for another format."""
    if output_format and output_format not in FORMATS.values():
        known = " or ".join(FORMATS.values())
        raise ProfileError(f"output_format must be {known}, got {output_format!r}")
    run = None
    for number in [*_sessions] if session is None else [session]:
        file, format = _sessions.pop(number, (DEFAULT_PROFILE_NAME, FORMATS["tree"]))
        HookManager.unregister(number)
        run = _profiling.finalize(number)
        _write(run, file, output_format or format)
    return run


def _write(run: Run, file: str, format: str) -> None:
    path = Path(f"{file}.{format}")
    if format == "hatchet":
        content = [_entry(_tree(run)), {}]  # the second says what devices there are
        path.write_text(json.dumps(content), "utf-8")
        return
    run.save(path, format="chrome")


def _tree(run: Run) -> MetricNode:
    root = MetricNode("ROOT", {TIME: 0.0, COUNT: 0.0})
    for row in run.frame[run.frame["kind"] == "host"].to_dict("records"):
        for name, value in (row["payload"] or {}).items():
            _add(_at(root, row["scope"]), name, value)
    timed = [
        (row["scope"], row["kernel"], row["dur_ns"]) for row in run.launches.to_dict("records")
    ]
    for path, name, duration in [*timed, *_others(run.raw)]:
        kernel = _at(_at(root, path), name)
        _add(kernel, TIME, duration)
        _add(kernel, COUNT, 1)
    return root


def _others(raw: RawRun) -> Iterator[tuple[str, str, int]]:
    """Kernels of other libraries: the scope that each was asked for in, its name, its time."""
    own = {kernel.name for kernel in raw.kernels}
    scopes = [slice_ for slice_ in raw.host if slice_.kind == "host"]
    for kernel in raw.host:
        if kernel.kind == "kernel" and kernel.name not in own:
            around = [slice_ for slice_ in scopes if _asked_in(kernel, slice_)]
            innermost = max(around, key=lambda slice_: slice_.start, default=None)
            path = "" if innermost is None else innermost.path
            yield path, kernel.name, kernel.end - kernel.start


def _asked_in(kernel: HostSlice, scope: HostSlice) -> bool:
    """Whether a kernel was asked for in a scope; of its thread CUPTI knows the low half."""
    is_thread = (kernel.issuer ^ scope.thread) & 0xFFFFFFFF == 0
    return is_thread and scope.start <= kernel.issued <= scope.end


def _at(node: MetricNode, path: str) -> MetricNode:
    """The node of a path below another; a new one where there is none."""
    for name in ScopePath(path).parts:
        found = next((inner for inner in node.inner if inner.name == name), None)
        if found is None:
            node.inner.append(found := MetricNode(name))
        node = found
    return node


def _add(node: MetricNode, metric: str, value: float) -> None:
    node.metrics[metric] = node.metrics.get(metric, 0.0) + float(value)


def _entry(node: MetricNode) -> dict[str, object]:
    frame = {"name": node.name, "type": "function"}
    return {"frame": frame, "metrics": node.metrics, "children": [*map(_entry, node.inner)]}
