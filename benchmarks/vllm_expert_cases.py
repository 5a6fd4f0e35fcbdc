"""Cases of vLLM: mixtures of experts, products of 8 and 4 bits, products that do not depend on
what else is in a batch, and LoRA."""

import torch
import triton.language as tl
from library_case import BOTH, HALF, HALVES, HIDDEN, Size
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
    weights_of,
    whole,
)
from vllm_case import call

# isort: split
from vllm.lora.ops.triton_ops import lora_expand_op, lora_shrink_op
from vllm.lora.ops.triton_ops import utils as lora_utils
from vllm.model_executor.determinism import batch_invariant
from vllm.model_executor.kernels.linear.mixed_precision import triton_w4a16
from vllm.model_executor.layers.fused_moe import fused_moe, moe_fused_mul_sum
from vllm.model_executor.layers.fused_moe import utils as moe_utils
from vllm.model_executor.layers.quantization import awq_triton
from vllm.model_executor.layers.quantization.compressed_tensors import triton_scaled_mm
from vllm.model_executor.layers.quantization.utils import fp8_utils

ROUTED, INNER = Size(40, 4096, 16), Size(128, 2048, 2048)
ROWS, COLUMNS = Size(40, 4096, 16), Size(256, 4096, 4096)
TYPES = {torch.float16: tl.float16, torch.bfloat16: tl.bfloat16}


def _layer(dtype, x, weights, scales, shares, ids, kind, block=None, quantise=None):
    """What `fused_experts` of the library does where it takes its Triton kernels; activation and
    alignment are torch's here, for they are the library's CUDA."""
    tokens, hidden = len(ids), weights[1].shape[1]
    shape = tokens, EXPERTS, weights[0].shape[1], hidden, TOP, kind
    config = fused_moe.get_default_config(*shape, block)
    order = aligned(ids, config["BLOCK_SIZE_M"])
    flags = ("fp8_w8a8", "int8_w8a8", "int8_w8a16", "int4_w4a16")
    more = {f"use_{name}": kind == name for name in flags}
    more |= {"config": config, "compute_type": TYPES[dtype], "block_shape": block}
    shares = shares.float()

    def product(a, number, is_last):
        out = torch.empty(tokens, TOP, weights[number].shape[1], dtype=dtype)
        a, a_scale = a if isinstance(a, tuple) else (a, None)
        given = (*order, is_last, 1 if is_last else TOP)
        if kind == "int4_w4a16":
            names = {name: more[name] for name in more if "w8a8" not in name}
            fused_moe.invoke_fused_moe_wna16_triton_kernel(
                *(a, weights[number], out, scales[number], None, shares, *given), **names
            )
        else:
            fused_moe.invoke_fused_moe_triton_kernel(
                *(a, weights[number], out, a_scale, scales[number], shares, *given),
                per_channel_quant=kind is not None and block is None,
                **more,
            )
        return out

    def op():
        inner = gated(product(x, 0, False)).to(dtype).flatten(0, 1)
        each = product(quantise(inner) if quantise else inner, 1, True)
        return moe_fused_mul_sum.moe_fused_mul_sum(each, torch.ones(tokens, TOP))

    return op


@call(ROUTED, HIDDEN, INNER, dtypes=HALVES, timed=BOTH)
def mixture(dtype, tokens, hidden, inner):
    x = torch.randn(tokens, hidden, dtype=dtype)
    weights, (shares, ids) = [w.to(dtype) for w in weights_of(hidden, inner)], routes(tokens)
    op = _layer(dtype, x, weights, (None, None), shares, ids, None)
    return op, lambda: experts(x, *weights, shares, ids)


def _mixture_by_row(kept, kind, dtype, tokens, hidden, inner):
    x, shares, ids = torch.randn(tokens, hidden), *routes(tokens)
    x, *given = [by_row(one, kept) for one in (x, *weights_of(hidden, inner))]
    weights, scales = zip(*given, strict=True)
    op = _layer(dtype, x, weights, scales, shares, ids, kind, None, lambda x: by_row(x, kept))
    return op, lambda: experts(whole(*x), *(whole(*pair) for pair in given), shares, ids)


@call(ROUTED, HIDDEN, INNER, timed=BOTH)
def mixture_int8(dtype, *dims):
    return _mixture_by_row(torch.int8, "int8_w8a8", dtype, *dims)


@call(ROUTED, HIDDEN, INNER)
def mixture_fp8(dtype, *dims):
    return _mixture_by_row(FP8, "fp8_w8a8", dtype, *dims)


