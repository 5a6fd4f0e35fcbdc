"""liger-kernel's ops, each beside what it computes, in torch.

A case runs the op and the reference on the same inputs, forwards and backwards, and compares the
results and the gradients of all inputs. Sizes are ugly on purpose.
"""

import functools

import liger_kernel.ops as ops
import torch
import torch.nn.functional as F
from library_case import LARGE, Case, Size, cases_in, normal

CASES: dict[str, Case] = {}
BOTH = (torch.float32, torch.bfloat16)
case = cases_in(CASES)
TOKENS = Size((5, 3), 8192, 2048)
BATCHES, FIRST = Size((3, 4), (8, 1024), (2, 1024)), Size(3, 8, 2)
ROWS, HIDDEN, DOUBLE = Size(7, 8192, 2048), Size(40, 4096, 16384), Size(80, 8192, 32768)
VOCABULARY = Size(97, 4096, 32000)
BATCH, LENGTH = Size(2, 4, 1), Size(7, 2048, 8192)
HEADS, SHARED_HEADS, HEAD = Size(4, 32, 32), Size(2, 8, 8), Size(16, 128, 128)
IMAGES, CHANNELS, PIXELS = Size(3, 1024, 256), Size(12, 32, 32), Size(20, 1024, 4096)
SHORT_BATCH, QUERIES_HEADS, QUERIES = Size(2, 128, 512), Size(3, 4, 4), Size(9, 256, 128)
STREAM_LENGTH, WIDTH = Size(5, 512, 512), Size(8, 4096, 4096)
IGNORED = -100


def target_of(x: torch.Tensor) -> torch.Tensor:
    """For each row the column that is right, or that none is."""
    rows, columns = x.shape
    target = torch.randint(0, columns, (rows,))
    target[3::50] = IGNORED
    return target


def distribution(x: torch.Tensor) -> torch.Tensor:
    return F.softmax(torch.randn(x.shape), -1)


# Norms


@case(normal(TOKENS, HIDDEN), normal(HIDDEN), normal(HIDDEN), dtypes=BOTH)
def layer_norm(*_):
    return (
        lambda x, w, b: ops.LigerLayerNormFunction.apply(x, w, b, 1e-5),
        lambda x, w, b: F.layer_norm(x, x.shape[-1:], w, b, 1e-5),
    )


def _rms(x, w, eps=1e-6, offset=0.0):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (w + offset)


@case(normal(TOKENS, HIDDEN), normal(HIDDEN), dtypes=BOTH)
def rms_norm(*_):
    return lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False), _rms


@case(normal(TOKENS, HIDDEN), normal(HIDDEN), dtypes=BOTH)
def rms_norm_gemma(*_):
    return (
        lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 1.0, "gemma", False),
        functools.partial(_rms, offset=1.0),
    )


@case(normal(Size(6000, 1 << 17, 1 << 18), Size(40, 256, 128)), normal(Size(40, 256, 128)))
def rms_norm_by_block(*_):
    return lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False), _rms


@case(normal(ROWS, HIDDEN), normal(ROWS, HIDDEN), normal(HIDDEN), dtypes=BOTH)
def fused_add_rms_norm(*_):
    return (
        lambda x, r, w: ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", False),
        lambda x, r, w: (_rms(x + r, w), x + r),
    )


@case(normal(BATCHES, HIDDEN), normal(HIDDEN), normal(FIRST, HIDDEN), normal(FIRST, HIDDEN))
def modulated_rms_norm(*_):
    return (
        lambda x, w, s, t: ops.LigerModulatedRMSNormFunction.apply(
            x, w, s, t, 1e-6, 0.0, "llama", False
        ),
        lambda x, w, s, t: _rms(x, w) * (1 + s[:, None]) + t[:, None],
    )


@case(normal(IMAGES, CHANNELS, PIXELS), normal(CHANNELS), normal(CHANNELS))
def group_norm(x, *_):
    channels = x.shape[1]
    groups = channels // 4
    return (
        lambda x, w, b: ops.LigerGroupNormFunction.apply(x, w, b, channels, groups, 1e-5),
        lambda x, w, b: F.group_norm(x, groups, w, b, 1e-5),
    )


@case(normal(ROWS, HIDDEN), normal(3), normal())
def poly_norm(*_):
    def reference(x, w, b):
        def norm(u):
            return u * torch.rsqrt(u.pow(2).mean(-1, keepdim=True) + 1e-6)

        return w[0] * norm(x**3) + w[1] * norm(x**2) + w[2] * norm(x) + b

    return lambda x, w, b: ops.LigerPolyNormFunction.apply(x, w, b, 1e-6, False), reference


