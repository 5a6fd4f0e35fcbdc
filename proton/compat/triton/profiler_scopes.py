"""Scopes and states of the host, as `triton.profiler` has them.

They take names and metrics that a run cannot keep as they are: a name may have the separator of
paths in it, a metric may be a tensor, or a row of numbers, which are kept as `name[0]`, `name[1]`.
What they are given is looked at only while a session runs.
"""

import itertools
import re
import threading
import time
from collections.abc import Mapping, Sequence
from typing import Any, Self

from proton.language import profiling
from proton.trace.scope_path import FUSED, SEPARATOR, ScopePath

MetricValueType = float | int | Sequence[float] | Sequence[int]
# The state of what is launched to compute metrics, and what is in front of a kernel's name in it.
COMPUTE_METADATA_SCOPE_NAME = "__proton_launch_metadata"
COMPUTE_METADATA_SCOPE_PREFIX = f"{COMPUTE_METADATA_SCOPE_NAME}:"
CPU_TIME = "cpu_time"
CPU_TIME_NS = f"{CPU_TIME} (ns)"
ELEMENT = re.compile(r"(.*)\[(\d+)\]")  # of a metric that is a row
_ids = itertools.count()


class _Open(threading.local):
    """What `enter_scope` and `enter_state` of this thread have opened: (number, name)."""

    def __init__(self) -> None:
        self.scopes: list[tuple[int, str]] = []
        self.states: list[str] = []


_open = _Open()


def kept_name(name: str) -> str:
    """A name as a path can have it."""
    return name.replace(SEPARATOR, "|").replace(FUSED, "+")


def kept_metrics(metrics: Mapping[str, Any] | None) -> dict[str, Any]:
    """Metrics as numbers; a tensor is waited for."""
    found: dict[str, Any] = {}
    for name, value in (metrics or {}).items():
        if hasattr(value, "data_ptr"):
            value = value.item() if value.numel() == 1 else value.flatten().tolist()
        if isinstance(value, list | tuple):
            found |= {f"{name}[{number}]": each for number, each in enumerate(value)}
        else:
            found[name] = value
    return found


def _placed(
    owner: str, metrics: Mapping[str, Any] | None
) -> tuple[dict[str, Any], list[tuple[str, dict[str, Any]]]]:
    """Metrics as payload of a scope; or as those of the state that the caller is in."""
    host = profiling.host
    if host is None or not metrics:
        return {}, []
    kept = profiling.check_payload(owner, kept_metrics(metrics))
    states = ScopePath(host.path()).parts[host.depth() :]
    return ({}, [(states[0], kept)]) if states else (kept, [])


def _mark_states(of_states: list[tuple[str, dict[str, Any]]]) -> None:
    if profiling.host is not None:
        for name, metrics in of_states:
            profiling.host.mark(name, metrics)


class _Scope(profiling.scope):
    """`with scope("step", {"flops": 1e9}):`, or a decorator."""

    def __init__(
        self, name: str, metrics: Mapping[str, Any] | None = None, *, when: bool = True
    ) -> None:
        super().__init__(kept_name(name), when=when)
        self.metrics = metrics

    def __enter__(self) -> Self:
        metrics = self.metrics if self.when else None
        self.payload, of_states = _placed(f"scope {self.name}", metrics)
        super().__enter__()
        _mark_states(of_states)
        return self


class _TimedScope(_Scope):
    """One whose time is a metric, `cpu_time (ns)`, too."""

    def __init__(
        self, name: str, metrics: Mapping[str, Any] | None = None, *, when: bool = True
    ) -> None:
        if CPU_TIME in (metrics or {}):
            raise ValueError(f"cpu_timed_scope {name}: {CPU_TIME!r} is the time that it takes")
        super().__init__(name, metrics, when=when)

    def __enter__(self) -> Self:
        super().__enter__()
        self.start = time.perf_counter_ns()
        return self

    def _measured(self) -> Mapping[str, object]:
        return {CPU_TIME_NS: time.perf_counter_ns() - self.start}


class _State(profiling.state):
    """`with state("warm-up"):`, or a decorator."""

    def __init__(self, name: str, metrics: None = None, *, when: bool = True) -> None:
        super().__init__(kept_name(name), metrics, when=when)


class _MetadataState(_State):
    """The state of what is launched to compute metrics, such as by a kernel's `launch_metadata`."""

    def __init__(self, kernel_name: str | None = None) -> None:
        super().__init__(get_metadata_state_name(kernel_name))


scope, cpu_timed_scope = _Scope, _TimedScope
state, metadata_state = _State, _MetadataState


def get_metadata_state_name(kernel_name: str | None = None) -> str:
    """What `metadata_state` calls its state."""
    if kernel_name:
        return f"{COMPUTE_METADATA_SCOPE_PREFIX}{kernel_name}"
    return COMPUTE_METADATA_SCOPE_NAME


def depth(session: int | None = 0) -> int | None:
    """How many scopes the caller is in; None while no session runs."""
    return None if profiling.host is None else profiling.host.depth()


def enter_scope(name: str, *, metrics: Mapping[str, Any] | None = None) -> int | None:
    """Opens a scope, and gives its number; None while no session runs."""
    if profiling.host is None:
        return None
    number = next(_ids)
    payload, of_states = _placed(f"scope {name}", metrics)
    profiling.enter_scope(kept_name(name), metrics=payload)
    _mark_states(of_states)
    _open.scopes.append((number, name))
    return number


def exit_scope(name: str | None = None, *, metrics: Mapping[str, Any] | None = None) -> int | None:
    """Closes the scope that `enter_scope` opened last, and gives its number. Raises ValueError
    where that has another name, or none is open."""
    if profiling.host is None:
        _open.scopes.clear()  # of a session that has ended
        return None
    if not _open.scopes:
        raise ValueError("exit_scope: no scope is open; enter_scope opens one")
    number, opened = _open.scopes[-1]
    if name is not None and name != opened:
        raise ValueError(f"exit_scope: the scope that was opened last is {opened!r}, got {name!r}")
    payload, of_states = _placed(f"scope {opened}", metrics)
    _mark_states(of_states)
    profiling.exit_scope(kept_name(opened), metrics=payload)
    _open.scopes.pop()
    return number


def enter_state(name: str) -> None:
    """Begins a state."""
    if profiling.host is not None:
        profiling.enter_state(kept_name(name))
        _open.states.append(name)


def exit_state() -> None:
    """Ends the state that `enter_state` began last, if one is open."""
    if profiling.host is not None and _open.states:
        profiling.exit_state(kept_name(_open.states.pop()))
