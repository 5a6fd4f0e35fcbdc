"""The transpose of a matrix, written out."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main


@proton.jit
def transpose_kernel(x_ptr, out_ptr, rows, columns, x_stride, out_stride, BLOCK: tl.constexpr):
    """Each program transposes one block."""
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("load"):
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        x = tl.load(x_ptr + row[:, None] * x_stride + column[None, :], mask=mask)
    with proton.scope("store"):
        mask = (column[:, None] < columns) & (row[None, :] < rows)
        place = column[:, None] * out_stride + row[None, :]
        tl.store(out_ptr + place, tl.trans(x), mask=mask)


def configuration(x: Array) -> dict[str, int]:
    """The options of `transpose` that suit x's device."""
    return {"block": 64, "num_warps": 8} if arrays.on_gpu(x) else {"block": 32}


def transpose(x: Array, out: Array | None = None, **options: object) -> Array:
    """x.T in memory of its own; the rows of both are contiguous, elements of any type.

    `options`: `block`, the rows and columns of a block, along whose rows both memory accesses go;
    and those of the launch (num_warps, ...).
    """
    rows, columns = x.shape
    out = arrays.empty(x, (columns, rows)) if out is None else out
    options = configuration(x) | options
    block = options.pop("block")
    grid = (proton.cdiv(columns, block), proton.cdiv(rows, block))
    strides = [arrays.stride(array, 0) for array in (x, out)]
    transpose_kernel[grid](x, out, rows, columns, *strides, BLOCK=block, **options)
    return out


def reference(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The same by numpy."""
    if out is None:
        return np.ascontiguousarray(x.T)
    out[...] = x.T
    return out


CASE = Case(
    name="transpose",
    shapes=lambda rows, columns: [(rows, columns)],
    launch=transpose,
    reference=reference,
    torch=lambda torch, out, x: out[0].copy_(x.T),
    tolerance=0.0,
    ugly=((1, 1), (1, 5), (7, 1), (65, 127), (1000, 1000), (129, 4097)),
    benchmark=((4096, 256), (4096, 1024), (1024, 4096), (256, 16384)),
)

if __name__ == "__main__":
    main(CASE)
