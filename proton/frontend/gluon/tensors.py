"""Rules of Gluon's tensors: those whose layout is said, and what changes it."""

import dataclasses
import math
from typing import Any

from proton.base.words import shown
from proton.dialect import tt, ttg, ttng
from proton.dialect import tt_collective as tc
from proton.dialect.builtin import i32_attr, strings_attr
from proton.dialect.mlir import Operation, ir
from proton.frontend import memory
from proton.frontend.arithmetic import binary
from proton.frontend.builder import (
    as_tensor,
    broadcast_to,
    constant,
    error,
    set_layout,
    splat,
    to_ir,
    wrap,
)
from proton.frontend.interface import CodeGenerator
from proton.frontend.promotion import bitcast, cast, to_bool
from proton.frontend.rules import generator_rule, rule
from proton.frontend.shapes import (
    check_shape,
    item,
    join,
    normalize_axis,
    permute,
    reshape,
)
from proton.language import types as ty
from proton.language.gluon import core
from proton.language.gluon.core import CachePolicy
from proton.language.gluon.layouts import (
    AutoLayout,
    BlockedLayout,
    DistributedLayout,
    DistributedLinearLayout,
    SharedLayout,
    SharedLinearLayout,
)
from proton.language.gluon.nvidia.ampere import NVIDIACachePolicy
from proton.language.gluon.types import distributed_type
from proton.language.value import tensor
from proton.layout import LinearLayout
from proton.layout.conversion import Permutation, plan
from proton.layout.named import blocked


def known_layout(layout: object, what: str) -> Any:
    """A layout of tensors, from the user."""
    if not isinstance(layout, DistributedLayout):
        raise error(
            f"{what}: expected 'layout' to be a DistributedLayout but got {shown(layout)}",
            "pass gl.BlockedLayout(...), gl.SliceLayout(...) or another layout of tensors",
        )
    return layout


def block(element: ty.dtype, shape: tuple[int, ...], layout: object, what: str) -> distributed_type:
    """The type of a block in a layout from the user, None: to be chosen."""
    known = known_layout(AutoLayout() if layout is None else layout, what)
    try:
        return distributed_type(element, shape, known)
    except (TypeError, ValueError) as problem:
        raise error(f"{what}: {problem}", "slice a layout of the rank of the whole block") from None


def check_warps(g: CodeGenerator, type_: distributed_type) -> None:
    """Raises CompilationError where a layout is for other warps than those that run this."""
    if not type_.layout.is_known:
        return
    try:
        warps = type_.layout.warps()
    except ValueError:
        return  # `to_ir` says what is wrong with it
    if warps != g.num_warps:
        raise error(
            f"{type_.layout} is for {warps} warps, and this code runs on {g.num_warps}",
            "launch with as many (num_warps), or give the layout gl.num_warps() warps",
        )


@generator_rule(core.arange)
def _arange(g: CodeGenerator, start: int, end: int, layout: object = None) -> tensor:
    for name, value in (("start", start), ("end", end)):
        if not isinstance(value, int):
            raise error(
                f"gl.arange: {name} must be a constexpr integer, got {shown(value)}", "gl.constexpr"
            )
    size = end - start
    if size <= 0 or size & (size - 1):
        raise error("arange's range must be a power of 2", f"end - start is {size}")
    type_ = block(ty.int32, check_shape((size,)), layout, "gl.arange")
    check_warps(g, type_)
    return wrap(tt.MakeRangeOp(i32_attr(start), i32_attr(end), to_ir(type_)), type_)


@generator_rule(core.full)
def full(
    g: CodeGenerator, shape: object, value: Any, dtype: object, layout: object = None
) -> tensor:
    """A block filled with a number."""
    sizes = check_shape(shape)
    if not isinstance(dtype, ty.dtype):
        raise error(f"gl.full: dtype must be a dtype, got {shown(dtype)}", "pass gl.float32")
    if not sizes:
        return cast(as_tensor(value), dtype)
    type_ = block(dtype.scalar, sizes, layout, "gl.full")
    check_warps(g, type_)
    if not isinstance(value, tensor):
        return constant(value, type_)
    if value.numel != 1:
        raise error(f"gl.full: value must be a scalar, got {value.type}", "reduce it first")
    return splat(cast(item(value), dtype.scalar), type_)


