"""liger-kernel's ops, each beside what it computes, in torch.

A case runs the op and the reference on the same inputs, forwards and backwards, and compares the
results and the gradients of all inputs. Sizes are ugly on purpose.
"""

import functools
from collections.abc import Callable
from typing import Any

import liger_kernel.ops as ops
import torch
import torch.nn.functional as F
from library_results import compare

CASES: dict[str, Callable[[], int]] = {}
Tensors = tuple[torch.Tensor, ...]


def case(
    *inputs: Callable[[], torch.Tensor], also: Tensors = (), dtypes: Any = (torch.float32,)
) -> Callable[[Callable[[], tuple[Any, Any]]], None]:
    """Declares a case: a function that gives (op, reference), functions of tensors with gradients
    like `inputs`. Its name is the case's."""

    def declare(pair: Callable[[], tuple[Any, Any]]) -> None:
        CASES[pair.__name__] = functools.partial(_check, pair, inputs, dtypes)

    return declare


def _check(pair: Any, inputs: Any, dtypes: Any) -> int:
    torch.manual_seed(hash(pair.__name__) % 1000)
    for dtype in dtypes:
        ours, theirs = pair()
        leaves = [make().to(dtype) for make in inputs]
        results = []
        for function in (ours, theirs):
            given = [leaf.clone().requires_grad_() for leaf in leaves]
            out = function(*given)
            outs = [o for o in (out if isinstance(out, tuple | list) else (out,)) if _counts(o)]
            values = [o.detach().clone() for o in outs]
            generator = torch.Generator().manual_seed(1)
            weights = [torch.randn(o.shape, generator=generator).to(o.dtype) for o in outs]
            sum((o * w).sum() for o, w in zip(outs, weights, strict=True)).backward()
            results.append((values, [g.grad for g in given]))
        compare(results[0][0], results[1][0], f"{pair.__name__} of {dtype}, forward")
        compare(results[0][1], results[1][1], f"{pair.__name__} of {dtype}, gradients")
    return len(dtypes)


def _counts(out: Any) -> bool:
    """Whether a result is one that gradients flow from."""
    return isinstance(out, torch.Tensor) and out.requires_grad


def normal(*shape: int) -> Callable[[], torch.Tensor]:
    return lambda: torch.randn(shape)


BOTH = (torch.float32, torch.bfloat16)
TARGET = torch.tensor([3, 0, 96, -100, 50, 1, 7])
ROWS, VOCABULARY, HIDDEN = len(TARGET), 97, 40


# Norms


@case(normal(5, 3, HIDDEN), normal(HIDDEN), normal(HIDDEN))
def layer_norm():
    return (
        lambda x, w, b: ops.LigerLayerNormFunction.apply(x, w, b, 1e-5),
        lambda x, w, b: F.layer_norm(x, (HIDDEN,), w, b, 1e-5),
    )


def _rms(x, w, eps=1e-6, offset=0.0):
    return x * torch.rsqrt(x.pow(2).mean(-1, keepdim=True) + eps) * (w + offset)


@case(normal(5, 3, HIDDEN), normal(HIDDEN))
def rms_norm():
    return lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False), _rms


@case(normal(5, 3, HIDDEN), normal(HIDDEN))
def rms_norm_gemma():
    return (
        lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 1.0, "gemma", False),
        functools.partial(_rms, offset=1.0),
    )


@case(normal(6000, HIDDEN), normal(HIDDEN))
def rms_norm_by_block():
    return lambda x, w: ops.LigerRMSNormFunction.apply(x, w, 1e-6, 0.0, "llama", False), _rms


@case(normal(5, HIDDEN), normal(5, HIDDEN), normal(HIDDEN))
def fused_add_rms_norm():
    return (
        lambda x, r, w: ops.LigerFusedAddRMSNormFunction.apply(x, r, w, 1e-6, 0.0, "llama", False),
        lambda x, r, w: (_rms(x + r, w), x + r),
    )


