"""`@proton.autotune`: a kernel that finds out which of several configurations is the fastest.

The first launch with new values of the `key` arguments tries all configurations on the launch's
own arguments and keeps the fastest; later launches with such values take it. What has to be
compiled for that is compiled by several processes at once (proton/compiling/ahead.py).
"""

import functools
import math
import sys
import threading
import time
import warnings
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

from proton.base.errors import (
    CompileTimeAssertionFailure,
    OutOfResources,
    ProtonError,
    PTXASError,
)
from proton.base.knobs import knobs
from proton.base.progress import StepCounter, to_terminal
from proton.base.tracebacks import boundary
from proton.base.words import did_you_mean, shown
from proton.compiler import Request
from proton.compiling import cache
from proton.compiling.ahead import compile_ahead
from proton.runtime.backend import HOST, Backend, default_backend, owner_of
from proton.runtime.launch.decorated import Decorated
from proton.runtime.session import open_sessions
from proton.runtime.tuning import kept_runs, timed
from proton.runtime.tuning.benchmark import do_bench as measure
from proton.runtime.tuning.configurations import Config, Hook, Pruning, Surroundings, checked
from proton.runtime.tuning.heuristics import Heuristics as Heuristics
from proton.runtime.tuning.heuristics import heuristics as heuristics

QUANTILES = (0.5, 0.2, 0.8)  # of the times of a configuration; the first one decides
# What is wrong with one configuration and not with the kernel: it is left out.
_UNFIT = (OutOfResources, CompileTimeAssertionFailure, PTXASError)


