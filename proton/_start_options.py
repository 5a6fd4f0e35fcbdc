"""What Triton's Proton calls the options of a session.

    mode=proton.mode.Default(granularity="cta", sampling_strategy="selective", sampling_options="0")
    mode="default:granularity=cta:sampling_strategy=selective:sampling_options=0"

are both `granularity="cta", sample_warps=(0,)` here. What they say and this project has no option
for is an error that says what to do instead.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, field, fields
from typing import Any

from proton.base.errors import ProfileError
from proton.base.words import did_you_mean
from proton.trace.instrumentation import LEAST_CYCLES, Option, SessionOptions

# What a compiler may do for the cost or the place of records. Ours does each where it serves,
# asked or not; 32 bits are its default.
OPTIMIZATIONS = ("time_shift", "sched_stores", "sched_barriers", "clock32")


@dataclass(frozen=True)
class Default:
    """Scopes in kernels are recorded. What is left out is as the options of the session say."""

    metric_type: str = "cycle"
    sampling_strategy: str = "none"
    sampling_options: str = ""
    granularity: str = ""
    buffer_strategy: str = ""
    buffer_type: str = ""
    buffer_size: int = 0
    optimizations: str | Sequence[str] = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "optimizations", tuple(_parts(self.optimizations)))

    def options(self) -> dict[str, object]:
        """The same as options of a session; raises ProfileError for what none of them says."""
        _choice("metric_type", self.metric_type, ("cycle",))
        _choice("sampling_strategy", self.sampling_strategy, ("none", "selective"))
        _choice("buffer_type", self.buffer_type, ("", "shared", "global"))
        for name in self.optimizations:
            _choice("optimizations", name, OPTIMIZATIONS)
        if self.buffer_size:
            raise ProfileError(
                f"buffer_size={self.buffer_size} counts bytes of all warps of a program; give the "
                "session capacity=N instead, the records of one unit (of 16 bytes; with "
                f"granularity='warp' and 4 warps capacity={max(int(self.buffer_size) // 64, 1)})"
            )
        given = {
            "granularity": self.granularity,
            "strategy": self.buffer_strategy,
            "buffer": self.buffer_type,
            "sample_warps": self._warps(),
        }
        return {name: value for name, value in given.items() if value}

    def _warps(self) -> tuple[int, ...]:
        parts = _parts(self.sampling_options)
        if (self.sampling_strategy == "selective") != bool(parts):
            raise ProfileError(
                "sampling_strategy 'selective' goes with sampling_options, the numbers of warps as "
                f"in '0,4'; got {self.sampling_strategy!r} with {self.sampling_options!r}"
            )
        if not all(part.isdecimal() for part in parts):
            raise ProfileError(
                f"sampling_options are numbers of warps, as in '0,4'; got {self.sampling_options!r}"
            )
        return tuple(map(int, parts))


@dataclass(frozen=True)
class MMA(Default):
    """Triton's mode that records matrix multiplications by itself: refused."""

    def options(self) -> dict[str, object]:
        raise ProfileError("mode 'mma' is not there: put a proton.scope around each tl.dot")


@dataclass(frozen=True)
class PCSampling:
    """Triton's mode that samples program counters, every `interval` cycles: a power of two here,
    the next one."""

    interval: int = 1000

    def options(self) -> dict[str, object]:
        """The same as options of a session; raises ProfileError for no number of cycles."""
        if type(self.interval) is not int or self.interval < 1:
            raise ProfileError(f"interval is a number of cycles, 1 or more, got {self.interval!r}")
        return {"pc_sampling": max(LEAST_CYCLES, 1 << (self.interval - 1).bit_length())}


@dataclass(frozen=True)
class PeriodicFlushing:
    """Triton's mode that writes a file of each phase: for `triton.profiler.start` alone."""

    format: str = "hatchet"

    def options(self) -> dict[str, object]:
        raise ProfileError(
            "mode 'periodic_flushing' is not there: proton.monitor(folder) writes a run now and "
            "then"
        )


