"""Products of matrices whose elements share scales (microscaling formats), by emulation.

Each run of 32 or 16 elements along the inner dimension has one scale: a power of two in 8 bits
(E8M0: 127 is 1, 255 is NaN), or an 8-bit float (NVFP4: E4M3 for 16 elements of E2M1). Operands are
multiplied by their scales in bf16, or in fp16 where one of them is fp16, and `tl.dot` multiplies
the results. All of that is exact for operands of 4 and 8 bits, but where a scaled number does not
fit: bf16 has 8 bits for a number's digits, and products of two such numbers need no more.
"""

from proton.language import core
from proton.language.function import DeviceFunction, constexpr_function
from proton.language.target_info import is_cuda
from proton.language.types import bfloat16, constexpr, uint8, uint16


@constexpr_function
def _with_last(shape, *sizes):
    """The shape with other sizes in the place of the last one."""
    return (*shape[:-1], *sizes)


@constexpr_function
def _doubled(shape, axis):
    """The shape with twice the size along an axis counted from the end."""
    axis = len(shape) + axis
    return (*shape[:axis], 2 * shape[axis], *shape[axis + 1 :])


@constexpr_function
def _pairs_behind(rank, axis):
    """The order of dimensions that brings the last of `rank` behind the axis, which is counted from
    the end of the others."""
    axis = rank - 1 + axis
    return (*range(axis + 1), rank - 1, *range(axis + 1, rank - 1))


@DeviceFunction
def _unpacked(x, axis: constexpr):
    """The halves of bytes, the lower one first, along an axis."""
    both = core.join(x & 0xF, x >> 4)
    both = core.permute(both, _pairs_behind(len(x.shape) + 1, axis))
    return core.reshape(both, _doubled(x.shape, axis))


@DeviceFunction
def _from_e2m1(x, dtype: constexpr):
    """Numbers of 4 bits (sign, two bits of exponent, one of mantissa) as bf16 or fp16."""
    digits: constexpr = 7 if dtype == bfloat16 else 10
    bias: constexpr = 127 if dtype == bfloat16 else 15
    half: constexpr = (bias - 1) << digits  # 0.5, the only one whose exponent is 0
    magnitude = (x & 7).to(uint16)
    bits = (magnitude << (digits - 1)) + half
    bits = core.where(magnitude == 1, half, bits)
    bits = core.where(magnitude == 0, 0, bits) | ((x & 8).to(uint16) << 12)
    return bits.to(uint16).to(dtype, bitcast=True)


# Of four bytes two pairs of 16-bit numbers for the lower halves, and two for the higher ones: the
# sign goes to bit 15, the other bits to where the exponent ends.
_SPREAD = """{{
    .reg .b32 pair, moved;
    prmt.b32 pair, $4, 0, 0x1100;
    {0}
    prmt.b32 pair, $4, 0, 0x3322;
    {1}
}}"""
_PAIR = """shl.b32 moved, pair, {low};
    and.b32 ${lower}, moved, {bits};
    shl.b32 moved, pair, 12;
    and.b32 moved, moved, 0x80008000;
    or.b32 ${lower}, ${lower}, moved;
    shl.b32 moved, pair, {high};
    and.b32 ${higher}, moved, {bits};
    and.b32 moved, pair, 0x80008000;
    or.b32 ${higher}, ${higher}, moved;"""


@constexpr_function
def _spreading(digits):
    """Assembly for numbers with so many digits."""
    shifts = {"low": digits - 1, "high": digits - 5, "bits": hex(0x70007 << digits - 1)}
    pairs = (_PAIR.format(lower=n, higher=n + 2, **shifts) for n in range(2))
    return _SPREAD.format(*pairs)


@DeviceFunction
def _spread(x, axis: constexpr, dtype: constexpr):
    """The same as `from_packed_e2m1`, for threads that have several bytes in a register. Where the
    bits of E2M1 stand they mean its number, but for the exponent's bias: a power of two."""
    digits: constexpr = 7 if dtype == bfloat16 else 10
    bias: constexpr = 126 if dtype == bfloat16 else 14
    low, high = core.inline_asm_elementwise(
        _spreading(digits), "=r,=r,=r,=r,r", [x], (dtype, dtype), is_pure=True, pack=4
    )
    both = core.permute(core.join(low, high), _pairs_behind(len(x.shape) + 1, axis))
    return core.reshape(both, _doubled(x.shape, axis)) * core.full((), 2.0**bias, dtype)


@DeviceFunction
def from_packed_e2m1(x, axis: constexpr, dtype: constexpr):
    """The numbers of 4 bits in bytes, two along an axis counted from the end, as bf16 or fp16."""
    if is_cuda() and x.numel % 4 == 0:
        return _spread(x, axis, dtype)
    return _from_e2m1(_unpacked(x, axis), dtype)


@DeviceFunction
def _from_e8m0(scale, dtype: constexpr):
    """Powers of two as bf16, which has all of them, or as fp16."""
    bits = scale.to(uint16) << 7
    bits = core.where(scale == 255, 0x7FC0, bits)
    return bits.to(uint16).to(bfloat16, bitcast=True).to(dtype)


@DeviceFunction
def _factor(scale, dtype: constexpr):
    """Scales of either kind as numbers."""
    if scale.dtype.is_floating():
        return scale.to(dtype)
    return _from_e8m0(scale.to(uint8, bitcast=True), dtype)


@DeviceFunction
def _repeated(scale, depth: constexpr):
    """Each scale for all elements that share it, `depth` along the last axis."""
    blocks: constexpr = scale.shape[-1]
    wide = core.expand_dims(scale, -1)
    wide = core.broadcast_to(wide, _with_last(scale.shape, blocks, depth // blocks))
    return core.reshape(wide, _with_last(scale.shape, depth))


@DeviceFunction
def _operand(
    x, scale, is_packed: constexpr, packed_axis: constexpr, dtype: constexpr, is_right: constexpr
):
    """An operand in `dtype`, by its scale."""
    if is_packed:
        x = from_packed_e2m1(x, packed_axis, dtype)
    else:
        x = x.to(dtype)
    if scale is not None:
        factor = _repeated(_factor(scale, dtype), x.shape[-2] if is_right else x.shape[-1])
        if is_right:
            factor = core.trans(factor)
        x = x * factor
    return x


@DeviceFunction
def dot_scaled(
    lhs, lhs_scale, lhs_packed: constexpr, rhs, rhs_scale, rhs_packed: constexpr, acc,
    lhs_axis: constexpr, rhs_axis: constexpr, dtype: constexpr, out_dtype: constexpr,
):  # fmt: skip
    """tl.dot_scaled, of operands that have been checked; `packed` says that two lie in a byte."""
    left = _operand(lhs, lhs_scale, lhs_packed, lhs_axis, dtype, False)
    right = _operand(rhs, rhs_scale, rhs_packed, rhs_axis, dtype, True)
    return core.dot(left, right, acc, out_dtype=out_dtype)
