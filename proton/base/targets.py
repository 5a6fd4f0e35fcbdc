"""What code is compiled for. The facts of its chip are in `chips`.

A target's text begins with the name of its back end: `cpu`, `cuda:90`, `hip:gfx942`.
"""

from dataclasses import dataclass
from typing import Literal

from proton.base.chips import amd, nvidia
from proton.base.chips.chip import WARP_SIZE as WARP_SIZE
from proton.base.chips.chip import Chip
from proton.base.errors import InvalidOption, OutOfResources, ProtonError
from proton.base.words import shown

ARCHITECTURES = nvidia.ARCHITECTURES
# By the back end of a target, and what `GPUTarget.arch` calls them.
CHIPS: dict[tuple[str, int | str], Chip] = {
    **{("cuda", arch): chip for arch, chip in ARCHITECTURES.items()},
    **{("hip", arch): chip for arch, chip in amd.CHIPS.items()},
}
MAX_THREADS = 1024  # of a program
MAX_WARPS = MAX_THREADS // WARP_SIZE


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
    """`GPUTarget("cuda", 90)`: an NVIDIA GPU; `arch` is the compute capability times ten.
    `GPUTarget("hip", "gfx942")`: a GPU of AMD, for which kernels are compiled and not launched.

    Raises ProtonError for another back end, architecture or size of a warp.
    """

    backend: Literal["cuda", "hip"]
    arch: int | str
    warp_size: int = 0  # the chip's

    def __post_init__(self) -> None:
        if self.backend not in (names := dict.fromkeys(name for name, _ in CHIPS)):
            listed = " or ".join(f'"{name}"' for name in names)
            raise ProtonError(f"the backend of a GPU target is {listed}, got {self.backend!r}")
        chips = {arch: chip for (name, arch), chip in CHIPS.items() if name == self.backend}
        if type(self.arch) not in (int, str) or self.arch not in chips:
            known = ", ".join(f"{arch} ({chip.name})" for arch, chip in chips.items())
            raise ProtonError(f"no target has architecture {self.arch!r}; there are {known}")
        size = self.facts.warp_size
        if self.warp_size not in (0, size):
            raise ProtonError(f"a warp has {size} threads, got {self.warp_size}")
        object.__setattr__(self, "warp_size", size)

    @property
    def facts(self) -> Chip:
        """What is known of the chip."""
        return CHIPS[self.backend, self.arch]

    @property
    def capability(self) -> int:
        """The compute capability times ten; 0 for what has none."""
        return self.arch if isinstance(self.arch, int) else 0

    def __str__(self) -> str:
        return f"{self.backend}:{self.arch}"

    def of_arch(self, text: object) -> "GPUTarget":
        """This target with another architecture, written as in Triton's `arch=`: "sm90"."""
        digits = text.removeprefix("sm") if isinstance(text, str) else ""
        if text != f"sm{digits}" or not digits.isdigit():
            raise InvalidOption(f'arch must have the form "sm90", got {shown(text)}')
        return GPUTarget("cuda", int(digits), self.warp_size)

    @staticmethod
    def parse(text: str) -> "GPUTarget":
        """`cuda:90` or `cuda:90:32`, as Triton writes it."""
        parts = str(text).split(":")
        arch, size = (*parts[1:], "", "")[:2]
        is_written = arch.isdigit() if parts[0] == "cuda" else arch
        if not 2 <= len(parts) <= 3 or not is_written or not (size or "0").isdigit():
            raise ProtonError(f'a GPU target is written "cuda:90", got {text!r}')
        found = int(arch) if arch.isdigit() else arch
        return GPUTarget(parts[0], found, int(size or 0))  # type: ignore[arg-type]  # it says so


def gpu_of(target: Target) -> GPUTarget:
    """A target that a back end of GPUs was given; raises ProtonError for a chip that is none of
    its: programs for Triton may name others."""
    return target if isinstance(target, GPUTarget) else GPUTarget(**vars(target))


DEFAULT_WARPS = 4  # those of a program, where a launch says nothing


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
        raise OutOfResources(
            threads, MAX_THREADS, "threads", f"of num_warps={warps}", "pass a smaller num_warps"
        )
