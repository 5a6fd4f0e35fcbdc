"""unsloth's Triton kernels: norms, rotary embeddings, activations, losses, attention of large
heads, grouped products of a mixture of experts, and weights of 8 and 4 bits.
"""

import logging
import os
import types
from typing import Any

import torch
import torch.nn.functional as F
from libraries import absent, bare, stand_in
from library_case import LARGE, WIDE, Size, calls_in, cases_in, normal
from library_references import attention, by_block, rotated, whole
from packaging.version import Version

os.environ["UNSLOTH_TRITON_FAST_LAUNCH"] = "0"  # which calls what is inside of Triton's launcher
bare("unsloth", "unsloth.kernels", "unsloth.kernels.moe")
device = {
    "DEVICE_TYPE": "cuda",
    "DEVICE_TYPE_TORCH": "cuda",
    "DEVICE_COUNT": 1,
    "ALLOW_PREQUANTIZED_MODELS": False,
    "is_hip": lambda: False,
    "get_device_type": lambda: "cuda",
    "cuda_visible_capabilities": lambda: [(9, 0)],
}
stand_in("unsloth.device_type", **device)
stand_in("unsloth_zoo")
stand_in("unsloth_zoo.utils", Version=lambda text: Version(str(text).partition("+")[0]))
stand_in("unsloth_zoo.log", logger=logging.getLogger("unsloth"))
stand_in("unsloth_zoo.patching_utils", patch_layernorm=None)
stand_in("unsloth_zoo.loss_utils", patch_loss_functions=None, post_patch_loss_function=None)
stand_in("unsloth_zoo.temporary_patches")
stand_in("unsloth_zoo.temporary_patches.common", torch_compile=lambda function: function)
stand_in(
    "transformers.models.llama.modeling_llama",
    LlamaRMSNorm=torch.nn.Module,
    logger=logging.getLogger("unsloth"),
)

import unsloth  # noqa: E402

unsloth.DEVICE_TYPE = "cuda"

with absent("bitsandbytes"):
    from unsloth.kernels import (
        cross_entropy_loss,
        fp8,
        geglu,
        large_head_attention,
        layernorm,
        nf4,
        nf4_gemv,
        rms_layernorm,
        rope_embedding,
        swiglu,
    )
from unsloth.kernels.moe.grouped_gemm import interface as grouped  # noqa: E402
from unsloth.kernels.moe.grouped_gemm.kernels import tuning  # noqa: E402

CASES: dict[str, Any] = {}
case, call = cases_in(CASES), calls_in(CASES)
BOTH = (torch.float32, torch.bfloat16)
BF16 = (torch.bfloat16,)
TOKENS, HIDDEN = Size((5, 3), (4, 2048), (1, 2048)), Size(40, 4096, 16384)
INNER, ROWS, VOCABULARY = Size(48, 14336, 14336), Size(7, 4096, 1024), Size(97, 32000, 128256)
BATCH, HEADS, SHARED, LENGTH, HEAD = Size(2, 2, 1), 32, 8, Size(7, 2048, 8192), Size(16, 128, 128)


# Norms


def weights(w, *b):
    return types.SimpleNamespace(
        weight=w, bias=b[0] if b else None, eps=1e-6, elementwise_affine=True
    )


def _rms(x, w):
    return (x.float() * torch.rsqrt(x.float().square().mean(-1, keepdim=True) + 1e-6) * w).to(
        x.dtype
    )


@case(normal(TOKENS, HIDDEN), normal(HIDDEN), dtypes=BOTH)
def rms_norm(*_):
    return lambda x, w: rms_layernorm.fast_rms_layernorm(weights(w), x), _rms


@case(normal(TOKENS, HIDDEN), normal(HIDDEN), dtypes=BOTH)
def rms_norm_gemma(*_):
    return (
        lambda x, w: rms_layernorm.fast_rms_layernorm(weights(w), x, gemma=True),
        lambda x, w: _rms(x, w.float() + 1),
    )


@case(normal(TOKENS, HIDDEN), normal(HIDDEN), normal(HIDDEN), dtypes=BOTH)
def layer_norm(*_):
    return (
        lambda x, w, b: layernorm.fast_layernorm(weights(w, b), x),
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-6),
    )


# Rotary embeddings


