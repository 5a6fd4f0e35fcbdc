"""The ops of the tile language: a signature and a meaning each; the rules are in the front end.

Shapes are static, every block dimension is a power of two. What reads and writes memory is in
`memory`.
"""

import importlib
from typing import Any

from proton.language.aggregate import aggregate, replaced
from proton.language.bases import base_type as base_type
from proton.language.bases import base_value as base_value
from proton.language.constants import constexpr
from proton.language.function import Builtin, builtin, member
from proton.language.function import extern as extern
from proton.language.function import is_builtin as is_builtin
from proton.language.function import must_use_result as must_use_result
from proton.language.types import dtype, float32
from proton.language.types import get_int_dtype as get_int_dtype
from proton.language.types import unwrap as _unwrap_if_constexpr  # noqa: F401  (of Triton's name)

CONSTEXPR_0 = constexpr(0)  # the default of an option, by the name that libraries know

# Programming model


@builtin
def program_id(axis):
    """The index of this program along grid axis 0, 1 or 2; i32."""


@builtin
def num_programs(axis):
    """The size of the grid along axis 0, 1 or 2; i32."""


# Creation


@builtin
def arange(start, end):
    """The i32 block [start, end); the bounds are constexprs and end - start a power of two."""


@builtin
def full(shape, value, dtype):
    """A block of `shape` filled with `value`, of type `dtype`."""


@builtin
def zeros(shape, dtype):
    """A block of zeros."""


@builtin
def zeros_like(input):
    """Zeros in the shape and dtype of `input`."""


@builtin
def to_tensor(x):
    """A Python number or constexpr as a scalar of its default type (i32, i64, fp32, fp64)."""


@member
def cast(input, dtype: dtype, fp_downcast_rounding=None, bitcast=False):
    """`input` as `dtype`; `bitcast` keeps the bits. Rounding is "rtne" (default) or "rtz"."""


@member
def to(input, dtype: dtype, fp_downcast_rounding=None, bitcast=False):
    """`input` as `dtype`; see `cast`."""


# Shape


@builtin
def broadcast(input, other):
    """Both inputs broadcast to one shape, as a tuple."""


@member
def logical_and(input, other):
    """Whether both are not 0, element by element; a method of tensors."""


@member
def logical_or(input, other):
    """Whether one of both is not 0, element by element; a method of tensors."""


@member
def broadcast_to(input, *shape):
    """`input` broadcast to `shape`."""


@member
def expand_dims(input, axis):
    """`input` with a dimension of size 1 at `axis` (an int or a tuple of them)."""


@member
def reshape(input, *shape, can_reorder=False):
    """`input` in a new shape of the same number of elements, row-major."""


@member
def view(input, *shape):
    """`input` in a new shape of the same number of elements; see `reshape`."""


@member
def ravel(x, can_reorder=False):
    """`x` as one dimension."""


@member
def permute(input, *dims):
    """`input` with its dimensions in the order `dims`."""


@member
def trans(input, *dims):
    """`input` with its last two dimensions swapped, or permuted by `dims`."""


@member
def squeeze(x, dim):
    """`x` without the dimension `dim`, whose size is 1."""


@member
def unsqueeze(x, dim):
    """`x` with a dimension of size 1 at `dim`."""


@builtin
def join(a, b):
    """`a` and `b` along a new last dimension of size 2."""


@member
def split(a):
    """The two halves of a block whose last dimension has size 2."""


@member
def item(input):
    """The element of a block of one element, as a scalar."""


# Linear algebra and reductions


@builtin
def dot(
    input,
    other,
    acc=None,
    input_precision=None,
    allow_tf32=None,
    max_num_imprecise_acc=None,
    out_dtype=None,
):
    """The matrix product of (M, K) and (K, N) blocks, added to `acc`.

    The result is fp32 for floats up to 32 bits, fp64 for fp64, i32 for int8; or `out_dtype`.
    The CPU computes in the precision of the result, whatever `input_precision` and
    `max_num_imprecise_acc` allow.
    """


@builtin
def dot_scaled(
    lhs,
    lhs_scale,
    lhs_format,
    rhs,
    rhs_scale,
    rhs_format,
    acc=None,
    fast_math=False,
    lhs_k_pack=True,
    rhs_k_pack=True,
    out_dtype=float32,
):
    """The product of (M, K) and (K, N) blocks whose elements have scales, added to `acc`.

    A format is "e2m1" (two in a byte, along K, or along M or N if not `k_pack`), "e4m3", "e5m2",
    "bf16" or "fp16"; the last four may be given as integers. Scales are powers of two in uint8
    (E8M0), float8e4nv, float8e5 or None, one for 32 or 16 elements: (M, K / 32) or (M, K / 16) of
    `lhs`, (N, K / 32) or (N, K / 16) of `rhs`. Operands are scaled in bf16, or in fp16 where one
    format is "fp16"; sums are those of `tl.dot`. `fast_math` changes nothing.
    """


@member
def reduce(input, axis, combine_fn, keep_dims=False):
    """Combines all elements along `axis` with the associative device function `combine_fn`.

    `input` may be a tuple of blocks of one shape; then `combine_fn` takes and returns twice as
    many, respectively as many, values. `axis=None` reduces every dimension.
    """


@member
def associative_scan(input, axis, combine_fn, reverse=False):
    """Each element combined with all before it along `axis` by the device function `combine_fn`.

    `reverse` starts from the end. `input` may be a tuple of blocks of one shape, as in `reduce`.
    """


@builtin
def histogram(input, num_bins, mask=None):
    """How often each of 0 to num_bins - 1 is in a row of integers, as i32; others do not count."""


@member
def gather(src, index, axis):
    """src[index[i, j], j] for axis 0, src[i, index[i, j]] for axis 1; an index must lie in src."""


