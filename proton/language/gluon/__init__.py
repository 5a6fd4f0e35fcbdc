"""`from proton.gluon import language as gl`: what a kernel in Gluon is written in.

Gluon is the tile language with layouts: each tensor says which thread holds which element, shared
memory and barriers are allocated, and asynchronous copies and dots are waited for by the author.
Names and meanings are those of Triton's `triton.experimental.gluon.language`.
"""

from builtins import tuple as tuple
from typing import Any

from proton.base.words import did_you_mean
from proton.language.aggregate import aggregate as aggregate
from proton.language.bases import base_type as base_type
from proton.language.bases import base_value as base_value
from proton.language.composite import constexpr_type as constexpr_type
from proton.language.composite import tuple_type as tuple_type
from proton.language.constants import unwrap as _unwrap_if_constexpr  # noqa: F401  (of Triton's name)
from proton.language.core import (
    abs as abs,
)
from proton.language.core import (
    add as add,
)
from proton.language.core import (
    aggregate_replace as aggregate_replace,
)
from proton.language.core import (
    associative_scan as associative_scan,
)
from proton.language.core import (
    assume as assume,
)
from proton.language.core import (
    broadcast as broadcast,
)
from proton.language.core import (
    cast as cast,
)
from proton.language.core import (
    ceil as ceil,
)
from proton.language.core import (
    clamp as clamp,
)
from proton.language.core import (
    cos as cos,
)
from proton.language.core import (
    device_assert as device_assert,
)
from proton.language.core import (
    device_print as device_print,
)
from proton.language.core import (
    div_rn as div_rn,
)
from proton.language.core import (
    erf as erf,
)
from proton.language.core import (
    exp as exp,
)
from proton.language.core import (
    exp2 as exp2,
)
from proton.language.core import (
    expand_dims as expand_dims,
)
from proton.language.core import (
    fdiv as fdiv,
)
from proton.language.core import (
    floor as floor,
)
from proton.language.core import (
    fma as fma,
)
from proton.language.core import (
    gather as gather,
)
from proton.language.core import (
    inline_asm_elementwise as inline_asm_elementwise,
)
from proton.language.core import (
    join as join,
)
from proton.language.core import (
    log as log,
)
from proton.language.core import (
    log2 as log2,
)
from proton.language.core import (
    map_elementwise as map_elementwise,
)
from proton.language.core import (
    max_constancy as max_constancy,
)
from proton.language.core import (
    max_contiguous as max_contiguous,
)
from proton.language.core import (
    maximum as maximum,
)
from proton.language.core import (
    minimum as minimum,
)
from proton.language.core import (
    mul as mul,
)
from proton.language.core import (
    multiple_of as multiple_of,
)
from proton.language.core import (
    num_programs as num_programs,
)
from proton.language.core import (
    permute as permute,
)
from proton.language.core import (
    program_id as program_id,
)
from proton.language.core import (
    ravel as ravel,
)
from proton.language.core import (
    reduce as reduce,
)
from proton.language.core import (
    reshape as reshape,
)
from proton.language.core import (
    rsqrt as rsqrt,
)
from proton.language.core import (
    sin as sin,
)
from proton.language.core import (
    split as split,
)
from proton.language.core import (
    sqrt as sqrt,
)
from proton.language.core import (
    sqrt_rn as sqrt_rn,
)
from proton.language.core import (
    static_assert as static_assert,
)
from proton.language.core import (
    static_print as static_print,
)
from proton.language.core import (
    static_range as static_range,
)
from proton.language.core import (
    sub as sub,
)
from proton.language.core import (
    to_tensor as to_tensor,
)
from proton.language.core import (
    umulhi as umulhi,
)
from proton.language.core import (
    where as where,
)
from proton.language.function import builtin as builtin
from proton.language.function import constexpr_function as constexpr_function
from proton.language.gluon import amd as amd
from proton.language.gluon import extra as extra
from proton.language.gluon import layouts as _layouts  # noqa: F401  (of Triton's name)
from proton.language.gluon import nvidia as nvidia
from proton.language.gluon.core import (
    CachePolicy as CachePolicy,
)
from proton.language.gluon.core import (
    allocate_shared_memory as allocate_shared_memory,
)
from proton.language.gluon.core import (
    arange as arange,
)
from proton.language.gluon.core import (
    bank_conflicts as bank_conflicts,
)
from proton.language.gluon.core import (
    barrier as barrier,
)
from proton.language.gluon.core import (
    convert_layout as convert_layout,
)
from proton.language.gluon.core import (
    dot_fma as dot_fma,
)
from proton.language.gluon.core import (
    expect_zero as expect_zero,
)
from proton.language.gluon.core import (
    fp4_to_fp as fp4_to_fp,
)
from proton.language.gluon.core import (
    full as full,
)
from proton.language.gluon.core import (
    full_like as full_like,
)
from proton.language.gluon.core import (
    histogram as histogram,
)
from proton.language.gluon.core import (
    inline_asm as inline_asm,
)
from proton.language.gluon.core import (
    load as load,
)
from proton.language.gluon.core import (
    num_ctas as num_ctas,
)
from proton.language.gluon.core import (
    num_warps as num_warps,
)
from proton.language.gluon.core import (
    set_auto_layout as set_auto_layout,
)
from proton.language.gluon.core import (
    shared_memory_descriptor as shared_memory_descriptor,
)
from proton.language.gluon.core import (
    store as store,
)
from proton.language.gluon.core import (
    to_linear_layout as to_linear_layout,
)
from proton.language.gluon.core import (
    warp_specialize as warp_specialize,
)
from proton.language.gluon.core import (
    zeros as zeros,
)
from proton.language.gluon.core import (
    zeros_like as zeros_like,
)
from proton.language.gluon.layouts import (
    AutoLayout as AutoLayout,
)
from proton.language.gluon.layouts import (
    BlockedLayout as BlockedLayout,
)
from proton.language.gluon.layouts import (
    CoalescedLayout as CoalescedLayout,
)
from proton.language.gluon.layouts import (
    DistributedLayout as DistributedLayout,
)
from proton.language.gluon.layouts import (
    DistributedLinearLayout as DistributedLinearLayout,
)
from proton.language.gluon.layouts import (
    DotOperandLayout as DotOperandLayout,
)
from proton.language.gluon.layouts import (
    NVMMADistributedLayout as NVMMADistributedLayout,
)
from proton.language.gluon.layouts import (
    NVMMASharedLayout as NVMMASharedLayout,
)
from proton.language.gluon.layouts import (
    PaddedSharedLayout as PaddedSharedLayout,
)
from proton.language.gluon.layouts import (
    SharedLayout as SharedLayout,
)
from proton.language.gluon.layouts import (
    SharedLinearLayout as SharedLinearLayout,
)
from proton.language.gluon.layouts import (
    SliceLayout as SliceLayout,
)
from proton.language.gluon.layouts import (
    SwizzledSharedLayout as SwizzledSharedLayout,
)
from proton.language.gluon.types import (
    distributed_type as distributed_type,
)
from proton.language.gluon.types import (
    shared_memory_descriptor_type as shared_memory_descriptor_type,
)
from proton.language.memory import (
    atomic_add as atomic_add,
)
from proton.language.memory import (
    atomic_and as atomic_and,
)
from proton.language.memory import (
    atomic_cas as atomic_cas,
)
from proton.language.memory import (
    atomic_load as atomic_load,
)
from proton.language.memory import (
    atomic_max as atomic_max,
)
from proton.language.memory import (
    atomic_min as atomic_min,
)
from proton.language.memory import (
    atomic_or as atomic_or,
)
from proton.language.memory import (
    atomic_store as atomic_store,
)
from proton.language.memory import (
    atomic_xchg as atomic_xchg,
)
from proton.language.memory import (
    atomic_xor as atomic_xor,
)
from proton.language.standard import (
    atomic_poll as atomic_poll,
)
from proton.language.standard import (
    cdiv as cdiv,
)
from proton.language.standard import (
    cumprod as cumprod,
)
from proton.language.standard import (
    cumsum as cumsum,
)
from proton.language.standard import (
    max as max,
)
from proton.language.standard import (
    min as min,
)
from proton.language.standard import (
    reduce_or as reduce_or,
)
from proton.language.standard import (
    sum as sum,
)
from proton.language.standard import (
    xor_sum as xor_sum,
)
from proton.language.types import (
    PropagateNan as PropagateNan,
)
from proton.language.types import (
    bfloat16 as bfloat16,
)
from proton.language.types import (
    block_type as block_type,
)
from proton.language.types import (
    constexpr as constexpr,
)
from proton.language.types import (
    dtype as dtype,
)
from proton.language.types import (
    float8e4b8 as float8e4b8,
)
from proton.language.types import (
    float8e4b15 as float8e4b15,
)
from proton.language.types import (
    float8e4nv as float8e4nv,
)
from proton.language.types import (
    float8e5 as float8e5,
)
from proton.language.types import (
    float8e5b16 as float8e5b16,
)
from proton.language.types import (
    float16 as float16,
)
from proton.language.types import (
    float32 as float32,
)
from proton.language.types import (
    float64 as float64,
)
from proton.language.types import (
    int1 as int1,
)
from proton.language.types import (
    int8 as int8,
)
from proton.language.types import (
    int16 as int16,
)
from proton.language.types import (
    int32 as int32,
)
from proton.language.types import (
    int64 as int64,
)
from proton.language.types import (
    pointer_type as pointer_type,
)
from proton.language.types import (
    uint8 as uint8,
)
from proton.language.types import (
    uint16 as uint16,
)
from proton.language.types import (
    uint32 as uint32,
)
from proton.language.types import (
    uint64 as uint64,
)
from proton.language.types import (
    void as void,
)
from proton.language.value import tensor as tensor


def __getattr__(name: str) -> Any:
    guess = did_you_mean(name, globals())
    raise AttributeError(f"module 'gluon.language' has no attribute {name!r}{guess}")
