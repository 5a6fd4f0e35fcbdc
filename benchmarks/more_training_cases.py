"""Kernels of packages that came last: training (axolotl, megatron-core, verl, Inf-CL), images and
proteins (comfy-kitchen, OpenFold, trifast), quantization (NVIDIA's ModelOpt), linear attention.
"""

import itertools
import logging
import tempfile
from unittest import mock

import torch
import torch.nn.functional as F
from libraries import bare, cpu_as_cuda, middle, stand_in
from library_case import LARGE, WIDE, Size, calls_in, cases_in, normal
from library_references import attention, lengths, rms
from small_case import gradients

CASES = dict[str, object]()
case, call = cases_in(CASES), calls_in(CASES)
FULL, HALF, BF16 = (torch.float32,), (torch.float16,), (torch.bfloat16,)
BOTH = (LARGE, WIDE)
FP8, FP4 = torch.float8_e4m3fn, torch.tensor([0, 0.5, 1, 1.5, 2, 3, 4, 6])

AXOLOTL = "axolotl.integrations.kernels.libs"
bare(
    *("axolotl", "axolotl.kernels", "axolotl.monkeypatch", "axolotl.monkeypatch.attention"),
    *("axolotl.monkeypatch.trainer", "axolotl.integrations", "axolotl.integrations.kernels"),
    *(AXOLOTL, f"{AXOLOTL}.dsv4", f"{AXOLOTL}.glm_dsa", "axolotl.utils"),
    *("comfy_kitchen", "comfy_kitchen.backends", "comfy_kitchen.backends.eager"),
    *("comfy_kitchen.backends.triton", "comfy_kitchen.tensor"),
    *("openfold3", "openfold3.core", "openfold3.core.kernels", "openfold3.core.kernels.triton"),
    *("megatron", "megatron.core", "megatron.core.fusions", "megatron.core.transformer"),
    "megatron.core.transformer.custom_layers",
    *("modelopt", "modelopt.torch", "modelopt.torch.kernels", "modelopt.torch.kernels.common"),
    *("modelopt.torch.kernels.common.attention", "modelopt.torch.kernels.quantization"),
    *("modelopt.torch.kernels.quantization.gemm", "modelopt.torch.kernels.quantization.common"),
    *("modelopt.torch.kernels.quantization.attention", "modelopt.torch.quantization"),
    *("modelopt.torch.quantization.utils", "modelopt.torch.kernels.sparsity"),
    "modelopt.torch.kernels.sparsity.attention",
    *("trifast", "inf_cl", "lightning_attn", "lightning_attn.ops", "lightning_attn.ops.triton"),
    *("verl", "verl.utils", "verl.utils.kernel"),
)
stand_in("axolotl.utils.logging", get_logger=logging.getLogger)
stand_in("megatron.core.jit", jit_fuser=lambda function: function)
stand_in("megatron.core.utils", null_decorator=lambda f: f, experimental_fn=lambda **_: lambda f: f)
stand_in("modelopt.torch.quantization.utils.numeric_utils", E4M3_MAX=448.0)
stand_in("jaxtyping", Bool=mock.MagicMock(), Float=mock.MagicMock())
stand_in("platformdirs", user_config_dir=lambda *_, **__: tempfile.gettempdir())

