"""Loops of a few iterations, whose number is known: written out, with all loads under way at once,
where threads do not meet in them. A thread has four elements of a block."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
BLOCK, WARPS = 256, 2


@proton.jit
def moments(x_ptr, out_ptr, n, N: tl.constexpr, B: tl.constexpr):
    """The sums that a variance is made of, one step for each block, as Inductor writes them."""
    i = tl.arange(0, B)
    mean = rest = count = tl.zeros((B,), tl.float32)
    for start in tl.range(0, N, B):
        inside = start + i < N
        x = tl.load(x_ptr + start + i, mask=inside, other=0.0)
        if start == 0:
            more, next_mean, next_rest = count + 1, x, rest
        else:
            apart = x - mean
            more = count + 1
            next_mean = mean + apart / more
            next_rest = rest + apart * (x - next_mean)
        mean = tl.where(inside, next_mean, mean)
        rest = tl.where(inside, next_rest, rest)
        count = tl.where(inside, more, count)
    tl.store(out_ptr + i, mean + rest * 0 + count)


@proton.jit
def largest_differences(x_ptr, out_ptr, n, N: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    most = tl.full((B,), float("-inf"), tl.float32)
    for start in range(0, N // 2, B):
        most = tl.maximum(most, tl.load(x_ptr + start + i) - tl.load(x_ptr + N // 2 + start + i))
    tl.store(out_ptr + i, most)


@proton.jit
def doubled(x_ptr, out_ptr, n, N: tl.constexpr, B: tl.constexpr):
    """Nothing is carried."""
    i = tl.arange(0, B)
    for start in range(0, N, B):
        inside = start + i < N
        x = tl.load(x_ptr + start + i, mask=inside)
        tl.store(out_ptr + start + i, tl.exp(x) * 2, mask=inside)


@proton.jit
def unknown_number(x_ptr, out_ptr, n, N: tl.constexpr, B: tl.constexpr):
    i = tl.arange(0, B)
    total = tl.zeros((B,), tl.float32)
    for start in range(0, n, B):
        total += tl.load(x_ptr + start + i, mask=start + i < n, other=0.0)
    tl.store(out_ptr + i, total)


@proton.jit
def meeting(x_ptr, out_ptr, n, N: tl.constexpr, B: tl.constexpr):
    """A sum over the warps in each iteration."""
    i = tl.arange(0, B)
    for start in range(0, N, B):
        x = tl.load(x_ptr + start + i, mask=start + i < N, other=0.0)
        tl.store(out_ptr + start // B, tl.sum(x, 0))


@proton.jit
def long(x_ptr, out_ptr, n, N: tl.constexpr, B: tl.constexpr):
    """Of half as large blocks there are twice as many."""
    i = tl.arange(0, B // 4)
    total = tl.zeros((B // 4,), tl.float32)
    for start in range(0, N, B // 4):
        total += tl.load(x_ptr + start + i, mask=start + i < N, other=0.0)
    tl.store(out_ptr + i, total)


N = 3 * BLOCK + 40


def _blocks(x: Any) -> Any:
    return np.pad(x, (0, 4 * BLOCK - N)).reshape(4, BLOCK)


# Kernel: whether it is written out, and what is expected.
CASES: dict[Any, tuple[bool, int, Any]] = {
    moments: (True, N, lambda x: None),
    largest_differences: (True, 4 * BLOCK, lambda x: (x[:512] - x[512:]).reshape(2, -1).max(0)),
    doubled: (True, N, lambda x: np.exp(x) * 2),
    unknown_number: (False, N, lambda x: _blocks(x).sum(0)),
    meeting: (False, N, lambda x: _blocks(x).sum(1)),
    long: (False, N, lambda x: np.pad(x, (0, 24)).reshape(13, 64).sum(0)),
}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: str(kernel.__name__))
def test_a_short_loop_is_written_out(kernel: Any, rng: np.random.Generator) -> None:
    is_written_out, size, expected = CASES[kernel]
    f32 = tl.float32
    found = kernel.warmup(f32, f32, size, N=size, B=BLOCK, target=HOPPER, num_warps=WARPS)
    ptx = found.asm["ptx"]
    assert ("llvm.loop_annotation" in found.asm["ttgir"]) == is_written_out
    if is_written_out:
        assert not re.findall(r"\tbra", ptx)
    x = rng.random(size, np.float32)
    wanted = expected(x)
    if kernel is moments:
        whole = np.where(np.arange(BLOCK) < 40, 4, 3)
        wanted = _blocks(x).sum(0) / whole + whole
    out = np.zeros(wanted.size, np.float32)
    run_on_arrays(ptx, (1, 1, 1), 32 * WARPS, found.shared, [x, out, size], rng)
    np.testing.assert_allclose(out, wanted, rtol=1e-5)


@proton.jit
def largest_products(x_ptr, y_ptr, out_ptr, n, K: tl.constexpr, B: tl.constexpr, D: tl.constexpr):
    """Rows' largest products with any of n others, by products of D numbers, B at a time."""
    i, d = tl.arange(0, B), tl.arange(0, K)
    most = tl.full((B,), float("-inf"), tl.float32)
    for start in range(0, n, B):
        dots = tl.zeros((B, B), tl.float32)
        for k in range(0, D, K):
            x = tl.load(x_ptr + i[:, None] * D + k + d[None, :])
            y = tl.load(y_ptr + (start + i)[:, None] * D + k + d[None, :])
            dots = tl.dot(x, tl.trans(y), dots)
        most = tl.maximum(most, tl.max(dots, 1))
    tl.store(out_ptr + i, most)


@pytest.mark.parametrize(("depth", "is_written_out"), [(128, True), (512, False)])
def test_a_loop_that_copies_ahead_is_written_out(
    depth: int, is_written_out: bool, rng: np.random.Generator
) -> None:
    types = [tl.float16, tl.float16, tl.float32, 128]
    kernel = largest_products.warmup(*types, K=32, B=64, D=depth, target=HOPPER, num_stages=2)
    steps = depth // 32 if is_written_out else 1
    assert kernel.asm["ptx"].count("wgmma.mma_async") == 2 * steps
    x, y = (rng.standard_normal((size, depth)).astype(np.float16) for size in (64, 128))
    out = np.zeros(64, np.float32)
    given = [x, y, out, 128]
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 128, kernel.shared, given, rng)
    wanted = (x.astype(np.float64) @ y.T.astype(np.float64)).max(1)
    np.testing.assert_allclose(out, wanted, rtol=1e-3, atol=1e-2)
