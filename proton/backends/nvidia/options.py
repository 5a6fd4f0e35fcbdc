"""The options of a launch that change the code of a GPU kernel."""

from dataclasses import dataclass
from typing import Any

from proton.base.errors import CompilationError, ProfileError
from proton.base.targets import MAX_REGISTERS, MAX_WARPS, GPUTarget

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
BUFFERS = ("auto", "shared", "global")


@dataclass(frozen=True)
class Instrumentation:
    """How a kernel is instrumented.

    `capacity` is in records of a warp; 0 lets the compiler choose. `placement` is "schedule"
    (records bracket the work where it ended up) or "program" (where they were written).
    `clock_bits` is the width of the clocks in records. `granularity` names the unit that records.
    `buffer` says where the rings of strategy circular lie while the kernel runs: in "shared" or
    "global" memory, or in shared memory where that costs no residency ("auto"). Of the warps of a
    program those in `sample_warps` record (none named: all), of the programs each
    `sample_programs`-th, and of the scopes in a loop each `every`-th iteration. Raises
    ProfileError for a granularity or a buffer that there is not.
    """

    strategy: str = "circular"
    capacity: int = 0
    placement: str = "schedule"
    clock_bits: int = 32
    granularity: str = "warp"
    buffer: str = "auto"
    sample_warps: tuple[int, ...] = ()
    sample_programs: int = 1
    every: int = 1

    def __post_init__(self) -> None:
        for name, known in (("buffer", BUFFERS), ("granularity", GRANULARITIES)):
            if (value := getattr(self, name)) not in known:
                raise ProfileError(f"{name} must be one of {', '.join(known)}, got {value!r}")
        if self.buffer == "shared" and self.strategy != "circular":
            raise ProfileError(
                f'strategy {self.strategy!r} has no buffer in shared memory; use "auto"'
            )

    def unit_warps(self, num_warps: int) -> int:
        """The warps of a unit, in a program of so many."""
        return min(num_warps, GRANULARITIES[self.granularity] or num_warps)

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
class GPUOptions:
    """What changes the code of a kernel besides its signature; names are Triton's.

    Raises CompilationError for a value outside of its range. `num_stages` is the depth of
    software pipelines, of which there are none yet: it is checked, and changes nothing.
    """

    target: GPUTarget
    num_warps: int = 4
    num_stages: int = 3
    num_ctas: int = 1
    maxnreg: int | None = None
    enable_fp_fusion: bool = True
    debug: bool = False
    instrumentation: Instrumentation | None = None

    def __post_init__(self) -> None:
        warps = self.num_warps
        if not _is_int(warps) or not 1 <= warps <= MAX_WARPS or warps.bit_count() != 1:
            raise _invalid("num_warps", f"a power of two from 1 to {MAX_WARPS}", self.num_warps)
        if not _is_int(self.num_stages) or self.num_stages < 0:
            raise _invalid("num_stages", "an integer that is not negative", self.num_stages)
        if self.num_ctas != 1:
            raise _invalid("num_ctas", "1 (clusters are not supported)", self.num_ctas)
        profiled = self.instrumentation
        if profiled is not None and not profiled.sampled_units(warps):
            raise _invalid("sample_warps", f"of warps below {warps}", profiled.sample_warps)
        if self.maxnreg is not None and (
            not _is_int(self.maxnreg) or not 1 <= self.maxnreg <= MAX_REGISTERS
        ):
            raise _invalid("maxnreg", f"from 1 to {MAX_REGISTERS}", self.maxnreg)


def _is_int(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _invalid(name: str, rule: str, value: Any) -> CompilationError:
    return CompilationError(f"{name} must be {rule}, got {value!r}")
