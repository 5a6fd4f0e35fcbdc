"""Attention, forward: softmax(q @ k.T * scale) @ v for each batch and head, in blocks.

Source: Dao, "FlashAttention-2: Faster Attention with Better Parallelism and Work Partitioning".
"""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
import math

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main
from proton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = tl.constexpr(1.4426950408889634)


@proton.jit
def _weights(scores, row_max, row_sum, scale):
    """Of a block of scores the weights, the rows' new maximum and sum, and the factor by which what
    was known before shrinks."""
    new_max = tl.maximum(row_max, tl.max(scores, 1) * scale)
    weights = tl.exp2(scores * scale - new_max[:, None])
    decay = tl.exp2(row_max - new_max)
    return weights, new_max, row_sum * decay + tl.sum(weights, 1), decay


@proton.jit
def _at_the_edge(
    acc, row_max, row_sum, q, k_ptrs, v_ptrs, stride_kn, stride_vn,
    rows, columns, first, last, length, scale, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
):  # fmt: skip
    """The keys from `first` to `last`, of which a row sees some."""
    for start in range(first, last, BLOCK_N):
        inside = start + columns < length
        with proton.scope("scores"):
            k = tl.load(k_ptrs + start * stride_kn, mask=inside[None, :], other=0.0)
            scores = tl.dot(q, k)
        with proton.scope("softmax"):
            visible = inside[None, :]
            if CAUSAL:
                visible = visible & (rows[:, None] >= start + columns[None, :])
            scores = tl.where(visible, scores, float("-inf"))
            weights, row_max, row_sum, decay = _weights(scores, row_max, row_sum, scale)
            acc = acc * decay[:, None]
            p = weights.to(v_ptrs.dtype.element_ty)
        with proton.scope("values"):
            v = tl.load(v_ptrs + start * stride_vn, mask=inside[:, None], other=0.0)
            acc = tl.dot(p, v, acc)
    return acc, row_max, row_sum


@proton.jit
def _whole_blocks(
    acc, row_max, row_sum, q, k_ptrs, v_ptrs, stride_kn, stride_vn, last, scale,
    BLOCK_N: tl.constexpr, OVERLAP: tl.constexpr,
):  # fmt: skip
    """The keys from 0 to `last`, all of which all rows see. With OVERLAP the scores of a block are
    computed beside the values of the one before, so that tensor cores work while its weights are
    computed (Shah et al., "FlashAttention-3", section 3.2)."""
    if OVERLAP:
        if last > 0:
            scores = tl.dot(q, tl.load(k_ptrs))
            weights, row_max, row_sum, decay = _weights(scores, row_max, row_sum, scale)
            acc = acc * decay[:, None]
            p = weights.to(v_ptrs.dtype.element_ty)
            for start in range(0, last - BLOCK_N, BLOCK_N):
                with proton.scope("scores"):
                    k = tl.load(k_ptrs + (start + BLOCK_N) * stride_kn)
                    scores = tl.dot(q, k)
                with proton.scope("values"):
                    v = tl.load(v_ptrs + start * stride_vn)
                    acc = tl.dot(p, v, acc)
                with proton.scope("softmax"):
                    weights, row_max, row_sum, decay = _weights(scores, row_max, row_sum, scale)
                    acc = acc * decay[:, None]
                    p = weights.to(v_ptrs.dtype.element_ty)
            v = tl.load(v_ptrs + (last - BLOCK_N) * stride_vn)
            acc = tl.dot(p, v, acc)
    else:
        for start in range(0, last, BLOCK_N):
            with proton.scope("scores"):
                k = tl.load(k_ptrs + start * stride_kn)
                scores = tl.dot(q, k)
            with proton.scope("softmax"):
                weights, row_max, row_sum, decay = _weights(scores, row_max, row_sum, scale)
                acc = acc * decay[:, None]
                p = weights.to(v_ptrs.dtype.element_ty)
            with proton.scope("values"):
                v = tl.load(v_ptrs + start * stride_vn)
                acc = tl.dot(p, v, acc)
    return acc, row_max, row_sum


