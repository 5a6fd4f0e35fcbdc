"""Cases of SGLang: attention over a pool of tokens, each of which lies anywhere."""

import torch
from library_case import BOTH, HALF, HALVES, HEAD, HEADS, SHARED, TOKENS, Size
from library_references import FP8, Pages, lengths, starts
from sglang_case import call

# isort: split
from sglang.kernels.ops.attention import (
    dcp_kernels,
    decode_attention,
    extend_attention,
    kv_indices,
    merge_state,
    prefill_attention,
    verify_splitkv,
)
from sglang.kernels.ops.attention.dsa import triton_sparse_mla
from sglang.kernels.ops.attention.minimax_sparse.decode import flash_with_topk_idx, topk_sparse

BATCH, KEYS = Size(3, 16, 1), Size(150, 4096, 32768)
# Its own choice of blocks is CUDA.
flash_with_topk_idx._JIT_TOPK_MAX_NUM_BLOCKS = 0

PROMPTS, PROMPT = Size(2, 4, 1), Size(150, 2048, 8192)
SPLITS = 16
LATENT, TURNED = 512, 64


class Pool(Pages):
    """Tokens of sequences, each of which is a page."""

    def __init__(self, dtype, count, keys, heads=SHARED, head=HEAD):
        super().__init__(dtype, count, keys, heads, head, 1)
        self.starts, self.kept = starts(self.sizes), dtype

    def buffers(self):
        return [self.flat(x)[:, 0].to(self.kept) for x in (self.k, self.v)]

    def ahead(self, queries):
        """Where the tokens ahead of so many last ones of each sequence lie: starts, and slots."""
        counts = [n - new for n, new in zip(self.sizes, queries, strict=True)]
        parts = zip(self.slots.split(self.sizes), counts, strict=True)
        return starts(counts), torch.cat([slots[:n] for slots, n in parts])


def latent(of, q):
    """Attention of the last tokens, of which all heads see one row of keys, whose first numbers are
    the values; and the logarithms of their sums."""
    outs, sums = [], []
    for one, k in zip(q, of.k.double().split(of.sizes), strict=True):
        scores = torch.einsum("qhd,kd->qhk", one.double(), k[:, 0]) * q[0].shape[-1] ** -0.5
        apart = torch.arange(len(k) - len(one), len(k))[:, None] - torch.arange(len(k))
        scores = scores.masked_fill((apart < 0)[:, None], -torch.inf)
        outs.append(scores.softmax(-1) @ k[:, 0, :LATENT])
        sums.append(scores.logsumexp(-1))
    return torch.cat(outs), torch.cat(sums)


def _decoded(of, q, caches, width, scales=(1.0, 1.0), **how):
    """What a step of the library's engine launches, with the same splits for all sequences."""
    count, heads = q.shape[:2]
    out = torch.empty(count, heads, width, dtype=q.dtype)
    parts, sums = torch.empty(count, heads, SPLITS, width), torch.empty(count, heads, SPLITS)
    splits = torch.full((count,), SPLITS, dtype=torch.int32)
    decode_attention.decode_attention_fwd(
        *(q, *caches, out, of.starts, of.slots, parts, sums, splits, SPLITS, q.shape[-1] ** -0.5),
        *scales,
        **how,
    )
    return out


def _decoding(dtype, count, keys, heads):
    of, q = Pool(dtype, count, keys, heads), torch.randn(count, HEADS, HEAD, dtype=dtype)
    caches = of.buffers()
    return lambda: _decoded(of, q, caches, HEAD), lambda: of.of_each(q.split(1))


@call(BATCH, KEYS, dtypes=HALVES, timed=BOTH)
def decoding(dtype, *dims):
    return _decoding(dtype, *dims, SHARED)


@call(BATCH, KEYS)
def decoding_of_heads(dtype, *dims):
    """Each head has keys of its own."""
    return _decoding(dtype, *dims, HEADS)


@call(BATCH, KEYS)
def decoding_fp8(dtype, count, keys, scales=(0.5, 0.25)):
    of, q = Pool(dtype, count, keys), torch.randn(count, HEADS, HEAD, dtype=dtype)
    of.kept = FP8
    caches = of.buffers()

    def reference():
        of.k, of.v = (x.to(FP8).double() * s for x, s in zip((of.k, of.v), scales, strict=True))
        return of.of_each(q.split(1))

    return lambda: _decoded(of, q, caches, HEAD, scales), reference