# isort: split
from axolotl.integrations.kernels.libs.dsv4 import (  # noqa: E402
    attention as sliding,
)
from axolotl.integrations.kernels.libs.dsv4 import (  # noqa: E402
    attention_csa,
    attention_gather,
    gated_pool,
    indexer,
    mhc,
)
from axolotl.integrations.kernels.libs.dsv4 import rope as turned_pairs  # noqa: E402
from axolotl.integrations.kernels.libs.glm_dsa import attention_topk  # noqa: E402
from axolotl.kernels import geglu, gemma4_fused_rope, rms_norm_gated, swiglu  # noqa: E402
from axolotl.monkeypatch.attention import flash_attn_d512  # noqa: E402
from axolotl.monkeypatch.trainer import utils as losses  # noqa: E402
from comfy_kitchen.backends.triton import adaln, na, quantization, rms_rope, rope  # noqa: E402
from inf_cl import flash as contrastive  # noqa: E402
from lightning_attn.ops.triton import lightning_attn2, srmsnorm  # noqa: E402
from megatron.core.fusions import (  # noqa: E402
    fused_indices_converter,
    fused_mla_yarn_rope_apply,
    fused_pad_routing_map,
)
from megatron.core.transformer.custom_layers import batch_invariant_kernels as invariant  # noqa: E402
from modelopt.torch.kernels.common.attention import triton_fa  # noqa: E402
from modelopt.torch.kernels.quantization.gemm import (  # noqa: E402
    fp4_kernel,
    fp8_kernel,
    gptq_fused_kernel,
    nvfp4_fp8_sweep,
)
from openfold3.core.kernels.triton import evoformer, triton_softmax  # noqa: E402
from openfold3.core.kernels.triton import swiglu as folded_swiglu  # noqa: E402
from trifast import torch as triangles  # noqa: E402
from verl.utils.kernel import kernels as entropies  # noqa: E402

middle(sliding, attention_csa, attention_gather, gated_pool, indexer, mhc, attention_topk)
middle(turned_pairs, flash_attn_d512, lightning_attn2, invariant, triton_fa, fp8_kernel)
middle(fp4_kernel, nvfp4_fp8_sweep, gptq_fused_kernel, evoformer, triangles, entropies, na)
cpu_as_cuda(geglu, swiglu, fused_indices_converter)
middle(rms_norm_gated, gemma4_fused_rope, geglu, swiglu, quantization, rope, rms_rope, adaln)

TOKENS, HIDDEN = Size((3, 5), (4, 2048), (1, 2048)), Size(48, 4096, 16384)
ROWS, WORDS = Size(5, 2048, 1024), Size(1000, 32000, 128000)
BATCH, LENGTH = Size(2, 4, 1), Size(128, 2048, 8192)


# Rows


@case(normal(TOKENS, HIDDEN), normal(TOKENS, HIDDEN), dtypes=BF16)
def geglu_of_axolotl(gate, up):
    def op(gate, up):
        return _Halves.apply(geglu.geglu_forward, geglu.geglu_backward, gate, up)

    return op, lambda gate, up: F.gelu(gate) * up


@case(normal(TOKENS, HIDDEN), normal(TOKENS, HIDDEN), dtypes=BF16)
def swiglu_of_axolotl(gate, up):
    def op(gate, up):
        return _Halves.apply(swiglu.swiglu_forward, swiglu.swiglu_backward, gate, up)

    return op, lambda gate, up: F.silu(gate) * up


class _Halves(torch.autograd.Function):
    """An activation of two tensors whose gradients are written over them."""

    @staticmethod
    def forward(ctx, forward, backward, gate, up):
        ctx.backward_of = backward
        ctx.save_for_backward(gate, up)
        return forward(gate, up)

    @staticmethod
    def backward(ctx, grad):
        gate, up = ctx.saved_tensors
        _, dgate, dup = ctx.backward_of(grad.contiguous(), gate.clone(), up.clone())
        return None, None, dgate, dup


@case(normal(TOKENS, HIDDEN), normal(TOKENS, HIDDEN), normal(HIDDEN), dtypes=BF16)
def gated_rms_norm(x, gate, weight):
    def op(x, gate, weight):
        return rms_norm_gated.FusedRMSNormGatedFunction.apply(x, gate, weight, 1e-6)

    def expected(x, gate, weight):
        return (rms(x, weight) * F.silu(gate.double())).to(x.dtype)

    return op, expected


@call(Size((2, 5, 3), (4, 2048, 32), (1, 2048, 128)), dtypes=BF16, timed=BOTH)
def norm_and_rope(dtype, batch, tokens, heads):
    x = torch.randn(batch, tokens, heads, 128, dtype=dtype)
    weight, angles = torch.randn(128, dtype=dtype), torch.randn(batch, tokens, 32)
    cos, sin = (of(angles).repeat(1, 1, 2).to(dtype) for of in (torch.cos, torch.sin))

    def expected(x, weight):
        y = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6) * weight
        front, rest = y[..., :64], y[..., 64:]
        other = torch.cat((-front[..., 32:], front[..., :32]), -1)
        c, s = (t.double().unsqueeze(2) for t in (cos, sin))
        return torch.cat((front * c + other * s, rest), -1)

    def op(x, weight):
        return gemma4_fused_rope.fused_rms_norm_rope(x, weight, cos, sin)

    return gradients(op, expected, x, weight)


