"""LightLLM's Triton kernels: attention over a cache whose tokens lie anywhere, products of 8 and 4
bits, and what is between them.

What no Triton takes is not there: attention of prompts over int8 (a product of int8 and fp16) and
GELU (a global that is no constexpr).
"""

from typing import Any

import torch
from libraries import bare
from library_case import LARGE, WIDE, Size, calls_in
from library_references import attention, gated, lengths, rms, rotated

MODELS = ("llama", "mistral", "chatglm2", "bloom")
bare("lightllm", "lightllm.common", "lightllm.common.basemodel", "lightllm.models")
bare("lightllm.common.basemodel.triton_kernel")
for model in MODELS:
    bare(f"lightllm.models.{model}", f"lightllm.models.{model}.triton_kernel")

from lightllm.common.basemodel.triton_kernel import (  # noqa: E402
    apply_penalty,
    dequantize_gemm_int4,
    dequantize_gemm_int8,
    destindex_copy_kv,
    quantize_gemm_int8,
)
from lightllm.models.bloom.triton_kernel import layernorm as bloom_layernorm  # noqa: E402
from lightllm.models.chatglm2.triton_kernel import rotary_emb as glm_rotary  # noqa: E402
from lightllm.models.llama.triton_kernel import (  # noqa: E402
    context_flashattention_nopad,
    flash_decoding_stage1,
    flash_decoding_stage2,
    gqa_decode_flashattention_nopad,
    gqa_flash_decoding_stage1,
    gqa_flash_decoding_stage2,
    ppl_quant_copy_kv,
    rmsnorm,
    rotary_emb,
    silu_and_mul,
    splitfuse_context_flashattention_nopad,
    token_attention_nopad_att1,
    token_attention_nopad_reduceV,
    token_attention_nopad_softmax,
    token_attention_softmax_and_reducev,
)
from lightllm.models.mistral.triton_kernel import (  # noqa: E402
    context_flashattention_nopad as windowed,
)

CASES: dict[str, Any] = {}
call = calls_in(CASES)
HALF = (torch.float16,)
BATCH, KEYS = Size(3, 16, 1), Size(150, 4096, 32768)
PROMPTS, PROMPT = Size(2, 4, 1), Size(150, 2048, 8192)
TOKENS, HIDDEN = Size(15, 8192, 16), Size(40, 4096, 4096)
HEADS, SHARED, HEAD = 32, 8, 128
BLOCK = 128  # keys of a part of flash decoding
BOTH = (LARGE, WIDE)


class Cache:
    """Keys and values of requests, whose tokens lie anywhere, and the queries of their last
    tokens, one sequence behind the other."""

    def __init__(self, dtype, count, keys, queries=0, shared=SHARED):
        self.sizes = lengths(count, keys)
        self.keys = keys
        self.total = sum(self.sizes)
        self.queries = [min(queries or size, size) for size in self.sizes]
        self.q = torch.randn(sum(self.queries), HEADS, HEAD, dtype=dtype)
        self.k, self.v = (torch.randn(self.total, shared, HEAD, dtype=dtype) for _ in range(2))
        self.length = torch.tensor(self.sizes, dtype=torch.int32)
        self.start = (self.length.cumsum(0) - self.length).int()
        queries_of = torch.tensor(self.queries, dtype=torch.int32)
        self.query_start = (queries_of.cumsum(0) - queries_of).int()
        self.ready = self.length - queries_of
        self.request = torch.randperm(count).int()
        slots = torch.randperm(self.total).int()
        self.slots = slots.split(self.sizes)
        self.table = torch.zeros(count, keys, dtype=torch.int32)
        for row, own in zip(self.request.tolist(), self.slots, strict=True):
            self.table[row, : len(own)] = own

    def expected(self, k=None, v=None, window=0):
        k, v = self.k if k is None else k, self.v if v is None else v
        parts = zip(self.q.split(self.queries), self.slots, strict=True)
        return torch.cat(
            [attention(q, k[own.long()], v[own.long()], window=window) for q, own in parts]
        )


# Attention of one token of each sequence


