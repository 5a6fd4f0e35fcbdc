"""The options of a session, said once: names, defaults, rules and words.

`proton.start` and `proton.profile` have the signature of `SessionOptions`, `python -m proton` an
option for each of its fields; what kernels are compiled with, and found by in the cache, is the
`Instrumentation`. A new option is one more field.
"""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import Field, dataclass, field, fields, replace
from typing import Any, TypeVar

from proton.base.errors import ProfileError, UnknownOption
from proton.base.targets import MAX_WARPS
from proton.base.words import did_you_mean, shown
from proton.trace.strategy import Strategy
from proton.trace.wire import CLOCK_BITS, MAX_CAPACITY

# Warps of a unit that records: of which the first does. 0 is a whole program.
GRANULARITIES = {
    "warp": 1,
    "warp_2": 2,
    "warp_4": 4,
    "warp_8": 8,
    "warp_group": 4,
    "warp_group_2": 8,
    "warp_group_4": 16,
    "cta": 0,
}
STRATEGIES = tuple(strategy.value for strategy in Strategy)
PLACEMENTS = ("schedule", "program")
# What the compiler finds and records by itself; docs/auto.md has what each of them is.
AUTO = ("loads", "dots", "copies", "barriers", "loops", "stages")
# Of a GPU's hardware; proton/runtime/nvidia/counters.py has CUPTI's names of them.
COUNTERS = ("sm", "issue", "tensor", "l2", "dram")
LEAST_INTERVAL_NS = 1000
LEAST_CYCLES = 32  # from one sample of program counters to the next
BUFFERS = ("auto", "shared", "global")
MAX_COUNT = (1 << 31) - 1  # iterations and programs are numbered in 32 bits

T = TypeVar("T")
Check = Callable[[str, Any], Any]  # (name, value) -> the value to keep; raises ProfileError


@dataclass(frozen=True)
class Option:
    """What there is to know of an option besides its type and default."""

    help: str
    check: Check
    choices: Sequence[Any] = ()
    on_gpu: bool = False  # it means nothing on a CPU


def _option(default: T, help: str, check: Check, *, on_gpu: bool = False) -> T:
    option = Option(help, check, on_gpu=on_gpu)
    return field(default=default, metadata={"option": option})


def _choice(default: T, help: str, choices: Iterable[T], *, on_gpu: bool = False) -> T:
    known = tuple(choices)
    shown = str(known) if isinstance(default, int) else ", ".join(map(str, known))

    def check(name: str, value: object) -> object:
        if value not in known or isinstance(value, bool):
            raise ProfileError(f"{name} must be one of {shown}, got {value!r}")
        return value

    option = Option(help, check, known, on_gpu)
    return field(default=default, kw_only=True, metadata={"option": option})


def option_of(of: "Field[object]") -> Option:
    """What a field of `SessionOptions` says of its option."""
    option: Option = of.metadata["option"]
    return option


def _check_capacity(name: str, value: object) -> int:
    if not isinstance(value, int) or not 0 <= value <= MAX_CAPACITY:
        raise ProfileError(
            f"{name} must lie in [0, {MAX_CAPACITY}] records per program, got {value!r}"
        )
    return value


def _check_count(name: str, value: object) -> int:
    if type(value) is not int or not 1 <= value <= MAX_COUNT:
        raise ProfileError(f"{name} must be an integer in [1, {MAX_COUNT}], got {value!r}")
    return value


def _check_warps(name: str, value: object) -> tuple[int, ...]:
    found = tuple(value) if isinstance(value, Sequence) else ("no sequence",)
    if not all(type(warp) is int and 0 <= warp < MAX_WARPS for warp in found):
        raise ProfileError(
            f"{name} must be numbers of warps from 0 to {MAX_WARPS - 1}, got {value!r}"
        )
    return tuple(sorted(set(found)))


def _words(known: Sequence[str]) -> Check:
    """The check of an option that takes some of these words."""

    def check(name: str, value: object) -> tuple[str, ...]:
        given = value.split(",") if isinstance(value, str) else value
        words = [given] if not isinstance(given, Sequence) else [w for w in given if w != ""]
        for word in words:
            if word not in known:
                hint = did_you_mean(word, known)
                raise ProfileError(f"{name} takes words of {', '.join(known)}, got {word!r}{hint}")
        return tuple(word for word in known if word in words)

    return check


def _check_interval(name: str, value: object) -> int:
    if type(value) is not int or not LEAST_INTERVAL_NS <= value <= MAX_COUNT:
        raise ProfileError(
            f"{name} must be an integer in [{LEAST_INTERVAL_NS}, {MAX_COUNT}], got {value!r}"
        )
    return value


