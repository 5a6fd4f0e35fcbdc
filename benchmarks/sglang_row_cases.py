"""Cases of SGLang: rows of numbers (norms, angles, numbers of 8 bits), what stores them where keys
and values are kept, and what diffusion models do with them."""

import torch
import torch.nn.functional as F
from library_case import BOTH, HALVES, HEAD, HEADS, HIDDEN, SHARED, TOKENS, Size
from library_references import FP8, by_block, by_row, gated, lengths, rms, rotated, whole
from sglang_case import call

# isort: split
from sglang.kernels.ops.activation import (
    gelu_and_mul_triton,
    minimax_m3_swiglu,
    softcap,
)
from sglang.kernels.ops.attention import (
    fused_qk_rmsnorm_rope_gate,
    gemma_qkv_norm_rope,
    mla_kv_pack_quantize_fp8,
    mla_qk_prep,
    pad,
    position,
    rotary_triton,
    table_qk_norm_rope,
    triton_gdn_fused_proj,
)
from sglang.kernels.ops.attention.dsa import dequant_k_cache
from sglang.kernels.ops.diffusion.modulate import scale_shift_triton
from sglang.kernels.ops.diffusion.norm import (
    group_norm_silu_triton,
    norm_triton,
    rmsnorm_onepass_triton,
    rmsnorm_scale_shift_triton,
)
from sglang.kernels.ops.diffusion.quantization import (
    fp8_rowwise_triton,
    swiglu_fp8_rowwise_triton,
)
from sglang.kernels.ops.diffusion.rope import rotary_triton as diffusion_rotary
from sglang.kernels.ops.elementwise import elementwise
from sglang.kernels.ops.kvcache import cache_ops, mla_buffer
from sglang.kernels.ops.layernorm import (
    fused_rmsnorm,
    gemma4_fused_ops,
    mhc,
    minimax_m3_rmsnorm,
    rmsnorm_mxfp8,
)
from sglang.kernels.ops.quantization import (
    act_quant_triton,
    awq_triton,
    dsa_quant_k_cache,
    fp8_kernel,
    int8_kernel,
    mxfp8_quant,
)

GROUP = 128
LATENT, TURNED = 512, 64


# Norms


@call(TOKENS, HIDDEN, dtypes=HALVES)
def norms(dtype, *shape):
    """Of sums, which are kept; of two at once; Gemma's, whose weights are off by 1."""
    x, residual, other = torch.randn(3, *shape, dtype=dtype)
    w, second = torch.randn(2, shape[-1], dtype=dtype)

    def op():
        both = fused_rmsnorm.fused_dual_residual_rmsnorm(x, residual, w, second, 1e-6)
        gemma = minimax_m3_rmsnorm.gemma_fused_add_rmsnorm(x, residual, w, 1e-6)
        sandwich = gemma4_fused_ops.gemma_dual_rmsnorm_residual_scalar(
            *(x, w, other, second, w, residual, torch.tensor([0.5], dtype=dtype))
        )
        return both, gemma, fused_rmsnorm.fused_rmsnorm(x, w, 1e-6), sandwich

    def reference():
        added = rms(x, w) + residual
        total = x.double() + residual
        two = rms(rms(x, w) + rms(other, second), w)
        return (
            (rms(added, second), added),
            (rms(total, w.double() + 1), total),
            rms(x, w),
            (two + residual) / 2,
        )

    return op, reference


@call(TOKENS, HIDDEN)
def norms_mxfp8(dtype, *shape):
    """A scale of 8 bits for 32 numbers each, as a tensor core of Blackwell's reads them."""
    x, w = torch.randn(shape, dtype=dtype), torch.randn(shape[-1], dtype=dtype)

    def op():
        codes, scale = mxfp8_quant.to_mxfp8(x)
        normed, own, _ = rmsnorm_mxfp8.rmsnorm_mxfp8(x, w, 1e-6)
        exponents = scale.view(torch.uint8).double() - 127
        return whole(codes, 2.0 ** exponents.view(shape[0], -1), 32), normed, own.float().sign()

    return op, lambda: (x, rms(x, w), rms(x, w).sign())


