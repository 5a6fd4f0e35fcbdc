"""Numbers that share a byte or a word, as weights of 4 bits do: what is loaded for several elements
of a thread is loaded once, and what lies side by side in one access."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
K, N = 32, 16  # of blocks; two warps, so a thread has eight elements


@proton.jit
def unpacked(x_ptr, out_ptr, first, bound, rows, EACH: tl.constexpr, MASK: tl.constexpr):
    """Each of EACH numbers along K has a share of the bits."""
    k, n = tl.arange(0, 32), tl.arange(0, 16)
    at = first + n[None, :] * rows + k[:, None] // EACH
    if MASK == "columns":
        x = tl.load(x_ptr + at, n[None, :] < bound, 1)
    elif MASK == "elements":
        x = tl.load(x_ptr + at, k[:, None] < bound, 1)
    elif MASK == "others":
        x = tl.load(x_ptr + at, n[None, :] < bound, (k[:, None] % 3).to(x_ptr.dtype.element_ty))
    else:
        x = tl.load(x_ptr + at)
    x = (x >> (k[:, None] % EACH)).to(tl.int16)
    tl.store(out_ptr + n[None, :] * 32 + k[:, None], x)


@proton.jit
def carried(x_ptr, out_ptr, first, bound, rows, EACH: tl.constexpr, MASK: tl.constexpr):
    """Pointers that a loop moves."""
    k, n = tl.arange(0, 32), tl.arange(0, 16)
    x_ptrs = x_ptr + first + n[None, :] * rows + k[:, None] // EACH
    total = tl.zeros((32, 16), tl.int16)
    for _ in range(bound):
        total += (tl.load(x_ptrs) >> (k[:, None] % EACH)).to(tl.int16)
        x_ptrs += 32 // EACH
    tl.store(out_ptr + n[None, :] * 32 + k[:, None], total)


def expected(kernel: Any, x: np.ndarray, first: int, bound: int, rows: int, each: int, mask: str):
    k, n = np.arange(K), np.arange(N)[:, None]
    at = first + n * rows + k // each
    shift = k % each
    if kernel is carried:
        parts = [x[at + step * (K // each)] >> shift.astype(x.dtype) for step in range(bound)]
        return sum(part.astype(np.int16) for part in parts)
    inside = k < bound if mask == "elements" else n < bound if mask else True
    other = (k % 3).astype(x.dtype) if mask == "others" else x.dtype.type(1)
    return (np.where(inside, x[at], other) >> shift.astype(x.dtype)).astype(np.int16)


# A thread's loads: with EACH 2 its eight elements are four words, with 4 two, with 8 one. Rows
# that begin at odd places have one element an access; masks and what stands for masked elements
# that differ among the elements of a word as many as there are elements, or words. LLVM unrolls
# the loop: all of its loads are of one kind.
CASES = [
    (unpacked, np.uint8, 2, "", 0, 48, 1),
    (unpacked, np.uint8, 2, "", 3, 48, 4),
    (unpacked, np.uint8, 2, "", 0, 50, 4),
    (unpacked, np.int16, 4, "", 0, 48, 1),
    (unpacked, np.int32, 2, "columns", 16, 48, 1),
    (unpacked, np.int32, 8, "columns", 0, 48, 1),
    (unpacked, np.int64, 2, "", 0, 48, 2),
    (unpacked, np.uint8, 2, "elements", 0, 48, 8),
    (unpacked, np.uint8, 2, "others", 0, 48, 8),
    (carried, np.uint8, 2, "", 0, 80, "b32"),
    (carried, np.int32, 4, "", 0, 80, "v2.b32"),
]


@pytest.mark.parametrize(("kernel", "dtype", "each", "mask", "first", "rows", "loads"), CASES)
def test_what_shares_words_is_loaded_once(
    kernel: Any,
    dtype: Any,
    each: int,
    mask: str,
    first: int,
    rows: int,
    loads: int | str,
    rng: np.random.Generator,
) -> None:
    bound = 3 if kernel is carried else 13
    integers = np.iinfo(dtype)
    x = rng.integers(integers.min, integers.max, 17 * rows + first + K, dtype)
    out = np.zeros(N * K, np.int16)
    given = (x, out, first, bound, rows)
    types = (getattr(tl, np.dtype(dtype).name), tl.int16)
    found = kernel.warmup(*types, first, bound, rows, each, mask, target=HOPPER, num_warps=2)
    ptx = found.asm["ptx"]
    kinds = re.findall(r"ld\.global\.(\S+)", ptx)
    assert set(kinds) == {loads} if kernel is carried else len(kinds) == loads
    run_on_arrays(ptx, (1, 1, 1), 64, found.shared, list(given), rng)
    wanted = expected(kernel, x, first, bound, rows, each, mask)
    np.testing.assert_array_equal(out.reshape(N, K), wanted)
