"""Cases of SGLang: mixtures of experts, who chooses them and what brings rows to them, products of
8 bits, and LoRA."""

import types

import torch
import torch.nn.functional as F
import triton.language as tl
from library_case import BOTH, HALVES, HIDDEN, TOKENS, Size
from library_references import (
    EXPERTS,
    FP8,
    GROUP,
    TOP,
    aligned,
    by_block,
    by_row,
    experts,
    gated,
    lengths,
    routes,
    starts,
    weights_of,
    whole,
)
from sglang_case import call

# isort: split
from sglang.kernels.ops.gemm import fp8_kernel, int8_kernel, router_gate_matvec
from sglang.kernels.ops.lora.dense import (
    chunked_sgmv_expand,
    chunked_sgmv_shrink,
    gate_up_lora_b,
    kv_b_lora_absorbed,
    qkv_lora_b,
    sgemm_lora_a,
    sgemm_lora_b,
)
from sglang.kernels.ops.moe import (
    ep_moe_kernels,
    fused_moe_triton_kernels,
    gate_topk,
    gemma4_routing,
    inkling_moe,
    moe_align_small_numel,
    moe_fused_gate,
    moe_fused_mul_sum,
    router,
)
from sglang.srt.layers.moe.moe_runner.triton_utils import fused_moe_triton_config

ROUTED, INNER = Size(40, 4096, 16), Size(128, 2048, 2048)
ROWS, COLUMNS = Size(40, 4096, 16), Size(256, 4096, 4096)
TYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}

# What it calls its CUDA for.
fused_moe_triton_kernels.scaled_fp8_quant = lambda x, scale, **_: by_row(x, FP8)
fused_moe_triton_kernels.sglang_per_token_group_quant_fp8 = by_block


