"""Kernels of triton_kernels: mixtures of experts, their routes, and numbers of 8 and 4 bits.

The package lies in Triton's repository, and in the wheel of vLLM as `vllm/third_party`.
"""

import contextlib
import itertools
import types
from collections.abc import Callable, Iterator
from typing import Any

import torch
import triton_kernels.matmul_ogs_details.opt_flags as flags
from libraries import SMS
from library_case import LARGE, Size, calls_in
from triton_kernels import matmul_ogs as products
from triton_kernels import routing as routes
from triton_kernels import swiglu, target_info, tensor, topk
from triton_kernels.compaction import compaction
from triton_kernels.numerics import InFlexData
from triton_kernels.numerics_details import mxfp
from triton_kernels.tensor import FP4, convert_layout, wrap_torch_tensor
from triton_kernels.tensor_details import layout
from triton_kernels.topk import topk_backward

CASES: dict[str, Any] = {}
case = calls_in(CASES)
HALVES = (torch.float16, torch.bfloat16)
BF16 = (torch.bfloat16,)
ALPHA, LIMIT = 1.702, 7.0  # of gpt-oss
# tokens, experts, of which so many are chosen, and the lengths of rows ahead of and behind them
ROUTES = (Size(75, 1 << 14, 1 << 17), Size(37, 32, 128), Size(4, 4, 8))
ROWS = (Size((70, 96, 80), (4096, 2880, 2880), (128, 2880, 5760)),)
LAYER = (Size((45, 6, 2, 64, 96), (2048, 32, 4, 2880, 2880), (64, 32, 4, 2880, 2880)),)
NUMBERS = (Size((50, 96), (8192, 4096), (1024, 32768)),)


def _as_on_a_gpu() -> None:
    """Where there is none, the package takes the CPU for an H200."""
    target = types.SimpleNamespace(backend="cuda", arch=90, warp_size=32)
    active = types.SimpleNamespace(get_current_target=lambda: target)
    runtime = types.SimpleNamespace(driver=types.SimpleNamespace(active=active))
    flags.triton = types.SimpleNamespace(
        next_power_of_2=flags.triton.next_power_of_2, cdiv=flags.triton.cdiv, runtime=runtime
    )
    target_info.num_sms = lambda: SMS
    for module in (tensor, layout):
        module.cuda_capability_geq = lambda major, minor=0: (major, minor) <= (9, 0)


if not torch.cuda.is_available():
    _as_on_a_gpu()


@contextlib.contextmanager
def asked(**constraints: Any) -> Iterator[None]:
    """Has the package's heuristics for products keep to some of their results."""
    flags.update_opt_flags_constraints(constraints)
    try:
        yield
    finally:
        flags.reset_opt_flags_constraints()


def chosen(logits: torch.Tensor, count: int) -> tuple[torch.Tensor, torch.Tensor]:
    """The weights and numbers of the experts of each row, in the order of their numbers."""
    values, experts = logits.float().topk(count, 1)
    experts, order = experts.sort(1)
    return values.softmax(1).gather(1, order), experts


