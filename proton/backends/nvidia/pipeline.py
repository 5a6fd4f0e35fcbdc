"""The NVIDIA recipe: which passes run, in which order, and why where it is not plain.

ttir    what the front end made, simplified           tt, scf, arith, math (../ttir.py)
ttgir   tensors with layouts                           + ttg
llir    the code of one thread                         llvm, nvvm
ptx     by LLVM's NVPTX, in the MLIR wheel             (ptx.py)
cubin   by ptxas                                       (cubin.py)
"""

from proton.backends.nvidia.options import GPUOptions
from proton.conversion.allocate_profile import AllocateProfile
from proton.conversion.allocate_shared_memory import AllocateSharedMemory
from proton.conversion.llvm_to_gpu_module import LLVMToGPUModule
from proton.conversion.proton_to_proton_gpu import ProtonToProtonGPU
from proton.conversion.tt_to_ttg import TritonToTritonGPU
from proton.conversion.ttg_to_llvm import TTGToLLVM
from proton.conversion.unroll_recorded_loops import UnrollRecordedLoops
from proton.passes import Pass, Upstream
from proton.trace.instrumentation import Instrumentation
from proton.transforms.coalesce import Coalesce
from proton.transforms.combine_select_if import CombineSelectIf
from proton.transforms.fuse_multiply_add import FuseMultiplyAdd
from proton.transforms.licm import LICM
from proton.transforms.loop_aware_cse import LoopAwareCSE
from proton.transforms.membar import Membar
from proton.transforms.pin_edges import PinEdges
from proton.transforms.place_records import PlaceRecords
from proton.transforms.remove_layout_conversions import RemoveLayoutConversions
from proton.transforms.reorder import Reorder
from proton.transforms.thread_locality import ThreadLocality


def ttgir_passes(
    num_warps: int, fuse: bool, instrumentation: Instrumentation | None = None
) -> list[Pass]:
    """Layouts, and the final order of the work. `fuse` allows fused multiply-adds."""
    passes: list[Pass] = [
        TritonToTritonGPU(num_warps=num_warps),
        Coalesce(),
        RemoveLayoutConversions(),
        ThreadLocality(),
        LICM(),
        LoopAwareCSE(),
        CombineSelectIf(),
        Reorder(),
        Upstream("canonicalize,cse"),
        # Last, so that what is fused is the final code; records come after it (design, 6).
        *([FuseMultiplyAdd()] if fuse else []),
    ]
    if instrumentation is None:
        return passes
    if instrumentation.placement == "schedule":
        passes.append(PlaceRecords(work="tiles"))
    instrument = ProtonToProtonGPU(strategy=instrumentation.strategy, every=instrumentation.every)
    return [*passes, instrument, PinEdges()]


def llir_passes(options: GPUOptions) -> list[Pass]:
    """Shared memory, the places of records, and barriers, then everything to the llvm dialect."""
    passes: list[Pass] = [AllocateSharedMemory()]
    instrumentation = options.instrumentation
    if instrumentation is not None:
        unit_warps = instrumentation.unit_warps(options.num_warps)
        passes.append(
            AllocateProfile(
                strategy=instrumentation.strategy,
                capacity=instrumentation.capacity,
                units=options.num_warps // unit_warps,
                unit_warps=unit_warps,
                clock_bits=instrumentation.clock_bits,
                arch=options.target.arch,
                buffer=instrumentation.buffer,
                sampled_units=instrumentation.sampled_units(options.num_warps),
                sample_programs=instrumentation.sample_programs,
            )
        )
    return [
        *passes,
        Membar(),
        TTGToLLVM(),
        Upstream(
            "convert-vector-to-llvm,convert-scf-to-cf,convert-arith-to-llvm,convert-math-to-llvm,"
            "convert-func-to-llvm,convert-cf-to-llvm,convert-ub-to-llvm,reconcile-unrealized-casts,"
            "canonicalize,cse"
        ),
        *([UnrollRecordedLoops()] if instrumentation is not None else []),
        LLVMToGPUModule(max_registers=options.maxnreg or 0),
    ]
