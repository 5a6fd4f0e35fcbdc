"""Cases of small libraries: products with weights of few bits, with blocks of zeros, and with what
lies around a point in space."""

import torch
import torch.nn.functional as F
from libraries import SMS, middle
from library_case import Size
from library_references import by_row, whole
from small_case import BF16, BOTH, FP8, FULL, HALF, HALVES, call

# isort: split
from conch.ops.quantization import gemm as conch_gemm
from flash_attn.ops.triton import linear
from flashnn.triton_kernels import (
    dynamic_quant,
    gemm_a8w8,
    gemm_a16w4,
    gemm_a16w8,
    layer_norm_dquant,
    rms_norm_dquant,
)
from gemlite import core as gemlite
from gemlite.triton_kernels import (
    gemm_kernels,
    gemm_splitK_kernels,
    gemv_kernels,
    gemv_revsplitK_kernels,
    gemv_splitK_kernels,
)
from gptqmodel.nn_modules.triton_utils import dequant, gptq_gemm, gptq_gemv
from gptqmodel.quantization.awq.modules.triton import gemm as awq
from gptqmodel.quantization.paroquant.modules.triton import gemm as paroquant
from spconv_triton.pytorch._impl import gemm as sparse
from spconv_triton.pytorch._impl import pool
from stk.backend import triton_kernels as blocks
from stk.matrix import _transpose
from triton.runtime.autotuner import Autotuner

middle(linear, sparse, pool, dequant)
sparse._multiprocessor_count = lambda _: SMS

ROWS, INNER, COLUMNS = Size(128, 4096, 16), Size(256, 4096, 4096), Size(256, 4096, 4096)
GROUP = 128


def exact(a, b):
    return a.double() @ b.double()