@case(normal(TOKENS, HIDDEN), normal(1), normal(HIDDEN), normal(HIDDEN))
def dyt(*_):
    return ops.LigerDyTFunction.apply, lambda x, a, g, b: g * torch.tanh(a * x) + b


# Activations


@case(normal(ROWS, HIDDEN), normal(ROWS, HIDDEN), dtypes=BOTH)
def geglu(*_):
    return ops.LigerGELUMulFunction.apply, lambda a, b: F.gelu(a, approximate="tanh") * b


@case(normal(ROWS, HIDDEN), normal(ROWS, HIDDEN), dtypes=BOTH)
def swiglu(*_):
    return ops.LigerSiLUMulFunction.apply, lambda a, b: F.silu(a) * b


@case(normal(ROWS, DOUBLE), dtypes=BOTH)
def swiglu_fused_gate_up(*_):
    def reference(x):
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up

    return ops.LigerFusedGateUpSiLUMulFunction.apply, reference


@case(normal(ROWS, HIDDEN), dtypes=BOTH)
def relu_squared(*_):
    return ops.LigerReLUSquaredFunction.apply, lambda x: F.relu(x) ** 2


@case(normal(ROWS, HIDDEN), dtypes=BOTH)
def softmax(*_):
    return ops.LigerSoftmaxFunction.apply, lambda x: F.softmax(x, -1)


@case(normal(ROWS, HIDDEN), timed=(LARGE,))
def sparsemax(*_):
    def reference(x):
        ordered, _ = x.sort(-1, descending=True)
        sums = ordered.cumsum(-1) - 1
        ranks = torch.arange(1, x.shape[-1] + 1)
        size = (ordered * ranks > sums).sum(-1, keepdim=True)
        return F.relu(x - sums.gather(-1, size - 1) / size)

    return lambda x: ops.LigerSparsemaxFunction.apply(x, -1), reference


# Rotary embeddings


def _rotated(x, cos, sin):
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


def _angles(*shape, dtype=torch.float32):
    angles = torch.rand(*shape)
    angles = torch.cat((angles, angles), -1)
    return angles.cos().to(dtype), angles.sin().to(dtype)