@generator_rule(core.zeros)
def _zeros(g: CodeGenerator, shape: object, dtype: object, layout: object = None) -> tensor:
    return full(g, shape, 0, dtype, layout)


@generator_rule(core.full_like)
def _full_like(
    g: CodeGenerator,
    input: object,
    value: object,
    shape: object = None,
    dtype: object = None,
    layout: object = None,
) -> tensor:
    like = as_tensor(input)
    own = getattr(like.type, "layout", None)
    return full(
        g,
        like.shape if shape is None else shape,
        value,
        like.dtype if dtype is None else dtype,
        own if layout is None else layout,
    )


@generator_rule(core.zeros_like)
def _zeros_like(
    g: CodeGenerator,
    input: object,
    shape: object = None,
    dtype: object = None,
    layout: object = None,
) -> tensor:
    return _full_like(g, input, 0, shape, dtype, layout)


# Layouts


def laid_out(value: object, what: str) -> tensor:
    """A value that must be a block with a layout."""
    if not isinstance(value, tensor) or not isinstance(value.type, distributed_type):
        found = value.type if isinstance(value, tensor) else shown(value)
        raise error(f"{what}: expected a distributed_type but got: {found}", "pass a block")
    return value


def converted(value: tensor, layout: object) -> tensor:
    """A block in another layout."""
    type_ = distributed_type(value.dtype, value.shape, layout)
    if type_ == value.type:
        return value
    return wrap(ttg.ConvertLayoutOp(value.handle, to_ir(type_)), type_)


@generator_rule(core.convert_layout)
def _convert(
    g: CodeGenerator, value: object, layout: object, assert_trivial: bool = False
) -> tensor:
    source = laid_out(value, "gl.convert_layout")
    target = block(source.dtype, source.shape, layout, "gl.convert_layout")
    check_warps(g, target)
    own = source.type.layout  # type: ignore[attr-defined]
    if isinstance(own, AutoLayout) and target.layout.is_known and not assert_trivial:
        return set_layout(source, target.layout)
    if assert_trivial:
        _check_trivial(source, own, target.layout)
    return converted(source, target.layout)


def _check_trivial(source: tensor, own: Any, layout: Any) -> None:
    """Raises CompilationError where a conversion may move data between threads."""
    why = "one of them is still to be chosen: gl.set_auto_layout says it"
    if own.is_known and layout.is_known:
        before, after = own.linear(source.shape), layout.linear(source.shape)
        if isinstance(plan(before, after, source.dtype.itemsize), Permutation):
            return
        why = f"data moves between threads: {before} becomes {after}"
    raise error(f"layout conversion from {own} to {layout} is not trivial", why)


@generator_rule(core.set_auto_layout)
def _set_auto(g: CodeGenerator, value: object, layout: object) -> tensor:
    source = laid_out(value, "gl.set_auto_layout")
    known = known_layout(layout, "gl.set_auto_layout")
    own = source.type.layout  # type: ignore[attr-defined]
    if not isinstance(own, AutoLayout):
        raise error(
            f"set_auto_layout input must have auto layout but got {own}",
            "use gl.convert_layout for a tensor that has a layout",
        )
    check_warps(g, block(source.dtype, source.shape, known, "gl.set_auto_layout"))
    return set_layout(source, known)


@rule(core.to_linear_layout)
def _to_linear(layout: object, shape: object) -> Any:
    sizes = check_shape(shape)
    if isinstance(layout, AutoLayout | DistributedLinearLayout | SharedLinearLayout):
        return layout
    try:
        if isinstance(layout, SharedLayout):
            return SharedLinearLayout.of(layout.linear(sizes, _bits_of(layout)))
        return DistributedLinearLayout.of(_linear(known_layout(layout, "layout"), sizes))
    except ValueError as problem:
        raise error(str(problem), "the layout is none of this shape") from None


def _linear(layout: Any, shape: tuple[int, ...]) -> LinearLayout:
    """The linear layout, for warps of any number of threads."""
    if not isinstance(layout, BlockedLayout):
        return layout.linear(shape)
    parts = layout.size_per_thread, layout.threads_per_warp, layout.warps_per_cta, layout.order
    return blocked(shape, *parts, math.prod(layout.threads_per_warp))


def _bits_of(layout: SharedLayout) -> int:
    return int(getattr(layout, "element_bitwidth", 32))


