"""The gradients of attention by one kernel: five dots for each pair of blocks, not seven.

A program has a block of keys, for whose dk and dv it goes over the rows; what these keys add to dq
it adds in memory, by TMA (attention_backward.py has a kernel of its own for dq, and computes the
weights twice). So dq is a sum in no fixed order, and may differ in its last bits from run to run.

Source: Shah et al., "FlashAttention-3", section 3.3. For a GPU of 9.0 or later, and 16-bit floats.
"""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
import math
from dataclasses import replace

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.attention import LOG2_E, check_shapes
from kernels.attention_backward import CASE as TWO_KERNELS
from kernels.attention_backward import _head, _rows_of
from kernels.harness import main
from proton.tools.tensor_descriptor import TensorDescriptor

PADDED = 128  # rows of a head are padded to a multiple in what a launch needs besides
THREE_PROGRAMS = 168  # registers of a thread, with which so many of four warps run on an SM


@proton.jit
def prepare_kernel(
    out_ptr, dout_ptr, lse_ptr, rows_ptr, delta_ptr, dq_ptr,
    stride_oz, stride_oh, stride_on, stride_dz, stride_dh, stride_dn, heads, length, padded,
    HEAD: tl.constexpr, BLOCK: tl.constexpr,
):  # fmt: skip
    """Of BLOCK rows their lse, the sums of out * dout, and zeros for dq; beyond the last row lse is
    infinite, so that weights are 0."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head = tl.program_id(1).to(tl.int64)
    out = _rows_of(_head(out_ptr, stride_oz, stride_oh, heads), rows, stride_on, length, HEAD)
    dout = _rows_of(_head(dout_ptr, stride_dz, stride_dh, heads), rows, stride_dn, length, HEAD)
    inside, place = rows < length, head * padded + rows
    lse = tl.load(lse_ptr + head * length + rows, mask=inside, other=float("inf"))
    tl.store(rows_ptr + place, lse)
    tl.store(delta_ptr + place, tl.sum(out.to(tl.float32) * dout.to(tl.float32), 1))
    dq_ptrs = dq_ptr + place[:, None] * HEAD + tl.arange(0, HEAD)[None, :]
    tl.store(dq_ptrs, tl.zeros((BLOCK, HEAD), tl.float32))


@proton.jit
def finish_kernel(sums_ptr, dq_ptr, length, padded, scale, HEAD: tl.constexpr, BLOCK: tl.constexpr):
    """BLOCK rows of dq from their sums."""
    rows = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    head, columns = tl.program_id(1).to(tl.int64), tl.arange(0, HEAD)
    inside = rows[:, None] < length
    sums = tl.load(
        sums_ptr + (head * padded + rows)[:, None] * HEAD + columns[None, :], mask=inside, other=0.0
    )
    dq_ptrs = dq_ptr + (head * length + rows)[:, None] * HEAD + columns[None, :]
    tl.store(dq_ptrs, (sums * scale).to(dq_ptr.dtype.element_ty), mask=inside)


@proton.jit
def _over_rows(
    dk, dv, keys, values, q, dout, lse, delta, dq, batch, head, columns, first, last,
    length, scale, MASKED: tl.constexpr, CAUSAL: tl.constexpr, ROLES: tl.constexpr,
):  # fmt: skip
    """What the rows from `first` to `last` add to dk, dv, and these keys to the rows' dq. MASKED:
    some of the keys are not there, or, where CAUSAL, some rows do not see some."""
    STEP: tl.constexpr = q.block_shape[2]
    HEAD: tl.constexpr = q.block_shape[3]
    at = tl.program_id(1)
    for start in tl.range(first, last, STEP, warp_specialize=ROLES):
        query = q.load([batch, head, start, 0]).reshape(STEP, HEAD)
        with proton.scope("scores"):
            scores = tl.dot(keys, query.T)
        grad = dout.load([batch, head, start, 0]).reshape(STEP, HEAD)
        with proton.scope("dweights"):
            dweights = tl.dot(values, grad.T)
        with proton.scope("weights"):
            of_rows = lse.load([at, start]).reshape(STEP)
            weights = tl.exp2(scores * scale - of_rows[None, :])
            if MASKED:
                visible = (columns < length)[:, None]
                if CAUSAL:
                    rows = start + tl.arange(0, STEP)
                    visible = visible & (rows[None, :] >= columns[:, None])
                weights = tl.where(visible, weights, 0.0)
            p = weights.to(grad.dtype)  # what dv takes, so that no register holds the rest
        with proton.scope("dv"):
            dv = tl.dot(p, grad, dv)
        with proton.scope("dscores"):
            less = delta.load([at, start]).reshape(STEP)
            ds = (p.to(tl.float32) * (dweights - less[None, :])).to(query.dtype)
        with proton.scope("dq"):
            part = tl.dot(ds.T, keys)
        with proton.scope("dk"):
            dk = tl.dot(ds, query, dk)
        with proton.scope("add dq"):
            dq.atomic_add([at, start, 0], part.reshape(1, STEP, HEAD))
    return dk, dv


@proton.jit
def gradients_kernel(
    q, k, v, dout, lse, delta, dq, dk, dv, heads, length, scale,
    CAUSAL: tl.constexpr, RAGGED: tl.constexpr, ROLES: tl.constexpr,
):  # fmt: skip
    """A block of dk and dv of one head, and what it adds to dq, which lacks `scale`. q, k, v, dout
    and their gradients are descriptors of (batch, heads, length, size), lse and delta of
    (batch * heads, padded), dq of (batch * heads, padded, size). RAGGED: some block has keys beyond
    the last one."""
    BLOCK: tl.constexpr = k.block_shape[2]
    STEP: tl.constexpr = q.block_shape[2]
    HEAD: tl.constexpr = q.block_shape[3]
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    block = tl.program_id(0)  # where CAUSAL, the first keys are seen by the most rows
    columns = block * BLOCK + tl.arange(0, BLOCK)
    keys = k.load([batch, head, block * BLOCK, 0]).reshape(BLOCK, HEAD)
    values = v.load([batch, head, block * BLOCK, 0]).reshape(BLOCK, HEAD)
    acc_k = tl.zeros((BLOCK, HEAD), dtype=tl.float32)
    acc_v = tl.zeros((BLOCK, HEAD), dtype=tl.float32)
    # Multiples of STEP, so that TMA copies what begins there.
    end = tl.cdiv((block + 1) * BLOCK, STEP) * STEP
    first = block * BLOCK // STEP * STEP if CAUSAL else 0
    whole = end if CAUSAL else 0
    if RAGGED:  # no row is beyond `end`
        whole = tl.where((block + 1) * BLOCK > length, end, whole)
    if CAUSAL or RAGGED:
        acc_k, acc_v = _over_rows(
            acc_k, acc_v, keys, values, q, dout, lse, delta, dq, batch, head, columns, first,
            min(whole, length), length, scale * LOG2_E, True, CAUSAL, ROLES,
        )  # fmt: skip
    acc_k, acc_v = _over_rows(
        acc_k, acc_v, keys, values, q, dout, lse, delta, dq, batch, head, columns, whole, length,
        length, scale * LOG2_E, False, CAUSAL, ROLES,
    )  # fmt: skip
    place = [batch, head, block * BLOCK, 0]
    dk.store(place, (acc_k * scale).to(dk.dtype).reshape(1, 1, BLOCK, HEAD))
    dv.store(place, acc_v.to(dv.dtype).reshape(1, 1, BLOCK, HEAD))


def configuration(q: Array) -> dict[str, int]:
    """The options of `attention_backward_fused` that suit q's device and size of heads."""
    if not arrays.on_gpu(q):
        return {"block": 64, "step": 64, "ROLES": False}
    if q.shape[-1] <= 64:
        return {
            "block": 64,
            "step": 64,
            "ROLES": False,
            "num_warps": 4,
            "num_stages": 2,
            "maxnreg": THREE_PROGRAMS,
        }
    return {"block": 128, "step": 64, "ROLES": True, "num_warps": 8, "num_stages": 2}