@call(ROWS, WORDS, dtypes=BF16, timed=BOTH)
def entropy_of_rows(dtype, rows, words):
    x = torch.randn(1, rows, words, dtype=dtype)

    def expected():
        logs = x.double().log_softmax(-1)
        return -(logs.exp() * logs).sum(-1)

    return lambda: losses.entropy_from_logits(x), expected


@call(ROWS, WORDS, dtypes=BF16, timed=BOTH)
def chosen_log_softmax(dtype, rows, words):
    x, index = torch.randn(1, rows, words, dtype=dtype), torch.randint(words, (1, rows))

    def expected(x):
        return x.log_softmax(-1).gather(-1, index.unsqueeze(-1)).squeeze(-1)

    return gradients(lambda x: losses.selective_log_softmax(x, index), expected, x)


@call(Size((2, 5, 48), (2, 4096, 3072), (1, 4096, 5120)), dtypes=BF16, timed=BOTH)
def modulated_norms(dtype, batch, tokens, width):
    x = torch.randn(batch, tokens, width, dtype=dtype)
    scale, shift = (torch.randn(batch, 1, width, dtype=dtype) for _ in range(2))

    def op():
        return adaln.adaln(x, scale, shift), adaln.rms_adaln(x, scale, shift)

    def expected():
        wide = x.double()
        ones, zero = torch.ones(width, dtype=torch.float64), torch.zeros(width, dtype=torch.float64)
        normal = F.layer_norm(wide, (width,), ones, zero, 1e-6)
        return normal * (1 + scale) + shift, rms(wide, ones) * (1 + scale) + shift

    return op, expected


@call(Size((1, 5, 3), (1, 4096, 24), (2, 8192, 24)), dtypes=BF16, timed=BOTH)
def ropes_of_images(dtype, batch, tokens, heads):
    q, k = (torch.randn(batch, tokens, heads, 128, dtype=dtype) for _ in range(2))
    angles = torch.randn(1, tokens, 1, 64)
    turn = torch.stack((angles.cos(), -angles.sin(), angles.sin(), angles.cos()), -1)
    turn, weight = turn.unflatten(-1, (2, 2)), torch.randn(128, dtype=dtype)

    def expected():
        def of(x):
            pairs = x.double().unflatten(-1, (64, 2))
            return (turn.double() @ pairs.unsqueeze(-1)).squeeze(-1).flatten(-2)

        return of(q), of(k), of(rms(q, weight, 1e-6))

    def op():
        return *rope.apply_rope(q, k, turn), rms_rope.rms_rope1(q, turn, weight, 1e-6)

    return op, expected


@call(Size((4, 32), (4096, 4096), (1024, 16384)), dtypes=BF16, timed=BOTH)
def eight_bits_of_images(dtype, rows, width):
    x, scale = torch.randn(rows, width, dtype=dtype), torch.tensor([0.02])

    def op():
        codes = quantization.quantize_per_tensor_fp8(x, scale)
        back = quantization.dequantize_per_tensor_fp8(codes, scale)
        by_row, scales = quantization.triton_quantize_rowwise(x)
        return back, by_row.float() * scales

    return op, lambda: (x.double(), x.double())


@call(Size((3, 64), (2048, 4096), (512, 16384)), dtypes=BF16, timed=BOTH)
def four_bits_of_weights(dtype, rows, width):
    x = torch.randn(rows, width, dtype=dtype)
    parts = x.float().view(-1, 16)
    most = parts.abs().amax(-1)

    def op():
        nvfp4_fp8_sweep.nvfp4_fp8_scale_sweep(x, most.amax())
        return fp4_kernel.static_blockwise_fp4_fake_quant(x, most, None, False)

    def expected():
        size = most[:, None] / 6
        nearest = (parts.abs()[..., None] / size[..., None] - FP4).abs().argmin(-1)
        return (FP4[nearest] * parts.sign() * size).view(rows, width)

    return op, expected


