"""Sums: of all elements of a vector, and of a matrix along either axis."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main

BLOCK = 4096  # of a vector
# Blocks of a matrix by the axis that is summed: long along it, or where memory is contiguous.
BLOCKS = {0: (32, 128), 1: (4, 1024)}


@proton.jit
def sum_kernel(x_ptr, out_ptr, n, share, BLOCK: tl.constexpr):
    """Each program sums up `share` neighbouring blocks: a block of sums first, then their sum."""
    first = tl.program_id(0) * share
    total = tl.zeros((BLOCK,), dtype=tl.float32)
    with proton.scope("sum"):
        for block in range(first, first + share):
            offsets = block * BLOCK + tl.arange(0, BLOCK)
            total += tl.load(x_ptr + offsets, mask=offsets < n, other=0.0)
        tl.store(out_ptr + tl.program_id(0), tl.sum(total, axis=0))


def configuration(x: Array) -> dict[str, int]:
    """The options of `vector_sum` and `matrix_sum` that suit x's device."""
    return {"programs": 4 * arrays.SMS, "num_warps": 8} if arrays.on_gpu(x) else {"programs": 64}


def vector_sum(x: Array, out: Array | None = None, block: int = BLOCK, **options: object) -> Array:
    """The sum of a contiguous array's elements, in an array of one; the same in every run.

    `options`: `programs`, and those of the launches (num_warps, ...).
    """
    out = arrays.empty(x, (1,), "float32") if out is None else out
    options = configuration(x) | options
    n, programs = arrays.size(x), options.pop("programs")
    share = max(1, proton.cdiv(proton.cdiv(n, block), programs))
    parts = max(1, proton.cdiv(n, share * block))
    partial = arrays.empty(x, (parts,), "float32")
    sum_kernel[(parts,)](x, partial, n, share, BLOCK=block, **options)
    last = proton.next_power_of_2(parts)
    sum_kernel[(1,)](partial, out, parts, 1, BLOCK=last, **options)
    return out


@proton.jit
def sum_axis_kernel(
    x_ptr,
    out_ptr,
    rows,
    columns,
    stride,
    share,
    AXIS: tl.constexpr,
    BLOCK_ROWS: tl.constexpr,
    BLOCK_COLUMNS: tl.constexpr,
):
    """Each program makes BLOCK_ROWS (or BLOCK_COLUMNS) elements of a row of the result, and walks
    over `share` blocks along the other axis. Along the grid's axis 1 programs take other parts of
    the same sums."""
    total = tl.zeros((BLOCK_ROWS, BLOCK_COLUMNS), dtype=tl.float32)
    row, column = tl.arange(0, BLOCK_ROWS), tl.arange(0, BLOCK_COLUMNS)
    part = tl.program_id(1)
    if AXIS == 0:
        column += tl.program_id(0) * BLOCK_COLUMNS
        with proton.scope("sum"):
            for block in range(part * share, (part + 1) * share):
                at = block * BLOCK_ROWS + row
                mask = (at[:, None] < rows) & (column[None, :] < columns)
                place = at[:, None] * stride + column[None, :]
                total += tl.load(x_ptr + place, mask=mask, other=0.0)
            place = part * columns + column
            tl.store(out_ptr + place, tl.sum(total, axis=0), mask=column < columns)
    else:
        row += tl.program_id(0) * BLOCK_ROWS
        with proton.scope("sum"):
            for block in range(part * share, (part + 1) * share):
                at = block * BLOCK_COLUMNS + column
                mask = (row[:, None] < rows) & (at[None, :] < columns)
                place = row[:, None] * stride + at[None, :]
                total += tl.load(x_ptr + place, mask=mask, other=0.0)
            tl.store(out_ptr + part * rows + row, tl.sum(total, axis=1), mask=row < rows)


def matrix_sum(x: Array, axis: int, out: Array | None = None, **options: object) -> Array:
    """The sums of a matrix along axis 0 or 1; its rows are contiguous.

    Where the result is short, several programs sum up parts of an element, and a second launch
    these. `options`: `programs`, and those of the launches (num_warps, ...).
    """
    kept = x.shape[1 - axis]
    out = arrays.empty(x, (kept,), "float32") if out is None else out
    options = configuration(x) | options
    blocks = [proton.cdiv(size, block) for size, block in zip(x.shape, BLOCKS[axis], strict=True)]
    wanted = max(1, options.pop("programs") // max(1, blocks[1 - axis]))
    share = max(1, proton.cdiv(blocks[axis], wanted))
    parts = max(1, proton.cdiv(blocks[axis], share))
    partial = out if parts == 1 else arrays.empty(x, (parts, kept), "float32")
    sum_axis_kernel[(blocks[1 - axis], parts)](
        x,
        partial,
        *x.shape,
        arrays.stride(x, 0),
        share,
        AXIS=axis,
        BLOCK_ROWS=BLOCKS[axis][0],
        BLOCK_COLUMNS=BLOCKS[axis][1],
        **options,
    )
    return out if parts == 1 else matrix_sum(partial, 0, out, programs=1, **options)


def vector_reference(x: np.ndarray, out: np.ndarray | None = None) -> np.ndarray:
    """`vector_sum` by numpy."""
    return np.sum(x, axis=0, keepdims=True, out=out)


def matrix_reference(x: np.ndarray, axis: int, out: np.ndarray | None = None) -> np.ndarray:
    """`matrix_sum` by numpy."""
    return np.sum(x, axis=axis, out=out)


VECTOR_SUM = Case(
    name="vector sum",
    shapes=lambda n: [(n,)],
    # Of one sign, so that the error relative to the sum is that of the additions.
    prepare=lambda x: (np.abs(x),),
    launch=vector_sum,
    reference=vector_reference,
    torch=lambda torch, out, x: torch.sum(x, dim=0, keepdim=True, out=out[0]),
    tolerance=1e-5,
    ugly=((1,), (3,), (1000,), (16384,), (16385,), (1_000_003,)),
    benchmark=((1 << 12,), (1 << 16,), (1 << 20,), (1 << 24,)),
)


def _matrix_sum(axis: int) -> Case:
    return Case(
        name=f"matrix sum, axis {axis}",
        shapes=lambda rows, columns: [(rows, columns)],
        prepare=lambda x: (np.abs(x),),
        launch=lambda x, out=None, **options: matrix_sum(x, axis, out, **options),
        reference=lambda x, out=None: matrix_reference(x, axis, out),
        torch=lambda torch, out, x: torch.sum(x, dim=axis, out=out[0]),
        tolerance=1e-5,
        ugly=((1, 1), (1, 5), (7, 1), (65, 127), (1000, 1000), (129, 4097)),
        benchmark=((4096, 256), (4096, 1024), (1024, 4096), (256, 16384)),
    )


MATRIX_SUM_ROWS, MATRIX_SUM_COLUMNS = _matrix_sum(0), _matrix_sum(1)

if __name__ == "__main__":
    main(VECTOR_SUM, MATRIX_SUM_ROWS, MATRIX_SUM_COLUMNS)
