"""Blocks made of a row and a column, which nothing has loaded: a thread combines most of what a
reduction takes by itself, and results are right."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from benchmarks import engine_kernels as kernels
from tests.compile.ptx.emulation import Emulation
from tests.draws import times

H200 = proton.GPUTarget("cuda", 90)


def ranks(x: np.ndarray) -> np.ndarray:
    return x.argsort(1, kind="stable").argsort(1)


def smooth(x: np.ndarray) -> np.ndarray:
    weights = np.exp(-np.abs(x[:, :, None] - x[:, None, :]).astype(np.float64))
    return (weights * x[:, None, :]).sum(2) / weights.sum(2)


def run(
    kernel: Any, grid: int, *args: Any, warps: int, rng: np.random.Generator, **sizes: int
) -> Any:
    with Emulation(warps, rng).installed():
        return kernel[(grid,)](*args, **sizes, num_warps=warps)


def shuffles(kernel: Any) -> int:
    return len(re.findall(r"\b(shfl|redux)\.sync", kernel.asm["ptx"]))


# An element of the result takes the log of the lanes along its row, and a thread has few of them.
@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("size", "warps", "most"), [(32, 1, 32), (64, 4, 4), (128, 4, 16), (128, 8, 8)]
)
def test_ranks(size: int, warps: int, most: int, rng: np.random.Generator) -> None:
    x = rng.integers(0, size, (2, size), np.int32)
    found = np.zeros_like(x)
    kernel = run(kernels.ranks_of, 2, x, found, N=size, warps=warps, rng=rng)
    np.testing.assert_array_equal(found, ranks(x))
    assert shuffles(kernel) <= most


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(("rows", "columns"), [(32, 64), (64, 32)])
def test_sums_over_others_in_a_loop(rows: int, columns: int, rng: np.random.Generator) -> None:
    x, y = rng.random((2, 128), np.float32)
    found = np.zeros(128, np.float32)
    kernel = run(
        kernels.potentials, 128 // rows, x, y, found, 128, N=rows, M=columns, warps=4, rng=rng
    )
    far = np.subtract.outer(x, x) ** 2 + np.subtract.outer(y, y) ** 2
    np.testing.assert_allclose(found, ((far + 1e-3) ** -0.5).sum(1), rtol=1e-4)
    assert shuffles(kernel) <= 8


@pytest.mark.usefixtures("no_assembler")
def test_the_nearest_of_few(rng: np.random.Generator) -> None:
    x, levels = rng.standard_normal(256, np.float32), rng.standard_normal(64, np.float32)
    found = np.zeros(256, np.int32)
    kernel = run(kernels.nearest_level, 2, x, levels, found, N=128, LEVELS=64, warps=4, rng=rng)
    np.testing.assert_array_equal(found, np.abs(x[:, None] - levels).argmin(1))
    assert shuffles(kernel) <= 8


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("size", [32, 64])
def test_two_sums_of_one_block(size: int, rng: np.random.Generator) -> None:
    x = rng.standard_normal((2, size), np.float32)
    found = np.zeros_like(x)
    kernel = run(kernels.smoothed, 2, x, found, N=size, warps=4, rng=rng)
    np.testing.assert_allclose(found, smooth(x), rtol=1e-4, atol=1e-5)
    assert shuffles(kernel) <= 16


@pytest.mark.usefixtures("no_assembler")
def test_columns_are_counted_within_threads(rng: np.random.Generator) -> None:
    x = rng.integers(0, 40, 256).astype(np.int32)
    found = np.zeros((2, 64), np.int32)
    run(kernels.equal_to, 2, x, found, N=128, BINS=64, warps=4, rng=rng)
    wanted = [np.bincount(part, minlength=64) for part in x.reshape(2, 128)]
    np.testing.assert_array_equal(found, wanted)


@proton.jit
def sums_of_three(x, y, z, out, A: tl.constexpr, B: tl.constexpr, C: tl.constexpr,
                  AXIS: tl.constexpr):  # fmt: skip
    a, b, c = tl.arange(0, A), tl.arange(0, B), tl.arange(0, C)
    block = tl.load(x + a)[:, None, None] * tl.load(y + b)[None, :, None]
    total = tl.sum(block * tl.load(z + c)[None, None, :], AXIS)
    if AXIS == 0:
        at = b[:, None] * C + c[None, :]
    elif AXIS == 1:
        at = a[:, None] * C + c[None, :]
    else:
        at = a[:, None] * B + b[None, :]
    tl.store(out + at, total)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("axis", [0, 1, 2])
@pytest.mark.parametrize("warps", [1, 4])
def test_blocks_of_three_dimensions(axis: int, warps: int, rng: np.random.Generator) -> None:
    for _ in range(times(4)):
        sizes = [1 << int(bits) for bits in rng.integers(0, 5, 3)]
        x, y, z = (rng.integers(-9, 9, size).astype(np.int32) for size in sizes)
        wanted = np.einsum("a,b,c->abc", x, y, z).sum(axis)
        found = np.zeros_like(wanted)
        names = dict(zip("ABC", sizes, strict=True))
        run(sums_of_three, 1, x, y, z, found, AXIS=axis, warps=warps, rng=rng, **names)
        np.testing.assert_array_equal(found, wanted)


@proton.jit
def sums_of_one(x, out, N: tl.constexpr, M: tl.constexpr):
    """Of a number for each element, times another, of a range, and of a constant."""
    value = tl.load(x) + tl.load(x + 1)
    tl.store(out, tl.sum(tl.broadcast_to(value, (N, M)), None))
    tl.store(out + 1 + tl.arange(0, N), tl.sum(tl.broadcast_to(value * 2, (N, M)), 1))
    tl.store(out + 1 + N, tl.max(tl.arange(0, N), 0))
    tl.store(out + 2 + N + tl.arange(0, M), tl.sum(tl.full((N, M), 3, tl.int32), 0))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(("n", "m"), [(1, 1), (1, 64), (32, 1), (16, 32)])
@pytest.mark.parametrize("warps", [1, 4])
def test_numbers_that_each_element_has(
    n: int, m: int, warps: int, rng: np.random.Generator
) -> None:
    x, found = rng.integers(-99, 99, 2).astype(np.int32), np.zeros(n + m + 2, np.int32)
    run(sums_of_one, 1, x, found, N=n, M=m, warps=warps, rng=rng)
    value = x.sum()
    assert found.tolist() == [value * n * m, *[2 * value * m] * n, n - 1, *[3 * n] * m]


# What a loop carries, or an access takes, says the layout, not the reduction.


@proton.jit
def states(k_ptr, v_ptr, out_ptr, n, K: tl.constexpr, V: tl.constexpr):
    k, v = tl.arange(0, K), tl.arange(0, V)
    state = tl.zeros((V, K), tl.float32)
    for step in range(n):
        key = tl.load(k_ptr + step * K + k)
        state = state * 0.5 + tl.load(v_ptr + step * V + v)[:, None] * key[None, :]
        tl.store(out_ptr + step * V + v, tl.sum(state * key[None, :], 1))


@proton.jit
def products(x_ptr, out_ptr, sums_ptr, N: tl.constexpr):
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    block = x[:, None] * x[None, :] + 1
    tl.store(out_ptr + at[:, None] * N + at[None, :], block)
    tl.store(sums_ptr + at, tl.sum(block, 1))


def is_asked(kernel: Any, monkeypatch: pytest.MonkeyPatch, *args: Any, **sizes: int) -> bool:
    """Whether a reduction says where what it takes lies."""
    import proton.transforms.layout.preferred_layouts as layouts

    asked, plain = [], layouts._within_threads
    monkeypatch.setattr(layouts, "_within_threads", lambda op: asked.append(op) or plain(op))
    with proton.knobs.scope(always_compile=True):
        kernel.warmup(*args, **sizes, grid=(1,), target=H200)
    return bool(asked)


def test_a_state_stays_where_it_is(monkeypatch: pytest.MonkeyPatch) -> None:
    """Its loop waits for each step: where lanes share a row, a recurrence took 1.2 to 1.4 times as
    long (`corpus.py --libraries fla --against` 067e468c, an H200, ahead of b09bf179)."""
    args = tl.float32, tl.float32, tl.float32, 100
    assert not is_asked(states, monkeypatch, *args, K=64, V=32)


def test_what_is_stored_lies_as_the_store_takes_it(monkeypatch: pytest.MonkeyPatch) -> None:
    assert not is_asked(products, monkeypatch, tl.float32, tl.float32, tl.float32, N=64)


def test_ranks_are_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    assert is_asked(kernels.ranks_of, monkeypatch, tl.int32, tl.int32, N=64)


# What is asked of is not always made of rows and columns alone.


@proton.jit
def largest_and_sum(a, x, b, y):
    return tl.maximum(a, b), x + y


@proton.jit
def sums_of_joined(x_ptr, out_ptr, N: tl.constexpr):
    """The halves of a join are in one thread, in whichever layout."""
    at = tl.arange(0, N)
    x = tl.load(x_ptr + at)
    block = x[:, None] * 3 + x[None, :] * x[:, None]
    found = tl.sum(tl.join(block, block + at[None, :]), 0)
    tl.store(out_ptr + at[:, None] * 2 + tl.arange(0, 2)[None, :], found)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(("size", "warps"), [(2, 2), (16, 1), (16, 4), (64, 4)])
def test_what_is_joined(size: int, warps: int, rng: np.random.Generator) -> None:
    x, at = rng.integers(-99, 99, size).astype(np.int32), np.arange(size)
    found = np.zeros((size, 2), np.int32)
    run(sums_of_joined, 1, x, found, N=size, warps=warps, rng=rng)
    block = x[:, None] * 3 + x[None, :] * x[:, None]
    np.testing.assert_array_equal(found, np.stack([block, block + at], 2).sum(0))


@proton.jit
def of_what_a_loop_gives(x_ptr, large_ptr, sums_ptr, n, N: tl.constexpr):
    at = tl.arange(0, N)
    block = tl.zeros((N, N), tl.int32)
    for step in range(n):
        block += tl.load(x_ptr + at[:, None] * N + at[None, :]) * step
    large, sums = tl.reduce((at[:, None] ^ at[None, :], block), 0, largest_and_sum)
    tl.store(large_ptr + at, large)
    tl.store(sums_ptr + at, sums)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("warps", [1, 4])
def test_what_has_a_layout_keeps_it(warps: int, rng: np.random.Generator) -> None:
    x = rng.integers(-99, 99, (32, 32)).astype(np.int32)
    large, sums = np.zeros((2, 32), np.int32)
    run(of_what_a_loop_gives, 1, x, large, sums, 3, N=32, warps=warps, rng=rng)
    np.testing.assert_array_equal(large, [31] * 32)
    np.testing.assert_array_equal(sums, 3 * x.sum(0))
