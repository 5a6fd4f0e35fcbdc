"""`from proton.gluon import language as gl`: what a kernel in Gluon is written in.

Gluon is the tile language with layouts: each tensor says which thread holds which element, shared
memory and barriers are allocated, and copies and products that go on are waited for by the author.
Names and meanings are those of Triton's `triton.experimental.gluon.language`.
"""

from builtins import tuple as tuple
from typing import Any

from proton.base.words import did_you_mean
from proton.language.aggregate import aggregate as aggregate
from proton.language.bases import base_type as base_type, base_value as base_value
from proton.language.composite import constexpr_type as constexpr_type, tuple_type as tuple_type
from proton.language.constants import unwrap as _unwrap_if_constexpr
from proton.language.core import (
    abs as abs,
    add as add,
    aggregate_replace as aggregate_replace,
    associative_scan as associative_scan,
    assume as assume,
    broadcast as broadcast,
    cast as cast,
    ceil as ceil,
    clamp as clamp,
    cos as cos,
    device_assert as device_assert,
    device_print as device_print,
    div_rn as div_rn,
    erf as erf,
    exp as exp,
    exp2 as exp2,
    expand_dims as expand_dims,
    fdiv as fdiv,
    floor as floor,
    fma as fma,
    gather as gather,
    inline_asm_elementwise as inline_asm_elementwise,
    join as join,
    log as log,
    log2 as log2,
    map_elementwise as map_elementwise,
    max_constancy as max_constancy,
    max_contiguous as max_contiguous,
    maximum as maximum,
    minimum as minimum,
    mul as mul,
    multiple_of as multiple_of,
    num_programs as num_programs,
    permute as permute,
    program_id as program_id,
    ravel as ravel,
    reduce as reduce,
    reshape as reshape,
    rsqrt as rsqrt,
    sin as sin,
    split as split,
    sqrt as sqrt,
    sqrt_rn as sqrt_rn,
    static_assert as static_assert,
    static_print as static_print,
    static_range as static_range,
    sub as sub,
    to_tensor as to_tensor,
    umulhi as umulhi,
    where as where,
)
from proton.language.function import constexpr_function as constexpr_function
from proton.language.gluon import amd as amd
from proton.language.gluon import extra as extra
from proton.language.gluon import nvidia as nvidia
from proton.language.gluon.core import (
    CachePolicy as CachePolicy,
    allocate_shared_memory as allocate_shared_memory,
    arange as arange,
    bank_conflicts as bank_conflicts,
    barrier as barrier,
    convert_layout as convert_layout,
    dot_fma as dot_fma,
    expect_zero as expect_zero,
    fp4_to_fp as fp4_to_fp,
    full as full,
    full_like as full_like,
    histogram as histogram,
    inline_asm as inline_asm,
    load as load,
    num_ctas as num_ctas,
    num_warps as num_warps,
    set_auto_layout as set_auto_layout,
    shared_memory_descriptor as shared_memory_descriptor,
    store as store,
    to_linear_layout as to_linear_layout,
    warp_specialize as warp_specialize,
    zeros as zeros,
    zeros_like as zeros_like,
)
from proton.language.gluon.layouts import (
    AutoLayout as AutoLayout,
    BlockedLayout as BlockedLayout,
    CoalescedLayout as CoalescedLayout,
    DistributedLayout as DistributedLayout,
    DistributedLinearLayout as DistributedLinearLayout,
    DotOperandLayout as DotOperandLayout,
    NVMMADistributedLayout as NVMMADistributedLayout,
    NVMMASharedLayout as NVMMASharedLayout,
    PaddedSharedLayout as PaddedSharedLayout,
    SharedLayout as SharedLayout,
    SharedLinearLayout as SharedLinearLayout,
    SliceLayout as SliceLayout,
    SwizzledSharedLayout as SwizzledSharedLayout,
)
from proton.language.gluon.types import (
    distributed_type as distributed_type,
    shared_memory_descriptor_type as shared_memory_descriptor_type,
)
from proton.language.memory import (
    atomic_add as atomic_add,
    atomic_and as atomic_and,
    atomic_cas as atomic_cas,
    atomic_load as atomic_load,
    atomic_max as atomic_max,
    atomic_min as atomic_min,
    atomic_or as atomic_or,
    atomic_store as atomic_store,
    atomic_xchg as atomic_xchg,
    atomic_xor as atomic_xor,
)
from proton.language.standard import (
    atomic_poll as atomic_poll,
    cdiv as cdiv,
    cumprod as cumprod,
    cumsum as cumsum,
    max as max,
    min as min,
    reduce_or as reduce_or,
    sum as sum,
    xor_sum as xor_sum,
)
from proton.language.types import (
    PropagateNan as PropagateNan,
    bfloat16 as bfloat16,
    block_type as block_type,
    constexpr as constexpr,
    dtype as dtype,
    float8e4b8 as float8e4b8,
    float8e4b15 as float8e4b15,
    float8e4nv as float8e4nv,
    float8e5 as float8e5,
    float8e5b16 as float8e5b16,
    float16 as float16,
    float32 as float32,
    float64 as float64,
    int1 as int1,
    int8 as int8,
    int16 as int16,
    int32 as int32,
    int64 as int64,
    pointer_type as pointer_type,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    void as void,
)
from proton.language.value import tensor as tensor


def __getattr__(name: str) -> Any:
    guess = did_you_mean(name, globals())
    raise AttributeError(f"module 'gluon.language' has no attribute {name!r}{guess}")
