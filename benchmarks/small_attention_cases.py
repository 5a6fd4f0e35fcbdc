"""Cases of small libraries: attention (over pages, in 8 bits, with weights of zero, of chosen
blocks), and what scores documents by their nearest tokens."""

import functools

import torch
import torch.nn.functional as F
from libraries import middle
from library_case import Size
from library_references import attention, lengths
from small_case import BF16, BOTH, FP8, HALF, HEAD, HEADS, SHARED, call, gradients
from small_row_cases import sparse_softmax

# isort: split
from adasplash import adasplash_block_mask, adasplash_no_block_mask, adasplash_v2
from conch.ops.attention import paged_attention, varlen_attention
from flash_colsum import kernel_causal, kernel_noncausal, kernel_noncausal_batched
from late_interaction_kernels import autograd, fp8, fused_head, plaid, reference, score_pairs
from late_interaction_kernels import varlen as ragged
from late_interaction_kernels.backward import lowmem, unified
from mlstm_kernels.baselines.flash_attention import flash_attention_triton
from native_sparse_attention_pytorch import triton_native_sparse_attention as chosen
from sageattention import core as sage_attention

fp8._hopper_or_newer = lambda: True
adasplash_block_mask.compute_bidxs_and_cubcounts = functools.partial(
    adasplash_block_mask.compute_bidxs_and_cubcounts, device=None
)
middle(adasplash_block_mask, adasplash_no_block_mask, adasplash_v2, chosen)
middle(fused_head, plaid, score_pairs, ragged, lowmem, unified)

BATCH, KEYS = Size(3, 16, 1), Size(150, 4096, 32768)
PROMPTS, PROMPT = Size(2, 4, 1), Size(150, 2048, 8192)
WHOLE = Size(192, 2048, 8192)  # blocks: the zeros behind the last one count as keys
PAGE = 32


# Keys and values in pages


