"""Adds up the rows of a matrix, with a launch for each row."""

import numpy as np

import proton
import proton.language as tl


@proton.jit
def row_sum(x_ptr, out_ptr, columns, BLOCK: tl.constexpr):
    offsets = tl.arange(0, BLOCK)
    with proton.scope("sum"):
        x = tl.load(x_ptr + offsets, mask=offsets < columns, other=0.0)
        tl.store(out_ptr, tl.sum(x))


x = np.random.rand(400, 1000).astype(np.float32)
out = np.empty(400, np.float32)
for row in range(400):
    row_sum[(1,)](x[row], out[row:], 1000, BLOCK=1024)
assert np.allclose(out, x.sum(axis=1), rtol=1e-4)