Mode = Default | PCSampling | PeriodicFlushing
MODES: dict[str, Callable[..., Mode]] = {
    "default": Default,
    "mma": MMA,
    "pcsampling": PCSampling,
    "pc_sampling": PCSampling,
    "periodic_flushing": PeriodicFlushing,
}


def parse(text: str) -> Mode:
    """The mode that a string such as `default:granularity=cta` says."""
    name, *settings = text.split(":")
    if name not in MODES:
        known = ", ".join(MODES)
        raise ProfileError(f"mode must be one of {known}, got {name!r}{did_you_mean(name, MODES)}")
    of: Any = MODES[name]
    known_settings = {setting.name: setting.type for setting in fields(of)}
    given: dict[str, Any] = {}
    for setting in settings:
        key, equals, value = setting.partition("=")
        if not equals or key not in known_settings:
            raise ProfileError(
                f"mode {name!r} is set by {', '.join(f'{key}=...' for key in known_settings)}; got "
                f"{setting!r}{did_you_mean(key, known_settings)}"
            )
        if known_settings[key] is int and not value.isdecimal():
            raise ProfileError(f"mode {name!r}: {key} is a number, got {value!r}")
        given[key] = int(value) if known_settings[key] is int else value
    mode: Mode = of(**given)
    return mode


def _parts(text: str | Sequence[str]) -> list[str]:
    parts = text.split(",") if isinstance(text, str) else [str(part) for part in text]
    return [part.strip() for part in parts if part.strip()]


def _choice(name: str, value: Any, known: Iterable[str]) -> None:
    names = [option for option in known if option]
    if value not in known:
        hint = did_you_mean(value, names)
        raise ProfileError(f"{name} must be one of {', '.join(names)}, got {value!r}{hint}")


def _served(served: Sequence[object], instead: str) -> Any:
    """A field for an option of Triton's of which only these values are served."""

    def check(name: str, value: object) -> Any:
        if value not in served:
            known = " or ".join(map(repr, served))
            raise ProfileError(f"{name} must be {known}, got {value!r}: {instead}")
        return value

    option = Option(f"Triton's; {instead}.", check, served)
    return field(default=served[0], kw_only=True, metadata={"option": option})


def _check_mode(name: str, value: object) -> object:
    found = parse(value) if isinstance(value, str) else value
    if found is not None and not isinstance(found, Mode):
        raise ProfileError(
            f"{name} is one of proton.mode, such as proton.mode.Default(), or text; got {value!r}"
        )
    return found


_MODE = Option(
    "Triton's words for the options above: proton.mode.Default(...), or text.", _check_mode
)


@dataclass(frozen=True)
class StartOptions(SessionOptions):
    """What `start` and `profile` take: the options of a session, and those of Triton's Proton."""

    mode: Mode | str | None = field(default=None, kw_only=True, metadata={"option": _MODE})
    backend: str | None = _served(
        (None, "instrumentation"),
        "kernels record themselves, on a GPU as on the CPU; activities='all' adds what CUPTI sees",
    )
    context: str = _served(
        ("shadow",),
        "proton.scope on the host says where launches come from; Python's call stacks are not kept",
    )
    data: str = _served(
        ("tree", "trace"), "every run has both, as run.stats() and run.save('a.pftrace')"
    )
    hook: str | None = _served(
        (None,),
        "launch_metadata is not called; a scope around the launch takes metrics={'flops': ...}",
    )

    def session(self) -> SessionOptions:
        """The options of the session; raises ProfileError where the mode says one otherwise."""
        given = {of.name: getattr(self, of.name) for of in fields(SessionOptions)}
        assert not isinstance(self.mode, str)
        for name, value in ({} if self.mode is None else self.mode.options()).items():
            default = SessionOptions.__dataclass_fields__[name].default
            if given[name] not in (default, value):
                raise ProfileError(f"{name}={given[name]!r} is given, and mode says {value!r}")
            given[name] = value
        return SessionOptions(**given)
