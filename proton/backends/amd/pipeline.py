"""The AMD recipe: that of NVIDIA's GPUs without schedules, tensor cores and records.

ttgir   tensors with layouts, of waves of 64 lanes      + ttg
llvm    the code of one thread                          llvm
"""

from proton.backends.amd.options import AMDOptions
from proton.conversion.allocate_shared_memory import AllocateSharedMemory
from proton.conversion.triton_to_tritongpu import TritonToTritonGPU
from proton.conversion.ttg_to_llvm import THREADS_TO_LLVM, TTGToLLVM
from proton.passes import Pass, Upstream
from proton.transforms.layout.accelerate_matmul import AccelerateMatmul
from proton.transforms.layout.coalesce import Coalesce
from proton.transforms.layout.membar import Membar
from proton.transforms.layout.optimize_thread_locality import OptimizeThreadLocality
from proton.transforms.layout.remove_layout_conversions import RemoveLayoutConversions
from proton.transforms.layout.reorder_instructions import ReorderInstructions
from proton.transforms.tile.combine_tensor_select_and_if import CombineTensorSelectAndIf
from proton.transforms.tile.fuse_multiply_add import FuseMultiplyAdd
from proton.transforms.tile.licm import LICM
from proton.transforms.tile.loop_aware_cse import LoopAwareCSE


def ttgir_passes(options: AMDOptions) -> list[Pass]:
    """Layouts, and the final order of the work."""
    return [
        TritonToTritonGPU(num_warps=options.num_warps, lanes=options.target.warp_size),
        Coalesce(options.target),
        AccelerateMatmul(options.target),
        RemoveLayoutConversions(),
        OptimizeThreadLocality(),
        LICM(),
        LoopAwareCSE(),
        CombineTensorSelectAndIf(),
        ReorderInstructions(),
        Upstream("canonicalize,cse"),
        # Last, so that what is fused is the final code.
        *([FuseMultiplyAdd()] if options.enable_fp_fusion else []),
    ]


def llvm_passes(options: AMDOptions) -> list[Pass]:
    """Shared memory and barriers, then everything to the llvm dialect."""
    return [
        AllocateSharedMemory(limit=options.target.facts.shared_bytes),
        Membar(),
        TTGToLLVM(options.target),
        THREADS_TO_LLVM,
    ]
