"""Cases of small libraries: norms, activations, angles, losses, optimisers, and what replaces a
softmax by a sparse one."""

import math

import torch
import torch.nn.functional as F
from libraries import middle
from library_case import Size, normal
from library_references import gated, rms, rotated, whole
from small_case import (
    BF16,
    BOTH,
    FULL,
    HALF,
    HEAD,
    HEADS,
    HIDDEN,
    SHARED,
    TOKENS,
    call,
    case,
    eager,
    gradients,
)

# isort: split
import memeff
from adasplash import triton_entmax, triton_entmax_v2
from conch.kernels.activation import silu_and_mul
from conch.kernels.embedding import rotary_embedding
from conch.kernels.normalization import gemma_rms_norm, rms_norm
from conch.kernels.quantization import fp8, int8
from flash_attn.ops.triton import cross_entropy, layer_norm, rotary
from lion_pytorch import triton as lion
from mamba_ssm.ops.triton import k_activations, layernorm_gated
from torchnorm import _triton as torchnorm
from triton_muon_adamw.adamw import triton_adam
from triton_muon_adamw.muon import triton_muon

middle(triton_entmax, triton_entmax_v2)
with eager():
    from cut_cross_entropy import cce
TYPES = (torch.float32, torch.bfloat16)
ROWS = Size(15, 8192, 1024)

# Norms


def _rms(x, w, eps=1e-6):
    return rms(x, w, eps).to(x.dtype)


@case(normal(TOKENS, HIDDEN), normal(HIDDEN), dtypes=TYPES)
def torchnorm_rms(*_):
    return lambda x, w: torchnorm.fused_rms_norm(x, w, 1e-6), _rms


@case(normal(TOKENS, HIDDEN), normal(TOKENS, HIDDEN), normal(HIDDEN), dtypes=BF16)
def torchnorm_rms_of_sum(*_):
    """The sum itself has no gradients there."""
    return (
        lambda x, y, w: torchnorm.fused_add_rms_norm(x, y, w, 1e-6)[0],
        lambda x, y, w: _rms(x + y, w),
    )


@case(normal(TOKENS, HIDDEN), normal(HIDDEN), normal(HIDDEN), dtypes=TYPES)
def torchnorm_layer(*_):
    return (
        lambda x, w, b: torchnorm.fused_layer_norm(x, w, b, 1e-6),
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-6),
    )


@case(normal(TOKENS, HIDDEN), normal(TOKENS, HIDDEN), normal(HIDDEN), normal(HIDDEN), dtypes=BF16)
def flash_layer_norm(*_):
    """Of a sum, which is also given."""
    return (
        lambda x, y, w, b: layer_norm.layer_norm_fn(x, w, b, y, prenorm=True),
        lambda x, y, w, b: (F.layer_norm(x + y, x.shape[-1:], w, b, 1e-6), x + y),
    )


@case(normal(TOKENS, HIDDEN), normal(HIDDEN), dtypes=BF16)
def flash_rms_norm(*_):
    return lambda x, w: layer_norm.rms_norm_fn(x, w, None), _rms


WIDTHS = Size(64, 4096, 16384)


@case(normal(TOKENS, WIDTHS), normal(TOKENS, WIDTHS), normal(WIDTHS), dtypes=BF16)
def mamba_gated_norm(x, *_):
    """By groups, of what a gate has multiplied."""
    groups = 8

    def reference(x, z, w):
        numbers = x.float() * F.silu(z.float())
        parts = numbers.unflatten(-1, (groups, -1))
        return (_rms(parts, 1.0).flatten(-2) * w.float()).to(x.dtype)

    return (
        lambda x, z, w: layernorm_gated.rmsnorm_fn(
            x, w, None, z, group_size=x.shape[-1] // groups, norm_before_gate=False
        ),
        reference,
    )


@case(normal(TOKENS, WIDTHS), dtypes=BF16)
def mamba_swiglu(_):
    return k_activations.swiglu, lambda x: gated(x).to(x.dtype)


@call(ROWS, HIDDEN, dtypes=HALF)
def conch_norms(dtype, rows, columns):
    x, y = torch.randn(2, rows, columns, dtype=dtype)
    weight = torch.randn(columns, dtype=dtype)

    def op():
        one, a, b, c = torch.empty_like(x), x.clone(), y.clone(), x.clone()
        rms_norm.rms_norm_launcher(one, x, weight, 1e-6)
        rms_norm.fused_add_rms_norm_launcher(a, b, weight, 1e-6)
        gemma_rms_norm.gemma_rms_norm_inplace_launcher(c, weight, 1e-6)
        return one, a, b, c

    return op, lambda: (_rms(x, weight), _rms(x + y, weight), x + y, rms(x, weight.double() + 1))


# Activations and angles


@call(ROWS, Size(48, 14336, 14336), dtypes=HALF)
def conch_silu(dtype, rows, columns):
    """Another one of the library's, GELU, asks for a global that is no constexpr."""
    x = torch.randn(rows, 2 * columns, dtype=dtype)

    def op():
        out = torch.empty(rows, columns, dtype=dtype)
        silu_and_mul.silu_and_mul_launcher(out, x)
        return out

    return op, lambda: gated(x)


