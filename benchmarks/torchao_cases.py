"""torchao's Triton kernels: numbers of 8 and 4 bits, products of them, and attention's inputs in
fp8.

Left out are those for Blackwell alone (its instructions for fp4, CuTe), and sparse weights, which
it tunes by a table of its own.
"""

from types import SimpleNamespace
from typing import Any

import torch
from library_case import LARGE, WIDE, Size, calls_in
from library_references import by_block, rotated, whole
from torchao.kernel import blockwise_quantization, intmm_triton
from torchao.prototype.attention.quantization import (
    triton_hadamard_qkv_quantization,
    triton_qkv_quantization,
    triton_rope_qkv_quantization,
)
from torchao.prototype.blockwise_fp8_training import kernels as blockwise
from torchao.prototype.float8nocompile.kernels import fp8_dynamic_tensorwise
from torchao.prototype.fp8_sdpa_inference import fp8_sdpa_quantization
from torchao.prototype.hqq import mixed_mm
from torchao.prototype.moe_training.kernels import float8_rowwise, jagged_float8_scales
from torchao.prototype.mx_formats import kernels as mx
from torchao.prototype.quantized_training import int8_mm

CASES: dict[str, Any] = {}
call = calls_in(CASES)
BOTH = (LARGE, WIDE)
HALVES = (torch.float16, torch.bfloat16)
FP8 = torch.float8_e4m3fn
ROWS, INNER, COLUMNS = Size(128, 4096, 16), Size(256, 4096, 4096), Size(256, 4096, 4096)
TOKENS, HIDDEN = Size(128, 8192, 16), Size(256, 4096, 4096)
BATCH, HEADS, LENGTH, HEAD = Size(2, 4, 1), 8, Size(100, 2048, 8192), 128


# Products


def int8_pair(rows, inner, columns):
    a, b = (torch.randint(-127, 128, (n, inner), dtype=torch.int8) for n in (rows, columns))
    return a, b.T


def exact(a, b):
    return a.double() @ b.double()


@call(ROWS, INNER, COLUMNS, timed=BOTH)
def scaled_int8(dtype, rows, inner, columns):
    a, b = int8_pair(rows, inner, columns)
    row, column = torch.rand(rows, dtype=dtype), torch.rand(columns, dtype=dtype)
    return (
        lambda: int8_mm.scaled_int8_mm_cuda(a, b, row, column),
        lambda: exact(a, b) * row.double()[:, None] * column.double(),
    )


# The library measures a list of configurations of its own; this is one of them.
CONFIG = SimpleNamespace(
    num_warps=8,
    num_stages=3,
    num_ctas=1,
    kwargs={"BLOCK_M": 128, "BLOCK_N": 128, "BLOCK_K": 128, "GROUP_M": 8},
)


@call(ROWS, INNER, COLUMNS, dtypes=(torch.int8,))
def int8_by_blocks(dtype, rows, inner, columns):
    a, b = int8_pair(rows, inner, columns)

    def op():
        out = torch.empty(rows, columns, dtype=torch.int32)
        return intmm_triton.int_matmul_kernel(a, b, out, CONFIG)

    return op, lambda: exact(a, b)


@call(ROWS, INNER, COLUMNS)
def scaled_int8_by_blocks(dtype, rows, inner, columns):
    a, b = int8_pair(rows, inner, columns)
    scale = torch.rand(rows, 1, dtype=dtype).expand(rows, columns)

    def op():
        out = torch.empty(rows, columns, dtype=dtype)
        return intmm_triton.int_scaled_matmul_kernel(a, b, scale, out, CONFIG)

    return op, lambda: exact(a, b) * scale.double()


