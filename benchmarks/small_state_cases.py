"""Cases of small libraries: what goes from token to token in a state (Mamba, its third version,
mLSTM, scans)."""

import math

import torch
import torch.nn.functional as F
from libraries import middle
from library_case import Size, normal
from small_case import BF16, BOTH, FULL, call, case, gradients

# isort: split
from accelerated_scan import complex as complex_scan
from accelerated_scan import scalar
from causal_conv1d import causal_conv1d_varlen
from mamba_ssm.ops.triton import (
    selective_state_update,
    ssd_bmm,
    ssd_chunk_scan,
    ssd_chunk_state,
    ssd_combined,
    ssd_state_passing,
)
from mamba_ssm.ops.triton.mamba3 import mamba3_mimo_rotary_step as rotary_step
from mamba_ssm.ops.triton.mamba3 import mamba3_mimo_utils as mimo
from mamba_ssm.ops.triton.mamba3 import (
    mamba3_siso_bwd,
    mamba3_siso_combined,
    mamba3_siso_fwd,
    mamba3_siso_step,
)
from mlstm_kernels.torch.chunkwise import triton_limit_chunk, triton_xl_chunk
from mlstm_kernels.torch.chunkwise import triton_xl_chunk_siging as xl_of_sigmoid
from mlstm_kernels.torch.parallel import triton_limit_headdim
from mlstm_kernels.torch.recurrent import native_step, triton_step

middle(ssd_bmm, ssd_chunk_scan, ssd_chunk_state, ssd_combined, ssd_state_passing)
middle(mamba3_siso_bwd, mamba3_siso_fwd, mamba3_siso_step, selective_state_update, mimo)

# Scans

CHANNELS = Size((2, 5, 150), (8, 1536, 4096), (1, 2048, 32768))


def _steps(forget, inputs):
    state, states = torch.zeros_like(inputs[..., 0]), []
    for decay, x in zip(forget.unbind(-1), inputs.unbind(-1), strict=True):
        state = decay * state + x
        states.append(state)
    return torch.stack(states, -1)


@case(normal(CHANNELS), normal(CHANNELS), dtypes=FULL)
def scan(*_):
    return (
        lambda f, x: scalar.scan(f.sigmoid(), x),
        lambda f, x: _steps(f.sigmoid(), x),
    )


@call(CHANNELS, dtypes=FULL)
def scan_of_complex_numbers(dtype, *dims):
    angle, decay, x, y = torch.randn(4, *dims, dtype=dtype)
    forget = torch.polar(decay.sigmoid(), angle)

    def pair(scanned):
        return lambda f, x: torch.view_as_real(scanned(f, x))

    return gradients(pair(complex_scan.scan), pair(_steps), forget, torch.complex(x, y))


# Mamba's second version

SEQUENCES, LENGTH, INNER = Size(2, 4, 1), Size(150, 2048, 8192), Size(4, 32, 64)
STATE, GROUPS, DIMS, CHUNK = 128, 2, 64, 256


def _mamba(dtype, count, tokens, heads):
    b, c = torch.randn(2, count, tokens, GROUPS, STATE, dtype=dtype) / STATE**0.25
    x, z = torch.randn(2, count, tokens, heads, DIMS, dtype=dtype)
    dt = torch.randn(count, tokens, heads, dtype=dtype)
    return x, dt, -torch.rand(heads) - 0.5, b, c, torch.randn(heads), z, torch.randn(heads)


