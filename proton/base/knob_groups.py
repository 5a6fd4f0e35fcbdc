"""The knobs of Triton, in its groups: `knobs.runtime.debug`, `knobs.compilation.always_compile`.

Most are knobs of ours by another name. Hooks are functions that programs set: who launches and
compiles asks for them here. What has no meaning here is an AttributeError.
"""

import contextlib
from collections.abc import Iterator
from typing import Any, Protocol

# Group -> name in Triton -> our knob.
_ALIASES: dict[str, dict[str, str]] = {
    "autotuning": {"cache": "cache_autotuning", "print": "print_autotuning"},
    "cache": {"dir": "cache_dir"},
    "compilation": {"always_compile": "always_compile"},
    "nvidia": {
        "ptxas": "ptxas",
        "nvdisasm": "nvdisasm",
        "libdevice_path": "libdevice",
    },
    "proton": {"disable": "profile_disable"},
    "runtime": {"debug": "debug"},
}
# Group -> what programs may set to a function, and is None otherwise.
_HOOKS: dict[str, tuple[str, ...]] = {
    "autotuning": ("listener",),
    "compilation": ("listener",),
    "runtime": (
        "launch_enter_hook",
        "launch_exit_hook",
        "jit_cache_hook",
        "jit_post_compile_hook",
        "kernel_load_start_hook",
        "kernel_load_end_hook",
    ),
}
GROUPS = tuple(sorted(_ALIASES.keys() | _HOOKS.keys()))


class Overridden(Protocol):
    """What a group needs of all knobs together (proton.base.knobs.Knobs)."""

    overrides: dict[str, Any]
    generation: int


class KnobGroup:
    """One group; its attributes are knobs and hooks."""

    __slots__ = ("_hooks", "_knobs", "_name")

    def __init__(self, name: str, knobs: Overridden) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_knobs", knobs)
        object.__setattr__(self, "_hooks", dict.fromkeys(_HOOKS.get(name, ())))

    def __getattr__(self, name: str) -> Any:
        if name in self._hooks:
            return self._hooks[name]
        return getattr(self._knobs, self._alias(name))

    def __setattr__(self, name: str, value: Any) -> None:
        if name not in self._hooks:
            setattr(self._knobs, self._alias(name), value)
            return
        if value is not None and not callable(value):
            raise TypeError(f"knobs.{self._name}.{name} is a function or None, got {value!r}")
        self._hooks[name] = value
        self._knobs.generation += 1

    def _alias(self, name: str) -> str:
        known = _ALIASES.get(self._name, {})
        if name not in known:
            there = ", ".join(dir(self))
            raise AttributeError(f"no knob is named '{self._name}.{name}'; there are {there}")
        return known[name]

    def __dir__(self) -> list[str]:
        return [*_ALIASES.get(self._name, ()), *self._hooks]

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Puts back at the end of a `with` block what is changed inside."""
        hooks, overrides = dict(self._hooks), dict(self._knobs.overrides)
        try:
            yield
        finally:
            self._hooks.update(hooks)
            self._knobs.overrides.clear()
            self._knobs.overrides.update(overrides)
            self._knobs.generation += 1