def _check_cycles(name: str, value: object) -> int:
    is_known = type(value) is int and (value == 0 or LEAST_CYCLES <= value <= 1 << 31)
    if type(value) is not int or not is_known or value & (value - 1):
        raise ProfileError(f"{name} must be 0 or a power of two from 32 to 2^31, got {value!r}")
    return value


def _check_nothing(name: str, value: object) -> object:
    return value


@dataclass(frozen=True, kw_only=True)
class Instrumentation:
    """How kernels are instrumented: all that their code depends on. Raises ProfileError for a value
    that breaks its option's rule."""

    strategy: str = _choice(
        "circular",
        "When a program made more records than fit: keep the newest (circular), move them to host "
        "memory (flush), or only count (counting).",
        STRATEGIES,
    )
    capacity: int = _option(
        0,
        "Records a program, on a GPU a unit, where it is rounded up to a power of two; 0 lets the "
        "compiler choose.",
        _check_capacity,
    )
    placement: str = _choice(
        "schedule",
        "schedule: when the work of a scope ran. program: records stay where they are written, "
        "which keeps the work of scopes apart at a price.",
        PLACEMENTS,
    )
    auto: Sequence[str] = field(
        default=(),
        metadata={
            "option": Option(
                "What the compiler records by itself, besides the scopes that are written: words "
                "of " + ", ".join(AUTO) + ". Asynchronous copies and products have an issue, a "
                "wait, and a flight from one to the other (`run.flights`).",
                _words(AUTO),
                AUTO,
            )
        },
    )
    every: int = _option(
        1,
        "Of what is recorded in loops, one iteration of so many: of the innermost loop around a "
        "scope or a mark, where it counts.",
        _check_count,
    )
    granularity: str = _choice(
        "warp",
        "The unit that records, by its first warp: a warp, so many warps, groups of 4 warps, or "
        "all of a program (cta).",
        GRANULARITIES,
        on_gpu=True,
    )
    clock_bits: int = _choice(
        32,
        "Of the SM's cycle counter in records: 32, which are unambiguous for kernels of up to 2^32 "
        "cycles (two seconds), or 64.",
        CLOCK_BITS,
        on_gpu=True,
    )
    buffer: str = _choice(
        "auto",
        "Where ring buffers (strategy circular) lie while a kernel runs: shared or global memory; "
        "auto takes shared memory where a kernel has scopes in loops and that leaves as many "
        "programs on an SM as there were.",
        BUFFERS,
        on_gpu=True,
    )
    sample_warps: Sequence[int] = _option(
        (),
        "The warps of a program that record; all if none is named. It is an error where a kernel "
        "has none of them.",
        _check_warps,
        on_gpu=True,
    )
    sample_programs: int = _option(1, "One program of so many records.", _check_count, on_gpu=True)

    def __post_init__(self) -> None:
        for of in fields(self):
            checked = option_of(of).check(of.name, getattr(self, of.name))
            object.__setattr__(self, of.name, checked)
        if self.buffer == "shared" and not Strategy(self.strategy).is_ring:
            raise ProfileError(
                f'strategy {self.strategy!r} has no buffer in shared memory; use "auto"'
            )
        # Launches look their code up by this.
        own = tuple(getattr(self, of.name) for of in fields(self))
        object.__setattr__(self, "_hash", hash(own))

    def __hash__(self) -> int:
        return int(self.__dict__["_hash"])

    def on_cpu(self) -> "Instrumentation":
        """The same, but for what means nothing on a CPU: what code for it depends on."""
        gpu = [of for of in fields(Instrumentation) if option_of(of).on_gpu]
        defaults: dict[str, Any] = {of.name: of.default for of in gpu}
        return replace(self, **defaults)

    def noted(self) -> dict[str, object]:
        """What a run says of it with each kernel."""
        found: dict[str, object] = {"placement": self.placement, "every": self.every}
        if self.auto:
            found["auto"] = list(self.auto)
        if self.sample_warps:
            found["sample_warps"] = list(self.sample_warps)
        if self.sample_programs > 1:
            found["sample_programs"] = self.sample_programs
        return found

    def unit_warps(self, num_warps: int) -> int:
        """The warps of a unit, in a program of so many."""
        return min(num_warps, GRANULARITIES[self.granularity] or num_warps)

    def is_sampled(self, num_warps: int) -> bool:
        """Whether some programs, or some warps of a program of so many, do not record."""
        units = num_warps // self.unit_warps(num_warps)
        return self.sample_programs > 1 or self.sampled_units(num_warps) != (1 << units) - 1

    def sampled_units(self, num_warps: int) -> int:
        """A bit for each unit that records; 0 where none of the warps named is there."""
        units, size = num_warps // self.unit_warps(num_warps), self.unit_warps(num_warps)
        if not self.sample_warps:
            return (1 << units) - 1
        bits = 0
        for warp in self.sample_warps:
            bits |= 1 << warp // size if warp < num_warps else 0
        return bits


