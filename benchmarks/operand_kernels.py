"""Kernels with a product in a loop that does not change one of its operands."""

import proton
import proton.language as tl


@proton.jit
def attention(q_ptr, k_ptr, v_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    d, j = tl.arange(0, D), tl.arange(0, N)
    base = tl.program_id(1) * n * D
    q = tl.load(q_ptr + base + m[:, None] * D + d[None, :])
    out = tl.zeros((M, D), tl.float32)
    total = tl.zeros((M,), tl.float32)
    top = tl.full((M,), -1.0e30, tl.float32)
    for start in range(0, n, N):
        k = tl.load(k_ptr + base + (start + j)[:, None] * D + d[None, :])
        v = tl.load(v_ptr + base + (start + j)[:, None] * D + d[None, :])
        s = tl.dot(q, tl.trans(k))
        new = tl.maximum(top, tl.max(s, 1))
        p = tl.exp(s - new[:, None])
        scale = tl.exp(top - new)
        total = total * scale + tl.sum(p, 1)
        out = tl.dot(p.to(q.dtype), v, out * scale[:, None])
        top = new
    tl.store(out_ptr + base + m[:, None] * D + d[None, :], (out / total[:, None]).to(q.dtype))


@proton.jit
def weights(x_ptr, w_ptr, out_ptr, rows, M: tl.constexpr, K: tl.constexpr, N: tl.constexpr):
    m, k, j = tl.arange(0, M), tl.arange(0, K), tl.arange(0, N)
    w = tl.load(w_ptr + k[:, None] * N + j[None, :])
    first = tl.program_id(0) * rows
    for start in range(0, rows, M):
        x = tl.load(x_ptr + (first + start + m)[:, None] * K + k[None, :])
        tl.store(out_ptr + (first + start + m)[:, None] * N + j[None, :], tl.dot(x, w).to(x.dtype))


@proton.jit
def scores(q_ptr, k_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr, D: tl.constexpr):
    m = tl.program_id(0) * M + tl.arange(0, M)
    d, j = tl.arange(0, D), tl.arange(0, N)
    q = tl.load(q_ptr + m[:, None] * D + d[None, :])
    top = tl.full((M, N), -1.0e30, tl.float32)
    for start in range(0, n, N):
        k = tl.load(k_ptr + (start + j)[:, None] * D + d[None, :])
        top = tl.maximum(top, tl.dot(q, tl.trans(k)))
    tl.store(out_ptr + m, tl.max(top, 1))