@call(ROUTED, HIDDEN, INNER, timed=BOTH)
def mixture_fp8_blocks(dtype, tokens, hidden, inner):
    shares, ids = routes(tokens)
    x = by_block(torch.randn(tokens, hidden), GROUP)
    given = [by_block(w, GROUP, GROUP) for w in weights_of(hidden, inner)]
    weights, scales = zip(*given, strict=True)
    numbers = [whole(*pair, GROUP, GROUP) for pair in given]
    how = "fp8_w8a8", [GROUP, GROUP], lambda x: by_block(x, GROUP)
    op = _layer(dtype, x, weights, scales, shares, ids, *how)
    return op, lambda: experts(whole(*x, GROUP), *numbers, shares, ids)


@call(ROUTED, HIDDEN, INNER, dtypes=HALF, timed=BOTH)
def mixture_int4(dtype, tokens, hidden, inner):
    """Of two neighbours in a byte the even one is in the lower bits."""
    x, (shares, ids) = torch.randn(tokens, hidden, dtype=dtype), routes(tokens)
    codes = [torch.randint(0, 16, w.shape) for w in weights_of(hidden, inner)]
    scales = [torch.rand(*n.shape[:2], n.shape[2] // GROUP).to(dtype) / 16 for n in codes]
    weights = [(n[..., ::2] + 16 * n[..., 1::2]).to(torch.uint8) for n in codes]
    numbers = [whole(n - 8, s, GROUP) for n, s in zip(codes, scales, strict=True)]
    op = _layer(dtype, x, weights, scales, shares, ids, "int4_w4a16", [0, GROUP])
    return op, lambda: experts(x, *numbers, shares, ids)


@call(ROUTED, dtypes=(torch.int32,))
def counted_routes(dtype, tokens):
    """Of experts of which this rank has every other one."""
    ids = torch.randint(-1, 64, (tokens, 8), dtype=dtype)
    local = torch.full((64,), -1, dtype=torch.int32)
    local[::2] = torch.arange(32, dtype=torch.int32)

    def reference():
        mine = torch.where(ids < 0, -1, local[ids])
        return mine[mine >= 0].bincount(minlength=32), mine

    return lambda: (
        moe_utils.count_expert_num_tokens(ids, 32, local),
        moe_utils.remap_topk_to_local(ids, local),
    ), reference


# Products


@call(ROWS, HIDDEN, COLUMNS, timed=BOTH)
def product_fp8_blocks(dtype, rows, inner, columns):
    a = by_block(torch.randn(rows, inner), GROUP)
    b = by_block(torch.randn(columns, inner), GROUP, GROUP)
    (x, x_scale), (w, w_scale) = a, b
    return (
        lambda: fp8_utils.w8a8_triton_block_scaled_mm(
            x, w, x_scale, w_scale, [GROUP, GROUP], dtype
        ),
        lambda: whole(*a, GROUP) @ whole(*b, GROUP, GROUP).T,
    )


def _product_by_row(kept, dtype, rows, inner, columns, use_td=False):
    a, b = (by_row(torch.randn(n, inner), kept) for n in (rows, columns))
    bias = torch.randn(columns, dtype=dtype)

    def op():
        return triton_scaled_mm.triton_scaled_mm(
            *(a[0], b[0].T, a[1], b[1], dtype, bias), use_td=use_td
        )

    return op, lambda: whole(*a) @ whole(*b).T + bias.double()


@call(ROWS, HIDDEN, COLUMNS, dtypes=HALVES, timed=BOTH)
def product_int8(dtype, *dims):
    return _product_by_row(torch.int8, dtype, *dims)


@call(ROWS, HIDDEN, COLUMNS, timed=BOTH)
def product_fp8(dtype, *dims):
    return _product_by_row(FP8, dtype, *dims)


@call(ROWS, HIDDEN, COLUMNS)
def product_fp8_descriptors(dtype, *dims):
    return _product_by_row(FP8, dtype, *dims, use_td=True)


def words_of(codes, order):
    """Eight neighbours of 4 bits in a word; `order` says where each is in it."""
    shifted = codes.unflatten(-1, (-1, 8)) << 4 * torch.tensor(order)
    return shifted.sum(-1).to(torch.uint32).view(torch.int32)


AWQ = (0, 4, 1, 5, 2, 6, 3, 7)


def _codes(dtype, inner, columns):
    codes, zeros = (torch.randint(0, 16, (n, columns)) for n in (inner, inner // GROUP))
    scale = torch.rand(inner // GROUP, columns).to(dtype) / 10
    apart = codes - zeros.repeat_interleave(GROUP, 0)
    return codes, zeros, scale, apart * scale.double().repeat_interleave(GROUP, 0)


@call(ROWS, HIDDEN, COLUMNS, dtypes=HALF, timed=BOTH)
def product_awq(dtype, rows, inner, columns):
    x = torch.randn(rows, inner, dtype=dtype)
    codes, zeros, scale, numbers = _codes(dtype, inner, columns)
    packed, zero_words = words_of(codes, AWQ), words_of(zeros, AWQ)
    return (
        lambda: (
            awq_triton.awq_gemm_triton(x, packed, scale, zero_words, 8),
            awq_triton.awq_dequantize_triton(packed, scale, zero_words),
        ),
        lambda: (x.double() @ numbers, numbers),
    )


@call(ROWS, HIDDEN, COLUMNS, dtypes=HALVES, timed=BOTH)
def product_int4(dtype, rows, inner, columns):
    x = torch.randn(rows, inner, dtype=dtype)
    codes, zeros, scale, numbers = _codes(dtype, inner, columns)
    packed, zero_words = words_of(codes, range(8)), words_of(zeros, range(8))
    return (
        lambda: triton_w4a16._triton_w4a16_gemm_impl(x, packed, scale, zero_words, GROUP),
        lambda: x.double() @ numbers,
    )


# What does not depend on the batch


@call(ROWS, HIDDEN, COLUMNS, dtypes=HALVES, timed=BOTH)
def product_persistent(dtype, rows, inner, columns):
    a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype).T
    bias = torch.randn(columns, dtype=dtype)
    return (
        lambda: batch_invariant.matmul_persistent(a, b, bias),
        lambda: a.double() @ b.double() + bias.double(),
    )


@call(ROWS, HIDDEN, COLUMNS, timed=BOTH)
def product_descriptors(dtype, rows, inner, columns):
    a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype).T
    bias = torch.randn(columns, dtype=dtype)
    return (
        lambda: batch_invariant.matmul_descriptor_persistent(a, b, bias),
        lambda: a.double() @ b.double() + bias.double(),
    )


@call(Size(3, 32, 8), Size(70, 1024, 16), Size(96, 128, 4096), dtypes=HALVES)
def products_of_batches(dtype, count, rows, inner):
    a, b = torch.randn(count, rows, inner, dtype=dtype), torch.randn(count, inner, 2 * inner)
    b = b.to(dtype)
    return (
        lambda: batch_invariant.bmm_batch_invariant(a, b),
        lambda: a.double() @ b.double(),
    )


# LoRA


@call(Size(3, 4, 16), Size(50, 2048, 1), HIDDEN, dtypes=HALVES, timed=BOTH)
def lora(dtype, count, longest, hidden, rank=16, slices=3, adapters=3):
    """Queries, keys and values of sequences, whose adapters differ and of which some have none."""
    sizes = lengths(count, longest)
    own = torch.arange(count) % (adapters + 1) - 1
    of_token = torch.repeat_interleave(own, torch.tensor(sizes))
    x = torch.randn(len(of_token), hidden, dtype=dtype)
    widths = [hidden, hidden // 4, hidden // 4][:slices]
    a = [(torch.randn(adapters, 1, rank, hidden) / hidden**0.5).to(dtype) for _ in widths]
    b = [torch.randn(adapters, 1, width, rank).to(dtype) for width in widths]
    before = torch.randn(len(x), sum(widths), dtype=dtype)
    ids = torch.full((adapters + 1,), -1, dtype=torch.int32)
    found, counts = of_token.unique(return_counts=True)
    ids[: len(found)] = found
    tokens = torch.zeros(adapters + 1, dtype=torch.int32)
    tokens[: len(found)] = counts
    first = torch.nn.functional.pad(tokens.cumsum(0), (1, 0)).int()
    order = of_token.argsort(stable=True).int()
    given = of_token.int(), order, tokens, first, ids, torch.tensor([False])

    def op():
        lora_utils._LORA_A_PTR_DICT.clear()  # by addresses, which other weights may have had
        lora_utils._LORA_B_PTR_DICT.clear()
        inner, out = torch.empty(slices, len(x), rank), before.clone()
        active = torch.tensor([len(found)])
        lora_shrink_op._lora_shrink(x, a, inner, *given, active, 0.5)
        lora_expand_op._lora_expand(inner, b, out, *given, active, add_inputs=True)
        return out

    def reference():
        parts = []
        for down, up in zip(a, b, strict=True):
            part = torch.zeros(len(x), up.shape[2], dtype=torch.float64)
            for number in range(adapters):
                rows = of_token == number
                part[rows] = (
                    x[rows].double() @ down[number, 0].double().T @ up[number, 0].double().T
                )
            parts.append(part / 2)
        return before.double() + torch.cat(parts, -1)

    return op, reference
