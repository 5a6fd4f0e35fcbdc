"""flash-linear-attention's modules and small ops, each beside what it computes, in torch."""

import importlib
import itertools

import fla.modules.activations.ops as act
import torch
import torch.nn.functional as F
from fla_case import case, reference, varied
from library_case import normal

B, T, H, D, V = 2, 50, 3, 40, 97
X, ROW = normal(B, T, D), normal(D)
BOTH = (torch.float32, torch.bfloat16)


def _module(file, name):
    return getattr(importlib.import_module(f"fla.modules.{file}"), name)


# Activations


@case(X, dtypes=BOTH)
def sigmoid(*_):
    return act.sigmoid, torch.sigmoid


@case(X)
def elu_p1(*_):
    return act.elu_p1, lambda x: F.elu(x) + 1


@case(X)
def logsigmoid(*_):
    return lambda x: act.logsigmoid(x, 2.0), lambda x: F.logsigmoid(x) / 2


@case(X, dtypes=BOTH)
def swish(*_):
    return act.swish, F.silu


@case(X, X, dtypes=BOTH)
def swiglu(*_):
    return act.swiglu, lambda x, y: F.silu(x) * y


@case(X, X, normal(24, D), normal(24))
def swiglu_linear(*_):
    return act.swiglu_linear, lambda x, y, w, b: F.linear(F.silu(x) * y, w, b)


@case(X, X)
def sigmoidglu(*_):
    return act.sigmoidglu, lambda x, y: x.sigmoid() * y


@case(X, X, normal(24, D), normal(24))
def sigmoidglu_linear(*_):
    return act.sigmoidglu_linear, lambda x, y, w, b: F.linear(x.sigmoid() * y, w, b)


# Norms


@case(X, ROW, ROW, dtypes=BOTH)
def layer_norm(*_):
    return _module("norm.layernorm", "layer_norm"), lambda x, w, b: F.layer_norm(x, (D,), w, b)


@case(X, ROW, ROW, X)
def layer_norm_residual(*_):
    op = _module("norm.layernorm", "layer_norm")
    return (
        lambda x, w, b, r: op(x, w, b, residual=r, prenorm=True),
        lambda x, w, b, r: (F.layer_norm(x + r, (D,), w, b), x + r),
    )


def _rms(x, w, b, eps=1e-5):
    return x * torch.rsqrt(x.square().mean(-1, keepdim=True) + eps) * w + b


@case(X, ROW, ROW, dtypes=BOTH)
def rms_norm(*_):
    return _module("norm.layernorm", "rms_norm"), _rms


@case(X, ROW, ROW)
def group_norm(*_):
    op = _module("norm.layernorm", "group_norm")
    return (
        lambda x, w, b: op(x, w, b, num_groups=4),
        lambda x, w, b: F.group_norm(x.flatten(0, 1), 4, w, b).view(x.shape),
    )


@case(X, ROW, ROW, normal(24, D), normal(24))
def rms_norm_linear(*_):
    op = _module("norm.layernorm", "rms_norm_linear")
    return op, lambda x, w, b, m, c: F.linear(_rms(x, w, b), m, c)


@case(X, ROW, ROW, normal(24, D), normal(24))
def layer_norm_linear(*_):
    op = _module("norm.layernorm", "layer_norm_linear")
    return op, lambda x, w, b, m, c: F.linear(F.layer_norm(x, (D,), w, b), m, c)


@case(X, X, ROW, ROW, dtypes=BOTH)
def layer_norm_gated(*_):
    op = _module("norm.fused_norm_gate", "layer_norm_gated")
    return op, lambda x, g, w, b: F.layer_norm(x, (D,), w, b, 1e-6) * F.silu(g)


@case(X, X, ROW, ROW, dtypes=BOTH)
def rms_norm_gated(*_):
    op = _module("norm.fused_norm_gate", "rms_norm_gated")
    return (
        lambda *a: op(*a, activation="sigmoid"),
        lambda x, g, w, b: _rms(x, w, b, 1e-6) * g.sigmoid(),
    )


@case(normal(B, T, 700), normal(B, T, 700), normal(700), normal(700))
def rms_norm_gated_wide(*_):
    op = _module("norm.fused_norm_gate", "rms_norm_gated")
    return op, lambda x, g, w, b: _rms(x, w, b, 1e-6) * F.silu(g)


@case(X, X, ROW, ROW, normal(24, D), normal(24))
def rms_norm_swish_gate_linear(*_):
    op = _module("norm.fused_norm_gate", "rms_norm_swish_gate_linear")
    return op, lambda x, g, w, b, m, c: F.linear(_rms(x, w, b, 1e-6) * F.silu(g), m, c)


@case(X, ROW, ROW, X)
def rmsnorm_before_gate(*_):
    op = _module("norm.layernorm_gated", "rmsnorm_fn")
    return op, lambda x, w, b, z: _rms(x, w, b, 1e-6) * F.silu(z)


