"""flashinfer's Triton kernels for any GPU: states of attention that are merged, products, norms and
activations with scales of fp8, and routing. Most of the library is CUDA, and for Blackwell.
"""

from typing import Any

import torch
import torch.nn.functional as F
from libraries import bare, stand_in
from library_case import LARGE, WIDE, Size, calls_in
from library_references import gated, rms

bare("flashinfer", "flashinfer.triton")
bare("flashinfer.fused_moe", "flashinfer.fused_moe.cute_dsl")
bare("flashinfer.fused_moe.cute_dsl.blackwell_sm12x")
stand_in(
    "flashinfer.utils",
    get_compute_capability=lambda device: (9, 0),
    GPUArchitectureError=RuntimeError,
)

from flashinfer.fused_moe.cute_dsl.blackwell_sm12x import triton_compact  # noqa: E402
from flashinfer.triton import activation, cascade, norm, page, sm_constraint_gemm  # noqa: E402
from flashinfer.triton.kernels import ssd_chunk_state  # noqa: E402

CASES: dict[str, Any] = {}
call = calls_in(CASES)
HALVES = (torch.float16, torch.bfloat16)
BOTH = (LARGE, WIDE)
FP8 = torch.float8_e4m3fn
TOKENS, HIDDEN = Size(15, 8192, 16), Size(40, 4096, 4096)
HEADS, HEAD = 32, 128


# Attention in parts: a value, and the logarithm to base 2 of the sum of its weights


def merged(v, s):
    """Along the second dimension."""
    weights = torch.exp2(s.double() - s.double().amax(1, keepdim=True))
    total = weights.sum(1)
    values = (v.double() * weights[..., None]).sum(1) / total[..., None]
    return values, total.log2() + s.double().amax(1)


@call(TOKENS, dtypes=HALVES)
def merge_two(dtype, tokens):
    v = torch.randn(2, tokens, HEADS, HEAD, dtype=dtype)
    s = torch.randn(2, tokens, HEADS) * 5

    def op():
        new = v[0].clone(), s[0].clone()
        cascade.merge_state_in_place(*new, v[1], s[1])
        return *cascade.merge_state(v[0], s[0], v[1], s[1]), *new

    return op, lambda: merged(v.transpose(0, 1), s.transpose(0, 1)) * 2


@call(TOKENS, dtypes=HALVES)
def merge_several(dtype, tokens, parts=6):
    v = torch.randn(tokens, parts, HEADS, HEAD, dtype=dtype)
    s = torch.randn(tokens, parts, HEADS) * 5
    return lambda: cascade.merge_states(v, s), lambda: merged(v, s)


@call(TOKENS)
def merge_as_many_as_there_are(dtype, tokens):
    counts = torch.arange(tokens) % 5 + 1
    v = torch.randn(int(counts.sum()), HEADS, HEAD, dtype=dtype)
    s = torch.randn(len(v), HEADS) * 5
    ends = F.pad(counts.cumsum(0), (1, 0)).int()

    def reference():
        parts = zip(v.split(counts.tolist()), s.split(counts.tolist()), strict=True)
        rows = [merged(one[None], other[None]) for one, other in parts]
        return [torch.cat(each) for each in zip(*rows, strict=True)]

    return lambda: cascade.variable_length_merge_states(v, s, ends), reference


# Products


def _product(function, dtype, rows, inner, columns, turned=True):
    """Kernels read what they add to, also where that is multiplied by 0."""
    a, b = (torch.randn(n, inner).to(dtype) for n in (rows, columns))
    c = torch.randn(rows, columns).to(torch.bfloat16 if dtype == FP8 else dtype)
    return (
        lambda: function(a, b.T if turned else b, c.clone(), 0.5, 2.0),
        lambda: 0.5 * a.double() @ b.double().T + 2 * c.double(),
    )


ROWS, INNER, COLUMNS = Size(200, 4096, 128), Size(256, 4096, 4096), Size(384, 4096, 14336)


@call(ROWS, INNER, COLUMNS, dtypes=(*HALVES, FP8), timed=BOTH)
def product(dtype, *dims):
    return _product(sm_constraint_gemm.gemm, dtype, *dims)


