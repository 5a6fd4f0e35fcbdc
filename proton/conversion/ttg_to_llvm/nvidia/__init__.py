"""What only NVIDIA's GPUs have: PTX, `wgmma` and `mma`, TMA, barriers in memory."""

from proton.conversion.ttg_to_llvm.core.lowering import Hardware
from proton.conversion.ttg_to_llvm.nvidia import (  # noqa: F401 - registers their rules
    assembly,
    async_copies,
    barriers,
    debug,
    libdevice,
    primitives,
    tensor_cores,
    tensor_maps,
    tma,
    warp_groups,
)
from proton.conversion.ttg_to_llvm.nvidia.rules import RULES

NVIDIA = Hardware(primitives, RULES, recording=primitives)
