"""Ops of flash-linear-attention (fla-core), each beside what it computes, in torch.

References are the library's own (`naive` in each of its folders), in fp32, or torch. What an op
wants of its inputs (keys of length 1, decays below 0, ...) is made of random numbers on both sides,
so that gradients flow through it.
"""

import importlib
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import fla.ops as ops
import torch
import torch.nn.functional as F
from library_case import SMALL, Case, Normal, normal, run
from library_results import compare_norms

CASES: dict[str, Case] = {}
HALF = (torch.bfloat16,)  # ops that refuse fp32
FULL = (torch.float32,)
B, T, H, HQ, K, V, D = 2, 100, 2, 4, 32, 64, 32
MANY = normal(B, T, HQ, K)
KEYS, VALUES, HEADS = normal(B, T, H, K), normal(B, T, H, V), normal(B, T, H)
QKV = (KEYS, KEYS, VALUES)
EQUAL = (KEYS, KEYS, KEYS)


@dataclass(frozen=True)
class Norms(Case):
    """A case whose results are off by a share of their root mean square."""

    def compare(self, dtype: torch.dtype, sizes: str) -> None:
        ours, theirs, leaves = self.made(dtype, sizes)
        found = run(ours, leaves)
        expected = run(theirs, [leaf.float() for leaf in leaves])
        for part, *sides in zip(("forward", "gradients"), found, expected, strict=True):
            compare_norms(*sides, f"{self.name} of {dtype}, {part}", dtype)


def case(
    *inputs: Normal, dtypes: Any = FULL
) -> Callable[[Callable[..., tuple[Any, Any]]], Callable[..., tuple[Any, Any]]]:
    """Declares a case: a function that gives (op, reference). Its name is the case's."""

    def declare(pair: Callable[..., tuple[Any, Any]]) -> Callable[..., tuple[Any, Any]]:
        CASES[pair.__name__] = Norms(pair.__name__, lambda *_: pair(), inputs, dtypes, (SMALL,))
        return pair

    return declare


def unit(x: torch.Tensor) -> torch.Tensor:
    return F.normalize(x.float(), dim=-1).to(x.dtype)


def decay(x: torch.Tensor) -> torch.Tensor:
    return F.logsigmoid(x.float() + 1)


def first(out: Any) -> Any:
    return out[0] if isinstance(out, tuple) else out


def heads_first(reference: Any, *args: Any, **kwargs: Any) -> torch.Tensor:
    """A reference of tensors whose second dimension is that of heads."""
    turned = (a.transpose(1, 2) if isinstance(a, torch.Tensor) else a for a in args)
    return first(reference(*turned, **kwargs)).transpose(1, 2)


def varied(op: Any, reference: Any, change: Any = None) -> tuple[Any, Any]:
    """Two functions of the same arguments, of whose results the first counts."""
    change = change or (lambda *args: args)
    return lambda *a: first(op(*change(*a))), lambda *a: first(reference(*change(*a)))


def lengths() -> torch.Tensor:
    """Of three sequences in one row."""
    return torch.tensor([0, 37, 38, T])


def apart(reference: Any, *args: torch.Tensor) -> torch.Tensor:
    """A reference of the sequences of `lengths`, one by one."""
    ends = lengths().tolist()
    parts = [
        first(reference(*(a[:, begin:end] for a in args)))
        for begin, end in zip(ends, ends[1:], strict=False)
    ]
    return torch.cat(parts, 1)


def reference(folder: str, name: str) -> Any:
    """A reference of the library's."""
    return getattr(importlib.import_module(f"fla.ops.{folder}"), name)


# Linear attention


@case(*QKV)
def chunk_linear_attn(*_):
    naive = reference("linear_attn.naive", "naive_recurrent_linear_attn")
    return varied(
        lambda *a: ops.chunk_linear_attn(*a, normalize=False), lambda *a: naive(*a, normalize=False)
    )