def attention_backward_fused(
    q: Array,
    k: Array,
    v: Array,
    out: Array,
    dout: Array,
    lse: Array,
    causal: bool = False,
    scale: float | None = None,
    **options: int,
) -> tuple[Array, Array, Array]:
    """(dq, dk, dv) as `attention_backward` returns them, for the same arrays of 16-bit floats.
    Strides but the last are multiples of 16 bytes. `options`: `block`, the keys of a program,
    `step`, the rows of an iteration, both at most 128, ROLES, whether a warp of its own copies, and
    those of the launch (num_warps, ...).
    """
    batch, heads, length, head = q.shape
    check_shapes(q=q, k=k, v=v, out=out, dout=dout)
    scale = 1 / math.sqrt(head) if scale is None else scale
    options = configuration(q) | options
    block, step = options.pop("block"), options.pop("step")
    dq, dk, dv = (arrays.empty(x, tuple(q.shape)) for x in (q, k, v))
    if not arrays.size(q):
        return dq, dk, dv
    padded, count = proton.cdiv(length, PADDED) * PADDED, batch * heads
    rows, delta = (arrays.empty(q, (count, padded), "float32") for _ in range(2))
    sums = arrays.empty(q, (count, padded, head), "float32")
    of_out, of_dout = ([arrays.stride(x, axis) for axis in range(3)] for x in (out, dout))
    prepare_kernel[padded // 64, count](
        out, dout, lse, rows, delta, sums, *of_out, *of_dout, heads, length, padded,
        HEAD=head, BLOCK=64,
    )  # fmt: skip
    new = TensorDescriptor.from_tensor
    sizes = (step, block, block, step, block, block)
    given = [new(x, [1, 1, n, head]) for x, n in zip((q, k, v, dout, dk, dv), sizes, strict=True)]
    of_rows = (new(rows, [1, step]), new(delta, [1, step]), new(sums, [1, step, head]))
    gradients_kernel[proton.cdiv(length, block), count](
        *given[:4],
        *of_rows,
        *given[4:],
        heads,
        length,
        scale,
        CAUSAL=causal,
        RAGGED=length % block != 0,
        **options,
    )
    finish_kernel[proton.cdiv(length, 64), count](
        sums, dq, length, padded, scale, HEAD=head, BLOCK=64
    )
    return dq, dk, dv


CASE = replace(
    TWO_KERNELS,
    name="attention backward, fused",
    launch=lambda *x, out=None: attention_backward_fused(*x),
)

if __name__ == "__main__":
    main(CASE)
