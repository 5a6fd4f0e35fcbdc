"""Loads of which several threads hold copies, and stores to the same elements: what the source
says, whichever warp is first. The machine of tests/compile/ptx refuses races."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation


@proton.jit
def counted(n_ptr, out_ptr, steps, BLOCK: tl.constexpr):
    """A scalar that all threads read and one writes, in a loop."""
    i = tl.arange(0, BLOCK)
    for _ in range(steps):
        n = tl.load(n_ptr)
        tl.store(out_ptr + n * BLOCK + i, i + n)
        tl.store(n_ptr, n + 1)


@proton.jit
def replaced_row(x_ptr, row_ptr, M: tl.constexpr, N: tl.constexpr):
    """A row that a block is computed with is written."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    row = tl.load(row_ptr + j)
    tl.store(row_ptr + j, row + 1)
    places = i[:, None] * N + j[None, :]
    tl.store(x_ptr + places, i[:, None] + row[None, :])


@proton.jit
def chosen_row(x_ptr, row_ptr, is_new, M: tl.constexpr, N: tl.constexpr):
    """A row that is written in a branch, and read behind it."""
    i, j = tl.arange(0, M), tl.arange(0, N)
    if is_new:
        tl.store(row_ptr + j, j * 3)
    row = tl.load(row_ptr + j)
    tl.store(x_ptr + i[:, None] * N + j[None, :], i[:, None] + row[None, :])


@proton.jit
def claimed(n_ptr, out_ptr, BLOCK: tl.constexpr):
    """A scalar that an atomic changes."""
    n = tl.load(n_ptr)
    tl.atomic_add(n_ptr, 5)
    tl.store(out_ptr + tl.arange(0, BLOCK), n)


@proton.jit
def doubled(x_ptr, N: tl.constexpr):
    """Of the copies one is used: there is nothing to wait for."""
    j = tl.arange(0, N)
    x = tl.load(x_ptr + j)
    tl.store(x_ptr + j, x * 2 + x, mask=x != 0)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("warps", [1, 4])
@pytest.mark.parametrize("checks_races", [True, False])
def test_all_copies_are_what_the_source_says(
    rng: np.random.Generator, warps: int, checks_races: bool
) -> None:
    block = int(rng.choice([16, 64, 512]))
    m, n = int(rng.choice([4, 16, 64])), int(rng.choice([1, 2, 8, 32]))
    row = rng.integers(-99, 99, n, np.int32)
    want = np.arange(m, dtype=np.int32)[:, None] + row
    with Emulation(warps, rng, checks_races=checks_races).installed():
        number, out = np.array([2], np.int32), np.zeros((6, block), np.int32)
        counted[(1,)](number, out, 3, BLOCK=block)
        assert number[0] == 5
        assert (out[2:5] == np.arange(block) + np.arange(2, 5)[:, None]).all()
        assert not out[:2].any()
        assert not out[5:].any()

        x, line = np.zeros((m, n), np.int32), row.copy()
        replaced_row[(1,)](x, line, M=m, N=n)
        assert (x == want).all()
        assert (line == row + 1).all()

        for is_new in (False, True):
            chosen_row[(1,)](x, line, is_new, M=m, N=n)
            found = np.arange(n) * 3 if is_new else row + 1
            assert (x == np.arange(m)[:, None] + found).all()

        number, out = np.array([7], np.int32), np.zeros(block, np.int32)
        claimed[(1,)](number, out, BLOCK=block)
        assert number[0] == 12
        assert (out == 7).all()


def barriers(kernel: Any, *args: Any, **options: Any) -> int:
    """How many the PTX of a launch has."""
    found: list[str] = []

    def edit(ptx: str) -> str:
        found.append(ptx)
        return ptx

    with Emulation(4, np.random.default_rng(0), edit, checks_races=False).installed():
        kernel[(1,)](*args, **options)
    return found[0].count("bar.sync")


def test_nobody_waits_where_one_thread_uses_what_it_loaded(rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, 16, np.int32)
    changed = x.copy()
    assert barriers(doubled, changed, N=16) == 0
    assert (changed == x * 3).all()
    whole = np.arange(512, dtype=np.int32)
    assert barriers(doubled, whole, N=512) == 0
    assert barriers(claimed, np.zeros(1, np.int32), whole, BLOCK=512) == 1