@call(Size((5, 128), (4096, 128), (16384, 128)), dtypes=FULL, timed=BOTH)
def columns_one_by_one(dtype, rows, width):
    x, scale = torch.randn(rows, width), 3.0 / (6.0 * 448.0)
    inverse = torch.eye(width) + 0.01 * torch.randn(width, width).triu(1)
    parts = x.view(rows, -1, 16).abs().amax(-1)

    def expected():
        rest, out = x.clone(), torch.empty_like(x)
        sizes = (parts / 6 / scale).to(FP8).float() * scale
        for n in range(width):
            size, part = sizes[:, n // 16, None], rest[:, n, None]
            nearest = (part.abs() / size - FP4).abs().argmin(-1)
            out[:, n] = FP4[nearest] * part[:, 0].sign() * size[:, 0]
            rest[:, n + 1 :] -= (
                (rest[:, n] - out[:, n])[:, None] / inverse[n, n] * inverse[n, n + 1 :]
            )
        return out

    def op():
        return gptq_fused_kernel.gptq_fused_block_scalar(x, parts, scale, inverse, 16, 0)[0]

    return op, expected


@call(Size((7, 16), (4096, 64), (16384, 128)), dtypes=FULL, timed=BOTH)
def routes_of_experts(dtype, tokens, experts):
    weights, ids = torch.rand(tokens, experts).topk(8)
    chosen = torch.zeros(tokens, experts, dtype=torch.bool).scatter(1, ids, True)

    def op():
        hot, values = fused_indices_converter.fused_indices_to_multihot(ids, weights, experts)
        return hot.float(), values, fused_pad_routing_map.fused_pad_routing_map(chosen, 16).float()

    def expected():
        values = torch.zeros(tokens, experts).scatter(1, ids, weights)
        short = -chosen.sum(0) % 16
        ranks = (~chosen).cumsum(0)
        return chosen.float(), values, (chosen | ((ranks <= short) & ~chosen)).float()

    return op, expected


@call(Size((5, 2, 3), (2048, 2, 32), (4096, 1, 128)), dtypes=BF16, timed=BOTH)
def rope_of_latents(dtype, tokens, batch, heads):
    q = torch.randn(tokens, batch, heads, 128 + 64, dtype=dtype)
    angles = torch.randn(tokens, 1, 1, 32).repeat(1, 1, 1, 2)
    cos, sin = angles.cos(), angles.sin()

    def op():
        return fused_mla_yarn_rope_apply.fused_apply_mla_rope_for_q(q.clone(), cos, sin, 128, 64)

    def expected():
        x = q.double()
        pairs = torch.cat((x[..., 128::2], x[..., 129::2]), -1)
        other = torch.cat((-pairs[..., 32:], pairs[..., :32]), -1)
        return torch.cat((x[..., :128], pairs * cos + other * sin), -1)

    return op, expected


@call(Size((15, 2, 40), (512, 4, 256), (64, 8, 768)), dtypes=BF16, timed=BOTH)
def softmax_of_pairs(dtype, rows, heads, keys):
    batch = 1  # of more the bias is read behind its end
    x = torch.randn(batch, rows, heads, keys, keys, dtype=dtype)
    mask = (torch.rand(batch, rows, 1, 1, keys) < 0.8).to(dtype)
    bias = torch.randn(batch, 1, heads, keys, keys, dtype=dtype)

    def op():
        count = x.numel() // keys
        y = triton_softmax.softmax_triton_kernel_wrapper(x, mask, bias, count, keys)
        return y, triton_softmax.softmax_grad_triton_kernel_wrapper(x, y, count, keys)

    def expected():
        y = (x.double() + bias).masked_fill(mask == 0, -1e20).softmax(-1).to(dtype).double()
        return y, (x.double() - (x * y).sum(-1, keepdim=True)) * y

    return op, expected


@case(normal(TOKENS, HIDDEN), normal(TOKENS, HIDDEN), dtypes=BF16)
def swiglu_of_proteins(a, b):
    op = folded_swiglu.LigerSiLUMulFunction.apply
    return op, lambda a, b: F.silu(a) * b


@case(normal(TOKENS, HIDDEN), dtypes=HALF)
def plain_rms_norm(x):
    def op(x):
        return srmsnorm._SrmsNorm.apply(x, 1e-6)

    return op, lambda x: rms(x, torch.ones(x.shape[-1]).double()).to(x.dtype)


# Hyper-connections and pools of a model with compressed attention


@call(Size(5, 8192, 32768), dtypes=FULL, timed=BOTH)
def sinkhorn(dtype, rows):
    mixes, scale, base = torch.randn(rows, 24), torch.randn(3), torch.randn(24)

    def op(mixes, scale, base):
        return torch.cat([x.flatten() for x in mhc.sinkhorn_mix(mixes, scale, base, 4, 5, 1e-6)])

    def expected(mixes, scale, base):
        pre = (mixes[:, :4] * scale[0] + base[:4]).sigmoid() + 1e-6
        post = 2 * (mixes[:, 4:8] * scale[1] + base[4:8]).sigmoid()
        comb = (mixes[:, 8:] * scale[2] + base[8:]).view(-1, 4, 4).softmax(-1) + 1e-6
        comb = comb / (comb.sum(-2, keepdim=True) + 1e-6)
        for _ in range(4):
            comb = comb / (comb.sum(-1, keepdim=True) + 1e-6)
            comb = comb / (comb.sum(-2, keepdim=True) + 1e-6)
        return torch.cat([x.flatten() for x in (pre, post, comb)])

    return gradients(op, expected, mixes, scale, base)


@call(Size((3, 64), (2048, 4096), (4096, 4096)), dtypes=BF16, timed=BOTH)
def norm_and_mix(dtype, rows, width):
    x, weight = torch.randn(rows, 4 * width, dtype=dtype), torch.randn(24, 4 * width, dtype=dtype)
    pre = torch.rand(rows, 4)

    def op(x, weight, pre):
        mixed = mhc._rmsnorm_linear(x, weight, 1e-6)
        return torch.cat((mixed.float(), mhc._Collapse.apply(pre, x.view(-1, 4, width)).float()), 1)

    def expected(x, weight, pre):
        normal = x * torch.rsqrt(x.square().mean(-1, keepdim=True) + 1e-6)
        collapsed = (pre.unsqueeze(-1) * x.view(-1, 4, width)).sum(1)
        return torch.cat((normal @ weight.T, collapsed), 1)

    return gradients(op, expected, x, weight, pre)


@call(Size((3, 8, 64), (2048, 8, 512), (256, 128, 512)), dtypes=BF16, timed=BOTH)
def gated_pools(dtype, rows, window, width):
    kv, gate = (torch.randn(rows, window, width, dtype=dtype) for _ in range(2))
    return gradients(
        gated_pool.gated_softmax_pool, lambda kv, gate: (kv * gate.softmax(-2)).sum(-2), kv, gate
    )


@call(Size((2, 3, 7), (2, 64, 2048), (1, 64, 4096)), dtypes=BF16, timed=BOTH)
def rope_behind(dtype, batch, heads, tokens):
    x, angles = torch.randn(batch, heads, tokens, 512, dtype=dtype), torch.randn(batch, tokens, 32)
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)

    def expected():
        c, s = (t.double().unsqueeze(1) for t in (cos, sin))
        even, odd = x[..., 448::2].double(), x[..., 449::2].double()
        pairs = torch.stack((even * c - odd * s, odd * c + even * s), -1).flatten(-2)
        return torch.cat((x[..., :448].double(), pairs), -1)

    return lambda: turned_pairs._launch(x, cos, sin), expected


