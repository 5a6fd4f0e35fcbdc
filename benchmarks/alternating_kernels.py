"""Kernels whose loop computes something between two dots: warp groups may alternate at them."""

import proton
import proton.language as tl


@proton.jit
def attention(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Loads by pointers."""
    m = tl.program_id(0) * M + tl.arange(0, M)
    d, j = tl.arange(0, D), tl.arange(0, N)
    base = tl.program_id(1).to(tl.int64) * n * D
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :])
    out = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    top = tl.full((M,), -1.0e30, tl.float32)
    for start in range(0, n, N):
        k = tl.load(k_ptr + base + (start + j)[:, None] * D + d[None, :])
        s = tl.dot(q, tl.trans(k))
        new = tl.maximum(top, tl.max(s, 1) * scale)
        p = tl.exp2(s * scale - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        v = tl.load(v_ptr + base + (start + j)[:, None] * D + d[None, :])
        out = tl.dot(p.to(q.dtype), v, out * shrink[:, None])
        top = new
    tl.store(out_ptr + base + m[:, None] * D + d[None, :], (out / total[:, None]).to(q.dtype))


@proton.jit
def attention_by_tma(
    q_desc, k_desc, v_desc, out_desc, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Loads by descriptors of all rows of all heads."""
    first = tl.program_id(1) * n
    q = q_desc.load([first + tl.program_id(0) * M, 0])
    out = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    top = tl.full((M,), -1.0e30, tl.float32)
    for start in range(0, n, N):
        k = k_desc.load([first + start, 0])
        s = tl.dot(q, tl.trans(k))
        new = tl.maximum(top, tl.max(s, 1) * scale)
        p = tl.exp2(s * scale - new[:, None])
        shrink = tl.exp2(top - new)
        total = total * shrink + tl.sum(p, 1)
        v = v_desc.load([first + start, 0])
        out = tl.dot(p.to(q.dtype), v, out * shrink[:, None])
        top = new
    out_desc.store([first + tl.program_id(0) * M, 0], (out / total[:, None]).to(q.dtype))


@proton.jit
def gated_scores(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Attention by a sigmoid of each score: no row's sum, and nothing shrinks."""
    m = tl.program_id(0) * M + tl.arange(0, M)
    d, j = tl.arange(0, D), tl.arange(0, N)
    base = tl.program_id(1).to(tl.int64) * n * D
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :])
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        k = tl.load(k_ptr + base + (start + j)[:, None] * D + d[None, :])
        p = tl.sigmoid(tl.dot(q, tl.trans(k)) * scale)
        v = tl.load(v_ptr + base + (start + j)[:, None] * D + d[None, :])
        out = tl.dot(p.to(q.dtype), v, out)
    tl.store(out_ptr + base + m[:, None] * D + d[None, :], out.to(q.dtype))


@proton.jit
def decaying_scores(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Retention: scores shrink with the distance of their rows."""
    m = tl.program_id(0) * M + tl.arange(0, M)
    d, j = tl.arange(0, D), tl.arange(0, N)
    base = tl.program_id(1).to(tl.int64) * n * D
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :])
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        k = tl.load(k_ptr + base + (start + j)[:, None] * D + d[None, :])
        distance = tl.abs(m[:, None] - (start + j)[None, :]).to(tl.float32)
        p = tl.dot(q, tl.trans(k)) * scale * tl.exp2(-distance * scale)
        v = tl.load(v_ptr + base + (start + j)[:, None] * D + d[None, :])
        out = tl.dot(p.to(q.dtype), v, out)
    tl.store(out_ptr + base + m[:, None] * D + d[None, :], out.to(q.dtype))


@proton.jit
def two_layers(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """gelu(x @ a.T) @ b, a block of the hidden layer an iteration: the weights are the same for
    all rows of x."""
    m = tl.program_id(0) * M + tl.arange(0, M)
    d, j = tl.arange(0, D), tl.arange(0, N)
    base = tl.program_id(1).to(tl.int64) * n * D
    x = tl.load(q_ptr + base + m[:, None] * D + d[None, :])
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        a = tl.load(k_ptr + (start + j)[:, None] * D + d[None, :])
        h = tl.dot(x, tl.trans(a)) * scale
        h = 0.5 * h * (1 + tl.erf(h * 0.7071067811865476))
        b = tl.load(v_ptr + (start + j)[:, None] * D + d[None, :])
        out = tl.dot(h.to(x.dtype), b, out)
    tl.store(out_ptr + base + m[:, None] * D + d[None, :], out.to(x.dtype))


@proton.jit
def plain_scores(
    q_ptr, k_ptr, v_ptr, out_ptr, n, scale,
    M: tl.constexpr, N: tl.constexpr, D: tl.constexpr,
):  # fmt: skip
    """Linear attention: little lies between the dots."""
    m = tl.program_id(0) * M + tl.arange(0, M)
    d, j = tl.arange(0, D), tl.arange(0, N)
    base = tl.program_id(1).to(tl.int64) * n * D
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :])
    out = tl.zeros((M, D), tl.float32)
    for start in range(0, n, N):
        k = tl.load(k_ptr + base + (start + j)[:, None] * D + d[None, :])
        p = tl.dot(q, tl.trans(k)) * scale
        v = tl.load(v_ptr + base + (start + j)[:, None] * D + d[None, :])
        out = tl.dot(p.to(q.dtype), v, out)
    tl.store(out_ptr + base + m[:, None] * D + d[None, :], out.to(q.dtype))