@case(X, ROW, ROW, X)
def layernorm_behind_gate(*_):
    op = _module("norm.layernorm_gated", "layernorm_fn")
    return (
        lambda x, w, b, z: op(x, w, b, z, group_size=20, norm_before_gate=False),
        lambda x, w, b, z: (
            F.layer_norm((x * F.silu(z)).view(B, T, 2, 20), (20,), None, None, 1e-6).flatten(2) * w
            + b
        ),
    )


@case(X, dtypes=BOTH)
def l2norm(*_):
    return _module("norm.l2norm", "l2norm"), lambda x: F.normalize(x, dim=-1)


@case(normal(B, T, 700))
def l2norm_wide(*_):
    return _module("norm.l2norm", "l2norm"), lambda x: F.normalize(x, dim=-1)


# Losses


def target_of(rows):
    target = torch.randint(0, V, (rows,))
    target[::7] = -100
    return target


@case(normal(B * T, V), dtypes=BOTH)
def cross_entropy_loss(*_):
    op, target = _module("fused_cross_entropy.ops", "cross_entropy_loss"), target_of(B * T)
    return (
        lambda x: op(x, target, label_smoothing=0.1)[0],
        lambda x: F.cross_entropy(x, target, reduction="none", label_smoothing=0.1),
    )


@case(normal(B * T, D), normal(V, D), normal(V))
def fused_linear_cross_entropy_loss(*_):
    op = _module("fused_linear_cross_entropy.ops", "fused_linear_cross_entropy_loss")
    target = target_of(B * T)
    return (
        lambda x, w, b: op(x, target, w, b),
        lambda x, w, b: F.cross_entropy(F.linear(x, w, b), target),
    )


@case(normal(B * T, D), normal(B * T, D), normal(V, D), normal(V, D))
def fused_kl_div_loss(*_):
    op = _module("fused_kl_div.ops", "fused_kl_div_loss")

    def reference(x, tx, w, tw):
        student = F.log_softmax(x @ w.T, -1)
        return F.kl_div(student, F.softmax(tx @ tw.T, -1).detach(), reduction="batchmean")

    return (
        lambda x, tx, w, tw: op(x, tx.detach(), w, tw.detach()),
        lambda x, tx, w, tw: reference(x, tx.detach(), w, tw.detach()),
    )


@case(normal(B, T + 1, V), normal(B, T), normal(B))
def fused_grpo_loss(*_):
    op = _module("grpo.ops", "fused_grpo_loss")
    plain = _module("grpo.ops", "grpo_loss_torch")
    tokens = torch.randint(0, V, (B, T + 3))
    mask = (torch.rand(B, T) < 0.8).int()

    def call(function):
        def loss(x, r, a):
            return function(x, F.logsigmoid(r.detach()), tokens, a.detach(), 0.1, mask)

        return loss

    return call(op), call(plain)


# Positions and time


@case(normal(B, T, H, D), normal(T, 16), normal(T, 16), dtypes=BOTH)
def rotary_embedding(*_):
    op, plain = (
        _module("rotary.ops", "rotary_embedding"),
        _module("rotary.ops", "rotary_embedding_ref"),
    )
    return (
        lambda x, c, s: op(x, c.detach(), s.detach()),
        lambda x, c, s: plain(x, c.detach(), s.detach()),
    )


@case(normal(B, T, H, D), normal(T, 16), normal(T, 16))
def rotary_embedding_interleaved(*_):
    op, plain = (
        _module("rotary.ops", "rotary_embedding"),
        _module("rotary.ops", "rotary_embedding_ref"),
    )
    return (
        lambda x, c, s: op(x, c.detach(), s.detach(), interleaved=True),
        lambda x, c, s: plain(x, c.detach(), s.detach(), interleaved=True),
    )


@case(X, dtypes=BOTH)
def token_shift(*_):
    return _module("token_shift", "token_shift"), lambda x: F.pad(x, (0, 0, 1, -1)) - x


@case(normal(1, 60, D))
def token_shift_varlen(*_):
    ends = torch.tensor([0, 1, 18, 60])

    def plain(x):
        parts = [x[:, a:b] for a, b in itertools.pairwise(ends)]
        return torch.cat([F.pad(p, (0, 0, 1, -1)) - p for p in parts], 1)

    return lambda x: _module("token_shift", "token_shift")(x, ends), plain


def _conv(x, w, b):
    padded = F.pad(x.transpose(1, 2), (w.shape[1] - 1, 0))
    return F.silu(F.conv1d(padded, w[:, None], b, groups=x.shape[2])).transpose(1, 2)


@case(X, normal(D, 4), ROW, dtypes=BOTH)
def causal_conv1d(*_):
    op = _module("causal_conv1d.ops", "causal_conv1d")
    return varied(lambda x, w, b: op(x, w, b, activation="swish"), _conv)


@case(normal(1, 60, D), normal(D, 3), ROW)
def causal_conv1d_varlen(*_):
    op, ends = _module("causal_conv1d.ops", "causal_conv1d"), torch.tensor([0, 1, 18, 60])

    def plain(x, w, b):
        parts = [x[:, a:c] for a, c in itertools.pairwise(ends)]
        return torch.cat([_conv(p, w, b) for p in parts], 1)

    return varied(lambda x, w, b: op(x, w, b, activation="swish", cu_seqlens=ends), plain)