@rule(core.bank_conflicts)
def _bank_conflicts(distr_ty: distributed_type, shared_ty: Any) -> int:
    """More wavefronts than it needs, of an access of a warp's registers."""
    shape, bits = tuple(distr_ty.shape), distr_ty.scalar.primitive_bitwidth
    if shape != tuple(shared_ty.shape):
        raise error(
            f"register shape {list(shape)} and shared shape {list(shared_ty.shape)} must match",
            "pass the types of what is loaded and of the memory",
        )
    places = distr_ty.layout.linear(shape).invert_and_compose(shared_ty.layout.linear(shape, bits))
    return _conflicts(places, max(1, bits // 8))


_BANKS, _BANK_BYTES, _ACCESS_BYTES = 32, 4, 16


def _conflicts(places: LinearLayout, size: int) -> int:
    """Of one access of a warp: as many elements of each thread as lie side by side. Of more than
    four bytes each fewer lanes are served at once, 128 bytes of them."""
    count = 1
    registers = {basis[0] for basis in places.bases("register")}
    while count * size < _ACCESS_BYTES and count in registers:
        count *= 2
    lanes = min(_BANKS, _BANKS * _BANK_BYTES // (count * size))
    worst = 1
    for first in range(0, _BANKS, lanes):
        words: dict[int, set[int]] = {}
        for lane in range(first, first + lanes):
            start = places.apply(lane=lane)["offset"] * size
            for byte in range(start, start + count * size, _BANK_BYTES):
                word = byte // _BANK_BYTES
                words.setdefault(word % _BANKS, set()).add(word)
        worst = max(worst, *map(len, words.values()))
    return worst - 1


# Memory, and ops that are the tile language's with a layout


def caching(policy: object, modifier: str | None, eviction: str | None) -> tuple[str, str]:
    """(cache modifier, eviction policy) of an access; hints that PTX has no word for are left."""
    for name, value in (("cache_modifier", modifier), ("eviction_policy", eviction)):
        if policy is not None and value:
            raise error(f"cache_policy and {name} are mutually exclusive", "pass one of them")
    if isinstance(policy, CachePolicy):
        modifier, eviction = policy.cache_modifier, policy.eviction_policy
    elif isinstance(policy, NVIDIACachePolicy):
        modifier, eviction = policy.cache_modifier, None
        if modifier is not None and policy.l1 is not None:
            raise error("cache modifier cannot be combined with an L1 eviction priority", "l2=")
    elif policy is not None:
        raise error(f"cache_policy must be a CachePolicy, got {shown(policy)}", "gl.CachePolicy()")
    modifier = "" if modifier in (None, "none") else f".{modifier.removeprefix('.')}"
    return modifier, "" if eviction in (None, "none", "evict_normal") else eviction


_L2_PRIORITIES = ("evict_first", "evict_last")  # others are what a line has anyway


def hint_l2(op: Operation, policy: object) -> None:
    """Notes of a copy by TMA the priorities of its lines in the second-level cache."""
    _check_of_tma(policy)
    if isinstance(policy, NVIDIACachePolicy) and policy.l2 is not None:
        priorities, share = [policy.l2.primary, policy.l2.secondary], float(policy.l2.fraction)
    elif isinstance(policy, CachePolicy) and policy.eviction_policy in _L2_PRIORITIES:
        priorities, share = [policy.eviction_policy, "evict_unchanged"], 1.0
    else:
        return
    op.attributes[ttng.L2_PRIORITIES] = strings_attr(priorities)
    op.attributes[ttng.L2_SHARE] = ir.FloatAttr.get_f32(share)


def _check_of_tma(policy: object) -> None:
    """Raises CompilationError for hints that TMA does not take."""
    if not isinstance(policy, CachePolicy | NVIDIACachePolicy | None):
        raise error(
            f"TMA cache_policy must be a CachePolicy, got {shown(policy)}", "gl.CachePolicy()"
        )
    parts = {
        "cache modifiers": getattr(policy, "cache_modifier", "none") not in (None, "none"),
        "L1 eviction policies": getattr(policy, "l1", None) is not None,
        "L2 prefetch size": getattr(policy, "l2_prefetch_size", None) is not None,
    }
    for name, is_there in parts.items():
        if is_there:
            raise error(f"TMA operations do not support {name}", "say priorities of L2: l2=")


@generator_rule(core.load)
def _load(
    g: CodeGenerator,
    pointer: object,
    mask: object = None,
    other: object = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    volatile: object = False,
    cache_policy: object = None,
) -> Any:
    modifier, eviction = caching(cache_policy, cache_modifier, eviction_policy)
    return memory.load(
        pointer,
        mask,
        other,
        cache_modifier=modifier,
        eviction_policy=eviction,
        volatile=bool(volatile),
    )


@generator_rule(core.store)
def _store(
    g: CodeGenerator,
    pointer: object,
    value: object,
    mask: object = None,
    cache_modifier: str | None = None,
    eviction_policy: str | None = None,
    cache_policy: object = None,
) -> None:
    modifier, eviction = caching(cache_policy, cache_modifier, eviction_policy)
    memory.store(pointer, value, mask, cache_modifier=modifier, eviction_policy=eviction)


@generator_rule(core.histogram)
def _histogram(
    g: CodeGenerator, input: object, num_bins: object, mask: object = None, layout: object = None
) -> tensor:
    value = laid_out(input, "gl.histogram")
    if len(value.shape) != 1:
        raise error("histogram only supports 1D input", "reshape it")
    if not value.dtype.is_int():
        raise error("histogram only supports integer input", "convert with .to(gl.int32)")
    if layout is None:
        raise error("histogram requires a destination layout", "pass layout=")
    (bins,) = check_shape(num_bins)
    if mask is not None:
        mask = broadcast_to(to_bool(mask), value.type).handle
    type_ = block(ty.int32, (bins,), layout, "gl.histogram")
    wide = cast(value, ty.int32)
    return wrap(tc.HistogramOp(wide.handle, to_ir(type_), mask=mask), type_)


@rule(core.fp4_to_fp)
def _fp4_to_fp(src: object, elem_type: object, axis: Any) -> tensor:
    """Of each byte the number in its low half, and behind it that in its high half."""
    source = laid_out(src, "gl.fp4_to_fp")
    if source.dtype.primitive_bitwidth != 8 or not source.dtype.is_int():
        raise error(f"gl.fp4_to_fp: src must be of bytes, got {source.type}", "load uint8")
    if not isinstance(elem_type, ty.dtype) or not elem_type.is_floating():
        raise error(
            f"gl.fp4_to_fp: elem_type must be a dtype of floats, got {shown(elem_type)}",
            "pass gl.bfloat16 or gl.float16",
        )
    place, rank = normalize_axis(axis, len(source.shape), "gl.fp4_to_fp"), len(source.shape)
    bits = cast(source, ty.int16)
    halves = [_of_e2m1(binary(">>", bits, shift), elem_type) for shift in (0, 4)]
    order = (*range(place + 1), rank, *range(place + 1, rank))
    shape = tuple(size * (2 if n == place else 1) for n, size in enumerate(source.shape))
    result = reshape(permute(join(*halves), *order), shape)
    own = source.type.layout  # type: ignore[attr-defined]
    if isinstance(own, BlockedLayout):  # as the author would write it
        sizes = [n * (2 if i == place else 1) for i, n in enumerate(own.size_per_thread)]
        like = dataclasses.replace(own, size_per_thread=sizes)
        if like.linear(shape) == result.type.layout.linear(shape):  # type: ignore[attr-defined]
            return converted(result, like)
    return result


def _of_e2m1(bits: tensor, type_: ty.dtype) -> tensor:
    """The low four bits as a number: those of fp16 with the exponent's bias of E2M1."""
    sign = binary("<<", binary("&", bits, 8), 12)
    magnitude = binary("<<", binary("&", bits, 7), 9)
    number = bitcast(binary("|", sign, magnitude), ty.float16)
    return cast(binary("*", number, float(1 << 14)), type_)


@rule(core.expect_zero)
def _expect_zero(x: object, mask: object) -> Any:
    return x


@generator_rule(core.num_warps)
def _num_warps(g: CodeGenerator) -> int:
    return g.num_warps


@generator_rule(core.num_ctas)
def _num_ctas(g: CodeGenerator) -> int:
    return g.num_ctas


@rule(core.barrier)
def _barrier(cluster: bool = False) -> None:
    tt.DebugBarrierOp()
