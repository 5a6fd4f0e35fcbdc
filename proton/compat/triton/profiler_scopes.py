"""Scopes and states of the host, as `triton.profiler` has them.

They take names and metrics that a run cannot keep as they are: a name may have the separator of
paths in it, a metric may be a tensor of one number. What they are given is looked at only while a
session runs.
"""

import itertools
import threading
from collections.abc import Mapping
from typing import Any, Self

from proton.language import profiling
from proton.trace.scope_path import FUSED, SEPARATOR

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
    """Metrics as numbers: of a tensor, which is waited for, its only element."""
    return {name: _number(value) for name, value in (metrics or {}).items()}


def _number(value: Any) -> Any:
    is_tensor = hasattr(value, "data_ptr") and value.numel() == 1
    return value.item() if is_tensor else value


class _Scope(profiling.scope):
    """`with scope("step", {"flops": 1e9}):`, or a decorator."""

    def __init__(
        self, name: str, metrics: Mapping[str, Any] | None = None, *, when: bool = True
    ) -> None:
        super().__init__(kept_name(name), when=when)
        self.metrics = metrics

    def __enter__(self) -> Self:
        if profiling.host is not None:
            self.payload = profiling.check_payload(f"scope {self.name}", kept_metrics(self.metrics))
        return super().__enter__()


class _State(profiling.state):
    """`with state("warm-up"):`, or a decorator."""

    def __init__(self, name: str, metrics: None = None, *, when: bool = True) -> None:
        super().__init__(kept_name(name), metrics, when=when)


scope = cpu_timed_scope = _Scope  # each scope of the host has its time
state = _State


def enter_scope(name: str, *, metrics: Mapping[str, Any] | None = None) -> int | None:
    """Opens a scope, and gives its number; None while no session runs."""
    if profiling.host is None:
        return None
    number = next(_ids)
    profiling.enter_scope(kept_name(name), metrics=kept_metrics(metrics))
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
    profiling.exit_scope(kept_name(opened), metrics=kept_metrics(metrics))
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