@proton.jit
def attention_kernel(
    q_ptr, k_ptr, v_ptr, out_ptr, lse_ptr,
    stride_qz, stride_qh, stride_qn, stride_kz, stride_kh, stride_kn,
    stride_vz, stride_vh, stride_vn, stride_oz, stride_oh, stride_on,
    heads, length, scale,
    HEAD: tl.constexpr, BLOCK_M: tl.constexpr, BLOCK_N: tl.constexpr, CAUSAL: tl.constexpr,
    OVERLAP: tl.constexpr, stride_vd=1,
):  # fmt: skip
    """BLOCK_M rows of q of one head. The arrays are (batch, heads, length, HEAD), whose last
    dimension lies side by side, but for v's; lse gets the logarithm of each row's sum, to base 2.
    Tensor cores take 8-bit floats whose keys lie side by side: such a v is best transposed in
    memory (stride_vn = 1)."""
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    block = tl.program_id(0)
    if CAUSAL:
        block = tl.num_programs(0) - 1 - block  # the longest first
    rows = block * BLOCK_M + tl.arange(0, BLOCK_M)
    columns, depth = tl.arange(0, BLOCK_N), tl.arange(0, HEAD)
    q_ptr += batch.to(tl.int64) * stride_qz + head * stride_qh
    k_ptr += batch.to(tl.int64) * stride_kz + head * stride_kh
    v_ptr += batch.to(tl.int64) * stride_vz + head * stride_vh
    out_ptr += batch.to(tl.int64) * stride_oz + head * stride_oh
    q = tl.load(
        q_ptr + rows[:, None] * stride_qn + depth[None, :], mask=rows[:, None] < length, other=0.0
    )
    k_ptrs = k_ptr + depth[:, None] + columns[None, :] * stride_kn
    v_ptrs = v_ptr + columns[:, None] * stride_vn + depth[None, :] * stride_vd
    acc = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    row_max = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    scale *= LOG2_E
    whole, last = length // BLOCK_N * BLOCK_N, length
    if CAUSAL:
        whole = min(whole, block * BLOCK_M // BLOCK_N * BLOCK_N)
        last = min(length, (block + 1) * BLOCK_M)
    acc, row_max, row_sum = _whole_blocks(
        acc, row_max, row_sum, q, k_ptrs, v_ptrs, stride_kn, stride_vn, whole, scale,
        BLOCK_N, OVERLAP,
    )  # fmt: skip
    acc, row_max, row_sum = _at_the_edge(
        acc, row_max, row_sum, q, k_ptrs, v_ptrs, stride_kn, stride_vn,
        rows, columns, whole, last, length, scale, BLOCK_N, CAUSAL,
    )  # fmt: skip
    acc = acc / row_sum[:, None]
    inside = rows < length
    place = tl.program_id(1) * length + rows
    tl.store(lse_ptr + place, row_max + tl.log2(row_sum), mask=inside)
    out_ptrs = out_ptr + rows[:, None] * stride_on + depth[None, :]
    tl.store(out_ptrs, acc.to(out_ptr.dtype.element_ty), mask=inside[:, None])


@proton.jit
def attention_descriptors_kernel(q, k, v, out, lse_ptr, heads, length, scale, CAUSAL: tl.constexpr):
    """The same by descriptors of (batch, heads, length, size), whose blocks say its own: of one
    head, beyond whose rows there are zeros."""
    BLOCK_M: tl.constexpr = q.block_shape[2]
    BLOCK_N: tl.constexpr = k.block_shape[2]
    HEAD: tl.constexpr = q.block_shape[3]
    batch, head = tl.program_id(1) // heads, tl.program_id(1) % heads
    block = tl.program_id(0)
    if CAUSAL:
        block = tl.num_programs(0) - 1 - block  # the longest first
    rows, columns = block * BLOCK_M + tl.arange(0, BLOCK_M), tl.arange(0, BLOCK_N)
    query = q.load([batch, head, block * BLOCK_M, 0]).reshape(BLOCK_M, HEAD)
    acc = tl.zeros((BLOCK_M, HEAD), dtype=tl.float32)
    row_max = tl.full((BLOCK_M,), float("-inf"), tl.float32)
    row_sum = tl.zeros((BLOCK_M,), dtype=tl.float32)
    scale *= LOG2_E
    whole, last = length // BLOCK_N * BLOCK_N, length
    if CAUSAL:
        whole = min(whole, block * BLOCK_M // BLOCK_N * BLOCK_N)
        last = min(length, (block + 1) * BLOCK_M)
    for start in range(0, whole, BLOCK_N):  # all rows see all of these
        with proton.scope("scores"):
            keys = k.load([batch, head, start, 0]).reshape(BLOCK_N, HEAD)
            scores = tl.dot(query, keys.T)
        with proton.scope("softmax"):
            weights, row_max, row_sum, decay = _weights(scores, row_max, row_sum, scale)
            acc = acc * decay[:, None]
        with proton.scope("values"):
            values = v.load([batch, head, start, 0]).reshape(BLOCK_N, HEAD)
            acc = tl.dot(weights.to(v.dtype), values, acc)
    for start in range(whole, last, BLOCK_N):
        with proton.scope("scores"):
            keys = k.load([batch, head, start, 0]).reshape(BLOCK_N, HEAD)
            scores = tl.dot(query, keys.T)
        with proton.scope("softmax"):
            visible = (start + columns < length)[None, :]
            if CAUSAL:
                visible = visible & (rows[:, None] >= start + columns[None, :])
            scores = tl.where(visible, scores, float("-inf"))
            weights, row_max, row_sum, decay = _weights(scores, row_max, row_sum, scale)
            acc = acc * decay[:, None]
        with proton.scope("values"):
            values = v.load([batch, head, start, 0]).reshape(BLOCK_N, HEAD)
            acc = tl.dot(weights.to(v.dtype), values, acc)
    acc = acc / row_sum[:, None]
    place = tl.program_id(1) * length + rows
    tl.store(lse_ptr + place, row_max + tl.log2(row_sum), mask=rows < length)
    out.store([batch, head, block * BLOCK_M, 0], acc.to(out.dtype).reshape(1, 1, BLOCK_M, HEAD))


def by_descriptors(
    q: Array,
    k: Array,
    v: Array,
    out: tuple[Array, Array],
    causal: bool = False,
    scale: float | None = None,
    *,
    block_m: int = 128,
    block_n: int = 128,
    **options: object,
) -> tuple[Array, Array]:
    """`attention` by tensor descriptors, which a GPU of 9.0 or later copies by TMA. Strides but the
    last are multiples of 16 bytes. The fastest for sizes of 128 and more, in blocks of 128 x 128
    with 8 warps and two stages, and of 256 in blocks of 128 x 64."""
    batch, heads, length, head = q.shape
    check_shapes(q=q, k=k, v=v, out=out[0])
    scale = 1 / math.sqrt(head) if scale is None else scale
    rows = (block_m, block_n, block_n, block_m)
    given = [
        TensorDescriptor.from_tensor(x, [1, 1, n, head])
        for x, n in zip((q, k, v, out[0]), rows, strict=True)
    ]
    attention_descriptors_kernel[proton.cdiv(length, block_m), batch * heads](
        *given, out[1], heads, length, scale, CAUSAL=causal, **options
    )
    return out


def configuration(q: Array) -> dict[str, int]:
    """The options of `attention` that suit q's device, dtype and size of heads."""
    if not arrays.on_gpu(q):
        return {"BLOCK_M": 64, "BLOCK_N": 64, "OVERLAP": False}
    if q.itemsize > 2:
        return {"BLOCK_M": 64, "BLOCK_N": 32, "num_warps": 4, "num_stages": 2, "OVERLAP": False}
    if q.shape[-1] <= 64:
        return {"BLOCK_M": 64, "BLOCK_N": 64, "num_warps": 4, "num_stages": 3, "OVERLAP": False}
    return {"BLOCK_M": 128, "BLOCK_N": 128, "num_warps": 8, "num_stages": 3, "OVERLAP": False}


def attention(
    q: Array,
    k: Array,
    v: Array,
    causal: bool = False,
    scale: float | None = None,
    out: tuple[Array, Array] | None = None,
    **options: object,
) -> tuple[Array, Array]:
    """(softmax(q @ k.T * scale) @ v, lse) for each batch and head, where lse is the logarithm of
    the sums of exp(q @ k.T * scale), to base 2; `causal`: a row sees the keys up to its own.

    q, k, v and the result are (batch, heads, length, size), the last dimension contiguous and a
    power of two; v may also lie transposed, as (..., size, length), which is faster for 8-bit
    floats. Of these the result is fp16. lse is (batch, heads, length), contiguous. `scale` is
    1 / sqrt(size), unless it is given. `options`: the kernel's blocks and OVERLAP, and those of the
    launch (num_warps, ...).
    """
    batch, heads, length, head = q.shape
    if out is None:
        lse = arrays.empty(q, (batch, heads, length), "float32")
        out = arrays.empty(q, q.shape, "float16") if q.itemsize == 1 else arrays.empty_like(q), lse
    is_transposed = tuple(v.shape) == tuple(q.shape) and arrays.stride(v, 2) == 1
    check_shapes(q=q, k=k, v=k if is_transposed else v, out=out[0])
    scale = 1 / math.sqrt(head) if scale is None else scale
    options = configuration(q) | options
    strides = [arrays.stride(x, axis) for x in (q, k, v, out[0]) for axis in range(3)]
    attention_kernel[proton.cdiv(length, options["BLOCK_M"]), batch * heads](
        q, k, v, *out, *strides, heads, length, scale, HEAD=head, CAUSAL=causal,
        stride_vd=arrays.stride(v, 3), **options,
    )  # fmt: skip
    return out


def check_shapes(**tensors: Array) -> None:
    """Raises unless all have the first one's shape, and a contiguous last dimension."""
    shapes = {name: tuple(x.shape) for name, x in tensors.items()}
    if len(set(shapes.values())) > 1 or len(next(iter(shapes.values()))) != 4:
        found = ", ".join(f"{name} {shape}" for name, shape in shapes.items())
        raise ValueError(f"attention: arrays must have one shape of 4 dimensions, got {found}")
    for name, x in tensors.items():
        if arrays.size(x) and arrays.stride(x, 3) != 1:
            raise ValueError(
                f"attention: the last dimension of {name} must be contiguous, got stride "
                f"{arrays.stride(x, 3)}: pass a contiguous copy"
            )


def reference(
    q: np.ndarray, k: np.ndarray, v: np.ndarray, causal: bool = False, scale: float | None = None
) -> tuple[np.ndarray, np.ndarray]:
    """The same by numpy."""
    scores = q @ k.swapaxes(-1, -2) * (scale or 1 / math.sqrt(q.shape[-1]))
    if causal:
        scores = np.where(np.tri(q.shape[-2], dtype=bool), scores, -np.inf)
    highest = scores.max(-1, keepdims=True)
    weights = np.exp(scores - highest)
    total = weights.sum(-1, keepdims=True)
    return weights / total @ v, ((highest + np.log(total)) / math.log(2))[..., 0]


CASE = Case(
    name="attention",
    shapes=lambda batch, heads, length, size: [(batch, heads, length, size)] * 3,
    launch=attention,
    reference=lambda q, k, v, out=None: reference(q, k, v),
    torch=lambda torch, out, q, k, v: torch.nn.functional.scaled_dot_product_attention(q, k, v),
    tolerance=1e-5,
    approximation=1e-5,  # of exp2
    ugly=((1, 1, 1, 16), (2, 3, 33, 16), (1, 2, 100, 64), (1, 1, 257, 128)),
    benchmark=((1, 8, 256, 64), (1, 8, 1024, 64), (1, 4, 1024, 128)),
)

if __name__ == "__main__":
    main(CASE)