def _layer(dtype, x, weights, scales, shares, ids, kind=None, block=None):
    """What `fused_experts` of the library does where it takes its Triton kernels; alignment is
    torch's here, for it is the library's CUDA."""
    tokens, hidden = len(ids), weights[1].shape[1]
    shape = tokens, EXPERTS, weights[0].shape[1], hidden, TOP, kind, False, block
    config = fused_moe_triton_config.get_default_config(*shape)
    order = aligned(ids, config["BLOCK_SIZE_M"])
    kinds = [kind == name for name in ("fp8_w8a8", "int8_w8a8", "int8_w8a16", "int4_w4a16")]

    def product(a, number, is_last):
        out = torch.empty(tokens, TOP, weights[number].shape[1], dtype=dtype)
        fused_moe_triton_kernels.invoke_fused_moe_kernel(
            *(a, weights[number], None, out, None, scales[number], None, shares, ids, *order),
            *(is_last, 1 if is_last else TOP, config, TYPES[dtype], *kinds),
            bool(kind) and block is None,
            block,
        )
        return out

    def op():
        inner = torch.empty(tokens * TOP, weights[0].shape[1] // 2, dtype=dtype)
        rows = product(x, 0, False).flatten(0, 1)
        fused_moe_triton_kernels.act_and_mul_triton(rows, inner, config, ids)
        out = torch.empty(tokens, hidden, dtype=dtype)
        fused_moe_triton_kernels.moe_sum_reduce_triton(product(inner, 1, True), out, 1.0)
        return out

    return op


@call(ROUTED, HIDDEN, INNER, dtypes=HALVES, timed=BOTH)
def mixture(dtype, tokens, hidden, inner):
    x = torch.randn(tokens, hidden, dtype=dtype)
    weights, (shares, ids) = [w.to(dtype) for w in weights_of(hidden, inner)], routes(tokens)
    op = _layer(dtype, x, weights, [None, None], shares, ids)
    return op, lambda: experts(x, *weights, shares, ids)


def _mixture_8(dtype, tokens, hidden, inner, kind, kept):
    x, (shares, ids) = torch.randn(tokens, hidden, dtype=dtype), routes(tokens)
    given = [by_row(one, kept) for one in weights_of(hidden, inner)]
    weights, scales = zip(*given, strict=True)
    op = _layer(dtype, x, weights, scales, shares, ids, kind)
    x = whole(*by_row(x, kept))
    return op, lambda: experts(x, *(whole(*one) for one in given), shares, ids)


@call(ROUTED, HIDDEN, INNER, timed=BOTH)
def mixture_fp8(dtype, *dims):
    return _mixture_8(dtype, *dims, "fp8_w8a8", FP8)


@call(ROUTED, HIDDEN, INNER)
def mixture_int8(dtype, *dims):
    return _mixture_8(dtype, *dims, "int8_w8a8", torch.int8)


@call(ROUTED, HIDDEN, INNER, timed=BOTH)
def mixture_fp8_blocks(dtype, tokens, hidden, inner):
    x, (shares, ids) = torch.randn(tokens, hidden, dtype=dtype), routes(tokens)
    given = [by_block(w, GROUP, GROUP) for w in weights_of(hidden, inner)]
    weights, scales = zip(*given, strict=True)
    op = _layer(dtype, x, weights, scales, shares, ids, "fp8_w8a8", [GROUP, GROUP])
    x, numbers = whole(*by_block(x, GROUP), GROUP), [whole(*one, GROUP, GROUP) for one in given]
    return op, lambda: experts(x, *numbers, shares, ids)


@call(ROUTED, HIDDEN, INNER, dtypes=HALVES)
def mixture_int4(dtype, tokens, hidden, inner):
    """A row of codes of 4 bits has two of them in a byte, and a scale for a group."""
    x, (shares, ids) = torch.randn(tokens, hidden, dtype=dtype), routes(tokens)
    codes = [torch.randint(0, 16, w.shape) for w in weights_of(hidden, inner)]
    scales = [torch.rand(*n.shape[:2], n.shape[2] // GROUP).to(dtype) / 16 for n in codes]
    weights = [(n[..., ::2] | n[..., 1::2] << 4).to(torch.uint8) for n in codes]
    numbers = [whole(n - 8, s, GROUP) for n, s in zip(codes, scales, strict=True)]
    op = _layer(dtype, x, weights, scales, shares, ids, "int4_w4a16", [0, GROUP])
    return op, lambda: experts(x, *numbers, shares, ids)


@call(ROUTED, HIDDEN, INNER, timed=BOTH)
def grouped_product(dtype, tokens, hidden, inner):
    """Of rows that lie in the order of their experts."""
    ids = routes(tokens)[1].flatten().sort().values
    x, w = torch.randn(len(ids), hidden), torch.randn(EXPERTS, inner, hidden) / hidden**0.5
    x, w = x.to(dtype), w.to(dtype)

    def op():
        block = inkling_moe.select_grouped_gemm_block_m(len(ids))
        where = inkling_moe.compute_grouped_gemm_metadata(ids, EXPERTS, block_size_m=block)
        return inkling_moe.grouped_gemm_triton(x, w, EXPERTS, *where, block)

    def reference():
        out = torch.empty(len(ids), inner, dtype=torch.float64)
        for number in range(EXPERTS):
            out[ids == number] = x[ids == number].double() @ w[number].double().T
        return out

    return op, reference


# Who is chosen


@call(Size(60, 8192, 16), Size(64, 256, 256), dtypes=(torch.float32, torch.bfloat16))
def chosen_of_groups(dtype, tokens, count, groups=8, kept=4, most=8):
    """DeepSeek's: of the groups with the largest sums of two, the largest."""
    scores, bias = torch.randn(tokens, count, dtype=dtype), torch.rand(count)

    def op():
        shares, ids = moe_fused_gate.moe_fused_gate(
            *(scores, bias, most),
            routed_scaling_factor=2.5,
            apply_routed_scaling_factor_on_output=True,
            num_expert_group=groups,
            topk_group=kept,
        )
        return torch.zeros(tokens, count).scatter_(1, ids.long(), shares)

    def reference():
        own = scores.double().sigmoid()
        each = (own + bias).unflatten(1, (groups, -1))
        best = each.topk(2).values.sum(-1).topk(kept).indices
        hidden = torch.ones(tokens, groups, dtype=torch.bool).scatter_(1, best, False)
        ids = each.masked_fill(hidden[..., None], -torch.inf).flatten(1).topk(most).indices
        shares = own.gather(1, ids)
        shares = shares / shares.sum(-1, keepdim=True) * 2.5
        return torch.zeros(tokens, count, dtype=torch.float64).scatter_(1, ids, shares)

    return op, reference


@call(Size(60, 8192, 16), Size(64, 128, 128), dtypes=(torch.float32, torch.bfloat16))
def chosen(dtype, tokens, count, most=8):
    """Numbers and places of the largest, and Gemma's shares of them."""
    scores = torch.stack([torch.randperm(count) for _ in range(tokens)]).to(dtype) / 16
    scale = torch.rand(count)

    def op():
        values, ids = gate_topk.gate_topk(scores, most)
        shares, own = gemma4_routing.gemma4_fused_routing(scores, scale, most)
        every = torch.zeros(tokens, count).scatter_(1, own.long(), shares)
        return values.float(), ids.long(), every

    def reference():
        values, ids = scores.double().topk(most)
        every = torch.zeros(tokens, count, dtype=torch.float64)
        return values, ids, every.scatter_(1, ids, values.softmax(-1) * scale[ids])

    return op, reference


@call(TOKENS, HIDDEN, dtypes=HALVES)
def routed(dtype, tokens, hidden, count=8, cap=30.0):
    """Grok's: a product, of which the two largest are chosen."""
    x, w = torch.randn(tokens, hidden), torch.randn(count, hidden) / hidden**0.5
    x, w = x.to(dtype), w.to(dtype)

    def op():
        small = router.fused_moe_router_cudacore(x, w, 2, cap)
        how = {"BLOCK_SIZE_M": 32, "BLOCK_SIZE_N": 16, "BLOCK_SIZE_K": 256}
        large = router.fused_moe_router_tensorcore(x, w, 2, cap, **how)
        return [torch.zeros(tokens, count).scatter_(1, ids.long(), n) for n, ids in (small, large)]

    def reference():
        scores = cap * torch.tanh(x.double() @ w.double().T / cap)
        shares, ids = scores.softmax(-1).topk(2)
        every = torch.zeros(tokens, count, dtype=torch.float64).scatter_(1, ids, shares)
        return [every, every]

    return op, reference


@call(Size(5, 16, 2), HIDDEN, dtypes=(torch.bfloat16,))
def routed_few(dtype, tokens, hidden, count=64):
    """Scores of a few tokens by weights of fp32."""
    x, w = torch.randn(tokens, hidden, dtype=dtype), torch.randn(count, hidden)
    return lambda: router_gate_matvec.router_gate_matvec(x, w), lambda: x.double() @ w.double().T


@call(Size(9, 40, 2), dtypes=(torch.int32,))
def aligned_routes(dtype, tokens, block=16):
    """Of a few routes. Ids begin at 1 there."""
    ids = routes(tokens)[1]
    expected = aligned(ids, block)
    most = len(expected[0])

    def op():
        rows = torch.full((most,), ids.numel(), dtype=dtype)
        blocks, total = torch.zeros(most // block, dtype=dtype), torch.zeros(1, dtype=dtype)
        moe_align_small_numel.moe_align_small_numel(ids, EXPERTS + 1, block, rows, blocks, total)
        return rows, blocks, total

    return op, lambda: expected


# Rows of experts


@call(ROUTED, HIDDEN, dtypes=HALVES)
def reordered(dtype, tokens, hidden):
    """To the rows of experts, and back."""
    x, (shares, ids) = torch.randn(tokens, hidden, dtype=dtype), routes(tokens)

    def op():
        _, where, _ = ep_moe_kernels.deepep_run_moe_deep_preprocess(ids, EXPERTS)
        rows = torch.empty(tokens * TOP, hidden, dtype=dtype)
        ep_moe_kernels._moe_permute_rows(x, ids, where, rows)
        return rows, ep_moe_kernels.moe_unpermute(rows, where, ids, shares)

    def reference():
        order = ids.flatten().argsort(stable=True)
        return x[order // TOP], x.double() * shares.sum(-1, keepdim=True)

    return op, reference


@call(ROUTED, HIDDEN)
def scattered_fp8(dtype, tokens, hidden, align=128):
    """Rows of experts begin at multiples; what each token's are goes back with their shares."""
    shares, ids = routes(tokens)
    codes, scale = by_block(torch.randn(tokens, hidden), GROUP)
    counts = ids.flatten().bincount(minlength=EXPERTS).int()
    padded = -(-counts // align) * align
    total = int(padded.sum())

    def op():
        rows, scales = torch.zeros(total, hidden).to(FP8), torch.zeros(total, hidden // GROUP)
        numbers, where = torch.zeros(total, dtype=torch.int32), torch.empty_like(ids)
        begin = torch.empty(EXPERTS, dtype=torch.int32)
        ep_moe_kernels.ep_scatter(
            *(codes, scale, ids, padded, counts, begin, rows, scales, numbers, where)
        )
        out = torch.empty(tokens, hidden, dtype=dtype)
        ep_moe_kernels.ep_gather(whole(rows, scales, GROUP).to(dtype), ids, shares, where, out)
        return out, numbers[where.long()]

    return op, lambda: (whole(codes, scale, GROUP) * shares.sum(-1, keepdim=True), ids)


@call(Size(40, 1024, 16), INNER)
def masked_silu_mul_fp8(dtype, rows, columns):
    """Of each expert the first rows."""
    x, count = torch.randn(EXPERTS, rows, 2 * columns, dtype=dtype), torch.arange(EXPERTS) % 5
    count = count * rows // 5
    hidden = (torch.arange(rows) >= count[:, None])[..., None]

    def op():
        codes = torch.zeros(EXPERTS, rows, columns).to(FP8)
        scale = torch.zeros(EXPERTS, rows, columns // GROUP)
        ep_moe_kernels.silu_and_mul_masked_post_quant_fwd(x, codes, scale, GROUP, count.int())
        return whole(codes, scale, GROUP)

    return op, lambda: whole(*by_block(gated(x), GROUP), GROUP).masked_fill(hidden, 0)


@call(ROUTED, HIDDEN, dtypes=HALVES)
def summed(dtype, tokens, hidden, most=8):
    """What the experts of a token give, with their shares, and alone; and gates beside numbers."""
    rows, shares = torch.randn(tokens, most, hidden, dtype=dtype), torch.rand(tokens, most)

    def op():
        out = torch.empty(tokens, hidden, dtype=dtype)
        fused_moe_triton_kernels.moe_sum_reduce_triton(rows, out, 0.5)
        inner = inkling_moe.silu_and_mul(rows.flatten(0, 1), shares.flatten())
        return out, moe_fused_mul_sum.moe_fused_mul_sum(rows, shares), inner

    def reference():
        each = rows.double()
        gate, up = each.flatten(0, 1).unflatten(1, (-1, 2)).unbind(-1)
        inner = F.silu(gate) * up * shares.flatten()[:, None]
        return each.sum(1) / 2, (each * shares[..., None]).sum(1), inner

    return op, reference


# Products of 8 bits


@call(ROWS, COLUMNS, COLUMNS, dtypes=HALVES, timed=BOTH)
def product_fp8_blocks(dtype, rows, columns, inner):
    a = by_block(torch.randn(rows, inner), GROUP)
    b = by_block(torch.randn(columns, inner), GROUP, GROUP)
    (x, x_scale), (w, w_scale) = a, b
    return (
        lambda: fp8_kernel.w8a8_block_fp8_matmul_triton(
            *(x, w, x_scale, w_scale, [GROUP, GROUP], dtype)
        ),
        lambda: whole(*a, GROUP) @ whole(*b, GROUP, GROUP).T,
    )


@call(ROWS, COLUMNS, COLUMNS)
def product_int8_blocks(dtype, rows, columns, inner):
    x, w = (torch.randint(-128, 128, (n, inner), dtype=torch.int8) for n in (rows, columns))
    x_scale = torch.rand(rows, inner // GROUP) / 64
    w_scale = torch.rand(columns // GROUP, inner // GROUP) / 64
    given = x, w, x_scale, w_scale, [GROUP, GROUP], dtype
    return (
        lambda: int8_kernel.w8a8_block_int8_matmul(*given),
        lambda: whole(x, x_scale, GROUP) @ whole(w, w_scale, GROUP, GROUP).T,
    )


@call(ROWS, COLUMNS, COLUMNS, timed=BOTH)
def product_fp8_rows(dtype, rows, columns, inner):
    a, b = (by_row(torch.randn(n, inner), FP8) for n in (rows, columns))
    bias = torch.randn(columns, dtype=dtype)
    given = a[0], b[0].T, a[1], b[1], dtype, bias
    return (
        lambda: fp8_kernel.triton_scaled_mm(*given),
        lambda: whole(*a) @ whole(*b).T + bias,
    )


# LoRA


def _batch(sizes, adapters, rank):
    """Of each request an adapter. Ranks are all those of the weights."""
    return types.SimpleNamespace(
        use_cuda_graph=False,
        bs=len(sizes),
        num_segments=len(sizes),
        seg_indptr=starts(sizes),
        weight_indices=torch.arange(len(sizes)).int() % adapters,
        lora_ranks=torch.full((adapters,), rank, dtype=torch.int32),
        scalings=torch.arange(adapters) / 2.0 + 0.5,
        max_len=max(sizes),
        seg_lens=torch.tensor(sizes, dtype=torch.int32),
        permutation=None,
    )


def adapted(x, sizes, batch, down, up, stack):
    """What an adapter adds of `stack` products: their weights lie one behind the other."""
    rank, widths = down.shape[1] // stack, [len(up[0]) // stack] * stack
    for part, number in zip(x.double().split(sizes), batch.weight_indices.tolist(), strict=True):
        inner = (part @ down[number].double().T).split(rank, 1)
        each = zip(inner, up[number].double().split(widths), strict=True)
        yield torch.cat([n @ w.T for n, w in each], 1) * batch.scalings[number]


def _adapters(dtype, count, longest, hidden, stack, adapters=3, rank=16):
    sizes = lengths(count, longest) if longest > 1 else [1] * count
    x = torch.randn(sum(sizes), hidden, dtype=dtype)
    down = (torch.randn(adapters, stack * rank, hidden) / hidden**0.5).to(dtype)
    up = torch.randn(adapters, stack * hidden, rank).to(dtype)
    before = torch.randn(len(x), stack * hidden, dtype=dtype)
    return x, sizes, _batch(sizes, adapters, rank), down, up, before


@call(Size(3, 8, 64), Size(40, 1024, 1), HIDDEN, dtypes=HALVES, timed=BOTH)
def adapters(dtype, count, longest, hidden):
    x, sizes, batch, down, up, before = _adapters(dtype, count, longest, hidden, 1)

    def op():
        inner = sgemm_lora_a.sgemm_lora_a_fwd(x, down, batch)
        return sgemm_lora_b.sgemm_lora_b_fwd(inner, up, batch, before.clone())

    return op, lambda: before + torch.cat(list(adapted(x, sizes, batch, down, up, 1)))


@call(Size(3, 8, 64), Size(40, 1024, 1), HIDDEN, dtypes=HALVES, timed=BOTH)
def adapters_stacked(dtype, count, longest, hidden):
    """Of queries, keys and values, and of gates and what they are for."""
    given = [_adapters(dtype, count, longest, hidden, stack) for stack in (3, 2)]

    def op():
        (x, _, batch, down, up, before), second = given
        inner = sgemm_lora_a.sgemm_lora_a_fwd(x, down, batch, 3)
        ends = torch.arange(4).int() * hidden
        first = qkv_lora_b.qkv_lora_b_fwd(inner, up, batch, ends, hidden, before.clone())
        x, _, batch, down, up, before = second
        inner = sgemm_lora_a.sgemm_lora_a_fwd(x, down, batch, 2)
        return first, gate_up_lora_b.gate_up_lora_b_fwd(inner, up, batch, hidden, before.clone())

    def reference():
        for stack, (*of, before) in zip((3, 2), given, strict=True):
            yield before + torch.cat(list(adapted(*of, stack)))

    return op, lambda: tuple(reference())


@call(Size(3, 16, 64), HIDDEN, dtypes=HALVES, timed=BOTH)
def adapters_chunks(dtype, count, hidden, chunk=16):
    """Chunks of rows of an adapter each, in an order of their own."""
    x, sizes, batch, down, up, before = _adapters(dtype, count, 1, hidden, 2)
    sizes = [chunk] * count
    x, before = (n.repeat_interleave(chunk, 0) for n in (x, before))
    order = torch.randperm(len(x))
    batch.seg_indptr, batch.max_len, batch.permutation = starts(sizes), chunk, order.int()

    def op():
        inner = chunked_sgmv_shrink.chunked_sgmv_lora_shrink_forward(x, down, batch, 2)
        ends = torch.arange(3).int() * hidden
        given = inner, up, batch, ends, hidden, before.clone()
        return chunked_sgmv_expand.chunked_sgmv_lora_expand_forward(*given)

    def reference():
        out = before.double()
        out[order] += torch.cat(list(adapted(x[order], sizes, batch, down, up, 2)))
        return out

    return op, reference


@call(Size(3, 8, 64), Size(40, 512, 1), timed=BOTH)
def adapters_latent(dtype, count, longest, heads=16, own=128, latent=512, rank=16, adapters=3):
    """Of queries of MLA, whose product with the keys' weights is theirs."""
    sizes = lengths(count, longest) if longest > 1 else [1] * count
    batch = _batch(sizes, adapters, rank)
    q = torch.randn(sum(sizes), heads, own, dtype=dtype)
    up = (torch.randn(adapters, heads * 2 * own, rank) / own**0.5).to(dtype)
    down = (torch.randn(adapters, rank, latent) / rank**0.5).to(dtype)
    before = torch.randn(len(q), heads, latent, dtype=dtype)

    def op():
        inner = kv_b_lora_absorbed.step_a_q_fwd(q, up, batch, 2 * own)
        return kv_b_lora_absorbed.step_b_q_fwd(inner, down, batch, before.clone())

    def reference():
        rows = zip(q.double().split(sizes), batch.weight_indices.tolist(), strict=True)
        for part, number in rows:
            keys = up[number].double().view(heads, 2 * own, rank)[:, :own]
            inner = torch.einsum("shk,hkr->shr", part, keys)
            yield inner @ down[number].double() * batch.scalings[number]

    return op, lambda: before + torch.cat(list(reference()))
