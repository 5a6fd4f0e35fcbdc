"""FBGEMM GenAI's Triton kernels: products of 8 bits, products by experts and what moves tokens to
them, and numbers of 8 and 4 bits.

Products by warp specialization and by descriptors that the host fills are left out: Triton has not
what they call any more (`async_task`, `_experimental_descriptor_load`). So is what packs fp4 by
`cvt.rn.satfinite.e2m1x2.f32`, of which 9.0 has none: nvfp4 and `triton_quantize_mx4_unpack`.
"""

import torch
import torch.nn.functional as F
from fbgemm_case import call
from fbgemm_gpu.experimental.gemm.triton_gemm import fp4_quantize, fp8_gemm, grouped_gemm
from fbgemm_gpu.experimental.gen_ai.moe import activation, gather_scatter, shuffling
from fbgemm_gpu.triton import quantize as mx4
from libraries import cpu_as_cuda
from library_case import LARGE, WIDE, Size
from library_references import FP8, by_block, by_row, whole
from triton import Config
from triton.runtime.autotuner import Autotuner

cpu_as_cuda(fp8_gemm, grouped_gemm, activation, gather_scatter, shuffling)

# Of what the library would measure: of products one for large shapes, of others the middle one.
PRODUCT = Config(
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "SPLIT_K": 1}, num_warps=4, num_stages=4
)
GROUPED = Config(
    {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "NUM_CONSUMER_GROUPS": 1},
    num_warps=8,
    num_stages=4,
)
UNORDERED = Config({**PRODUCT.kwargs, "GROUP_M": 8}, num_warps=4, num_stages=4)