@call(Size((2, 40, 20), (2, 2048, 512), (1, 4096, 1024)), dtypes=BF16, timed=BOTH)
def indexer_scores(dtype, batch, tokens, keys):
    q = torch.randn(batch, tokens, 64, 128, dtype=dtype)
    k, weights = torch.randn(batch, keys, 128, dtype=dtype), torch.randn(batch, tokens, 64)

    def expected():
        scores = torch.einsum("bshd,btd->bsht", q.double(), k.double()) * 0.1
        return (scores.relu() * weights.unsqueeze(-1)).sum(2)

    return lambda: indexer.indexer_scores(q, k, weights, 0.1), expected


# Attention


def _heads(dtype, batch, heads, tokens, width, count=3):
    return [torch.randn(batch, heads, tokens, width, dtype=dtype) for _ in range(count)]


def _softmax(scores, v, mask=None, sinks=None):
    if mask is not None:
        scores = scores.masked_fill(~mask, -torch.inf)
    if sinks is not None:
        sinks = sinks.view(1, -1, 1, 1).expand(*scores.shape[:-1], 1)
        scores = torch.cat((scores, sinks), -1)
    return scores.softmax(-1)[..., : v.shape[-2]] @ v


def _window(tokens, window):
    ahead = torch.arange(tokens)[:, None] - torch.arange(tokens)[None, :]
    return (ahead >= 0) & (ahead < window)


