"""lmdeploy's Triton kernels: attention over pages, mixtures of experts, products of 8 and 4 bits,
and what is between them.

Kernels that other ranks have to answer (symmetric memory, experts spread over ranks) are left out,
and those in tilelang.
"""

import enum
import logging
from typing import Any

import torch
import torch.nn.functional as F
from libraries import bare, stand_in
from library_case import LARGE, WIDE, Size, calls_in
from library_references import (
    attention,
    by_block,
    by_row,
    experts,
    gated,
    lengths,
    rms,
    rotated,
    whole,
)


class QuantPolicy(enum.IntEnum):
    """The library's, which stands where its configuration does."""

    NONE, INT4, INT8, FP8, FP8_E5M2, TURBO_QUANT = 0, 4, 8, 16, 17, 42


bare("lmdeploy", "lmdeploy.pytorch", "lmdeploy.pytorch.kernels", "lmdeploy.pytorch.kernels.cuda")
stand_in("lmdeploy.messages", QuantPolicy=QuantPolicy)
stand_in("lmdeploy.utils", get_logger=logging.getLogger)

from lmdeploy.pytorch.kernels.cuda import (  # noqa: E402
    activation,
    apply_rotary_pos_emb,
    awq_kernels,
    bitonic_topk,
    blocked_gemm_fp8,
    ds_index,
    fill_kv_cache,
    flashattention,
    flatten_kv_cache,
    fused_lora,
    gated_delta_preprocess,
    multinomial_sampling,
    pagedattention,
    rms_norm,
    w8a8_triton_kernels,
)
from lmdeploy.pytorch.kernels.cuda.dsv4 import hc_prepost  # noqa: E402
from lmdeploy.pytorch.kernels.cuda.moe import (  # noqa: E402
    blocked_fp8,
    fused_moe,
    route_noaux_tc,
    w8a8,
)

CASES: dict[str, Any] = {}
call = calls_in(CASES)
HALVES = (torch.float16, torch.bfloat16)
HALF = (torch.float16,)
BOTH = (LARGE, WIDE)
FP8 = torch.float8_e4m3fn
BATCH, KEYS = Size(3, 16, 1), Size(150, 4096, 32768)
PROMPTS, PROMPT = Size(2, 4, 1), Size(150, 2048, 8192)
TOKENS, HIDDEN = Size(15, 8192, 16), Size(256, 4096, 4096)
HEADS, SHARED, HEAD, PAGE = 32, 8, 128, 64


