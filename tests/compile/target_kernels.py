"""Kernels that together use every kind of op, and arguments to compile them for."""

import proton
import proton.language as tl


@proton.jit
def add(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    x = tl.load(x_ptr + offsets, mask=mask)
    y = tl.load(y_ptr + offsets, mask=mask)
    tl.store(out_ptr + offsets, x + y, mask=mask)


@proton.jit
def softmax(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    offsets = tl.arange(0, BLOCK)
    largest = -float("inf")
    for start in range(0, columns, BLOCK):
        x = tl.load(x_ptr + row * columns + start + offsets, mask=start + offsets < columns)
        largest = tl.maximum(largest, tl.max(tl.where(start + offsets < columns, x, largest), 0))
    total = 0.0
    for start in range(0, columns, BLOCK):
        mask = start + offsets < columns
        x = tl.load(x_ptr + row * columns + start + offsets, mask=mask, other=-float("inf"))
        total += tl.sum(tl.exp(x - largest), 0)
    for start in range(0, columns, BLOCK):
        mask = start + offsets < columns
        x = tl.load(x_ptr + row * columns + start + offsets, mask=mask)
        tl.store(out_ptr + row * columns + start + offsets, tl.exp(x - largest) / total, mask=mask)


@proton.jit
def transpose(x_ptr, out_ptr, stride, N: tl.constexpr):
    i, j = tl.arange(0, N)[:, None], tl.arange(0, N)[None, :]
    x = tl.load(x_ptr + i * stride + j)
    tl.store(out_ptr + i * stride + j, tl.trans(tl.exp(x)))


@proton.jit
def row_sums(x_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    i, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + i[:, None] * N + j[None, :])
    tl.store(out_ptr + i, tl.sum(x, 1))
    tl.store(out_ptr + M + j, tl.max(x, 0))


@proton.jit
def matmul(a_ptr, b_ptr, out_ptr, depth, N: tl.constexpr, K: tl.constexpr):
    i, j, k = tl.arange(0, N), tl.arange(0, N), tl.arange(0, K)
    total = tl.zeros((N, N), tl.float32)
    for start in range(0, depth, K):
        a = tl.load(a_ptr + i[:, None] * depth + start + k[None, :])
        b = tl.load(b_ptr + (start + k[:, None]) * N + j[None, :])
        total = tl.dot(a, b, total)
    tl.store(out_ptr + i[:, None] * N + j[None, :], total)


@proton.jit
def atomics(x_ptr, out_ptr, lock_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    old = tl.atomic_add(out_ptr + offsets % 8, x)
    tl.atomic_max(out_ptr + offsets, old)
    tl.atomic_cas(lock_ptr, 0, 1)


@proton.jit
def scan(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.cumsum(tl.load(x_ptr + offsets), 0))


@proton.jit(noinline=True)
def centred(x):
    return x - tl.sum(x, 0)


@proton.jit
def calls(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, centred(centred(tl.load(x_ptr + offsets))))


@proton.jit
def library(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    tl.store(out_ptr + offsets, tl.extra.libdevice.asin(tl.load(x_ptr + offsets)))


@proton.jit(debug=True)
def talks(x_ptr, out_ptr, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + offsets)
    tl.device_print("x", x)
    tl.device_assert(x >= 0, "negative")
    tl.store(out_ptr + offsets, x)


POINTER = tl.float32
CASES = {
    "add": (add, (POINTER, POINTER, POINTER, 1000, 512)),
    "softmax": (softmax, (POINTER, POINTER, 1000, 256)),
    "transpose": (transpose, (POINTER, POINTER, 1000, 32)),
    "row_sums": (row_sums, (POINTER, POINTER, 64, 32)),
    "matmul": (matmul, (POINTER, POINTER, POINTER, 64, 32, 16)),
    "atomics": (atomics, (POINTER, POINTER, tl.int32, 128)),
    "scan": (scan, (POINTER, POINTER, 512)),
    "calls": (calls, (POINTER, POINTER, 256)),
    "library": (library, (POINTER, POINTER, 128)),
    "talks": (talks, (POINTER, POINTER, 128)),
}
