"""The part of the language that is written in the language itself."""

import importlib
import warnings
from typing import Any

from proton.language import core, function, memory, profiling
from proton.language.extra import cuda
from proton.language.function import DeviceFunction, constexpr_function, member
from proton.language.types import constexpr, float32, int32, uint32


@member
@DeviceFunction
def cdiv(x, div):
    """The quotient of integers, rounded up."""
    return (x + (div - 1)) // div


@constexpr_function
def constexpr_cdiv(x, y):
    """x / y, rounded up, of numbers on the host and of constexprs: the size of a grid."""
    return -(-x // y)


constexpr_cdiv.__name__ = "cdiv"  # as it is called: proton.cdiv


@constexpr_function
def next_power_of_2(n):
    """The least power of two that is not below `n`, of constexprs."""
    return 1 if n <= 1 else 1 << (n - 1).bit_length()


@constexpr_function
def _warn(text):
    """A warning to who compiles a kernel."""
    warnings.warn(text, UserWarning, stacklevel=2)


@constexpr_function
def _reduced_dtype(dtype, requested):
    """Sums of narrow integers are taken in 32 bits, as in Triton, to which a bool is unsigned."""
    if requested is not None:
        return requested
    if dtype.is_int() and dtype.primitive_bitwidth < 32:
        return uint32 if dtype.is_int_unsigned() else int32
    return dtype


@constexpr_function
def _arg_input_dtype(dtype):
    """fp16 and bf16 are compared in fp32; everything else as it is."""
    return float32 if dtype.is_floating() and dtype.primitive_bitwidth < 32 else dtype


@constexpr_function
def _extremum_dtype(dtype):
    """Extrema of what is narrower than 32 bits are fp32 or int32, as in Triton."""
    if dtype.primitive_bitwidth >= 32:
        return dtype
    return float32 if dtype.is_floating() else int32


@DeviceFunction
def _is_there(pointer, expected_value, sem, scope):
    value = memory.atomic_load(pointer, sem=sem, scope=scope)
    return value == core.cast(expected_value, value.dtype)


@DeviceFunction
def _look_again(found, pointer, expected_value, sem, scope):
    again = _is_there(pointer, expected_value, sem, scope)
    return found | again if pointer.shape else again


@DeviceFunction
def _all(found):
    return min(found.to(int32)) != 0 if found.shape else found


@member
@DeviceFunction
def atomic_poll(pointer, expected_value, sem=None, scope=None, timeout_ns=None):
    """Reads numbers atomically until each was `expected_value` once; which of them were before
    `timeout_ns` had passed, which GPUs alone count. The program that writes them must run
    meanwhile."""
    found = _is_there(pointer, expected_value, sem, scope)
    if timeout_ns is None:
        while not _all(found):
            found = _look_again(found, pointer, expected_value, sem, scope)
    else:
        is_known = not isinstance(timeout_ns, core.tensor)
        core.static_assert(not is_known or timeout_ns >= 0, "timeout_ns must be non-negative")
        end = cuda.globaltimer() + timeout_ns
        while not _all(found) and cuda.globaltimer() < end:
            found = _look_again(found, pointer, expected_value, sem, scope)
    return found


@DeviceFunction
def _add(a, b):
    return a + b


@DeviceFunction
def _xor(a, b):
    return a ^ b


@DeviceFunction
def _or(a, b):
    return a | b


@DeviceFunction
def _maximum(a, b):
    return core.maximum(a, b)


@DeviceFunction
def _minimum(a, b):
    return core.minimum(a, b)


# Numbers win over NaN, as in `_maximum` and `_minimum`. Each of these is associative, and the
# `_left` ones are commutative, too: among equals, and among NaNs, the lower index wins. There no
# value differs from the best, or both do: elsewhere `one` and `other` are the winner's index.


@DeviceFunction
def _argmax_left(value1, index1, value2, index2):
    best = core.maximum(value1, value2)
    one = core.where(value1 != best, index2, index1)
    other = core.where(value2 != best, index1, index2)
    return best, core.minimum(one, other)


@DeviceFunction
def _argmax_any(value1, index1, value2, index2):
    first = (value1 > value2) | (value2 != value2)
    return core.where(first, value1, value2), core.where(first, index1, index2)


@DeviceFunction
def _argmin_left(value1, index1, value2, index2):
    best = core.minimum(value1, value2)
    one = core.where(value1 != best, index2, index1)
    other = core.where(value2 != best, index1, index2)
    return best, core.minimum(one, other)


@DeviceFunction
def _argmin_any(value1, index1, value2, index2):
    first = (value1 < value2) | (value2 != value2)
    return core.where(first, value1, value2), core.where(first, index1, index2)


@DeviceFunction
def _indices(input, axis: constexpr):
    """The i32 index along `axis` of each element; for axis None, the row-major index."""
    if axis is None:
        return core.reshape(core.arange(0, input.numel), input.shape)
    rank: constexpr = len(input.shape)
    wrong: constexpr = f"invalid axis {axis}, which must lie in [{-rank}, {rank})"
    core.static_assert(-rank <= axis < rank, wrong)
    index = core.arange(0, input.shape[axis])
    for dim in core.static_range(len(input.shape)):
        if dim < axis % len(input.shape):
            index = core.expand_dims(index, 0)
        elif dim > axis % len(input.shape):
            index = core.expand_dims(index, dim)
    return core.broadcast_to(index, input.shape)


@member
@DeviceFunction
def sum(input, axis: constexpr = None, keep_dims: constexpr = False, dtype: constexpr = None):
    """The sum along `axis`; narrow integers are summed in 32 bits unless `dtype` says otherwise."""
    input = input.to(_reduced_dtype(input.dtype, dtype))
    return core.reduce(input, axis, _add, keep_dims)


@member
@DeviceFunction
def xor_sum(input, axis: constexpr = None, keep_dims: constexpr = False):
    """The exclusive or of all integers along `axis`."""
    return core.reduce(input, axis, _xor, keep_dims)


@member
@DeviceFunction
def reduce_or(input, axis: constexpr, keep_dims: constexpr = False):
    """The bitwise or of all integers along `axis`."""
    return core.reduce(input, axis, _or, keep_dims)


@member
@DeviceFunction
def max(
    input,
    axis: constexpr = None,
    return_indices: constexpr = False,
    return_indices_tie_break_left: constexpr = True,
    keep_dims: constexpr = False,
):
    """The maximum along `axis` (numbers win over NaN); with its index, if that is asked for, it has
    the type of `input`."""
    if return_indices:
        pair = (input.to(_arg_input_dtype(input.dtype)), _indices(input, axis))
        if return_indices_tie_break_left:
            value, index = core.reduce(pair, axis, _argmax_left, keep_dims)
        else:
            value, index = core.reduce(pair, axis, _argmax_any, keep_dims)
        return value.to(input.dtype), index
    else:
        return core.reduce(input.to(_extremum_dtype(input.dtype)), axis, _maximum, keep_dims)


@member
@DeviceFunction
def min(
    input,
    axis: constexpr = None,
    return_indices: constexpr = False,
    return_indices_tie_break_left: constexpr = True,
    keep_dims: constexpr = False,
):
    """The minimum along `axis` (numbers win over NaN); with its index, if that is asked for, it has
    the type of `input`."""
    if return_indices:
        pair = (input.to(_arg_input_dtype(input.dtype)), _indices(input, axis))
        if return_indices_tie_break_left:
            value, index = core.reduce(pair, axis, _argmin_left, keep_dims)
        else:
            value, index = core.reduce(pair, axis, _argmin_any, keep_dims)
        return value.to(input.dtype), index
    else:
        return core.reduce(input.to(_extremum_dtype(input.dtype)), axis, _minimum, keep_dims)


@member
@DeviceFunction
def argmax(input, axis: constexpr, tie_break_left: constexpr = True, keep_dims: constexpr = False):
    """The i32 index of the maximum along `axis`."""
    _, index = max(input, axis, True, tie_break_left, keep_dims)
    return index


@member
@DeviceFunction
def argmin(input, axis: constexpr, tie_break_left: constexpr = True, keep_dims: constexpr = False):
    """The i32 index of the minimum along `axis`."""
    _, index = min(input, axis, True, tie_break_left, keep_dims)
    return index


@DeviceFunction
def _multiply(a, b):
    return a * b


@member
@DeviceFunction
def cumsum(input, axis: constexpr = 0, reverse: constexpr = False, dtype: constexpr = None):
    """The sums of what comes up to each element along `axis`, or from it on if `reverse`.

    Narrow integers are summed in 32 bits unless `dtype` says otherwise.
    """
    input = input.to(_reduced_dtype(input.dtype, dtype))
    return core.associative_scan(input, axis, _add, reverse)


@member
@DeviceFunction
def cumprod(input, axis: constexpr = 0, reverse: constexpr = False, dtype: constexpr = None):
    """The products of what comes up to each element along `axis`, or from it on if `reverse`.

    Narrow integers are multiplied in 32 bits unless `dtype` says otherwise.
    """
    input = input.to(_reduced_dtype(input.dtype, dtype))
    return core.associative_scan(input, axis, _multiply, reverse)


@DeviceFunction
def expect_zero(x, mask):
    """`x`, of which is said that it is 0 where `mask` holds: with debug=True that is asserted."""
    core.device_assert((x == 0) | (mask == 0), "expect_zero: x is not 0 where mask holds")
    return x


@constexpr_function
def _axis_in(dim, rank):
    """A dimension, counted from the front."""
    return dim + rank if dim < 0 else dim


@constexpr_function
def _moved(rank, source, target):
    """The order of dimensions in which dimension `source` has come to `target`."""
    order = [axis for axis in range(rank) if axis != source]
    order.insert(target, source)
    return tuple(order)


@constexpr_function
def _doubled(shape, axis):
    return (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])