def _mixed(transposed, dtype, rows, inner, columns, group=128):
    """Weights of 4 bits, of which two rows are in a byte."""
    codes = torch.randint(0, 16, (inner, columns), dtype=torch.uint8)
    scale, zero = torch.rand(2, columns, inner // group, dtype=dtype) / 10
    zero = zero * 80
    numbers = codes.double() - zero.double().T.repeat_interleave(group, 0)
    numbers *= scale.double().T.repeat_interleave(group, 0)
    a = torch.randn(rows, columns if transposed else inner, dtype=dtype)
    return (
        lambda: mixed_mm.triton_mixed_mm(
            a, mixed_mm.pack_2xint4(codes), scale.T, zero.T, group, transposed
        ),
        lambda: a.double() @ (numbers.T if transposed else numbers),
    )


@call(ROWS, INNER, COLUMNS, dtypes=HALVES, timed=BOTH)
def product_hqq(dtype, *dims):
    return _mixed(False, dtype, *dims)


@call(ROWS, INNER, COLUMNS)
def product_hqq_transposed(dtype, *dims):
    return _mixed(True, dtype, *dims)


@call(ROWS, INNER, COLUMNS, timed=BOTH)
def product_fp8_blocks(dtype, rows, inner, columns):
    a, a_scale = by_block(torch.randn(rows, inner), 128)
    b, b_scale = by_block(torch.randn(columns, inner), 128, 128)
    return (
        lambda: blockwise_quantization.blockwise_fp8_gemm(a, a_scale, b, b_scale),
        lambda: whole(a, a_scale, 128) @ whole(b, b_scale, 128, 128).T,
    )


def column_major(x):
    return x.T.contiguous().T


@call(ROWS, INNER, COLUMNS)
def training_product_fp8(dtype, rows, inner, columns):
    a, a_scale = by_block(torch.randn(rows, inner), 128)
    b, b_scale = by_block(torch.randn(columns, inner), 128, 128)
    c, c_scale = by_block(torch.randn(columns, inner), 128)
    a_scale = column_major(a_scale)

    return (
        lambda: (
            blockwise.triton_fp8_gemm_1x128_128x128(a, b.T, a_scale, b_scale.T, out_dtype=dtype),
            blockwise.triton_fp8_gemm_1x128_128x1(
                a, c.T, a_scale, c_scale.T.contiguous(), out_dtype=dtype
            ),
        ),
        lambda: (
            whole(a, a_scale, 128) @ whole(b, b_scale, 128, 128).T,
            whole(a, a_scale, 128) @ whole(c, c_scale, 128).T,
        ),
    )


# Numbers of 8 bits


@call(TOKENS, HIDDEN)
def quantise_blocks(dtype, rows, columns):
    x = torch.randn(rows, columns, dtype=dtype)
    kernels = blockwise_quantization

    def op():
        codes, scale = kernels.fp8_blockwise_act_quant(x)
        yield codes.float() * scale.repeat_interleave(128, -1)
        codes, scale = kernels.fp8_blockwise_weight_quant(x)
        yield kernels.fp8_blockwise_weight_dequant(codes, scale)

    def reference():
        return whole(*by_block(x, 128), 128), whole(*by_block(x, 128, 128), 128, 128)

    rows_fit = rows % 128 == 0
    return (
        lambda: list(op()) if rows_fit else [next(op())],
        lambda: reference()[: 1 + rows_fit],
    )


@call(TOKENS, HIDDEN)
def training_blocks(dtype, rows, columns):
    """Activations and weights for a pass forwards and one backwards."""
    x, weight = torch.randn(rows, columns, dtype=dtype), torch.randn(columns, columns, dtype=dtype)

    def op():
        left, left_scale = blockwise.triton_fp8_blockwise_act_quant_lhs(x)
        right, right_scale = blockwise.triton_fp8_blockwise_act_quant_rhs(x)
        turned, turned_scale = blockwise.triton_fp8_blockwise_act_quant_transposed_lhs(x)
        one, one_scale = blockwise.triton_fp8_blockwise_weight_quant_rhs(weight)
        two, two_scale = blockwise.triton_fp8_blockwise_weight_quant_transposed_rhs(weight)
        return (
            scaled(left, left_scale, 1, 128),
            scaled(right, right_scale, 128, 1),
            scaled(turned, turned_scale, 1, 128),
            scaled(one, one_scale, 128, 128),
            scaled(two, two_scale, 128, 128),
        )

    def scaled(codes, scale, rows, columns):
        return codes.float() * scale.repeat_interleave(rows, 0).repeat_interleave(columns, 1)

    return op, lambda: (x, x, x.T, weight, weight.T)


@call(Size((256, 256), (4096, 4096), (4096, 4096)))
def tensorwise(dtype, rows, columns):
    """One scale for all, in rows and in columns."""
    x, kernels = torch.randn(rows, columns, dtype=dtype), fp8_dynamic_tensorwise
    atomic, reduced = kernels.KernelAlgorithm.ATOMIC_MAX, kernels.KernelAlgorithm.REDUCTION

    def op():
        for algorithm in (atomic, reduced):
            yield kernels.hp_to_fp8_row_major(x, FP8, None, algo=algorithm)
        yield kernels.hp_to_fp8_row_major_t(x, FP8, None)
        yield kernels.hp_to_fp8_col_major(x, FP8, None)
        yield kernels.hp_to_fp8_col_major_t(x, FP8, None)
        yield from kernels.hp_to_fp8_row_and_col_major(x, FP8, None)

    def numbers():
        return [one._data.float() / one._scale for one in op()]

    return numbers, lambda: (x, x, x.T, x, x.T, x, x)


@call(TOKENS, HIDDEN)
def from_mx(dtype, rows, columns):
    """Blocks of 32 numbers that share an exponent."""
    codes = torch.randn(rows, columns).to(FP8)
    scale = torch.randint(120, 134, (rows, columns // 32), dtype=torch.uint8)
    return (
        lambda: mx.triton_mxfp8_dequant_dim0(codes, scale, dtype, 32),
        lambda: whole(codes, 2.0 ** (scale.double() - 127), 32),
    )


@call(Size(2, 8, 8), Size(256, 4096, 4096), Size(128, 2048, 2048))
def experts_rowwise(dtype, experts, rows, columns):
    """Weights of experts with a scale for each row and each column."""
    x = torch.randn(experts, rows, columns, dtype=dtype)

    def op():
        for kernel in (
            float8_rowwise.triton_fp8_rowwise_3d_transpose_rhs,
            float8_rowwise.triton_fp8_rowwise_3d_transpose_rhs_fused_reduction,
        ):
            codes, scale = kernel(x, output_dtype=FP8)
            yield codes.float() / scale.unsqueeze(1)

    return lambda: list(op()), lambda: [x.transpose(1, 2)] * 2


@call(TOKENS, HIDDEN)
def jagged_scales(dtype, rows, columns):
    """A scale for each column of a group of tokens."""
    x = torch.randn(rows, columns, dtype=dtype)
    ends = torch.tensor([rows // 4, rows // 2, rows]).int()
    groups = torch.tensor([rows // 4, rows // 4, rows // 2])

    def op():
        kernel = jagged_float8_scales.triton_fp8_per_group_colwise_scales
        codes, scale = kernel(x, ends, FP8)
        return codes.float() / scale.view(-1, columns).repeat_interleave(groups, 0)

    return op, lambda: x


# Attention's inputs in fp8


def _attention_inputs(kernel, change, dtype, count, tokens):
    q, k, v = torch.randn(3, count, HEADS, tokens, HEAD, dtype=dtype)

    def op():
        *codes, q_scale, k_scale, v_scale = kernel(q, k, v)
        scales = (q_scale, k_scale, v_scale)
        return [x.float() * s[..., None, None] for x, s in zip(codes, scales, strict=True)]

    return op, lambda: [*(change(x) for x in (q, k)), v]


@call(BATCH, LENGTH, timed=BOTH)
def attention_inputs(dtype, *dims):
    kernel = triton_qkv_quantization.triton_fp8_sdpa_quantize
    return _attention_inputs(kernel, lambda x: x, dtype, *dims)


@call(BATCH, LENGTH)
def attention_inputs_of_inference(dtype, *dims):
    kernel = fp8_sdpa_quantization.fp8_sdpa_quantize_func
    return _attention_inputs(kernel, lambda x: x, dtype, *dims)


@call(BATCH, LENGTH)
def attention_inputs_in_hadamards_basis(dtype, count, tokens):
    order = torch.arange(HEAD)
    common = order[:, None] & order
    ones = sum((common >> bit) & 1 for bit in range(7))
    basis = (1.0 - 2 * (ones % 2)).double() / HEAD**0.5
    kernel = triton_hadamard_qkv_quantization.triton_fp8_hadamard_sdpa_quantize
    op, reference = _attention_inputs(kernel, lambda x: x.double() @ basis, dtype, count, tokens)

    def all_turned():
        *first, v = reference()
        return [*first, v.double() @ basis]

    return op, all_turned


@call(BATCH, LENGTH)
def attention_inputs_with_rope(dtype, count, tokens):
    angles = torch.rand(tokens, HEAD // 2) * 6
    cos, sin = (torch.cat((x, x), -1) for x in (angles.cos(), angles.sin()))
    kernel = triton_rope_qkv_quantization.triton_fp8_rope_sdpa_quantize
    q, k, v = torch.randn(3, count, tokens, HEADS, HEAD, dtype=dtype)

    def op():
        *codes, q_scale, k_scale, v_scale = kernel(q, k, v, cos, sin)
        scales = (q_scale, k_scale, v_scale)
        return [x.float() * s[..., None, None] for x, s in zip(codes, scales, strict=True)]

    def reference():
        both = [rotated(x.transpose(1, 2), angles.cos(), angles.sin()) for x in (q, k)]
        return [*both, v.transpose(1, 2)]

    return op, reference
