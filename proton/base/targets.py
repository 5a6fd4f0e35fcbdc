"""What code is compiled for, and the facts of NVIDIA's GPUs by their compute capability.

A target's text begins with the name of its back end: `cpu`, `cuda:90`.
"""

from dataclasses import dataclass
from typing import Literal

from proton.base.errors import InvalidOption, OutOfResources, ProtonError
from proton.base.words import shown


@dataclass(frozen=True)
class Architecture:
    """Facts of one compute capability: the name of its chip, the PTX it needs, its limits."""

    chip: str  # as ptxas and LLVM name it; "a" is the feature set of that one chip
    ptx: int  # the first PTX version that knows the chip, or what its instructions need
    # CUDA Programming Guide, "Technical Specifications per Compute Capability".
    shared_bytes: int  # of a program at most
    sm_shared_bytes: int
    sm_threads: int
    sm_programs: int
    # Of the second-level cache, for each SM; 0 where chips differ, or nobody has measured.
    sm_l2_bytes: int = 0
    # Multiply-adds of 16-bit numbers on tensor cores, and special functions (exponentials,
    # reciprocals), of an SM in a cycle: NVIDIA's papers on A100 and H100; CUDA Programming Guide,
    # "Arithmetic Instructions".
    dot_per_cycle: int = 0  # where nothing is planned by it
    special_per_cycle: int = 16

    def programs_per_sm(self, threads: int, shared: int) -> int:
        """How many programs of so many threads and bytes of shared memory an SM holds at once,
        where registers do not limit them."""
        taken = shared + RESERVED_SHARED
        taken = -(-taken // SHARED_UNIT) * SHARED_UNIT
        return min(self.sm_programs, self.sm_threads // threads, self.sm_shared_bytes // taken)

    def most_shared(self, programs: int) -> int:
        """The most bytes of shared memory with which an SM holds so many programs at once."""
        taken = self.sm_shared_bytes // programs // SHARED_UNIT * SHARED_UNIT
        return min(self.shared_bytes, taken - RESERVED_SHARED)


RESERVED_SHARED = 1024  # bytes that each program takes besides its own
SHARED_UNIT = 128  # bytes in which shared memory is given out
ARCHITECTURES = {
    80: Architecture("sm_80", 84, 163 * 1024, 164 * 1024, 2048, 32),
    86: Architecture("sm_86", 84, 99 * 1024, 100 * 1024, 1536, 16),
    89: Architecture("sm_89", 84, 99 * 1024, 100 * 1024, 1536, 24),
    90: Architecture("sm_90a", 84, 227 * 1024, 228 * 1024, 2048, 32, (50 << 20) // 132, 2048),
    100: Architecture("sm_100a", 86, 227 * 1024, 228 * 1024, 2048, 32),
    120: Architecture("sm_120a", 87, 99 * 1024, 100 * 1024, 1536, 24),
}
DEPENDENT_LAUNCH = 90  # the first compute capability that has it, times 10
CLUSTERS = 90  # likewise
CLUSTER_SIZES = (1, 2, 4, 8, 16)
WARP_SIZE = 32
MAX_THREADS = 1024  # of a program
MAX_WARPS = MAX_THREADS // WARP_SIZE
MAX_GRID = ((1 << 31) - 1, 65535, 65535)  # programs (CUDA, Compute Capabilities)
MAX_REGISTERS = 255  # of one thread
SM_REGISTERS = 64 * 1024
REGISTER_UNIT = 8  # registers of a thread are given out in such pieces


def most_registers(programs: int, threads: int) -> int:
    """The most registers of a thread with which so many programs, of so many threads, fit on an
    SM."""
    most = SM_REGISTERS // (max(1, programs) * threads)
    return min(MAX_REGISTERS, most - most % REGISTER_UNIT)


def programs_by_registers(registers: int, threads: int) -> int:
    """How many programs of so many threads an SM holds, of so many registers each."""
    each = -(-registers // REGISTER_UNIT) * REGISTER_UNIT
    return SM_REGISTERS // (max(1, each) * threads)


def is_on_gpu(target: str) -> bool:
    """True if what is compiled for a target, by its text, runs on a GPU: there programs are made of
    warps and run on multiprocessors. The text of a GPU's target ends in its architecture."""
    return ":" in target


class Target:
    """What a kernel may be compiled for without being launched: a back end, by name, and what that
    needs to know of the device."""

    backend: str


@dataclass(frozen=True)
class CPUTarget(Target):
    """The processor of this machine."""

    backend: Literal["cpu"] = "cpu"
    arch: str = "native"
    warp_size: int = 1

    def __str__(self) -> str:
        return "cpu"


@dataclass(frozen=True)
class GPUTarget(Target):
    """`GPUTarget("cuda", 90)`: an NVIDIA GPU. `arch` is the compute capability times ten.

    Raises ProtonError for another backend or an architecture that is not supported.
    """

    backend: Literal["cuda"]
    arch: int
    warp_size: int = WARP_SIZE

    def __post_init__(self) -> None:
        if self.backend != "cuda":
            raise ProtonError(f'the backend of a GPU target is "cuda", got {self.backend!r}')
        if type(self.arch) is not int or self.arch not in ARCHITECTURES:
            known = ", ".join(f"{arch} ({a.chip})" for arch, a in ARCHITECTURES.items())
            raise ProtonError(f"no target has architecture {self.arch!r}; there are {known}")
        if self.warp_size != WARP_SIZE:
            raise ProtonError(f"a warp has {WARP_SIZE} threads, got {self.warp_size}")

    @property
    def facts(self) -> Architecture:
        """What is known of the architecture."""
        return ARCHITECTURES[self.arch]

    def __str__(self) -> str:
        return f"cuda:{self.arch}"

    def of_arch(self, text: object) -> "GPUTarget":
        """This target with another architecture, written as in Triton's `arch=`: "sm90"."""
        digits = text.removeprefix("sm") if isinstance(text, str) else ""
        if text != f"sm{digits}" or not digits.isdigit():
            raise InvalidOption(f'arch must have the form "sm90", got {shown(text)}')
        return GPUTarget("cuda", int(digits), self.warp_size)

    @staticmethod
    def parse(text: str) -> "GPUTarget":
        """`cuda:90` or `cuda:90:32`, as Triton writes it."""
        if not isinstance(text, str):
            raise ProtonError(f'a GPU target is written "cuda:90", got {text!r}')
        parts = text.split(":")
        numbers = all(part.isdigit() for part in parts[1:])
        if parts[0] != "cuda" or len(parts) not in (2, 3) or not numbers:
            raise ProtonError(f'a GPU target is written "cuda:90", got {text!r}')
        return GPUTarget("cuda", *map(int, parts[1:]))


def check_num_warps(warps: object, warp_size: int = WARP_SIZE) -> None:
    """Raises InvalidOption for a number of warps that no program has, and OutOfResources where that
    is more threads than there are on any target."""
    is_int = isinstance(warps, int) and not isinstance(warps, bool)
    if not is_int or warps < 1 or warps.bit_count() != 1:  # type: ignore[operator, attr-defined]
        raise InvalidOption(f"num_warps must be a power of 2, got {shown(warps)}")
    check_threads(warps, warp_size)  # type: ignore[arg-type]


def check_threads(warps: int, warp_size: int = WARP_SIZE) -> None:
    """Raises OutOfResources for more warps than a program has on any target."""
    threads = warps * warp_size
    if threads > MAX_THREADS:
        raise OutOfResources.of(
            "threads", threads, MAX_THREADS, f"of num_warps={warps}", "pass a smaller num_warps"
        )
