"""The NVIDIA recipe: which passes run, in which order, and why where it is not plain.

ttir    what the front end made, simplified           tt, scf, arith, math (../ttir.py)
ttgir   tensors with layouts                           + ttg
llir    the code of one thread                         llvm, nvvm
ptx     by LLVM's NVPTX, in the MLIR wheel             (ptx.py)
cubin   by ptxas                                       (cubin.py)
"""

from proton.backends.nvidia.options import GPUOptions
from proton.backends.ttir import first_passes
from proton.conversion.allocate_global_scratch import AllocateGlobalScratch
from proton.conversion.allocate_profile import AllocateProfile
from proton.conversion.allocate_shared_memory import AllocateSharedMemory
from proton.conversion.allocate_tensor_maps import AllocateTensorMaps
from proton.conversion.annotate_loops import AnnotateLoops
from proton.conversion.llvm_to_gpu_module import LLVMToGPUModule
from proton.conversion.proton_to_proton_gpu import ProtonToProtonGPU
from proton.conversion.triton_to_tritongpu import TritonToTritonGPU
from proton.conversion.ttg_to_llvm import THREADS_TO_LLVM, TTGToLLVM
from proton.passes import Pass, Upstream
from proton.transforms.hopper.allocate_warp_groups import AllocateWarpGroups
from proton.transforms.hopper.create_tensor_maps import CreateTensorMaps
from proton.transforms.hopper.fence_insertion import FenceInsertion
from proton.transforms.hopper.tma_lowering import TMALowering
from proton.transforms.layout.accelerate_matmul import AccelerateMatmul
from proton.transforms.layout.clear_accumulators import ClearAccumulators
from proton.transforms.layout.coalesce import Coalesce
from proton.transforms.layout.hoist_loads import HoistLoads
from proton.transforms.layout.hoist_operand_conversions import HoistOperandConversions
from proton.transforms.layout.keep_gathered_in_memory import KeepGatheredInMemory
from proton.transforms.layout.keep_operands_in_memory import KeepOperandsInMemory
from proton.transforms.layout.keep_reread_blocks import KeepRereadBlocks
from proton.transforms.layout.membar import Membar
from proton.transforms.layout.narrow_reductions import NarrowReductions
from proton.transforms.layout.optimize_accumulator_init import OptimizeAccumulatorInit
from proton.transforms.layout.optimize_thread_locality import OptimizeThreadLocality
from proton.transforms.layout.order_copied_loads import OrderCopiedLoads
from proton.transforms.layout.pass_operands_in_memory import PassOperandsInMemory
from proton.transforms.layout.place_local_loads import PlaceLocalLoads
from proton.transforms.layout.remove_layout_conversions import RemoveLayoutConversions
from proton.transforms.layout.reorder_instructions import ReorderInstructions
from proton.transforms.layout.resolve_auto_encodings import ResolveAutoEncodings
from proton.transforms.layout.scatter_reductions import ScatterReductions
from proton.transforms.layout.share_exchanges import ShareExchanges
from proton.transforms.layout.sink_scalars import SinkScalars
from proton.transforms.layout.store_operands_early import StoreOperandsEarly
from proton.transforms.layout.swap_neighbours import SwapNeighbours
from proton.transforms.layout.unroll_short_loops import UnrollShortLoops
from proton.transforms.records.compact_iterations import CompactIterations
from proton.transforms.records.fork_iterations import ForkIterations
from proton.transforms.records.fork_unsampled import ForkUnsampled
from proton.transforms.records.hoist_copy_addresses import HoistCopyAddresses
from proton.transforms.records.insert_optimization_barriers import InsertOptimizationBarriers
from proton.transforms.records.place_records import PlaceRecords
from proton.transforms.records.record_work import SEPARATOR, RecordWork
from proton.transforms.records.sink_into_scopes import SinkIntoScopes
from proton.transforms.schedule.carry_base_pointers import CarryBasePointers
from proton.transforms.schedule.schedule_loops import ScheduleLoops
from proton.transforms.schedule.stagger_partitions import StaggerPartitions
from proton.transforms.tile.combine_tensor_select_and_if import CombineTensorSelectAndIf
from proton.transforms.tile.compute_carried_offsets import ComputeCarriedOffsets
from proton.transforms.tile.drop_dead_values import DropDeadValues
from proton.transforms.tile.fuse_multiply_add import FuseMultiplyAdd
from proton.transforms.tile.licm import LICM
from proton.transforms.tile.loop_aware_cse import LoopAwareCSE
from proton.transforms.tile.loop_unroll import LoopUnroll
from proton.transforms.tile.mangle_symbols import MangleSymbols
from proton.transforms.tile.rewrite_tensor_descriptor_to_pointer import (
    RewriteTensorDescriptorToPointer,
)
from proton.transforms.tile.share_reciprocals import ShareReciprocals
from proton.transforms.tile.widen_scans import WidenScans


