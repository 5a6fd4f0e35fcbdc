"""The sum of two vectors."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
import numpy as np

import proton
import proton.language as tl

# Of 1024 to 262144 all are as fast (docs/cpu-results.md); a profile is small with few programs.
BLOCK = 16384


@proton.jit
def add_kernel(x_ptr, y_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Each program adds one block."""
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    mask = offsets < n
    with proton.scope("load"):
        x = tl.load(x_ptr + offsets, mask=mask)
        y = tl.load(y_ptr + offsets, mask=mask)
    with proton.scope("add"):
        total = x + y
    with proton.scope("store"):
        tl.store(out_ptr + offsets, total, mask=mask)


def vector_add(
    x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None, block: int = BLOCK
) -> np.ndarray:
    """x + y, of two contiguous arrays of one shape."""
    out = np.empty_like(x) if out is None else out
    add_kernel[(proton.cdiv(x.size, block),)](x, y, out, x.size, BLOCK=block)
    return out


def reference(x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The same by numpy."""
    return np.add(x, y, out=out)
