"""What code is compiled for: this machine's CPU, or an NVIDIA GPU by its compute capability."""

from dataclasses import dataclass
from typing import Literal

from proton.base.errors import ProtonError


@dataclass(frozen=True)
class Architecture:
    """Facts of one compute capability: the name of its chip, the PTX it needs, its limits."""

    chip: str  # as ptxas and LLVM name it; "a" is the feature set of that one chip
    ptx: int  # the first PTX version that knows the chip, or what its instructions need
    # The most shared memory of a program (CUDA Programming Guide, "Technical Specifications per
    # Compute Capability").
    shared_bytes: int


ARCHITECTURES = {
    80: Architecture("sm_80", 84, 163 * 1024),
    86: Architecture("sm_86", 84, 99 * 1024),
    89: Architecture("sm_89", 84, 99 * 1024),
    90: Architecture("sm_90a", 84, 227 * 1024),
    100: Architecture("sm_100a", 86, 227 * 1024),
    120: Architecture("sm_120a", 87, 99 * 1024),
}
WARP_SIZE = 32
MAX_WARPS = 32
MAX_REGISTERS = 255  # of one thread


@dataclass(frozen=True)
class GPUTarget:
    """`GPUTarget("cuda", 90)`: an NVIDIA GPU. `arch` is the compute capability times ten.

    Raises ProtonError for another backend or an architecture that is not supported.
    """

    backend: Literal["cuda"]
    arch: int
    warp_size: int = WARP_SIZE

    def __post_init__(self) -> None:
        if self.backend != "cuda":
            raise ProtonError(f'the backend of a GPU target is "cuda", got {self.backend!r}')
        if self.arch not in ARCHITECTURES:
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

    @staticmethod
    def parse(text: str) -> "GPUTarget":
        """`cuda:90` or `cuda:90:32`, as Triton writes it."""
        parts = text.split(":")
        numbers = all(part.isdigit() for part in parts[1:])
        if parts[0] != "cuda" or len(parts) not in (2, 3) or not numbers:
            raise ProtonError(f'a GPU target is written "cuda:90", got {text!r}')
        return GPUTarget("cuda", *map(int, parts[1:]))
