"""Profiling ops: the same names inside a kernel and around its launches.

Inside a kernel the front end reads them; on the host they record host slices in the running
session, which the runtime installs as `host`.
"""

import copy
import functools
import inspect
from collections.abc import Awaitable, Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ParamSpec, Protocol, Self, TypeVar, cast

import numpy as np

from proton.trace.scope_path import FUSED, SEPARATOR, is_name

P = ParamSpec("P")
R = TypeVar("R")
MIN_INT, MAX_INT = -(1 << 63), (1 << 63) - 1  # of a payload value


class HostScopeListener(Protocol):
    """What a session does with host scopes."""

    def enter(
        self,
        name: str,
        payload: dict[str, Any],
        when: bool,
        is_state: bool = False,
        is_block: bool = False,
    ) -> None: ...
    def exit(self, name: str, payload: dict[str, Any]) -> None: ...
    def exit_block(
        self, name: str, has_failed: bool, payload: Mapping[str, object] = ...
    ) -> None: ...
    def mark(self, name: str, payload: dict[str, Any]) -> None: ...
    def add(self, name: str, start: int, kind: str) -> None: ...
    def path(self) -> str: ...
    def depth(self) -> int: ...


host: HostScopeListener | None = None  # the running session's recorder; None while nothing runs


def set_host_recorder(recorder: HostScopeListener | None) -> None:
    """Installs the recorder of the running session, or removes it."""
    global host
    host = recorder


def check_text(text: object, what: str) -> str:
    """Text that every file can hold; raises ValueError for what is none."""
    if not isinstance(text, str):
        raise ValueError(f"{what} is a str, got {text!r}; str(...) makes one of it")
    if not text.isascii() and any("\ud800" <= letter <= "\udfff" for letter in text):
        raise ValueError(f"{what} is Unicode text without lone surrogates, got {text!r}")
    return str(text)


def check_name(name: Any, what: str = "a scope's name") -> str:
    """The scope's name; raises ValueError where it cannot be one."""
    if not isinstance(name, str) or not is_name(name):
        rule = f"{what} is a non-empty str without {SEPARATOR!r} or {FUSED!r}"
        raise ValueError(f"{rule}, got {name!r}")
    return check_text(name, what)


def check_payload(owner: str, payload: dict[str, Any]) -> dict[str, int | float]:
    """The host's payload as Python numbers; raises ValueError where a value is none that files
    can hold."""
    return {
        check_text(name, f"{owner}: a payload's name"): _check_value(f"{owner}, payload {name}", v)
        for name, v in payload.items()
    }


def check_metrics(
    owner: str, metrics: Mapping[str, Any] | None, payload: Mapping[str, Any]
) -> dict[str, object]:
    """A scope's metrics, which Triton gives as a dict, with its payload: they are the same. Raises
    ValueError for what is no dict, and for a value that is given twice."""
    if metrics is None:
        return dict(payload)
    if not isinstance(metrics, Mapping):
        raise ValueError(f"{owner}: metrics are a dict of names and numbers, got {metrics!r}")
    if twice := sorted(set(metrics) & set(payload)):
        raise ValueError(f"{owner}: {twice[0]} is given twice, as a metric and as payload")
    return {**metrics, **payload}


def _check_value(what: str, value: object) -> int | float:
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if isinstance(value, float | np.floating):
        return float(value)
    if not isinstance(value, int | np.integer | np.bool_):
        raise ValueError(
            f"{what} must be a number (bool, int, float, or one of numpy's), got {value!r}; "
            "convert it with int(...) or float(...), put text into the scope's name, or leave it "
            "out"
        )
    if not MIN_INT <= int(value) <= MAX_INT:
        raise ValueError(
            f"{what} must fit in a signed 64-bit integer, got {value}; pass float(...) of it"
        )
    return int(value)


def check_when(when: object) -> bool:
    """The host's condition; raises ValueError where it is no bool."""
    if not isinstance(when, bool | np.bool_):
        raise ValueError(f"when must be a bool on the host, got {when!r}")
    return bool(when)