def packed(codes, bits=4, dim=0):
    """In words of 32 bits."""
    parts = codes.long().unflatten(dim, (-1, 32 // bits))
    words = sum(parts.select(dim + 1, n) << (n * bits) for n in range(32 // bits))
    return words.to(torch.uint32).view(torch.int32)


def few_bits(inner, columns, bits=4):
    """Codes, zeros and scales of groups, and what they stand for."""
    codes = torch.randint(0, 1 << bits, (inner, columns))
    zeros = torch.randint(0, 1 << bits, (inner // GROUP, columns))
    scales = torch.rand(inner // GROUP, columns).half() / 10
    numbers = codes.double() - zeros.repeat_interleave(GROUP, 0)
    return codes, zeros, scales, numbers * scales.double().repeat_interleave(GROUP, 0)


# GPTQ, AWQ


@call(INNER, COLUMNS, dtypes=HALF)
def gptq_weights(dtype, inner, columns):
    codes, zeros, scales, numbers = few_bits(inner, columns)
    given = packed(codes), scales, packed(zeros, dim=1), torch.arange(inner).int() // GROUP
    return lambda: dequant.dequant(dtype, *given, 4, 32, 15), lambda: numbers


@call(Size(7, 16, 1), INNER, COLUMNS, dtypes=HALF, timed=BOTH)
def gptq_product(dtype, rows, inner, columns):
    """Of few rows, by a kernel for few and by one for one."""
    codes, zeros, scales, numbers = few_bits(inner, columns)
    given = packed(codes), scales, packed(zeros, dim=1), torch.arange(inner).int() // GROUP
    x = torch.randn(rows, inner, dtype=dtype)
    return (
        lambda: (gptq_gemm.gptq_gemm(x, *given), gptq_gemv.gptq_gemv(x[:1], *given)),
        lambda: (exact(x, numbers), exact(x[:1], numbers)),
    )


ORDER = [0, 4, 1, 5, 2, 6, 3, 7]  # of the numbers of a word


def _awq(inner, columns):
    codes, zeros, scales, numbers = few_bits(inner, columns)

    def mixed(x):
        at = torch.tensor([ORDER.index(n) for n in range(8)])
        return packed(x.unflatten(1, (-1, 8))[..., at].flatten(1), dim=1).contiguous()

    return mixed(codes), scales, mixed(zeros), numbers


@call(ROWS, INNER, COLUMNS, dtypes=HALF, timed=BOTH)
def awq_product(dtype, rows, inner, columns):
    """And the weights alone."""
    codes, scales, zeros, numbers = _awq(inner, columns)
    x = torch.randn(rows, inner, dtype=dtype)
    return (
        lambda: (
            awq.awq_dequantize_triton(codes, scales, zeros),
            awq.awq_gemm_triton(x, codes, scales, zeros, 8),
        ),
        lambda: (numbers, exact(x, numbers)),
    )


@call(ROWS, INNER, COLUMNS, dtypes=HALF, timed=BOTH)
def paroquant_product(dtype, rows, inner, columns):
    codes, scales, zeros, numbers = _awq(inner, columns)
    x = torch.randn(rows, inner, dtype=dtype)
    few = rows <= 16
    product = (
        paroquant.paroquant_gemm_triton_decode if few else paroquant.paroquant_gemm_triton_prefill
    )
    return lambda: product(x, codes, scales, zeros), lambda: exact(x, numbers)


# Mixed types


@call(ROWS, INNER, COLUMNS, dtypes=HALF, timed=BOTH)
def conch_of_4_bits(dtype, rows, inner, columns):
    codes, _, scales, _ = few_bits(inner, columns)
    x = torch.randn(rows, inner, dtype=dtype)
    numbers = (codes.double() - 8) * scales.double().repeat_interleave(GROUP, 0)
    words = packed(codes)
    return (
        lambda: conch_gemm.mixed_precision_gemm(x, words, scales, None, 4, 8, GROUP),
        lambda: exact(x, numbers),
    )


@call(ROWS, INNER, COLUMNS, dtypes=BF16)
def conch_of_8_bits(dtype, rows, inner, columns):
    """Of fp8 and of int8, with a scale for each row and each column."""
    a, b = torch.randn(rows, inner), torch.randn(columns, inner)
    kinds = [[by_row(x, kind) for x in (a, b)] for kind in (FP8, torch.int8)]

    def op(one, two):
        return conch_gemm.scaled_gemm(one[0], two[0].T, one[1], two[1].T, dtype)

    return (
        lambda: [op(*both) for both in kinds],
        lambda: [exact(whole(*one), whole(*two).T) for one, two in kinds],
    )


def _gemlite(kinds, bits, rows, inner, columns, dtype):
    """A product of 4 bits or less with scales and zeros of groups, by several kernels."""
    codes = torch.randint(0, 1 << bits, (columns, inner), dtype=torch.uint8)
    scales, zeros = (torch.rand(2, columns, inner // GROUP) / 10).to(dtype)
    zeros = zeros * 80
    layer = gemlite.GemLiteLinearTriton(bits, GROUP, inner, columns, GEMLITE[dtype], GEMLITE[dtype])
    layer.pack(codes, scales.view(-1, 1), zeros.view(-1, 1))
    numbers = codes.double() - zeros.double().repeat_interleave(GROUP, 1)
    numbers *= scales.double().repeat_interleave(GROUP, 1)
    x = torch.randn(rows, inner, dtype=dtype)
    return (
        lambda: [layer.forward_manual(x, kind) for kind in kinds],
        lambda: [exact(x, numbers.T)] * len(kinds),
    )


GEMLITE_KERNELS = (
    *(gemm_kernels, gemm_splitK_kernels, gemv_kernels, gemv_revsplitK_kernels),
    gemv_splitK_kernels,
)
middle(*GEMLITE_KERNELS)
for module in GEMLITE_KERNELS:
    for kernel in vars(module).values():
        if isinstance(kernel, Autotuner):  # as the library makes configurations fit
            (config,) = kernel.configs
            config.kwargs["BLOCK_SIZE_K"] = min(GROUP, config.kwargs["BLOCK_SIZE_K"])
            if "NUM_STAGES" in kernel.arg_names:
                config.kwargs["NUM_STAGES"] = config.num_stages
            if config.kwargs.get("SPLIT_K", 1) > 1:
                config.pre_hook = gemm_splitK_kernels.init_to_zero("c_ptr")
if not torch.cuda.is_available():
    gemv_kernels.fp4_mapping = {None: torch.zeros(16)}  # of the CPU, which has no number
GEMLITE = {torch.float16: gemlite.DType.FP16, torch.bfloat16: gemlite.DType.BF16}


@call(ROWS, INNER, COLUMNS, dtypes=HALVES, timed=BOTH)
def gemlite_of_4_bits(dtype, *dims):
    return _gemlite(["GEMM", "GEMM_SPLITK"], 4, *dims, dtype)


@call(Size(1, 1, 4), INNER, COLUMNS, dtypes=HALF, timed=BOTH)
def gemlite_of_one_row(dtype, *dims):
    return _gemlite(["GEMV", "GEMV_SPLITK", "GEMV_REVSPLITK"], 4, *dims, dtype)


@call(Size(1, 1, 4), INNER, COLUMNS, dtypes=HALF)
def gemlite_of_2_bits(dtype, *dims):
    return _gemlite(["GEMM_SPLITK", "GEMV_REVSPLITK"], 2, *dims, dtype)


@call(ROWS, INNER, COLUMNS, dtypes=BF16)
def gemlite_of_8_bits(dtype, rows, inner, columns):
    """Rows become int8 and fp8 first."""
    x, w = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner)
    layers, numbers = [], []
    for kind, name in ((torch.int8, "INT8"), (FP8, "FP8")):
        codes, scale = by_row(w, kind)
        given = gemlite.DType[name], GEMLITE[dtype]
        layer = gemlite.GemLiteLinearTriton(
            8, inner, inner, columns, *given, scaled_activations=True
        )
        layers.append(layer.pack(codes, scale, None))
        numbers.append(whole(codes, scale))
    return (
        lambda: [layer.forward_manual(x, "GEMM") for layer in layers],
        lambda: [exact(x, one.T) for one in numbers],
    )


@call(ROWS, INNER, COLUMNS, dtypes=HALF, timed=BOTH)
def flashnn_of_8_bits(dtype, rows, inner, columns):
    """Weights alone, and both."""
    x = torch.randn(rows, inner, dtype=dtype)
    codes, scale = by_row(torch.randn(columns, inner), torch.int8)
    x_codes, x_scale = by_row(x, torch.int8)
    scales = [n.to(dtype) for n in (scale, x_scale)]

    def op():
        one, two = torch.zeros(2, rows, columns, dtype=dtype)
        gemm_a16w8.triton_gemm_a16w8_forward(one, x, codes, scales[0])
        gemm_a8w8.triton_gemm_a8w8_forward(two, x_codes, codes, scales[1], scales[0])
        return one, two

    def reference():
        w = whole(codes, scales[0].double()).T
        return exact(x, w), exact(whole(x_codes, scales[1].double()), w)

    return op, reference


@call(ROWS, INNER, COLUMNS, dtypes=HALF)
def flashnn_of_4_bits(dtype, rows, inner, columns):
    """Two numbers of a byte are in columns beside each other."""
    x, codes = torch.randn(rows, inner, dtype=dtype), torch.randint(-8, 8, (columns, inner))
    scale = torch.rand(columns).to(dtype) / 10
    pairs = (codes[::2] & 15) | (codes[1::2] << 4)

    def op():
        out = torch.zeros(rows, columns, dtype=dtype)
        return gemm_a16w4.triton_gemm_a16w4_forward(out, x, pairs.to(torch.int8), scale)

    return op, lambda: exact(x, (codes.double() * scale.double()[:, None]).T)


@call(Size(15, 8192, 1024), Size(256, 4096, 16384), dtypes=BF16)
def flashnn_norms_to_8_bits(dtype, rows, columns):
    x = torch.randn(rows, columns, dtype=dtype)
    weight, bias = torch.rand(2, columns, dtype=dtype)

    def op():
        plain, scale = torch.empty(rows, columns, dtype=torch.int8), torch.empty(rows, 1).to(dtype)
        dynamic_quant.triton_dynamic_quantize(plain, x, scale)
        norm = layer_norm_dquant.triton_layer_norm_dquant_forward(x, weight, bias, 1e-6)
        pairs = (
            (plain, scale),
            norm[1:],
            rms_norm_dquant.triton_rmsnorm_dquant_forward(x, weight, 1e-6),
        )
        return norm[0], *(codes.float() * of.float().view(-1, 1) for codes, of in pairs)

    def reference():
        one = x.double()
        norm = F.layer_norm(one, (columns,), weight.double(), bias.double(), 1e-6)
        rms = one * torch.rsqrt(one.square().mean(1, keepdim=True) + 1e-6) * weight
        return norm, one, norm, rms

    return op, reference


@call(ROWS, INNER, COLUMNS, dtypes=HALF)
def product_and_squared_relu(dtype, rows, inner, columns):
    """And the gradient before it."""
    x, w = torch.randn(rows, inner, dtype=dtype), torch.randn(columns, inner, dtype=dtype)
    w, bias = w / inner**0.5, torch.randn(columns, dtype=dtype)
    back, before = torch.randn(2, rows, columns, dtype=dtype)
    up = torch.randn(columns, columns, dtype=dtype) / columns**0.5

    def op():
        return (
            *linear.triton_linear_act(x, w, bias, "squared_relu", True),
            linear.triton_dgrad_act(back, up, "squared_relu", before),
        )

    def reference():
        first = exact(x, w.T) + bias
        leaf = before.double().requires_grad_()
        F.relu(leaf).square().backward(exact(back, up))
        return F.relu(first).square(), first, leaf.grad

    return op, reference


# Matrices of which blocks are zero

BLOCK = 128


@call(Size((256, 384), (4096, 16384), (8192, 8192)), Size(256, 1024, 4096), dtypes=HALF)
def sparse_blocks(dtype, rows, columns, inner):
    """A product of which few blocks are wanted, and products with those, from both sides."""
    present = torch.rand(rows // BLOCK, columns // BLOCK) < 0.3
    present[0, 0] = present[-1, -1] = True
    row, column = present.nonzero(as_tuple=True)
    offsets = F.pad(present.sum(1).cumsum(0), (1, 0)).int()
    row, column = row.to(torch.int16), column.to(torch.int16)
    a, b = torch.randn(rows, inner, dtype=dtype), torch.randn(inner, columns, dtype=dtype)
    right, left = torch.randn(columns, inner, dtype=dtype), torch.randn(inner, rows, dtype=dtype)
    data = torch.randn(len(row), BLOCK, BLOCK, dtype=dtype)
    turned = _transpose((rows, columns), data, row, column, offsets)
    spots = row.long(), column.long()

    def op():
        some = torch.empty_like(data)
        one, two = (torch.empty(*n, dtype=dtype) for n in ((rows, inner), (inner, columns)))
        blocks.sdd(a, b, (rows, columns), some, offsets, row, column)
        where = offsets, row, column, turned[1], turned[0], turned[2]
        blocks.dsd((rows, columns), data, *where, False, right, one)
        blocks.dds(left, (rows, columns), data, *where, False, two)
        return some, one, two

    def reference():
        whole = torch.zeros(rows // BLOCK, columns // BLOCK, BLOCK, BLOCK, dtype=torch.float64)
        whole[spots] = data.double()
        whole = whole.transpose(1, 2).reshape(rows, columns)
        every = exact(a, b).unflatten(0, (-1, BLOCK)).unflatten(2, (-1, BLOCK)).transpose(1, 2)
        return every[spots], exact(whole, right), exact(left, whole)

    return op, reference


# Convolutions of points: of each of 27 neighbours there may be a point


def _neighbours(points, share=0.3):
    """(27, points) numbers of other points, of which each is at most one's; and whose each is."""
    there = torch.full((27, points), -1, dtype=torch.int32)
    back = torch.full((27, points), -1, dtype=torch.int32)
    for number in range(27):
        some = torch.rand(points) < share
        others = torch.randperm(points)[: int(some.sum())]
        there[number, some] = others.int()
        back[number, others] = some.nonzero()[:, 0].int()
    return there, back


def _gathered(x, there):
    return torch.where((there >= 0)[..., None], x.double()[there.clamp(min=0).long()], 0)


POINTS = Size((150, 32, 48), (65536, 64, 64), (16384, 256, 256))


@call(POINTS, dtypes=(torch.float16, torch.float32), timed=BOTH)
def convolution_of_points(dtype, points, inner, outer):
    """And its gradients."""
    x, back = torch.randn(points, inner, dtype=dtype), torch.randn(points, outer, dtype=dtype)
    weight = torch.randn(outer, 27, inner, dtype=dtype) / inner**0.5
    there, whose = _neighbours(points)

    def reference():
        near = _gathered(x, there)
        grads = torch.einsum("kpo,oki->pi", _gathered(back, whose), weight.double())
        return (
            torch.einsum("kpi,oki->po", near, weight.double()),
            grads,
            torch.einsum("kpi,po->oki", near, back.double()),
        )

    return (
        lambda: (
            sparse.conv_forward(x, weight, there, points),
            sparse.conv_backward_input(back, weight, whose, points),
            sparse.conv_backward_weight(x, back, there, weight.shape),
        ),
        reference,
    )


@call(POINTS, dtypes=FULL)
def pools_of_points(dtype, points, inner, _):
    x = torch.randn(points, inner, dtype=dtype)
    there, whose = _neighbours(points)

    def op():
        most = pool.maxpool_forward(x, there, points)
        mean, count = pool.avgpool_forward(x, there, points)
        return (
            *(most, pool.maxpool_backward(x, most, x, whose)),
            *(mean, pool.avgpool_backward(x, whose, count)),
        )

    def reference():
        near = _gathered(x, there)
        most = near.masked_fill((there < 0)[..., None], 0).amax(0).clamp(min=0)
        count = (there >= 0).sum(0).clamp(min=1)
        there_ = (whose >= 0)[..., None]
        equal = (_gathered(most, whose) == x) & there_
        shared = x.double() * count[:, None]  # as spconv has it
        return (
            *(most, (_gathered(x, whose) * equal).sum(0)),
            *(near.sum(0) / count[:, None], _gathered(shared, whose).sum(0)),
        )

    return op, reference