class Pages:
    """Keys and values of sequences, one behind the other, and where their pages are."""

    def __init__(self, dtype, count, keys):
        self.sizes = lengths(count, keys)
        self.pages = -(-keys // PAGE)
        self.k, self.v = (torch.randn(sum(self.sizes), SHARED, HEAD, dtype=dtype) for _ in range(2))
        self.length = torch.tensor(self.sizes)
        self.start = self.length.cumsum(0) - self.length
        self.table = torch.randperm(count * self.pages).view(count, -1)
        self.longest = keys

    def empty(self, dtype, width=HEAD):
        return torch.zeros(self.table.numel(), PAGE, SHARED, width, dtype=dtype)

    def filled(self, policy=QuantPolicy.NONE, scale=None):
        """Caches, and the scales and zeros of what is in them."""
        dtypes = {QuantPolicy.INT8: torch.uint8, QuantPolicy.INT4: torch.uint8}
        dtypes |= {QuantPolicy.FP8: FP8}
        width = HEAD // 2 if policy == QuantPolicy.INT4 else HEAD
        caches = [self.empty(dtypes.get(policy, self.k.dtype), width) for _ in range(2)]
        more = [None, None] if policy == QuantPolicy.NONE else [scale, scale]
        if policy in (QuantPolicy.INT8, QuantPolicy.INT4):
            more = [self.empty(self.k.dtype, 2) for _ in range(2)]
        fill_kv_cache.fill_kv_cache(
            *(self.k, self.v, *caches, self.start, self.length, self.length, self.longest),
            *(self.table, *more, policy),
        )
        return *caches, *more


def kept(policy, x, scale):
    """What is left of numbers in a cache."""
    bits = {QuantPolicy.INT8: 8, QuantPolicy.INT4: 4}.get(policy)
    if policy == QuantPolicy.FP8:
        return (x.float() / scale).to(FP8).double() * scale
    if bits is None:
        return x
    x = x.double()
    least, most = x.amin(-1, keepdim=True), x.amax(-1, keepdim=True)
    step = (most - least) / (2**bits - 1)
    zero = -least / step
    return ((x / step + zero + 0.5).floor() - zero) * step


def scale_of(policy):
    return torch.full((1,), 0.5) if policy == QuantPolicy.FP8 else None


# The cache


def _cache(policy, dtype, count, keys):
    of, scale = Pages(dtype, count, keys), scale_of(policy)

    def op():
        """Filled, and flat again."""
        k, v, *more = of.filled(policy, scale)
        return flatten_kv_cache.flatten_kv_cache(
            *(k, v, of.length, of.table, of.start, sum(of.sizes), dtype, *more, policy),
            flatten_kv_layout="shd",
        )

    return op, lambda: [kept(policy, x, scale) for x in (of.k, of.v)]


@call(PROMPTS, PROMPT, dtypes=HALVES)
def cache(dtype, *dims):
    return _cache(QuantPolicy.NONE, dtype, *dims)


@call(PROMPTS, PROMPT, dtypes=HALF)
def cache_int8(dtype, *dims):
    return _cache(QuantPolicy.INT8, dtype, *dims)


@call(PROMPTS, PROMPT, dtypes=HALF)
def cache_int4(dtype, *dims):
    return _cache(QuantPolicy.INT4, dtype, *dims)


@call(PROMPTS, PROMPT)
def cache_fp8(dtype, *dims):
    return _cache(QuantPolicy.FP8, dtype, *dims)


# Attention


def _decoding(policy, dtype, count, keys, window=0):
    of, scale = Pages(dtype, count, keys), scale_of(policy)
    q = torch.randn(count, HEADS, HEAD, dtype=dtype)

    def op():
        k, v, *more = of.filled(policy, scale)
        return pagedattention.flash_attn_with_kvcache(
            *(q, k, v, of.length, of.table),
            max_seqlen_q=1,
            window_size=window - 1 if window else None,
            k_scales_zeros=more[0],
            v_scales_zeros=more[1],
            quant_policy=policy,
        )

    def reference():
        parts = [kept(policy, x, scale).split(of.sizes) for x in (of.k, of.v)]
        every = zip(q.split(1), *parts, strict=True)
        return torch.cat([attention(*one, window=window) for one in every])

    return op, reference


@call(BATCH, KEYS, dtypes=HALVES, timed=BOTH)
def decoding(dtype, *dims):
    return _decoding(QuantPolicy.NONE, dtype, *dims)


@call(BATCH, KEYS)
def decoding_window(dtype, count, keys):
    return _decoding(QuantPolicy.NONE, dtype, count, keys, keys // 4)


@call(BATCH, KEYS, dtypes=HALF, timed=BOTH)
def decoding_int8(dtype, *dims):
    return _decoding(QuantPolicy.INT8, dtype, *dims)


@call(BATCH, KEYS, dtypes=HALF)
def decoding_int4(dtype, *dims):
    return _decoding(QuantPolicy.INT4, dtype, *dims)


@call(BATCH, KEYS)
def decoding_fp8(dtype, *dims):
    return _decoding(QuantPolicy.FP8, dtype, *dims)


def _prompts(dtype, count, keys, window=0):
    """Of whose tokens the first half is in the cache."""
    of = Pages(dtype, count, keys)
    queries = [size - size // 2 for size in of.sizes]
    q, queries_of = torch.randn(sum(queries), HEADS, HEAD, dtype=dtype), torch.tensor(queries)

    def op():
        return flashattention.flash_attn_varlen_func(
            *(q, of.k, of.v),
            q_start_loc=queries_of.cumsum(0) - queries_of,
            q_seqlens=queries_of,
            kv_start_loc=of.start,
            kv_seqlens=of.length,
            max_seqlen_q=max(queries),
            causal=True,
            window_size=window - 1 if window else None,
            kv_layout="shd",
        )

    def reference():
        parts = zip(q.split(queries), of.k.split(of.sizes), of.v.split(of.sizes), strict=True)
        return torch.cat([attention(*part, window=window) for part in parts])

    return op, reference


@call(PROMPTS, PROMPT, dtypes=HALVES, timed=BOTH)
def prompts(dtype, *dims):
    return _prompts(dtype, *dims)


@call(PROMPTS, PROMPT)
def prompts_window(dtype, count, keys):
    return _prompts(dtype, count, keys, keys // 4)


@call(BATCH, KEYS, dtypes=(FP8,))
def indexer(dtype, count, keys):
    """What chooses keys for sparse attention."""
    of, heads = Pages(torch.float32, count, keys), 64
    q = torch.randn(count, heads, HEAD).to(dtype)
    k = torch.randn(of.table.numel(), PAGE, HEAD).to(dtype)
    q_scale, k_scale = torch.rand(count, heads), torch.rand(k.shape[:2])

    def call(longest=of.pages * PAGE):
        return ds_index.fp8_index(
            *(q, q_scale, k, k_scale, torch.arange(count + 1), of.length, of.table),
            max_k_seqlen=longest,
        )

    def op():
        return [row[:size] for row, size in zip(call(), of.sizes, strict=True)]

    def reference():
        for row, size in enumerate(of.sizes):
            keys = k[of.table[row]].flatten(0, 1)[:size].double()
            scores = F.relu(keys @ q[row].double().T) @ q_scale[row].double()
            yield scores * k_scale[of.table[row]].flatten()[:size]

    return op, lambda: list(reference())


# Mixtures of experts

EXPERTS, TOP = 8, 2
ROUTED, INNER = Size(40, 4096, 16), Size(128, 2048, 2048)


def routes(tokens):
    weights, ids = torch.rand(tokens, EXPERTS).topk(TOP)
    return weights / weights.sum(-1, keepdim=True), ids


def weights_of(hidden, inner):
    return (
        torch.randn(EXPERTS, 2 * inner, hidden) / hidden**0.5,
        torch.randn(EXPERTS, hidden, inner) / inner**0.5,
    )


@call(ROUTED, HIDDEN, INNER, dtypes=HALVES, timed=BOTH)
def mixture(dtype, tokens, hidden, inner):
    x = torch.randn(tokens, hidden, dtype=dtype)
    up, down = (w.to(dtype) for w in weights_of(hidden, inner))
    shares, ids = routes(tokens)
    return (
        lambda: fused_moe.fused_moe(x, up, down, shares, ids, TOP),
        lambda: experts(x, up, down, shares, ids),
    )


def _mixture_8bit(kind, dtype, tokens, hidden, inner):
    x, shares, ids = torch.randn(tokens, hidden), *routes(tokens)
    given = [by_row(w, kind) for w in (x, *weights_of(hidden, inner))]
    flat = [part for pair in given for part in pair]
    return (
        lambda: w8a8.fused_moe_w8a8(*flat, shares, ids, TOP, dtype, kind),
        lambda: experts(*(whole(*pair) for pair in given), shares, ids),
    )


@call(ROUTED, HIDDEN, INNER, timed=BOTH)
def mixture_int8(dtype, *dims):
    return _mixture_8bit(torch.int8, dtype, *dims)


@call(ROUTED, HIDDEN, INNER)
def mixture_fp8(dtype, *dims):
    return _mixture_8bit(FP8, dtype, *dims)


@call(ROUTED, HIDDEN, INNER, timed=BOTH)
def mixture_fp8_blocks(dtype, tokens, hidden, inner):
    x, shares, ids = torch.randn(tokens, hidden), *routes(tokens)
    x, x_scale = by_block(x, 128)
    given = [by_block(w, 128, 128) for w in weights_of(hidden, inner)]
    flat = [part for pair in given for part in pair]
    numbers = [whole(*pair, 128, 128) for pair in given]
    return (
        lambda: blocked_fp8.fused_moe_blocked_fp8(
            x, x_scale, *flat, shares, ids, TOP, out_dtype=dtype
        ),
        lambda: experts(whole(x, x_scale, 128), *numbers, shares, ids),
    )


@call(TOKENS)
def grouped_routing(dtype, tokens):
    logits, bias = torch.randn(tokens, 256), torch.randn(256)

    def reference():
        scores = logits.double().sigmoid()
        biased = (scores + bias).view(tokens, 8, 32)
        groups = biased.topk(2).values.sum(-1).topk(4).indices
        hidden = torch.ones(tokens, 8, dtype=torch.bool).scatter_(1, groups, False)
        ids = biased.masked_fill(hidden[..., None], -torch.inf).flatten(1).topk(8).indices
        return scores.gather(1, ids).sort(-1).values

    def op():
        weights, _ = route_noaux_tc.fused_noaux_tc_routing(
            logits, bias, renormalize=False, routed_scaling_factor=1.0
        )
        return weights.sort(-1).values

    return op, reference


# Products

ROWS, COLUMNS = Size(40, 4096, 16), Size(256, 4096, 4096)


def _product_8bit(kind, dtype, rows, inner, columns):
    a, b = (by_row(torch.randn(n, inner), kind) for n in (rows, columns))
    more = torch.randn(rows, columns, dtype=dtype)

    def op():
        given = a[0], b[0], a[1], b[1].flatten()
        product = w8a8_triton_kernels.matmul_kernel_dynamic_quant
        return product(*given, output_dtype=dtype), product(*given, more, output_dtype=dtype)

    def reference():
        out = whole(*a) @ whole(*b).T
        return out, out + more.double()

    return op, reference


@call(ROWS, HIDDEN, COLUMNS, dtypes=HALF, timed=BOTH)
def product_int8(dtype, *dims):
    return _product_8bit(torch.int8, dtype, *dims)


@call(ROWS, HIDDEN, COLUMNS, timed=BOTH)
def product_fp8(dtype, *dims):
    return _product_8bit(FP8, dtype, *dims)


@call(ROWS, HIDDEN, COLUMNS, timed=BOTH)
def product_fp8_blocks(dtype, rows, inner, columns):
    a, a_scale = by_block(torch.randn(rows, inner), 128)
    b, b_scale = by_block(torch.randn(columns, inner), 128, 128)
    return (
        lambda: blocked_gemm_fp8.blocked_gemm_fp8(a, a_scale, b.T, b_scale.T, dtype),
        lambda: whole(a, a_scale, 128) @ whole(b, b_scale, 128, 128).T,
    )


@call(ROWS, HIDDEN, COLUMNS, dtypes=HALF, timed=BOTH)
def product_awq(dtype, rows, inner, columns, group=128):
    """Eight neighbours of 4 bits are in a word, the even ones first."""
    x, groups = torch.randn(rows, inner, dtype=dtype), inner // group
    codes, zeros = (torch.randint(0, 16, (n, columns)) for n in (inner, groups))
    scale = torch.rand(groups, columns, dtype=dtype) / 10
    shifts = torch.tensor([0, 16, 4, 20, 8, 24, 12, 28])
    words, zero_words = ((n.unflatten(1, (-1, 8)) << shifts).sum(-1).int() for n in (codes, zeros))
    numbers = (codes - zeros.repeat_interleave(group, 0)) * scale.double().repeat_interleave(
        group, 0
    )
    return (
        lambda: awq_kernels.awq_linear(x, words, scale, zero_words),
        lambda: x.double() @ numbers,
    )


@call(PROMPTS, PROMPT, HIDDEN, dtypes=HALF)
def lora(dtype, count, longest, hidden):
    sizes, ranks = lengths(count, longest), torch.tensor([16, 8])
    a, b = (torch.randn(24, hidden, dtype=dtype) for _ in range(2))
    x, scaling = torch.randn(sum(sizes), hidden, dtype=dtype) / hidden**0.5, torch.rand(2)
    length, adapters = torch.tensor(sizes), torch.arange(count) % 2
    first = ranks.cumsum(0) - ranks

    def op():
        return fused_lora.fused_lora(
            *(x, a, b, scaling, first, ranks, length.cumsum(0) - length, length, adapters),
            *(16, longest),
        )

    def reference():
        for part, one in zip(x.split(sizes), adapters.tolist(), strict=True):
            rows = slice(first[one], first[one] + ranks[one])
            yield part.double() @ a[rows].double().T @ b[rows].double() * scaling[one]

    return op, lambda: torch.cat(list(reference()))


# Rows


@call(TOKENS, HIDDEN, dtypes=HALVES)
def norms(dtype, *shape):
    x, r = torch.randn(2, *shape, dtype=dtype)
    w = torch.randn(shape[-1], dtype=dtype)
    return (
        lambda: [rms_norm.rms_norm(x, w), *rms_norm.rms_norm(x, w, residual=r)],
        lambda: [rms(x, w), rms(x + r, w), x + r],
    )


@call(TOKENS, HIDDEN)
def quantise_int8(dtype, *shape):
    x, r = torch.randn(2, *shape, dtype=dtype)
    w = torch.randn(shape[-1], dtype=dtype)
    kernels = w8a8_triton_kernels

    def op():
        *normed, _ = kernels.rms_norm_dynamic_quant(x, w, 1e-6, r)
        pairs = kernels.per_token_quant_int8(x, 1e-7), normed
        return [codes * scale for codes, scale in pairs]

    return op, lambda: [x, rms(x + r, w)]


@call(TOKENS, HIDDEN)
def quantise_fp8(dtype, *shape):
    x = torch.randn(shape, dtype=dtype)

    def op():
        codes, scale = blocked_gemm_fp8.quant_fp8(x, 128)
        return codes.float() * scale.repeat_interleave(128, -1)

    return op, lambda: whole(*by_block(x, 128), 128)


@call(TOKENS, HIDDEN, dtypes=HALVES)
def silu_mul(dtype, rows, columns):
    x = torch.randn(rows, 2 * columns, dtype=dtype)
    return lambda: activation.silu_and_mul(x), lambda: gated(x)


@call(TOKENS, dtypes=HALVES)
def rotary(dtype, tokens):
    q, k = (torch.randn(tokens, n, HEAD, dtype=dtype) for n in (HEADS, SHARED))
    angles = torch.rand(tokens, HEAD // 2) * 6
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)
    both = [torch.cat((x, x), -1) for x in (cos, sin)]
    return (
        lambda: apply_rotary_pos_emb.apply_rotary_pos_emb(q, k, *both),
        lambda: [rotated(x, cos[:, None], sin[:, None]) for x in (q, k)],
    )


@call(TOKENS, Size(40, 7168, 7168))
def hyper_connections(dtype, tokens, dim, streams=4):
    x, pre = torch.randn(tokens, streams, dim, dtype=dtype), torch.rand(tokens, streams)
    post, mixed = torch.rand(tokens, streams), torch.rand(tokens, streams, streams)

    def op():
        reduced = hc_prepost.hc_pre_reduce(x, pre, streams)
        return reduced, hc_prepost.hc_post_expand(reduced, x, post, mixed, streams)

    def reference():
        reduced = torch.einsum("tsd,ts->td", x.double(), pre.double()).to(dtype)
        added = torch.einsum("tio,tid->tod", mixed.double(), x.double())
        return reduced, added + post.double()[..., None] * reduced[:, None].double()

    return op, reference


@call(PROMPTS, PROMPT)
def gated_delta_inputs(dtype, count, tokens, heads=16, ratio=2):
    q, k = torch.randn(2, count, tokens, heads, HEAD, dtype=dtype)
    a, b = torch.randn(2, count, tokens, heads * ratio, dtype=dtype)
    bias, decay = torch.rand(heads * ratio), -torch.rand(heads * ratio)

    def normal(x):
        x = x.double()
        return (x / (x.square().sum(-1, keepdim=True) + 1e-6).sqrt()).repeat_interleave(ratio, 2)

    def reference():
        return normal(q), normal(k), b.double().sigmoid(), decay * F.softplus(a.double() + bias)

    return (
        lambda: gated_delta_preprocess.gated_delta_preprocess(q, k, b, a, bias, decay, ratio),
        reference,
    )


@call(Size(3, 64, 4), Size(700, 16384, 65536), dtypes=(torch.float32,))
def top_of_rows(dtype, rows, columns):
    x, length = torch.randn(rows, columns), torch.tensor(lengths(rows, columns))
    queries = torch.ones(rows, dtype=torch.int64)

    def op():
        chosen = bitonic_topk.bitonic_topk(x, queries, length, 512)
        return x.gather(1, chosen.clamp(0).long()).masked_fill(chosen < 0, 0).sort(-1).values

    def reference():
        kept = [row[:size].topk(min(512, size)).values for row, size in zip(x, length, strict=True)]
        rows = [F.pad(row, (0, 512 - len(row))) for row in kept]
        return torch.stack(rows).sort(-1).values

    return op, reference


@call(Size(300, 4096, 64), Size(9, 1024, 32000), dtypes=(torch.float32,))
def sampling(dtype, rows, columns):
    """As often as its probability, a token is drawn."""
    scores = torch.randn(columns).softmax(-1).sort(descending=True).values.expand(rows, -1)
    seeds, offsets = torch.arange(rows), torch.zeros(rows, dtype=torch.int64)

    def op():
        return multinomial_sampling.multinomial_sampling(scores.contiguous(), seeds, offsets)

    return op, op