@call(TOKENS, HIDDEN, dtypes=(torch.bfloat16,), timed=BOTH)
def stream_mix(dtype, tokens, hidden, streams=4):
    """What mixes the streams of DeepSeek's hyper-connections, and their sum with shares."""
    hidden //= streams
    x = torch.randn(tokens, streams * hidden, dtype=dtype)
    w, shares = torch.randn(24, streams * hidden) / 64, torch.rand(tokens, streams)

    def op():
        mixed = mhc.hc_mix_stats(x, w, 1e-6)
        return mixed, mhc.mhc_combine(x, shares, streams, dtype)

    def reference():
        y = x.double()
        scale = torch.rsqrt(y.square().mean(-1, keepdim=True) + 1e-6)
        each = y.view(tokens, streams, hidden) * shares[..., None]
        return y @ w.double().T * scale, each.sum(1)

    return op, reference


# Angles


@call(TOKENS, dtypes=HALVES)
def norms_and_rotary(dtype, tokens, turned=64):
    """Of heads whose first dimensions are turned; each query has a gate beside it."""
    q, gate = torch.randn(2, tokens, HEADS, HEAD, dtype=dtype)
    k = torch.randn(tokens, SHARED, HEAD, dtype=dtype)
    weights = torch.randn(2, HEAD, dtype=dtype)
    angles, at = _angles(turned), torch.randint(0, 1024, (tokens,))

    def op():
        both = torch.cat((q, gate), -1).flatten(1)
        return fused_qk_rmsnorm_rope_gate.fused_qk_gemma_rmsnorm_rope_gate(
            *(both, k.flatten(1), *weights, angles, at, 1e-6, HEADS, SHARED, HEAD, turned)
        )

    def reference():
        for x, w in zip((q, k), weights, strict=True):
            yield _turned(rms(x, w.double() + 1), angles[at], turned).flatten(1)
        yield gate

    return op, lambda: tuple(reference())


