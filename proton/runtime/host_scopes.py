"""Scopes on the host: slices that launches nest under."""

import contextlib
import threading
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

from proton.base.errors import ProfileError
from proton.runtime.grid import host_thread
from proton.trace.model import HostSlice
from proton.trace.scope_path import ScopePath


@dataclass(frozen=True)
class OpenScope:
    """A host scope that has not ended; `kept` is whether it will be a slice. A state is part of the
    path of launches alone, behind all scopes, where the innermost takes the place of the others."""

    name: str
    start: int
    payload: dict[str, Any]
    kept: bool
    is_state: bool = False


def _path(stack: list[OpenScope], *names: str) -> str:
    """The path of what has these names inside of these scopes."""
    kept = (scope.name for scope in stack if scope.kept and not scope.is_state)
    return ScopePath.of([*kept, *names])


class HostRecorder:
    """Host scopes while sessions are open: a stack for each thread."""

    def __init__(self) -> None:
        self.local = threading.local()  # an ident is used again when its thread has ended
        self.slices: list[HostSlice] = []
        self.stacks: list[tuple[int, list[OpenScope]]] = []

    def stack(self) -> list[OpenScope]:
        """The open scopes of the calling thread, and always the same list."""
        if not hasattr(self.local, "stack"):
            self.local.stack = []
            self.stacks.append((host_thread(), self.local.stack))
        stack: list[OpenScope] = self.local.stack
        return stack

    def path(self) -> str:
        """Of a launch on this thread: the scopes that are open, and the innermost state."""
        try:
            stack = self.local.stack
        except AttributeError:
            stack = self.stack()
        if not stack:
            return ""
        states = [scope.name for scope in stack if scope.is_state]
        return _path(stack, *states[-1:])

    def enter(
        self, name: str, payload: dict[str, object], when: bool, is_state: bool = False
    ) -> None:
        now = time.perf_counter_ns()
        self.stack().append(OpenScope(name, now, dict(payload), when, is_state))

    def add(self, name: str, start: int, kind: str) -> None:
        """A slice that ends now, inside of the scopes that are open."""
        if getattr(self.local, "is_muted", False):
            return
        path = _path(self.stack(), name)
        self.slices.append(
            HostSlice(
                name=name,
                path=path,
                thread=host_thread(),
                start=start,
                end=time.perf_counter_ns(),
                kind=kind,
            )
        )

    @contextlib.contextmanager
    def muted(self) -> Iterator[None]:
        """Adds no slices of this thread meanwhile."""
        self.local.is_muted = True
        try:
            yield
        finally:
            self.local.is_muted = False

    def exit(self, name: str, payload: dict[str, object]) -> None:
        end, stack = time.perf_counter_ns(), self.stack()
        if not stack or stack[-1].name != name:
            inner = repr(stack[-1].name) if stack else "none"
            raise ProfileError(f"exit_scope({name!r}): the innermost open host scope is {inner}")
        stack[-1].payload.update(payload)
        self.slices += _ended(host_thread(), stack, end)
        stack.pop()

    def mark(self, name: str, payload: dict[str, Any]) -> None:
        now = time.perf_counter_ns()
        path = _path(self.stack(), name)
        self.slices.append(
            HostSlice(
                name=name, path=path, thread=host_thread(), start=now, end=now, payload=payload
            )
        )

    def so_far(self) -> list[HostSlice]:
        """All slices; those that are open as if they ended now."""
        end, found = time.perf_counter_ns(), list(self.slices)
        for thread, stack in self.stacks:
            open_ = list(stack)  # the thread goes on
            for depth in range(len(open_), 0, -1):
                found += _ended(thread, open_[:depth], end)
        return found


def _ended(thread: int, stack: list[OpenScope], end: int) -> list[HostSlice]:
    """The slice of the innermost of these scopes, if there is to be one."""
    scope = stack[-1]
    if not scope.kept:
        return []
    path, payload = _path(stack[:-1], scope.name), dict(scope.payload)
    found = HostSlice(
        name=scope.name, path=path, thread=thread, start=scope.start, end=end, payload=payload
    )
    return [found]