@case(*QKV)
def fused_chunk_linear_attn(*_):
    naive = reference("linear_attn.naive", "naive_recurrent_linear_attn")
    return varied(lambda *a: ops.fused_chunk_linear_attn(*a, normalize=False), naive)


@case(*QKV)
def fused_recurrent_linear_attn(*_):
    return varied(
        ops.fused_recurrent_linear_attn,
        reference("linear_attn.naive", "naive_recurrent_linear_attn"),
    )


def _retention(*args):
    return heads_first(reference("retention.naive", "naive_retention"), *args)


@case(*QKV, dtypes=(torch.float32, torch.bfloat16))
def chunk_retention(*_):
    return varied(ops.chunk_retention, _retention)


@case(*QKV)
def fused_chunk_retention(*_):
    return varied(ops.fused_chunk_retention, _retention)


@case(*QKV)
def fused_recurrent_retention(*_):
    return varied(ops.fused_recurrent_retention, _retention)


@case(*QKV)
def parallel_retention(*_):
    return varied(ops.parallel_retention, _retention)


def _lightning(q, k, v):
    slopes = -(8 / H * (1 - 3 / 12)) * torch.arange(H)
    g = slopes.expand(*q.shape[:3]).to(q)
    return reference("simple_gla.naive", "naive_recurrent_simple_gla")(q, k, v, g)


@case(*QKV)
def chunk_lightning_attn(*_):
    return varied(lambda *a: ops.chunk_lightning_attn(*a, 3, 12), _lightning)


@case(*QKV)
def fused_recurrent_lightning_attn(*_):
    return varied(lambda *a: ops.fused_recurrent_lightning_attn(*a, 3, 12), _lightning)


def _scaled(q, k, v):
    return q * K**-0.5, k * K**-0.5, v


def _based(name):
    naive = reference("based.naive", "naive_parallel_based")
    return varied(getattr(ops, name), lambda *a: heads_first(naive, *a))


@case(*(normal(B, T, H, 16),) * 2, VALUES)
def fused_chunk_based(*_):
    return _based("fused_chunk_based")


@case(*(normal(B, T, H, 16),) * 2, VALUES)
def parallel_based(*_):
    return _based("parallel_based")


@case(*(normal(B, T, H, 16),) * 2, VALUES)
def parallel_rebased(*_):
    naive = reference("rebased.naive", "naive_parallel_rebased")
    op = reference("rebased.parallel", "parallel_rebased")
    return varied(lambda *a: op(*a, eps=1e-6), lambda *a: heads_first(naive, *a))


# Gated linear attention

GATED = (*QKV, normal(B, T, H, K))
ONE_GATE = (*QKV, HEADS)


def _gated(q, k, v, g):
    return q, k, v, decay(g)


@case(*GATED, dtypes=(torch.float32, torch.bfloat16))
def chunk_gla(*_):
    return varied(ops.chunk_gla, reference("gla.naive", "naive_recurrent_gla"), _gated)


@case(*GATED)
def fused_recurrent_gla(*_):
    return varied(ops.fused_recurrent_gla, reference("gla.naive", "naive_recurrent_gla"), _gated)


@case(normal(1, T, H, K), normal(1, T, H, K), normal(1, T, H, V), normal(1, T, H, K))
def chunk_gla_varlen(*_):
    naive = reference("gla.naive", "naive_recurrent_gla")
    return varied(
        lambda *a: ops.chunk_gla(*a, cu_seqlens=lengths()), lambda *a: apart(naive, *a), _gated
    )


@case(*ONE_GATE)
def chunk_simple_gla(*_):
    naive = reference("simple_gla.naive", "naive_recurrent_simple_gla")
    return varied(ops.chunk_simple_gla, naive, _gated)


@case(*ONE_GATE)
def fused_chunk_simple_gla(*_):
    naive = reference("simple_gla.naive", "naive_recurrent_simple_gla")
    return varied(ops.fused_chunk_simple_gla, naive, _gated)


@case(*ONE_GATE)
def fused_recurrent_simple_gla(*_):
    naive = reference("simple_gla.naive", "naive_recurrent_simple_gla")
    return varied(ops.fused_recurrent_simple_gla, naive, _gated)