@DeviceFunction
def interleave(a, b):
    """The elements of `a` and `b` in turns, along the last dimension."""
    pairs = core.join(a, b)
    if len(pairs.shape) == 1:
        return pairs
    else:
        return core.reshape(pairs, _doubled(pairs.shape[:-1], len(pairs.shape) - 2))


@DeviceFunction
def cat(input, other, can_reorder: constexpr = False, dim: constexpr = 0):
    """`input` and after it `other` along `dim`; they have one shape. The order of elements is kept,
    also where `can_reorder` allows another one."""
    pairs = core.join(input, other)
    rank: constexpr = len(pairs.shape)
    core.static_assert(rank > 1, "tl.cat takes blocks, got scalars; use tl.join")
    core.static_assert(-rank < dim and dim < rank - 1, "tl.cat: dim must be one of the blocks'")
    axis: constexpr = _axis_in(dim, rank - 1)
    halves = core.permute(pairs, _moved(rank, rank - 1, axis))
    return core.reshape(halves, _doubled(input.shape, axis), can_reorder=can_reorder)


@DeviceFunction
def swizzle2d(i, j, size_i, size_j, size_g):
    """Place (i, j) of a size_i x size_j grid, counted row by row, in the order that goes through
    `size_g` rows at a time, column by column; the last rows may be fewer."""
    place = i * size_j + j
    first = place // (size_g * size_j) * size_g
    rows = core.minimum(size_i - first, size_g)
    place = place % (size_g * size_j)
    return first + place % rows, place // rows


