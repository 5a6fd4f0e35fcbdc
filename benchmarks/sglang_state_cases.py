"""Cases of SGLang: what keeps a state of a sequence in the place of its keys (Mamba, delta rules,
linear attention, short convolutions)."""

import types

import torch
import torch.nn.functional as F
from libraries import middle
from library_case import BOTH, FULL, HALVES, HEAD, HIDDEN, TOKENS, Size
from library_references import (
    STATE,
    WIDTH,
    convolved,
    lengths,
    rms,
    scan_inputs,
    scan_numbers,
    scanned,
    starts,
)
from sglang_case import call

# isort: split
from sglang.kernels.ops.attention.fla import (
    chunk,
    chunk_delta_h,
    chunk_fwd,
    chunk_intra,
    chunk_o,
    cumsum,
    fused_norm_gate,
    fused_recurrent,
    kda,
    l2norm,
    layernorm_gated,
    wy_fast,
)
from sglang.kernels.ops.attention.linear import (
    fused_gdn_gating,
    fused_sigmoid_gating_recurrent,
    lightning_attn,
    seg_la,
)
from sglang.kernels.ops.mamba import causal_conv1d_triton, lfm_short_conv
from sglang.kernels.ops.mamba.triton_ops import (
    mamba_ssm,
    ssd_bmm,
    ssd_chunk_scan,
    ssd_chunk_state,
    ssd_combined,
    ssd_state_passing,
)

middle(ssd_bmm, ssd_chunk_scan, ssd_chunk_state, ssd_state_passing)
middle(chunk_delta_h, chunk_fwd, chunk_intra, chunk_o, cumsum, fused_norm_gate, kda, l2norm)
middle(wy_fast)

SEQUENCES, LENGTH = Size(2, 4, 1), Size(150, 2048, 8192)
BATCH, CHANNELS = Size(3, 64, 16), Size(300, 8192, 8192)
CHUNK = 256
KEY_HEADS, VALUE_HEADS = 4, 8  # of a GPU of four


# Mamba


@call(BATCH, Size(4, 128, 128), dtypes=HALVES, timed=BOTH)
def state_update(dtype, count, heads, dims=64):
    given = scan_inputs(dtype, count, heads, dims)
    x, dt, a, b, c, d, bias = given
    slots, before = torch.randperm(2 * count)[:count], torch.randn(2 * count, heads, dims, STATE)
    dt, bias, d = (n[..., None].expand(*n.shape, dims) for n in (dt, bias, d))

    def op():
        state, out = before.clone(), torch.empty_like(x)
        mamba_ssm.selective_state_update(
            *(state, x, dt, a[:, None, None].expand(heads, dims, STATE), b, c, d, None, bias),
            dt_softplus=True,
            state_batch_indices=slots.int(),
            out=out,
        )
        return state, out

    def reference():
        state, outs, numbers = before.double(), [], scan_numbers(given)
        for row, slot in enumerate(slots.tolist()):
            tokens = [n if n.dim() == 1 else n[row : row + 1] for n in numbers]
            state[slot], out = scanned(state[slot], *tokens)
            outs.append(out[0])
        return state, torch.stack(outs)

    return op, reference