@dataclass(frozen=True)
class SessionOptions(Instrumentation):
    """What a session is asked for: its name, how kernels are instrumented, and what is measured
    besides."""

    name: str = _option("proton", "Of the run.", _check_nothing)
    compare_run_time: bool = field(
        default=False,
        kw_only=True,
        metadata={
            "option": Option(
                "Each second launch of a kernel without records, for the median run time of both "
                "kinds (`run_ns` and `run_ns_off` in `run.kernels[...].options`).",
                _check_nothing,
            )
        },
    )

    every_launch: int = field(
        default=1,
        kw_only=True,
        metadata={
            "option": Option(
                "Of the launches of each kernel, one of so many, the first of all left out: the "
                "others run as without a session, and are not in the run.",
                _check_count,
            )
        },
    )
    activities: str = _choice(
        "own",
        "own: launches of Proton's kernels. all: the operators of torch, too, as slices of the "
        "host, and on an NVIDIA GPU every kernel, copy and fill of the process, as tracks of their "
        "streams, each linked with the operator that asked for it; by CUPTI, which cupti-python "
        "brings (pip install 'proton-tile[cupti]'). Without that a message says so.",
        ("own", "all"),
    )
    counters: Sequence[str] = field(
        default=(),
        kw_only=True,
        metadata={
            "option": Option(
                "Counters of the hardware over time, sampled by CUPTI, which cupti-python brings "
                "(pip install 'proton-tile[cupti]'): words of " + ", ".join(COUNTERS) + ". sm: "
                "cycles in which an SM has work; issue: instructions issued; tensor: the tensor "
                "pipe's cycles; l2 and dram: throughput; all in percent of the peak "
                "(`run.counters`).",
                _words(COUNTERS),
                COUNTERS,
                on_gpu=True,
            )
        },
    )
    counter_interval_ns: int = field(
        default=10_000,
        kw_only=True,
        metadata={
            "option": Option(
                "From one sample of the counters to the next.", _check_interval, on_gpu=True
            )
        },
    )

    pc_sampling: int = field(
        default=0,
        kw_only=True,
        metadata={
            "option": Option(
                "Each second launch of a kernel without records, and each of one without scopes, "
                "samples each SM once in so many cycles, a power of two such as 1024: which "
                "instruction a warp is at, and what it waits for (`run.pc_samples`). By CUPTI (pip "
                "install 'proton-tile[cupti]'); such a launch is waited for. 0: none.",
                _check_cycles,
                on_gpu=True,
            )
        },
    )

    def __post_init__(self) -> None:
        super().__post_init__()
        if self.pc_sampling and self.compare_run_time:
            raise ProfileError(
                "pc_sampling and compare_run_time both need the launches without records, and "
                "sampled ones are slower: ask for one of the two"
            )

    @classmethod
    def of(cls, given: object) -> "SessionOptions":
        """The options that a dict names. Raises ProfileError for others."""
        if not isinstance(given, dict):
            raise ProfileError(f"profile must be a dict of a session's options, got {shown(given)}")
        known = [of.name for of in fields(cls)]
        for name in given:
            if name not in known:
                hint = did_you_mean(str(name), known)
                raise UnknownOption(f"a session has no option {shown(name)}{hint}")
        return cls(**given)

    @property
    def instrumentation(self) -> Instrumentation:
        """What is the kernels' of it."""
        own = {of.name: getattr(self, of.name) for of in fields(Instrumentation)}
        return Instrumentation(**own)


def described_options(options: type[SessionOptions] = SessionOptions) -> str:
    """All options with their words, for the documentation of what takes them."""
    lines = []
    for of in fields(options):
        option = option_of(of)
        choices = f" ({', '.join(map(repr, option.choices))})" if option.choices else ""
        gpu = "On a GPU: " if option.on_gpu else ""
        lines.append(f"    {of.name}={of.default!r}{choices}: {gpu}{option.help}")
    return "\n".join(lines)