def distinct(tokens: int, experts: int, dtype: torch.dtype = torch.float32) -> torch.Tensor:
    """Rows of numbers that differ, and that fp16 and bf16 have."""
    order = torch.rand(tokens, experts).argsort(1)
    return ((order - experts // 2) / 16).to(dtype)


@case(*ROUTES, dtypes=(*HALVES, torch.float32))
def top_experts(dtype, tokens, experts, count):
    logits = distinct(tokens, experts, dtype)

    def op():
        values, indices, bits = topk.topk(logits, count)
        words = bits.storage.data[:tokens]
        return [values, indices.int(), words.contiguous().view(torch.int32)]

    def reference():
        values, indices = chosen(logits, count)
        words = torch.zeros(tokens, -(-experts // 32), dtype=torch.int64)
        words.scatter_add_(1, indices // 32, 1 << (indices % 32))
        words = torch.where(words < 1 << 31, words, words - (1 << 32))
        return [values.to(dtype), indices.int(), words.int()]

    return op, reference


@case(*ROUTES, dtypes=(torch.float32,))
def gradients_of_top_experts(dtype, tokens, experts, count):
    logits, grad = distinct(tokens, experts, dtype), torch.randn(tokens, count, dtype=dtype)
    indices = chosen(logits, count)[1].to(torch.int16)

    def reference():
        leaf = logits.clone().requires_grad_()
        leaf.gather(1, indices.long()).softmax(1).backward(grad)
        return leaf.grad

    return lambda: topk_backward(logits, indices, grad, count, None, True), reference


@case(*ROUTES, dtypes=HALVES)
def routing(dtype, tokens, experts, count):
    logits = distinct(tokens, experts, dtype)

    def op():
        data, gather, scatter = routes.routing(logits, count)
        tiles = data.expt_data
        blocks = [tiles.token_offs_pad[64], tiles.block_pid_map[64]]
        indices = [gather.src_indx, gather.dst_indx, scatter.src_indx]
        return [data.gate_scal, data.expt_hist, tiles.token_offs_raw, *indices, *blocks]

    def reference():
        weights, indices = chosen(logits, count)
        order = indices.flatten().argsort(stable=True)
        back = order.argsort()
        sizes = torch.bincount(indices.flatten(), minlength=experts)
        tiles = -(-sizes // 64)
        pairs = [(t << 16) | e for e, n in enumerate(tiles.tolist()) for t in range(n)]
        most = tokens * count
        if most > experts:
            most = experts - 1 - (experts - most - 1) // 64
        pairs += [-1] * (len(op()[-1]) - len(pairs))
        starts = [torch.tensor([0, *itertools.accumulate(n.tolist())]) for n in (sizes, tiles)]
        gates = weights.flatten()[order].to(dtype)
        return [gates, sizes, starts[0], order, back, back, starts[1], torch.tensor(pairs)]

    return op, reference


@case(Size(75, 1 << 20, 1 << 22), Size(4, 4, 8), dtypes=(torch.float32,))
def compacted(dtype, rows, count):
    values, mask = torch.randn(rows, count, dtype=dtype), torch.randint(0, 1 << 30, (rows, 1))
    indices = torch.rand(rows, 32).argsort(1)[:, :count].to(torch.int32)

    def reference():
        keep = (mask >> indices) & 1 == 1
        order = (~keep).int().argsort(dim=1, stable=True)
        keep = keep.gather(1, order)
        return [torch.where(keep, x.gather(1, order), -1) for x in (values, indices)]

    return lambda: list(compaction(values, indices, mask.to(torch.int32))), reference


def gated(x: torch.Tensor) -> torch.Tensor:
    left, right = x[..., ::2].clamp(max=LIMIT), x[..., 1::2].clamp(-LIMIT, LIMIT)
    return left * torch.sigmoid(ALPHA * left) * (right + 1)


@case(*NUMBERS, dtypes=(*HALVES, torch.float32))
def swiglu_of_rows(dtype, rows, columns):
    x = 4 * torch.randn(rows, columns, dtype=dtype)
    config = swiglu.PrecisionConfig(limit=LIMIT)
    return lambda: swiglu.swiglu(x, ALPHA, config), lambda: gated(x.float()).to(dtype)


def _steps(block: torch.Tensor, largest: float) -> torch.Tensor:
    """The power of two by which a block of 32 numbers is divided, rounded up, as fp32."""
    most = block.abs().amax(-1, keepdim=True) / largest
    return torch.exp2(torch.ceil(torch.log2(most)))


FP4_VALUES = (0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, 6.0)


def rounded(x: torch.Tensor, kind: torch.dtype) -> torch.Tensor:
    """Rows in blocks of 32 with a scale each, rounded to numbers of 8 bits, or of 4 (uint8)."""
    blocks = x.float().unflatten(-1, (-1, 32))
    if kind == torch.uint8:
        table = torch.tensor(FP4_VALUES)
        scale = _steps(blocks, 6.0)
        between = (table[1:] + table[:-1]) / 2
        codes = torch.bucketize((blocks / scale).abs(), between, right=True)  # ties go up
        return (table[codes] * scale * blocks.sign()).flatten(-2)
    scale = _steps(blocks, torch.finfo(kind).max)
    return ((blocks / scale).to(kind).float() * scale).flatten(-2)


def _there_and_back(kind: torch.dtype) -> Callable[..., Any]:
    def pair(dtype: torch.dtype, rows: int, columns: int) -> Any:
        x = torch.randn(rows, columns, dtype=dtype)

        def op() -> torch.Tensor:
            codes, scales = mxfp.downcast_to_mxfp(x, kind, axis=1)
            return mxfp.upcast_from_mxfp(codes, scales, dtype, axis=1)

        return op, lambda: rounded(x, kind).to(dtype)

    return pair


@case(*NUMBERS, dtypes=HALVES)
def mx4_and_back(dtype, rows, columns):
    return _there_and_back(torch.uint8)(dtype, rows, columns)


@case(*NUMBERS, dtypes=HALVES)
def mx8_and_back(dtype, rows, columns):
    return _there_and_back(torch.float8_e4m3fn)(dtype, rows, columns)


def _product(dtype: torch.dtype, m: int, n: int, k: int, **constraints: Any) -> Any:
    x, w = torch.randn(m, k, dtype=dtype), torch.randn(1, k, n, dtype=dtype) / k**0.5
    bias = torch.randn(1, n)

    def op() -> torch.Tensor:
        with asked(**constraints):
            return products.matmul_ogs(x, w, bias)

    return op, lambda: (x.float() @ w[0].float() + bias[0]).to(dtype)


@case(*ROWS, dtypes=HALVES)
def product(dtype, m, n, k):
    return _product(dtype, m, n, k)


@case(*ROWS, dtypes=BF16)
def product_in_parts(dtype, m, n, k):
    return _product(dtype, m, n, k, split_k=3)


@case(*ROWS, dtypes=BF16)
def product_persistent(dtype, m, n, k):
    return _product(dtype, m, n, k, is_persistent=True)


@case(*ROWS, dtypes=BF16, timed=(LARGE,))
def products_of_a_batch(dtype, m, n, k):
    x, w = torch.randn(3, m, k, dtype=dtype), torch.randn(3, k, n, dtype=dtype) / k**0.5
    return lambda: products.matmul_ogs(x, w, None), lambda: (x.float() @ w.float()).to(dtype)


@case(*ROWS, dtypes=BF16)
def product_of_8_bits(dtype, m, n, k):
    """Columns lie together, as this chip's tensor cores take them; a scale for each side."""
    sides = torch.randn(m, k, dtype=dtype), torch.randn(1, n, k, dtype=dtype)
    scales = [(side.abs().max() / 448).float().reshape(1) for side in sides]
    x, w = ((s / scale).to(torch.float8_e4m3fn) for s, scale in zip(sides, scales, strict=True))
    data = [InFlexData(scale=scale) for scale in scales]
    config = products.PrecisionConfig(flex_ctx=products.FlexCtx(*data), out_dtype=dtype)

    def reference():
        exact = [side.float() * scale for side, scale in zip((x, w[0]), scales, strict=True)]
        return (exact[0] @ exact[1].T).to(dtype)

    return lambda: products.matmul_ogs(x, w.mT, None, precision_config=config), reference


# What is given, what it means, and what goes with it.
Weights = tuple[Any, Callable[[], torch.Tensor], dict[str, Any]]


def as_they_are(w: torch.Tensor) -> Weights:
    return w, w.float, {}


def _of_blocks(kind: torch.dtype, swizzled: bool) -> Callable[[torch.Tensor], Weights]:
    def make(w: torch.Tensor) -> Weights:
        codes, scales = mxfp.downcast_to_mxfp(w.bfloat16(), kind, axis=1)

        def meant() -> torch.Tensor:
            return rounded(w.bfloat16().transpose(1, 2), kind).transpose(1, 2)

        if not swizzled:
            return codes, meant, {"weight_scale": scales}
        value, options = layout.make_default_matmul_mxfp4_w_layout(mx_axis=1)
        of_scales, more = layout.make_default_matmul_mxfp4_w_scale_layout(mx_axis=1, num_warps=4)
        given = convert_layout(wrap_torch_tensor(codes, dtype=FP4), value, **options)
        return (
            given,
            meant,
            {"weight_scale": convert_layout(wrap_torch_tensor(scales), of_scales, **more)},
        )

    return make


def _layer(make: Callable[[torch.Tensor], Weights], dtype: torch.dtype, *dims: int, **asks: Any):
    """Two products of each expert with a gate between them, as a model has them."""
    tokens, experts, count, columns, hidden = dims
    x, logits = torch.randn(tokens, columns, dtype=dtype), distinct(tokens, experts, dtype)
    first = make(torch.randn(experts, columns, 2 * hidden, dtype=dtype) / columns**0.5)
    second = make(torch.randn(experts, hidden, columns, dtype=dtype) / hidden**0.5)
    biases = torch.randn(experts, 2 * hidden), torch.randn(experts, columns)
    specs = products.FnSpecs("swiglu", swiglu.swiglu_fn, ("alpha", "limit"))
    gate = products.FusedActivation(specs, (ALPHA, LIMIT), 2)

    def op() -> torch.Tensor:
        data, gather, scatter = routes.routing(logits, count)
        configs = [products.PrecisionConfig(**given[2]) for given in (first, second)]
        with asked(**asks):
            middle = products.matmul_ogs(
                x, first[0], biases[0], data, gather, None, configs[0], fused_activation=gate
            )
            return products.matmul_ogs(
                middle, second[0], biases[1], data, None, scatter, configs[1], None, data.gate_scal
            )

    def reference() -> torch.Tensor:
        weights, indices = chosen(logits, count)
        meant = first[1](), second[1]()
        out = torch.zeros(tokens, columns)
        for expert in range(experts):
            rows, place = (indices == expert).nonzero(as_tuple=True)
            middle = gated(x[rows].float() @ meant[0][expert] + biases[0][expert]).to(dtype)
            part = middle.float() @ meant[1][expert] + biases[1][expert]
            out.index_add_(0, rows, part * weights[rows, place, None])
        return out.to(dtype)

    return op, reference


@case(*LAYER, dtypes=HALVES)
def experts(dtype, *dims):
    return _layer(as_they_are, dtype, *dims)


@case(*LAYER, dtypes=BF16)
def experts_persistent(dtype, *dims):
    return _layer(as_they_are, dtype, *dims, is_persistent=True)


@case(*LAYER, dtypes=BF16)
def experts_of_mx8(dtype, *dims):
    return _layer(_of_blocks(torch.float8_e4m3fn, False), dtype, *dims)


@case(*LAYER, dtypes=BF16)
def experts_of_mx4(dtype, *dims):
    return _layer(_of_blocks(torch.uint8, False), dtype, *dims)


# Swizzled weights are whole blocks.
@case(Size((45, 6, 2, 128, 256), (2048, 32, 4, 3072, 3072), (64, 32, 4, 3072, 3072)), dtypes=BF16)
def experts_of_mx4_swizzled(dtype, *dims):
    return _layer(_of_blocks(torch.uint8, True), dtype, *dims)