@call(SEQUENCES, LENGTH, Size(4, 32, 128), dtypes=HALVES, timed=BOTH)
def state_scan(dtype, count, longest, heads, dims=64):
    """Chunks are of all tokens: one that has those of two sequences is there twice."""
    sizes = lengths(count, longest)
    given = scan_inputs(dtype, sum(sizes), heads, dims)
    x, dt, a, b, c, d, bias = given
    before, first = torch.randn(count, heads, dims, STATE), starts(sizes)
    request = torch.arange(count).repeat_interleave(torch.tensor(sizes))
    begins = {*first[:-1].tolist(), *range(0, len(x), CHUNK)}
    where = torch.tensor(sorted(begins))
    pieces = (where // CHUNK).int(), (where % CHUNK).int()

    def op():
        out = torch.empty_like(x)
        states = ssd_combined.mamba_chunk_scan_combined(
            *(n[None] for n in (x, dt)),
            a,
            *(n[None] for n in (b, c)),
            CHUNK,
            d,
            None,
            bias,
            before,
            *(request[None].int(), *pieces, first, True),
            out=out[None],
            return_varlen_states=True,
            state_dtype=torch.float32,
        )
        return states, out

    def reference():
        *tokens, skip = scan_numbers(given)
        x, dt, a, b, c = tokens
        each = (n.split(sizes) for n in (x, dt, b, c))
        rows = zip(before.double(), *each, strict=True)
        found = [scanned(state, x, dt, a, b, c, skip) for state, x, dt, b, c in rows]
        return torch.stack([state for state, _ in found]), torch.cat([out for _, out in found])

    return op, reference


# Convolutions


@call(SEQUENCES, LENGTH, CHANNELS, dtypes=HALVES)
def convolution(dtype, count, longest, channels):
    sizes = lengths(count, longest)
    x = torch.randn(sum(sizes), channels, dtype=dtype).T
    weight, bias = torch.randn(channels, WIDTH, dtype=dtype), torch.randn(channels, dtype=dtype)
    before = torch.randn(count, channels, WIDTH - 1, dtype=dtype)
    slots, has_before = torch.randperm(count), torch.arange(count) % 2 == 0

    def op():
        state = before.clone()
        given = x, weight, bias, state, starts(sizes), sizes, slots.int(), has_before
        return causal_conv1d_triton.causal_conv1d_fn(*given), state

    def reference():
        state, outs = before.double(), []
        for row, part in enumerate(x.split(sizes, 1)):
            known = before[slots[row]] * has_before[row]
            out, state[slots[row]] = convolved(part, known, weight, bias)
            outs.append(out)
        return torch.cat(outs, 1), state

    return op, reference


@call(BATCH, CHANNELS, dtypes=HALVES)
def convolution_update(dtype, count, channels):
    x, before = torch.randn(count, channels), torch.randn(2 * count, channels, WIDTH - 1)
    x, before, slots = x.to(dtype), before.to(dtype), torch.randperm(2 * count)[:count]
    weight, bias = torch.randn(channels, WIDTH, dtype=dtype), torch.randn(channels, dtype=dtype)

    def op():
        state = before.clone()
        how = {"conv_state_indices": slots.int()}
        out = causal_conv1d_triton.causal_conv1d_update(x, state, weight, bias, "silu", **how)
        return out, state

    def reference():
        state, outs = before.double(), []
        for row, slot in zip(x, slots.tolist(), strict=True):
            out, state[slot] = convolved(row[:, None], before[slot], weight, bias)
            outs.append(out[:, 0])
        return torch.stack(outs), state

    return op, reference


@call(SEQUENCES, LENGTH, HIDDEN)
def short_convolution(dtype, count, longest, channels, width=3):
    """Of products, and times a gate, as in LFM2."""
    sizes = lengths(count, longest)
    b, c, x = torch.randn(3, sum(sizes), channels, dtype=dtype)
    weight, before = torch.randn(channels, width), torch.randn(count, channels, width - 1)
    weight, before = weight.to(dtype), before.to(dtype)
    slots, has_before = torch.randperm(count), torch.arange(count) % 2 == 0

    def op():
        state = before.clone()
        where = starts(sizes), slots.int(), has_before, longest
        return lfm_short_conv.fused_lfm_short_conv_prefill(b, c, x, weight, state, *where), state

    def reference():
        state, outs = before.double(), []
        for row, part in enumerate((b * x).split(sizes)):
            known = torch.cat((before[slots[row]] * has_before[row], part.T), 1).double()
            kernel = weight.double()[:, None]
            outs.append(F.conv1d(known[None], kernel, groups=channels)[0].T)
            state[slots[row]] = known[:, 1 - width :]
        return torch.cat(outs) * c, state

    return op, reference


# Delta rules


def ruled(state, q, k, v, decay, beta):
    """Of one sequence: (heads, values, keys) after its tokens, and what each gives. Decays are of a
    head, or of each of its keys."""
    outs, scale = [], q.shape[-1] ** -0.5
    for token in range(len(q)):
        state = state * decay[token].exp().view(len(state), 1, -1)
        new = v[token] - (state * k[token][:, None]).sum(-1)
        state = state + (beta[token, :, None] * new)[..., None] * k[token][:, None]
        outs.append((state * q[token][:, None]).sum(-1) * scale)
    return state, torch.stack(outs)


def _every(state, sizes, q, k, *rest):
    """Of sequences, whose keys are of length 1, and shared by heads of values."""
    shared = state.shape[1] // k.shape[1]
    q, k = (F.normalize(n.double(), dim=-1).repeat_interleave(shared, 1) for n in (q, k))
    each = zip(state.double(), *(n.double().split(sizes) for n in (q, k, *rest)), strict=True)
    found = [ruled(*one) for one in each]
    return torch.cat([out for _, out in found]), torch.stack([state for state, _ in found])


def _delta_inputs(dtype, tokens, count, wide=False):
    """Queries, keys, values, decays, shares of what is new, states."""
    q, k = torch.randn(2, tokens, VALUE_HEADS if wide else KEY_HEADS, HEAD, dtype=dtype)
    v = torch.randn(tokens, VALUE_HEADS, HEAD, dtype=dtype)
    decay = F.logsigmoid(torch.randn(tokens, VALUE_HEADS, *([HEAD] if wide else [])) + 3)
    return q, k, v, decay, torch.rand(tokens, VALUE_HEADS), _states(count)


def _states(count):
    return torch.randn(count, VALUE_HEADS, HEAD, HEAD)


def _in_chunks(rule, dtype, count, longest, wide=False):
    sizes = lengths(count, longest)
    *given, before = _delta_inputs(dtype, sum(sizes), count, wide)

    def op():
        state = before.clone()
        out = rule(
            *(n[None].clone() for n in given),
            initial_state=state,
            initial_state_indices=torch.arange(count).int(),
            cu_seqlens=starts(sizes).long(),
            use_qk_l2norm_in_kernel=True,
        )
        return out[0], state

    return op, lambda: _every(before, sizes, *given)


@call(SEQUENCES, LENGTH, dtypes=HALVES, timed=BOTH)
def gated_delta_rule(dtype, *dims):
    def rule(*given, **options):
        return chunk.chunk_gated_delta_rule(*given, **options)[0]

    return _in_chunks(rule, dtype, *dims)


@call(SEQUENCES, LENGTH, dtypes=HALVES, timed=BOTH)
def delta_rule_of_keys(dtype, *dims):
    """Kimi's, where each key has a decay."""
    return _in_chunks(kda.chunk_kda, dtype, *dims, wide=True)


def _gates(dtype, count, width=1):
    """What decays and shares are of."""
    a, b = torch.randn(count, VALUE_HEADS, width), torch.randn(count, VALUE_HEADS)
    return a.to(dtype), b.to(dtype), torch.rand(VALUE_HEADS), torch.randn(VALUE_HEADS, width)


def _gated(a, b, log, bias):
    decay = -log.double().exp()[:, None] * F.softplus(a.double() + bias)
    return decay.squeeze(-1), b.double().sigmoid()


@call(BATCH, dtypes=HALVES, timed=BOTH)
def delta_decoding(dtype, count):
    """Of queries, keys and values that lie in one row."""
    q, k, v, _, _, before = _delta_inputs(dtype, count, count)
    a, b, log, bias = _gates(dtype, count)
    row = torch.cat([n.flatten(1) for n in (q, k, v)], 1)

    def op():
        state, out = before.clone(), torch.empty(count, 1, VALUE_HEADS, HEAD, dtype=dtype)
        fused_recurrent.fused_recurrent_gated_delta_rule_packed_decode(
            *(row, a[..., 0], b, log, bias[:, 0], HEAD**-0.5, state, out),
            *(torch.arange(count).int(), True),
        )
        return out[:, 0], state

    return op, lambda: _every(before, [1] * count, q, k, v, *_gated(a, b, log, bias))


def _sigmoid_decoding(dtype, count, wide):
    q, k, v, _, _, before = _delta_inputs(dtype, count, count, wide)
    a, b, log, bias = _gates(dtype, count, HEAD if wide else 1)

    def op():
        state = before.clone()
        out = fused_sigmoid_gating_recurrent.fused_sigmoid_gating_delta_rule_update(
            *(log, a.flatten(1), bias.flatten(), 1.0, 20.0, q[None], k[None], v[None], b),
            *(state, torch.arange(count).int()),
            use_qk_l2norm_in_kernel=True,
            cu_seqlens=torch.arange(count + 1).int(),
            is_kda=wide,
        )
        return out[0], state

    return op, lambda: _every(before, [1] * count, q, k, v, *_gated(a, b, log, bias))


@call(BATCH, dtypes=HALVES, timed=BOTH)
def delta_decoding_gates(dtype, count):
    return _sigmoid_decoding(dtype, count, False)


@call(BATCH, timed=BOTH)
def delta_decoding_of_keys(dtype, count):
    return _sigmoid_decoding(dtype, count, True)


@call(TOKENS, dtypes=HALVES)
def delta_gates(dtype, tokens):
    a, b, log, bias = _gates(dtype, tokens)

    def op():
        return [n[0] for n in fused_gdn_gating.fused_gdn_gating(log, a[..., 0], b, bias[:, 0])]

    return op, lambda: list(_gated(a, b, log, bias))


@call(TOKENS, HIDDEN, dtypes=HALVES)
def gated_norms(dtype, *shape):
    """Of heads, behind a delta rule and behind Kimi's, and of groups ahead of them."""
    x, z = torch.randn(2, *shape, dtype=dtype)
    heads = [n.reshape(-1, HEAD) for n in (x, z)]
    w, wide = torch.randn(HEAD, dtype=dtype), torch.randn(shape[-1], dtype=dtype)

    def op():
        how = {"bias": None, "is_rms_norm": True}
        norm = layernorm_gated.rms_norm_gated
        first = norm(x=heads[0], weight=w, z=heads[1], **how)
        groups = norm(x=x, weight=wide, z=z, group_size=HEAD, norm_before_gate=False, **how)
        gate = fused_norm_gate.rms_norm_gated(heads[0].clone(), heads[1], w, None, "sigmoid")
        return first, groups, gate

    def reference():
        gate = F.silu(z.double())
        groups = [n.unflatten(-1, (-1, HEAD)) for n in (x.double() * gate, wide)]
        first, last = rms(heads[0], w), rms(*groups).flatten(-2)
        return first * F.silu(heads[1].double()), last, first * heads[1].double().sigmoid()

    return op, reference


# Linear attention


@call(SEQUENCES, Size(300, 2048, 8192), dtypes=FULL, timed=BOTH)
def lightning(dtype, count, tokens, heads=8):
    q, k, v = torch.randn(3, count, heads, tokens, HEAD, dtype=dtype) / HEAD**0.25
    decay, before = torch.rand(heads) / 4, torch.randn(count, heads, HEAD, HEAD)
    block = 256

    def op():
        out, states = lightning_attn.lightning_attention(q, k, v, decay, block, before.clone())
        return out, states[:, :, -1]

    def reference():
        at = torch.arange(tokens)
        slope = decay.double()[:, None, None]
        apart = at[:, None] - at
        age = apart - (at[:, None] // block != at // block).int()
        shares = (-slope * age.clamp(0)).exp().masked_fill(apart < 0, 0)
        own = (q.double() @ k.double().mT * shares) @ v.double()
        old = q.double() @ before.double() * (-slope * at[:, None]).exp()
        last = (k.double() * (-slope * (tokens - 1 - at[:, None])).exp()).mT @ v.double()
        return own + old, last + before.double() * (-slope * tokens).exp()

    return op, reference


def _segments(dtype, count, longest, heads=8):
    """The state decays ahead of each token, whose key it has then."""
    sizes = lengths(count, longest) if longest > 1 else [1] * count
    q, k, v = torch.randn(3, sum(sizes), heads, HEAD, dtype=dtype)
    decay, before = torch.rand(heads) / 4, torch.randn(count, heads, HEAD, HEAD)
    meta = types.SimpleNamespace(
        batch_size=count,
        max_q_length=longest,
        q_offsets=starts(sizes),
        s_offsets=torch.arange(count).int(),
        q_lengths=torch.tensor(sizes).int(),
        s_scales=torch.ones(count),
        mask=None,
    )

    def op():
        state = before.clone()
        return seg_la.seg_la_fwd(q, k, v, state, decay, meta), state

    def reference():
        outs, last = [], []
        parts = zip(before.double(), *(n.double().split(sizes) for n in (q, k, v)), strict=True)
        for state, *tokens in parts:
            for one, key, value in zip(*tokens, strict=True):
                state = state * (-decay.double()).exp()[:, None, None]
                state = state + key[..., None] * value[:, None]
                outs.append((one[..., None] * state).sum(1) * HEAD**-0.5)
            last.append(state)
        return torch.stack(outs), torch.stack(last)

    return op, reference


@call(SEQUENCES, LENGTH, timed=BOTH)
def segments(dtype, count, longest):
    return _segments(dtype, count, longest)


@call(BATCH, timed=BOTH)
def segments_decoding(dtype, count):
    return _segments(dtype, count, 1)
