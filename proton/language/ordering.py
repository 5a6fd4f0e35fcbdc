"""Sorting, and what is alike: written in the language, as networks of comparisons.

A bitonic network compares elements that lie a power of two apart. Such pairs are the middle
dimension of (outer, 2, distance); what an element's partner is, an exclusive or along that
dimension says, without a way through memory where a thread or a warp has both.

On a CPU a network is a loop: partners come by a gather, and neither compile time nor code grow with
the row.

Elements are compared as integers in the same order, so that NaN has a place: behind all numbers.
"""

from proton.language import core, target_info
from proton.language.function import DeviceFunction, constexpr_function, member
from proton.language.standard import _axis_in, _extremum_dtype, _indices, _moved, _xor
from proton.language.types import constexpr, int1, int8, int16, int32, int64


@constexpr_function
def _log2(n):
    return n.bit_length() - 1


@constexpr_function
def _is_power_of_2(n):
    return isinstance(n, int) and n > 0 and n & (n - 1) == 0


@constexpr_function
def _bits_of(dtype):
    """The signed integer of as many bits."""
    return {8: int8, 16: int16, 32: int32, 64: int64}[dtype.primitive_bitwidth]


@constexpr_function
def _last_to(rank, axis):
    return _moved(rank, rank - 1, axis)


@constexpr_function
def _resized(shape, axis, size):
    return (*shape[:axis], size, *shape[axis + 1 :])


@DeviceFunction
def _mirrored(bits):
    """Bits of a float to an integer in the same order, and back: of negative ones all bits but
    the sign are inverted."""
    least: constexpr = 1 << (bits.dtype.primitive_bitwidth - 1)
    return core.where(bits < 0, bits ^ (least - 1), bits)


@DeviceFunction
def _to_keys(x):
    """Integers in the order of the elements; NaN is the last."""
    if x.dtype.is_floating():
        bits: constexpr = _bits_of(x.dtype)
        last: constexpr = (1 << (bits.primitive_bitwidth - 1)) - 1
        return core.where(x == x, _mirrored(x.to(bits, bitcast=True)), last)
    elif x.dtype == int1:
        return x.to(int8)
    else:
        return x


@DeviceFunction
def _from_keys(keys, dtype: constexpr):
    if dtype.is_floating():
        return _mirrored(keys).to(dtype, bitcast=True)
    elif dtype == int1:
        return keys != 0
    else:
        return keys


@DeviceFunction
def _step(keys, stage: constexpr, distance: constexpr, down: constexpr):
    """Puts elements that lie `distance` apart in order: upwards in the first of two blocks of
    2 ** stage elements and downwards in the second, or all in one direction where `down` is given.
    """
    outer: constexpr = keys.numel // (2 * distance)
    pairs = core.reshape(keys, (outer, 2, distance))
    others = pairs ^ core.reduce(pairs, 1, _xor, True)
    takes_larger = core.arange(0, 2)[None, :, None]
    if down is None:
        blocks = core.arange(0, outer) >> (stage - _log2(2 * distance))
        takes_larger ^= (blocks & 1)[:, None, None]
    else:
        takes_larger ^= 1 if down else 0
    larger = core.broadcast_to(takes_larger == 1, pairs.shape)
    ordered = core.where(larger, core.maximum(pairs, others), core.minimum(pairs, others))
    return core.reshape(ordered, keys.shape)


@DeviceFunction
def _merge_in_loop(keys, stage, down: constexpr):
    """`_merge` as a loop."""
    places = core.arange(0, keys.numel)
    for step in core.range(stage):
        distance = 1 << (stage - 1 - step)
        others = core.gather(keys, places ^ distance, 0)
        takes_larger = (places & distance) != 0
        if down is None:
            takes_larger ^= ((places >> stage) & 1) != 0
        elif down:
            takes_larger = not takes_larger
        larger, smaller = core.maximum(keys, others), core.minimum(keys, others)
        keys = core.where(takes_larger, larger, smaller)
    return keys


@DeviceFunction
def _merge(keys, stage: constexpr, down: constexpr):
    """Sorts bitonic blocks of 2 ** stage elements."""
    if not target_info.is_cuda():
        return _merge_in_loop(keys, stage, down)
    else:
        for step in core.static_range(stage):
            keys = _step(keys, stage, 1 << (stage - 1 - step), down)
        return keys