def tuned():
    for module in (fp8_gemm, grouped_gemm, gather_scatter, shuffling):
        for name, kernel in vars(module).items():
            if not isinstance(kernel, Autotuner):
                continue
            middle = kernel.configs[len(kernel.configs) // 2]
            if name.startswith("_kernel_matmul_"):
                middle = UNORDERED if name.endswith("_non_persistent") else PRODUCT
            kernel.configs = [GROUPED if name.startswith("_fbgemm_grouped") else middle]


tuned()

BOTH, FULL = (LARGE, WIDE), (torch.float32,)
ROWS, INNER, COLUMNS = Size(40, 4096, 16), Size(272, 4096, 4096), Size(264, 4096, 4096)
TOKENS, HIDDEN = Size(40, 8192, 16), Size(1024, 4096, 4096)
BLOCK = 128


# Products


def fp8_pair(rows, inner, columns):
    return [by_row(torch.randn(n, inner), FP8) for n in (rows, columns)]


def _product_rows(dtype, rows, inner, columns, **how):
    (a, a_scale), (b, b_scale) = fp8_pair(rows, inner, columns)
    given = a, b, a_scale.flatten(), b_scale.flatten()
    return (
        lambda: fp8_gemm.matmul_fp8_row(*given, tma_persistent=False, **how),
        lambda: whole(a, a_scale) @ whole(b, b_scale).T,
    )


@call(ROWS, INNER, COLUMNS, timed=BOTH)
def product_rows(dtype, *dims):
    return _product_rows(dtype, *dims)


@call(ROWS, INNER, COLUMNS)
def product_rows_exact_sums(dtype, *dims):
    return _product_rows(dtype, *dims, fp8_fast_accum=False)


@call(ROWS, INNER, COLUMNS)
def product_rows_imprecise_sums(dtype, *dims):
    return _product_rows(dtype, *dims, imprecise_acc=True)


@call(ROWS, INNER, COLUMNS)
def product_rows_not_persistent(dtype, *dims):
    return _product_rows(dtype, *dims, no_use_persistent=True)


@call(ROWS, INNER, COLUMNS)
def product_rows_with_bias(dtype, rows, inner, columns):
    bias = torch.randn(columns)
    op, reference = _product_rows(dtype, rows, inner, columns, bias=bias)
    return op, lambda: reference() + bias


@call(ROWS, INNER, COLUMNS)
def product_scaled_columns(dtype, *dims):
    (a, _), (b, b_scale) = fp8_pair(*dims)
    return (
        lambda: fp8_gemm.matmul_fp8_row(a, b, None, b_scale.flatten(), tma_persistent=False),
        lambda: a.double() @ whole(b, b_scale).T,
    )


def _product_blocks(dtype, rows, inner, columns, **how):
    a, a_scale = by_block(torch.randn(rows, inner), BLOCK, BLOCK)
    b, b_scale = by_block(torch.randn(columns, inner), BLOCK, BLOCK)
    return (
        lambda: fp8_gemm.matmul_fp8_block(a, b, a_scale, b_scale, *[BLOCK] * 3, **how),
        lambda: whole(a, a_scale, BLOCK, BLOCK) @ whole(b, b_scale, BLOCK, BLOCK).T,
    )


EVEN = Size(128, 4096, 128), Size(256, 4096, 4096), Size(256, 4096, 4096)


@call(*EVEN, timed=BOTH)
def product_blocks(dtype, *dims):
    return _product_blocks(dtype, *dims)


@call(*EVEN)
def product_blocks_exact_sums(dtype, *dims):
    return _product_blocks(dtype, *dims, fp8_fast_accum=False)


# Mixtures of experts

EXPERTS = 6
TOP = 2
GROUPED_DIMS = Size(70, 8192, 32), Size(256, 4096, 4096), Size(136, 2048, 2048)


def groups(tokens):
    """Tokens of each expert, of which one has none."""
    parts = torch.rand(EXPERTS - 1).softmax(0) * tokens
    sizes = parts.long().tolist()
    return [*sizes[:2], 0, *sizes[2:-1], tokens - sum(sizes[:-1])]


def each_expert(x, w, sizes):
    parts = x.double().split(sizes)
    return torch.cat([a @ b.T for a, b in zip(parts, w.double().chunk(EXPERTS), strict=True)])


def _grouped(dtype, tokens, inner, columns, kind, added):
    sizes = groups(tokens)
    x, w = torch.randn(tokens, inner), torch.randn(EXPERTS * columns, inner) / inner**0.5
    out, index = torch.randn(tokens // 2, columns, dtype=dtype), torch.randperm(tokens) // 2
    counts = torch.tensor(sizes).int()
    if kind == FP8:
        (x, x_scale), (w, w_scale) = by_row(x, FP8), by_row(w, FP8)
        given = x, w, counts, x_scale.flatten(), w_scale.flatten()
        numbers = whole(x, x_scale), whole(w, w_scale)
        run = grouped_gemm.grouped_gemm_fp8_rowwise
    else:
        numbers = x, w = x.to(dtype), w.to(dtype)
        given, run = (x, w, counts), grouped_gemm.grouped_gemm

    def op():
        if not added:
            return run(*given)
        return run(*given, _output_tensor=out.clone(), _scatter_add_indices=index)

    def reference():
        product = each_expert(*numbers, sizes)
        return out.double().index_add(0, index, product) if added else product

    return op, reference


@call(*GROUPED_DIMS, timed=BOTH)
def grouped(dtype, *dims):
    return _grouped(dtype, *dims, None, False)


@call(*GROUPED_DIMS)
def grouped_added(dtype, *dims):
    """Sums go where their tokens are."""
    return _grouped(dtype, *dims, None, True)


@call(*GROUPED_DIMS, timed=BOTH)
def grouped_fp8(dtype, *dims):
    return _grouped(dtype, *dims, FP8, False)


@call(*GROUPED_DIMS)
def grouped_fp8_added(dtype, *dims):
    return _grouped(dtype, *dims, FP8, True)


@call(TOKENS, HIDDEN, timed=BOTH)
def gated(dtype, *shape):
    x, y = torch.randn(2, *shape, dtype=dtype)
    return lambda: activation.silu_mul(x, y), lambda: F.silu(x.double()) * y


@call(TOKENS, HIDDEN, timed=BOTH)
def gated_fp8(dtype, *shape):
    x, y = torch.randn(2, *shape, dtype=dtype)
    bound = torch.tensor([3.0])

    def op():
        yield of_rows(*activation.silu_mul_quant(x, y))
        yield of_rows(*activation.silu_mul_quant(x, y, bound))

    def reference():
        product = F.silu(x.double()) * y
        return product, product.clamp(-3, 3)

    return lambda: list(op()), reference


def of_rows(codes, scale):
    return codes.float() * scale[..., None]


def routed(tokens):
    """Tokens, experts and scores of what goes to experts, and how much of it counts."""
    scores = torch.rand(tokens, EXPERTS)
    token, expert = torch.randperm(tokens * TOP) // TOP, torch.randint(EXPERTS, (tokens * TOP,))
    return token, expert, scores, tokens * TOP - 3


@call(TOKENS, HIDDEN, timed=BOTH)
def gather(dtype, tokens, hidden):
    token, expert, scores, count = routed(tokens)
    x, scores = torch.randn(tokens, hidden, dtype=dtype), scores.to(dtype)
    valid = torch.tensor([count])
    return (
        lambda: gather_scatter.gather_scale_dense_tokens(x, token, expert, scores, valid)[:count],
        lambda: (x[token].double() * scores[token, expert, None])[:count],
    )


@call(TOKENS, HIDDEN)
def gather_fp8(dtype, tokens, hidden):
    token, expert, scores, _ = routed(tokens)
    x, scores = torch.randn(tokens, hidden, dtype=dtype), scores.to(dtype)
    run = gather_scatter.gather_scale_quant_dense_tokens
    return (
        lambda: of_rows(*run(x, token, expert, scores)),
        lambda: x[token].double() * scores[token, expert, None],
    )


@call(TOKENS, HIDDEN, timed=BOTH)
def scatter(dtype, tokens, hidden):
    token, _, _, count = routed(tokens)
    x, out = torch.randn(len(token), hidden, dtype=dtype), torch.randn(tokens, hidden, dtype=dtype)
    valid = torch.tensor([count])

    def op():
        sums = out.clone()
        gather_scatter.scatter_add_dense_tokens(sums, x, token, valid)
        return sums

    return op, lambda: out.double().index_add(0, token[:count], x[:count].double())


RANKS = 2


@call(TOKENS, HIDDEN)
def scatter_of_ranks(dtype, tokens, hidden):
    """Rows of a rank's experts are where they are among those of all experts."""
    token, *_ = routed(tokens)
    x = torch.randn(RANKS, len(token), hidden, dtype=dtype)
    out = torch.randn(tokens, hidden, dtype=dtype)
    sizes = groups(len(token))
    first = sum(sizes[: EXPERTS // RANKS])
    counts = torch.tensor(sizes)

    def op():
        sums = out.clone()
        gather_scatter.scatter_add_padded_tokens(x, counts, token, sums)
        return sums

    valid = torch.cat((x[0, :first], x[1, first:])).double()
    return op, lambda: out.double().index_add(0, token, valid)


def _shuffled(tokens, hidden, dtype, padded):
    """Tokens of ranks, each by experts, and the same by experts, each by ranks."""
    counts = torch.tensor([groups(tokens) for _ in range(RANKS)])
    counts[1] = counts[1].flip(0)
    room = tokens + 3 if padded else tokens
    ranks = torch.randn(RANKS, room, hidden, dtype=dtype)
    parts = [
        rank[:tokens].split(sizes) for rank, sizes in zip(ranks, counts.tolist(), strict=True)
    ]
    first, last = 1, EXPERTS
    by_expert = torch.cat([part[expert] for expert in range(EXPERTS) for part in parts])
    some = torch.cat([part[expert] for expert in range(first, last) for part in parts])
    return ranks.flatten(0, 1), counts, by_expert, some, (first, last)


@call(TOKENS, HIDDEN, timed=BOTH)
def combine(dtype, tokens, hidden):
    x, counts, by_expert, some, span = _shuffled(tokens, hidden, dtype, False)
    sums = counts.sum(0)

    def op():
        yield from shuffling.combine_shuffling(x, counts)
        tokens, numbers = shuffling.combine_shuffling(x, counts, *span)
        yield from (tokens[: len(some)], numbers)

    def with_total(sums):
        return torch.cat((sums, sums.sum(0, keepdim=True)))

    return lambda: list(op()), lambda: [by_expert, with_total(sums), some, with_total(sums[1:])]


@call(TOKENS, HIDDEN)
def combine_padded(dtype, tokens, hidden):
    x, counts, by_expert, *_ = _shuffled(tokens, hidden, dtype, True)
    return (
        lambda: shuffling.combine_shuffling(x, counts, is_padded=True)[0][: len(by_expert)],
        lambda: by_expert,
    )


@call(TOKENS, HIDDEN)
def split(dtype, tokens, hidden):
    x, counts, by_expert, *_ = _shuffled(tokens, hidden, dtype, False)
    return lambda: shuffling.split_shuffling(by_expert, counts), lambda: x


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
        return of_rows(codes, scale), fp8_gemm.dequantize_fp8_packed_row(packed.view(*x.shape[:-1], -1))

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
        lambda: (torch.stack([448 * 6 / part.abs().max().float() for part in x.split(sizes)]), number),
    )