@call(ROWS, INNER, COLUMNS, dtypes=(torch.bfloat16, FP8), timed=BOTH)
def persistent_product(dtype, *dims):
    return _product(sm_constraint_gemm.gemm_persistent, dtype, *dims)


@call(ROWS, INNER, COLUMNS, dtypes=(torch.bfloat16, FP8), timed=BOTH)
def persistent_product_by_descriptors(dtype, *dims):
    return _product(sm_constraint_gemm.gemm_descriptor_persistent, dtype, *dims, turned=False)


# Rows


@call(TOKENS, HIDDEN, dtypes=HALVES)
def rms_norm(dtype, *shape):
    x, r = torch.randn(2, *shape, dtype=dtype)
    w = torch.randn(shape[-1], dtype=dtype)

    def op():
        new, out, more = r.clone(), torch.empty_like(x), torch.empty_like(x)
        norm.rms_norm(x, w, out, 1e-6)
        norm.rms_norm_add_residual(x, new, w, 1e-6, more)
        return out, more, new

    return op, lambda: (rms(x, w), rms(x + r, w), x + r)


@call(TOKENS, HIDDEN, dtypes=(FP8,))
def rms_norm_fp8(dtype, *shape):
    x, w = torch.randn(shape).to(dtype), torch.randn(shape[-1], dtype=torch.bfloat16)
    scales = torch.tensor([0.7, 20.0])

    def op():
        out = torch.empty_like(x)
        norm.rms_norm(x, w, out, 1e-6, scales[:1], scales[1:])
        return out

    return op, lambda: (rms(x.double() * scales[0], w) * scales[1]).to(FP8).double()


@call(TOKENS, HIDDEN, dtypes=HALVES)
def silu_mul(dtype, rows, columns):
    x, scale = torch.randn(rows, 2 * columns, dtype=dtype), torch.tensor([3.0])
    return (
        lambda: (activation.silu_and_mul(x), activation.silu_and_mul(x, None, scale, FP8)),
        lambda: (gated(x), (gated(x) * scale).to(FP8).double()),
    )


@call(Size(2, 8, 1), Size(300, 8192, 65536), dtypes=(torch.float32, torch.bfloat16))
def chunk_sums(dtype, count, tokens, heads=80, chunk=256):
    dt, decay = torch.randn(count, tokens, heads, dtype=dtype), -torch.rand(heads)
    bias = torch.rand(heads)

    def reference():
        steps = F.softplus(dt.double() + bias).transpose(1, 2)
        steps = F.pad(steps, (0, -tokens % chunk)).unflatten(-1, (-1, chunk))
        return (steps * decay.double()[:, None, None]).cumsum(-1), steps

    return lambda: ssd_chunk_state.chunk_cumsum_fwd(dt, decay, chunk, bias, True), reference


# Numbers of tokens


@call(Size(3, 64, 1), Size(300, 4096, 65536), dtypes=(torch.int32,))
def positions(dtype, count, longest):
    new = torch.tensor([longest - n for n in range(count)], dtype=dtype)
    old = torch.arange(count, dtype=dtype) * 7
    ends = F.pad(new.cumsum(0), (1, 0)).to(dtype)

    def op():
        found = [torch.empty(int(new.sum()), dtype=dtype) for _ in range(2)]
        page.get_batch_indices_positions_kernel[(count,)](ends, new + old, *found, num_stages=2)
        return found

    def reference():
        rows = torch.arange(count).repeat_interleave(new)
        places = torch.cat([torch.arange(n) for n in new.tolist()])
        return rows, places + old[rows]

    return op, reference


@call(Size(20, 64, 8), Size(2, 2, 8), dtypes=(torch.int32,))
def compact_routes(dtype, tokens, top):
    ids = torch.randint(-1, 40, (tokens * top,), dtype=dtype)

    def op():
        local, found = torch.empty_like(ids), torch.zeros_like(ids)
        count = torch.empty(1, dtype=dtype)
        triton_compact.compact_topk_ids(ids, local, found, count)
        return local, found, count

    def reference():
        order = list(dict.fromkeys(i for i in ids.tolist() if i >= 0))
        local = torch.tensor([order.index(i) if i >= 0 else -1 for i in ids.tolist()])
        found = F.pad(torch.tensor(order), (0, len(ids) - len(order)))
        return local, found, torch.tensor([len(order)])

    return op, reference
