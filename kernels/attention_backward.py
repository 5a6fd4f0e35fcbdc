"""The gradients of attention, from what the forward pass left.

With p = softmax(q @ k.T * scale) and out = p @ v, the weights are computed again from `lse`, and

    dv = p.T @ dout
    ds = p * (dout @ v.T - delta)    delta = the sums of the rows of out * dout
    dq = ds @ k * scale              dk = ds.T @ q * scale

Source: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning".
No two programs write to one place: one kernel goes from keys over the rows that see them, another
one from rows over the keys that they see, so the result is the same in every run.
"""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
import math
from typing import Any

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.attention import LOG2_E, check_shapes
from kernels.attention import reference as forward_reference
from kernels.harness import Arrays, Case, main


@proton.jit
def _head(ptr, stride_z, stride_h, heads):
    """Where the head of this program begins in an array."""
    index = tl.program_id(1)
    return ptr + (index // heads).to(tl.int64) * stride_z + (index % heads).to(tl.int64) * stride_h


@proton.jit
def _rows_of(ptr, rows, stride, length, HEAD: tl.constexpr):
    """Rows of a head, with zeros beyond the last one."""
    ptrs = ptr + rows[:, None] * stride + tl.arange(0, HEAD)[None, :]
    return tl.load(ptrs, mask=rows[:, None] < length, other=0.0)


@proton.jit
def _store_rows(ptr, rows, length, values, HEAD: tl.constexpr):
    """Rows of this program's head, in an array whose rows all lie one behind the other."""
    place = tl.program_id(1).to(tl.int64) * length + rows
    ptrs = ptr + place[:, None] * HEAD + tl.arange(0, HEAD)[None, :]
    tl.store(ptrs, values.to(ptr.dtype.element_ty), mask=rows[:, None] < length)


@proton.jit
def delta_kernel(
    out_ptr, dout_ptr, delta_ptr,
    stride_oz, stride_oh, stride_on, stride_dz, stride_dh, stride_dn, heads, length,
    HEAD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """The sums of BLOCK rows of out * dout."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    out_ptr = _head(out_ptr, stride_oz, stride_oh, heads)
    dout_ptr = _head(dout_ptr, stride_dz, stride_dh, heads)
    with proton.scope("delta"):
        out = _rows_of(out_ptr, rows, stride_on, length, HEAD).to(tl.float32)
        dout = _rows_of(dout_ptr, rows, stride_dn, length, HEAD).to(tl.float32)
        place = tl.program_id(1).to(tl.int64) * length + rows
        tl.store(delta_ptr + place, tl.sum(out * dout, 1), mask=rows < length)


@proton.jit
def _over_rows(
    dk, dv, k, v, q_ptr, dout_ptr, lse_ptr, delta_ptr, stride_qn, stride_dn, columns,
    first, last, length, scale, HEAD: tl.constexpr, STEP: tl.constexpr, MASKED: tl.constexpr,
):  # fmt: skip
    """What the rows from `first` to `last` add to dk and dv. Products are transposed, keys by rows,
    so that weights are left operands, which tensor cores take from registers. A row beyond the
    last one has an infinite sum, so its weights are 0. MASKED: some rows do not see some keys."""
    for start in range(first, last, STEP):
        rows = start + tl.arange(0, STEP)
        inside = rows < length
        with proton.scope("weights"):
            q = _rows_of(q_ptr, rows, stride_qn, length, HEAD)
            lse = tl.load(lse_ptr + rows, mask=inside, other=float("inf"))
            weights = tl.exp2(tl.dot(k, tl.trans(q)) * scale - lse[None, :])
            if MASKED:
                weights = tl.where(rows[None, :] >= columns[:, None], weights, 0.0)
        with proton.scope("dv"):
            dout = _rows_of(dout_ptr, rows, stride_dn, length, HEAD)
            dv = tl.dot(weights.to(dout.dtype), dout, dv)
        with proton.scope("dk"):
            delta = tl.load(delta_ptr + rows, mask=inside, other=0.0)
            dscores = weights * (tl.dot(v, tl.trans(dout)) - delta[None, :])
            dk = tl.dot(dscores.to(q.dtype), q, dk)
    return dk, dv


@proton.jit
def dkdv_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dk_ptr, dv_ptr,
    stride_qz, stride_qh, stride_qn, stride_kz, stride_kh, stride_kn,
    stride_vz, stride_vh, stride_vn, stride_dz, stride_dh, stride_dn,
    heads, length, scale,
    HEAD: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """BLOCK rows of dk and dv of one head, from STEP rows of q at a time."""
    block = tl.program_id(0)  # where CAUSAL, the first keys are seen by the most rows
    columns = block * BLOCK + tl.arange(0, BLOCK)
    q_ptr = _head(q_ptr, stride_qz, stride_qh, heads)
    dout_ptr = _head(dout_ptr, stride_dz, stride_dh, heads)
    lse_ptr += tl.program_id(1).to(tl.int64) * length
    delta_ptr += tl.program_id(1).to(tl.int64) * length
    k = _rows_of(_head(k_ptr, stride_kz, stride_kh, heads), columns, stride_kn, length, HEAD)
    v = _rows_of(_head(v_ptr, stride_vz, stride_vh, heads), columns, stride_vn, length, HEAD)
    dk = tl.zeros((BLOCK, HEAD), dtype=tl.float32)
    dv = tl.zeros((BLOCK, HEAD), dtype=tl.float32)
    whole = 0
    if CAUSAL:
        whole = min(length, tl.cdiv((block + 1) * BLOCK, STEP) * STEP)
        dk, dv = _over_rows(
            dk, dv, k, v, q_ptr, dout_ptr, lse_ptr, delta_ptr, stride_qn, stride_dn, columns,
            block * BLOCK // STEP * STEP, whole, length, scale * LOG2_E, HEAD, STEP, True,
        )  # fmt: skip
    dk, dv = _over_rows(
        dk, dv, k, v, q_ptr, dout_ptr, lse_ptr, delta_ptr, stride_qn, stride_dn, columns,
        whole, length, length, scale * LOG2_E, HEAD, STEP, False,
    )  # fmt: skip
    _store_rows(dk_ptr, columns, length, dk * scale, HEAD)
    _store_rows(dv_ptr, columns, length, dv, HEAD)


@proton.jit
def _over_keys(
    dq, q, dout, lse, delta, k_ptr, v_ptr, stride_kn, stride_vn, rows,
    first, last, length, scale, HEAD: tl.constexpr, STEP: tl.constexpr,
    MASKED: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """What the keys from `first` to `last` add to dq. MASKED: some of them are not there, or, where
    CAUSAL, some rows do not see some."""
    for start in range(first, last, STEP):
        columns = start + tl.arange(0, STEP)
        with proton.scope("weights"):
            k = _rows_of(k_ptr, columns, stride_kn, length, HEAD)
            weights = tl.exp2(tl.dot(q, tl.trans(k)) * scale - lse[:, None])
            if MASKED:
                visible = columns[None, :] < length
                if CAUSAL:
                    visible = visible & (rows[:, None] >= columns[None, :])
                weights = tl.where(visible, weights, 0.0)
        with proton.scope("dq"):
            v = _rows_of(v_ptr, columns, stride_vn, length, HEAD)
            dscores = weights * (tl.dot(dout, tl.trans(v)) - delta[:, None])
            dq = tl.dot(dscores.to(k.dtype), k, dq)
    return dq


@proton.jit
def dq_kernel(
    q_ptr, k_ptr, v_ptr, dout_ptr, lse_ptr, delta_ptr, dq_ptr,
    stride_qz, stride_qh, stride_qn, stride_kz, stride_kh, stride_kn,
    stride_vz, stride_vh, stride_vn, stride_dz, stride_dh, stride_dn,
    heads, length, scale,
    HEAD: tl.constexpr, BLOCK: tl.constexpr, STEP: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """BLOCK rows of dq of one head, from STEP keys at a time."""
    block = tl.program_id(0)
    if CAUSAL:
        block = tl.num_programs(0) - 1 - block  # the longest first
    rows = block * BLOCK + tl.arange(0, BLOCK)
    k_ptr = _head(k_ptr, stride_kz, stride_kh, heads)
    v_ptr = _head(v_ptr, stride_vz, stride_vh, heads)
    q = _rows_of(_head(q_ptr, stride_qz, stride_qh, heads), rows, stride_qn, length, HEAD)
    dout = _rows_of(_head(dout_ptr, stride_dz, stride_dh, heads), rows, stride_dn, length, HEAD)
    place = tl.program_id(1).to(tl.int64) * length + rows
    lse = tl.load(lse_ptr + place, mask=rows < length, other=float("inf"))
    delta = tl.load(delta_ptr + place, mask=rows < length, other=0.0)
    dq = tl.zeros((BLOCK, HEAD), dtype=tl.float32)
    whole, last = length // STEP * STEP, length
    if CAUSAL:
        whole = min(whole, block * BLOCK // STEP * STEP)
        last = min(length, (block + 1) * BLOCK)
    dq = _over_keys(
        dq, q, dout, lse, delta, k_ptr, v_ptr, stride_kn, stride_vn, rows,
        0, whole, length, scale * LOG2_E, HEAD, STEP, False, CAUSAL,
    )  # fmt: skip
    dq = _over_keys(
        dq, q, dout, lse, delta, k_ptr, v_ptr, stride_kn, stride_vn, rows,
        whole, last, length, scale * LOG2_E, HEAD, STEP, True, CAUSAL,
    )  # fmt: skip
    _store_rows(dq_ptr, rows, length, dq * scale, HEAD)


def configuration(q: Array, causal: bool) -> dict[str, int]:
    """The options of `attention_backward` that suit q's device, dtype and size of heads: the
    largest blocks that registers have room for."""
    if not arrays.on_gpu(q):
        return {"BLOCK": 64, "STEP": 64}
    if q.itemsize > 2:
        return {"BLOCK": 64, "STEP": 32, "num_warps": 4, "num_stages": 2}
    step = 32 if causal and q.shape[-1] > 64 else 64
    return {"BLOCK": 128, "STEP": step, "num_warps": 8, "num_stages": 2}


def attention_backward(
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    dout: Array,
    lse: Array,
    causal: bool = False,
    scale: float | None = None,
    **options: object,
) -> tuple[Array, Array, Array]:
    """(dq, dk, dv) for the gradient `dout` of what `attention` returned as (out, lse) for the same
    q, k, v, `causal` and `scale`.

    Arrays are (batch, heads, length, size), the last dimension contiguous and a power of two; the
    gradients are contiguous. `options`: BLOCK, the rows of gradients of a program, STEP, the rows
    of an iteration of its loop, and those of the launches (num_warps, ...).
    """
    check_shapes(q=q, k=k, v=v, out=out, dout=dout)
    batch, heads, length, head = q.shape
    scale = 1 / math.sqrt(head) if scale is None else scale
    options = configuration(q, causal) | options
    dq, dk, dv = (arrays.empty(x, tuple(q.shape)) for x in (q, k, v))
    delta = arrays.empty(q, (batch, heads, length), "float32")
    grid = (proton.cdiv(length, options["BLOCK"]), batch * heads)
    of_out, of_dout = ([arrays.stride(x, axis) for axis in range(3)] for x in (out, dout))
    strides = [arrays.stride(x, axis) for x in (q, k, v) for axis in range(3)] + of_dout
    delta_kernel[grid](
        out, dout, delta, *of_out, *of_dout, heads, length, HEAD=head, BLOCK=options["BLOCK"]
    )  # fmt: skip
    constants = {"HEAD": head, "CAUSAL": causal} | options
    inputs, sizes = (q, k, v, dout, lse, delta), (*strides, heads, length, scale)
    dkdv_kernel[grid](*inputs, dk, dv, *sizes, **constants)
    dq_kernel[grid](*inputs, dq, *sizes, **constants)
    return dq, dk, dv


def reference(
    q: np.ndarray,
    k: np.ndarray,
    v: np.ndarray,
    dout: np.ndarray,
    causal: bool = False,
    scale: float | None = None,
) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """The same by numpy."""
    scale = 1 / math.sqrt(q.shape[-1]) if scale is None else scale
    scores = q @ k.swapaxes(-1, -2) * scale
    if causal:
        scores = np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)
    p = np.exp(scores - scores.max(-1, keepdims=True, initial=-np.inf))
    p /= p.sum(-1, keepdims=True)
    dp = dout @ v.swapaxes(-1, -2)
    ds = p * (dp - (p * dp).sum(-1, keepdims=True)) * scale
    return ds @ k, ds.swapaxes(-1, -2) @ q, p.swapaxes(-1, -2) @ dout


def _after_forward(q: np.ndarray, k: np.ndarray, v: np.ndarray, dout: np.ndarray) -> Arrays:
    out, lse = forward_reference(q, k, v)
    return q, k, v, out, dout, lse


def _torch(torch: Any, out: Any, q: Any, k: Any, v: Any, _: Any, dout: Any, lse: Any) -> Any:
    """With the forward pass, whose result torch needs as a graph."""
    inputs = [x.detach().requires_grad_() for x in (q, k, v)]
    result = torch.nn.functional.scaled_dot_product_attention(*inputs)
    return torch.autograd.grad(result, inputs, dout)


CASE = Case(
    name="attention backward",
    shapes=lambda batch, heads, length, size: [(batch, heads, length, size)] * 4,
    prepare=_after_forward,
    launch=lambda *x, out=None: attention_backward(*x),
    reference=lambda q, k, v, o, dout, lse, out=None: reference(q, k, v, dout),
    torch=_torch,
    tolerance=1e-5,
    approximation=1e-5,  # of exp2
    ugly=((1, 1, 1, 16), (2, 3, 33, 16), (1, 2, 100, 64), (1, 1, 257, 128)),
    benchmark=((1, 8, 256, 64), (1, 8, 1024, 64), (1, 4, 1024, 128)),
)

if __name__ == "__main__":
    main(CASE)
