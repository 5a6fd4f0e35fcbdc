"""The options of a compile that change the code for an AMD GPU."""

from dataclasses import dataclass, field

from proton.base.knobs import knobs
from proton.base.targets import DEFAULT_WARPS, GPUTarget, check_num_warps


@dataclass(frozen=True)
class AMDOptions:
    """What changes the code of a kernel besides its signature; names are Triton's. A warp is a
    wave of 64 threads. Raises CompilationError for a value outside of its range."""

    target: GPUTarget
    num_warps: int = DEFAULT_WARPS
    enable_fp_fusion: bool = field(default_factory=lambda: knobs.default_fp_fusion)

    def __post_init__(self) -> None:
        check_num_warps(self.num_warps, self.target.warp_size)
