"""FBGEMM GenAI's Triton kernels: products of 8 bits, products by experts, and what moves tokens to
them.

Products by warp specialization and by descriptors that the host fills are left out: what they call
is Triton's no longer (`async_task`, `_experimental_descriptor_load`).
"""

import torch
import torch.nn.functional as F
from fbgemm_case import BOTH, EXPERTS, HIDDEN, TOKENS, call, groups, of_rows
from fbgemm_gpu.experimental.gemm.triton_gemm import fp8_gemm, grouped_gemm
from fbgemm_gpu.experimental.gen_ai.moe import activation, gather_scatter, shuffling
from libraries import cpu_as_cuda, middle
from library_case import Size
from library_references import FP8, by_block, by_row, whole
from triton import Config

cpu_as_cuda(grouped_gemm, activation, gather_scatter, shuffling)

# Of what the library would measure, those of large shapes.
PRODUCT = Config(
    {"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "SPLIT_K": 1}, num_warps=4, num_stages=4
)
GROUPED = Config(
    {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64, "NUM_CONSUMER_GROUPS": 1},
    num_warps=8,
    num_stages=4,
)
IN_GROUPS = Config({**PRODUCT.kwargs, "GROUP_M": 8}, num_warps=4, num_stages=4)

middle(gather_scatter, shuffling)
for kernel in (grouped_gemm._fbgemm_grouped_gemm, grouped_gemm._fbgemm_grouped_gemm_fp8_rowwise):
    kernel.configs = [GROUPED]
for kernel in (
    *(fp8_gemm._kernel_matmul_fp8_row, fp8_gemm._kernel_matmul_fp8_row_no_fast_acc),
    *(fp8_gemm._kernel_matmul_fp8_row_imprecise_acc, fp8_gemm._kernel_matmul_fp8_block_fastacc),
    fp8_gemm._kernel_matmul_fp8_block_slowacc,
):
    kernel.configs = [PRODUCT]
fp8_gemm._kernel_matmul_fp8_row_non_persistent.configs = [IN_GROUPS]


ROWS, INNER, COLUMNS = Size(40, 4096, 16), Size(272, 4096, 4096), Size(264, 4096, 4096)
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

TOP = 2
GROUPED_DIMS = Size(70, 8192, 32), Size(256, 4096, 4096), Size(136, 2048, 2048)


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
    parts = [rank[:tokens].split(sizes) for rank, sizes in zip(ranks, counts.tolist(), strict=True)]
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