@case(normal(BATCH, HEADS, LENGTH, HEAD), normal(BATCH, SHARED_HEADS, LENGTH, HEAD), dtypes=BOTH)
def rope(q, _):
    cos, sin = _angles(1, q.shape[2], q.shape[3] // 2, dtype=q.dtype)
    turns = cos[:, None], sin[:, None]
    return (
        lambda q, k: ops.LigerRopeFunction.apply(q.clone(), k.clone(), cos, sin),
        lambda q, k: (_rotated(q, *turns), _rotated(k, *turns)),
    )


@case(normal(BATCH, HEADS, LENGTH, HEAD), normal(BATCH, SHARED_HEADS, LENGTH, HEAD))
def qwen2vl_mrope(q, _):
    batch, _, length, head = q.shape
    cos, sin = _angles(3, batch, length, head // 2)
    sections = [n * head // 16 for n in (2, 3, 3)]

    def chosen(table):
        parts = table.split(sections * 2, -1)
        return torch.cat([part[n % 3] for n, part in enumerate(parts)], -1)[:, None]

    return (
        lambda q, k: ops.LigerQwen2VLMRopeFunction.apply(q.clone(), k.clone(), cos, sin, sections),
        lambda q, k: (_rotated(q, chosen(cos), chosen(sin)), _rotated(k, chosen(cos), chosen(sin))),
    )


@case(normal(BATCH, LENGTH, HEADS, HEAD), normal(BATCH, LENGTH, SHARED_HEADS, HEAD))
def llama4_rope(q, _):
    angles = torch.rand(q.shape[1], q.shape[3] // 2)
    turns = torch.polar(torch.ones_like(angles), angles)

    def turned(x):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], -1, 2))
        return torch.view_as_real(pairs * turns[None, :, None]).flatten(-2)

    return (
        lambda q, k: ops.LigerLlama4RopeFunction.apply(q.clone(), k.clone(), turns),
        lambda q, k: (turned(q), turned(k)),
    )


# Losses


@case(normal(ROWS, VOCABULARY), dtypes=BOTH)
def cross_entropy(x):
    target = target_of(x)
    return (
        lambda x: ops.LigerCrossEntropyFunction.apply(x.clone(), target, None)[0],
        lambda x: F.cross_entropy(x.float(), target).to(x.dtype),
    )


@case(normal(ROWS, VOCABULARY))
def cross_entropy_smoothed(x):
    target, weight = target_of(x), torch.rand(x.shape[1]) + 0.5
    return (
        lambda x: ops.LigerCrossEntropyFunction.apply(x.clone(), target, weight, IGNORED, 0.0, 0.1)[
            0
        ],
        lambda x: F.cross_entropy(x, target, weight, label_smoothing=0.1),
    )


@case(normal(ROWS, VOCABULARY))
def cross_entropy_capped(x):
    target = target_of(x)

    def reference(x):
        x = 5 * torch.tanh(x / 5)
        z = 1e-2 * (torch.logsumexp(x, -1) ** 2)[target != IGNORED].mean()
        return F.cross_entropy(x, target) + z

    return (
        lambda x: ops.LigerCrossEntropyFunction.apply(
            x.clone(), target, None, IGNORED, 1e-2, 0.0, "mean", 5.0
        )[0],
        reference,
    )


@case(normal(BATCHES, VOCABULARY))
def vocab_parallel_cross_entropy(x):
    target = torch.randint(0, x.shape[-1], x.shape[:-1])
    return (
        lambda x: ops.LigerVocabParallelCEFunction.apply(
            x.clone(), target, None, IGNORED, 0.0, "pytorch", "none"
        ),
        lambda x: F.cross_entropy(x.flatten(0, 1), target.flatten(), reduction="none").view_as(
            target
        ),
    )


# What follows a product here are the kernels of other cases.
@case(normal(ROWS, HIDDEN), normal(VOCABULARY, HIDDEN), normal(VOCABULARY), timed=())
def fused_linear_cross_entropy(x, *_):
    target = target_of(x)
    return (
        lambda x, w, b: ops.LigerFusedLinearCrossEntropyFunction.apply(x, w, target, b)[0],
        lambda x, w, b: F.cross_entropy(F.linear(x, w, b), target),
    )


@case(normal(ROWS, VOCABULARY))
def kl_div(x):
    target = distribution(x)
    return (
        lambda x: ops.LigerKLDivLossFunction.apply(F.log_softmax(x, -1), target, "batchmean"),
        lambda x: F.kl_div(F.log_softmax(x, -1), target, reduction="batchmean"),
    )


@case(normal(ROWS, VOCABULARY))
def kl_div_of_logarithms(x):
    target = distribution(x).log()
    return (
        lambda x: ops.LigerKLDivLossFunction.apply(F.log_softmax(x, -1), target, "sum", True),
        lambda x: F.kl_div(F.log_softmax(x, -1), target, reduction="sum", log_target=True),
    )


def _jsd(x, y, beta):
    mixed = (beta * y.exp() + (1 - beta) * x.exp()).log()
    first = F.kl_div(mixed, y, reduction="sum", log_target=True)
    second = F.kl_div(mixed, x, reduction="sum", log_target=True)
    return (beta * first + (1 - beta) * second) / x.shape[0]


@case(normal(ROWS, VOCABULARY))
def jsd(x):
    target = distribution(x).log()
    return (
        lambda x: ops.LigerJSDFunction.apply(F.log_softmax(x, -1), target, None, 0.3),
        lambda x: _jsd(F.log_softmax(x, -1), target, 0.3),
    )


@case(normal(ROWS, HIDDEN), normal(VOCABULARY, HIDDEN), timed=())
def fused_linear_jsd(x, w):
    teacher, weight = (torch.randn(len(one), 2 * one.shape[1]) for one in (x, w))
    return (
        lambda x, w: ops.LigerFusedLinearJSDFunction.apply(x, w, teacher, weight),
        lambda x, w: _jsd(F.log_softmax(x @ w.T, -1), F.log_softmax(teacher @ weight.T, -1), 0.5),
    )


@case(normal(ROWS, HIDDEN), normal(VOCABULARY, HIDDEN), timed=())
def fused_linear_kl_div(x, w):
    target = F.softmax(torch.randn(len(x), len(w)), -1)
    return (
        lambda x, w: ops.LigerFusedLinearKLDivFunction.apply(x, w, target),
        lambda x, w: F.kl_div(F.log_softmax(x @ w.T, -1), target, reduction="batchmean"),
    )


@case(normal(ROWS, VOCABULARY))
def tvd(x):
    target = distribution(x)
    return (
        lambda x: ops.LigerTVDLossFunction.apply(F.softmax(x, -1), target),
        lambda x: 0.5 * (F.softmax(x, -1) - target).abs().sum() / len(x),
    )


@case(normal(ROWS, VOCABULARY))
def fused_ce_tvd(x):
    teacher, target = torch.randn(x.shape), target_of(x)
    valid = target != IGNORED

    def reference(x):
        apart = 0.5 * (F.softmax(x, -1) - F.softmax(teacher, -1)).abs().sum(-1)
        return F.cross_entropy(x, target, reduction="none"), apart * valid

    return lambda x: ops.LigerFusedCETVDFunction.apply(x, teacher, target), reference


@case(normal(BATCH, Size(6, 2049, 2049), VOCABULARY))
def grpo_loss(x):
    batch, length = x.shape[0], x.shape[1] - 1
    ids = torch.randint(0, x.shape[2], (batch, length))
    old, ref = torch.randn(2, batch, length) - 4
    advantages, mask = torch.randn(batch), torch.ones(batch, length, dtype=torch.int64)

    def reference(x):
        logp = F.log_softmax(x[:, :-1] / 0.9, -1).gather(-1, ids[..., None])[..., 0]
        ratio = (logp - old).exp()
        clipped = ratio.clamp(0.8, 1.2)
        loss = -torch.minimum(ratio * advantages[:, None], clipped * advantages[:, None])
        return (loss + 0.04 * ((ref - logp).exp() - (ref - logp) - 1)).mean()

    return (
        lambda x: ops.GrpoLossFunction.apply(
            x, old, ref, ids, advantages, mask, 0.9, 0.04, 0.2, 0.2, False
        )[0],
        reference,
    )


# Attention, mixtures, embeddings


@case(
    normal(SHORT_BATCH, QUERIES_HEADS, QUERIES, QUERIES),
    normal(QUERIES_HEADS, QUERIES_HEADS, 3, 3),
)
def multi_token_attention(scores, _):
    past = torch.tril(torch.ones(scores.shape[2:], dtype=torch.bool))

    def reference(scores, weight):
        p = F.softmax(scores.masked_fill(~past, float("-inf")), -1)
        return F.conv2d(p, weight, padding=1).masked_fill(~past, 0.0)

    return (
        lambda s, w: ops.LigerMultiTokenAttentionFunction.apply(s, w, None, 1, 1, 1, 1, False),
        reference,
    )


@case(normal(1, 2, 20, 16), normal(1, 2, 20, 16), normal(1, 2, 20, 16), timed=())
def fused_neighborhood_attention(*_):
    distance = (torch.arange(20)[:, None] - torch.arange(20)).abs()
    near = distance <= 3

    def reference(q, k, v):
        scores = (q @ k.transpose(-1, -2) / 4).masked_fill(~near, float("-inf"))
        return F.softmax(scores, -1) @ v

    return (
        lambda q, k, v: ops.LigerFusedNeighborhoodAttentionFunction.apply(q, k, v, 7, 1, None),
        reference,
    )


@case(normal(4, BATCHES, HIDDEN), normal(HIDDEN), normal(HIDDEN))
def attn_res(*_):
    def reference(v, query, norm):
        scores = (_rms(v, norm) * query).sum(-1)
        return (F.softmax(scores, 0)[..., None] * v).sum(0)

    return lambda v, q, n: ops.LigerAttnResFunction.apply(v, q, n, 1e-6), reference


@case(normal(6, 32), normal(4, 64, 32), normal(4, 32, 32), timed=())
def fused_moe(*_):
    index = torch.stack([torch.randperm(4)[:2] for _ in range(6)]).int()
    weights = torch.rand(6, 2)

    def reference(x, up, down):
        rows = []
        for row in range(6):
            total = 0
            for slot in range(2):
                expert = int(index[row, slot])
                gate, value = (up[expert] @ x[row]).chunk(2)
                total = total + weights[row, slot] * (down[expert] @ (F.silu(gate) * value))
            rows.append(total)
        return torch.stack(rows)

    return lambda x, u, d: ops.LigerFusedMoEFunction.apply(x, u, d, index, weights), reference


@case(normal(VOCABULARY, HIDDEN))
def embedding(w):
    indices = torch.randint(0, len(w), (2, 3) if len(w) < 100 else (4, 2048))
    return (
        lambda w: ops.LigerEmbeddingFunction.apply(w, indices),
        lambda w: F.embedding(indices, w),
    )


@case(normal(BATCH, STREAM_LENGTH, 4, WIDTH), normal(BATCH, STREAM_LENGTH, 4), timed=(LARGE,))
def mhc_pre(*_):
    return ops.LigerMHCPreFunction.apply, lambda x, h: (x * h[..., None]).sum(-2)


@case(
    normal(BATCH, STREAM_LENGTH, 4, WIDTH),
    normal(BATCH, STREAM_LENGTH, WIDTH),
    normal(BATCH, STREAM_LENGTH, 4),
    normal(BATCH, STREAM_LENGTH, 4, 4),
    timed=(LARGE,),
)
def mhc_post_res(*_):
    return (
        ops.LigerMHCPostResFunction.apply,
        lambda x, f, post, res: res @ x + post[..., None] * f[..., None, :],
    )
