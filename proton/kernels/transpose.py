"""The transpose of a matrix, written out."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
from typing import Any

import numpy as np

import proton
import proton.language as tl

BLOCK = 32  # rows and columns of a block; both memory accesses go along contiguous rows


@proton.jit
def transpose_kernel(
    x_ptr, out_ptr, rows, columns, x_stride, out_stride, BLOCK: tl.constexpr
):
    """Each program turns one block around."""
    row = tl.program_id(1) * BLOCK + tl.arange(0, BLOCK)
    column = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    with proton.scope("load"):
        mask = (row[:, None] < rows) & (column[None, :] < columns)
        x = tl.load(x_ptr + row[:, None] * x_stride + column[None, :], mask=mask)
    with proton.scope("store"):
        mask = (column[:, None] < columns) & (row[None, :] < rows)
        place = column[:, None] * out_stride + row[None, :]
        tl.store(out_ptr + place, tl.trans(x), mask=mask)


def transpose(
    x: np.ndarray, out: np.ndarray | None = None, block: int = BLOCK, **options: Any
) -> np.ndarray:
    """x.T in memory of its own; the rows of both are contiguous, elements of any type.

    `options` are of the launch (num_warps, ...).
    """
    rows, columns = x.shape
    out = np.empty((columns, rows), x.dtype) if out is None else out
    grid = (proton.cdiv(columns, block), proton.cdiv(rows, block))
    strides = [array.strides[0] // array.itemsize for array in (x, out)]
    transpose_kernel[grid](x, out, rows, columns, *strides, BLOCK=block, **options)
    return out


def reference(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """The same by numpy."""
    if out is None:
        return np.ascontiguousarray(x.T)
    out[...] = x.T
    return out
