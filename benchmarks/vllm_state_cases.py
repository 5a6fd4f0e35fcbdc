"""Cases of vLLM: what keeps a state of a sequence in the place of its keys (Mamba, linear
attention), and rows: norms, angles, numbers of 8 bits."""

import torch
import torch.nn.functional as F
from libraries import middle
from library_case import BOTH, FULL, HALVES, HEAD, HEADS, HIDDEN, SHARED, TOKENS, Size
from library_references import (
    STATE,
    WIDTH,
    by_block,
    convolved,
    gated,
    lengths,
    rms,
    rotated,
    scan_inputs,
    scan_numbers,
    scanned,
    whole,
)
from vllm_case import call

# isort: split
from vllm.model_executor.determinism import batch_invariant
from vllm.model_executor.layers import fused_qk_norm_rope, lightning_attn
from vllm.model_executor.layers.fused_moe import utils as moe_utils
from vllm.model_executor.layers.mamba.ops import (
    causal_conv1d,
    layernorm_gated,
    mamba_ssm,
    ssd_bmm,
    ssd_chunk_scan,
    ssd_chunk_state,
    ssd_combined,
    ssd_state_passing,
)
from vllm.model_executor.layers.quantization.utils import fp8_utils, int8_utils
from vllm.model_executor.layers.rotary_embedding import mrope

middle(ssd_bmm, ssd_chunk_scan, ssd_chunk_state, ssd_state_passing)

SEQUENCES, LENGTH = Size(2, 4, 1), Size(150, 2048, 8192)
BATCH, CHANNELS = Size(3, 64, 16), Size(300, 8192, 8192)
CHUNK = 256


# Mamba


