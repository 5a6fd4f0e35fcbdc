"""NVIDIA's chips by compute capability, times 10.

Sources: CUDA Programming Guide, "Technical Specifications per Compute Capability" and "Arithmetic
Instructions"; PTX ISA; NVIDIA's papers on A100 and H100.
"""

from dataclasses import replace

from proton.base.chips.chip import Chip, MatrixInstruction, MMAKind, OperandPlace

KIB = 1024
_FP8 = ("f8E4M3FN", "f8E5M2")
_TYPES = ("f16", "bf16", "f32", "i8")
_MMA = MatrixInstruction(MMAKind.WARP, _TYPES, rows=16, columns=8, inner_bytes=32)
_MMA_FP8 = replace(_MMA, elements=_FP8)
_MMA_F64 = replace(_MMA, elements=("f64",), rows=8)
_MMA_LONG_F64 = replace(_MMA, elements=("f64",), inner_bytes=128)
_WGMMA = MatrixInstruction(
    MMAKind.WARP_GROUP,
    (*_TYPES, *_FP8),
    rows=64,
    columns=256,
    inner_bytes=32,
    left=(OperandPlace.REGISTERS, OperandPlace.SHARED),
    right=(OperandPlace.SHARED,),
)

_INTEGERS = ("add", "max", "umax", "min", "umin", "and", "or", "xor", "xchg")
_ATOMICS = frozenset(
    [(element, kind) for element in ("i32", "i64") for kind in _INTEGERS]
    + [(element, "fadd") for element in ("f32", "f64", "f16")]
)

# CUDA Programming Guide, "Shared Memory" of each compute capability: of those up to an SM's most.
_SHARED_SIZES = tuple(size * KIB for size in (0, 8, 16, 32, 64, 100, 132, 164, 196, 228))

_AMPERE = Chip(
    name="sm_80",  # "a" behind a number: the feature set of that one chip
    ptx=84,
    shared_bytes=163 * KIB,
    sm_shared_bytes=164 * KIB,
    sm_threads=2048,
    sm_programs=32,
    reserved_shared=1024,
    shared_unit=128,
    shared_sizes=_SHARED_SIZES,
    mma=(_MMA, _MMA_F64),
    atomics=_ATOMICS,
    atomic_access_bytes=16,
    has_async_copies=True,
    has_matrix_loads=True,
    fp32_per_cycle=64,
)
_SMALL_AMPERE = replace(
    _AMPERE,
    fp32_per_cycle=128,
    name="sm_86",
    shared_bytes=99 * KIB,
    sm_shared_bytes=100 * KIB,
    sm_threads=1536,
    sm_programs=16,
    has_clamp=True,
)
_ADA = replace(
    _SMALL_AMPERE,
    name="sm_89",
    sm_programs=24,
    mma=(_MMA, _MMA_F64, _MMA_FP8),
    has_float8_conversions=True,
)
_DATACENTER_BLACKWELL = replace(
    _AMPERE,
    fp32_per_cycle=128,
    name="sm_100a",
    ptx=86,
    shared_bytes=227 * KIB,
    sm_shared_bytes=228 * KIB,
    mma=(_MMA, _MMA_LONG_F64, _MMA_FP8),
    atomics=_ATOMICS | {("bf16", "fadd")},
    atomic_bytes=16,
    has_tma=True,
    has_matrix_stores=True,
    has_float8_conversions=True,
    has_dependent_launch=True,
    has_clusters=True,
    has_maximum_of_three=True,
    has_clamp=True,
)
_HOPPER = replace(
    _DATACENTER_BLACKWELL,
    name="sm_90a",
    ptx=84,
    mma=(*_DATACENTER_BLACKWELL.mma, _WGMMA),
    sm_l2_bytes=(50 << 20) // 132,
    dot_per_cycle=2048,
)
_BLACKWELL = replace(
    _DATACENTER_BLACKWELL,
    name="sm_120a",
    ptx=87,
    shared_bytes=_ADA.shared_bytes,
    sm_shared_bytes=_ADA.sm_shared_bytes,
    sm_threads=_ADA.sm_threads,
    sm_programs=_ADA.sm_programs,
    has_maximum_of_three=False,
)
ARCHITECTURES: dict[int, Chip] = {
    80: _AMPERE,
    86: _SMALL_AMPERE,
    89: _ADA,
    90: _HOPPER,
    100: _DATACENTER_BLACKWELL,
    120: _BLACKWELL,
}
CLUSTER_SIZES = (1, 2, 4, 8, 16)
MAX_GRID = ((1 << 31) - 1, 65535, 65535)  # programs (CUDA, Compute Capabilities)