@call(BATCH, Size(96, 2048, 8192), dtypes=BF16, timed=BOTH)
def heads_of_512(dtype, batch, tokens):
    def expected(q, k, v):
        return _softmax(q @ k.mT / 512**0.5, v, _window(tokens, tokens))

    given = _heads(dtype, batch, 4, tokens, 512)
    return gradients(flash_attn_d512.flash_d512, expected, *given)


@call(BATCH, Size(96, 2048, 8192), dtypes=BF16, timed=BOTH)
def windows_with_sinks(dtype, batch, tokens):
    (q,) = _heads(dtype, batch, 8, tokens, 512, 1)
    (k, v), sinks = _heads(dtype, batch, 1, tokens, 512, 2), torch.randn(8, dtype=dtype)

    def expected(q, k, v, sinks):
        return _softmax(q @ k.mT / 512**0.5, v, _window(tokens, 128), sinks)

    return gradients(sliding.sliding_attn, expected, q, k, v, sinks)


@call(BATCH, Size(96, 2048, 4096), dtypes=BF16)
def compressed(dtype, batch, tokens):
    (q,) = _heads(dtype, batch, 8, tokens, 512, 1)
    kv, kc = (torch.randn(batch, 1, n, 512, dtype=dtype) for n in (tokens, tokens // 4))
    bias, sinks = torch.zeros(batch, 1, tokens, tokens // 4), torch.randn(8, dtype=dtype)
    bias = bias.to(dtype)

    def expected(q, kv, kc, sinks):
        keys = torch.cat((kv, kc), -2)
        mask = F.pad(_window(tokens, 128), (0, tokens // 4), value=True)
        return _softmax(q @ keys.mT / 512**0.5, keys, mask, sinks)

    def op(q, kv, kc, sinks):
        return attention_csa.csa_attn(q, kv, kc, bias, sinks)

    return gradients(op, expected, q, kv, kc, sinks)


@call(BATCH, Size(96, 2048, 4096), dtypes=BF16)
def compressed_and_chosen(dtype, batch, tokens):
    (q,) = _heads(dtype, batch, 16, tokens, 512, 1)
    kv, kc = (torch.randn(batch, 1, n, 512, dtype=dtype) for n in (tokens, tokens // 4))
    count, sinks = min(64, tokens // 8), torch.randn(16, dtype=dtype)
    chosen = torch.rand(batch, tokens, tokens // 4).topk(count).indices.int()

    def expected(q, kv, kc, sinks):
        keys = torch.cat((kv, kc), -2)
        near = _window(tokens, 128).expand(batch, 1, tokens, tokens)
        far = torch.zeros(batch, 1, tokens, tokens // 4, dtype=torch.bool)
        far.scatter_(-1, chosen.long().unsqueeze(1), True)
        return _softmax(q @ keys.mT / 512**0.5, keys, torch.cat((near, far), -1), sinks)

    def op(q, kv, kc, sinks):
        return attention_gather.csa_attn_topk(q, kv, kc, chosen, sinks)

    return gradients(op, expected, q, kv, kc, sinks)


@call(BATCH, Size(96, 1024, 2048), dtypes=BF16)
def chosen_keys(dtype, batch, tokens):
    q, k, v = _heads(dtype, batch, 16, tokens, 128)
    count = min(256, tokens // 4)
    chosen = (
        (torch.rand(batch, tokens, tokens) - 2.0 * ~_window(tokens, tokens)).topk(count).indices
    )
    chosen = torch.minimum(chosen, torch.arange(tokens)[None, :, None]).int()

    def op(q, k, v):
        return attention_topk.sparse_attn_fwd(q, k, v, chosen, 128**-0.5)

    def expected():
        rows = chosen.long().unsqueeze(1).unsqueeze(-1).expand(batch, 16, tokens, count, 128)
        keys, values = (
            x.double().unsqueeze(2).expand(-1, -1, tokens, -1, -1).gather(3, rows) for x in (k, v)
        )
        scores = (keys @ q.double().unsqueeze(-1)).squeeze(-1) * 128**-0.5
        return (scores.softmax(-1).unsqueeze(-2) @ values).squeeze(-2)

    return lambda: op(q, k, v), expected


@call(Size((1, 2, 5, 6), (1, 8, 16, 32), (1, 8, 32, 64)), dtypes=HALF, timed=BOTH)
def neighbours(dtype, batch, times, height, width):
    q, k, v = (torch.randn(batch, times, height, width, 12, 64, dtype=dtype) for _ in range(3))

    def near(size, window):
        at = (torch.arange(size) - window // 2).clamp(0, size - min(window, size))
        key = torch.arange(size)
        return (key >= at[:, None]) & (key < at[:, None] + window)

    def expected():
        flat = [x.double().flatten(1, 3).transpose(1, 2) for x in (q, k, v)]
        masks = [near(size, 3) for size in (times, height, width)]
        mask = torch.einsum("ab,cd,ef->acebdf", *(m.double() for m in masks)).bool()
        count = times * height * width
        out = _softmax(flat[0] @ flat[1].mT / 8, flat[2], mask.reshape(count, count))
        return out.transpose(1, 2).reshape(q.shape)

    return lambda: na.na3d(q, k, v, [3, 3, 3]), expected


@call(Size((2, 100), (4, 2048), (1, 8192)), dtypes=BF16, timed=BOTH)
def ragged_of_modelopt(dtype, count, longest):
    sizes = lengths(count, longest)
    begin = torch.tensor([0, *itertools.accumulate(sizes)][:-1], dtype=torch.int32)
    q = torch.randn(sum(sizes), 32, 128, dtype=dtype)
    k, v = (torch.randn(sum(sizes), 8, 128, dtype=dtype) for _ in range(2))
    many = torch.tensor(sizes, dtype=torch.int32)

    def op(q, k, v):
        return triton_fa.attention(q, k, v, begin, many, longest)

    def expected(q, k, v):
        parts = zip(*(x.split(sizes) for x in (q, k, v)), strict=True)
        return torch.cat([attention(*part) for part in parts])

    return gradients(op, expected, q, k, v)


@call(Size((1, 3, 33), (4, 64, 256), (1, 128, 384)), dtypes=BF16, timed=BOTH)
def evoformers(dtype, batch, rows, residues):
    q, k, v = (torch.randn(batch, rows, residues, 4, 32, dtype=dtype) for _ in range(3))
    mask = torch.zeros(batch, rows, 1, 1, residues, dtype=dtype)
    bias = torch.randn(batch, 1, 4, residues, residues, dtype=dtype)

    def op(q, k, v, bias):
        return evoformer.TritonEvoformer(q, k, v, mask, bias)

    def expected(q, k, v, bias):
        q, k, v = (x.transpose(-2, -3) for x in (q, k, v))
        return _softmax(q @ k.mT / 32**0.5 + bias, v).transpose(-2, -3)

    return gradients(op, expected, q, k, v, bias)


@call(Size((1, 2, 40), (1, 4, 256), (1, 4, 384)), dtypes=BF16, timed=BOTH)
def triangle_attention(dtype, batch, heads, residues):
    q, k, v = (torch.randn(batch, heads, residues, residues, 32, dtype=dtype) for _ in range(3))
    bias = torch.randn(batch, heads, residues, residues, dtype=dtype)
    mask = torch.zeros(batch, residues, residues, dtype=torch.bool)

    def op(q, k, v, bias):
        return triangles.triangle_attention(q, k, v, bias, mask)

    def expected(q, k, v, bias):
        return _softmax(q @ k.mT / 32**0.5 + bias.unsqueeze(2), v)

    return gradients(op, expected, q, k, v, bias)


@call(BATCH, LENGTH, dtypes=BF16, timed=BOTH)
def decaying_attention(dtype, batch, tokens):
    given, slopes = _heads(dtype, batch, 16, tokens, 128), torch.rand(16) * 0.1

    def expected(q, k, v):
        ahead = torch.arange(tokens)[:, None] - torch.arange(tokens)[None, :]
        decay = torch.exp(-slopes.double().view(-1, 1, 1) * ahead.clamp(min=0)) * (ahead >= 0)
        return (q @ k.mT * decay) @ v

    def op(q, k, v):
        return lightning_attn2.lightning_attn2(q, k, v, slopes)

    return gradients(op, expected, *given)


# Products and losses


@call(Size((33, 64, 40), (4096, 4096, 4096), (64, 16384, 4096)), dtypes=BF16, timed=BOTH)
def the_same_for_each_batch(dtype, rows, inner, columns):
    a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(inner, columns, dtype=dtype)

    def op():
        return (
            invariant.matmul_persistent(a, b),
            invariant.log_softmax(a),
            invariant.mean_dim(a, 1),
        )

    return op, lambda: (a.double() @ b.double(), a.double().log_softmax(-1), a.double().mean(1))


@call(Size((33, 512, 64), (4096, 4096, 4096), (64, 16384, 4096)), dtypes=BF16, timed=BOTH)
def eight_bit_linear(dtype, rows, inner, columns):
    x = torch.randn(rows, inner, dtype=dtype)
    weight = torch.randint(-127, 128, (columns, inner), dtype=torch.int8)
    scale = torch.rand(columns, 1) * 0.01

    def expected():
        return x.double() @ (weight.double() * scale).T

    return lambda: quantization.int8_linear(x, weight, scale), expected


@call(Size((256, 256), (4096, 4096), (16384, 4096)), dtypes=FULL, timed=BOTH)
def blocks_of_weights(dtype, rows, columns):
    codes = torch.randn(rows, columns).to(FP8)
    scale = torch.rand(rows // 128, columns // 128)

    def expected():
        wide = scale.repeat_interleave(128, 0).repeat_interleave(128, 1)
        return codes.double() * wide

    return lambda: fp8_kernel.weight_dequant(codes, scale, dtype=torch.float32), expected


@call(Size(70, 4096, 8192), dtypes=FULL, timed=BOTH)
def contrastive_loss(dtype, rows):
    given = [F.normalize(torch.randn(rows, 512), dim=-1) for _ in range(2)]

    def expected(q, k):
        scores = 10 * q @ k.T
        return (scores.logsumexp(-1) - scores.diagonal()).reshape(1, -1)

    def op(q, k):
        return contrastive.cal_flash_loss(q, k, scale=10.0).reshape(1, -1)

    return gradients(op, expected, *given)


@call(Size((40, 128, 300), (4096, 2048, 32000), (1024, 4096, 128000)), dtypes=BF16, timed=BOTH)
def entropy_of_products(dtype, rows, inner, words):
    x, weight = torch.randn(rows, inner, dtype=dtype), torch.randn(words, inner, dtype=dtype) / 8
    labels = torch.randint(words, (rows,))

    def op():
        found = entropies.efficient_entropy_forward(x, weight, labels, 0, 1.0, None)
        return found[0], found[1]

    def expected():
        logs = (x.double() @ weight.double().T).log_softmax(-1)
        return logs.gather(-1, labels[:, None]).squeeze(-1), -(logs.exp() * logs).sum(-1)

    return op, expected
