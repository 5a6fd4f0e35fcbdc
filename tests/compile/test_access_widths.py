"""How wide global accesses are, in the PTX of 9.0: where 16-bit numbers are loaded and fp32 ones of
the same shape stored, a store has no gaps between lanes. 4 warps, 8 numbers a thread."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.compile.test_gpu_records import compiled

BLOCK = 1024


@proton.jit
def cast(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y_ptr + i, tl.load(x_ptr + i).to(tl.float32))


@proton.jit
def cast_rows(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    for row in range(n):
        tl.store(y_ptr + row * B + i, tl.load(x_ptr + row * B + i).to(tl.float32))


@proton.jit
def sum_of_rows(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for row in range(n):
        total += tl.load(x_ptr + row * B + i).to(tl.float32)
    tl.store(y_ptr + i, total)


@proton.jit
def narrow(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.arange(0, B)
    tl.store(y_ptr + i, (tl.load(x_ptr + i) + n).to(tl.float16))


@proton.jit
def square(x_ptr, y_ptr, n, B: tl.constexpr):
    i = tl.arange(0, 32)
    at = i[:, None] * 32 + i[None, :]
    x = tl.load(x_ptr + at)
    tl.store(y_ptr + at, tl.dot(x, x))


HALF, FLOAT = np.float16, np.float32
# kernel: types of x and y, bytes of a thread's loads, and of its stores, numbers in a row that a
# thread stores
CASES: dict[Any, tuple[type, type, set[int], set[int], int]] = {
    cast: (HALF, FLOAT, {8}, {16}, 4),
    cast_rows: (HALF, FLOAT, {8}, {16}, 4),
    sum_of_rows: (HALF, FLOAT, {16}, {16}, 4),  # it moves once, behind a loop of loads
    narrow: (FLOAT, HALF, {16}, {16}, 8),  # gaps between loads cost nothing
    square: (HALF, FLOAT, {16}, {16}, 4),  # results of products move anyway
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: str(kernel.__name__))
def test_widths_of_accesses(kernel: Any) -> None:
    x_type, y_type, loaded, stored, run = CASES[kernel]
    x, y = np.zeros(4 * BLOCK, x_type), np.zeros(4 * BLOCK, y_type)
    found = compiled(kernel, x, y, 4, B=BLOCK, num_warps=4)
    ptx = found.asm["ptx"]
    assert _widths(r"ld\.global|cp\.async\.c", ptx) == loaded
    assert _widths(r"st\.global", ptx) == stored
    (layout,) = re.findall(r'"tt\.store".*?, (#linear\d*)>', found.asm["ttgir"])
    registers = re.search(rf"{layout} = #ttg\.linear<\[(.*?)\], \[\[", found.asm["ttgir"])
    assert registers is not None
    steps = [
        max(int(part or 0) for part in basis)
        for basis in re.findall(r"\[(\d+)(?:, (\d+))?\]", registers[1])
    ]
    assert run == next((1 << n for n, step in enumerate(steps) if step != 1 << n), 1 << len(steps))


def _widths(access: str, ptx: str) -> set[int]:
    """The bytes of the accesses of a kind."""
    found = re.findall(rf"(?:{access})\S*\.v(\d)\.[bf](\d+) ", ptx)
    return {int(count) * int(bits) // 8 for count, bits in found}
