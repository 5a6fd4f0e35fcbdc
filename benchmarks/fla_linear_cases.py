"""flash-linear-attention's ops of linear attention, with gates and without."""

import fla.ops as ops
import torch
from fla_case import (
    GATED,
    ONE_GATE,
    QKV,
    VALUES,
    B,
    D,
    H,
    K,
    T,
    V,
    apart,
    case,
    decay,
    gated,
    heads_first,
    lengths,
    reference,
    varied,
)
from library_case import normal

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


@case(*GATED, dtypes=(torch.float32, torch.bfloat16))
def chunk_gla(*_):
    return varied(ops.chunk_gla, reference("gla.naive", "naive_recurrent_gla"), gated)


@case(*GATED)
def fused_recurrent_gla(*_):
    return varied(ops.fused_recurrent_gla, reference("gla.naive", "naive_recurrent_gla"), gated)


@case(normal(1, T, H, K), normal(1, T, H, K), normal(1, T, H, V), normal(1, T, H, K))
def chunk_gla_varlen(*_):
    naive = reference("gla.naive", "naive_recurrent_gla")
    return varied(
        lambda *a: ops.chunk_gla(*a, cu_seqlens=lengths()), lambda *a: apart(naive, *a), gated
    )


@case(*ONE_GATE)
def chunk_simple_gla(*_):
    naive = reference("simple_gla.naive", "naive_recurrent_simple_gla")
    return varied(ops.chunk_simple_gla, naive, gated)


@case(*ONE_GATE)
def fused_chunk_simple_gla(*_):
    naive = reference("simple_gla.naive", "naive_recurrent_simple_gla")
    return varied(ops.fused_chunk_simple_gla, naive, gated)


@case(*ONE_GATE)
def fused_recurrent_simple_gla(*_):
    naive = reference("simple_gla.naive", "naive_recurrent_simple_gla")
    return varied(ops.fused_recurrent_simple_gla, naive, gated)


@case(*ONE_GATE)
def parallel_simple_gla(*_):
    naive = reference("simple_gla.naive", "naive_parallel_simple_gla")
    return varied(ops.parallel_simple_gla, naive, gated)


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