@case(normal(BATCH, HEADS, LENGTH, HEAD), normal(BATCH, SHARED, LENGTH, HEAD), dtypes=BOTH)
def rope(q, _):
    angles = torch.rand(q.shape[2], q.shape[3] // 2) * 6
    cos, sin = angles.cos(), angles.sin()
    both = [torch.cat((x, x), -1).to(q.dtype) for x in (cos, sin)]
    return (
        lambda q, k: rope_embedding.fast_rope_embedding(q.clone(), k.clone(), *both),
        lambda q, k: tuple(rotated(x, cos, sin).to(x.dtype) for x in (q, k)),
    )


@case(normal(BATCH, HEADS, LENGTH, HEAD), normal(BATCH, SHARED, LENGTH, HEAD), dtypes=BOTH)
def rope_at_positions(q, _):
    angles = torch.rand(q.shape[2] * 2, q.shape[3] // 2) * 6
    cos, sin = angles.cos(), angles.sin()
    both = [torch.cat((x, x), -1).to(q.dtype) for x in (cos, sin)]
    places = torch.randint(0, len(angles), (len(q), q.shape[2]))
    at = [x[places][:, None] for x in (cos, sin)]
    return (
        lambda q, k: rope_embedding.fast_rope_embedding(q.clone(), k.clone(), *both, places),
        lambda q, k: tuple(rotated(x, *at).to(x.dtype) for x in (q, k)),
    )


# Activations: the gradients are written over what is not used any more.


def _activation(module, forward, backward, function):
    def make(dtype, *dims):
        gate, up, out = torch.randn(3, *dims, dtype=dtype)

        def op():
            rows = [x.clone().flatten(0, -2) for x in (out, gate, up)]
            return forward(gate, up), *backward(*rows)

        def reference():
            one, two = (x.double().requires_grad_() for x in (gate, up))
            result = function(one) * two
            result.backward(out.double())
            rows = (result, result, function(one) * out.double(), one.grad)
            return rows[0].detach(), *(x.detach().flatten(0, -2) for x in rows[1:])

        return op, reference

    return make


@call(TOKENS, INNER, dtypes=BF16)
def swiglu_(dtype, *dims):
    kernels = swiglu.swiglu_fg_kernel, swiglu.swiglu_DWf_DW_dfg_kernel
    return _activation(swiglu, *kernels, F.silu)(dtype, *dims)


@call(TOKENS, INNER, dtypes=BF16)
def geglu_exact(dtype, *dims):
    kernels = geglu.geglu_exact_forward_kernel, geglu.geglu_exact_backward_kernel
    return _activation(geglu, *kernels, F.gelu)(dtype, *dims)


@call(TOKENS, INNER, dtypes=BF16)
def geglu_approximate(dtype, *dims):
    kernels = geglu.geglu_approx_forward_kernel, geglu.geglu_approx_backward_kernel
    return _activation(geglu, *kernels, lambda x: F.gelu(x, approximate="tanh"))(dtype, *dims)


# Losses


def labels_of(x):
    found = torch.randint(0, x.shape[-1], x.shape[:-1])
    found.view(-1)[3::50] = -100
    return found


def _cross_entropy(x, labels, cap=0.0):
    x = x.float()
    x = cap * torch.tanh(x / cap) if cap else x
    return F.cross_entropy(x.flatten(0, -2), labels.flatten())


@case(normal(1, ROWS, VOCABULARY), dtypes=BOTH)
def cross_entropy(x):
    labels = labels_of(x)
    return (
        lambda x: cross_entropy_loss.fast_cross_entropy_loss(x.clone(), labels),
        lambda x: _cross_entropy(x, labels),
    )


@case(normal(1, ROWS, VOCABULARY), timed=(LARGE,))
def cross_entropy_capped(x):
    labels = labels_of(x)
    return (
        lambda x: cross_entropy_loss.fast_cross_entropy_loss(x.clone(), labels, 30.0),
        lambda x: _cross_entropy(x, labels, 30.0),
    )


# Attention of large heads

LARGE_HEAD = 512


def _large_heads(dtype, count, tokens, heads=4, shared=2):
    q, k, v, grad = (
        torch.randn(count, n, tokens, LARGE_HEAD, dtype=dtype)
        for n in (heads, shared, shared, heads)
    )
    bounds = large_head_attention._dense_intervals(count, tokens, True, q.device)

    def op():
        given = [x.clone().requires_grad_() for x in (q, k, v)]
        out = large_head_attention.large_head_attention(*given, *bounds)
        out.backward(grad.transpose(1, 2))
        return out.detach(), *(x.grad for x in given)

    def reference():
        given = [x.double().requires_grad_() for x in (q, k, v)]
        parts = zip(*(x.transpose(1, 2) for x in given), strict=True)
        out = torch.stack([attention(*part) for part in parts])
        out.backward(grad.double().transpose(1, 2))
        return out.detach(), *(x.grad for x in given)

    return op, reference


@call(Size(2, 2, 1), Size(70, 2048, 4096))
def attention_of_large_heads(dtype, *dims):
    return _large_heads(dtype, *dims)


# A mixture of experts: products of rows that are sorted by expert

EXPERTS, TOP = 8, 2
BLOCKS = {"BLOCK_SIZE_M": 128, "BLOCK_SIZE_N": 128, "BLOCK_SIZE_K": 64}
FORWARD = {**BLOCKS, "num_warps": 8, "num_stages": 3}
BACKWARD = {**BLOCKS, "num_warps": 8, "num_stages": 2}


def _grouped(into, dtype, tokens, hidden, inner):
    """Into the experts rows are gathered, out of them they are scattered; with gradients."""
    ids = torch.rand(tokens, EXPERTS).topk(TOP).indices.flatten()
    order = ids.argsort(stable=True)
    sizes = ids.bincount(minlength=EXPERTS)
    x = torch.randn(tokens if into else tokens * TOP, hidden, dtype=dtype)
    w = torch.randn(EXPERTS, inner, hidden, dtype=dtype) / hidden**0.5
    grad = torch.randn(tokens * TOP, inner, dtype=dtype)
    chosen = {"permute_x": into, "permute_y": not into}
    configs = (
        tuning.KernelConfigForward(**FORWARD, **chosen),
        tuning.KernelConfigBackward_dX(**BACKWARD, **chosen),
        tuning.KernelConfigBackward_dW(**BACKWARD, **chosen),
    )

    def op():
        given = [one.clone().requires_grad_() for one in (x, w)]
        out = grouped.grouped_gemm(
            *(*given, sizes.int(), TOP, order.int(), into, not into, None, False, *configs),
            is_first_gemm=into,
        )
        out.backward(grad)
        return out.detach(), *(one.grad for one in given)

    def reference():
        a, b = (one.double().requires_grad_() for one in (x, w))
        rows = a[order // TOP] if into else a
        parts = zip(rows.split(sizes.tolist()), b, strict=True)
        out = torch.cat([part @ expert.T for part, expert in parts])
        out = out if into else torch.empty_like(out).index_copy(0, order, out)
        out.backward(grad.double())
        return out.detach(), a.grad, b.grad

    return op, reference


ROUTED, INTO, OUT = Size(40, 4096, 4096), Size(128, 2048, 2048), Size(256, 4096, 4096)


@call(ROUTED, INTO, OUT)
def experts_up(dtype, *dims):
    return _grouped(True, dtype, *dims)


@call(ROUTED, OUT, INTO)
def experts_down(dtype, *dims):
    return _grouped(False, dtype, *dims)


# Weights of 4 and 8 bits

COLUMNS, DEPTH = Size(96, 14336, 4096), Size(256, 4096, 4096)
NF4 = (
    *(-1.0, -0.6961928009986877, -0.5250730514526367, -0.39491748809814453, -0.28444138169288635),
    *(-0.18477343022823334, -0.09105003625154495, 0.0, 0.07958029955625534, 0.16093020141124725),
    *(0.24611230194568634, 0.33791524171829224, 0.44070982933044434, 0.5626170039176941),
    *(0.7229568362236023, 1.0),
)


def nf4_weight(columns, depth, block=64):
    """Codes, scales in 8 bits with scales of their own, and what they stand for."""
    n = columns * depth
    codes, table = torch.randint(0, 16, (n,), dtype=torch.uint8), torch.tensor(NF4)
    absmax = torch.randint(0, 256, (n // block,), dtype=torch.uint8)
    second, mean = torch.linspace(-1, 1, 256), torch.tensor(1.5)
    absmax2 = torch.rand(-(-len(absmax) // 256)) + 0.5
    scale = second[absmax.long()] * absmax2.repeat_interleave(256)[: len(absmax)] + mean
    numbers = table.double()[codes.long()] * scale.double().repeat_interleave(block)
    packed = ((codes[::2] << 4) | codes[1::2])[:, None]
    return (packed, absmax, second, absmax2, mean, table, block, 256), numbers.view(columns, depth)


@call(COLUMNS, DEPTH, dtypes=(torch.float16, torch.bfloat16))
def dequantize_nf4(dtype, columns, depth):
    given, numbers = nf4_weight(columns, depth)
    return lambda: nf4.dequantize_nf4(*given, (columns, depth), dtype), lambda: numbers


@call(COLUMNS, DEPTH, timed=(LARGE, WIDE))
def row_by_nf4(dtype, columns, depth):
    given, numbers = nf4_weight(columns, depth)
    x = torch.randn(1, 1, depth, dtype=dtype)
    return (
        lambda: nf4_gemv.gemv_nf4(x, *given, (columns, depth), dtype),
        lambda: x.double() @ numbers.T,
    )


@call(Size(40, 2048, 16), DEPTH, COLUMNS, timed=(LARGE, WIDE))
def product_fp8_blocks(dtype, rows, depth, columns):
    columns = -(-columns // 128) * 128
    a, a_scale = by_block(torch.randn(rows, depth), 128)
    b, b_scale = by_block(torch.randn(columns, depth), 128, 128)
    return (
        lambda: fp8.w8a8_block_fp8_matmul_triton(a, b, a_scale, b_scale, [128, 128], dtype),
        lambda: whole(a, a_scale, 128) @ whole(b, b_scale, 128, 128).T,
    )


@call(Size(128, 8192, 2048), DEPTH)
def fp8_blocks(dtype, rows, depth):
    """To fp8, and a weight back from it."""
    x = torch.randn(rows, depth, dtype=dtype)
    weight = by_block(x, 128, 128)

    def op():
        codes, scale = fp8.act_quant(x)
        return whole(codes, scale, 128), fp8.weight_dequant_block(*weight, dtype=dtype)

    return op, lambda: (whole(*by_block(x, 128), 128), whole(*weight, 128, 128))
