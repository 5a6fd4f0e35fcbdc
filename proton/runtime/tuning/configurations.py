"""The options of autotuning: configurations, which of them to try, what to do around each call."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from proton.base.errors import AutotunerError
from proton.base.words import did_you_mean, shown
from proton.runtime.tuning import array_contents

Hook = Callable[..., Any]
_OPTIONS = ("num_warps", "num_ctas", "num_stages", "maxnreg", "ir_override")


class Config:
    """One choice: constants of the kernel by name, options of the launch, and what to call before
    each launch with the arguments by name (`pre_hook`), which may change them. `ir_override` is a
    file of IR that is compiled in the place of the kernel, for its arguments."""

    def __init__(
        self,
        kwargs: dict[str, object],
        num_warps: int = 4,
        num_stages: int = 3,
        num_ctas: int = 1,
        maxnreg: int | None = None,
        pre_hook: Hook | None = None,
        ir_override: str | Path | None = None,
    ) -> None:
        self.kwargs = dict(kwargs)
        self.num_warps, self.num_stages, self.num_ctas = num_warps, num_stages, num_ctas
        self.maxnreg, self.pre_hook, self.ir_override = maxnreg, pre_hook, ir_override

    def all_kwargs(self) -> dict[str, Any]:
        """All that a launch gets, by name."""
        options = {name: getattr(self, name) for name in _OPTIONS}
        return self.kwargs | {name: v for name, v in options.items() if v is not None}

    def __str__(self) -> str:
        said = self.kwargs | {name: getattr(self, name) for name in _OPTIONS}
        return ", ".join(f"{name}: {value}" for name, value in said.items())

    def __repr__(self) -> str:
        return f"<Config {self}>"

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Config) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def _key(self) -> object:
        return tuple((n, repr(v)) for n, v in self.all_kwargs().items()), self.pre_hook


def checked(configs: Iterable[object]) -> list[Config]:
    """Configurations as a list; raises TypeError where one is something else."""
    found: list[Any] = list(configs)
    for config in found:
        if not isinstance(config, Config):
            raise TypeError(f"autotune: a configuration is a Config, got {shown(config)}")
    return found


# The last is what an Autotuner has `top_k` as: torch gives a new one what another has.
_PRUNERS = ("early_config_prune", "perf_model", "top_k", "configs_top_k")


class Pruning:
    """Which configurations are worth a try: `prune_configs_by` of `autotune`."""

    def __init__(self, by: dict[str, Any] | None) -> None:
        by = by or {}
        for name in by:
            if name not in _PRUNERS:
                guess = did_you_mean(name, _PRUNERS) or f"; there are {', '.join(_PRUNERS[:-1])}"
                raise ValueError(f"prune_configs_by has no entry {shown(name)}{guess}")
        self.early, self.model = by.get("early_config_prune"), by.get("perf_model")
        for name, value in (("early_config_prune", self.early), ("perf_model", self.model)):
            if value is not None and not callable(value):
                raise ValueError(f"prune_configs_by: {name} is a function, got {shown(value)}")
        self.most = by.get("top_k", by.get("configs_top_k", 1.0))
        if self.most is None and self.model is None:  # nobody asks for it
            self.most = 1.0
        is_share = isinstance(self.most, float) and 0 < self.most <= 1
        if not is_share and not (type(self.most) is int and self.most > 0):
            raise ValueError(
                "prune_configs_by: top_k is a number of configurations, or a share of them (a "
                f"float up to 1), got {shown(self.most)}"
            )

    def apply(
        self, configs: list[Config], positional: dict[str, Any], kwargs: dict[str, object]
    ) -> list[Config]:
        """Those to try; `positional` are arguments that were given by position, by name."""
        left = configs if self.early is None else self.early(configs, positional, **kwargs)
        left = list(dict.fromkeys(checked(left or ())))  # each once
        if not left:
            raise AutotunerError(
                # As Triton words it: programs compare the whole text.
                "Autotuner error: No valid autotuner configs after pruning. `early_config_prune` "
                "should return at least one config."
            )
        most = self.most if type(self.most) is int else max(1, int(len(left) * self.most))
        if self.model is None or len(left) <= most:
            return left
        model, given = self.model, positional | kwargs
        return sorted(left, key=lambda config: model(**given | config.all_kwargs()))[:most]


@dataclass(frozen=True)
class Surroundings:
    """The hooks around each call that is measured. A hook takes the place of what it is for:
    `pre_hook` of zeroing and copying, `post_hook` of restoring."""

    reset_to_zero: Sequence[str]
    restore_value: Sequence[str]
    pre_hook: Hook | None
    post_hook: Hook | None

    def before(self, given: dict[str, object], reset_only: bool = False) -> dict[str, object]:
        """Makes arguments what a call should find; copies of those to restore after it, unless
        nothing comes after it (`reset_only`)."""
        if self.pre_hook is not None:
            self.pre_hook(given, reset_only=reset_only)
            return {}
        for name in self.reset_to_zero:
            if given.get(name) is not None:
                array_contents.clear(name, given[name])
        if reset_only or self.post_hook is not None:
            return {}
        return {
            name: array_contents.copy_of(name, given[name])
            for name in self.restore_value
            if given.get(name) is not None
        }

    def after(
        self, given: dict[str, object], copies: dict[str, object], problem: Exception | None
    ) -> None:
        """Restores what a call wrote; `problem` is what it raised."""
        if self.post_hook is not None:
            self.post_hook(given, exception=problem)
        for name, copy in copies.items():
            array_contents.restore(name, given[name], copy)
