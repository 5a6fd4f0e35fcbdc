"""Kernels whose loop computes something between two dots: warp groups may alternate at them, and
the second one may run beside the first one of the next iteration.

Arrays are of all rows of all heads, pointers or, with TMA, descriptors of blocks.
"""

import proton
import proton.language as tl


@proton.jit
def rows(array, first, M: tl.constexpr, D: tl.constexpr, TMA: tl.constexpr):
    """The block of M rows from `first` on."""
    if TMA:
        return array.load([first, 0])
    else:  # Triton compiles what stands behind a branch that returns
        places = (first + tl.arange(0, M)).to(tl.int64)
        return tl.load(array + places[:, None] * D + tl.arange(0, D)[None, :])


@proton.jit
def keep(array, first, value, M: tl.constexpr, D: tl.constexpr, TMA: tl.constexpr):
    """Stores such a block."""
    if TMA:
        array.store([first, 0], value)
    else:
        places = (first + tl.arange(0, M)).to(tl.int64)
        tl.store(array + places[:, None] * D + tl.arange(0, D)[None, :], value)


@proton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """softmax(q @ k.T) @ v"""
    head, own = tl.program_id(1) * n, tl.program_id(1) * n + tl.program_id(0) * M
    q = rows(q_ptr, own, M, D, TMA)
    out = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    top = tl.full((M,), -1.0e30, tl.float32)
    for start in range(0, n, N):
        k = rows(k_ptr, head + start, N, D, TMA)
        s = tl.dot(q, tl.trans(k))
        new = tl.maximum(top, tl.max(s, 1) * scale)
        p = tl.exp2(s * scale - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        v = rows(v_ptr, head + start, N, D, TMA)
        out = tl.dot(p.to(q.dtype), v, out * shrink[:, None])
        top = new
    keep(out_ptr, own, (out / total[:, None]).to(q.dtype), M, D, TMA)


@proton.jit
def gated_scores(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Attention by a sigmoid of each score: no row's sum, and nothing shrinks."""
    head, own = tl.program_id(1) * n, tl.program_id(1) * n + tl.program_id(0) * M
    q = rows(q_ptr, own, M, D, TMA)
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        k = rows(k_ptr, head + start, N, D, TMA)
        p = tl.sigmoid(tl.dot(q, tl.trans(k)) * scale)
        v = rows(v_ptr, head + start, N, D, TMA)
        out = tl.dot(p.to(q.dtype), v, out)
    keep(out_ptr, own, out.to(q.dtype), M, D, TMA)


@proton.jit
def decaying_scores(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Retention: scores shrink with the distance of their rows."""
    head, own = tl.program_id(1) * n, tl.program_id(1) * n + tl.program_id(0) * M
    m, j = tl.program_id(0) * M + tl.arange(0, M), tl.arange(0, N)
    q = rows(q_ptr, own, M, D, TMA)
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        k = rows(k_ptr, head + start, N, D, TMA)
        distance = tl.abs(m[:, None] - (start + j)[None, :]).to(tl.float32)
        p = tl.dot(q, tl.trans(k)) * scale * tl.exp2(-distance * scale)
        v = rows(v_ptr, head + start, N, D, TMA)
        out = tl.dot(p.to(q.dtype), v, out)
    keep(out_ptr, own, out.to(q.dtype), M, D, TMA)


@proton.jit
def two_layers(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """gelu(x @ a.T) @ b, a block of the hidden layer an iteration: the weights are the same for
    all rows of x."""
    own = tl.program_id(1) * n + tl.program_id(0) * M
    x = rows(q_ptr, own, M, D, TMA)
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        a = rows(k_ptr, start, N, D, TMA)
        h = tl.dot(x, tl.trans(a)) * scale
        h = 0.5 * h * (1 + tl.erf(h * 0.7071067811865476))
        b = rows(v_ptr, start, N, D, TMA)
        out = tl.dot(h.to(x.dtype), b, out)
    keep(out_ptr, own, out.to(x.dtype), M, D, TMA)


@proton.jit
def plain_scores(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Linear attention: little lies between the dots."""
    head, own = tl.program_id(1) * n, tl.program_id(1) * n + tl.program_id(0) * M
    q = rows(q_ptr, own, M, D, TMA)
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        k = rows(k_ptr, head + start, N, D, TMA)
        p = tl.dot(q, tl.trans(k)) * scale
        v = rows(v_ptr, head + start, N, D, TMA)
        out = tl.dot(p.to(q.dtype), v, out)
    keep(out_ptr, own, out.to(q.dtype), M, D, TMA)


@proton.jit
def causal_attention(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr, TMA: tl.constexpr,
):  # fmt: skip
    """Attention in which a row sees the keys up to its own: blocks that it sees, then the rest.
    The longest rows come first."""
    block = tl.num_programs(0) - 1 - tl.program_id(0)
    head, own = tl.program_id(1) * n, tl.program_id(1) * n + block * M
    m, j = block * M + tl.arange(0, M), tl.arange(0, N)
    q = rows(q_ptr, own, M, D, TMA)
    out = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    top = tl.full((M,), -1.0e30, tl.float32)
    for start in range(0, block * M, N):
        k = rows(k_ptr, head + start, N, D, TMA)
        s = tl.dot(q, tl.trans(k))
        new = tl.maximum(top, tl.max(s, 1) * scale)
        p = tl.exp2(s * scale - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        v = rows(v_ptr, head + start, N, D, TMA)
        out = tl.dot(p.to(q.dtype), v, out * shrink[:, None])
        top = new
    for start in range(block * M, (block + 1) * M, N):
        k = rows(k_ptr, head + start, N, D, TMA)
        s = tl.dot(q, tl.trans(k)) * scale
        s = tl.where(m[:, None] >= (start + j)[None, :], s, -1.0e30)
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp2(s - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        v = rows(v_ptr, head + start, N, D, TMA)
        out = tl.dot(p.to(q.dtype), v, out * shrink[:, None])
        top = new
    keep(out_ptr, own, (out / total[:, None]).to(q.dtype), M, D, TMA)
