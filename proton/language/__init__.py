"""`import proton.language as tl`: what a kernel author writes."""

from builtins import slice as slice
from builtins import tuple as tuple
from typing import Any

from proton.base.words import did_you_mean
from proton.language.core import abs as abs
from proton.language.core import (
    add as add,
    aggregate_replace as aggregate_replace,
    arange as arange,
    associative_scan as associative_scan,
    assume as assume,
    broadcast as broadcast,
    broadcast_to as broadcast_to,
    cast as cast,
    ceil as ceil,
    clamp as clamp,
    condition as condition,
    cos as cos,
    debug_barrier as debug_barrier,
    device_assert as device_assert,
    device_print as device_print,
    div_rn as div_rn,
    dot as dot,
    dot_scaled as dot_scaled,
    erf as erf,
    exp as exp,
    exp2 as exp2,
    expand_dims as expand_dims,
    fdiv as fdiv,
    floor as floor,
    fma as fma,
    full as full,
    gather as gather,
    histogram as histogram,
    inline_asm_elementwise as inline_asm_elementwise,
    item as item,
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
    range as range,
    ravel as ravel,
    reduce as reduce,
    reshape as reshape,
    rsqrt as rsqrt,
    sin as sin,
    split as split,
    sqrt as sqrt,
    sqrt_rn as sqrt_rn,
    squeeze as squeeze,
    static_assert as static_assert,
    static_print as static_print,
    static_range as static_range,
    sub as sub,
    to_tensor as to_tensor,
    trans as trans,
    umulhi as umulhi,
    unsqueeze as unsqueeze,
    view as view,
    where as where,
    zeros as zeros,
    zeros_like as zeros_like,
)
from proton.language.composite import (
    constexpr_type as constexpr_type,
    slice_type as slice_type,
    str_to_ty as str_to_ty,
    tuple_type as tuple_type,
)
from proton.language import extra as extra
from proton.language import math as math
from proton.language import target_info as target_info
from proton.language.descriptor import (
    load_tensor_descriptor as load_tensor_descriptor,
    make_tensor_descriptor as make_tensor_descriptor,
    store_tensor_descriptor as store_tensor_descriptor,
    tensor_descriptor as tensor_descriptor,
    tensor_descriptor_base as tensor_descriptor_base,
)
from proton.language.function import constexpr_function as constexpr_function
from proton.language.memory import (
    advance as advance,
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
    load as load,
    make_block_ptr as make_block_ptr,
    store as store,
)
from proton.language.random import (
    pair_uniform_to_normal as pair_uniform_to_normal,
    philox as philox,
    philox_impl as philox_impl,
    rand as rand,
    rand4x as rand4x,
    randint as randint,
    randint4x as randint4x,
    randn as randn,
    randn4x as randn4x,
    uint_to_uniform_float as uint_to_uniform_float,
)
from proton.language.ordering import (
    bitonic_merge as bitonic_merge,
    flip as flip,
    sort as sort,
    topk as topk,
)
from proton.language.standard import (
    argmax as argmax,
    argmin as argmin,
    atomic_poll as atomic_poll,
    cat as cat,
    cdiv as cdiv,
    cumprod as cumprod,
    cumsum as cumsum,
    interleave as interleave,
    max as max,
    min as min,
    next_power_of_2 as next_power_of_2,
    reduce_or as reduce_or,
    sigmoid as sigmoid,
    softmax as softmax,
    sum as sum,
    swizzle2d as swizzle2d,
    xor_sum as xor_sum,
)
from proton.language.types import (
    PropagateNan as PropagateNan,
    TRITON_MAX_TENSOR_NUMEL as TRITON_MAX_TENSOR_NUMEL,
    bfloat16 as bfloat16,
    block_type as block_type,
    const as const,
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
    pi32_t as pi32_t,
    pointer_type as pointer_type,
    tensor_descriptor_type as tensor_descriptor_type,
    uint8 as uint8,
    uint16 as uint16,
    uint32 as uint32,
    uint64 as uint64,
    void as void,
)
from proton.language.value import tensor as tensor

# Names of Triton's language that are not here yet. Using one is an error that says so, at the
# place in the kernel where it is used.
NOT_YET = frozenset({"expect_zero"})


class NotYet:
    """Stands for a name of the language that is not supported yet."""

    def __init__(self, name: str) -> None:
        self.name = name

    def __repr__(self) -> str:
        return f"tl.{self.name} (not there yet)"


def __getattr__(name: str) -> Any:
    if name in NOT_YET:
        return NotYet(name)
    guess = did_you_mean(name, globals())
    raise AttributeError(f"module 'proton.language' has no attribute {name!r}{guess}")
