"""`triton.profiler.hooks`: objects of programs that hear of launches while sessions are active.

    HookManager.register(MyHook(), session)

The sessions are numbers of the program's choice, such as `proton.start` gives.
"""

import re
import sys
import threading
from numbers import Number
from pathlib import Path
from typing import Any, ClassVar

from proton.base.knobs import knobs
from proton.compat.triton.profiler_scopes import kept_metrics, kept_name, metadata_state
from proton.language.profiling import enter_scope, exit_scope
from proton.runtime.launch.hooks import LazyDict as LazyDict

_FACTS = ("name", "function", "stream")  # of each launch, no metrics
_OWN = str(Path(__file__).parents[2])  # Proton's files


class Hook:
    """What a program derives its own from: `enter` and `exit` get the facts of each launch,
    `init_handle` what has been loaded. Of several the one of the highest priority comes first."""

    priority: int = 0

    def activate(self) -> None:
        """It hears of launches from now on."""

    def deactivate(self) -> None:
        """It does not any more."""

    def init_handle(
        self, module: object, function: object, name: str, metadata_group: dict[str, str], hash: str
    ) -> None:
        """A kernel's code has been loaded."""

    def enter(self, metadata: LazyDict) -> None:
        """A launch begins."""

    def exit(self, metadata: LazyDict) -> None:
        """It has been asked for."""


class HookManager:
    """The hooks of all sessions. One that several have is active while one of these is."""

    active_hooks: ClassVar[list[Hook]] = []
    session_hooks: ClassVar[dict[int, dict[Hook, bool]]] = {}

    @classmethod
    def register(cls, hook: Hook, session: int) -> None:
        """Adds a hook to a session, which is active."""
        cls.session_hooks.setdefault(session, {})[hook] = True
        cls._settle()

    @classmethod
    def unregister(cls, session: int | None = None) -> None:
        """Takes out the hooks of a session, or of all."""
        for number in cls._numbers(session):
            cls.session_hooks.pop(number, None)
        cls._settle()

    @classmethod
    def activate(cls, session: int | None = None) -> None:
        """Makes a session active, or all."""
        cls._set(session, True)

    @classmethod
    def deactivate(cls, session: int | None = None) -> None:
        """Makes a session inactive, or all."""
        cls._set(session, False)

    @classmethod
    def _numbers(cls, session: int | None) -> list[int]:
        return [*cls.session_hooks] if session is None else [session]

    @classmethod
    def _set(cls, session: int | None, is_active: bool) -> None:
        for number in cls._numbers(session):
            hooks = cls.session_hooks.get(number, {})
            hooks.update(dict.fromkeys(hooks, is_active))
        cls._settle()

    @classmethod
    def _settle(cls) -> None:
        """Has those hooks be active that an active session has."""
        wanted = {hook for hooks in cls.session_hooks.values() for hook, on in hooks.items() if on}
        for hook in [hook for hook in cls.active_hooks if hook not in wanted]:
            cls.active_hooks.remove(hook)
            hook.deactivate()
        for hook in wanted.difference(cls.active_hooks):
            cls.active_hooks.append(hook)
            hook.activate()
        cls.active_hooks.sort(key=lambda hook: hook.priority, reverse=True)
        chains = knobs.runtime.launch_enter_hook, knobs.runtime.launch_exit_hook
        for chain, heard in zip(chains, (cls.enter, cls.exit), strict=True):
            (chain.add if cls.active_hooks else chain.remove)(heard)
        loaded = knobs.runtime.kernel_load_end_hook
        (loaded.add if cls.active_hooks else loaded.remove)(cls.init_handle)

    @classmethod
    def enter(cls, metadata: LazyDict) -> None:
        """Tells the active hooks that a launch begins."""
        for hook in [*cls.active_hooks]:
            hook.enter(metadata)

    @classmethod
    def exit(cls, metadata: LazyDict) -> None:
        """Tells them, in the opposite order, that it has been asked for."""
        for hook in [*reversed(cls.active_hooks)]:
            hook.exit(metadata)

    @classmethod
    def init_handle(cls, *loaded: Any) -> None:
        """Tells them what has been loaded."""
        for hook in [*cls.active_hooks]:
            hook.init_handle(*loaded)


class LaunchHook(Hook):
    """Puts each launch into a scope of the name that its `launch_metadata` gives, with the numbers
    that it says, such as flops and bytes. All are one object, as of one session the other's."""

    priority = 100
    _instance: ClassVar["LaunchHook | None"] = None
    _of_thread: "_OfThread"

    def __new__(cls) -> "LaunchHook":
        if cls._instance is None:
            cls._instance = super().__new__(cls)
            cls._instance._of_thread = _OfThread()
            cls._instance.configure()
        return cls._instance

    def configure(self, *, include: str | None = None, exclude: str | None = None) -> None:
        """Of which names, by regular expressions of their beginning, it makes scopes."""
        self._include, self._exclude = re.compile(include or ""), exclude and re.compile(exclude)

    def _takes(self, metadata: LazyDict) -> bool:
        name = str(metadata.data["name"])
        is_excluded = self._exclude and self._exclude.match(name)
        return self._include.match(name) is not None and not is_excluded

    def _facts(self, metadata: LazyDict) -> dict[str, Any]:
        """What the launch says of itself; nothing where the name that the kernel has, or that it
        gives itself, is not taken, and of what is launched to say it."""
        if self._of_thread.is_asking or not self._takes(metadata):
            return {}
        self._of_thread.is_asking = True
        try:
            with metadata_state(str(metadata.data["name"])):
                facts = metadata.get()
        finally:
            self._of_thread.is_asking = False
        return facts if self._takes(metadata) else {}

    def enter(self, metadata: LazyDict) -> None:
        """Opens the scope."""
        facts, name = self._facts(metadata), ""
        if facts:
            metrics = {name: value for name, value in facts.items() if _is_metric(name, value)}
            name = kept_name(facts["name"])
            enter_scope(name, metrics=kept_metrics(metrics))
        self._of_thread.entered.append(name)

    def exit(self, metadata: LazyDict) -> None:
        """Closes it."""
        if self._of_thread.entered and (name := self._of_thread.entered.pop()):
            exit_scope(name)


class _OfThread(threading.local):
    """The scopes of the launches that are under way, "" where one has none; and whether one is
    being asked what it is."""

    def __init__(self) -> None:
        self.entered: list[str] = []
        self.is_asking = False


def _is_metric(name: str, value: object) -> bool:
    is_number = isinstance(value, Number | list | tuple) or hasattr(value, "data_ptr")
    return is_number and name not in _FACTS


class PythonContext(Hook):
    """Puts each launch into a scope for each function of the program that is under way, as
    `train.py:57@step`."""

    priority = LaunchHook.priority + 1  # around the launch's own scope

    def __init__(self) -> None:
        self._local = threading.local()

    def enter(self, metadata: LazyDict) -> None:
        """Opens the scopes."""
        self._local.entered = [kept_name(name) for name in _stack()]
        for name in self._local.entered:
            enter_scope(name)

    def exit(self, metadata: LazyDict) -> None:
        """Closes them."""
        for name in reversed(self._local.entered):
            exit_scope(name)


def _stack() -> list[str]:
    """The functions under way, outermost first, without those of Proton."""
    found: list[str] = []
    frame = sys._getframe(1)
    while frame is not None:
        code = frame.f_code
        if not code.co_filename.startswith(_OWN):
            found.append(f"{Path(code.co_filename).name}:{frame.f_lineno}@{code.co_name}")
        frame = frame.f_back  # type: ignore[assignment]
    return found[::-1]
