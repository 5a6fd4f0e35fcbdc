"""Loops that add by TMA: each addition goes on beside the next iteration, and stores of other kinds
land ahead of it or behind it, as they stand in the program."""

import re

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation


@proton.jit
def adds(x, out, other, n, M: tl.constexpr, BEFORE: tl.constexpr, BEHIND: tl.constexpr):
    """Adds each block of x to one of two blocks."""
    if BEFORE:
        out.store([M, 0], tl.full((M, 32), 3.0, tl.float32))
    for i in range(n):
        out.atomic_add([i % 2 * M, 0], x.load([i * M, 0]))
    if BEHIND:
        out.store([0, 0], tl.full((M, 32), 5.0, tl.float32))


@proton.jit
def adds_twice(x, out, other, n, M: tl.constexpr, BEFORE: tl.constexpr, BEHIND: tl.constexpr):
    """To two tensors, in loops of loops."""
    for i in range(n):
        for j in range(2):
            block = x.load([i * M, 0])
            out.atomic_add([j * M, 0], block)
            other.atomic_add([0, 0], block)


@proton.jit
def adds_and_stores(x, out, other, n, M: tl.constexpr, BEFORE: tl.constexpr, BEHIND: tl.constexpr):
    """A loop of two kinds: each waits for the others to have landed."""
    for i in range(n):
        block = x.load([i * M, 0])
        out.store([i % 2 * M, 0], block)
        out.atomic_add([i % 2 * M, 0], block)


@proton.jit
def extrema(x, out, other, n, M: tl.constexpr, BEFORE: tl.constexpr, BEHIND: tl.constexpr):
    """A loop of two reductions, whose order makes a difference."""
    for i in range(n):
        block = (x.load([i * M, 0]) * 8).to(tl.int32)
        other.atomic_max([0, 0], block)
        other.atomic_min([0, 0], block + 4)


def wanted(kernel: object, x: np.ndarray, rows: int, before: bool, behind: bool) -> np.ndarray:
    out = np.zeros((2 * rows, x.shape[1]))
    if before:
        out[rows:] = 3
    for i, block in enumerate(x.reshape(-1, rows, x.shape[1])):
        if kernel is adds_twice:
            out += np.concatenate([block, block])
        elif kernel is adds_and_stores:
            out[i % 2 * rows :][:rows] = 2 * block
        else:
            out[i % 2 * rows :][:rows] += block
    if behind:
        out[:rows] = 5
    return out


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("kernel", "before", "behind", "goes_on"),
    [
        (adds, False, False, True),
        (adds, True, False, True),
        (adds, True, True, True),
        (adds_twice, False, False, True),
        (adds_and_stores, False, False, False),
    ],
)
def test_additions_in_loops(
    rng: np.random.Generator, kernel: object, before: bool, behind: bool, goes_on: bool
) -> None:
    """Of none, of one, and of several iterations."""
    rows = 16
    seen: list[str] = []
    for count in (0, 1, 5):
        x = rng.integers(-9, 9, (rows * max(1, count), 32)).astype(np.float32)
        out, other = np.zeros((2 * rows, 32), np.float32), np.zeros((rows, 32), np.float32)
        given = [TensorDescriptor.from_tensor(array, [rows, 32]) for array in (x, out, other)]
        with Emulation(4, rng, lambda ptx: seen.insert(0, ptx) or ptx).installed():
            kernel[(1,)](*given, count, rows, before, behind, num_warps=4)  # type: ignore[index]
        done = x[: rows * count]
        np.testing.assert_array_equal(out, wanted(kernel, done, rows, before, behind))
        if kernel is adds_twice:
            np.testing.assert_array_equal(other, 2 * done.reshape(-1, rows, 32).sum(0))
    # In a loop that goes on only the reading of its memory is waited for.
    (loop,) = re.findall(r"(\$L__BB0_\d+):\n(?:(?!\1).)*?cp\.reduce.*?bra\S* \t?\1;", seen[0], re.S)
    body = seen[0].partition(f"{loop}:")[2].partition(f"bra \t{loop};")[0]
    assert ("bulk.wait_group 0" not in body) == goes_on


def test_reductions_of_two_kinds_stay_in_order(rng: np.random.Generator) -> None:
    rows, count = 16, 4
    x = rng.integers(-9, 9, (rows * count, 32)).astype(np.float32)
    out, other = np.zeros((2 * rows, 32), np.float32), np.zeros((rows, 32), np.int32)
    given = [TensorDescriptor.from_tensor(array, [rows, 32]) for array in (x, out, other)]
    with Emulation(4, rng).installed():
        extrema[(1,)](*given, count, rows, False, False, num_warps=4)
    want = np.zeros((rows, 32), np.int32)
    for block in (x.reshape(count, rows, 32) * 8).astype(np.int32):
        want = np.minimum(np.maximum(want, block), block + 4)
    np.testing.assert_array_equal(other, want)