class Autotuner(Decorated):
    """A kernel and its configurations.

    `best_config` is what the last launch took, `configs_timings` what was measured last (by
    configuration, the median first, in ms), `bench_time` how many seconds that took, `cache` the
    choices so far, by the values of the key, `kept_runs` the files of their profiles.
    A derived class may set hooks and what prunes.
    """

    def __init__(
        self,
        fn: Any,
        arg_names: Sequence[str],
        configs: Sequence[Config],
        key: Sequence[str],
        reset_to_zero: Sequence[str] | None = None,
        restore_value: Sequence[str] | None = None,
        pre_hook: Hook | None = None,
        post_hook: Hook | None = None,
        prune_configs_by: dict[str, object] | None = None,
        warmup: float | None = None,
        rep: float | None = None,
        use_cuda_graph: bool = False,
        do_bench: Callable[..., object] | None = None,
        cache_results: bool = False,
        runs: str | Path | None = None,
    ) -> None:
        super().__init__(fn, "proton.autotune")
        self.arg_names = list(arg_names)
        self.configs = checked(configs) or [Config({})]
        self.keys = self._parameters("key", key, needed=False)
        pruning = Pruning(prune_configs_by)
        self.early_config_prune, self.perf_model = pruning.early, pruning.model
        self.configs_top_k = pruning.most
        self.reset_to_zero = self._parameters("reset_to_zero", reset_to_zero)
        self.restore_value = self._parameters("restore_value", restore_value)
        self.surroundings = Surroundings(
            self.reset_to_zero, self.restore_value, pre_hook, post_hook
        )
        self.user_defined_pre_hook = pre_hook is not None
        self.user_defined_post_hook = post_hook is not None
        self.restore_copies: dict[str, object] = {}
        self.num_warmups, self.num_reps, self.use_cuda_graph = warmup, rep, use_cuda_graph
        self.do_bench = do_bench
        self.cache_results = cache_results
        self.runs = runs
        self.kept_runs: dict[tuple[Any, ...], dict[str, Path]] = {}
        self.cache: dict[tuple[Any, ...], Config] = {}
        self.configs_timings: dict[Config, object] = {}
        self.best_config: Config | None = None
        self.bench_time = 0.0
        self.nargs: dict[str, object] | None = None  # while it is tuned: arguments by position
        self._kinds = set[str]()
        self._lock = threading.RLock()

    def pre_hook(self, given: dict[str, object], reset_only: bool = False) -> None:
        """Makes arguments, by name, what a call that is measured should find."""
        self.restore_copies = self.surroundings.before(given, reset_only)

    def post_hook(self, given: dict[str, object], exception: Exception | None = None) -> None:
        """Restores what such a call wrote."""
        copies, self.restore_copies = self.restore_copies, {}
        self.surroundings.after(given, copies, exception)

    def _parameters(
        self, option: str, names: Sequence[str] | None, needed: bool = True
    ) -> list[str]:
        """Names of parameters that an option lists. Raises ValueError for others, or where they
        are not `needed` warns and drops them."""
        if isinstance(names, str):
            raise ValueError(f"autotune: {option} is a list of parameters' names, got {names!r}")
        for name in names or ():
            if name not in self.arg_names:
                guess = did_you_mean(name, self.arg_names)
                problem = (
                    f"autotune: {option} contains names that are not kernel arguments: "
                    f"{shown(name)} is no parameter of {self.__name__}{guess}"
                )
                if needed:
                    raise ValueError(problem)
                warnings.warn(problem, stacklevel=4)
        return [name for name in names or () if name in self.arg_names]

    @boundary
    def launch(self, grid: object, /, *args: object, **kwargs: object) -> Any:
        config = self.configs[0]
        if len(self.configs) > 1:
            key = self._key(args, kwargs)
            chosen = self.cache.get(key)
            config = self._tune(key, grid, args, kwargs) if chosen is None else chosen
        self.best_config = config
        options = self._merged(config, kwargs)
        if config.pre_hook is not None:
            config.pre_hook(self.named(args, options))
        return self._launch_inner(grid, args, options)

    @boundary
    def warmup(self, /, *args: object, **kwargs: object) -> list[Any]:
        """Compiles all configurations that pruning leaves; a kernel each."""
        configs = self._tried(args, kwargs)
        self._compile_ahead(configs, args, kwargs)
        return [self._warm_inner(args, self._merged(c, kwargs)) for c in configs]

    def request(self, /, *args: object, **kwargs: object) -> Request | None:
        """Of the configuration that a launch would take now; None where none is chosen."""
        chosen = self.configs[0] if len(self.configs) == 1 else self.best_config
        return None if chosen is None else self._inner_request(args, self._merged(chosen, kwargs))

    def table(self) -> str:
        """The times measured last, the fastest first: a line a configuration, times in ms."""
        ranked = sorted(self.configs_timings.items(), key=lambda item: timed.rank(item[1]))
        return "".join(f"{timed.rank(timing)[0]:12.6f}  {config}\n" for config, timing in ranked)

    def _key(self, args: tuple[object, ...], kwargs: dict[str, object]) -> tuple[object, ...]:
        """The key of the choice: values of the key arguments, the dtype of each array, as in
        Triton, and on which kinds of devices they are, if not on those of the first launch."""
        given = self.named(args, kwargs)
        key: list[Any] = [given[name] for name in self.keys if name in given]
        kinds = set()
        for name, value in given.items():
            if name in self.arg_names and hasattr(value, "dtype"):
                device = getattr(value, "device", HOST)
                kinds.add(str(getattr(device, "type", device)))
                key.append(_text(value.dtype))
        self._kinds = self._kinds or kinds
        try:
            hash(found := (*key, *(() if kinds == self._kinds else sorted(kinds))))
        except TypeError:
            raise ValueError(
                f"autotune: the key of {self.__name__} has values that are not hashable, got "
                f"{shown(key)}: name numbers, such as sizes"
            ) from None
        return found

    def _merged(self, config: Config, kwargs: dict[str, object]) -> dict[str, object]:
        """The keywords of a launch with a configuration."""
        chosen = config.all_kwargs()
        if twice := sorted(chosen.keys() & kwargs.keys()):
            raise ValueError(
                f"Conflicting meta-parameters: {', '.join(twice)}. The launch of {self.__name__} "
                "gives what autotune chooses: leave it out of the launch, or of the Config"
            )
        return kwargs | chosen

    # Tuning

    def _tune(
        self,
        key: tuple[object, ...],
        grid: object,
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> Config:
        """Chooses a configuration, by what was measured here or is on disk."""
        with self._lock:
            if key in self.cache:  # another thread's work
                return self.cache[key]
            start = time.perf_counter()
            configs = self._tried(args, kwargs)
            if len(configs) == 1:
                return self.cache.setdefault(key, configs[0])
            if folder := self.runs or knobs.autotuning_runs:
                kept_runs.check(Path(folder))
            entry = self._entry(key, configs, args, kwargs)
            timings = None if entry is None else timed.stored(entry, configs)
            is_known = timings is not None
            if timings is None:
                with open_sessions.paused():
                    timings = self._measured(configs, grid, args, kwargs)
            best = timed.best_of(timings)
            if entry is not None and not is_known and math.isfinite(timed.rank(timings[best])[0]):
                timed.store(entry, timings)
            self.configs_timings = timings
            self.bench_time = time.perf_counter() - start
            if knobs.print_autotuning and not is_known:
                head = f"autotuning {self.__name__} for {key} took {self.bench_time:.3f} s; ms:\n"
                print(head + self.table(), end="", file=sys.stderr)
            if knobs.autotuning.listener is not None:
                knobs.autotuning.listener(
                    fn=self.kernel or self.fn,
                    key=key,
                    best_config=best,
                    configs_timings=timings,
                    duration=None if is_known else self.bench_time,
                    cache_hit=is_known,
                )
            if folder:
                self._keep_runs(Path(folder), key, timings, grid, args, kwargs)
            self.cache[key] = best
            return best

    def _keep_runs(
        self,
        folder: Path,
        key: tuple[object, ...],
        timings: dict[Config, object],
        grid: object,
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> None:
        """Records a few launches of the best configuration, and of the next best that is other
        work; `kept_runs` has the files."""
        ranked = sorted(timings, key=lambda config: timed.rank(timings[config]))
        best, work = ranked[0], self._work(ranked[0], grid, args, kwargs)
        others = [c for c in ranked[1:] if self._work(c, grid, args, kwargs) != work]
        stem = kept_runs.stem(self.__name__, key)
        found: dict[str, Path] = {}
        for rank, config in zip(kept_runs.RANKS, (best, *others), strict=False):
            ms = timed.rank(timings[config])[0]
            if not math.isfinite(ms):
                continue
            call, path = self._call(config, grid, args, kwargs), folder / f"{stem}-{rank}.proton"
            try:
                found[rank] = kept_runs.record(path, call, self.__name__, 1e6 * ms)
            except _UNFIT as error:  # with records it needs more
                print(f"proton: {stem}: no profile of {config}: {error}", file=sys.stderr)
        self.pre_hook(self.named(args, kwargs | best.all_kwargs()), reset_only=True)
        self.kept_runs[key] = found
        if knobs.print_autotuning and found:
            print(kept_runs.command(found), file=sys.stderr)

    def _tried(self, args: tuple[object, ...], kwargs: dict[str, object]) -> list[Config]:
        """The configurations that are worth a try."""
        self.nargs = dict(zip(self.arg_names, args, strict=False))
        try:
            return self.prune_configs(kwargs)
        finally:
            self.nargs = None

    def prune_configs(self, kwargs: dict[str, object]) -> list[Config]:
        """The configurations to try for the arguments `nargs` and `kwargs`."""
        by = {
            "early_config_prune": self.early_config_prune,
            "perf_model": self.perf_model,
            "top_k": self.configs_top_k,
        }
        return Pruning(by).apply(self.configs, self.nargs or {}, kwargs)

    def _compile_ahead(
        self, configs: list[Config], args: tuple[object, ...], kwargs: dict[str, object]
    ) -> None:
        """Compiles at once what configurations take. One with a hook may get other arguments than
        these, so it is compiled when it is tried."""
        requests = []
        for config in configs:
            if config.pre_hook is None:
                try:
                    found = self._inner_request(args, self._merged(config, kwargs))
                except ProtonError:  # it is raised again where the configuration is tried
                    continue
                requests += [] if found is None else [found]
        compile_ahead(requests)

    def _measured(
        self,
        configs: list[Config],
        grid: object,
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> dict[Config, object]:
        """The time of each configuration. Those that are the same launch of the same code, as on a
        CPU they are where only `num_warps` and `num_stages` differ, are measured once."""
        self._compile_ahead(configs, args, kwargs)
        timings, measured = dict[Config, object](), dict[object, object]()
        progress = StepCounter("configuration", len(configs), to_terminal)
        for config in configs:
            work = self._work(config, grid, args, kwargs)
            if work not in measured:
                measured[work] = self._time(config, grid, args, kwargs)
            timings[config] = measured[work]
            progress.step()
        best = timed.best_of(timings)
        self.pre_hook(self.named(args, kwargs | best.all_kwargs()), reset_only=True)
        return timings

    def _work(
        self, config: Config, grid: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> object:
        """The work of a launch with a configuration: code and grid, if both can be told before."""
        options = self._merged(config, kwargs)
        try:
            request = None if config.pre_hook else self._inner_request(args, options)
            programs = grid(self.named(args, options)) if callable(grid) else grid
            return config if request is None else (request.key, tuple(programs))  # type: ignore[arg-type]
        except Exception:  # it is raised again where the configuration is tried
            return config

    def _measure(self, args: tuple[object, ...], kwargs: dict[str, object]) -> Callable[..., Any]:
        """The function of a call, and of `quantiles`, that measures."""
        if self.do_bench is not None:
            return self.do_bench
        durations = {"warmup": self.num_warmups, "rep": self.num_reps}
        given: dict[str, Any] = {name: ms for name, ms in durations.items() if ms is not None}
        return functools.partial(measure, backend=_home(args, kwargs), **given)

    def _bench(
        self, *args: object, config: Config, grid: object, warmup: bool = False, **kwargs: object
    ) -> Any:
        """The times of one configuration, for a `run` of a class that derives from this one."""
        return self._time(config, grid, args, kwargs)

    def _time(
        self, config: Config, grid: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Any:
        """The times of one configuration; infinite where it is unfit for the target."""
        try:
            call = self._call(config, grid, args, kwargs)
            timing = self._measure(args, kwargs)(call, quantiles=QUANTILES)
        except _UNFIT:
            return [math.inf] * len(QUANTILES)
        if self.do_bench is not None:
            timed.check(timing)
        return timing

    def _call(
        self, config: Config, grid: object, args: tuple[object, ...], kwargs: dict[str, object]
    ) -> Callable[[], None]:
        """A launch of a configuration that leaves arguments as they were."""
        options = self._merged(config, kwargs)
        given = self.named(args, options)

        def call() -> None:
            if config.pre_hook is not None:
                config.pre_hook(given)
            self.pre_hook(given)
            problem = None
            try:
                self._launch_inner(grid, args, options)
            except Exception as error:
                problem = error
                raise
            finally:
                self.post_hook(given, problem)

        return call

    def _entry(
        self,
        key: tuple[Any, ...],
        configs: list[Config],
        args: tuple[object, ...],
        kwargs: dict[str, object],
    ) -> str | None:
        """The key of the choice on disk; None where it is not kept. What a hook does is not in the
        key, so with hooks it is not."""
        if not (self.cache_results or knobs.cache_autotuning):
            return None
        if self.kernel is None or any(config.pre_hook is not None for config in configs):
            return None
        return cache.make_key(
            {
                "autotune": cache.compiler_version(),
                "source": self.kernel.source_key(),
                "key": repr(key),
                "configs": [str(config) for config in configs],
                "device": _home(args, kwargs).properties()["name"],
            }
        )


_text = functools.cache(str)  # a dtype of numpy takes a microsecond to say its name


def _home(args: tuple[object, ...], kwargs: dict[str, object]) -> Backend:
    """Where a launch with such arguments runs."""
    values = [value for value in (*args, *kwargs.values()) if not isinstance(value, int | float)]
    owners = [owner for owner in map(owner_of, values) if owner is not None]
    devices = [owner for owner in owners if owner.name != HOST]
    return (devices or owners or [default_backend()])[0]


def autotune(
    configs: Sequence[Config],
    key: Sequence[str],
    prune_configs_by: dict[str, object] | None = None,
    reset_to_zero: Sequence[str] | None = None,
    restore_value: Sequence[str] | None = None,
    pre_hook: Hook | None = None,
    post_hook: Hook | None = None,
    warmup: float | None = None,
    rep: float | None = None,
    use_cuda_graph: bool = False,
    do_bench: Callable[..., object] | None = None,
    cache_results: bool = False,
    runs: str | Path | None = None,
) -> Callable[[object], Autotuner]:
    """Chooses among configurations at the first launch with new values of the `key` arguments.

    While it tries, arrays in `reset_to_zero` are zero before each call, those in `restore_value`
    keep what they have; `pre_hook(args, reset_only=)` and `post_hook(args, exception=)` do
    something else in their place. `prune_configs_by` has `early_config_prune(configs, args,
    **kwargs)`, which returns what to try, and `perf_model(**args)` with `top_k`, of whose estimates
    only the lowest are tried. `do_bench(call, quantiles=)` measures in the place of
    `proton.testing.do_bench`, which gets `warmup` and `rep` (ms). With `cache_results` the choice
    is kept on disk. In the folder `runs` a choice leaves short profiles of the best configuration
    and of the runner-up, which `proton-tile explain --against` compares.
    """
    if use_cuda_graph:
        warnings.warn(
            "autotune: use_cuda_graph=True is ignored: launches are measured one by one, by events "
            "around each",
            UserWarning,
            stacklevel=2,
        )
    return lambda fn: Autotuner(
        fn,
        _names_of(fn),
        configs,
        key,
        reset_to_zero,
        restore_value,
        pre_hook,
        post_hook,
        prune_configs_by,
        warmup,
        rep,
        use_cuda_graph,
        do_bench,
        cache_results,
        runs,
    )


def _names_of(fn: object) -> list[str]:
    """The parameters of a kernel; none of what is no kernel, which the tuner refuses."""
    return list(getattr(fn, "arg_names", ()))