def _angles(turned):
    angles = torch.rand(1024, turned // 2) * 6
    return torch.cat((angles.cos(), angles.sin()), -1)


def _turned(x, angles, turned):
    """Heads whose first dimensions are turned."""
    first, rest = x.split((turned, x.shape[-1] - turned), -1)
    return torch.cat((rotated(first, *angles[:, None].chunk(2, -1)), rest), -1)


@call(TOKENS)
def norms_and_rotary_of_rows(dtype, tokens):
    """Queries, keys and values lie in one row, in which the result is."""
    row = torch.randn(tokens, HEADS + 2 * SHARED, HEAD, dtype=dtype)
    weights = torch.randn(2, HEAD, dtype=dtype)
    angles, at = _angles(HEAD), torch.randint(0, 1024, (tokens,))

    def op():
        out, parts = row.clone().flatten(1), row.split((HEADS, SHARED, SHARED), 1)
        table_qk_norm_rope.table_qk_norm_rope_(
            out, at, *weights, angles.to(dtype), HEADS, SHARED, HEAD, 1e-6
        )
        q, k, v = (n.flatten(1).clone() for n in parts)
        gemma = gemma_qkv_norm_rope.gemma_qkv_norm_rope(
            *(q, k, v, *weights, angles, at, HEADS, SHARED, HEAD, HEAD, 1e-6)
        )
        return out, torch.cat(gemma or (q, k, v), 1)

    def reference():
        q, k, v = row.split((HEADS, SHARED, SHARED), 1)
        cache = angles.to(dtype).double()[at]
        for table, value in ((cache, v.double()), (angles[at], rms(v, torch.ones(HEAD)))):
            each = zip((q, k), weights, strict=True)
            turned = [_turned(rms(x, w), table, HEAD) for x, w in each]
            yield torch.cat((*turned, value), 1).flatten(1)

    return op, lambda: tuple(reference())


@call(TOKENS, dtypes=HALVES)
def rotary_sections(dtype, tokens, sections=(16, 24, 24)):
    """Angles of time, height and width."""
    q, k = (torch.randn(tokens, n, HEAD, dtype=dtype) for n in (HEADS, SHARED))
    angles, at = _angles(HEAD).to(dtype), torch.randint(0, 1024, (3, tokens))

    def op():
        given = q.flatten(1).clone(), k.flatten(1).clone()
        axes = torch.zeros(HEAD // 2, dtype=torch.int64)
        rotary_triton.triton_mrope_fused(
            *(*given, angles, at, list(sections), HEAD, HEAD, False, False, True, axes)
        )
        return given

    def reference():
        chosen = [
            torch.cat([x[n, :, None] for n, x in enumerate(part.split(sections, -1))], -1)
            for part in angles[at].chunk(2, -1)
        ]
        return tuple(rotated(x, *chosen).flatten(1) for x in (q, k))

    return op, reference


@call(TOKENS, dtypes=HALVES)
def split_projection(dtype, tokens, keys=16, shared=2, head=128):
    """Of a delta rule: heads' queries, keys, values and gates, which lie by head of keys."""
    wide = shared * head
    mixed = torch.randn(tokens, keys, 2 * head + 2 * wide, dtype=dtype)
    gates = torch.randn(tokens, keys, 2 * shared, dtype=dtype)
    given = mixed.flatten(1), gates.flatten(1), keys, keys * shared, head, head

    def reference():
        q, k, v, z = mixed.split((head, head, wide, wide), -1)
        b, a = gates.split(shared, -1)
        row = torch.cat([n.flatten(1) for n in (q, k, v)], 1)
        return row, z.reshape(tokens, -1, head), b.flatten(1), a.flatten(1)

    return lambda: triton_gdn_fused_proj.fused_qkvzba_split_reshape_cat(*given), reference


# Activations


@call(TOKENS, HIDDEN, dtypes=HALVES)
def activations(dtype, *shape):
    x, both = torch.randn(shape, dtype=dtype), torch.randn(shape[0], 2 * shape[1], dtype=dtype)
    logits = torch.randn(shape)

    def op():
        capped = softcap.softcap_inplace_logits(logits.clone(), 30.0)
        gates = elementwise.sigmoid_gate_mul_broadcast(x, x[:, :1].contiguous())
        pair = minimax_m3_swiglu.swiglu_oai_split(both, 1.7, 1.0, 7.0)
        return gelu_and_mul_triton.gelu_and_mul_triton(both)[0], capped, gates, pair

    def reference():
        gate, up = both.double().chunk(2, -1)
        pair = gate.clamp(max=7) * (1.7 * gate.clamp(max=7)).sigmoid() * (up.clamp(-7, 7) + 1)
        capped = 30 * torch.tanh(logits.double() / 30)
        return F.gelu(gate) * up, capped, x * x[:, :1].double().sigmoid(), pair

    return op, reference


# Numbers of 8 and 4 bits


@call(TOKENS, HIDDEN)
def quantise_fp8(dtype, *shape):
    x = torch.randn(shape, dtype=dtype)

    def op():
        group = fp8_kernel._per_token_group_quant_8bit_raw
        yield whole(*act_quant_triton.act_quant(x), GROUP)
        yield whole(*group(x, GROUP), GROUP)
        yield whole(*group(x, GROUP, column_major_scales=True), GROUP)
        yield whole(*fp8_kernel.static_quant_fp8(x, torch.tensor([0.01])))

    def reference():
        yield from [whole(*by_block(x, GROUP), GROUP)] * 3
        yield (x.float() / 0.01).clamp(-448, 448).to(FP8).double() * 0.01

    return lambda: list(op()), lambda: list(reference())


@call(TOKENS, HIDDEN)
def quantise_int8(dtype, *shape):
    x = torch.randn(shape, dtype=dtype)

    def op():
        groups = int8_kernel.per_token_group_quant_int8(x, GROUP)
        return whole(*int8_kernel.per_token_quant_int8(x)), whole(*groups, GROUP)

    return op, lambda: (x, x)


@call(Size(15, 4096, 16), Size(16, 32, 32))
def quantise_latent(dtype, tokens, heads):
    """Of heads' queries: a scale for all, and for each group of a head."""
    x = torch.randn(tokens, heads, LATENT, dtype=dtype).transpose(0, 1)

    def op():
        codes, scale = fp8_kernel.per_tensor_quant_mla_fp8(x, torch.zeros(1))
        own, scales, *_ = fp8_kernel.per_token_group_quant_mla_deep_gemm_masked_fp8(x)
        return whole(codes, scale), whole(own[:, :tokens], scales[:, :tokens], GROUP)

    def reference():
        scale = x.abs().max().float() / 448
        return (x / scale).to(FP8).double() * scale, whole(*by_block(x, GROUP), GROUP)

    return op, reference


@call(HIDDEN, HIDDEN, dtypes=(torch.float16,))
def dequantise_int4(dtype, rows, columns):
    """AWQ's order of codes."""
    codes, zeros = (torch.randint(0, 16, (n, columns)) for n in (rows, rows // GROUP))
    scale = torch.rand(rows // GROUP, columns).to(dtype) / 10

    def packed(n):
        places = torch.tensor([0, 16, 4, 20, 8, 24, 12, 28])
        return (n.view(len(n), -1, 8) << places).sum(-1).to(torch.int32)

    def op():
        return awq_triton.awq_dequantize_triton(packed(codes), scale, packed(zeros))

    def reference():
        apart = codes - zeros.repeat_interleave(GROUP, 0)
        return apart * scale.double().repeat_interleave(GROUP, 0)

    return op, reference


# Where keys and values are kept


@call(TOKENS)
def latent_cache_fp8(dtype, tokens):
    """Of DeepSeek's sparse attention: codes, scales and angles' numbers in a row."""
    own, turned = (torch.randn(tokens, 1, n, dtype=dtype) for n in (LATENT, TURNED))
    slots = torch.randint(0, tokens, (tokens,))

    def op():
        rows = dsa_quant_k_cache.quantize_k_cache_separate(own, turned)
        row = torch.cat([n.view(torch.uint8) for n in rows], -1).view(FP8)
        return dequant_k_cache.dequantize_k_cache_paged_dsa(row, slots.int())

    def reference():
        return torch.cat((whole(*by_block(own, GROUP), GROUP), turned), -1)[slots]

    return op, reference


@call(TOKENS, dtypes=HALVES)
def cache(dtype, tokens, page=16):
    """Stores and loads."""
    k, v = torch.randn(2, tokens, SHARED, HEAD, dtype=dtype)
    own, turned = (torch.randn(tokens, 1, n, dtype=dtype) for n in (LATENT, TURNED))
    pages = -(-2 * tokens // page)
    slots = torch.randperm(pages * page)[:tokens]

    def op():
        caches = [torch.zeros(pages, page, SHARED, HEAD, dtype=dtype) for _ in range(2)]
        cache_ops.launch_reshape_and_cache_flash(k, v, *caches, slots)
        rows = torch.zeros(pages * page, 1, LATENT + TURNED, dtype=dtype)
        _store_latent(rows, slots, own, turned)
        parts = torch.empty_like(own), torch.empty_like(turned)
        mla_buffer.get_mla_kv_buffer_triton(rows, slots, *parts)
        return *caches, rows, *parts

    def reference():
        for x in (k, v, torch.cat((own, turned), -1)):
            out = torch.zeros(pages * page, *x.shape[1:], dtype=dtype)
            out[slots] = x
            yield out.view(pages, page, *x.shape[1:]) if x.shape[1] > 1 else out
        yield from (own, turned)

    return op, lambda: tuple(reference())


def _store_latent(rows, slots, own, turned, block=128):
    """By the kernel that the library's CUDA stands in the place of."""
    where = slots, -1, rows.stride(0), own.stride(0), turned.stride(0), LATENT, TURNED
    grid = len(slots), -(-(LATENT + TURNED) // block)
    how = {"BLOCK": block, "DCP_RANK": 0, "DCP_WORLD_SIZE": 1}
    mla_buffer.set_mla_kv_buffer_kernel[grid](rows, own, turned, *where, **how)


@call(TOKENS)
def keys_of_latent(dtype, tokens, heads=16, own=128):
    """Heads' own numbers beside those that all share, and numbers of 8 bits of them."""
    k, v = torch.randn(2, tokens, heads, own, dtype=dtype)
    turned = torch.randn(tokens, 1, TURNED, dtype=dtype)

    def op():
        out = torch.empty(tokens, heads, own + TURNED, dtype=dtype)
        mla_qk_prep.concat_and_cast_mha_k_triton(out, k, turned)
        codes = mla_kv_pack_quantize_fp8.mla_kv_pack_quantize_fp8(k, turned, v)
        return out, *(n.float() for n in codes)

    def reference():
        every = torch.cat((k, turned.expand(-1, heads, -1)), -1)
        return every, every.to(FP8).float(), v.to(FP8).float()

    return op, reference


@call(Size(5, 256, 16), Size(300, 2048, 8192), dtypes=(torch.int64,))
def places(dtype, count, longest):
    """Of new tokens the positions, and how long a sequence is at each of them."""
    sizes = torch.tensor(lengths(count, longest))
    prefix = torch.randint(0, 1000, (count,))

    def op():
        where, begin = position.compute_position_triton(prefix, sizes, int(sizes.sum()))
        ends = (sizes + prefix).int()
        each = pad.seqlens_expand_triton(sizes.int(), ends, int(sizes.sum()), longest)
        return where, begin, each

    def reference():
        where = torch.cat([torch.arange(n) + p for n, p in zip(sizes, prefix, strict=True)])
        return where, sizes.cumsum(0) - sizes, where + 1

    return op, reference


# Diffusion


@call(Size(2, 2, 1), Size(70, 4096, 16384), Size(256, 3072, 3072), dtypes=HALVES, timed=BOTH)
def modulated(dtype, count, tokens, hidden):
    """Norms whose scale and shift are a time's, or a token's."""
    x, shift, scale = torch.randn(3, count, tokens, hidden, dtype=dtype)
    w, bias = torch.randn(2, hidden, dtype=dtype)

    def op():
        given = scale[:, :1], shift[:, :1]
        yield scale_shift_triton.fuse_scale_shift_kernel(x, *given)
        yield rmsnorm_scale_shift_triton.rmsnorm_scale_shift_per_token(x, w, scale, shift, 1e-6)
        yield norm_triton.norm_infer(x.flatten(0, 1), w, bias, 1e-6)
        yield norm_triton.norm_infer(x.flatten(0, 1), w, None, 1e-6, True)

    def reference():
        y = x.double()
        yield y * (1 + scale[:, :1].double()) + shift[:, :1]
        yield rms(x, w) * (1 + scale.double()) + shift
        yield F.layer_norm(y, (hidden,), w.double(), bias.double(), 1e-6).flatten(0, 1)
        yield rms(x, w).flatten(0, 1)

    return lambda: list(op()), lambda: list(reference())


@call(Size(2, 2, 1), Size(70, 4096, 16384), Size(256, 3072, 3072), dtypes=HALVES, timed=BOTH)
def modulated_of_two(dtype, count, tokens, hidden):
    """Each token has the scale, shift and gate of one of two."""
    x, residual, gate = torch.randn(3, count, tokens, hidden, dtype=dtype)
    both, which = torch.randn(2, 3, count, hidden, dtype=dtype), torch.arange(tokens) % 3 == 0
    which = which.int().expand(count, -1).contiguous()
    w, bias = torch.randn(2, hidden, dtype=dtype)

    def op():
        given = *both[0], *both[1], which, 1e-6
        fused = scale_shift_triton.fuse_residual_layernorm_scale_shift_gate_select01_kernel
        return fused(x, residual, gate, w, bias, *given)

    def reference():
        scale, shift, own = both[which.long(), :, torch.arange(count)[:, None]].unbind(2)
        total = residual + gate.double() * x
        normed = F.layer_norm(total, (hidden,), w.double(), bias.double(), 1e-6)
        return normed * (1 + scale.double()) + shift, total, own

    return op, reference


@call(Size(70, 4096, 65536), dtypes=HALVES, timed=BOTH)
def heads_of_video(dtype, tokens, heads=24):
    """Norms of heads, and neighbours turned."""
    x, w = torch.randn(1, tokens, heads, HEAD, dtype=dtype), torch.randn(HEAD, dtype=dtype)
    angles = torch.rand(tokens, HEAD // 2) * 6
    cos, sin = angles.cos(), angles.sin()

    def op():
        normed = rmsnorm_onepass_triton.triton_one_pass_rms_norm(x.view(-1, HEAD), w)
        return normed, diffusion_rotary.apply_rotary_embedding(x, cos, sin, True)

    def reference():
        first, second = x.double().unflatten(-1, (-1, 2)).unbind(-1)
        c, s = cos.double()[:, None], sin.double()[:, None]
        pairs = torch.stack((first * c - second * s, second * c + first * s), -1).flatten(-2)
        return rms(x.view(-1, HEAD), w), pairs

    return op, reference


@call(Size(64, 256, 512), Size(9, 128, 256), dtypes=HALVES, timed=BOTH)
def group_norms(dtype, channels, side):
    """Of pictures."""
    x, (w, bias) = torch.randn(2, channels, side, side), torch.randn(2, channels, dtype=dtype)
    x = x.to(dtype)

    def reference():
        return F.silu(F.group_norm(x.double(), 32, w.double(), bias.double(), 1e-5))

    return lambda: group_norm_silu_triton.triton_group_norm_silu(x, w, bias, 32), reference


@call(Size(30, 4096, 16384), Size(256, 3072, 3072))
def rows_fp8(dtype, tokens, hidden):
    x, both = torch.randn(tokens, hidden), torch.randn(1, tokens, 2 * hidden)
    x, both = x.to(dtype), both.to(dtype)

    def op():
        codes, scale = fp8_rowwise_triton.fp8_rowwise(x)
        inner, own = swiglu_fp8_rowwise_triton.fused_packed_swiglu_fp8_rowwise(both)
        parts = (codes, scale), (inner[:tokens], own[:tokens])
        return [whole(n, s.view(-1, 1)) for n, s in parts]

    return op, lambda: [whole(*by_row(n, FP8)) for n in (x, gated(both[0]).to(dtype))]