@case(normal(3, 4, HIDDEN), normal(HIDDEN), normal(3, HIDDEN), normal(3, HIDDEN))
def modulated_rms_norm():
    return (
        lambda x, w, s, t: ops.LigerModulatedRMSNormFunction.apply(
            x, w, s, t, 1e-6, 0.0, "llama", False
        ),
        lambda x, w, s, t: _rms(x, w) * (1 + s[:, None]) + t[:, None],
    )


@case(normal(3, 12, 20), normal(12), normal(12))
def group_norm():
    return (
        lambda x, w, b: ops.LigerGroupNormFunction.apply(x, w, b, 12, 3, 1e-5),
        lambda x, w, b: F.group_norm(x, 3, w, b, 1e-5),
    )


@case(normal(5, HIDDEN), normal(3), normal())
def poly_norm():
    def reference(x, w, b):
        def norm(u):
            return u * torch.rsqrt(u.pow(2).mean(-1, keepdim=True) + 1e-6)

        return w[0] * norm(x**3) + w[1] * norm(x**2) + w[2] * norm(x) + b

    return lambda x, w, b: ops.LigerPolyNormFunction.apply(x, w, b, 1e-6, False), reference


@case(normal(5, 3, HIDDEN), normal(1), normal(HIDDEN), normal(HIDDEN))
def dyt():
    return ops.LigerDyTFunction.apply, lambda x, a, g, b: g * torch.tanh(a * x) + b


# Activations


@case(normal(5, HIDDEN), normal(5, HIDDEN))
def geglu():
    return ops.LigerGELUMulFunction.apply, lambda a, b: F.gelu(a, approximate="tanh") * b


@case(normal(5, HIDDEN), normal(5, HIDDEN), dtypes=BOTH)
def swiglu():
    return ops.LigerSiLUMulFunction.apply, lambda a, b: F.silu(a) * b


@case(normal(5, 2 * HIDDEN))
def swiglu_fused_gate_up():
    def reference(x):
        gate, up = x.chunk(2, -1)
        return F.silu(gate) * up

    return ops.LigerFusedGateUpSiLUMulFunction.apply, reference


@case(normal(5, HIDDEN))
def relu_squared():
    return ops.LigerReLUSquaredFunction.apply, lambda x: F.relu(x) ** 2


@case(normal(5, HIDDEN))
def softmax():
    return ops.LigerSoftmaxFunction.apply, lambda x: F.softmax(x, -1)


@case(normal(5, HIDDEN))
def sparsemax():
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


def _angles(*shape):
    angles = torch.rand(*shape)
    angles = torch.cat((angles, angles), -1)
    return angles.cos(), angles.sin()


@case(normal(2, 4, 7, 16), normal(2, 2, 7, 16))
def rope():
    cos, sin = _angles(1, 7, 8)
    turns = cos[:, None], sin[:, None]
    return (
        lambda q, k: ops.LigerRopeFunction.apply(q.clone(), k.clone(), cos, sin),
        lambda q, k: (_rotated(q, *turns), _rotated(k, *turns)),
    )


@case(normal(2, 4, 7, 16), normal(2, 2, 7, 16))
def qwen2vl_mrope():
    cos, sin = _angles(3, 2, 7, 8)
    sections = [2, 3, 3]

    def chosen(table):
        parts = table.split(sections * 2, -1)
        return torch.cat([part[n % 3] for n, part in enumerate(parts)], -1)[:, None]

    return (
        lambda q, k: ops.LigerQwen2VLMRopeFunction.apply(q.clone(), k.clone(), cos, sin, sections),
        lambda q, k: (_rotated(q, chosen(cos), chosen(sin)), _rotated(k, chosen(cos), chosen(sin))),
    )