@DeviceFunction
def _sort_blocks(keys, stages: constexpr):
    """Sorts blocks of 2 ** stages elements, upwards and downwards in turns."""
    if not target_info.is_cuda():
        for stage in core.range(1, stages + 1):
            keys = _merge_in_loop(keys, stage, None)
    else:
        for stage in core.static_range(1, stages + 1):
            keys = _merge(keys, stage, None)
    return keys


@DeviceFunction
def _checked(x, dim: constexpr):
    """The dimension to sort along, by default the last one."""
    rank: constexpr = len(x.shape)
    core.static_assert(rank > 0, "a scalar cannot be sorted: pass a block")
    core.static_assert(
        dim is None or (-rank <= dim and dim < rank), "dim must be one of the block's"
    )
    return rank - 1 if dim is None else _axis_in(dim, rank)


@DeviceFunction
def _ordered(x, dim: constexpr, down: constexpr, merges: constexpr):
    """`x` in order along `dim`; `merges` says that it is bitonic."""
    axis: constexpr = _checked(x, dim)
    stages: constexpr = _log2(x.shape[axis])
    rank: constexpr = len(x.shape)
    rows = core.permute(_to_keys(x), _moved(rank, axis, rank - 1))
    keys = core.reshape(rows, (x.numel,))
    if not merges:
        keys = _sort_blocks(keys, stages - 1)
    keys = _merge(keys, stages, down)
    rows = core.permute(core.reshape(keys, rows.shape), _last_to(rank, axis))
    return _from_keys(rows, x.dtype)


@member
@DeviceFunction
def sort(x, dim: constexpr = None, descending: constexpr = False):
    """The elements in ascending order along `dim`, by default the last one. NaN is the largest,
    -0 is below 0."""
    return _ordered(x, dim, descending, False)


@DeviceFunction
def bitonic_merge(x, dim: constexpr = None, descending: constexpr = False):
    """The elements in order along `dim`, where they rise first and fall then, or the other way
    round."""
    return _ordered(x, dim, descending, True)


@DeviceFunction
def topk(x, k: constexpr, dim: constexpr = None, descending: constexpr = True):
    """The `k` largest elements along `dim`, by default the last one, the largest first; or the
    smallest, the smallest first. `k` is a power of two. NaN is the largest. What is narrower than
    32 bits is fp32 or int32 then, as of `tl.max`, unless `k` is all of them."""
    axis: constexpr = _checked(x, dim)
    core.static_assert(
        _is_power_of_2(k) and k <= x.shape[axis],
        "tl.topk: k must be a power of two, and no more than there are elements",
    )
    if k == x.shape[axis]:
        return _ordered(x, dim, descending, False)
    else:
        rank: constexpr = len(x.shape)
        stage: constexpr = _log2(k)
        halvings: constexpr = _log2(x.shape[axis] // k)
        rows = core.permute(_to_keys(x), _moved(rank, axis, rank - 1))
        keys = _sort_blocks(core.reshape(rows, (x.numel,)), stage)
        for halving in core.static_range(halvings):
            # Of two blocks that are sorted in opposite directions, what is larger in each place
            # are the largest elements, and bitonic; and so with what is smaller.
            pairs = core.reshape(keys, (keys.numel // (2 * k), 2, k))
            best = core.reduce(pairs, 1, _larger if descending else _smaller)
            is_last: constexpr = halving == halvings - 1
            best = core.reshape(best, (keys.numel // 2,))
            keys = _merge(best, stage, descending if is_last else None)
        rows = core.reshape(keys, _resized(rows.shape, rank - 1, k))
        found = _from_keys(core.permute(rows, _last_to(rank, axis)), x.dtype)
        return found.to(_extremum_dtype(x.dtype))


@DeviceFunction
def _larger(a, b):
    return core.maximum(a, b)


@DeviceFunction
def _smaller(a, b):
    return core.minimum(a, b)


@member
@DeviceFunction
def flip(x, dim: constexpr = None):
    """The elements in the opposite order along `dim`, by default the last one."""
    axis: constexpr = _checked(x, dim)
    return core.gather(x, x.shape[axis] - 1 - _indices(x, axis), axis)


__all__ = [n for n, of in globals().items() if isinstance(of, DeviceFunction) and n[0] != "_"]
