"""flash-linear-attention's ops of attention over all keys, and of test-time training."""

import fla.ops as ops
import torch
from fla_case import (
    EQUAL,
    HALF,
    HEADS,
    HQ,
    KEYS,
    MANY,
    VALUES,
    B,
    H,
    K,
    T,
    V,
    case,
    decay,
    gated,
    reference,
    unit,
    varied,
)
from library_case import normal

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
    return varied(ops.parallel_forgetting_attn, naive, gated)


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
    return varied(ops.parallel_wall_attn, _wall, gated)


@case(normal(1, T, 16, K), normal(1, T, 1, K), normal(1, T, 1, V), normal(1, T, 16))
def parallel_nsa(*_):
    naive = reference("nsa.naive", "naive_nsa")
    starts = torch.arange(T)[:, None] // 32
    blocks = torch.where(torch.arange(2) <= starts, starts - torch.arange(2), starts)
    options = {"block_indices": blocks[None, :, None], "block_counts": 2, "block_size": 32}

    def call(function):
        return lambda q, k, v, g: function(q, k, v, g_slc=g.sigmoid(), g_swa=None, **options)

    return varied(call(ops.parallel_nsa), call(naive))


@case(*(normal(B, 64, H, 64),) * 3, normal(B, 64, H), normal(B, 64, H, 7))
def chunk_log_linear_attn(*_):
    naive = reference("log_linear_attn.naive", "naive_log_linear_attn")

    def change(q, k, v, g, levels):
        return q, k, v, decay(g), levels.sigmoid()

    return varied(ops.chunk_log_linear_attn, naive, change)


def _ttt_linear(name):
    naive = reference("ttt.naive", "chunk_ttt_linear_ref")

    def change(q, k, v, w, b, eta):
        return unit(q), unit(k), v, w, b, eta.sigmoid() * 0.05

    return varied(reference("ttt", name), naive, change)


@case(*EQUAL, normal(H, K), normal(H, K), normal(B, T, H, 1))
def chunk_ttt_linear(*_):
    return _ttt_linear("chunk_ttt_linear")


@case(*EQUAL, normal(H, K), normal(H, K), normal(B, T, H, 1))
def fused_chunk_ttt_linear(*_):
    return _ttt_linear("fused_chunk_ttt_linear")