# Of the ops


@case(X, X, *(normal(1, 1, D),) * 6)
def fused_addcmul_rwkv7(*_):
    op = reference("rwkv7.fused_addcmul", "fused_addcmul_rwkv7")
    return op, lambda x, d, *m: tuple(x + d * one for one in m)


@case(X, X, ROW)
def fused_k_rwkv7(*_):
    op = reference("rwkv7.fused_k_update", "fused_k_rwkv7")
    return op, lambda k, a, ka: k + k * (a - 1) * ka


@case(X, normal(B, T, H, 16), normal(B, T, H, 16), normal(H, 16), normal(B, T, H, 16), X)
def gate_output_correction(*_):
    op = reference("rwkv7.gate_output_correction", "gate_output_correction")

    def shaped(function):
        def call(o, r, k, rk, v, g):
            flat = torch.cat([o, o], -1)[..., : H * 16], torch.cat([g, g], -1)[..., : H * 16]
            return function(flat[0], r, k, rk, v, flat[1])

        return call

    def plain(o, r, k, rk, v, g):
        return (o + ((r * k * rk).sum(-1, keepdim=True) * v).flatten(2)) * g

    return shaped(op), shaped(plain)


@case(X, normal(B, D), normal(1, 1, D), normal(64, D), normal(D, 64))
def channel_mixing_rwkv7(*_):
    op = reference("rwkv7.channel_mixing", "channel_mixing_rwkv7")

    def plain(x, before, xk, wk, wv):
        shifted = torch.cat([before[:, None], x[:, :-1]], 1)
        k = (x + (shifted - x) * xk) @ wk.T
        return k.relu().square() @ wv.T

    return varied(
        lambda x, p, xk, wk, wv: op(x, p, xk, wk.T.contiguous(), wv.T.contiguous()), plain
    )


@case(normal(B, 100, H, 24))
def mean_pooling(*_):
    op = reference("utils.pooling", "mean_pooling")

    def plain(x):
        return torch.stack([part.mean(1) for part in x.split(32, 1)], 1)

    return lambda x: op(x, 32), plain


@case(normal(B, 100, H, 24))
def chunk_local_cumsum(*_):
    op = reference("utils.cumsum", "chunk_local_cumsum")

    def call(function):
        return lambda x: function(x.detach()) + 0 * x

    return (
        call(lambda x: op(x, 32, reverse=True, scale=2.0)),
        call(lambda x: torch.cat([2 * p.flip(1).cumsum(1).flip(1) for p in x.split(32, 1)], 1)),
    )


@case(normal(B, 100, H))
def chunk_global_cumsum(*_):
    op = reference("utils.cumsum", "chunk_global_cumsum")

    def call(function):
        return lambda x: function(x.detach()) + 0 * x

    return call(op), call(lambda x: x.cumsum(1))


@case(normal(37, D), normal(D, 24), normal(37, 24))
def matmul_addmm(*_):
    matmul, addmm = reference("utils.matmul", "matmul"), reference("utils.matmul", "addmm")

    def call(product, sum_):
        def both(a, b, c):
            found = product(a.detach(), b.detach()), sum_(c.detach(), a.detach(), b.detach())
            return tuple(f + 0 * a.sum() for f in found)

        return both

    return call(matmul, addmm), call(torch.matmul, torch.addmm)


@case(normal(B, 100, H, 32))
def solve_tril(*_):
    op = reference("utils.solve_tril", "solve_tril")

    def lower(x):
        return (x[:, :96] * 0.2).view(B, 3, 32, H, 32).transpose(2, 3).tril(-1)

    def solved(x):
        a = lower(x.detach()).transpose(2, 3).reshape(B, 96, H, 32).contiguous()
        return op(a).view(B, 3, 32, H, 32).transpose(2, 3) + 0 * x.sum()

    return solved, lambda x: torch.linalg.inv(lower(x.detach()) + torch.eye(32)) + 0 * x.sum()


@case(normal(B, T, H, 16), normal(H))
def fused_gates(*_):
    kda, gdn = (
        reference("kda.gate", "fused_kda_gate"),
        reference("gated_delta_rule.gate", "fused_gdn_gate"),
    )
    plain = (
        reference("kda.gate", "naive_kda_gate"),
        reference("gated_delta_rule.gate", "naive_gdn_gate"),
    )
    return (
        lambda g, a: (kda(g, a), gdn(g[..., 0].contiguous(), a)),
        lambda g, a: (plain[0](g, a), plain[1](g[..., 0], a)),
    )


@case(normal(1, 3, 4, 32), normal(1, 200, 2, 32), normal(1, 200, 2, 32))
def attn_decoding_one_step(*_):
    op = reference("attn.decoding", "attn_decoding_one_step")
    plain = reference("attn.naive", "naive_attn_decoding")
    ends = torch.tensor([0, 1, 80, 200])

    def call(function):
        def one(q, k, v):
            with torch.no_grad():
                out = function(q, k, v, cu_seqlens=ends)
            return out + 0 * q.sum()

        return one

    return call(op), call(plain)
