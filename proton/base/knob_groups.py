"""The knobs of Triton, in its groups: `knobs.runtime.debug`, `knobs.compilation.always_compile`.

Most are knobs of ours by another name. Hooks are functions that programs set: who launches and
compiles asks for them here. Of what has no meaning here programs may ask what it is
(proton.base.foreign_knobs); setting it is an AttributeError.
"""

import contextlib
import importlib
from collections.abc import Callable, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from proton.base.foreign_knobs import FOREIGN, SETTABLE, Foreign

# Group -> name in Triton -> our knob.
_ALIASES: dict[str, dict[str, str]] = {
    "autotuning": {"cache": "cache_autotuning", "print": "print_autotuning"},
    "cache": {
        "dir": "cache_dir",
        "home_dir": "home",
        "dump_dir": "dump_dir",
        "override_dir": "override_dir",
    },
    "compilation": {
        "always_compile": "always_compile",
        "allow_non_constexpr_globals": "allow_non_constexpr_globals",
        "dump_ir": "dump_ir",
        "front_end_debugging": "full_traceback",
        "override": "override_ir",
    },
    "language": {"default_fp_fusion": "default_fp_fusion", "fp32_default": "fp32_default"},
    "nvidia": {
        "ptxas": "ptxas",
        "ptxas_blackwell": "ptxas",
        "nvdisasm": "nvdisasm",
        "libdevice_path": "libdevice",
    },
    "proton": {"disable": "profile_disable"},
    "runtime": {"debug": "debug", "interpret": "interpret", "override_arch": "override_arch"},
}
# Of these, programs of NVIDIA's: a path and a version, of a wheel's where the knob is not set.
_TOOLS = ("ptxas", "nvdisasm")
# Group -> what programs may set to a function.
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
        "kernel_unload_hook",
    ),
}
# Of these, to which they may add several: none by default, where the others are None. What is said
# at an end is said in the opposite order.
_CHAINS = {
    "launch_enter_hook": False,
    "launch_exit_hook": True,
    "kernel_load_start_hook": False,
    "kernel_load_end_hook": True,
    "kernel_unload_hook": False,
}
GROUPS = tuple(sorted(_ALIASES.keys() | _HOOKS.keys() | FOREIGN.keys()))


class _Environment:
    """What a knob is set to so that its variable counts again."""

    def __repr__(self) -> str:
        return "<what the environment says>"


ENV = _Environment()


class CompileTimes(NamedTuple):
    """What a compilation took, in us, as `knobs.compilation.listener` is told: the stages, and
    storing the result, are nothing where it was found on disk."""

    ir_initialization: float
    lowering_stages: list[tuple[str, float]]
    store_results: float

    @property
    def total_lowering(self) -> float:
        """All stages."""
        return sum(us for _, us in self.lowering_stages)

    @property
    def total(self) -> float:
        """All of it."""
        return self.ir_initialization + self.total_lowering + self.store_results


class Overridden(Protocol):
    """What a group needs of all knobs together (proton.base.knobs.Knobs)."""

    overrides: dict[str, object]
    generation: int

    def copy(self) -> Any: ...
    def variables(self, names: Iterable[str]) -> dict[str, str | None]: ...
    def pass_on(self, name: str, value: object) -> None: ...
    def put_variables(self, variables: Mapping[str, str | None]) -> None: ...
    def foreign(self, knob: Foreign) -> object: ...
    def foreign_variables(self, knobs: Iterable[Foreign]) -> dict[str, str | None]: ...
    def pass_on_foreign(self, knob: Foreign, value: object) -> None: ...


class HookChain(list[Callable[..., Any]]):
    """Functions that are called one after the other. It is a list, so that launches see at no cost
    whether there is any."""

    def __init__(
        self, changed: Callable[[], None], calls: Iterable[Any] = (), *, backwards: bool = False
    ) -> None:
        super().__init__(calls)
        self._changed, self._backwards = changed, backwards

    @property
    def calls(self) -> list[Callable[..., object]]:
        """The functions."""
        return self

    def add(self, function: Callable[..., object]) -> None:
        """Adds one, unless it is there."""
        if not callable(function):
            raise TypeError(f"a hook is a function, got {function!r}")
        if function not in self:
            self.append(function)
            self._changed()

    def remove(self, function: Callable[..., object]) -> None:
        """Takes one out, if it is there."""
        if function in self:
            super().remove(function)
            self._changed()

    def copy(self) -> "HookChain":
        """A chain of the same functions."""
        return HookChain(self._changed, self, backwards=self._backwards)

    def __call__(self, *args: object, **kwargs: object) -> None:
        for function in reversed(self) if self._backwards else [*self]:
            function(*args, **kwargs)


