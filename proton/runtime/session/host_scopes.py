"""Scopes on the host: slices that launches nest under."""

import contextlib
import itertools
import threading
import time
from collections.abc import Iterator, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from types import MappingProxyType
from typing import Any

from proton.base.errors import ProfileError
from proton.runtime.launch.grid import host_thread
from proton.trace.model import HostSlice
from proton.trace.scope_path import ScopePath


@dataclass(eq=False)
class OpenScope:
    """A host scope that has not ended; `kept` is whether it will be a slice. A state is part of the
    path of launches alone, behind all scopes, where the innermost takes the place of the others."""

    name: str
    start: int
    payload: dict[str, Any]
    kept: bool
    is_state: bool
    is_block: bool  # a `with` ends it, in whatever order
    thread: int
    outer: "OpenScope | None"
    recorder: "HostRecorder"
    has_ended: bool = False

    def chain(self) -> "Iterator[OpenScope]":
        """This one and those around it, outwards."""
        scope: OpenScope | None = self
        while scope is not None:
            yield scope
            scope = scope.outer


# Each thread and each task of asyncio has its own; a task begins with that of who made it.
_innermost: ContextVar[OpenScope | None] = ContextVar("proton_innermost_scope", default=None)


def _path(innermost: OpenScope | None, *names: str) -> str:
    """The path of what has these names inside of a scope."""
    chain = () if innermost is None else innermost.chain()
    kept = [scope.name for scope in chain if scope.kept and not scope.is_state]
    return ScopePath.of([*reversed(kept), *names])


class HostRecorder:
    """Host scopes while sessions are open."""

    def __init__(self) -> None:
        self.local = threading.local()
        self.slices: list[HostSlice] = []
        self.open: dict[OpenScope, None] = {}  # in order of time

    def innermost(self) -> OpenScope | None:
        """The scope that the caller is in."""
        scope = _innermost.get()
        while scope is not None and scope.has_ended:  # by another thread or task, or out of order
            scope = scope.outer
        return None if scope is None or scope.recorder is not self else scope

    def path(self) -> str:
        """Of a launch by the caller: the scopes that are open, and the innermost state."""
        innermost = self.innermost()
        if innermost is None:
            return ""
        states = (scope.name for scope in innermost.chain() if scope.is_state)
        return _path(innermost, *itertools.islice(states, 1))

    def enter(
        self,
        name: str,
        payload: dict[str, object],
        when: bool,
        is_state: bool = False,
        is_block: bool = False,
    ) -> None:
        now = time.perf_counter_ns()
        scope = OpenScope(
            name, now, dict(payload), when, is_state, is_block, host_thread(),
            self.innermost(), self,
        )  # fmt: skip
        self.open[scope] = None
        _innermost.set(scope)

    def add(self, name: str, start: int, kind: str) -> None:
        """A slice that ends now, inside of the scopes that are open."""
        if getattr(self.local, "is_muted", False):
            return
        path = _path(self.innermost(), name)
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
        """Ends the innermost scope, which has this name."""
        end, scope = time.perf_counter_ns(), self.innermost()
        if scope is None or scope.name != name:
            newest = next(self._of_thread(), None)  # another task may have opened it
            if newest is None or newest.name != name:
                raise _not_innermost(name, scope)
            scope = newest
        scope.payload.update(payload)
        self._end(scope, end)

    def exit_block(
        self, name: str, has_failed: bool, payload: Mapping[str, object] = MappingProxyType({})
    ) -> None:
        """Ends the innermost scope of this name that a `with` opened; others that do may go on, as
        those of generators that alternate. What `enter_scope` opened inside and left open is an
        error, and ends with the block that an exception leaves."""
        end, innermost = time.perf_counter_ns(), self.innermost()
        chain = [] if innermost is None else [s for s in innermost.chain() if not s.has_ended]
        depth = next((i for i, s in enumerate(chain) if s.is_block and s.name == name), None)
        if depth is None:  # a coroutine may end in another task than it began in
            others = (s for s in self._of_thread() if s.is_block and s.name == name)
            scope, inside = next(others, None), []
        else:
            scope, inside = chain[depth], [s for s in chain[:depth] if not s.is_block]
        if scope is None or (inside and not has_failed):
            raise _not_innermost(name, innermost)
        scope.payload.update(payload)
        for each in (*inside, scope):
            self._end(each, end)

    def _of_thread(self) -> Iterator[OpenScope]:
        """The open scopes that this thread opened, the newest first."""
        thread = host_thread()
        return (scope for scope in reversed(list(self.open)) if scope.thread == thread)

    def _end(self, scope: OpenScope, end: int) -> None:
        self.slices += _ended(scope, end)
        scope.has_ended = True
        self.open.pop(scope, None)
        if _innermost.get() is scope:
            _innermost.set(self.innermost())

    def mark(self, name: str, payload: dict[str, Any]) -> None:
        now = time.perf_counter_ns()
        path = _path(self.innermost(), name)
        self.slices.append(
            HostSlice(
                name=name, path=path, thread=host_thread(), start=now, end=now, payload=payload
            )
        )

    def take(self) -> list[HostSlice]:
        """The slices that have ended, which are forgotten here."""
        found = self.slices[:]
        del self.slices[: len(found)]  # others may have been added
        return found

    def forget(self, before: float) -> None:
        """Leaves out the slices that have ended before a moment."""
        count = len(self.slices)  # others may be added meanwhile
        self.slices[:count] = [s for s in self.slices[:count] if s.end >= before]

    def depth(self) -> int:
        """How many scopes the caller is in."""
        innermost = self.innermost()
        chain = () if innermost is None else innermost.chain()
        return sum(scope.kept and not scope.is_state for scope in chain)

    def so_far(self) -> list[HostSlice]:
        """All slices; those that are open as if they ended now."""
        end, found = time.perf_counter_ns(), list(self.slices)
        for scope in reversed(list(self.open)):  # the inner ones first
            found += _ended(scope, end)
        return found


def _not_innermost(name: str, innermost: OpenScope | None) -> ProfileError:
    inner = "none" if innermost is None else repr(innermost.name)
    return ProfileError(f"exit_scope({name!r}): the innermost open host scope is {inner}")


def _ended(scope: OpenScope, end: int) -> list[HostSlice]:
    """The slice of a scope, if there is to be one."""
    if not scope.kept:
        return []
    found = HostSlice(
        name=scope.name,
        path=_path(scope.outer, scope.name),
        thread=scope.thread,
        start=scope.start,
        end=end,
        payload=dict(scope.payload),
    )
    return [found]