@call(BATCH, Size(4, 128, 128), dtypes=HALVES, timed=BOTH)
def state_update(dtype, count, heads, dims=64):
    given = scan_inputs(dtype, count, heads, dims)
    x, dt, a, b, c, d, bias = given
    slots = torch.randperm(2 * count)[:count].int() + 1  # of which 0 is none
    before = torch.randn(2 * count + 1, heads, dims, STATE)
    dt, bias, d = (n[..., None].expand(*n.shape, dims) for n in (dt, bias, d))

    def op():
        state, out = before.clone(), torch.empty_like(x)
        mamba_ssm.selective_state_update(
            *(state, x, dt, a[:, None, None].expand(heads, dims, STATE), b, c, d, bias),
            dt_softplus=True,
            state_batch_indices=slots,
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
    sizes = lengths(count, longest)
    given = scan_inputs(dtype, sum(sizes), heads, dims)
    x, dt, a, b, c, d, bias = given
    before = torch.randn(count, heads, dims, STATE)
    starts = F.pad(torch.tensor(sizes).cumsum(0), (1, 0))
    parts = [torch.arange(int(s), int(s) + n, CHUNK) for s, n in zip(starts, sizes, strict=False)]
    chunks = torch.cat([*parts, starts[-1:]]).int()
    of_chunk = torch.repeat_interleave(torch.tensor([len(part) for part in parts]))
    last = torch.tensor([len(part) for part in parts]).cumsum(0) - 1

    def op():
        out = torch.empty_like(x)
        states = ssd_combined.mamba_chunk_scan_combined_varlen(
            *(x, dt, a, b, c, CHUNK, starts.int(), chunks, last.int(), of_chunk.int(), out, d),
            dt_bias=bias,
            initial_states=before,
            dt_softplus=True,
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


@call(SEQUENCES, LENGTH, CHANNELS, dtypes=HALVES)
def convolution(dtype, count, longest, channels):
    sizes = lengths(count, longest)
    x = torch.randn(sum(sizes), channels, dtype=dtype).T
    weight, bias = torch.randn(channels, WIDTH, dtype=dtype), torch.randn(channels, dtype=dtype)
    before, slots = (
        torch.randn(count + 1, channels, WIDTH - 1, dtype=dtype),
        torch.arange(count) + 1,
    )
    starts, has_before = F.pad(torch.tensor(sizes).cumsum(0), (1, 0)), torch.arange(count) % 2 == 0

    def op():
        state = before.clone()
        out = causal_conv1d.causal_conv1d_fn(
            *(x, weight, bias, state, starts.int(), slots.int(), has_before)
        )
        return out, state

    def reference():
        state, outs = before.double(), []
        for row, part in enumerate(x.split(sizes, 1)):
            known = before[row + 1] * has_before[row]
            out, state[row + 1] = convolved(part, known, weight, bias)
            outs.append(out)
        return torch.cat(outs, 1), state

    return op, reference


@call(BATCH, CHANNELS, dtypes=HALVES)
def convolution_update(dtype, count, channels):
    x, before = (
        torch.randn(count, channels, dtype=dtype),
        torch.randn(count + 1, channels, WIDTH - 1),
    )
    before, slots = before.to(dtype), torch.randperm(count) + 1
    weight, bias = torch.randn(channels, WIDTH, dtype=dtype), torch.randn(channels, dtype=dtype)

    def op():
        state = before.clone()
        given = x.clone(), state, weight, bias, "silu", slots.int()
        return causal_conv1d.causal_conv1d_update(*given), state

    def reference():
        state, outs = before.double(), []
        for row, slot in zip(x, slots.tolist(), strict=True):
            out, state[slot] = convolved(row[:, None], before[slot], weight, bias)
            outs.append(out[:, 0])
        return torch.stack(outs), state

    return op, reference


@call(TOKENS, HIDDEN, dtypes=HALVES)
def gated_norms(dtype, *shape):
    x, z = torch.randn(2, *shape, dtype=dtype)
    w = torch.randn(shape[-1], dtype=dtype)

    def op():
        first = layernorm_gated.rms_norm_gated(x, w, None, z)
        return first, layernorm_gated.rms_norm_gated(x, w, None, z, 1e-6, 128, False)

    def reference():
        gate = F.silu(z.double())
        groups = [n.unflatten(-1, (-1, 128)) for n in (x.double() * gate, w)]
        return rms(x, w) * gate, rms(*groups).flatten(-2)

    return op, reference


# Linear attention


@call(SEQUENCES, Size(300, 2048, 8192), dtypes=FULL, timed=BOTH)
def lightning(dtype, count, tokens, heads=8, block=256):
    """What is ahead of a block has decayed by a token less than what is in it."""
    q, k, v = torch.randn(3, count, heads, tokens, HEAD, dtype=dtype) / HEAD**0.25
    decay, before = torch.rand(heads) / 4, torch.randn(count, heads, HEAD, HEAD)

    def op():
        out, states = lightning_attn.lightning_attention(q, k, v, decay, block, before)
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


@call(BATCH, dtypes=HALVES, timed=BOTH)
def lightning_decoding(dtype, count):
    q, k, v = torch.randn(3, count, HEADS, 1, HEAD, dtype=dtype)
    before, slots = torch.randn(2 * count, HEADS, HEAD, HEAD), torch.randperm(2 * count)[:count]
    decay = torch.rand(HEADS)

    def op():
        state = before.clone()
        given = q, k, v, state, decay[:, None, None], slots
        return lightning_attn.linear_decode_forward_triton(*given), state

    def reference():
        state = before.double()
        new = k.double().mT @ v.double()
        state[slots] = state[slots] * (-decay.double()).exp()[:, None, None] + new
        return (q.double() @ state[slots]).flatten(1), state

    return op, reference


# Rows


@call(TOKENS, HIDDEN, dtypes=(*HALVES, torch.float32))
def invariant_rows(dtype, *shape):
    """What does not depend on what else is in a batch."""
    x, w = torch.randn(shape, dtype=dtype), torch.randn(shape[-1], dtype=dtype)

    def reference():
        y = x.double()
        return rms(x, w), y.softmax(-1), y.log_softmax(-1), y.mean(-1), y.mean(0)

    return lambda: (
        batch_invariant.rms_norm_batch_invariant(x, w),
        batch_invariant.softmax(x),
        batch_invariant.log_softmax(x),
        batch_invariant.mean_dim(x, -1),
        batch_invariant.mean_dim(x, 0),
    ), reference


@call(TOKENS, HIDDEN)
def quantise_fp8(dtype, *shape):
    """Of columns of a wider tensor; those that lie together go to the library's CUDA."""
    x = torch.randn(shape[0], 2 * shape[1], dtype=dtype)[:, : shape[1]]

    def op():
        for by_column in (False, True):
            codes, scale = fp8_utils.per_token_group_quant_fp8(
                x, 128, column_major_scales=by_column, use_ue8m0=False
            )
            yield whole(codes, scale, 128)

    return lambda: list(op()), lambda: [whole(*by_block(x, 128), 128)] * 2


@call(TOKENS, HIDDEN)
def quantise_int8(dtype, *shape):
    x = torch.randn(shape, dtype=dtype)

    def op():
        codes, scale = int8_utils.per_token_quant_int8(x)
        return codes * scale, scale

    return op, lambda: (x, x.double().abs().amax(-1, keepdim=True) / 127)


@call(Size(128, 8192, 128), HIDDEN)
def silu_mul_fp8(dtype, rows, columns):
    x = torch.randn(rows, 2 * columns, dtype=dtype)

    def op():
        codes, scale = fp8_utils.silu_mul_per_token_group_quant_fp8_colmajor(x, use_ue8m0=False)
        packed, words = fp8_utils.silu_mul_quant_fp8_packed_triton(x)
        words = words.clone(memory_format=torch.contiguous_format)
        exponents = words.view(torch.uint8)[:, : columns // 128]
        return whole(codes, scale, 128), whole(packed, 2.0 ** (exponents.double() - 127), 128)

    def reference():
        numbers = gated(x)
        largest = numbers.unflatten(-1, (-1, 128)).abs().amax(-1)
        scale = 2.0 ** (largest / 448).log2().ceil()
        codes = (numbers / scale.repeat_interleave(128, -1)).to(torch.float8_e4m3fn)
        return whole(*by_block(numbers, 128), 128), whole(codes, scale, 128)

    return op, reference


@call(TOKENS, HIDDEN, dtypes=HALVES)
def silu_mul_of_experts(dtype, rows, columns, limit=1.5):
    """Rows without an expert are left as they are."""
    x, ids = torch.randn(rows, 2 * columns, dtype=dtype), torch.arange(rows)[:, None] % 5 - 1

    def op():
        out = torch.zeros(rows, columns, dtype=dtype)
        moe_utils.swiglu_limit_func(out, x, limit, ids)
        return out

    def reference():
        gate, up = x.double().chunk(2, -1)
        out = gated(torch.cat((gate.clamp(max=limit), up.clamp(-limit, limit)), -1))
        return out.masked_fill(ids < 0, 0)

    return op, reference


@call(TOKENS, dtypes=HALVES)
def norms_and_rotary(dtype, tokens, turned=64):
    """Of heads whose first dimensions are turned; each query has a gate beside it."""
    q, gate = torch.randn(2, tokens, HEADS, HEAD, dtype=dtype)
    k = torch.randn(tokens, SHARED, HEAD, dtype=dtype)
    q_weight, k_weight = torch.randn(2, HEAD, dtype=dtype)
    angles, at = torch.rand(1024, turned // 2) * 6, torch.randint(0, 1024, (tokens,))
    angles = torch.cat((angles.cos(), angles.sin()), -1)

    def op():
        both = torch.cat((q, gate), -1).flatten(1)
        return fused_qk_norm_rope.fused_qk_rmsnorm_rope_gate(
            *(both, k.flatten(1), q_weight, k_weight, angles, at, 1e-6, HEADS, SHARED, HEAD, turned)
        )

    def reference():
        cos, sin = angles[at][:, None].chunk(2, -1)
        for x, w in ((q, q_weight), (k, k_weight)):
            first, rest = rms(x, w).split((turned, HEAD - turned), -1)
            yield torch.cat((rotated(first, cos, sin), rest), -1).flatten(1)
        yield gate.flatten(1)

    return op, lambda: tuple(reference())


@call(TOKENS, dtypes=HALVES)
def rotary_sections(dtype, tokens, sections=(16, 24, 24)):
    """Angles of time, height and width."""
    q, k = (torch.randn(tokens, n, HEAD, dtype=dtype) for n in (HEADS, SHARED))
    angles = torch.rand(3, tokens, HEAD // 2) * 6
    cos, sin = angles.cos().to(dtype), angles.sin().to(dtype)

    def op():
        given = q.flatten(1).clone(), k.flatten(1).clone(), cos, sin, list(sections)
        return mrope.triton_mrope(*given, HEAD, HEAD, False, True)

    def reference():
        chosen = [
            torch.cat([x[n, :, None] for n, x in enumerate(part.split(sections, -1))], -1)
            for part in (cos, sin)
        ]
        return tuple(rotated(x, *chosen).flatten(1) for x in (q, k))

    return op, reference
