"""The sum of two vectors."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main

# On the CPU all of 1024 to 262144 are as fast; a profile is small with few
# programs.
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


def configuration(x: Array) -> dict[str, int]:
    """The options of `vector_add` that suit x's device."""
    return {"block": 1024, "num_warps": 4} if arrays.on_gpu(x) else {"block": BLOCK}


def vector_add(x: Array, y: Array, out: Array | None = None, **options: object) -> Array:
    """x + y, of two contiguous arrays of one shape.

    `options`: `block`, and those of the launch (num_warps, ...).
    """
    out = arrays.empty_like(x) if out is None else out
    options = configuration(x) | options
    n, block = arrays.size(x), options.pop("block")
    add_kernel[(proton.cdiv(n, block),)](x, y, out, n, BLOCK=block, **options)
    return out


def reference(x: np.ndarray, y: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The same by numpy."""
    return np.add(x, y, out=out)


CASE = Case(
    name="vector add",
    shapes=lambda n: [(n,), (n,)],
    launch=vector_add,
    reference=reference,
    torch=lambda torch, out, x, y: torch.add(x, y, out=out[0]),
    tolerance=0.0,
    ugly=((1,), (3,), (1000,), (16384,), (16385,), (1_000_003,)),
    benchmark=((1 << 12,), (1 << 16,), (1 << 20,), (1 << 24,)),
)

if __name__ == "__main__":
    main(CASE)
