"""Cases of vLLM: attention over pages, and what fills them."""

import torch
from library_case import BOTH, HALVES, HEAD, HEADS, SHARED, TOKENS, Size
from library_references import FP8, PAGE, Pages, by_row, lengths, starts, whole
from vllm_case import KVQuantMode, call

# isort: split
from vllm.v1.attention.ops import (
    chunked_prefill_paged_decode,
    prefix_prefill,
    triton_decode_attention,
    triton_merge_attn_states,
    triton_prefill_attention,
    triton_reshape_and_cache_flash,
    triton_unified_attention,
)

BATCH, KEYS = Size(3, 16, 1), Size(150, 4096, 32768)
PROMPTS, PROMPT = Size(2, 4, 1), Size(150, 2048, 8192)
SPLITS = 16


def ones():
    return torch.ones(1)


def _unified(dtype, count, keys, queries, window=0, mode=KVQuantMode.NONE):
    """`queries` are those of each sequence; a sequence of a query each is split over programs."""
    of = Pages(dtype, count, keys)
    q = torch.randn(sum(queries), HEADS, HEAD, dtype=dtype)
    given = {}
    if max(queries) == 1:
        rows = count, HEADS, SPLITS
        given = {
            "seq_threshold_3D": 1 << 20,
            "num_par_softmax_segments": SPLITS,
            "softmax_segm_output": torch.zeros(*rows, HEAD),
            "softmax_segm_max": torch.zeros(rows),
            "softmax_segm_expsum": torch.zeros(rows),
        }

    def op():
        out = torch.empty_like(q)
        k, v, more = of.flat(of.k), of.flat(of.v), dict(given)
        if mode:
            kept = torch.int8 if mode == KVQuantMode.INT8_PER_TOKEN_HEAD else FP8
            scales = [torch.zeros(k.shape[:3]) for _ in range(2)]
            k, v = (torch.zeros(k.shape, dtype=kept) for _ in range(2))
            triton_reshape_and_cache_flash.triton_reshape_and_cache_flash_per_token_head_quant(
                *(of.k, of.v, k, v, *scales, of.slots, mode)
            )
            more |= {"k_scale_cache": scales[0], "v_scale_cache": scales[1]}
            more["kv_quant_mode"] = mode
        triton_unified_attention.unified_attention(
            *(q, k, v, out, starts(queries), max(queries), of.length, of.longest, HEAD**-0.5),
            causal=True,
            window_size=(window - 1, 0) if window else (-1, -1),
            block_table=of.table,
            softcap=0,
            q_descale=None,
            k_descale=ones(),
            v_descale=ones(),
            **more,
        )
        return out

    def reference():
        if mode:
            kept = torch.int8 if mode == KVQuantMode.INT8_PER_TOKEN_HEAD else FP8
            of.k, of.v = (whole(*by_row(x, kept)) for x in (of.k, of.v))
        return of.of_each(q.split(queries), window=window)

    return op, reference