def schedule_passes(options: GPUOptions) -> list[Pass]:
    """Layouts, the instructions of products, and the schedules of loops: with them it is known
    which warps a program has."""
    return [
        TritonToTritonGPU(num_warps=options.num_warps),
        ComputeCarriedOffsets(),
        # Before instructions are chosen: operands in shared memory lie in the order of their loads.
        Coalesce(options.target),
        AccelerateMatmul(options.target),
        RemoveLayoutConversions(num_stages=options.num_stages),
        SwapNeighbours(),  # of one warp, by the final layouts
        OptimizeThreadLocality(),
        NarrowReductions(),
        ScatterReductions(),
        LICM(),
        LoopAwareCSE(),
        CombineTensorSelectAndIf(),
        ReorderInstructions(),
        HoistLoads(options.target),
        SinkScalars(),
        Upstream("canonicalize,cse"),
        # While loads are `tt.load`, of which hints are attributes.
        KeepRereadBlocks(),
        # While copies are `tt.load`, whose conversions the schedule reads from memory.
        HoistOperandConversions(options.target, num_stages=options.num_stages),
        PassOperandsInMemory(options.target),
        ClearAccumulators(),
        # A limit of registers is for programs of the same threads.
        ScheduleLoops(
            options.target,
            num_stages=options.num_stages,
            roles=options.maxnreg is None,
            single_buffers=options.single_buffers,
        ),
        # What addresses ahead replaced.
        DropDeadValues(),
    ]


def ordered_passes(options: GPUOptions) -> list[Pass]:
    """The final order of the work."""
    return [
        _warp_groups(options),
        # Buffers of pipelines have shared memory first.
        KeepOperandsInMemory(options.target),
        KeepGatheredInMemory(options.target),
        ShareExchanges(options.target),
        CarryBasePointers(),
        Upstream("canonicalize,cse"),
        TMALowering(),  # what no pipeline took
        # Behind all copies: a map is made again where none by it is under way.
        CreateTensorMaps(),
        # When waits are where they stay: the former reads beside them, the latter behind loops.
        PlaceLocalLoads(options.target),
        OptimizeAccumulatorInit(),
        StoreOperandsEarly(options.target),
        CombineTensorSelectAndIf(),  # the canonicalizer has split them again
        # Behind all that writes shared memory; then loads and stores have their final order.
        FenceInsertion(),
        OrderCopiedLoads(),
        # Its second factor is fused with an addition behind it.
        ShareReciprocals(),
        # Last, so that what is fused is the final code; records come after it (design, 6).
        *([FuseMultiplyAdd()] if options.enable_fp_fusion else []),
        UnrollShortLoops(),
        *record_passes(options),
    ]


def foreign_passes(options: GPUOptions) -> list[Pass]:
    """What text of Triton's still lacks, whose layouts are chosen: a few of them are others here,
    its products are for the lowering to choose, maps that the host can make are not the kernel's,
    and fused operations are LLVM's there."""
    return [
        TritonToTritonGPU(num_warps=options.num_warps),
        AccelerateMatmul(options.target),
        Upstream("canonicalize,cse"),
        CreateTensorMaps(),
        OrderCopiedLoads(),
        ShareReciprocals(),
        *([FuseMultiplyAdd()] if options.enable_fp_fusion else []),
        *record_passes(options),
    ]


