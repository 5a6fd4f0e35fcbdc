"""Kernels that the assembler orders otherwise than they are written: copies beside products, and
stores in place."""

import proton
import proton.language as tl


@proton.jit
def product(
    a_ptr, b_ptr, c_ptr, n, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr, FLATTEN: tl.constexpr
):
    """A times the transpose of B, square, tile by tile, copied by threads: rows may be beyond."""
    tiles, across = (n // M) * (n // N), n // N
    for tile in tl.range(tl.program_id(0), tiles, tl.num_programs(0), flatten=FLATTEN):
        group = tile // (8 * across)
        rows = tl.minimum(n // M - group * 8, 8)
        row = (group * 8 + tile % rows) * M + tl.arange(0, M)
        column = tile % (8 * across) // rows * N + tl.arange(0, N)
        a_row, b_row = tl.where(row < n, row, 0), tl.where(column < n, column, 0)
        total = tl.zeros((M, N), tl.float32)
        for k in range(n // K):
            depth = k * K + tl.arange(0, K)
            a = tl.load(a_ptr + (a_row[:, None] * n + depth[None, :]))
            b = tl.load(b_ptr + (depth[:, None] + b_row[None, :] * n))
            total = tl.dot(a, b, total)
        c_ptrs = c_ptr + row[:, None] * n + column[None, :]
        tl.store(c_ptrs, total.to(c_ptr.dtype.element_ty))


@proton.jit
def states(x_ptr, first_ptr, steps, decay, M: tl.constexpr, N: tl.constexpr):
    """Each block gives way to what those ahead of it sum up to, as of linear attention."""
    at = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x_ptrs = x_ptr + tl.program_id(0) * steps * M * N + at
    ahead = tl.load(first_ptr + tl.program_id(0) * M * N + at)
    for _ in range(steps):
        x = tl.load(x_ptrs)
        tl.store(x_ptrs, ahead)
        ahead = decay * ahead + x
        x_ptrs += M * N
    tl.store(first_ptr + tl.program_id(0) * M * N + at, ahead)