@case(normal(2, 7, 4, 16), normal(2, 7, 2, 16))
def llama4_rope():
    angles = torch.rand(7, 8)
    turns = torch.polar(torch.ones_like(angles), angles)

    def turned(x):
        pairs = torch.view_as_complex(x.reshape(*x.shape[:-1], 8, 2))
        return torch.view_as_real(pairs * turns[None, :, None]).flatten(-2)

    return (
        lambda q, k: ops.LigerLlama4RopeFunction.apply(q.clone(), k.clone(), turns),
        lambda q, k: (turned(q), turned(k)),
    )


# Losses


@case(normal(ROWS, VOCABULARY), dtypes=BOTH)
def cross_entropy():
    return (
        lambda x: ops.LigerCrossEntropyFunction.apply(x.clone(), TARGET, None)[0],
        lambda x: F.cross_entropy(x.float(), TARGET).to(x.dtype),
    )


@case(normal(ROWS, VOCABULARY))
def cross_entropy_smoothed():
    weight = torch.rand(VOCABULARY) + 0.5
    return (
        lambda x: ops.LigerCrossEntropyFunction.apply(x.clone(), TARGET, weight, -100, 0.0, 0.1)[0],
        lambda x: F.cross_entropy(x, TARGET, weight, label_smoothing=0.1),
    )


@case(normal(ROWS, VOCABULARY))
def cross_entropy_capped():
    def reference(x):
        x = 5 * torch.tanh(x / 5)
        z = 1e-2 * (torch.logsumexp(x, -1) ** 2)[TARGET != -100].mean()
        return F.cross_entropy(x, TARGET) + z

    return (
        lambda x: ops.LigerCrossEntropyFunction.apply(
            x.clone(), TARGET, None, -100, 1e-2, 0.0, "mean", 5.0
        )[0],
        reference,
    )


@case(normal(2, 4, VOCABULARY))
def vocab_parallel_cross_entropy():
    target = torch.randint(0, VOCABULARY, (2, 4))
    return (
        lambda x: ops.LigerVocabParallelCEFunction.apply(
            x.clone(), target, None, -100, 0.0, "pytorch", "none"
        ),
        lambda x: F.cross_entropy(x.flatten(0, 1), target.flatten(), reduction="none").view(2, 4),
    )


def _linear_loss(x, w, b=None):
    return F.cross_entropy(F.linear(x, w, b), TARGET)


@case(normal(ROWS, HIDDEN), normal(VOCABULARY, HIDDEN), normal(VOCABULARY))
def fused_linear_cross_entropy():
    return (
        lambda x, w, b: ops.LigerFusedLinearCrossEntropyFunction.apply(x, w, TARGET, b)[0],
        _linear_loss,
    )


@case(normal(ROWS, VOCABULARY))
def kl_div():
    target = F.softmax(torch.randn(ROWS, VOCABULARY), -1)
    return (
        lambda x: ops.LigerKLDivLossFunction.apply(F.log_softmax(x, -1), target, "batchmean"),
        lambda x: F.kl_div(F.log_softmax(x, -1), target, reduction="batchmean"),
    )


@case(normal(ROWS, VOCABULARY))
def kl_div_of_logarithms():
    target = F.log_softmax(torch.randn(ROWS, VOCABULARY), -1)
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
def jsd():
    target = F.log_softmax(torch.randn(ROWS, VOCABULARY), -1)
    return (
        lambda x: ops.LigerJSDFunction.apply(F.log_softmax(x, -1), target, None, 0.3),
        lambda x: _jsd(F.log_softmax(x, -1), target, 0.3),
    )


@case(normal(ROWS, HIDDEN), normal(VOCABULARY, HIDDEN))
def fused_linear_jsd():
    teacher, weight = torch.randn(ROWS, 2 * HIDDEN), torch.randn(VOCABULARY, 2 * HIDDEN)
    return (
        lambda x, w: ops.LigerFusedLinearJSDFunction.apply(x, w, teacher, weight),
        lambda x, w: _jsd(F.log_softmax(x @ w.T, -1), F.log_softmax(teacher @ weight.T, -1), 0.5),
    )