@case(*ONE_GATE)
def parallel_simple_gla(*_):
    naive = reference("simple_gla.naive", "naive_parallel_simple_gla")
    return varied(ops.parallel_simple_gla, naive, _gated)


SLOTS = normal(B, T, H, 16)


def _slots(q, k, v, s, g):
    return q, k, v, s, decay(g)


@case(*QKV, SLOTS, SLOTS)
def chunk_gsa(*_):
    return varied(ops.chunk_gsa, reference("gsa.naive", "naive_recurrent_gsa"), _slots)


@case(*QKV, SLOTS, SLOTS)
def fused_recurrent_gsa(*_):
    return varied(ops.fused_recurrent_gsa, reference("gsa.naive", "naive_recurrent_gsa"), _slots)


@case(*(normal(B, T, H, 64),) * 3, normal(B, T, H, 64))
def chunk_abc(*_):
    naive = reference("abc.naive", "naive_recurrent_abc")
    return varied(ops.chunk_abc, lambda *a: heads_first(naive, *a))


def _hgrn(x, g):
    return x, decay(g)


@case(normal(B, T, D), normal(B, T, D))
def chunk_hgrn(*_):
    op = reference("hgrn", "chunk_hgrn")
    return varied(op, reference("hgrn.naive", "naive_recurrent_hgrn"), _hgrn)


@case(normal(B, T, D), normal(B, T, D))
def fused_recurrent_hgrn(*_):
    return varied(ops.fused_recurrent_hgrn, reference("hgrn.naive", "naive_recurrent_hgrn"), _hgrn)


def _rwkv6(r, k, v, w, u):
    """S sees a key before its decay; the bonus u is for the key of the same time."""
    state, out = r.new_zeros(*r.shape[:1], H, K, V), []
    for t in range(r.shape[1]):
        one = k[:, t, :, :, None] * v[:, t, :, None, :]
        seen = state + u[None, :, :, None] * one
        out.append((r[:, t, :, :, None] * seen).sum(-2) * K**-0.5)
        state = state * w[:, t].exp()[..., None] + one
    return torch.stack(out, 1)


def _bonus(r, k, v, w, u):
    return r, k, v, decay(w), u


@case(*GATED, normal(H, K))
def chunk_rwkv6(*_):
    return varied(ops.chunk_rwkv6, _rwkv6, _bonus)


@case(*GATED, normal(H, K))
def fused_recurrent_rwkv6(*_):
    return varied(ops.fused_recurrent_rwkv6, _rwkv6, _bonus)


# Delta rules

RULE = (*QKV, HEADS)


def _rule(q, k, v, beta):
    return q, unit(k), v, beta.sigmoid()


@case(*RULE, dtypes=HALF)
def chunk_delta_rule(*_):
    naive = reference("delta_rule.naive", "delta_rule_recurrence")
    return varied(ops.chunk_delta_rule, lambda *a: heads_first(naive, *a), _rule)


@case(*RULE)
def fused_recurrent_delta_rule(*_):
    naive = reference("delta_rule.naive", "delta_rule_recurrence")
    return varied(ops.fused_recurrent_delta_rule, lambda *a: heads_first(naive, *a), _rule)


def _gated_rule(q, k, v, g, beta):
    return q, unit(k), v, decay(g), beta.sigmoid()


def _swapped(naive):
    return lambda q, k, v, g, beta: naive(q, k, v, beta, g)


@case(*ONE_GATE, HEADS, dtypes=(torch.float32, torch.bfloat16))
def chunk_gated_delta_rule(*_):
    naive = reference("gated_delta_rule.naive", "naive_recurrent_gated_delta_rule")
    return varied(ops.chunk_gated_delta_rule, _swapped(naive), _gated_rule)


