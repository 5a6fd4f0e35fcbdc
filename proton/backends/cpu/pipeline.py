"""The CPU recipe: which passes run, in which order, and why where it is not plain.

The levels, and what they are made of:

    ttir    what the front end made, simplified           tt, scf, arith, math (../ttir.py)
    ttsir   structured accesses, arithmetic as linalg      tts, linalg, tensor
    memref  buffers, products of vectors; here records     memref, linalg, vector, scf
            are placed
    llvm    everything in the llvm dialect                 llvm
"""

from proton.conversion.allocate_profile import AllocateProfile
from proton.conversion.bf16_to_bits import BF16ToBits
from proton.conversion.calls_to_buffers import CallsToBuffers
from proton.conversion.expand_float8 import ExpandFloat8
from proton.conversion.expand_narrow_floats import ExpandNarrowFloats
from proton.conversion.grid_to_loop import GridToLoop
from proton.conversion.guard_division import GuardDivision
from proton.conversion.linalg_matmul_to_vector import LinalgMatmulToVector
from proton.conversion.linalg_to_memory_functions import LinalgToMemoryFunctions
from proton.conversion.memref_copy_to_linalg import MemrefCopyToLinalg
from proton.conversion.proton_gpu_to_llvm import ProtonGPUToLLVM
from proton.conversion.proton_to_proton_gpu import ProtonToProtonGPU
from proton.conversion.start_partitions import StartPartitions
from proton.conversion.structured_to_memref import StructuredToMemref
from proton.conversion.triton_arith_to_linalg import TritonArithToLinalg
from proton.conversion.triton_dot_to_linalg import TritonDotToLinalg
from proton.conversion.triton_pointers_to_llvm import TritonPointersToLLVM
from proton.conversion.triton_to_structured import TritonToStructured
from proton.passes import Pass, Upstream
from proton.trace.instrumentation import Instrumentation
from proton.transforms.cpu.copy_next_iteration import CopyNextIteration
from proton.transforms.cpu.drop_no_wrap_flags import DropNoWrapFlags
from proton.transforms.cpu.expand_math import ExpandMath
from proton.transforms.cpu.loop_destinations import LoopDestinations
from proton.transforms.cpu.outline_loops import OutlineLoops
from proton.transforms.cpu.prefetch_next_iteration import PrefetchNextIteration
from proton.transforms.cpu.stack_buffers import StackBuffers
from proton.transforms.cpu.store_last_iteration import StoreLastIteration
from proton.transforms.cpu.yield_in_waits import YieldInWaits
from proton.transforms.records.label_work import SEPARATOR, LabelWork
from proton.transforms.records.materialize_at_records import MaterializeAtRecords
from proton.transforms.records.place_records import PlaceRecords
from proton.transforms.records.record_work import RecordWork
from proton.transforms.tile.mark_written import MarkWritten


def ttsir_passes(instrumentation: Instrumentation | None, check_bounds: bool) -> list[Pass]:
    """Structured memory access; arithmetic as linalg on tensors.

    With `check_bounds` no access is structured: each element is checked by itself.
    """
    in_order = instrumentation is not None and instrumentation.placement == "program"
    words = instrumentation.auto if instrumentation is not None else ()
    found: list[Pass] = []
    if words and not in_order:
        found = [LabelWork(work=SEPARATOR.join(words))]
    elif words:  # loops are recorded in their final form, all else where it stands
        ops = SEPARATOR.join(word for word in words if word != "loops")
        found = [LabelWork(), RecordWork(work=ops, marked=True)]
    return [
        # First, while loads and products are ops.
        *found,
        MarkWritten(),
        # While atomics are ops.
        YieldInWaits(),
        # Early, so that nothing below knows of 8-bit floats, not even a pointer.
        ExpandFloat8(),
        *([] if check_bounds else [TritonToStructured()]),
        Upstream("canonicalize,cse,loop-invariant-code-motion"),
        GuardDivision(),
        TritonPointersToLLVM(check_bounds=check_bounds),
        TritonArithToLinalg(),
        *([MaterializeAtRecords()] if in_order else []),
        # Before buffers exist: a chain of elementwise ops becomes one loop nest.
        Upstream("linalg-fuse-elementwise-ops,canonicalize,cse"),
        TritonDotToLinalg(),
    ]


def memref_passes(
    disjoint: bool,
    instrumentation: Instrumentation | None,
    vector_bits: int,
    large_first_level: bool,
) -> list[Pass]:
    """Buffers, and the final order of the work: from here on nothing moves across anything."""
    in_order = instrumentation is not None and instrumentation.placement == "program"
    passes: list[Pass] = [
        # Before bufferization, which would have to know of both sides of a call.
        CallsToBuffers(),
        StructuredToMemref(disjoint=disjoint),
        Upstream("canonicalize,cse"),
        # Bufferization keeps in place what this arranges.
        LoopDestinations(),
        Upstream("one-shot-bufferize,canonicalize,cse"),
        # Of the copies that bufferization made.
        MemrefCopyToLinalg(),
        LinalgMatmulToVector(vector_bits=vector_bits),
        # In this order: the former takes loops that write no memory.
        CopyNextIteration(in_place=large_first_level, in_order=in_order),
        StoreLastIteration(in_order=in_order),
    ]
    if instrumentation is not None:
        if not in_order:
            passes.append(PlaceRecords())
        if "loops" in instrumentation.auto:
            passes.append(RecordWork(work="loops", marked=True))
        passes += [
            ProtonToProtonGPU(strategy=instrumentation.strategy, every=instrumentation.every),
            AllocateProfile(capacity=instrumentation.capacity, strategy=instrumentation.strategy),
        ]
    return passes


def llvm_passes(disjoint: bool, vector_bits: int, instrumented: bool) -> list[Pass]:
    """Loops, vectors, and everything else to the llvm dialect."""
    return [
        # While linalg ops are there, and the tiles of products are: it spreads fetches over both.
        PrefetchNextIteration(),
        StackBuffers(),
        *([ProtonGPUToLLVM()] if instrumented else []),
        GridToLoop(noalias=disjoint),
        LinalgToMemoryFunctions(),
        Upstream(
            "func.func(convert-linalg-to-loops),fold-memref-alias-ops,expand-strided-metadata"
        ),
        # After linalg, when every function is applied to a scalar.
        ExpandMath(scales=vector_bits == 512),
        ExpandNarrowFloats(),
        # When nothing computes with bf16 any more.
        BF16ToBits(),
        # When all loops are there, and before passes whose time is quadratic in them.
        OutlineLoops(),
        # When the types of arguments are final.
        StartPartitions(),
        # convert-vector-to-scf must come before lower-affine.
        Upstream(
            "canonicalize,cse,convert-vector-to-scf{full-unroll=1},lower-affine,"
            "loop-invariant-code-motion,convert-scf-to-cf,convert-math-to-llvm,"
            "convert-math-to-libm,convert-vector-to-llvm,"
            "convert-func-to-llvm{use-bare-ptr-memref-call-conv=1},"
            "convert-to-llvm{filter-dialects=arith,cf,index,memref,ub},"
            "reconcile-unrealized-casts,canonicalize,cse",
            checked=True,
        ),
        # Last: canonicalization may infer such flags, upstream's lowerings set them.
        DropNoWrapFlags(),
    ]
