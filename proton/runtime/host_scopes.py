"""Host scopes of a session: slices that launches nest under."""

import threading
import time
from dataclasses import dataclass
from typing import Any

from proton.base.errors import ProfileError
from proton.runtime.grid import host_thread
from proton.trace.model import HostSlice
from proton.trace.scope_path import ScopePath


@dataclass(frozen=True)
class _OpenScope:
    """A host scope that has not ended; `kept` is whether it will be a slice."""

    name: str
    start: int
    payload: dict[str, Any]
    kept: bool


def _path(stack: list[_OpenScope], *names: str) -> str:
    """The path of what is inside these scopes."""
    return ScopePath.of([*(scope.name for scope in stack if scope.kept), *names])


class HostRecorder:
    """Host scopes of a session: a stack for each thread."""

    def __init__(self) -> None:
        self.local = threading.local()  # an ident is used again when its thread has ended
        self.slices: list[HostSlice] = []
        self.stacks: list[tuple[int, list[_OpenScope]]] = []

    def _stack(self) -> list[_OpenScope]:
        if not hasattr(self.local, "stack"):
            self.local.stack = []
            self.stacks.append((host_thread(), self.local.stack))
        stack: list[_OpenScope] = self.local.stack
        return stack

    def path(self) -> str:
        """The scopes that are open on this thread."""
        try:
            stack = self.local.stack
        except AttributeError:
            stack = self._stack()
        return _path(stack) if stack else ""

    def enter(self, name: str, payload: dict[str, Any], when: bool) -> None:
        self._stack().append(_OpenScope(name, time.perf_counter_ns(), dict(payload), when))

    def add(self, name: str, start: int, kind: str) -> None:
        """A slice that ends now, inside of the scopes that are open."""
        path = _path(self._stack(), name)
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

    def exit(self, name: str) -> None:
        end, stack = time.perf_counter_ns(), self._stack()
        if not stack or stack[-1].name != name:
            inner = repr(stack[-1].name) if stack else "none"
            raise ProfileError(f"exit_scope({name!r}): the innermost open host scope is {inner}")
        self._close(host_thread(), stack, end)

    def mark(self, name: str, payload: dict[str, Any]) -> None:
        now = time.perf_counter_ns()
        path = _path(self._stack(), name)
        self.slices.append(
            HostSlice(
                name=name, path=path, thread=host_thread(), start=now, end=now, payload=payload
            )
        )

    def _close(self, thread: int, stack: list[_OpenScope], end: int) -> None:
        path, scope = _path(stack), stack.pop()
        if scope.kept:
            self.slices.append(
                HostSlice(
                    name=scope.name,
                    path=path,
                    thread=thread,
                    start=scope.start,
                    end=end,
                    payload=scope.payload,
                )
            )

    def close_all(self) -> None:
        """Ends the scopes that are still open when the session ends."""
        end = time.perf_counter_ns()
        for thread, stack in self.stacks:
            while stack:
                self._close(thread, stack, end)