@case(*ONE_GATE, HEADS)
def fused_recurrent_gated_delta_rule(*_):
    naive = reference("gated_delta_rule.naive", "naive_recurrent_gated_delta_rule")

    def op(q, k, v, g, beta):
        with torch.no_grad():
            out = ops.fused_recurrent_gated_delta_rule(q, k, v, g=g, beta=beta)[0]
        return out + 0 * q.sum()

    return _forward_only(op, _swapped(naive), _gated_rule)


@case(*GATED, HEADS)
def chunk_kda(*_):
    return varied(ops.chunk_kda, reference("kda.naive", "naive_recurrent_kda"), _gated_rule)


@case(*GATED, HEADS)
def fused_recurrent_kda(*_):
    naive = reference("kda.naive", "naive_recurrent_kda")
    return _forward_only(ops.fused_recurrent_kda, naive, _gated_rule)


def _erased(q, k, v, g, b, w):
    return unit(q), unit(k), v, decay(g), b.sigmoid(), w.sigmoid()


@case(*GATED, KEYS, VALUES)
def chunk_gdn2(*_):
    naive = reference("gdn2.naive", "naive_recurrent_gdn2")
    return varied(reference("gdn2", "chunk_gdn2"), naive, _erased)


@case(*GATED, KEYS, VALUES)
def fused_recurrent_gdn2(*_):
    naive = reference("gdn2.naive", "naive_recurrent_gdn2")
    return _forward_only(reference("gdn2", "fused_recurrent_gdn2"), naive, _erased)


def _comba(q, k, v, p, g, beta):
    return unit(q), unit(k), v, unit(p), decay(g), beta.sigmoid()


def _comba_reference(q, k, v, p, g, beta):
    """What the key p reads is taken off before the decay, as the op's two kernels have it, and the
    library's reference has not."""
    state, out = q.new_zeros(*q.shape[:1], H, K, V), []
    for t in range(q.shape[1]):
        read = (p[:, t, :, :, None] * state).sum(-2)
        write = beta[:, t, :, None] * (v[:, t] - read)
        state = state * g[:, t, :, None, None].exp() + k[:, t, :, :, None] * write[:, :, None, :]
        out.append((q[:, t, :, :, None] * state).sum(-2) * K**-0.5)
    return torch.stack(out, 1)


@case(*QKV, KEYS, HEADS, HEADS)
def chunk_comba(*_):
    return varied(ops.chunk_comba, _comba_reference, _comba)


@case(*QKV, KEYS, HEADS, HEADS)
def fused_recurrent_comba(*_):
    return _forward_only(
        lambda q, k, v, p, g, beta: ops.fused_recurrent_comba(q, k, p, v, g, beta),
        _comba_reference,
        _comba,
    )


def _dplr(q, k, v, a, gk):
    a = unit(a)
    return q, k * 0.5, v, a, -a, decay(gk)


@case(*QKV, KEYS, KEYS, dtypes=(torch.float32, torch.bfloat16))
def chunk_dplr_delta_rule(*_):
    naive = reference("generalized_delta_rule.dplr.naive", "dplr_recurrence")
    return varied(ops.chunk_dplr_delta_rule, lambda *a: heads_first(naive, *a), _dplr)


@case(*QKV, KEYS, KEYS)
def fused_recurrent_dplr_delta_rule(*_):
    naive = reference("generalized_delta_rule.dplr.naive", "dplr_recurrence")
    return _forward_only(
        ops.fused_recurrent_dplr_delta_rule, lambda *a: heads_first(naive, *a), _dplr
    )


def _iplr(q, k, v, a):
    a = unit(a)
    return q, unit(k), v, a, -a * 0.5


@case(*QKV, KEYS)
def chunk_iplr_delta_rule(*_):
    naive = reference("generalized_delta_rule.iplr.naive", "iplr_recurrence")
    return _forward_only(ops.chunk_iplr_delta_rule, lambda *a: heads_first(naive, *a), _iplr)


@case(*QKV, KEYS)
def fused_recurrent_iplr_delta_rule(*_):
    naive = reference("generalized_delta_rule.iplr.naive", "iplr_recurrence")
    return varied(ops.fused_recurrent_iplr_delta_rule, lambda *a: heads_first(naive, *a), _iplr)