def halves(count, keys):
    """Of each sequence the tokens of its second half."""
    return [size - size // 2 for size in lengths(count, keys)]


@call(PROMPTS, PROMPT, dtypes=HALVES, timed=BOTH)
def unified_prompts(dtype, *dims):
    return _unified(dtype, *dims, halves(*dims))


@call(PROMPTS, PROMPT)
def unified_prompts_window(dtype, count, keys):
    return _unified(dtype, count, keys, halves(count, keys), keys // 4)


@call(BATCH, KEYS, dtypes=HALVES, timed=BOTH)
def unified_decoding(dtype, count, keys):
    return _unified(dtype, count, keys, [1] * count)


@call(BATCH, KEYS)
def unified_decoding_int8(dtype, count, keys):
    mode = KVQuantMode.INT8_PER_TOKEN_HEAD
    return _unified(dtype, count, keys, [1] * count, mode=mode)


@call(BATCH, KEYS)
def unified_decoding_fp8(dtype, count, keys):
    mode = KVQuantMode.FP8_PER_TOKEN_HEAD
    return _unified(dtype, count, keys, [1] * count, mode=mode)


def _decoding(dtype, count, keys, heads):
    of = Pages(dtype, count, keys, heads)
    q = torch.randn(count, HEADS, HEAD, dtype=dtype)
    caches = of.flat(of.k), of.flat(of.v)

    def op():
        out, sums = torch.empty_like(q), torch.empty(count, HEADS)
        parts = torch.empty(count, HEADS, SPLITS, HEAD + 1)
        triton_decode_attention.decode_attention_fwd(
            *(q, *caches, out, sums, of.table, of.length, parts, SPLITS, HEAD**-0.5, PAGE),
        )
        return out

    return op, lambda: of.of_each(q.split(1))


@call(BATCH, KEYS, dtypes=HALVES, timed=BOTH)
def decoding(dtype, *dims):
    return _decoding(dtype, *dims, SHARED)


@call(BATCH, KEYS)
def decoding_of_heads(dtype, *dims):
    """Each head has keys of its own."""
    return _decoding(dtype, *dims, HEADS)


@call(BATCH, KEYS, timed=BOTH)
def decoding_latent(dtype, count, keys, heads=16, latent=512, turned=64):
    """Keys and values of all heads are one row."""
    width = latent + turned
    of = Pages(dtype, count, keys, 1, width)
    q, cache = torch.randn(count, heads, width, dtype=dtype), of.flat(of.k)

    def op():
        out = torch.empty(count, heads, latent, dtype=dtype)
        sums, parts = torch.empty(count, heads), torch.empty(count, heads, SPLITS, latent + 1)
        triton_decode_attention.decode_attention_fwd(
            *(q, cache, cache[..., :latent], out, sums, of.table, of.length, parts, SPLITS),
            *(width**-0.5, PAGE),
            is_mla=True,
        )
        return out, sums

    def reference():
        found = []
        for row, k in zip(q.double(), of.k.double().split(of.sizes), strict=True):
            scores = row @ k[:, 0].T * width**-0.5
            found.append((scores.softmax(-1) @ k[:, 0, :latent], scores.logsumexp(-1)))
        return tuple(torch.stack(part) for part in zip(*found, strict=True))

    return op, reference


def _paged(dtype, count, keys, queries, window=0):
    """Prompts of several tokens, and tokens that are generated one by one."""
    of, group = Pages(dtype, count, keys), 8
    q = torch.randn(sum(queries), HEADS, HEAD, dtype=dtype)
    caches = of.head_major(group)
    new = of.last(queries)

    def op():
        out = torch.empty_like(q)
        chunked_prefill_paged_decode.chunked_prefill_paged_decode(
            *(q, *new, out, "auto", *caches, of.table, starts(queries), of.length, of.longest),
            *(max(queries), ones(), ones()),
            sliding_window=window,
        )
        return out

    return op, lambda: of.of_each(q.split(queries), window=window)


@call(PROMPTS, PROMPT, dtypes=HALVES, timed=BOTH)
def prefix_and_prompts(dtype, count, keys):
    return _paged(dtype, count, keys, halves(count, keys))


@call(PROMPTS, PROMPT)
def prefix_and_prompts_window(dtype, count, keys):
    return _paged(dtype, count, keys, halves(count, keys), keys // 4)


@call(BATCH, KEYS, dtypes=HALVES, timed=BOTH)
def paged_decoding(dtype, count, keys):
    return _paged(dtype, count, keys, [1] * count)


@call(PROMPTS, PROMPT)
def prefix_with_slopes(dtype, count, keys):
    """ALiBi."""
    of, group, queries = Pages(dtype, count, keys), 8, halves(count, keys)
    q, slopes = torch.randn(sum(queries), HEADS, HEAD, dtype=dtype), torch.rand(HEADS) / 8
    caches = of.head_major(group)
    new = of.last(queries)

    def op():
        out = torch.empty_like(q)
        prefix_prefill.context_attention_fwd(
            *(q, *new, out, "auto", *caches, of.table, starts(queries), of.length, of.longest),
            *(max(queries), ones(), ones(), slopes),
        )
        return out

    def reference():
        for one, k, v in of.beside(q.split(queries)):
            k, v = (x.double().repeat_interleave(HEADS // SHARED, 1) for x in (k, v))
            scores = torch.einsum("qhd,khd->hqk", one.double(), k) * HEAD**-0.5
            apart = torch.arange(len(k)) - torch.arange(len(k) - len(one), len(k))[:, None]
            scores = scores + slopes.double()[:, None, None] * apart
            shares = scores.masked_fill(apart > 0, -torch.inf).softmax(-1)
            yield torch.einsum("hqk,khd->qhd", shares, v)

    return op, lambda: torch.cat(list(reference()))


def _prompts(dtype, count, keys, causal):
    of = Pages(dtype, count, keys)
    q = torch.randn(sum(of.sizes), HEADS, HEAD, dtype=dtype)

    def op():
        out = torch.empty_like(q)
        triton_prefill_attention.context_attention_fwd(
            *(q, of.k, of.v, out, starts(of.sizes)[:-1], of.length, of.longest),
            is_causal=causal,
        )
        return out

    return op, lambda: of.of_each(q.split(of.sizes), causal=causal)


@call(PROMPTS, PROMPT, dtypes=HALVES, timed=BOTH)
def prompts(dtype, *dims):
    return _prompts(dtype, *dims, True)


@call(PROMPTS, PROMPT)
def encoder(dtype, *dims):
    return _prompts(dtype, *dims, False)


# The cache


def _cache(dtype, count, keys, kept):
    of = Pages(dtype, count, keys)
    scales = [torch.tensor([0.5]), torch.tensor([0.25])]

    def op():
        caches = [torch.zeros(of.table.numel(), PAGE, SHARED, HEAD, dtype=kept) for _ in range(2)]
        triton_reshape_and_cache_flash.triton_reshape_and_cache_flash(
            *(of.k, of.v, *caches, of.slots, "fp8" if kept == FP8 else "auto", *scales)
        )
        return [cache.float() for cache in caches]

    def reference():
        shared = scales if kept == FP8 else (1, 1)
        codes = [
            (x.float() / scale).to(kept) for x, scale in zip((of.k, of.v), shared, strict=True)
        ]
        return [of.flat(x).float() for x in codes]

    return op, reference


@call(PROMPTS, PROMPT, dtypes=HALVES)
def cache(dtype, *dims):
    return _cache(dtype, *dims, dtype)


@call(PROMPTS, PROMPT)
def cache_fp8(dtype, *dims):
    return _cache(dtype, *dims, FP8)


@call(TOKENS, dtypes=HALVES)
def merged_states(dtype, tokens):
    """Attention to a prefix and to what follows it, of rows that a hidden prefix leaves out."""
    parts = torch.randn(2, tokens, HEADS, HEAD, dtype=dtype)
    sums = torch.randn(2, HEADS, tokens) * 3
    sums[0, :, ::5] = -torch.inf

    def op():
        out, whole_sums = torch.empty_like(parts[0]), torch.empty_like(sums[0])
        triton_merge_attn_states.merge_attn_states(
            *(out, parts[0], sums[0], parts[1], sums[1], whole_sums)
        )
        return out, whole_sums

    def reference():
        shares = sums.double().softmax(0).mT[..., None]
        return (shares * parts.double()).sum(0), sums.double().logsumexp(0)

    return op, reference