@call(ROWS, dtypes=HALF)
def conch_rope(dtype, tokens):
    q, k = (torch.randn(tokens, heads * HEAD, dtype=dtype) for heads in (HEADS, SHARED))
    angles, places = torch.rand(2 * tokens, HEAD // 2) * 6, torch.randint(0, 2 * tokens, (tokens,))
    both = torch.cat((angles.cos(), angles.sin()), -1).to(dtype)

    def op():
        found = q.clone(), k.clone()
        rotary_embedding.rotary_embedding_launcher(places, *found, HEAD, both)
        return found

    def reference():
        cos, sin = both[places][:, None].double().chunk(2, -1)
        return [rotated(x.unflatten(-1, (-1, HEAD)), cos, sin).flatten(1) for x in (q, k)]

    return op, reference


@call(Size(2, 4, 1), Size(7, 2048, 8192), dtypes=BF16, timed=BOTH)
def flash_rope(dtype, count, tokens):
    """By halves and by pairs, of which the first 64 numbers are turned."""
    x, angles = torch.randn(count, tokens, HEADS, HEAD, dtype=dtype), torch.rand(tokens, 64) * 6
    cos, sin = (n.to(dtype) for n in (angles.cos(), angles.sin()))
    few = [n[:, :32].contiguous() for n in (cos, sin)]

    def reference():
        by_half = rotated(x, cos[:, None].double(), sin[:, None].double())
        ahead, rest = x[..., :64], x[..., 64:].double()
        parts = torch.cat((ahead[..., ::2], ahead[..., 1::2]), -1)
        turned = rotated(parts, few[0][:, None].double(), few[1][:, None].double())
        pairs = torch.stack(turned.chunk(2, -1), -1).flatten(-2)
        return by_half, torch.cat((pairs, rest), -1)

    return (
        lambda: (rotary.apply_rotary(x, cos, sin), rotary.apply_rotary(x, *few, interleaved=True)),
        reference,
    )


@call(ROWS, HIDDEN, dtypes=HALF)
def conch_quantised(dtype, rows, columns):
    x = torch.randn(rows, columns, dtype=dtype)
    scale = x.float().abs().max().view(1) / 127

    def op():
        one = torch.empty(rows, columns, dtype=torch.float8_e4m3fn)
        two = torch.empty(rows, columns, dtype=torch.int8)
        fp8.static_scaled_fp8_quant_launcher(one, x, scale)
        int8.static_scaled_int8_quant_launcher(two, x, scale)
        return whole(one, scale), whole(two, scale)

    def reference():
        codes = x.double() / scale
        return codes.to(torch.float8_e4m3fn).double() * scale, codes.trunc() * scale

    return op, reference


# Losses

VOCABULARY = Size(97, 32000, 128256)


@case(normal(Size(7, 4096, 1024), VOCABULARY), dtypes=TYPES)
def flash_cross_entropy(x):
    """With labels smoothed, and the square of the sum's logarithm."""
    labels = torch.randint(0, x.shape[1], x.shape[:1])
    labels[3::50] = -100

    def reference(x):
        x = x.float()
        every = F.cross_entropy(x, labels, label_smoothing=0.1, reduction="none")
        return every + (1e-4 * x.logsumexp(1).square()).masked_fill(labels == -100, 0)

    return (
        lambda x: cross_entropy.cross_entropy_loss(
            x.clone(), labels, label_smoothing=0.1, lse_square_scale=1e-4
        )[0],
        reference,
    )


@call(Size(70, 8192, 2048), Size(96, 2048, 4096), VOCABULARY, dtypes=BF16, timed=BOTH)
def cut_cross_entropy(dtype, tokens, hidden, words):
    """A product and its cross-entropy, of which no logits are written."""
    x, w = torch.randn(tokens, hidden, dtype=dtype), torch.randn(words, hidden, dtype=dtype)
    w, labels = w / hidden**0.5, torch.randint(0, words, (tokens,))
    labels[3::50] = -100

    return gradients(
        lambda x, w: cce.cce_linear_cross_entropy(x, w, labels),
        lambda x, w: F.cross_entropy(x @ w.T, labels),
        *(x, w),
    )


PAIRS, FEATURES = Size(70, 8192, 16384), Size(128, 768, 512)
TEMPERATURE = 0.07


def _contrast(x, y, dims=None):
    x, y = (F.normalize(n[:, :dims].double(), dim=1) for n in (x, y))
    scores = x @ y.T / TEMPERATURE
    labels = torch.arange(len(x))
    return (F.cross_entropy(scores, labels) + F.cross_entropy(scores.T, labels)) / 2


def _pairs(dtype, count, dims):
    x = torch.randn(count, dims)
    return x.to(dtype), (x + 8 * torch.randn(count, dims)).to(dtype)


@call(PAIRS, FEATURES, dtypes=BF16, timed=BOTH)
def contrastive_loss(dtype, *dims):
    loss = memeff.MemoryEfficientCLIPLoss(TEMPERATURE, stable=False)
    return gradients(loss, _contrast, *_pairs(dtype, *dims))


@call(PAIRS, FEATURES, dtypes=FULL)
def contrastive_losses_of_parts(dtype, count, dims):
    parts = (dims // 2, dims)
    loss = memeff.MemoryEfficientMatryoshkaCLIPLoss(parts, temperature=TEMPERATURE, stable=False)
    both = _pairs(dtype, count, dims)
    return gradients(loss, lambda x, y: sum(_contrast(x, y, part) for part in parts), *both)


@call(PAIRS, FEATURES, dtypes=BF16)
def retrieval_loss(dtype, *dims):
    """Other documents and other queries tell a query from, but for those too near."""
    loss = memeff.MemoryEfficientQwen3Loss(
        TEMPERATURE, margin=0.1, use_qq_negatives=True, use_dd_negatives=True, stable=False
    )

    def reference(q, d):
        q, d = (F.normalize(n, dim=1) for n in (q, d))
        own = (q * d).sum(1)
        other = ~torch.eye(len(q), dtype=torch.bool)

        def total(scores, counted):
            counted = counted & (scores.detach() <= own.detach()[:, None] + 0.1)
            return ((scores / TEMPERATURE).exp() * counted).sum(1)

        every = total(q @ d.T, torch.ones_like(other))
        every = every + total(q @ q.T, other) + total(d @ d.T, other)
        return (every.log() - own / TEMPERATURE).mean()

    return gradients(loss, reference, *_pairs(dtype, *dims))


# Softmaxes that give zeros


def sparse_softmax(x):
    """Entmax of alpha 1.5."""
    x = x / 2
    top = x.sort(-1, descending=True).values
    rank = torch.arange(1, x.shape[-1] + 1)
    mean = top.cumsum(-1) / rank
    spread = rank * ((top * top).cumsum(-1) / rank - mean * mean)
    edge = mean - ((1 - spread) / rank).clamp(min=0).sqrt()
    count = (edge <= top).sum(-1, keepdim=True)
    return (x - edge.gather(-1, count - 1)).clamp(min=0).square()


ENTMAX = Size((2, 5, 97), (8, 1024, 4096), (1, 1024, 32000))


@case(normal(ENTMAX), dtypes=FULL)
def entmax(_):
    return lambda x: triton_entmax._entmax_triton.apply(x, 1.5, 20, False), sparse_softmax


@case(normal(ENTMAX), dtypes=FULL)
def entmax_by_histogram(_):
    return lambda x: triton_entmax_v2._entmax_triton.apply(x, 1.5, 6, True, False), sparse_softmax


# Optimisers

WEIGHTS = Size((70, 90), (4096, 4096), (1024, 16384))


@call(WEIGHTS, dtypes=FULL)
def lion_step(dtype, *dims):
    weight, gradient, mean = torch.randn(3, *dims, dtype=dtype)

    def op():
        found = weight.clone(), mean.clone()
        lion.update_fn(found[0], gradient, found[1], 1e-3, 0.1, 0.9, 0.99)
        return found

    def reference():
        step = (mean * 0.9 + gradient * 0.1).sign()
        return weight * (1 - 1e-4) - 1e-3 * step, mean * 0.99 + gradient * 0.01

    return op, reference


@call(WEIGHTS, dtypes=FULL)
def adam_step(dtype, *dims):
    weight, gradient, mean = torch.randn(3, *dims, dtype=dtype)
    square = torch.rand(*dims)
    bias = 1 - 0.9**3, 1 - 0.999**3

    def op():
        found = weight.clone(), mean.clone(), square.clone()
        triton_adam.solve_adamw_step(
            *(found[0], gradient, *found[1:], 1e-3, *bias, 0.9, 0.999, 0.01, 1e-7)
        )
        return found

    def reference():
        one, two = (
            mean.double() * 0.9 + gradient * 0.1,
            square.double() * 0.999 + gradient.double().square() * 0.001,
        )
        step = one / bias[0] / ((two / bias[1]).sqrt() + 1e-7)
        return weight * (1 - 1e-5) - 1e-3 * step, one, two

    return op, reference


@call(Size((70, 90), (2048, 8192), (4096, 4096)), dtypes=BF16)
def orthogonal_step(dtype, rows, columns):
    """Newton and Schulz' step of Muon: three products, two of which are symmetric."""
    x = torch.randn(rows, columns, dtype=dtype) / math.sqrt(rows * columns)
    a, b, c = 3.445, -4.775, 2.0315

    def op():
        out = torch.empty_like(x)
        triton_muon.newton_shultz_step(x, a, b, c, out)
        return out

    def reference():
        one = x.double()
        square = one @ one.T
        return a * one + (b * square + c * square @ square) @ one

    return op, reference