@call(BATCH, KEYS, dtypes=HALF, timed=BOTH)
def flash_decoding(dtype, count, keys):
    of = Cache(dtype, count, keys, 1)

    def op():
        parts = (count, HEADS, keys // BLOCK + 1)
        middle, logarithms = torch.empty(*parts, HEAD), torch.empty(parts)
        flash_decoding_stage1.flash_decode_stage1(
            *(of.q, of.k, of.v, of.table, of.request, of.length, keys),
            *(middle, logarithms, BLOCK),
        )
        out = torch.empty_like(of.q)
        flash_decoding_stage2.flash_decode_stage2(middle, logarithms, of.length, out, BLOCK)
        return out

    return op, of.expected


@call(BATCH, KEYS, dtypes=(torch.float16, torch.bfloat16), timed=BOTH)
def flash_decoding_by_groups(dtype, count, keys):
    of = Cache(dtype, count, keys, 1)
    blocks = [-(-size // BLOCK) for size in of.sizes]
    sequence = torch.arange(count).int().repeat_interleave(torch.tensor(blocks))
    start = torch.cat([torch.arange(n).int() * BLOCK for n in blocks])

    def op():
        parts = (count, HEADS, keys // BLOCK + 1)
        middle, logarithms = torch.empty(*parts, HEAD), torch.empty(parts)
        gqa_flash_decoding_stage1.flash_decode_stage1(
            *(sequence, start, of.q, of.k, of.v, of.table, of.request, of.length),
            *(middle, logarithms, BLOCK),
        )
        out = torch.empty_like(of.q)
        gqa_flash_decoding_stage2.flash_decode_stage2(middle, logarithms, of.length, out, BLOCK)
        return out

    return op, of.expected


@call(BATCH, KEYS, dtypes=HALF)
def decoding_by_groups(dtype, count, keys):
    of = Cache(dtype, count, keys, 1)

    def op():
        out = torch.empty_like(of.q)
        gqa_decode_flashattention_nopad.gqa_decode_attention_fwd(
            of.q, of.k, of.v, out, of.table, of.request, of.length
        )
        return out

    return op, of.expected


@call(BATCH, KEYS, dtypes=HALF)
def token_attention(dtype, count, keys):
    """In three kernels: products, softmax, sums of values."""
    of = Cache(dtype, count, keys, 1)

    def op():
        weights = torch.empty(HEADS, of.total, dtype=dtype)
        where = of.table, of.request, of.start, of.length
        token_attention_nopad_att1.token_att_fwd(of.q, of.k, weights, *where, keys)
        shares = torch.empty_like(weights)
        token_attention_nopad_softmax.token_softmax_fwd(weights, of.start, of.length, shares, keys)
        out = torch.empty_like(of.q)
        token_attention_nopad_reduceV.token_att_fwd2(shares, of.v, out, *where)
        return out

    return op, of.expected


@call(BATCH, KEYS, dtypes=HALF)
def token_attention_in_two(dtype, count, keys):
    of = Cache(dtype, count, keys, 1)

    def op():
        weights = torch.empty(HEADS, of.total, dtype=dtype)
        where = of.table, of.request, of.start, of.length
        token_attention_nopad_att1.token_att_fwd(of.q, of.k, weights, *where, keys)
        out = torch.empty_like(of.q)
        token_attention_softmax_and_reducev.token_softmax_reducev_fwd(weights, of.v, out, *where, 0)
        return out

    return op, of.expected


def quantised(x):
    """In 8 bits towards 0, with a scale for each row, and the numbers that it stands for."""
    scale = x.abs().amax(-1, keepdim=True) / 127
    codes = (x / scale).to(torch.int8)
    return codes, scale, codes.double() * scale


@call(BATCH, KEYS, dtypes=HALF)
def token_attention_int8(dtype, count, keys):
    of = Cache(dtype, count, keys, 1, HEADS)
    (k, k_scale, k_numbers), (v, v_scale, v_numbers) = quantised(of.k), quantised(of.v)

    def op():
        weights = torch.empty(HEADS, of.total, dtype=dtype)
        where = of.table, of.request, of.start, of.length
        token_attention_nopad_att1.token_att_fwd_int8k(of.q, k, k_scale, weights, *where, keys)
        shares = torch.empty_like(weights)
        token_attention_nopad_softmax.token_softmax_fwd(weights, of.start, of.length, shares, keys)
        out = torch.empty_like(of.q)
        token_attention_nopad_reduceV.token_att_fwd2_int8v(shares, v, v_scale, out, *where, keys)
        return out

    return op, lambda: of.expected(k_numbers, v_numbers)


# Attention of prompts


@call(PROMPTS, PROMPT, dtypes=HALF, timed=BOTH)
def context_attention(dtype, count, keys):
    of = Cache(dtype, count, keys)
    order = torch.cat(of.slots).long()
    k, v = of.k[order], of.v[order]

    def op():
        out = torch.empty_like(of.q)
        context_flashattention_nopad.context_attention_fwd_no_prompt_cache(
            of.q, k, v, out, of.start, of.length, keys
        )
        return out

    return op, of.expected


@call(PROMPTS, PROMPT, dtypes=(torch.float16, torch.bfloat16))
def context_attention_with_cache(dtype, count, keys):
    of = Cache(dtype, count, keys, keys // 2)

    def op():
        out = torch.empty_like(of.q)
        context_flashattention_nopad.context_attention_fwd(
            *(of.q, of.k, of.v, out, of.request, of.query_start, of.length, of.ready),
            *(keys // 2, of.table),
        )
        return out

    return op, of.expected


@call(PROMPTS, PROMPT, dtypes=HALF)
def context_attention_of_a_window(dtype, count, keys):
    of = Cache(dtype, count, keys)
    order = torch.cat(of.slots).long()
    k, v, window = of.k[order], of.v[order], keys // 2

    def op():
        out = torch.empty_like(of.q)
        windowed.context_attention_fwd(of.q, k, v, out, of.start, of.length, keys, window)
        return out

    return op, lambda: of.expected(window=window)


@call(PROMPTS, PROMPT, dtypes=HALF)
def split_prompts(dtype, count, keys):
    of = Cache(dtype, count, keys, keys // 2)

    def op():
        out = torch.empty_like(of.q)
        splitfuse_context_flashattention_nopad.splitfuse_context_attention_fwd(
            *(of.q, of.k, of.v, out, count, of.table, of.request, of.query_start, of.ready),
            *(of.length, keys // 2),
        )
        return out

    return op, of.expected


# Copies into the cache


@call(TOKENS, dtypes=HALF)
def copy_to_cache(dtype, tokens):
    k, where = torch.randn(tokens, SHARED, HEAD, dtype=dtype), torch.randperm(tokens).int()

    def op():
        out = torch.empty_like(k)
        destindex_copy_kv.destindex_copy_kv(k, where, out)
        return out

    return op, lambda: torch.empty_like(k).index_copy_(0, where.long(), k)


@call(TOKENS, dtypes=HALF)
def quantise_to_cache(dtype, tokens):
    k, where = torch.randn(tokens, SHARED, HEAD, dtype=dtype), torch.randperm(tokens).int()

    def op():
        out = torch.empty(k.shape, dtype=torch.int8)
        scale = torch.empty(tokens, SHARED, 1, dtype=dtype)
        destindex_copy_kv.destindex_copy_quantize_kv(k, where, out, scale)
        return out * scale

    return op, lambda: torch.empty(k.shape).double().index_copy_(0, where.long(), quantised(k)[2])


@call(TOKENS, dtypes=HALF)
def quantise_groups_to_cache(dtype, tokens):
    k, where = torch.randn(tokens, SHARED, HEAD, dtype=dtype), torch.randperm(tokens).int()

    def op():
        out = torch.empty(k.shape, dtype=torch.int8)
        scale = torch.empty(tokens, SHARED, HEAD // 8, dtype=dtype)
        ppl_quant_copy_kv.destindex_copy_quantize_kv(k, where, out, scale)
        return out * scale.repeat_interleave(8, -1)

    return op, lambda: torch.empty_like(k).index_copy_(0, where.long(), k)


# Products of numbers of 8 and 4 bits

ROWS, INNER, COLUMNS = Size(40, 4096, 16), Size(256, 4096, 4096), Size(128, 4096, 4096)


@call(ROWS, INNER, COLUMNS, dtypes=HALF, timed=BOTH)
def matmul_int8(dtype, rows, inner, columns):
    a = torch.randn(rows, inner, dtype=dtype)
    codes = torch.randint(-127, 128, (columns, inner), dtype=torch.int8).T
    scale = torch.rand(columns, dtype=dtype) / 100

    def op():
        out = torch.empty(rows, columns, dtype=dtype)
        return quantize_gemm_int8.matmul_quantize_int8(a, codes, scale, out)

    return op, lambda: quantised(a.float())[2] @ (codes.double() * scale)


@call(ROWS, INNER, COLUMNS, dtypes=HALF, timed=(WIDE,))
def dequantize_int8(dtype, rows, inner, columns):
    a = torch.randn(rows, inner, dtype=dtype)
    codes = torch.randint(-127, 128, (columns, inner), dtype=torch.int8).T
    scale = torch.rand(columns, dtype=dtype) / 100
    return (
        lambda: dequantize_gemm_int8.matmul_dequantize_int8(a, codes, scale),
        lambda: a.double() @ (codes.double() * scale),
    )


def _int4(product, dtype, rows, inner, columns, group=128):
    """Eight numbers of 4 bits are in a word: of a column, and of the zeros of a row."""
    a, groups = torch.randn(rows, inner, dtype=dtype), inner // group
    codes, zeros = (torch.randint(0, 16, (n, columns)) for n in (inner, groups))
    scale = torch.rand(groups, columns, dtype=dtype) / 10
    shifts = torch.arange(0, 32, 4)
    words = (codes.view(-1, 8, columns) << shifts[:, None]).sum(1).int()
    zero_words = (zeros.view(groups, -1, 8) << shifts).sum(-1).int()
    rows_of = [x.repeat_interleave(group, 0) for x in (zeros, scale)]
    numbers = (codes - rows_of[0]).double() * rows_of[1]
    return lambda: product(a, words, scale, zero_words, group), lambda: a.double() @ numbers


@call(ROWS, INNER, COLUMNS, dtypes=HALF, timed=BOTH)
def matmul_int4(dtype, *dims):
    return _int4(dequantize_gemm_int4.matmul_dequantize_int4_s2, dtype, *dims)


@call(ROWS, INNER, COLUMNS, dtypes=HALF, timed=BOTH)
def matmul_int4_gptq(dtype, *dims):
    return _int4(dequantize_gemm_int4.matmul_dequantize_int4_gptq, dtype, *dims)


@call(ROWS, INNER, COLUMNS, dtypes=HALF, timed=(WIDE,))
def dequantize_int4(dtype, *dims):
    return _int4(dequantize_gemm_int4.matmul_dequantize_int4_s1, dtype, *dims)


# Rows


@call(TOKENS, HIDDEN, dtypes=HALF)
def rms_norm(dtype, *shape):
    x, w = torch.randn(shape, dtype=dtype), torch.randn(shape[-1], dtype=dtype)
    return lambda: rmsnorm.rmsnorm_forward(x, w, 1e-6), lambda: rms(x, w)


@call(TOKENS, HIDDEN, dtypes=HALF)
def layer_norm(dtype, *shape):
    x, *wb = torch.randn(shape, dtype=dtype), *torch.randn(2, shape[-1], dtype=dtype)
    return (
        lambda: bloom_layernorm.layernorm_forward(x, *wb, 1e-5),
        lambda: torch.nn.functional.layer_norm(
            x.double(), shape[-1:], *(one.double() for one in wb), 1e-5
        ),
    )


@call(TOKENS, HIDDEN, dtypes=HALF)
def silu_mul(dtype, rows, columns):
    x = torch.randn(rows, 2 * columns, dtype=dtype)

    def op():
        given = x.clone()
        silu_and_mul.silu_and_mul_fwd(given)
        return given[:, :columns]

    return op, lambda: gated(x)


def angles_of(tokens, pairs, dtype):
    angles = torch.rand(tokens, pairs) * 6
    return angles.cos().to(dtype), angles.sin().to(dtype)


@call(TOKENS, dtypes=HALF)
def rotary(dtype, tokens):
    q, k = (torch.randn(tokens, n, HEAD, dtype=dtype) for n in (HEADS, SHARED))
    cos, sin = angles_of(tokens, HEAD // 2, dtype)

    def op():
        given = q.clone(), k.clone()
        rotary_emb.rotary_emb_fwd(*given, cos, sin)
        return given

    return op, lambda: tuple(rotated(x, cos[:, None], sin[:, None]) for x in (q, k))


@call(TOKENS, dtypes=HALF)
def rotary_of_a_half(dtype, tokens):
    """Pairs of neighbours, in the first half of each head."""
    q, k = (torch.randn(tokens, n, HEAD, dtype=dtype) for n in (HEADS, SHARED))
    cos, sin = angles_of(tokens, HEAD // 4, dtype)

    def op():
        given = q.clone(), k.clone()
        glm_rotary.rotary_emb_fwd(*given, cos, sin)
        return given

    def turned(x):
        first, rest = x.double().chunk(2, -1)
        pairs = torch.cat((first[..., ::2], first[..., 1::2]), -1)
        both = rotated(pairs, cos[:, None], sin[:, None]).chunk(2, -1)
        return torch.cat((torch.stack(both, -1).flatten(-2), rest), -1)

    return op, lambda: (turned(q), turned(k))


@call(Size(3, 256, 16), Size(1000, 32000, 128256))
def penalties(dtype, count, vocabulary):
    x = torch.randn(count, vocabulary)
    seen = [torch.randperm(vocabulary)[: 200 + 7 * n % 300].int() for n in range(count)]
    ids, counts = torch.cat(seen), torch.randint(1, 9, (sum(map(len, seen)),)).int()
    ends = torch.tensor([0, *map(len, seen)]).cumsum(0).int()
    rates = torch.rand(3, count) + 1

    def op():
        given = x.clone()
        apply_penalty.apply_penalty(given, *rates, ids, counts, ends, 512)
        return given

    def reference():
        out = x.double()
        for row, own in enumerate(seen):
            presence, frequency, repetition = rates[:, row].tolist()
            old = out[row, own.long()]
            new = torch.where(old > 0, old / repetition, old * repetition)
            times = counts[ends[row] : ends[row + 1]]
            out[row, own.long()] = new - times * frequency - presence
        return out

    return op, reference
