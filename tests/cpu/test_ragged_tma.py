"""Descriptors of several arrays one behind the other, against numpy."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.tools.ragged_tma import (
    atomic_add_ragged,
    create_ragged_descriptor,
    load_ragged,
    store_ragged,
)
from proton.tools.tensor_descriptor import TensorDescriptor


@proton.jit(do_not_specialize=["row", "column"])  # or each launch has a kernel of its own
def copy_rows(source, target, start, size, row, column, DIM: tl.constexpr, RANK: tl.constexpr):
    if RANK == 2:
        at = [row, column]
    elif DIM == 0:
        at = [row, 0, column]
    else:
        at = [0, row, column]
    block = load_ragged(source, start, size, at, DIM)
    store_ragged(target, start, size, at, block + 1, DIM)
    atomic_add_ragged(target, start, size, at, block, DIM)


def block_of(x: Any, at: tuple[int, ...], block: tuple[int, ...]) -> tuple[slice, ...]:
    """Where a block lies in an array, as far as it does."""
    return tuple(
        slice(first, min(first + size, end))
        for first, size, end in zip(at, block, x.shape, strict=True)
    )


@pytest.mark.parametrize(
    ("shape", "block", "dim"),
    [((40, 36), (8, 16), 0), ((40, 36), (8, 16), -2), ((9, 3, 20), (4, 2, 16), 0),
     ((3, 30, 20), (2, 8, 16), 1)],
)  # fmt: skip
def test_slices_of_rows(
    rng: np.random.Generator, shape: tuple[int, ...], block: tuple[int, ...], dim: int
) -> None:
    """Of a slice in the middle, blocks within it, over its end, behind it, and of an empty one."""
    axis = dim % len(shape)
    rows = shape[axis]
    slices = [(0, rows), (2, 5), (rows - 3, 3), (3, 0), (int(rng.integers(rows)), 1)]
    for start, size in slices:
        for row in (0, 3, size, size + 7):
            x, y = rng.standard_normal((2, *shape)).astype(np.float32)
            wanted, column = y.copy(), int(rng.integers(0, shape[-1]))
            at = [0] * len(shape)
            at[axis], at[-1] = row, column
            # The slice as an array of its own, of which a block reaches over the ends.
            inside = tuple(
                slice(start, start + size) if d == axis else slice(None) for d in range(len(shape))
            )
            part, out = x[inside], wanted[inside]
            place = block_of(part, tuple(at), block)
            out[place] = part[place] + np.float32(1)
            out[place] += part[place]
            source, target = (create_ragged_descriptor(z, list(block), dim) for z in (x, y))
            copy_rows[(1,)](source, target, start, size, row, column, DIM=axis, RANK=len(shape))
            np.testing.assert_array_equal(y, wanted, err_msg=f"{start} {size} {row} {column}")


@proton.jit
def read_rows(source, out_ptr, start, size):
    block = load_ragged(source, start, size, [0, 0])
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out_ptr + at, block)


@pytest.mark.interpreted
def test_what_is_outside_of_a_slice_is_zero(rng: np.random.Generator) -> None:
    x, out = rng.standard_normal((20, 12)).astype(np.float32), np.full((8, 16), np.nan, np.float32)
    read_rows[(1,)](create_ragged_descriptor(x, [8, 16]), out, 7, 5)
    wanted = np.zeros((8, 16), np.float32)
    wanted[:5, :12] = x[7:12]
    np.testing.assert_array_equal(out, wanted)


def test_what_no_descriptor_is_of() -> None:
    x = np.zeros((8, 16), np.float32)
    for given, block, dim, said in (
        (x, [8, 16], 1, "ragged_dim must be a dimension but the last of 2, got 1"),
        (x, [8, 16], -3, "ragged_dim must be a dimension but the last of 2, got -3"),
        (x, [8], 0, r"a block of as many, got \[8, 16\] and \[8\]"),
        (x[0], [16], 0, r"an array of 2 or 3 dimensions .* got \[16\] and \[16\]"),
        (3, [8, 16], 0, "create_ragged_descriptor takes an array, got 3"),
        (np.broadcast_to(np.float32(0), ((1 << 30) + 1, 16)), [8, 16], 0, "at most 1073741824 row"),
    ):
        with pytest.raises(proton.LaunchError, match=said):
            create_ragged_descriptor(given, block, dim)


def test_a_descriptor_of_something_else() -> None:
    x = np.zeros((8, 16), np.float32)
    whole = TensorDescriptor.from_tensor(x, [8, 16])
    with pytest.raises(
        proton.CompilationError, match="TMA must be one of create_ragged_descriptor"
    ):
        read_rows[(1,)](whole, x, 0, 8)