def _scanned(x, dt, a, b, c, d, z, bias):
    step, heads = F.softplus(dt + bias), x.shape[2]
    b, c = (n.repeat_interleave(heads // GROUPS, 2) for n in (b, c))
    state, outs = x.new_zeros(len(x), heads, DIMS, STATE), []
    for at in range(x.shape[1]):
        state = state * (a * step[:, at]).exp()[..., None, None]
        state = state + (step[:, at, :, None] * x[:, at])[..., None] * b[:, at, :, None]
        outs.append((state * c[:, at, :, None]).sum(-1) + d[:, None] * x[:, at])
    return torch.stack(outs, 1) * F.silu(z)


@call(SEQUENCES, LENGTH, INNER, dtypes=BF16, timed=BOTH)
def mamba2(dtype, *dims):
    def op(x, dt, a, b, c, d, z, bias):
        return ssd_combined.mamba_chunk_scan_combined(
            x, dt, a, b, c, CHUNK, d, z, bias, dt_softplus=True
        )

    return gradients(op, _scanned, *_mamba(dtype, *dims))


@call(Size(3, 256, 16), Size(4, 64, 128), dtypes=BF16)
def mamba2_step(dtype, count, heads):
    x, dt, a, b, c, d, z, bias = _mamba(dtype, count, 1, heads)
    before = torch.randn(count, heads, DIMS, STATE)
    wide = [n[..., None].expand(*n.shape, DIMS) for n in (dt[:, 0], bias, d)]

    def op():
        state = before.clone()
        out = selective_state_update.selective_state_update(
            *(
                state,
                x[:, 0],
                wide[0],
                a[:, None, None].expand(heads, DIMS, STATE),
                b[:, 0],
                c[:, 0],
            ),
            *(wide[2], z[:, 0], wide[1]),
            dt_softplus=True,
        )
        return state, out

    def reference():
        step = F.softplus(dt[:, 0].double() + bias)
        each = [n[:, 0].double().repeat_interleave(heads // GROUPS, 1) for n in (b, c)]
        state = before.double() * (a * step).exp()[..., None, None]
        state = state + (step[..., None] * x[:, 0])[..., None] * each[0][:, :, None]
        out = (state * each[1][:, :, None]).sum(-1) + d[:, None] * x[:, 0]
        return state, out * F.silu(z[:, 0].double())

    return op, reference


@call(SEQUENCES, LENGTH, Size(70, 8192, 8192), dtypes=BF16)
def last_tokens_of_sequences(dtype, count, tokens, channels):
    x = torch.randn(count * tokens, channels, dtype=dtype)
    starts = torch.arange(count + 1) * tokens
    starts[-1] -= tokens // 3
    kernels = causal_conv1d_varlen
    return (
        lambda: kernels.causal_conv1d_varlen_states(x, starts.int(), 4),
        lambda: torch.stack([x[end - 4 : end].T for end in starts[1:].tolist()]),
    )


# Mamba's third version, whose angles go from token to token, too

THIRD = (64, 128)  # of values; of keys and queries


def _third(dtype, count, tokens, heads):
    dims, state = THIRD
    q, k = torch.randn(2, count, tokens, 1, state).to(dtype) / state**0.25
    v, z = torch.randn(2, count, tokens, heads, dims).to(dtype)
    step = F.softplus(torch.randn(count, heads, tokens) - 2)
    decay = -step * (torch.rand(heads, 1) + 0.5)
    trap = torch.randn(count, heads, tokens).to(dtype)
    q_bias, k_bias = torch.randn(2, heads, state) / state**0.25
    angles = torch.randn(count, tokens, heads, state // 4).to(dtype)
    return q, k, v, decay, step, trap, q_bias, k_bias, angles, torch.randn(heads), z


def _turned(x, angle):
    """Pairs of the first numbers of `x`."""
    width = 2 * angle.shape[-1]
    one, two = x[..., :width:2], x[..., 1:width:2]
    cos, sin = angle.cos(), angle.sin()
    turned = torch.stack((one * cos - two * sin, one * sin + two * cos), -1).flatten(-2)
    return torch.cat((turned, x[..., width:]), -1)


def _third_steps(q, k, v, decay, step, trap, q_bias, k_bias, angles, d, z, before=None):
    """Outputs of all tokens, and the states behind them."""
    angle, state, k_before, v_before = before or (0, 0, 0, 0)
    share, outs = trap.sigmoid(), []
    for at in range(v.shape[1]):
        dt, alpha, g = (n[..., at, None] for n in (step, decay.exp(), share))
        angle = angle + torch.tanh(angles[:, at]) * math.pi * dt
        q_at, k_at = (_turned(n[:, at] + m, angle) for n, m in ((q, q_bias), (k, k_bias)))
        old = (alpha * dt * (1 - g) * v_before)[..., None] * (k_before + 0 * k_at)[:, :, None]
        state = state * alpha[..., None] + old + (g * dt * v[:, at])[..., None] * k_at[:, :, None]
        out = (state * q_at[:, :, None]).sum(-1) + d[:, None] * v[:, at]
        outs.append(out * F.silu(z[:, at]))
        k_before, v_before = k_at, v[:, at]
    return torch.stack(outs, 1), (angle % (2 * math.pi), state, k_before, v_before)


@call(SEQUENCES, LENGTH, INNER, dtypes=BF16, timed=BOTH)
def mamba3(dtype, *dims):
    return gradients(
        mamba3_siso_combined.mamba3_siso_combined,
        lambda *given: _third_steps(*given)[0],
        *_third(dtype, *dims),
    )


@call(Size(3, 256, 16), Size(4, 64, 128), dtypes=BF16)
def mamba3_step(dtype, count, heads):
    given = _third(dtype, count, 1, heads)
    dims, state = THIRD
    before = (
        torch.rand(count, heads, state // 4),
        torch.randn(count, heads, dims, state),
        torch.randn(count, heads, state),
        torch.randn(count, heads, dims).to(dtype),
    )

    def op():
        q, k, v, decay, step, trap, q_bias, k_bias, angles, d, z = given
        out, states = mamba3_siso_step.mamba3_siso_step(
            *(q[:, 0], k[:, 0], v[:, 0], decay[..., 0], step[..., 0], trap[..., 0]),
            *(q_bias, k_bias, angles[:, 0], d, z[:, 0], before),
        )
        return out, *states[:3]

    def reference():
        outs, states = _third_steps(
            *(n.double() for n in given), before=[n.double() for n in before]
        )
        return outs[:, 0], *states[:3]

    return op, reference


SHORT = Size((2, 3, 64), (16, 32, 2048), (1, 64, 8192))
FEW = 16  # tokens of a chunk


@call(SHORT, dtypes=FULL)
def mamba3_gradients_of_sums(dtype, *dims):
    a, b, c, d = torch.randn(4, *dims, dtype=dtype)
    a, b = a / 10, b / 10
    square = torch.randn(*dims[:2], dims[2] // FEW, FEW, FEW)
    parts = a.unflatten(2, (-1, FEW))
    apart = parts[..., :, None] - parts[..., None, :]

    def reference():
        one = mimo.bwd_segsum_ddt_from_dSSdA_ref(square.double(), a.double(), FEW)
        two = mimo.bwd_ddt_from_ddA_cs_rev_ref(d.double(), b.double(), FEW)
        three = mimo.bwd_ddt_from_ddA_cs_ref(c.double(), a.double(), FEW)
        return (one + two + three) / -math.log2(math.e)

    return lambda: mimo.bwd_dadt_fused_triton(square, apart, c, d, a, b, FEW), reference


@call(SHORT, dtypes=FULL)
def mamba3_gradients_of_steps(dtype, *dims):
    trap, factor, diagonal = torch.randn(3, *dims, dtype=dtype)
    step = torch.rand(*dims)
    given = [n.double() for n in (factor, diagonal, trap, step)]
    return (
        lambda: mimo.bwd_dtrap_ddt_triton(trap, step, factor, diagonal, FEW),
        lambda: mimo.compute_dtrap_ddt_ref(*given),
    )


@call(SHORT, dtypes=FULL)
def mamba3_sums(dtype, *dims):
    x = -torch.rand(*dims, dtype=dtype)
    return (
        lambda: mimo.compute_dacs_segsum_triton(x, FEW),
        lambda: mimo.compute_dacs_segsum_ref(x.double(), FEW),
    )


@call(Size(3, 256, 16), Size(4, 32, 64), dtypes=BF16)
def mamba3_rope_step(dtype, count, heads):
    rank, dims = 4, 128
    q, k = torch.randn(2, count, rank, heads, dims).to(dtype)
    angle, turn = torch.rand(count, heads, dims // 4), torch.randn(count, heads, dims // 4)
    biases = torch.randn(2, rank, heads, dims)
    given = q, k, angle, turn, torch.rand(count, heads), *biases
    return (
        lambda: rotary_step.apply_rotary_qk_inference_fwd(*given),
        lambda: rotary_step.apply_rotary_qk_inference_reference(*(n.double() for n in given)),
    )


# mLSTM

LSTM = Size((2, 2, 128, 32, 64), (4, 8, 2048, 256, 512), (1, 8, 8192, 256, 512))
SMALL_LSTM = Size((2, 2, 128, 32, 32), (4, 16, 2048, 128, 128), (1, 16, 8192, 128, 128))


def _lstm(dtype, count, heads, tokens, keys, values):
    q, k = torch.randn(2, count, heads, tokens, keys, dtype=dtype)
    v = torch.randn(count, heads, tokens, values, dtype=dtype)
    i, f = torch.randn(2, count, heads, tokens)
    return q, k, v, i, f + 3


def _remembered(sigmoid, q, k, v, i, f):
    forgotten = F.logsigmoid(f).cumsum(-1)
    i = F.logsigmoid(i) if sigmoid else i
    gates = forgotten[..., None] - forgotten[..., None, :] + i[..., None, :]
    hidden = torch.ones(gates.shape[-2:], dtype=torch.bool).triu(1)
    scores = q @ k.mT * q.shape[-1] ** -0.5 * gates.masked_fill(hidden, -torch.inf).exp()
    total = scores.sum(-1, keepdim=True).detach()  # whose gradients the library leaves out
    return scores @ v / total.abs().clamp(min=1)


def _lstm_pair(kernel, dtype, dims, sigmoid=False, **options):
    return gradients(
        lambda *given: kernel(*given, autocast_kernel_dtype=dtype, **options),
        lambda *given: _remembered(sigmoid, *given),
        *_lstm(dtype, *dims),
    )


@call(LSTM, dtypes=BF16, timed=BOTH)
def mlstm(dtype, *dims):
    kernel = triton_xl_chunk.mlstm_chunkwise__xl_chunk
    return _lstm_pair(kernel, dtype, dims, chunk_size=min(128, dims[2]))


@call(LSTM, dtypes=BF16)
def mlstm_of_sigmoid(dtype, *dims):
    kernel = xl_of_sigmoid.mlstm_siging_chunkwise__xl_chunk
    return _lstm_pair(kernel, dtype, dims, True, chunk_size=min(128, dims[2]))


@call(SMALL_LSTM, dtypes=BF16)
def mlstm_of_small_chunks(dtype, *dims):
    return _lstm_pair(triton_limit_chunk.mlstm_chunkwise__limit_chunk, dtype, dims)


@call(SMALL_LSTM, dtypes=BF16)
def mlstm_at_once(dtype, *dims):
    return _lstm_pair(triton_limit_headdim.mlstm_parallel__limit_headdim, dtype, dims)


@call(Size((2, 2, 1, 32, 64), (64, 8, 1, 256, 512), (8, 8, 1, 256, 512)), dtypes=BF16)
def mlstm_step(dtype, *dims):
    q, k, v, i, f = (n.squeeze(2) for n in _lstm(dtype, *dims))
    count, heads, _, keys, values = dims
    state, total = torch.randn(count, heads, keys, values), torch.randn(count, heads, keys)
    given = q, k, v, i[..., None].reshape(count, heads, 1), f.reshape(count, heads, 1)
    before = state, total, torch.rand(count, heads, 1)

    def parts(found):
        return found[0], *found[1]

    return (
        lambda: parts(triton_step.mlstm_recurrent_step__triton(*given, *before)),
        lambda: parts(
            native_step.mlstm_recurrent_step__native(
                *(n.double() for n in (*given, *before)), dtype_state=torch.float64
            )
        ),
    )