class scope:
    """`with proton.scope("load", k=k):` measures the work written inside.

    In a kernel the name is a constexpr str and the payload values are scalars (int or float),
    kept in each slice. On the host it makes a slice that launches nest under; its payload values
    are Python's or numpy's numbers, kept as int or float, and `@proton.scope("step")` makes one of
    each call of a function. `metrics={"flops": 1e9}` is payload, too. There is a slice only where
    `when` is true, which in a kernel is a scalar or a constexpr. What cannot be kept raises
    ValueError, whether a session runs or not.
    """

    _is_state = False

    def __init__(
        self,
        name: str,
        metrics: Mapping[str, int | float] | None = None,
        *,
        when: bool = True,
        **payload: int | float,
    ) -> None:
        self.name, self.when = check_name(name), check_when(when)
        owner = f"scope {name}"
        self.payload = check_payload(owner, check_metrics(owner, metrics, payload))

    def __enter__(self) -> Self:
        self.host = host  # a session may start or end inside the block
        if host is not None:
            host.enter(self.name, self.payload, self.when, self._is_state, is_block=True)
        return self

    def __exit__(self, failure: type[BaseException] | None, *_: object) -> None:
        if self.host is host and host is not None:
            host.exit_block(self.name, failure is not None, self._measured())

    def _measured(self) -> Mapping[str, object]:
        """What is payload when the scope ends."""
        return {}

    def __call__(self, function: Callable[P, R]) -> Callable[P, R]:
        """The function with this scope around each call; of a coroutine or a generator from its
        first step to its end. Raises TypeError for an asynchronous generator."""
        if inspect.isasyncgenfunction(function):
            raise TypeError(
                f"scope {self.name} cannot decorate the asynchronous generator "
                f"{function.__qualname__}: write `with proton.scope({self.name!r}):` inside it"
            )

        def call(*args: P.args, **kwargs: P.kwargs) -> R:
            with copy.copy(self):
                return function(*args, **kwargs)

        async def awaited(*args: P.args, **kwargs: P.kwargs) -> Any:
            with copy.copy(self):
                return await cast("Awaitable[Any]", function(*args, **kwargs))

        def generated(*args: P.args, **kwargs: P.kwargs) -> Any:
            with copy.copy(self):
                return (yield from cast("Iterator[Any]", function(*args, **kwargs)))

        chosen: Callable[P, Any] = call
        if inspect.iscoroutinefunction(function):
            chosen = awaited
        elif inspect.isgeneratorfunction(function):
            chosen = generated
        return functools.wraps(function)(chosen)


class cpu_timed_scope(scope):
    """A scope on the host, as Triton names one that takes the time of the host: all do here."""


class state(scope):
    """`with proton.state("forward"):` names, on the host, what runs meanwhile: launches have it as
    the last part of their path, behind all scopes; of states in each other the inner one."""

    _is_state = True

    def __init__(self, name: str, metrics: None = None, *, when: bool = True) -> None:
        super().__init__(name, metrics, when=when)


class _HostOp:
    """A profiling op that is a statement, in kernels and on the host."""

    def __init__(self, name: str, doc: str) -> None:
        self.__name__, self.__doc__ = name, doc

    def __repr__(self) -> str:
        return f"<profiling op {self.__name__}>"


class _EnterScope(_HostOp):
    def __call__(
        self,
        name: str,
        *,
        metrics: Mapping[str, int | float] | None = None,
        when: bool = True,
        **payload: int | float,
    ) -> None:
        owner = f"scope {check_name(name)}"
        kept = check_payload(owner, check_metrics(owner, metrics, payload))
        is_slice = check_when(when)
        if host is not None:
            host.enter(name, kept, is_slice)


class _ExitScope(_HostOp):
    def __call__(self, name: str, *, metrics: Mapping[str, int | float] | None = None) -> None:
        owner = f"scope {check_name(name)}"
        kept = check_payload(owner, check_metrics(owner, metrics, {}))
        if host is not None:
            host.exit(name, kept)


class _EnterState(_HostOp):
    def __call__(self, name: str) -> None:
        check_name(name, "a state's name")
        if host is not None:
            host.enter(name, {}, True, is_state=True)


class _ExitState(_HostOp):
    def __call__(self, name: str) -> None:
        check_name(name, "a state's name")
        if host is not None:
            host.exit(name, {})


class _Mark(_HostOp):
    def __call__(self, name: str, value: int | float | None = None, *, when: bool = True) -> None:
        payload = {} if value is None else {"value": value}
        kept = check_payload(f"mark {check_name(name)}", payload)
        if check_when(when) and host is not None:
            host.mark(name, kept)


enter_scope = _EnterScope(
    "enter_scope",
    "Opens a scope, as `scope` does; `exit_scope` of the same name closes it, in the same block.",
)
exit_scope = _ExitScope("exit_scope", "Closes the scope that `enter_scope` opened last.")
enter_state = _EnterState("enter_state", "Begins a state on the host, as `state` does.")
exit_state = _ExitState("exit_state", "Ends the state that `enter_state` began last.")
mark = _Mark("mark", "An instant, with a scalar value if given, where `when` is true.")


@dataclass(frozen=True)
class Event:
    """A name under which starts and ends meet; known while compiling."""

    name: str


class _AllocateEvent(_HostOp):
    def __call__(self, name: str) -> Event:
        raise _outside(self)


class _EventEdge(_HostOp):
    def __call__(self, event: Event | str) -> None:
        raise _outside(self)


def _outside(op: _HostOp) -> RuntimeError:
    return RuntimeError(f"proton.{op.__name__} can only be called inside a kernel")


allocate_event = _AllocateEvent(
    "allocate_event",
    "An event, which may start and end in different blocks, loops, functions and warps.",
)
start_event = _EventEdge(
    "start_event",
    "Starts an event (or the one of this name); the next end that no start before it has ends it.",
)
end_event = _EventEdge("end_event", "Ends the oldest event of this name that was started.")
