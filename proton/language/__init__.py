"""`import proton.language as tl`: what a kernel author writes."""

from builtins import slice as slice
from builtins import tuple as tuple
from typing import Any

from proton.base.words import did_you_mean
from proton.language.core import *
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
from proton.language.memory import *
from proton.language.random import *
from proton.language.ordering import *
from proton.language.standard import *
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


def __getattr__(name: str) -> Any:
    guess = did_you_mean(name, globals())
    raise AttributeError(f"module 'proton.language' has no attribute {name!r}{guess}")
