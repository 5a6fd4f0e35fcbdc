"""A recurrence of scalars, with a scope around each of its steps."""

import numpy as np

import proton
import proton.language as tl


@proton.jit
def recurrence(x_ptr, out_ptr, steps):
    program = tl.program_id(0)
    value = 0.0
    for step in range(steps):
        with proton.scope("load"):
            x = tl.load(x_ptr + program * steps + step)
        with proton.scope("multiply"):
            value = value * 0.5 + x
    tl.store(out_ptr + program, value)


x = np.random.rand(8, 2000).astype(np.float32)
out = np.empty(8, np.float32)
for _ in range(6):
    recurrence[(8,)](x, out, 2000)
expected = np.zeros(8, np.float32)
for column in x.T:
    expected = expected * np.float32(0.5) + column
assert np.allclose(out, expected, rtol=1e-4)