# Elementwise


@builtin
def where(condition, x, y):
    """`x` where `condition` is true, else `y`."""


@builtin
def maximum(x, y, propagate_nan=None):
    """The greater element; of a number and a NaN the number, unless NaN propagates."""


@builtin
def minimum(x, y, propagate_nan=None):
    """The lesser element; of a number and a NaN the number, unless NaN propagates."""


@builtin
def clamp(x, min, max, propagate_nan=None):
    """`x` held between `min` and `max` (floating point)."""


@builtin
def add(x, y, sanitize_overflow=True):
    """x + y"""


@builtin
def sub(x, y, sanitize_overflow=True):
    """x - y"""


@builtin
def mul(x, y, sanitize_overflow=True):
    """x * y"""


@builtin
def fma(x, y, z):
    """x * y + z, rounded once."""


@builtin
def fdiv(x, y, ieee_rounding=False, approx=False):
    """Floating-point x / y; with `ieee_rounding` to nearest on GPUs, too."""


@builtin
def div_rn(x, y):
    """fp32 x / y, rounded to nearest."""


@builtin
def umulhi(x, y):
    """The upper half of the product of two unsigned integers of 32 or 64 bits."""


@member
def abs(x):
    """The absolute value."""


def _math(name: str, meaning: str) -> Any:
    def op(x):
        raise NotImplementedError

    op.__name__ = op.__qualname__ = name
    op.__doc__ = f"{meaning}; fp32 or fp64."
    return member(op)


exp = _math("exp", "e to the power of x")
exp2 = _math("exp2", "2 to the power of x")
log = _math("log", "The natural logarithm of x")
log2 = _math("log2", "The logarithm of x to base 2")
sin = _math("sin", "The sine of x")
cos = _math("cos", "The cosine of x")
sqrt = _math("sqrt", "The square root of x")
sqrt_rn = _math("sqrt_rn", "The square root of x, rounded to nearest")
rsqrt = _math("rsqrt", "One over the square root of x")
erf = _math("erf", "The error function of x")
floor = _math("floor", "The greatest integer that is not above x")
ceil = _math("ceil", "The least integer that is not below x")

# What the author writes for each element


@builtin
def map_elementwise(scalar_fn, *args, pack=1):
    """The device function `scalar_fn`, which may branch and loop, of each element of blocks.

    It returns an element, or a tuple of them for as many blocks. With `pack` it gets so many
    elements of each block, and returns as many: which ones are taken together is not said.
    """


@builtin
def inline_asm_elementwise(asm, constraints, args, dtype, is_pure, pack):
    """Inline PTX on each element, or on `pack` of them at a time; GPUs only.

    `constraints` are LLVM's, results first ("=r,r,r"). Elements below 32 bits share registers, up
    to `pack`. `dtype` may be a tuple, of as many results. Without `is_pure` it is never left out.
    Without `args` results are scalars.
    """


@builtin
def extern_elementwise(lib_name, lib_path, args, arg_type_symbol_dict, is_pure):
    """A function of libdevice by a table: {(dtype, ...): (symbol, dtype of the result)}."""


# Aggregates

_aggregate = aggregate  # its name in Triton's earlier versions


@builtin
def aggregate_replace(instance, **changes):
    """The aggregate with other values in the fields that are named."""


aggregate_replace.on_host = replaced


# Hints, control, debugging


@builtin
def multiple_of(input, values):
    """Promises that the values of `input` are multiples of `values`; returns `input`."""


@builtin
def max_contiguous(input, values):
    """Promises runs of consecutive values of length `values`; returns `input`."""


@builtin
def max_constancy(input, values):
    """Promises runs of equal values of length `values`; returns `input`."""


@builtin
def assume(cond):
    """Promises that the scalar `cond` is true."""


@builtin
def debug_barrier():
    """Waits until all threads of the program are here; a CPU program is one thread."""


@builtin
def static_assert(cond, msg=""):
    """Fails the compilation unless the constexpr `cond` is true."""


@builtin
def static_print(*values, sep=" ", end="\n", file=None, flush=False):
    """Prints while compiling."""


@builtin
def device_print(prefix, *args, hex=False):
    """Prints while running: a line for each element of `args`, with its program and index.

    `prefix` is a constexpr str; `hex` shows numbers in base 16, floats as C's `%a`
    does (1.5 is `0x1.8p+0`). Python's `print` does the same.
    """


@builtin
def device_assert(cond, msg="", mask=None):
    """Checks `cond` while running when compiled with debug=True; otherwise nothing."""


@builtin
def condition(arg1, disable_licm=False):
    """`while tl.condition(x < n)`: a condition with hints, which change nothing."""


class _Loop:
    """An iterator of a kernel's `for`; the front end reads its arguments."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        raise RuntimeError(f"tl.{type(self).__name__} can only be iterated inside a kernel")


class range(_Loop):
    """`range` with hints: num_stages, loop_unroll_factor, flatten, disallow_acc_multi_buffer,
    warp_specialize, disable_licm.

    Only `loop_unroll_factor` means anything to the CPU; the others are for GPUs.
    """


class static_range(_Loop):
    """A range over constexprs that is unrolled while compiling."""


_NOT_OF_TL = ("to", "logical_and", "logical_or", "extern_elementwise")
__all__ = ["range", "static_range"]  # of `tl`, with each op that is declared here
__all__ += [n for n, of in globals().items() if isinstance(of, Builtin) and n not in _NOT_OF_TL]


def __getattr__(name: str) -> Any:
    """What Triton has in `language.core`, and is elsewhere here: constexpr, int32, sum, ..."""
    if name.startswith("_"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    return getattr(importlib.import_module("proton.language"), name)