def gluon_front_passes(options: GPUOptions) -> list[Pass]:
    """Simplification that leaves layouts, and the order of what the author wrote, as they are."""
    return [
        *first_passes(options.instrumentation),
        _warp_groups(options),
        RewriteTensorDescriptorToPointer(),
        Upstream("canonicalize,cse"),
        LoopUnroll(),
        Upstream("canonicalize,cse,symbol-dce"),
        MangleSymbols(),
        WidenScans(),
    ]


def _warp_groups(options: GPUOptions) -> Pass:
    return AllocateWarpGroups(
        num_warps=options.num_warps,
        program_warps=options.program_warps,
        registers=options.maxnreg or 0,
    )


def gluon_passes(options: GPUOptions) -> list[Pass]:
    """What Gluon's kernels still lack, whose layouts, copies and barriers are the author's."""
    return [
        ResolveAutoEncodings(),
        TritonToTritonGPU(options.num_warps, options.program_warps, num_ctas=options.num_ctas),
        AccelerateMatmul(options.target),
        Upstream("canonicalize,cse"),
        CreateTensorMaps(),
        StaggerPartitions(options.target),
        FenceInsertion(),
        OrderCopiedLoads(),
        ShareReciprocals(),
        *([FuseMultiplyAdd()] if options.enable_fp_fusion else []),
    ]


def record_passes(options: GPUOptions) -> list[Pass]:
    """Records in the final order; none without instrumentation."""
    instrumentation = options.instrumentation
    if instrumentation is None:
        return []
    passes: list[Pass] = []
    if instrumentation.placement == "schedule":
        # Before records are placed: ahead of a wait indices would be a slice of their own.
        passes += [SinkIntoScopes(), PlaceRecords(work="tiles")]
    if _is_ready(options):
        # Where barriers are is decided before, so that records make no difference to it, and both
        # versions have the same.
        passes += [_allocate(options), Membar()]
    if instrumentation.auto:
        passes.append(RecordWork(work=SEPARATOR.join(instrumentation.auto)))
    if instrumentation.is_sampled(options.program_warps):
        passes.append(ForkUnsampled(programs=instrumentation.sample_programs > 1))
    if instrumentation.every > 1:
        passes.append(ForkIterations(every=instrumentation.every))
    instrument = ProtonToProtonGPU(strategy=instrumentation.strategy, every=instrumentation.every)
    # Both look for the clock samples that `instrument` made.
    return [*passes, instrument, HoistCopyAddresses(), InsertOptimizationBarriers()]


def _allocate(options: GPUOptions) -> AllocateSharedMemory:
    target = options.target
    return AllocateSharedMemory(target.facts.shared_bytes, target, options.program_warps)


def _is_ready(options: GPUOptions) -> bool:
    """True if shared memory and barriers are decided ahead of records."""
    asked = options.instrumentation
    return asked is not None and bool(
        asked.auto or asked.is_sampled(options.program_warps) or asked.every > 1
    )


def llir_passes(options: GPUOptions) -> list[Pass]:
    """Shared memory, the places of records, and barriers, then everything to the llvm dialect."""
    instrumentation = options.instrumentation
    is_ready = _is_ready(options)
    passes: list[Pass] = [
        AllocateTensorMaps(),
        AllocateGlobalScratch(),
        *([] if is_ready else [_allocate(options)]),
    ]
    if instrumentation is not None:
        unit_warps = instrumentation.unit_warps(options.program_warps)
        # Ring buffers lie behind the kernel's own memory, what iterations keep in their place.
        passes.append(
            AllocateProfile(
                strategy=instrumentation.strategy,
                capacity=instrumentation.capacity,
                units=options.program_warps // unit_warps,
                unit_warps=unit_warps,
                clock_bits=instrumentation.clock_bits,
                arch=options.target.capability,
                buffer=instrumentation.buffer,
                sampled_units=instrumentation.sampled_units(options.program_warps),
                sample_programs=instrumentation.sample_programs,
            )
        )
        passes.append(CompactIterations(arch=options.target.capability))
    return [
        *passes,
        *([] if is_ready else [Membar()]),
        TTGToLLVM(options.target),
        THREADS_TO_LLVM,
        AnnotateLoops(),  # when loops are those that LLVM unrolls
        LLVMToGPUModule(max_registers=options.maxnreg or 0),
    ]