class KnobGroup:
    """One group; its attributes are knobs and hooks. What is set here is for processes that are
    started, too (`propagate_env`)."""

    __slots__ = ("_hooks", "_knobs", "_name")

    def __init__(self, name: str, knobs: Overridden) -> None:
        object.__setattr__(self, "_name", name)
        object.__setattr__(self, "_knobs", knobs)
        names = _HOOKS.get(name, ())
        object.__setattr__(self, "_hooks", {hook: self._unset(hook) for hook in names})

    def hooks(self) -> dict[str, object]:
        """Its hooks by name, as they are at any time: launches look at them, and an attribute of
        the group takes half a microsecond."""
        return self._hooks

    @property
    def knobs(self) -> dict[str, object]:
        """What its knobs are, by name, without hooks."""
        return {name: getattr(self, name) for name in self._names()}

    def copy(self) -> "KnobGroup":
        """A group with the same values, of which each may be set on its own."""
        copied = KnobGroup(self._name, self._knobs.copy())
        copied._hooks.update(self._copied_hooks())
        return copied

    def reset(self) -> "KnobGroup":
        """Has the environment say again what its knobs are."""
        for name in self._names():
            delattr(self, name)
        return self

    @property
    def backend_dirs(self) -> set[str]:
        """Of the group `build`: the folders that it names."""
        return {path for path in (self.cudacrt_path, self.cudart_path) if path is not None}

    def _names(self) -> list[str]:
        """Its knobs, without hooks."""
        return [*self.aliases(), *self._foreign()]

    def _foreign(self) -> dict[str, Foreign]:
        """Its knobs that have no meaning here."""
        return FOREIGN.get(self._name, {})

    def _key(self, name: str) -> str:
        """What a knob that has no meaning here is kept under where it is set."""
        return f"{self._name}.{name}"

    def aliases(self) -> dict[str, str]:
        """The names of its knobs here, by their names in Triton."""
        return _ALIASES.get(self._name, {})

    def _copied_hooks(self) -> dict[str, Any]:
        """Its hooks, of which a chain is one of its own."""
        hooks = self._hooks.items()
        return {n: h.copy() if isinstance(h, HookChain) else h for n, h in hooks}

    def _unset(self, hook: str) -> Any:
        """What a hook is where no program has set it."""
        if hook not in _CHAINS:
            return None
        return HookChain(self._change, backwards=_CHAINS[hook])

    def _change(self) -> None:
        self._knobs.generation += 1

    def __getattr__(self, name: str) -> Any:
        if name in self._hooks:
            return self._hooks[name]
        if name in self._foreign():
            overrides = self._knobs.overrides
            key = self._key(name)
            return (
                overrides[key] if key in overrides else self._knobs.foreign(self._foreign()[name])
            )
        alias = self._alias(name)
        if alias in _TOOLS:  # who sets knobs need not have NVIDIA's back end
            return importlib.import_module("proton.base.nvidia_tools").tool(alias)
        value = getattr(self._knobs, alias)
        return str(value) if isinstance(value, Path) else value

    def __setattr__(self, name: str, value: object) -> None:
        if name in self._hooks:
            if value is not None and not callable(value):
                raise TypeError(f"knobs.{self._name}.{name} is a function or None, got {value!r}")
            self._hooks[name] = self._unset(name) if value is None else value
            self._change()
        elif value is ENV:
            delattr(self, name)
        elif name in self._foreign():
            self._set_foreign(name, value)
        else:
            setattr(self._knobs, self._alias(name), value)
            self._knobs.pass_on(self._alias(name), value)

    def __delattr__(self, name: str) -> None:
        if name in self._hooks:
            setattr(self, name, None)
        elif name in self._foreign():
            self._knobs.overrides.pop(self._key(name), None)
        else:
            delattr(self._knobs, self._alias(name))

    def _set_foreign(self, name: str, value: object) -> None:
        knob = self._foreign()[name]
        if self._name not in SETTABLE and value != knob.default:
            raise AttributeError(
                f"knobs.{self._name}.{name} means nothing in Proton: it cannot be set to {value!r}"
            )
        self._knobs.overrides[self._key(name)] = value
        self._knobs.pass_on_foreign(knob, value)

    def _alias(self, name: str) -> str:
        known = self.aliases()
        if name not in known:
            there = ", ".join(dir(self))
            raise AttributeError(f"no knob is named '{self._name}.{name}'; there are {there}")
        return known[name]

    def __dir__(self) -> list[str]:
        return [*self._names(), *self._hooks]

    @contextlib.contextmanager
    def scope(self) -> Iterator[None]:
        """Puts back at the end of a `with` block what is changed inside, of this group."""
        names = [*self.aliases().values(), *map(self._key, self._foreign())]
        hooks, overrides = dict(self._hooks), self._knobs.overrides
        before = {name: overrides[name] for name in names if name in overrides}
        variables = self._knobs.variables(self.aliases().values())
        variables |= self._knobs.foreign_variables(self._foreign().values())
        self._hooks.update(self._copied_hooks())
        try:
            yield
        finally:
            self._hooks.update(hooks)
            for name in names:
                overrides.pop(name, None)
            overrides.update(before)
            self._knobs.put_variables(variables)
            self._change()
