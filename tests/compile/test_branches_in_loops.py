"""Loops whose branches say what the next iterations load: in one loop over all tiles of a
persistent kernel the branch that begins a tile. What is copied ahead is right, run without a GPU.
"""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from proton.tools.tensor_descriptor import TensorDescriptor
from tests.compile.ptx.emulation import Emulation
from tests.pairs import chosen

HOPPER = GPUTarget("cuda", 90)
PROGRAMS, BLOCK = 3, 64


@proton.jit
def by_offsets(a, b, c, table, M, N, K, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """The branch gives rows and columns on."""
    program, tiles_n, steps = tl.program_id(0), tl.cdiv(N, BLOCK), tl.cdiv(K, BLOCK)
    tiles = tl.cdiv(tl.cdiv(M, BLOCK) * tiles_n - program, PROGRAMS)
    tile, k, at = program - PROGRAMS, -1, tl.arange(0, BLOCK)
    row, column, rows, columns = 0, 0, at, at
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(tiles * steps):
        k = tl.where(k == steps - 1, 0, k + 1)
        if k == 0:
            tile += PROGRAMS
            row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
            rows, columns = tl.minimum(row + at, M - 1), tl.minimum(column + at, N - 1)
        inner = k * BLOCK + at
        x = tl.load(a + rows[:, None] * K + inner[None, :], mask=inner[None, :] < K, other=0.0)
        y = tl.load(b + inner[:, None] * N + columns[None, :], mask=inner[:, None] < K, other=0.0)
        acc = tl.dot(x, y, acc)
        if k == steps - 1:
            m, n = row + at, column + at
            mask = (m < M)[:, None] & (n < N)[None, :]
            tl.store(c + m[:, None] * N + n[None, :], acc, mask=mask)
            acc = tl.zeros((BLOCK, BLOCK), tl.float32)


@proton.jit
def by_pointers(a, b, c, table, M, N, K, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """The branches give pointers on, one inside the other."""
    program, tiles_n, steps = tl.program_id(0), tl.cdiv(N, BLOCK), tl.cdiv(K, BLOCK)
    tiles = tl.cdiv(tl.cdiv(M, BLOCK) * tiles_n - program, PROGRAMS)
    tile, at = program - PROGRAMS, tl.arange(0, BLOCK)
    k, row, column, x_row, y_column = -1, 0, 0, a, b
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(tiles * steps):
        k += 1
        if (k == 0) | (k == steps):
            k = 0
            tile += PROGRAMS
            if tile % tiles_n < PROGRAMS:
                x_row = a + tile // tiles_n * BLOCK * K
            row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
            y_column = b + column
            acc = tl.zeros((BLOCK, BLOCK), tl.float32)
        inner = k * BLOCK + at
        inside = inner < K
        x = tl.load(
            x_row + at[:, None] * K + inner[None, :],
            mask=inside[None, :] & (row + at < M)[:, None],
            other=0.0,
        )
        y = tl.load(
            y_column + inner[:, None] * N + at[None, :],
            mask=inside[:, None] & (column + at < N)[None, :],
            other=0.0,
        )
        acc = tl.dot(x, y, acc)
        if k == steps - 1:
            m, n = row + at, column + at
            mask = (m < M)[:, None] & (n < N)[None, :]
            tl.store(c + m[:, None] * N + n[None, :], acc, mask=mask)


@proton.jit
def sums_of_two(a, b, c, table, M, N, K, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """A branch on the number of the iteration takes turns: of rows of `a` the one, then the next
    ones; `c` is the products' sum."""
    at = tl.arange(0, BLOCK)
    first, acc = tl.program_id(0) * 2 * BLOCK, tl.zeros((BLOCK, BLOCK), tl.float32)
    rows = first + at
    for step in range(2 * tl.cdiv(K, BLOCK)):
        if step % 2 == 0:
            rows = first + at
        else:
            rows = first + BLOCK + at
        inner = step // 2 * BLOCK + at
        mask = (inner < K)[None, :] & (rows < M)[:, None]
        x = tl.load(a + rows[:, None] * K + inner[None, :], mask=mask, other=0.0)
        y_mask = (inner < K)[:, None] & (at < N)[None, :]
        y = tl.load(b + inner[:, None] * N + at[None, :], mask=y_mask, other=0.0)
        acc = tl.dot(x, y, acc)
    m = tl.program_id(0) * BLOCK + at
    mask = (first + at < M)[:, None] & (at < N)[None, :]
    tl.store(c + m[:, None] * N + at[None, :], acc, mask=mask)


@proton.jit
def in_turns(a, b, c, n, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """Of a tile's rows, and of those that lie as far from the end, in turns: copies go on with the
    next tile."""
    tiles, steps = n // BLOCK, n // BLOCK
    for tile in tl.range(tl.program_id(0), tiles, PROGRAMS, flatten=True):
        acc, own, other = tl.zeros((BLOCK, BLOCK), tl.float32), tile, tiles - 1 - tile
        for k in range(steps):
            if k % 2 == 0:
                row = own * BLOCK
            else:
                row = other * BLOCK
            acc = tl.dot(a.load([row, k * BLOCK]), b.load([k * BLOCK, 0]), acc)
        c.store([tile * BLOCK, 0], acc)


@proton.jit
def by_table(a, b, c, table, M, N, K, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """The branch reads which tile is next."""
    program, tiles_n, steps = tl.program_id(0), tl.cdiv(N, BLOCK), tl.cdiv(K, BLOCK)
    tiles = tl.cdiv(tl.cdiv(M, BLOCK) * tiles_n - program, PROGRAMS)
    number, k, row, column, at = program - PROGRAMS, -1, 0, 0, tl.arange(0, BLOCK)
    acc = tl.zeros((BLOCK, BLOCK), tl.float32)
    for _ in range(tiles * steps):
        k = tl.where(k == steps - 1, 0, k + 1)
        if k == 0:
            number += PROGRAMS
            tile = tl.load(table + number)
            row, column = tile // tiles_n * BLOCK, tile % tiles_n * BLOCK
        inner, m, n = k * BLOCK + at, row + at, column + at
        x_mask, y_mask = (
            (inner < K)[None, :] & (m < M)[:, None],
            (inner < K)[:, None] & (n < N)[None, :],
        )
        x = tl.load(a + m[:, None] * K + inner[None, :], mask=x_mask, other=0.0)
        y = tl.load(b + inner[:, None] * N + n[None, :], mask=y_mask, other=0.0)
        acc = tl.dot(x, y, acc)
        if k == steps - 1:
            mask = (m < M)[:, None] & (n < N)[None, :]
            tl.store(c + m[:, None] * N + n[None, :], acc, mask=mask)
            acc = tl.zeros((BLOCK, BLOCK), tl.float32)


@proton.jit
def by_counter(a, b, c, table, M, N, K, PROGRAMS: tl.constexpr, BLOCK: tl.constexpr):
    """The branch takes a tile that no other program takes then: it runs once an iteration."""
    at, steps = tl.arange(0, BLOCK), tl.cdiv(K, BLOCK)
    acc, m, n = tl.zeros((BLOCK, BLOCK), tl.float32), at, at
    for step in range(steps):
        if step == 0:
            tile = tl.atomic_add(table, 1)
            m, n = tile // tl.cdiv(N, BLOCK) * BLOCK + at, tile % tl.cdiv(N, BLOCK) * BLOCK + at
        inner = step * BLOCK + at
        x_mask = (inner < K)[None, :] & (m < M)[:, None]
        y_mask = (inner < K)[:, None] & (n < N)[None, :]
        x = tl.load(a + m[:, None] * K + inner[None, :], mask=x_mask, other=0.0)
        y = tl.load(b + inner[:, None] * N + n[None, :], mask=y_mask, other=0.0)
        acc = tl.dot(x, y, acc)
    mask = (m < M)[:, None] & (n < N)[None, :]
    tl.store(c + m[:, None] * N + n[None, :], acc, mask=mask)


@proton.jit
def copied_in_turns(x, y, n, NEAR: tl.constexpr, FAR: tl.constexpr, BLOCK: tl.constexpr):
    """A branch moves pointers by one step or another; rows are carried beside them."""
    row, column = tl.arange(0, BLOCK), tl.arange(0, 4 * BLOCK)
    source = x + row[:, None] * 4 * BLOCK + column[None, :]
    target = y + row[:, None] * 4 * BLOCK + column[None, :]
    rows = row
    for step in range(n):
        mask = (rows < n * BLOCK)[:, None]
        tl.store(target, tl.load(source, mask=mask), mask=mask)
        rows += BLOCK
        if step % 2 == 0:
            source += NEAR
            target += FAR
        else:
            source += FAR
            target += NEAR


def stages(kernel: Any) -> int:
    """Of the loop's schedule."""
    of: dict[str, Any] = {"PROGRAMS": PROGRAMS, "BLOCK": BLOCK, "num_stages": 3, "target": HOPPER}
    types = tl.float16, tl.float16, tl.float32, tl.int32
    found = kernel.warmup(*types, 1024, 1024, 1024, **of)
    return max(map(int, re.findall(r": stages (\d+)", found.asm["schedule"])), default=1)


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize(
    ("kernel", "expected"),
    [(by_offsets, 3), (by_pointers, 3), (sums_of_two, 3), (by_table, 1), (by_counter, 1)],
)
def test_which_branches_run_ahead(kernel: Any, expected: int) -> None:
    assert stages(kernel) == expected


@pytest.mark.parametrize("kernel", [by_offsets, by_pointers])
def test_dots_go_on_beside_branches(kernel: Any) -> None:
    """What clears an accumulator, and what stores it, costs the other iterations nothing."""
    of: dict[str, Any] = {"PROGRAMS": PROGRAMS, "BLOCK": BLOCK, "num_stages": 3, "target": HOPPER}
    types = tl.float16, tl.float16, tl.float32, tl.int32
    text = kernel.warmup(*types, 1024, 1024, 1024, **of).asm["ttgir"]
    waits = re.findall(r"dot_wait.*pendings = (\d)", text)
    # Of the operands of `by_offsets` one goes by way of registers.
    assert waits[:2] == ["1" if kernel is by_pointers else "0", "0"]
    assert not re.findall(r"arith.select.*64x64xf32", text)
    (moved,) = re.findall(r"(.*)\n.*ttg.convert_layout.*64x64xf32", text)
    assert "dot_wait" in moved, "in the branch, where it is waited for"


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    "kernel, size",
    chosen(
        {
            "kernel": [by_offsets, by_pointers, sums_of_two, by_table, by_counter],
            "size": [(130, 80, 144), (64, 64, 64), (200, 144, 48), (30, 40, 24)],
        }
    ),
)
def test_results_are_right(
    kernel: Any, size: tuple[int, int, int], rng: np.random.Generator
) -> None:
    m, n, k = size
    n = min(n, BLOCK) if kernel is sums_of_two else n
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, k), (k, n)))
    c, table = np.zeros((m, n), np.float32), np.arange(32, dtype=np.int32)
    table *= kernel is not by_counter
    tiles = proton.cdiv(m, BLOCK) * proton.cdiv(n, BLOCK)
    programs = {sums_of_two: proton.cdiv(m, 2 * BLOCK), by_counter: tiles}.get(kernel, PROGRAMS)
    with Emulation(4, rng).installed():
        kernel[(programs,)](a, b, c, table, m, n, k, PROGRAMS=PROGRAMS, BLOCK=BLOCK, num_stages=3)
    want = a.astype(np.float64) @ b.astype(np.float64)
    if kernel is sums_of_two:
        c, want = c[: programs * BLOCK], _sums_of_two(want)[:m]
    np.testing.assert_allclose(c, want, atol=1e-2, rtol=1e-3)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("tiles", [1, 3, 5])
def test_copies_go_on_with_the_next_tile(tiles: int, rng: np.random.Generator) -> None:
    n = tiles * BLOCK
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((n, n), (n, BLOCK)))
    c = np.full((n, BLOCK), np.nan, np.float32)
    given = [TensorDescriptor.from_tensor(array, [BLOCK, BLOCK]) for array in (a, b, c)]
    with Emulation(4, rng).installed():
        in_turns[(2,)](*given, n, PROGRAMS=2, BLOCK=BLOCK, num_stages=3)
    blocks = a.reshape(tiles, BLOCK, tiles, BLOCK).astype(np.float64)
    blocks[:, :, 1::2] = blocks[::-1, :, 1::2]
    want = blocks.reshape(n, n) @ b.astype(np.float64)
    np.testing.assert_allclose(c, want, atol=1e-2, rtol=1e-3)


