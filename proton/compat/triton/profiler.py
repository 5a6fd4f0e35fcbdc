"""`triton.profiler`: sessions that end in a file, as programs for Triton's Proton expect.

    proton.start("step", hook="triton")
    proton.finalize()                   # step.hatchet; the run, too, which Triton does not give

The rest is what `proton.profiler` has. A tree has host scopes with their metrics, and below them
kernels with times and counts; the scopes inside of kernels are in the run.
"""

import json
from pathlib import Path
from typing import Any

from proton import _profiling
from proton.base.errors import ProfileError
from proton.compat.triton.profiler_hooks import Hook, HookManager, LaunchHook
from proton.profiler import cpu_timed_scope as cpu_timed_scope
from proton.profiler import enter_scope as enter_scope
from proton.profiler import enter_state as enter_state
from proton.profiler import exit_scope as exit_scope
from proton.profiler import exit_state as exit_state
from proton.profiler import language as language
from proton.profiler import mark as mark
from proton.profiler import mode as mode
from proton.profiler import profile as profile
from proton.profiler import scope as scope
from proton.profiler import state as state
from proton.trace.scope_path import ScopePath
from proton.viewer import Run
from proton.viewer.tables.metrics import COUNT, TIME, MetricNode

DEFAULT_PROFILE_NAME = "proton"
FORMATS = {"tree": "hatchet", "trace": "chrome_trace"}
_sessions: dict[int, tuple[str, str]] = {}  # number -> the file's name, its format


def start(
    name: str | None = None, *, data: str = "tree", hook: str | Hook | None = None, **options: Any
) -> int | None:
    """Opens a session, as `proton.start`. `name` is that of the file, without a suffix; `hook` is
    "triton", which takes what `launch_metadata` says, or a Hook. Raises ProfileError for another
    hook."""
    if not (hook is None or hook == "triton" or isinstance(hook, Hook)):
        raise ProfileError(f"hook must be None, 'triton' or a Hook, got {hook!r}")
    file = DEFAULT_PROFILE_NAME if name is None else str(name)
    number = _profiling.start(file, data=data, **options)
    if number is None:
        return None
    _sessions[number] = file, FORMATS[data]
    if hook is not None:
        HookManager.register(hook if isinstance(hook, Hook) else LaunchHook(), number)
    return number


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
    for row in run.launches.to_dict("records"):
        kernel = _at(_at(root, row["scope"]), row["kernel"])
        _add(kernel, TIME, row["dur_ns"])
        _add(kernel, COUNT, 1)
    return root


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
