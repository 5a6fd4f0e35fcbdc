"""Addresses and integers that nested loops carry: structured where that is exact, else gathered."""

import numpy as np
import pytest

import proton
import proton.language as tl


@proton.jit
def pointers(p, out, n, m, BLOCK: tl.constexpr):
    q = p + tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        for _ in range(m):
            total += tl.load(q)
            q += BLOCK
        q += BLOCK
    tl.store(out + tl.arange(0, BLOCK), total)


@proton.jit
def offsets(p, out, n, m, size, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        for _ in range(m):
            total += tl.load(p + offs, mask=offs < size, other=1.0)
            offs += BLOCK
    tl.store(out + tl.arange(0, BLOCK), total + offs)


@proton.jit
def multiplied(p, out, n, m, size, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.float32)
    for _ in range(n):
        for _ in range(m):
            total += tl.load(p + offs % size)
            offs += 3
        offs = offs * 5
    tl.store(out + tl.arange(0, BLOCK), total)


@proton.jit
def gathered(p, index_ptr, out, n, m, BLOCK: tl.constexpr):
    offs = tl.arange(0, BLOCK)
    total = tl.zeros((BLOCK,), tl.int32)
    for _ in range(n):
        for _ in range(m):
            total += tl.load(p + offs)
            offs = tl.load(index_ptr + offs)
    tl.store(out + tl.arange(0, BLOCK), total)


@pytest.mark.parametrize("n, m", [(0, 3), (1, 1), (2, 4), (3, 0), (4, 3)])
def test_pointers_that_both_loops_move(rng: np.random.Generator, n: int, m: int) -> None:
    x = rng.integers(-9, 9, (n * (m + 1) + 1, 8)).astype(np.float32)
    out = np.empty(8, np.float32)
    pointers[(1,)](x, out, n, m, BLOCK=8)
    read = [i * (m + 1) + j for i in range(n) for j in range(m)]
    assert (out == x[read].sum(0)).all()


@pytest.mark.parametrize("n, m", [(0, 3), (1, 1), (2, 4), (3, 0), (4, 3)])
def test_offsets_that_the_inner_loop_moves(rng: np.random.Generator, n: int, m: int) -> None:
    size = max(1, n * m * 8 - 5)
    x = rng.integers(-9, 9, size).astype(np.float32)
    out = np.empty(8, np.float32)
    offsets[(1,)](x, out, n, m, size, BLOCK=8)
    padded = np.ones(n * m * 8 + 8, np.float32)
    padded[:size] = x
    expected = padded[: n * m * 8].reshape(n * m, 8).sum(0) + np.arange(8) + n * m * 8
    assert (out == expected).all()


@pytest.mark.parametrize("n, m", [(1, 2), (3, 2), (12, 3)])
def test_offsets_that_the_outer_loop_multiplies(rng: np.random.Generator, n: int, m: int) -> None:
    """They overflow 32 bits on the way; a remainder of a negative number is not used."""
    size = 64
    x = rng.integers(-9, 9, size).astype(np.float32)
    offs, expected = np.arange(8, dtype=np.int64), np.zeros(8, np.float32)
    for _ in range(n):
        for _ in range(m):
            if (offs < 0).any():
                pytest.skip("an address before the array")
            expected += x[offs % size]
            offs = (offs + 3).astype(np.int32).astype(np.int64)
        offs = (offs * 5).astype(np.int32).astype(np.int64)
    out = np.empty(8, np.float32)
    multiplied[(1,)](x, out, n, m, size, BLOCK=8)
    assert (out == expected).all()


def test_offsets_that_come_from_memory(rng: np.random.Generator) -> None:
    x = rng.integers(-9, 9, 32).astype(np.int32)
    index = rng.integers(0, 32, 32).astype(np.int32)
    offs, expected = np.arange(8), np.zeros(8, np.int32)
    for _ in range(6):
        expected += x[offs]
        offs = index[offs]
    out = np.empty(8, np.int32)
    gathered[(1,)](x, index, out, 2, 3, BLOCK=8)
    assert (out == expected).all()


@proton.jit
def generator(out, seed, n):
    x = tl.full((8,), 0, tl.int32) + seed
    for _ in range(n):
        x = (x * 1103515245 + 12345) % 65536
    tl.store(out + tl.arange(0, 8), x)


@proton.jit
def widened(out, seed, n):
    x = tl.full((8,), 0, tl.int32) + seed
    y = tl.full((8,), 0, tl.int64)
    for _ in range(n):
        x = x * 65537
        y += x
    tl.store(out + tl.arange(0, 8), y)


@proton.jit
def hashed(p, out, n, BLOCK: tl.constexpr):
    offs = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    place = (offs * 1640531527) & 0x7FFFFFFF
    tl.store(out + offs, tl.load(p + place % n))


def test_carried_integers_wrap_at_their_own_width() -> None:
    out, wide = np.empty(8, np.int32), np.empty(8, np.int64)
    with np.errstate(over="ignore"):
        x, y, total = np.int32(7), np.int32(65535), 0
        for _ in range(5):
            x = np.int32(np.fmod(x * np.int32(1103515245) + np.int32(12345), np.int32(65536)))
        for _ in range(3):
            y = y * np.int32(65537)
            total += int(y)
    generator[(1,)](out, 7, 5)
    widened[(1,)](wide, 65535, 3)
    assert (out == x).all()
    assert (wide == total).all()


def test_hashes_may_overflow(rng: np.random.Generator) -> None:
    n = 1000
    x = rng.integers(0, 1 << 30, n).astype(np.int32)
    out = np.empty(256, np.int32)
    hashed[(4,)](x, out, n, BLOCK=64)
    with np.errstate(over="ignore"):
        place = (np.arange(256, dtype=np.int32) * np.int32(1640531527)) & 0x7FFFFFFF
    assert (out == x[place % n]).all()


@proton.jit
def given_twice(x, out, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p, q, total = tl.load(x + i), tl.load(x + BLOCK + i), tl.zeros((BLOCK,), tl.int32)
    for k in range(n):
        if k % 3 == s:
            p = p * 3 % 11
            q = p
        total += p * (q + k)
    tl.store(out + i, total + p * q)


@proton.jit
def given_crosswise(x, out, n, s, BLOCK: tl.constexpr):
    i = tl.arange(0, BLOCK)
    p, q, total = tl.load(x + i), tl.load(x + BLOCK + i), tl.zeros((BLOCK,), tl.int32)
    for k in range(n):
        if k != s:
            if k % 2 == 1:
                p = p * 3 % 11
            else:
                q = q * 3 % 7
            tl.store(out + BLOCK, k)
        else:
            p, q = q, p
            tl.store(out + BLOCK, k)
        total += p * (q + k)
    tl.store(out + i, total + p * q)


def test_branches_do_not_mix_what_a_loop_carries(rng: np.random.Generator) -> None:
    x = rng.integers(0, 100, 32).astype(np.int32)
    for kernel in (given_twice, given_crosswise):
        for n, s in ((0, 0), (7, 1), (6, 2)):
            out = np.zeros(17, np.int32)
            kernel[(1,)](x, out, n, s, BLOCK=16)
            (p, q), total = (x[:16], x[16:]), 0
            for k in range(n):
                if kernel is given_twice:
                    p, q = (p * 3 % 11,) * 2 if k % 3 == s else (p, q)
                elif k == s:
                    p, q = q, p
                else:
                    p, q = (p * 3 % 11, q) if k % 2 else (p, q * 3 % 7)
                total = total + p * (q + k)
            assert (out[:16] == total + p * q).all(), (kernel.__name__, n, s)


@proton.jit
def exchanged(x_ptr, y_ptr, out_ptr, turns, swaps, returns, steps, step, N: tl.constexpr):
    rows = tl.arange(0, N)
    column = tl.arange(0, 1)
    left = tl.broadcast_to(x_ptr + rows[:, None] * 0, (N, 1))
    right = tl.broadcast_to(y_ptr + (rows % 2)[:, None] * -2 + 2, (N, 1))
    total = tl.zeros((N, 1), tl.int32)
    for turn in range(turns):
        if swaps > 0:
            total += tl.load(right) * (turn + 1)
            left, right = right, left
            if returns > 0:
                right = tl.broadcast_to(x_ptr + ((column + step) % 1)[None, :], (N, 1))
    done = 0
    while done < steps:
        right += rows[:, None] * step
        done += 1
    tl.store(out_ptr + rows[:, None], total * 3 + tl.load(right))


@pytest.mark.parametrize("swaps", [0, 1])
@pytest.mark.parametrize("returns", [0, 1])
def test_blocks_of_pointers_that_change_places(
    rng: np.random.Generator, swaps: int, returns: int
) -> None:
    """With each other, or with one from outside of the loop, where canonicalization makes a choice
    of whole blocks of the inner branch."""
    n, turns, steps = 4, 5, 2
    memory, out, total = rng.integers(-99, 99, 40).astype(np.int32), np.zeros(n, np.int32), 0
    x, y, rows = memory[:20], memory[20:], np.arange(n)
    left, right = np.zeros(n, int), 20 + rows % 2 * -2 + 2
    for turn in range(turns if swaps else 0):
        total = total + memory[right] * (turn + 1)
        left, right = right, np.zeros(n, int) if returns else left
    wanted = total * 3 + memory[right + rows * steps]
    exchanged[(1,)](x, y, out, turns, swaps, returns, steps, 1, N=n)
    assert (out == wanted).all()


@proton.jit(noinline=True)
def tripled(x):
    return x * 3


@proton.jit
def at_times(x, counts, out, n, KIND: tl.constexpr, WAIT: tl.constexpr, BLOCK: tl.constexpr):
    """What a branch gives lies in memory that is read alone, or in that of the block before."""
    i = tl.arange(0, BLOCK)
    a = i
    k = 0
    while k < (n if WAIT else 0):
        if k % 3 != 1:
            a = step(a, x, counts, i, k, KIND, BLOCK)
        a = (a ^ i) & (BLOCK - 1)
        k += 1
    for k in range(0 if WAIT else n):
        if k % 3 != 1:
            a = step(a, x, counts, i, k, KIND, BLOCK)
        a = (a ^ i) & (BLOCK - 1)
    tl.store(out + i, a)


@proton.jit
def step(a, x, counts, i, k, KIND: tl.constexpr, BLOCK: tl.constexpr):
    if KIND == "load":
        return tl.load(x + i + k)
    if KIND == "masked":
        return tl.load(x + i, mask=i < 5 * k, other=3)
    if KIND == "gathered":
        return tl.load(x + a)
    if KIND == "taken":
        return tl.gather(a, a, 0)
    if KIND == "flipped":
        return tl.flip(a, 0)
    if KIND == "summed":
        return tl.cumsum(a, 0)
    if KIND == "counted":
        return tl.histogram(a, BLOCK)
    if KIND == "added":
        return tl.atomic_add(counts + i, a)
    return tripled(a)


def stepped(kind: str, a: np.ndarray, x: np.ndarray, counts: np.ndarray, k: int) -> np.ndarray:
    i = np.arange(a.size)
    if kind == "added":
        before = counts.copy()
        counts += a
        return before
    steps = {
        "load": lambda: x[i + k],
        "masked": lambda: np.where(i < 5 * k, x[i], 3),
        "gathered": lambda: x[a],
        "taken": lambda: a[a],
        "flipped": lambda: a[::-1],
        "summed": lambda: np.cumsum(a),
        "counted": lambda: np.bincount(a, minlength=a.size),
        "called": lambda: 3 * a,
    }
    return steps[kind]()


KINDS = "load masked gathered taken flipped summed counted added called".split()


@pytest.mark.parametrize("waits", [False, True], ids=["for", "while"])
@pytest.mark.parametrize("kind", KINDS)
def test_a_branch_in_a_loop_gives_a_block_of_any_memory(
    rng: np.random.Generator, kind: str, waits: bool
) -> None:
    size, n = 32, 5
    x = rng.integers(0, size, size + n, np.int32)
    counts, out = np.zeros(size, np.int32), np.zeros(size, np.int32)
    at_times[(1,)](x, counts.copy(), out, n, KIND=kind, WAIT=waits, BLOCK=size)
    want = np.arange(size)
    for k in range(n):
        if k % 3 != 1:
            want = stepped(kind, want, x, counts, k)
        want = (want ^ np.arange(size)) & (size - 1)
    np.testing.assert_array_equal(out, want)