def _sums_of_two(products: np.ndarray) -> np.ndarray:
    """Blocks of rows, added up in pairs, as far as the first one of a pair goes."""
    m, n = products.shape
    pairs = proton.cdiv(m, 2 * BLOCK)
    padded = np.zeros((pairs, 2, BLOCK, n))
    padded.reshape(-1, n)[:m] = products
    first = np.zeros((pairs, 2, BLOCK, 1))
    first.reshape(-1, 1)[:m] = 1
    return (padded.sum(1) * first[:, 0]).reshape(-1, n)


@pytest.mark.parametrize("warps", [4, 8])
def test_what_branches_carry_lies_as_it_is_taken(warps: int) -> None:
    """Nothing that a loop carries through a branch is exchanged between threads."""
    types = tl.float16, tl.float16, 100
    found = copied_in_turns.warmup(
        *types, NEAR=1024, FAR=4096, BLOCK=64, num_warps=warps, target=HOPPER
    )
    assert "ttg.convert_layout" not in found.asm["ttgir"]
    assert (found.n_spills, found.shared) == (0, 0)


def test_copies_in_turns(rng: np.random.Generator) -> None:
    block, n = 16, 6
    x = rng.standard_normal((40 * block, 4 * block)).astype(np.float16)
    y, want = np.zeros_like(x), np.zeros_like(x)
    near, far = 2 * block, 5 * block  # rows
    with Emulation(4, rng).installed():
        copied_in_turns[(1,)](x, y, n, NEAR=near * 4 * block, FAR=far * 4 * block, BLOCK=block)
    source = target = 0
    for step in range(n):
        want[target : target + block] = x[source : source + block]
        source, target = (
            (source + near, target + far) if step % 2 == 0 else (source + far, target + near)
        )
    np.testing.assert_array_equal(y, want)