def _rwkv7(r, w, k, v, a):
    a = unit(a)
    return r, -0.6 * w.sigmoid(), k * 0.5, v, -a, a * w.sigmoid()


def _rwkv7_reference(r, w, k, v, a, b):
    naive = reference("generalized_delta_rule.dplr.naive", "dplr_recurrence")
    return heads_first(naive, r * K**0.5, k, v, a, b, w)


@case(KEYS, KEYS, KEYS, VALUES, KEYS)
def chunk_rwkv7(*_):
    return varied(ops.chunk_rwkv7, _rwkv7_reference, _rwkv7)


@case(KEYS, KEYS, KEYS, VALUES, KEYS)
def fused_recurrent_rwkv7(*_):
    return _forward_only(
        lambda *a: ops.fused_recurrent_rwkv7(*a, scale=1.0), _rwkv7_reference, _rwkv7
    )


@case(KEYS, normal(B, 2 * T, H, K), normal(B, 2 * T, H, V), HEADS, normal(B, 2 * T, H), dtypes=HALF)
def chunk_gated_delta_product(*_):
    op = reference("gated_delta_product", "chunk_gated_delta_product")
    naive = reference("gated_delta_product.naive", "naive_recurrent_gated_delta_product")
    return varied(
        lambda *a: op(*a, num_householder=2),
        lambda *a: naive(*a, scale=K**-0.5, num_householder=2),
        _gated_rule,
    )


def _mesa(q, k, v, g, beta, lamb):
    return unit(q), unit(k), v, decay(g + 2), beta.sigmoid(), F.softplus(lamb) + 1


@case(*EQUAL, HEADS, HEADS, normal(H, K))
def chunk_mesa_net(*_):
    naive = reference("mesa_net.naive", "naive_mesa_net_exact")
    return varied(
        ops.chunk_mesa_net, lambda q, k, v, g, beta, lamb: naive(q, k, v, g, lamb, beta), _mesa
    )


def _preconditioned(q, k, v, g_atk, g, beta_atk, beta):
    return q, k, v, decay(g_atk), decay(g), beta_atk.sigmoid(), beta.sigmoid()


@case(*ONE_GATE, *(HEADS,) * 3)
def chunk_precond_gated_delta_rule(*_):
    folder = "precond_gated_delta_rule.naive"
    naive = reference(folder, "naive_recurrent_precond_gated_delta_rule")
    op = ops.chunk_precond_gated_delta_rule
    return varied(op, naive, _preconditioned)


def _preconditioned_kda(q, k, v, g, g_atk, beta_atk, beta):
    return unit(q), unit(k), v, decay(g), decay(g_atk), beta_atk.sigmoid(), beta.sigmoid()


@case(*GATED, *(HEADS,) * 3)
def chunk_precond_kda(*_):
    naive = reference("precond_kda.naive", "naive_recurrent_precond_kda")
    return varied(ops.chunk_precond_kda, naive, _preconditioned_kda)


def _forward_only(op, reference, change=None):
    """Of ops that have no gradients: both sides' flow through a product of the result with 1."""

    def weighed(function):
        def call(*args):
            with torch.no_grad():
                out = first(function(*(change or (lambda *a: a))(*args)))
            return out.float() * (1 + 0 * args[0].float().sum())

        return call

    return weighed(op), weighed(reference)


# Attention

GROUPED = (MANY, KEYS, VALUES)


@case(*GROUPED, dtypes=(torch.float32, torch.bfloat16))
def parallel_attn(*_):
    return varied(ops.parallel_attn, reference("attn.naive", "naive_parallel_attn"))


@case(*GROUPED)
def parallel_attn_window(*_):
    naive = reference("attn.naive", "naive_parallel_attn")
    return varied(
        lambda *a: ops.parallel_attn(*a, window_size=23), lambda *a: naive(*a, window_size=23)
    )