@member
@DeviceFunction
def sigmoid(x):
    """1 / (1 + exp(-x))"""
    return 1 / (1 + core.exp(-x))


@member
@DeviceFunction
def softmax(
    x, dim: constexpr = None, *, keep_dims: constexpr = None, ieee_rounding: constexpr = False
):
    """Softmax along `dim`, by default the first dimension, as in Triton."""
    if keep_dims is not None:
        _warn("keep_dims of tl.softmax is deprecated and ignored, as in Triton: leave it out")
    axis: constexpr = 0 if dim is None else dim
    z = x - max(x, axis, keep_dims=True)
    numerator = core.exp(z)
    return core.fdiv(numerator, sum(numerator, axis, keep_dims=True), ieee_rounding)


@DeviceFunction
def gpu_calibration(out_ptr, n, INNER: constexpr):
    """The same on a GPU: a loop of multiply-adds, with a scope around each iteration or without."""
    lane = core.arange(0, 128)
    x = lane.to(float32)
    y = x
    with profiling.scope("outer"):
        for _ in core.range(n):
            if INNER:
                with profiling.scope("inner"):
                    x = _calibration_work(x, y)
            else:
                x = _calibration_work(x, y)
    memory.store(out_ptr + lane, x)


@DeviceFunction
def _calibration_work(x, y):
    for _ in core.static_range(8):
        x = x * 0.5 + y
    return x


@DeviceFunction
def calibration(out_ptr, n):
    """What the runtime measures the cost of a scope with: a loop around one that stores."""
    for i in core.range(n):
        with profiling.scope("calibration"):
            memory.store(out_ptr, i)


def __getattr__(name: str) -> Any:
    """What Triton has in `language.standard`, and is elsewhere here: zeros_like, _log2, ..."""
    homes = ("ordering", "combiners") if name.startswith("_") else ("",)
    for home in homes if not name.startswith("__") else ():
        module = importlib.import_module(f"proton.language.{home}".rstrip("."))
        if hasattr(module, name):
            return getattr(module, name)
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


_OPS = (DeviceFunction, function.ConstexprFunction)
_NOT_OF_TL = ("calibration", "gpu_calibration", "constexpr_cdiv")
__all__ = [n for n, of in globals().items() if isinstance(of, _OPS) and n not in _NOT_OF_TL]
__all__ = [name for name in __all__ if name[0] != "_"]
