"""Kernels that load 16-bit numbers and store fp32 ones of the same shape."""

import proton
import proton.language as tl


@proton.jit
def cast_kernel(x_ptr, out_ptr, n, BLOCK: tl.constexpr):
    i = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + i, tl.load(x_ptr + i, mask=i < n).to(tl.float32), mask=i < n)


@proton.jit
def rms_norm_kernel(x_ptr, out_ptr, columns, eps, BLOCK: tl.constexpr):
    row, i = tl.program_id(0), tl.arange(0, BLOCK)
    x = tl.load(x_ptr + row * columns + i, mask=i < columns, other=0.0).to(tl.float32)
    y = x * tl.rsqrt(tl.sum(x * x) / columns + eps)
    tl.store(out_ptr + row * columns + i, y, mask=i < columns)
