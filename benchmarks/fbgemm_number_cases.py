"""FBGEMM GenAI's Triton kernels that make numbers of 8 and 4 bits.

What packs fp4 by `cvt.rn.satfinite.e2m1x2.f32`, which 9.0 has not, is left out: nvfp4, and
`triton_quantize_mx4_unpack`.
"""

import torch
import torch.nn.functional as F
from fbgemm_case import BOTH, EXPERTS, FULL, HIDDEN, TOKENS, call, groups, of_rows
from fbgemm_gpu.experimental.gemm.triton_gemm import fp4_quantize, fp8_gemm
from fbgemm_gpu.triton import quantize as mx4
from libraries import middle
from library_case import Size
from library_references import FP8, by_row, whole

middle(fp8_gemm)

BLOCK = 128


# Numbers of 8 bits


@call(TOKENS, HIDDEN, timed=BOTH)
def quantise_rows(dtype, *shape):
    x = torch.randn(shape, dtype=dtype)
    return lambda: of_rows(*fp8_gemm.triton_quantize_fp8_row(x)), lambda: x


@call(TOKENS, HIDDEN)
def quantise_some_rows(dtype, tokens, hidden):
    """With a bound of scales, of as many rows of groups as count, and with room after each."""
    x, bound = torch.randn(4, tokens, hidden, dtype=dtype), torch.tensor([2.0])
    counts = torch.tensor([tokens, tokens // 2, 0, 1])

    def op():
        run = fp8_gemm.triton_quantize_fp8_row
        return of_rows(*run(x, bound, counts, align_rows_to=hidden + 16))

    def reference():
        taken = torch.arange(tokens) < counts[:, None]
        return F.pad(x.double().clamp(-2, 2) * taken[..., None], (0, 16))

    return op, reference


@call(TOKENS, HIDDEN)
def quantise_packed_rows(dtype, *shape):
    """The scale is behind its row."""
    x = torch.randn(shape, dtype=dtype)

    def op():
        codes, scale, packed = fp8_gemm.triton_quantize_fp8_packed_row(x)
        return of_rows(codes, scale), fp8_gemm.dequantize_fp8_packed_row(
            packed.view(*x.shape[:-1], -1)
        )

    return op, lambda: (x, x)


@call(TOKENS, HIDDEN)
def dequantise_rows(dtype, *shape):
    codes, scale = by_row(torch.randn(shape), FP8)
    return (
        lambda: fp8_gemm.dequantize_fp8_row(codes, scale.flatten()),
        lambda: whole(codes, scale),
    )


@call(TOKENS, HIDDEN)
def scale_rows(dtype, rows, columns):
    x, row, column = torch.randn(rows, columns, dtype=dtype), torch.rand(rows), torch.rand(columns)
    return (
        lambda: fp8_gemm.scale_fp8_row(x, row, column),
        lambda: x.double() * row[:, None] * column,
    )


@call(Size(256, 8192, 256), HIDDEN)
def quantise_blocks(dtype, *shape):
    x = torch.randn(shape, dtype=dtype)

    def op():
        codes, scale = fp8_gemm.triton_quantize_fp8_block(x, BLOCK, 2 * BLOCK)
        return fp8_gemm.dequantize_fp8_block(codes, scale, BLOCK, 2 * BLOCK)

    return op, lambda: x


@call(TOKENS, HIDDEN, timed=BOTH)
def quantise_groups(dtype, rows, columns):
    x, sizes = torch.randn(rows, columns, dtype=dtype), groups(rows)
    run, counts = fp8_gemm.triton_quantize_fp8_group, torch.tensor(sizes)

    def op():
        codes, scale = run(x, BLOCK)
        yield numbers(codes, scale)
        codes, scale = run(x, BLOCK, k_major=False)
        yield numbers(codes, scale.T)
        codes, scale = run(x, BLOCK, m_sizes=counts)  # those of an expert are column by column
        parts = scale.flatten().split([size * columns // BLOCK for size in sizes])
        yield numbers(codes, torch.cat([part.view(columns // BLOCK, -1).T for part in parts]))

    def numbers(codes, scale):
        return codes.float() * scale.repeat_interleave(BLOCK, -1)

    return lambda: list(op()), lambda: [x, x, x]


# Numbers of 4 bits

LEVELS = torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])
GROUP = 32


def rounded(x):
    """To 4 bits, of which groups of numbers share an exponent; halves go away from 0."""
    parts, levels = x.double().unflatten(-1, (-1, GROUP)), LEVELS.to(x.device).double()
    unit = 2 ** (parts.abs().amax(-1, keepdim=True).log2().to(x.dtype).double().ceil() - 2)
    places = torch.bucketize((parts / unit).abs(), (levels[1:] + levels[:-1]) / 2, right=True)
    return (levels[places] * parts.sign() * unit).flatten(-2)


def spread(codes, exponents):
    """Numbers that codes and shared exponents stand for."""
    codes = torch.stack((codes & 15, codes >> 4), -1).flatten(-2).long()
    numbers = torch.cat((LEVELS, -LEVELS)).to(codes.device)[codes]
    return numbers * (exponents.double() - 127).exp2().repeat_interleave(GROUP, -1)


def in_order(scale, rows, columns):
    """Bytes of scales, which tensor cores want in blocks of 128 rows and 4 columns."""
    blocks = scale.view(torch.uint8).view(-1, -(-columns // 4), 32, 4, 4)
    return blocks.permute(0, 3, 2, 1, 4).reshape(-1, 4 * blocks.shape[1])[:rows, :columns]


@call(TOKENS, HIDDEN, dtypes=FULL, timed=BOTH)
def mx4_and_back(dtype, *shape):
    x = torch.randn(shape, dtype=dtype)
    return lambda: mx4.triton_dequantize_mx4(mx4.triton_quantize_mx4(x)), lambda: rounded(x)


def _to_mx4(run, change, dtype, rows, columns):
    x, y = torch.randn(2, rows, columns, dtype=dtype)

    def op():
        codes, scale = run(x, y)
        return spread(codes.view(rows, -1), in_order(scale, rows, columns // GROUP))

    return op, lambda: rounded(change(x, y).to(dtype))


@call(TOKENS, HIDDEN)
def gated_mx4(dtype, *shape):
    run = fp4_quantize.triton_silu_quantize_mx4_unpack
    return _to_mx4(run, lambda x, y: F.silu(x.float()) * y, dtype, *shape)


@call(TOKENS, HIDDEN)
def normed_mx4(dtype, *shape):
    """Each group is normed for itself."""

    def normed(x, y):
        parts = x.float().unflatten(-1, (-1, GROUP))
        return (parts * (parts.square().mean(-1, keepdim=True) + 1e-5).rsqrt()).flatten(-2) * y

    return _to_mx4(fp4_quantize.triton_rms_quantize_mx4_unpack, normed, dtype, *shape)


def starts_of(sizes):
    """Where experts' rows begin, if each has a multiple of 128."""
    rows = torch.tensor([0, *(-(-size // 128) * 128 for size in sizes)])
    return rows.cumsum(0)


@call(TOKENS, dtypes=FULL, timed=BOTH)
def segments(dtype, tokens):
    sizes = groups(tokens)
    counts = torch.tensor(sizes)
    first = counts.cumsum(0) - counts
    number = torch.arange(EXPERTS).repeat_interleave(counts)
    expected = starts_of(sizes), number, torch.arange(tokens) - first[number]

    def op():
        yield from fp4_quantize.fused_single_block_cumsum_and_segmented_arange(counts, tokens)
        yield from fp4_quantize.nvfp4_fused_padding_cumsum_and_segmented_arange(counts, tokens)

    return lambda: list(op()), lambda: [*expected, *expected]


@call(TOKENS, HIDDEN, dtypes=FULL)
def unpack_fp4(dtype, tokens, hidden):
    """Codes of all rows, and behind them a scale for each 16 numbers."""
    sizes, columns = groups(tokens), hidden // 16
    codes, scale = (
        torch.randint(0, 256, (tokens, n), dtype=torch.uint8) for n in (hidden // 2, columns)
    )
    packed = torch.cat((codes.flatten(), scale.flatten())).view(tokens, -1)
    starts, counts = starts_of(sizes), torch.tensor(sizes)
    rows = torch.cat(
        [torch.arange(at, at + size) for at, size in zip(starts.tolist(), sizes, strict=False)]
    )

    def op():
        found, scales, begins = fp4_quantize.mega_fp4_unpack(counts, packed)
        return found, in_order(scales, None, columns)[rows], begins

    return op, lambda: (codes, scale, starts)


@call(TOKENS, HIDDEN)
def scales_of_experts(dtype, tokens, hidden):
    x, sizes = torch.randn(tokens, hidden, dtype=dtype), [n for n in groups(tokens) if n]
    number = torch.arange(len(sizes)).repeat_interleave(torch.tensor(sizes))
    return (
        lambda: fp4_quantize.calculate_group_max(x, torch.tensor(sizes)),
        lambda: (
            torch.stack([448 * 6 / part.abs().max().float() for part in x.split(sizes)]),
            number,
        ),
    )