def _pages(dtype, count, keys, queries):
    sizes = lengths(count, keys)
    k, v = (torch.randn(count, keys, SHARED, HEAD, dtype=dtype) for _ in range(2))
    pages = -(-keys // PAGE)
    table = torch.randperm(count * pages).view(count, pages).int()
    caches = []
    for x in (k, v):
        cache = torch.zeros(count * pages, PAGE, SHARED, HEAD, dtype=dtype)
        padded = F.pad(x, (0, 0, 0, 0, 0, pages * PAGE - keys))
        cache[table.long()] = padded.unflatten(1, (pages, PAGE))
        caches.append(cache)
    of = [min(queries or size, size) for size in sizes]
    q = torch.randn(sum(of), HEADS, HEAD, dtype=dtype)

    def expected(causal=True):
        rows = zip(q.split(of), k, v, sizes, strict=True)
        return torch.cat([attention(a, b[:n], c[:n], causal) for a, b, c, n in rows])

    return q, *caches, table, torch.tensor(sizes, dtype=torch.int32), of, expected


@call(BATCH, KEYS, dtypes=HALF, timed=BOTH)
def conch_pages(dtype, count, keys):
    q, k, v, table, sizes, _, expected = _pages(dtype, count, keys, 1)
    return lambda: paged_attention.paged_attention(q, k, v, table, sizes), expected


@call(BATCH, KEYS, dtypes=BF16)
def conch_pages_fp8(dtype, count, keys):
    q, k, v, table, sizes, *_ = _pages(dtype, count, keys, 1)
    scale = torch.tensor([0.02])
    codes = [(x / 0.02).to(FP8) for x in (k, v)]

    def expected():
        pages = [x.double()[table.long()].flatten(1, 2) * 0.02 for x in codes]
        rows = zip(q.split(1), *pages, sizes.tolist(), strict=True)
        return torch.cat([attention(a, b[:n], c[:n]) for a, b, c, n in rows])

    def op():
        return paged_attention.paged_attention(
            *(q, *codes, table, sizes), kv_cache_dtype="fp8", k_scale=scale, v_scale=scale
        )

    return op, expected


def _ragged(queries):
    def make(dtype, count, keys):
        q, k, v, table, sizes, of, expected = _pages(dtype, count, keys, queries)
        starts = F.pad(torch.tensor(of).cumsum(0), (1, 0)).int()

        def op():
            return varlen_attention.varlen_attention(
                q, k, v, starts, max(of), sizes, keys, table, causal=True
            )

        return op, expected

    return make


@call(PROMPTS, PROMPT, dtypes=HALF, timed=BOTH)
def conch_prompts(dtype, *dims):
    return _ragged(0)(dtype, *dims)


@call(BATCH, KEYS, dtypes=HALF)
def conch_tokens(dtype, *dims):
    return _ragged(1)(dtype, *dims)


# In 8 bits


def _heads_first(q, k, v, causal):
    """(batch, heads, tokens, dims)."""
    rows = zip(*(x.transpose(1, 2) for x in (q, k, v)), strict=True)
    return torch.stack([attention(*row, causal) for row in rows]).transpose(1, 2)


def _in_int8(dims, causal):
    def make(dtype, count, tokens):
        q = torch.randn(count, HEADS, tokens, dims, dtype=dtype)
        k, v = torch.randn(2, count, SHARED, tokens, dims, dtype=dtype)
        return (
            lambda: sage_attention.sageattn(q, k.clone(), v, is_causal=causal),
            lambda: _heads_first(q, k, v, causal),
        )

    return make


@call(PROMPTS, WHOLE, dtypes=BF16, timed=BOTH)
def sage(dtype, *dims):
    return _in_int8(HEAD, False)(dtype, *dims)


@call(PROMPTS, PROMPT, dtypes=BF16)
def sage_causal(dtype, *dims):
    return _in_int8(64, True)(dtype, *dims)


@call(PROMPTS, PROMPT, dtypes=BF16)
def sage_of_96(dtype, *dims):
    return _in_int8(96, True)(dtype, *dims)


@call(PROMPTS, PROMPT, dtypes=BF16)
def sage_ragged(dtype, count, tokens):
    sizes = lengths(count, tokens)
    q = torch.randn(sum(sizes), HEADS, HEAD, dtype=dtype)
    k, v = torch.randn(2, sum(sizes), SHARED, HEAD, dtype=dtype)
    starts = F.pad(torch.tensor(sizes).cumsum(0), (1, 0)).int()

    def reference():
        rows = zip(*(x.split(sizes) for x in (q, k, v)), strict=True)
        return torch.cat([attention(*row) for row in rows])

    return (
        lambda: sage_attention.sageattn_varlen(
            q, k.clone(), v, starts, starts, max(sizes), max(sizes), is_causal=True
        ),
        reference,
    )


# Weights of which some are zero

SPARSE = Size((2, 128), (4, 2048), (1, 8192))


def _with_zeros(kernel, causal, dtype, count, tokens):
    q, k, v = torch.randn(3, count, 8, tokens, 64, dtype=dtype)
    hidden = torch.ones(tokens, tokens, dtype=torch.bool).triu(1)

    def reference(q, k, v):
        scores = q @ k.mT / 8
        return sparse_softmax(scores.masked_fill(hidden, -1e4) if causal else scores) @ v

    return gradients(kernel, reference, q, k, v)


@call(SPARSE, dtypes=BF16)
def adasplash(dtype, *dims):
    kernel = adasplash_no_block_mask.sparse_attn
    return _with_zeros(lambda *qkv: kernel(*qkv, 1.5, True, None, 20), True, dtype, *dims)


@call(SPARSE, dtypes=BF16)
def adasplash_of_blocks(dtype, *dims):
    kernel = adasplash_block_mask.sparse_attn
    return _with_zeros(lambda *qkv: kernel(*qkv, 1.5, True, None, 20), True, dtype, *dims)


@call(SPARSE, dtypes=BF16, timed=BOTH)
def adasplash_by_histogram(dtype, *dims):
    kernel = adasplash_v2.sparse_attn
    return _with_zeros(lambda *qkv: kernel(*qkv, 6), True, dtype, *dims)


# Attention as Triton's tutorial first had it, and the mean of its weights


@call(PROMPTS, Size(256, 2048, 8192), dtypes=BF16)
def flash_causal(dtype, count, tokens, heads=16, dims=64):
    qkv = torch.randn(3, count, heads, tokens, dims, dtype=dtype)
    return gradients(
        lambda *qkv: flash_attention_triton.attention_causal(*qkv, dims**-0.5),
        lambda *qkv: _heads_first(*qkv, True),
        *qkv,
    )


@call(Size(2, 8, 4), Size(256, 1024, 4096), dtypes=HALF)
def means_of_weights(dtype, count, tokens, heads=16, dims=64):
    """What keys are given on the mean: of several sequences, of one, and of a chunk of one."""
    q, k = torch.randn(2, count, heads, tokens, dims, dtype=dtype)
    chunk, scale = q[:1, :, -(-tokens // 4) :], dims**-0.5
    few = chunk[:, :, -min(64, chunk.shape[2]) :].contiguous()

    def mean(q, k, causal=False):
        scores = q.double() @ k.double().mT * scale
        if causal:
            hidden = torch.ones(scores.shape[-2:], dtype=torch.bool)
            scores = scores.masked_fill(hidden.triu(1 + k.shape[2] - q.shape[2]), -torch.inf)
        return scores.softmax(-1).mean((1, 2))

    return (
        lambda: (
            kernel_noncausal_batched._flash_colsum_batched(q, k, scale),
            kernel_noncausal._flash_colsum_non_batched(q[:1], k[:1], scale),
            kernel_causal._flash_colsum_causal(few, k[:1], scale),
        ),
        lambda: (mean(q, k), mean(q[:1], k[:1]), mean(few, k[:1], True)),
    )


# Attention to chosen blocks


@call(PROMPTS, Size(128, 2048, 8192), dtypes=HALF)
def chosen_blocks(dtype, count, tokens, heads=16, shared=4, dims=64, block=32, number=3):
    q, k, v = (torch.randn(count, n, tokens, dims, dtype=dtype) for n in (heads, shared, shared))
    own = torch.arange(tokens) // block
    blocks = torch.rand(count, shared, tokens, tokens // block)
    before = torch.arange(tokens // block) < own[:, None]
    picked = blocks.masked_fill(~before, -1).topk(number)
    seen = picked.values >= 0
    indices = torch.where(seen, picked.indices, 0).int()
    near = own[:, None] == own
    near &= torch.ones(tokens, tokens, dtype=torch.bool).tril()

    def op(q, k, v):
        return chosen.native_sparse_attend(q, k, v, block, indices, seen, block_dk_dv_use_dot=True)

    def reference(q, k, v):
        counted = torch.zeros(count, shared, tokens, tokens // block + 1)
        at = torch.where(seen, picked.indices, tokens // block)
        counted = counted.scatter(-1, at, 1.0)[..., :-1].bool()
        visible = (counted[..., own] | near).repeat_interleave(heads // shared, 1)
        k, v = (x.repeat_interleave(heads // shared, 1) for x in (k, v))
        scores = (q @ k.mT * dims**-0.5).masked_fill(~visible, -torch.inf)
        return scores.softmax(-1) @ v

    return gradients(op, reference, q, k, v)


# Documents by the nearest of their tokens to each of a query's

FOUND = Size((3, 5, 16, 40), (32, 128, 32, 512), (16, 64, 1024, 1024))
WIDTH = 128


def _texts(dtype, queries, documents, short, long):
    q, d = (
        F.normalize(torch.randn(*n, WIDTH), dim=-1).to(dtype)
        for n in ((queries, short), (documents, long))
    )
    return q, d


def _nearest(q, d):
    return torch.einsum("qtd,nsd->qnts", q, d).amax(-1).sum(-1)


@call(FOUND, dtypes=HALF, timed=BOTH)
def nearest_tokens(dtype, *dims):
    """Gradients come by atomics."""
    return gradients(
        lambda q, d: autograd.maxsim(q, d, backward="unified"), _nearest, *_texts(dtype, *dims)
    )


@call(FOUND, dtypes=HALF)
def nearest_tokens_in_order(dtype, *dims):
    return gradients(
        lambda q, d: autograd.maxsim(q, d, backward="lowmem"), _nearest, *_texts(dtype, *dims)
    )


@call(FOUND, dtypes=HALF)
def nearest_tokens_ragged(dtype, *dims):
    q, d = _texts(dtype, *dims)
    of_q, of_d = (lengths(*x.shape[:2]) for x in (q, d))
    starts = [F.pad(torch.tensor(of).cumsum(0), (1, 0)).int() for of in (of_q, of_d)]
    packed = [
        torch.cat([one[:n] for one, n in zip(x, of, strict=True)])
        for x, of in ((q, of_q), (d, of_d))
    ]
    pairs = torch.randint(0, len(q), (64,)).int(), torch.randint(0, len(d), (64,)).int()

    def op(q, d):
        longest = max(of_q), max(of_d)
        every = ragged.maxsim_varlen(q, d, *starts, *longest).flatten()
        some = score_pairs.score_pairs_packed(
            q, d, *starts, *pairs, max_seqlen_q=longest[0], max_seqlen_d=longest[1]
        )
        return torch.cat((every, some))

    def expected(q, d):
        q, d = q.split(of_q), d.split(of_d)
        every = torch.stack([torch.stack([_nearest(a[None], b[None])[0, 0] for b in d]) for a in q])
        return torch.cat((every.flatten(), every[pairs[0].long(), pairs[1].long()]))

    return gradients(op, expected, *packed)


@call(FOUND, dtypes=BF16)
def nearest_tokens_fp8(dtype, *dims):
    scaled = [fp8.quantize_fp8_per_tensor(x) for x in _texts(dtype, *dims)]
    (q, q_scale), (d, d_scale) = scaled
    return (
        lambda: fp8.maxsim_inference_fp8(q, d, scale_Q=q_scale, scale_D=d_scale),
        lambda: _nearest(q.double() * q_scale, d.double() * d_scale),
    )


@call(FOUND, dtypes=HALF)
def nearest_tokens_of_states(dtype, queries, documents, short, long, hidden=768):
    """Documents go through a layer first."""
    q, _ = _texts(dtype, queries, documents, short, long)
    states = torch.randn(documents, long, hidden, dtype=dtype)
    weight = torch.randn(WIDTH, hidden, dtype=dtype) / hidden**0.5

    def op():
        return fused_head._fused_head_forward(q, states, weight, None, None, True)[0]

    def expected():
        return _nearest(q.double(), F.normalize(states.double() @ weight.double().T, dim=-1))

    return op, expected


@call(FOUND, dtypes=HALF)
def nearest_tokens_of_residuals(dtype, queries, documents, short, long, bits=4, centroids=1024):
    """Tokens are a centroid, and what is left in 4 bits; and by centroids alone."""
    q, _ = _texts(dtype, queries, documents, short, long)
    codes = torch.randint(0, centroids, (documents, long), dtype=torch.int32)
    left = torch.randint(0, 256, (documents, long, WIDTH * bits // 8), dtype=torch.uint8)
    sizes = torch.tensor(lengths(documents, long)).int()
    middles = F.normalize(torch.randn(centroids, WIDTH), dim=-1).to(dtype)
    buckets = torch.linspace(-0.2, 0.2, 1 << bits).to(dtype)
    scores = torch.randn(centroids, short)
    given = codes, left, sizes, middles, buckets, bits

    def op(q):
        near = plaid.plaid_approx_score(scores, codes, sizes)
        return torch.cat((plaid.maxsim_residual(q, *given).flatten(), near))

    def expected(q):
        near = reference.plaid_approx_score_reference(scores, codes, sizes)
        return torch.cat((reference.maxsim_residual_reference(q, *given).flatten(), near))

    return gradients(op, expected, q)
