"""Sums of rows of unlike lengths, which lie one behind another: a program a row."""

import numpy as np

import proton
import proton.language as tl


@proton.jit
def ragged_sum(x_ptr, ends_ptr, out_ptr, BLOCK: tl.constexpr):
    row = tl.program_id(0)
    first, end = tl.load(ends_ptr + row), tl.load(ends_ptr + row + 1)
    total = tl.zeros((BLOCK,), tl.float32)
    with proton.scope("add"):
        for start in range(first, end, BLOCK):
            offsets = start + tl.arange(0, BLOCK)
            total += tl.load(x_ptr + offsets, mask=offsets < end, other=0.0)
    with proton.scope("store"):
        tl.store(out_ptr + row, tl.sum(total))


lengths = np.array([20_000] * 15 + [4_000_000])
ends = np.append(0, np.cumsum(lengths)).astype(np.int32)
x = np.random.rand(ends[-1]).astype(np.float32)
out = np.empty(lengths.size, np.float32)
for _ in range(8):
    ragged_sum[(lengths.size,)](x, ends, out, BLOCK=1024)
assert np.allclose(out, np.add.reduceat(x, ends[:-1], dtype=np.float64), rtol=1e-3)