@call(BATCH, KEYS, timed=BOTH)
def decoding_latent(dtype, count, keys, heads=16):
    of = Pool(dtype, count, keys, 1, LATENT + TURNED)
    q, (cache, _) = torch.randn(count, heads, LATENT + TURNED, dtype=dtype), of.buffers()
    caches = cache, cache[..., :LATENT]
    return (
        lambda: _decoded(of, q, caches, LATENT, has_mla=True),
        lambda: latent(of, q.split(1))[0],
    )


def halves(count, keys):
    """Of each sequence the tokens of its second half."""
    return [size - size // 2 for size in lengths(count, keys)]


def _extended(of, q, new, queries, width, **how):
    """Of new tokens, whose keys and values are not yet in the pool, and those ahead of them."""
    out = torch.empty(*q.shape[:2], width, dtype=q.dtype)
    extend_attention.extend_attention_fwd(
        *(q, *new, out, *of.buffers(), starts(queries), *of.ahead(queries)),
        *(how.pop("mask", None), True, how.pop("masks", None), max(queries), 1.0, 1.0),
        **how,
    )
    return out


@call(PROMPTS, PROMPT, dtypes=HALVES, timed=BOTH)
def extending(dtype, count, keys):
    of, queries = Pool(dtype, count, keys), halves(count, keys)
    q, new = torch.randn(sum(queries), HEADS, HEAD, dtype=dtype), of.last(queries)
    return lambda: _extended(of, q, new, queries, HEAD), lambda: of.of_each(q.split(queries))


@call(PROMPTS, PROMPT)
def extending_window(dtype, count, keys):
    """The window is of so many tokens ahead of a query."""
    of, queries, window = Pool(dtype, count, keys), halves(count, keys), keys // 4
    q, new = torch.randn(sum(queries), HEADS, HEAD, dtype=dtype), of.last(queries)
    return (
        lambda: _extended(of, q, new, queries, HEAD, sliding_window_size=window),
        lambda: of.of_each(q.split(queries), window=window + 1),
    )


@call(PROMPTS, PROMPT)
def extending_latent(dtype, count, keys, heads=16):
    of, queries = Pool(dtype, count, keys, 1, LATENT + TURNED), halves(count, keys)
    q, k = torch.randn(sum(queries), heads, LATENT + TURNED, dtype=dtype), of.last(queries)[0]
    of.v = of.k[..., :LATENT]
    new = k, k[..., :LATENT].contiguous()
    return (
        lambda: _extended(of, q, new, queries, LATENT),
        lambda: latent(of, q.split(queries))[0],
    )


@call(BATCH, KEYS)
def verifying_tree(dtype, count, keys, drafted=8):
    """Drafts of a tree: each token sees what is ahead of the tree, its parents, and itself."""
    of, queries = Pool(dtype, count, keys), [drafted] * count
    q, new = torch.randn(sum(queries), HEADS, HEAD, dtype=dtype), of.last(queries)
    tree = torch.eye(drafted, dtype=torch.bool)
    for token in range(1, drafted):
        tree[token] |= tree[(token - 1) // 2]
    masks = [torch.cat((torch.ones(drafted, n - drafted), tree), 1).bool() for n in of.sizes]
    given = {
        "mask": torch.cat([mask.flatten() for mask in masks]),
        "masks": starts(mask.numel() for mask in masks).long(),
    }

    def reference():
        for mask, (one, k, v) in zip(masks, of.beside(q.split(queries)), strict=True):
            k, v = (x.double().repeat_interleave(HEADS // SHARED, 1) for x in (k, v))
            scores = torch.einsum("qhd,khd->hqk", one.double(), k) * HEAD**-0.5
            shares = scores.masked_fill(~mask, -torch.inf).softmax(-1)
            yield torch.einsum("hqk,khd->qhd", shares, v)

    return (
        lambda: _extended(of, q, new, queries, HEAD, **given),
        lambda: torch.cat(list(reference())),
    )


@call(BATCH, KEYS)
def verifying_split(dtype, count, keys, drafted=4):
    """A row of drafts, of which programs share the keys."""
    of, queries = Pool(dtype, count, keys), [drafted] * count
    q, new = torch.randn(sum(queries), HEADS, HEAD, dtype=dtype), of.last(queries)
    caches = of.buffers()

    def op():
        out = torch.empty_like(q)
        given = starts(queries), *of.ahead(queries), None, True, None, drafted, 1.0, 1.0
        assert verify_splitkv.verify_splitkv_fwd(q, *new, out, *caches, *given)
        return out

    return op, lambda: of.of_each(q.split(queries))


@call(PROMPTS, PROMPT, dtypes=HALVES, timed=BOTH)
def extending_unified(dtype, count, keys):
    """As where results shall not depend on what else is in a batch."""
    of, queries = Pool(dtype, count, keys), halves(count, keys)
    q, caches = torch.randn(sum(queries), HEADS, HEAD, dtype=dtype), of.buffers()
    first, ahead = of.ahead(queries)
    ends = zip(of.slots.split(of.sizes), queries, strict=True)
    new = torch.cat([slots[-n:] for slots, n in ends])

    def op():
        out = torch.empty_like(q)
        begin, sizes = starts(queries)[:-1], torch.tensor(queries, dtype=torch.int32)
        where = extend_attention.build_unified_kv_indices(first, ahead, begin, sizes, new, count)
        given = 1.0, 1.0, starts(queries), *where, max(queries)
        extend_attention.extend_attention_fwd_unified(q, out, *caches, *given)
        return out

    return op, lambda: of.of_each(q.split(queries))


@call(PROMPTS, PROMPT, dtypes=HALVES, timed=BOTH)
def dense_prompts(dtype, count, keys, heads=16, width=192):
    """Keys of latent rows, which are whole again."""
    of, queries = Pool(dtype, count, keys, heads, width), halves(count, keys)
    of.v = of.v[..., :HEAD].contiguous()
    q = torch.randn(sum(queries), heads, width, dtype=dtype)

    def op():
        out, sums = torch.empty(*q.shape[:2], HEAD, dtype=dtype), torch.empty(q.shape[:2])
        extend_attention.dense_prefill_attention_fwd(
            *(q, of.k, of.v, out, starts(queries), of.starts, max(queries)), lse=sums
        )
        return out

    return op, lambda: of.of_each(q.split(queries))


def _prompts(dtype, count, keys, causal):
    of = Pool(dtype, count, keys)
    q = torch.randn(sum(of.sizes), HEADS, HEAD, dtype=dtype)

    def op():
        out = torch.empty_like(q)
        given = q, of.k, of.v, out, of.starts[:-1], of.length, of.longest
        prefill_attention.context_attention_fwd(*given, is_causal=causal)
        return out

    return op, lambda: of.of_each(q.split(of.sizes), causal=causal)


@call(PROMPTS, PROMPT, dtypes=HALVES, timed=BOTH)
def prompts(dtype, *dims):
    return _prompts(dtype, *dims, True)


@call(PROMPTS, PROMPT)
def encoder(dtype, *dims):
    return _prompts(dtype, *dims, False)


@call(TOKENS, dtypes=HALVES)
def merged_states(dtype, tokens):
    parts, sums = torch.randn(2, tokens, HEADS, HEAD, dtype=dtype), torch.randn(2, tokens, HEADS)

    def reference():
        shares = sums.double().softmax(0)[..., None]
        return (shares * parts.double()).sum(0), sums.double().logsumexp(0)

    return lambda: merge_state.merge_state_triton(parts[0], sums[0], parts[1], sums[1]), reference


@call(TOKENS)
def combined_ranks(dtype, tokens, ranks=4):
    """Of several GPUs that have a part of the keys each."""
    parts = torch.randn(ranks, tokens, HEADS, HEAD, dtype=dtype)
    sums = torch.randn(ranks, tokens, HEADS)

    def reference():
        shares = sums.double().softmax(0)[..., None]
        return (shares * parts.double()).sum(0), sums.double().logsumexp(0)

    return lambda: dcp_kernels.dcp_lse_combine_triton(parts, sums, return_lse=True), reference


# Of some keys


@call(Size(3, 64, 1024), Size(150, 8192, 8192), timed=BOTH)
def sparse_latent(dtype, tokens, keys, heads=16, most=128):
    """Of each query the keys that an indexer has chosen; -1 is none."""
    most = min(most if keys < 1000 else 2048, keys)
    width = LATENT + TURNED
    q, kv = (
        torch.randn(tokens, heads, width, dtype=dtype),
        torch.randn(keys, 1, width, dtype=dtype),
    )
    chosen = torch.rand(tokens, keys).topk(most).indices.int()
    chosen[:, most - 5 :] = -1
    parts = [x.contiguous() for x in q.split((LATENT, TURNED), -1)]

    def op():
        return triton_sparse_mla.triton_sparse_mla_fwd(
            *parts, kv, chosen[:, None], width**-0.5, LATENT
        )[0]

    def reference():
        for row, at in zip(q.double(), chosen.long(), strict=True):
            k = kv[at[at >= 0], 0].double()
            yield (row @ k.T * width**-0.5).softmax(-1) @ k[:, :LATENT]

    return op, lambda: torch.stack(list(reference()))


def _blocks(dtype, count, keys, block):
    """A pool whose pages are blocks, and a row of slots of each request."""
    of = Pages(dtype, count, keys, 4, HEAD, block)
    each = (of.table[:, :, None] * block + torch.arange(block)).flatten(1).int()
    return of, [of.flat(x).flatten(0, 1) for x in (of.k, of.v)], each


@call(BATCH, KEYS, dtypes=HALVES, timed=BOTH)
def sparse_decoding(dtype, count, keys, block=64, most=16):
    """Of each head of keys the blocks that were chosen for it."""
    of, caches, slots = _blocks(dtype, count, keys, block)
    q, every = torch.randn(count, HEADS, HEAD, dtype=dtype), -(-of.length // block)
    most = min(most, int(every.min()))
    chosen = [torch.rand(4, int(n)).topk(most).indices.sort().values for n in every]
    chosen = torch.stack(chosen, 1).int()

    def op():
        return topk_sparse.flash_decode_with_gqa_share_sparse(
            *(q, None, *caches, slots, of.length, torch.arange(count).int(), block, chosen),
            page_size=block,
        )

    def reference():
        for row, (one, k, v) in enumerate(of.beside(q)):
            at = torch.arange(len(k)) // block
            seen = [torch.isin(at, part) for part in chosen[:, row]]
            heads = zip(one.double().chunk(4), seen, k.unbind(1), v.unbind(1), strict=True)
            for some, part, keys, values in heads:
                scores = some @ keys[part].double().T * HEAD**-0.5
                yield scores.softmax(-1) @ values[part].double()

    return op, lambda: torch.cat(list(reference())).view(count, HEADS, HEAD)


@call(BATCH, KEYS, dtypes=HALF)
def block_scores(dtype, count, keys, block=64, most=8):
    """Attention, and of each query the blocks with its largest scores."""
    of, caches, slots = _blocks(dtype, count, keys, block)
    q, most = torch.randn(count, 4, HEAD, dtype=dtype), min(most, min(of.sizes) // block)

    def op():
        out, chosen, _ = flash_with_topk_idx.flash_decode_with_topk_idx(
            *(q, None, *caches, slots, of.length, of.longest, torch.arange(count).int()),
            *(block, most, 0, 0),
        )
        return out, chosen.sort().values

    def reference():
        outs, rows = [], []
        for one, k, v in of.beside(q):
            scores = torch.einsum("hd,khd->hk", one.double(), k.double()) * HEAD**-0.5
            outs.append(torch.einsum("hk,khd->hd", scores.softmax(-1), v.double()))
            padded = torch.nn.functional.pad(scores, (0, -len(k) % block), value=-torch.inf)
            rows.append(padded.unflatten(1, (-1, block)).amax(-1).topk(most).indices.sort().values)
        return torch.stack(outs), torch.stack(rows, 1)

    return op, reference


# Where tokens lie


@call(Size(5, 256, 16), Size(600, 8192, 32768), dtypes=(torch.int32,), timed=BOTH)
def slots_of_requests(dtype, count, longest):
    table = torch.randint(0, 1 << 20, (2 * count, longest), dtype=dtype)
    request, sizes = torch.randperm(2 * count)[:count], lengths(count, longest)
    first = starts(sizes)

    def op():
        out = torch.empty(sum(sizes), dtype=torch.int64)
        kv_indices.create_flashinfer_kv_indices_triton[(count,)](
            *(table, request, torch.tensor(sizes), first, None, out, table.stride(0))
        )
        return out

    def reference():
        return torch.cat([table[r, :n] for r, n in zip(request, sizes, strict=True)]).long()

    return op, reference