@case(*GROUPED, normal(B, T, HQ))
def parallel_forgetting_attn(*_):
    naive = reference("forgetting_attn.naive", "naive_forgetting_attn")
    return varied(ops.parallel_forgetting_attn, naive, _gated)


@case(MANY, KEYS, KEYS, normal(B, T, H, K), HEADS, normal(B, T, HQ))
def parallel_path_attn(*_):
    naive = reference("path_attn.naive", "naive_path_attn")

    def change(q, k, v, w, beta, g):
        return q, k, v, unit(w), beta.sigmoid() * 2, decay(g)

    return varied(ops.parallel_path_attn, lambda *a: naive(*a, scale=K**-0.5), change)


@case(MANY, MANY, KEYS, KEYS, dtypes=HALF)
def parallel_parallax(*_):
    return varied(ops.parallel_parallax, reference("parallax.naive", "naive_parallax"))


@case(MANY, KEYS, VALUES)
def parallel_stickbreaking_attn(*_):
    naive = reference("stickbreaking_attn.naive", "naive_stickbreaking_attn")
    return ops.parallel_stickbreaking_attn, naive


def _wall(q, k, v, g):
    """Softmax attention where each number of a key decays by itself."""
    sums = g.cumsum(1)
    apart = sums[:, :, None] - sums[:, None]
    mask = torch.ones(T, T, dtype=torch.bool).tril()[..., None]
    seen = torch.einsum("bqhd,bkhd,bqkhd->bqkh", q, k, apart.exp() * mask[..., None])
    weights = (seen * K**-0.5).masked_fill(~mask, -torch.inf).softmax(2)
    return torch.einsum("bqkh,bkhd->bqhd", weights, v)


@case(*EQUAL, normal(B, T, H, K))
def parallel_wall_attn(*_):
    return varied(ops.parallel_wall_attn, _wall, _gated)


@case(*EQUAL, HEADS)
def deltaformer_attn(*_):
    naive = reference("deltaformer.naive", "naive_deltaformer_attn")
    op = reference("deltaformer.parallel", "deltaformer_attn")
    return varied(op, naive, lambda q, k, v, beta: (q, k, v, beta.sigmoid()))


@case(normal(1, T, 16, K), normal(1, T, 1, K), normal(1, T, 1, V), normal(1, T, 16))
def parallel_nsa(*_):
    naive = reference("nsa.naive", "naive_nsa")
    starts = torch.arange(T)[:, None] // 32
    blocks = torch.where(torch.arange(2) <= starts, starts - torch.arange(2), starts)
    options = {"block_indices": blocks[None, :, None], "block_counts": 2, "block_size": 32}

    def call(function):
        return lambda q, k, v, g: function(
            q, k, v, g_slc=g.sigmoid(), g_swa=None, **options
        )

    return varied(call(ops.parallel_nsa), call(naive))


@case(*(normal(B, 64, H, 64),) * 3, normal(B, 64, H), normal(B, 64, H, 7))
def chunk_log_linear_attn(*_):
    naive = reference("log_linear_attn.naive", "naive_log_linear_attn")

    def change(q, k, v, g, levels):
        return q, k, v, decay(g), levels.sigmoid()

    return varied(ops.chunk_log_linear_attn, naive, change)


@case(*EQUAL, normal(H, K), normal(H, K), normal(B, T, H, 1))
def chunk_ttt_linear(*_):
    naive = reference("ttt.naive", "chunk_ttt_linear_ref")
    op = reference("ttt", "chunk_ttt_linear")

    def change(q, k, v, w, b, eta):
        return unit(q), unit(k), v, w, b, eta.sigmoid() * 0.05

    return varied(op, naive, change)


@case(*EQUAL, normal(H, K), normal(H, K), normal(B, T, H, 1))
def fused_chunk_ttt_linear(*_):
    naive = reference("ttt.naive", "chunk_ttt_linear_ref")
    op = reference("ttt", "fused_chunk_ttt_linear")

    def change(q, k, v, w, b, eta):
        return unit(q), unit(k), v, w, b, eta.sigmoid() * 0.05

    return varied(op, naive, change)
