"""A value that threads exchange several times is in shared memory once; right either way."""

import re

import numpy as np
import pytest

import proton
import proton.language as tl
from proton import GPUTarget
from tests.compile.ptx.emulation import Emulation
from tests.pairs import chosen

HOPPER = GPUTarget("cuda", 90)


@proton.jit
def states(x_ptr, w_ptr, all_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """Each iteration stores the state, and multiplies it: h += x @ w @ h."""
    m, j = tl.arange(0, M), tl.arange(0, N)
    h = tl.load(out_ptr + m[:, None] * N + j[None, :])
    for i in range(n):
        x = tl.load(x_ptr + i * M * M + m[:, None] * M + m[None, :])
        w = tl.load(w_ptr + i * M * M + m[:, None] * M + m[None, :])
        now = h.to(x.dtype)
        tl.store(all_ptr + i * M * N + m[:, None] * N + j[None, :], now)
        h = tl.dot(x, tl.dot(w, now).to(x.dtype), h)
    tl.store(out_ptr + m[:, None] * N + j[None, :], h)


@proton.jit
def both_ways(x_ptr, w_ptr, rows_ptr, columns_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """A product is stored in rows and, as another value's, in columns."""
    m, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + j[None, :])
    w = tl.load(w_ptr + j[:, None] * N + j[None, :])
    y = tl.dot(x, w).to(x.dtype)
    tl.store(rows_ptr + m[:, None] * N + j[None, :], y)
    tl.store(columns_ptr + j[None, :] * M + m[:, None], y)


@proton.jit
def once(x_ptr, w_ptr, rows_ptr, columns_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """The same without the columns."""
    m, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * N + j[None, :])
    w = tl.load(w_ptr + j[:, None] * N + j[None, :])
    tl.store(rows_ptr + m[:, None] * N + j[None, :], tl.dot(x, w).to(x.dtype))


@proton.jit
def steps(x_ptr, w_ptr, all_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """Conjugate steps: what is carried beside the product's follows it; its sums do, too."""
    m, j = tl.arange(0, M), tl.arange(0, N)
    x = tl.load(x_ptr + m[:, None] * M + m[None, :])
    p = tl.load(out_ptr + m[:, None] * N + j[None, :])
    r, y = p, p * 0.5
    size = tl.sum(r * r, 1)
    for _ in range(n):
        r -= tl.dot(x, p.to(x.dtype)) * size[:, None]
        y += p * size[:, None]
        size = tl.sum(r * r, 1)
        p = r + p * size[:, None]
    tl.store(out_ptr + m[:, None] * N + j[None, :], y)


@proton.jit
def late(x_ptr, w_ptr, all_ptr, out_ptr, n, M: tl.constexpr, N: tl.constexpr):
    """Products are stored, and are operands when all of them are there."""
    m = tl.arange(0, M)
    at = m[:, None] * M + m[None, :]
    x, w = tl.load(x_ptr + at), tl.load(w_ptr + at)
    products = ()
    for i in tl.static_range(N):
        y = tl.dot(x, w * (i + 1))
        tl.store(all_ptr + i * M * M + at, y)
        products = (*products, y)
    total = tl.zeros((M, M), tl.float32)
    for i in tl.static_range(N):
        total = tl.dot(x, products[i], total)
    tl.store(out_ptr + at, total)


def compiled(kernel: object, element: tl.dtype, m: int, n: int, warps: int, stages: int = 3) -> str:
    last = tl.float32 if kernel in (states, steps) else element
    types = [element, element, element, last, 4]
    options = {"num_warps": warps, "num_stages": stages, "target": HOPPER}
    made = kernel.warmup(*types, m, n, **options)  # type: ignore[attr-defined]
    text = made.asm["ttgir"]
    return text.split("scf.for", 1)[1] if kernel in (states, steps) else text


def readers(text: str) -> list[int]:
    """Of each memory that one value is in, how many read it into registers."""
    held = re.findall(r'(%\w+) = "ttg.local_alloc"\(%', text)
    return sorted(len(re.findall(rf'"ttg.local_load"\({name}\)', text)) for name in held)


@pytest.mark.usefixtures("no_ptx")
def test_a_value_is_stored_and_multiplied_from_one_memory() -> None:
    assert readers(compiled(states, tl.float32, 32, 32, 4)) == [2]
    assert readers(compiled(states, tl.float16, 32, 32, 4)) == [2]
    assert readers(compiled(both_ways, tl.float32, 32, 32, 4)) == [2]


@pytest.mark.usefixtures("no_ptx")
def test_one_exchange_needs_no_memory_of_its_own() -> None:
    assert readers(compiled(once, tl.float32, 32, 32, 4)) == []
    assert readers(compiled(states, tl.float16, 32, 16, 1)) == []  # the operand is in place


@pytest.mark.usefixtures("no_ptx")
def test_a_memory_that_takes_longer_is_written_ahead_of_the_same_barrier() -> None:
    """Tensor cores want columns there, which would be read two bytes at a time."""
    text = compiled(states, tl.float16, 64, 64, 8)
    assert readers(text) == [0, 0]
    assert text.index('"ttg.local_alloc"') < text.index('"ttg.convert_layout"')


@pytest.mark.usefixtures("no_ptx")
def test_an_sm_keeps_its_programs() -> None:
    """Which has room for three of them with buffers of eight iterations, and nothing beside."""
    assert readers(compiled(states, tl.float32, 32, 64, 4, stages=7)) == [2]
    assert readers(compiled(states, tl.float32, 32, 64, 4, stages=8)) == []


@pytest.mark.usefixtures("no_ptx")
def test_a_program_keeps_within_shared_memory() -> None:
    """Which has no room for 16 blocks of 16 KiB at once, and two more."""
    types = [tl.float32] * 4 + [1]
    kernel = late.warmup(*types, 64, 16, num_warps=8, target=HOPPER)
    assert kernel.shared <= HOPPER.facts.shared_bytes


@pytest.mark.usefixtures("no_ptx")
@pytest.mark.parametrize(("m", "n", "warps"), [(32, 16, 1), (32, 32, 4), (64, 64, 4)])
def test_what_a_product_adds_to_is_carried_as_it_gives_it(m: int, n: int, warps: int) -> None:
    """It begins as a load gives it, which each iteration would convert to and back."""
    for kernel in (states, steps):
        text = compiled(kernel, tl.float16, m, n, warps).split("scf.yield", 1)[0]
        assert not re.findall(r"ttg.convert_layout.*xf32", text)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    "size, element",
    chosen(
        {
            "size": [(32, 16, 1), (32, 32, 4), (64, 64, 4), (64, 64, 8)],
            "element": [np.float16, np.float32],
        },
        least=1,
    ),
)
def test_what_is_shared_is_right(
    rng: np.random.Generator, size: tuple[int, int, int], element: type[np.floating]
) -> None:
    """What is multiplied has the bits of fp16, so that tf32 has them, too. `size`: of a block of
    rows and columns, and warps."""
    (m, n, warps), count = size, 3
    x, w = (rng.normal(0, 1 / m, (count, m, m)).astype(np.float16) for _ in range(2))
    begin = rng.standard_normal((m, n)).astype(np.float16).astype(np.float32)
    every, out, moved = np.full((count, m, n), np.nan, element), begin.copy(), begin / 8
    a, b = (rng.standard_normal(shape).astype(np.float16) for shape in ((m, n), (n, n)))
    rows, columns = np.full((m, n), np.nan, element), np.full((n, m), np.nan, element)
    with Emulation(warps, rng).installed():
        given = x.astype(element), w.astype(element)
        states[(1,)](*given, every, out, count, m, n, num_warps=warps)
        steps[(1,)](given[0], given[0], every[0], moved, count, m, n, num_warps=warps)
        both_ways[(1,)](
            a.astype(element), b.astype(element), rows, columns, 0, m, n, num_warps=warps
        )
    h = begin.astype(np.float64)
    for i in range(count):
        np.testing.assert_allclose(every[i], h, rtol=2e-3, atol=2e-3)
        h = h + x[i].astype(np.float64) @ (w[i].astype(np.float64) @ h)
    np.testing.assert_allclose(out, h, rtol=2e-3, atol=2e-3)
    p = r = begin.astype(np.float64) / 8
    y, size = p / 2, (r * r).sum(1, keepdims=True)
    for _ in range(count):
        r, y = r - x[0].astype(np.float64) @ p * size, y + p * size
        size = (r * r).sum(1, keepdims=True)
        p = r + p * size
    np.testing.assert_allclose(moved, y, rtol=1e-2, atol=1e-2)
    want = a.astype(np.float64) @ b.astype(np.float64)
    np.testing.assert_allclose(rows, want, rtol=2e-3, atol=2e-2)
    np.testing.assert_array_equal(columns, rows.T)