@case(normal(ROWS, HIDDEN), normal(VOCABULARY, HIDDEN))
def fused_linear_kl_div():
    target = F.softmax(torch.randn(ROWS, VOCABULARY), -1)
    return (
        lambda x, w: ops.LigerFusedLinearKLDivFunction.apply(x, w, target),
        lambda x, w: F.kl_div(F.log_softmax(x @ w.T, -1), target, reduction="batchmean"),
    )


@case(normal(ROWS, VOCABULARY))
def tvd():
    target = F.softmax(torch.randn(ROWS, VOCABULARY), -1)
    return (
        lambda x: ops.LigerTVDLossFunction.apply(F.softmax(x, -1), target),
        lambda x: 0.5 * (F.softmax(x, -1) - target).abs().sum() / ROWS,
    )


@case(normal(ROWS, VOCABULARY))
def fused_ce_tvd():
    teacher, valid = torch.randn(ROWS, VOCABULARY), TARGET != -100

    def reference(x):
        apart = 0.5 * (F.softmax(x, -1) - F.softmax(teacher, -1)).abs().sum(-1)
        return F.cross_entropy(x, TARGET, reduction="none"), apart * valid

    return lambda x: ops.LigerFusedCETVDFunction.apply(x, teacher, TARGET), reference


@case(normal(2, 6, VOCABULARY))
def grpo_loss():
    ids = torch.randint(0, VOCABULARY, (2, 5))
    old, ref = torch.randn(2, 5) - 4, torch.randn(2, 5) - 4
    advantages, mask = torch.randn(2), torch.ones(2, 5, dtype=torch.int64)

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


@case(normal(2, 3, 9, 9), normal(3, 3, 3, 3))
def multi_token_attention():
    past = torch.tril(torch.ones(9, 9, dtype=torch.bool))

    def reference(scores, weight):
        p = F.softmax(scores.masked_fill(~past, float("-inf")), -1)
        return F.conv2d(p, weight, padding=1).masked_fill(~past, 0.0)

    return (
        lambda s, w: ops.LigerMultiTokenAttentionFunction.apply(s, w, None, 1, 1, 1, 1, False),
        reference,
    )


@case(normal(1, 2, 20, 16), normal(1, 2, 20, 16), normal(1, 2, 20, 16))
def fused_neighborhood_attention():
    distance = (torch.arange(20)[:, None] - torch.arange(20)).abs()
    near = distance <= 3

    def reference(q, k, v):
        scores = (q @ k.transpose(-1, -2) / 4).masked_fill(~near, float("-inf"))
        return F.softmax(scores, -1) @ v

    return (
        lambda q, k, v: ops.LigerFusedNeighborhoodAttentionFunction.apply(q, k, v, 7, 1, None),
        reference,
    )


@case(normal(4, 2, 3, HIDDEN), normal(HIDDEN), normal(HIDDEN))
def attn_res():
    def reference(v, query, norm):
        scores = (_rms(v, norm) * query).sum(-1)
        return (F.softmax(scores, 0)[..., None] * v).sum(0)

    return lambda v, q, n: ops.LigerAttnResFunction.apply(v, q, n, 1e-6), reference


@case(normal(6, 32), normal(4, 64, 32), normal(4, 32, 32))
def fused_moe():
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


@case(normal(50, HIDDEN))
def embedding():
    indices = torch.tensor([[3, 3, 49], [0, 7, 3]])
    return (
        lambda w: ops.LigerEmbeddingFunction.apply(w, indices),
        lambda w: F.embedding(indices, w),
    )


@case(normal(2, 5, 4, 8), normal(2, 5, 4))
def mhc_pre():
    return ops.LigerMHCPreFunction.apply, lambda x, h: (x * h[..., None]).sum(-2)


@case(normal(2, 5, 4, 8), normal(2, 5, 8), normal(2, 5, 4), normal(2, 5, 4, 4))
def mhc_post_res():
    return (
        ops.LigerMHCPostResFunction.apply,
        lambda x, f, post, res: res @ x + post[..., None] * f[..., None, :],
    )
