"""flash-linear-attention's ops of delta rules."""

import fla.ops as ops
import torch
import torch.nn.functional as F
from fla_case import (
    EQUAL,
    GATED,
    HALF,
    HEADS,
    KEYS,
    ONE_GATE,
    QKV,
    VALUES,
    B,
    H,
    K,
    T,
    V,
    case,
    decay,
    forward_only,
    heads_first,
    reference,
    unit,
    varied,
)
from library_case import normal

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

    return forward_only(op, _swapped(naive), _gated_rule)


@case(*GATED, HEADS)
def chunk_kda(*_):
    return varied(ops.chunk_kda, reference("kda.naive", "naive_recurrent_kda"), _gated_rule)


@case(*GATED, HEADS)
def fused_recurrent_kda(*_):
    naive = reference("kda.naive", "naive_recurrent_kda")
    return forward_only(ops.fused_recurrent_kda, naive, _gated_rule)


def _erased(q, k, v, g, b, w):
    return unit(q), unit(k), v, decay(g), b.sigmoid(), w.sigmoid()


@case(*GATED, KEYS, VALUES)
def chunk_gdn2(*_):
    naive = reference("gdn2.naive", "naive_recurrent_gdn2")
    return varied(reference("gdn2", "chunk_gdn2"), naive, _erased)


@case(*GATED, KEYS, VALUES)
def fused_recurrent_gdn2(*_):
    naive = reference("gdn2.naive", "naive_recurrent_gdn2")
    return forward_only(reference("gdn2", "fused_recurrent_gdn2"), naive, _erased)


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
    return forward_only(
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
    return forward_only(
        ops.fused_recurrent_dplr_delta_rule, lambda *a: heads_first(naive, *a), _dplr
    )


def _iplr(q, k, v, a):
    a = unit(a)
    return q, unit(k), v, a, -a * 0.5


@case(*QKV, KEYS)
def chunk_iplr_delta_rule(*_):
    naive = reference("generalized_delta_rule.iplr.naive", "iplr_recurrence")
    return forward_only(ops.chunk_iplr_delta_rule, lambda *a: heads_first(naive, *a), _iplr)


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
    return forward_only(
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
