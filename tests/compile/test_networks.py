"""Networks of comparisons and of sums: bits of the index that most steps go along lie in registers,
and a partner that an exclusive or names is one exchange."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.emulation import Emulation


@proton.jit
def sort_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y_ptr + places, tl.sort(tl.load(x_ptr + places), 1))


@proton.jit
def partner(x, N: tl.constexpr, DISTANCE: tl.constexpr):
    pairs = tl.reshape(x, (N // (2 * DISTANCE), 2, DISTANCE))
    return tl.reshape(pairs ^ tl.xor_sum(pairs, 1, True), (N,))


@proton.jit
def order_kernel(keys_ptr, numbers_ptr, N: tl.constexpr, STAGES: tl.constexpr):
    """Sorts keys, and numbers along with them, as libraries do."""
    places = tl.arange(0, N)
    keys, numbers = tl.load(keys_ptr + places), places
    for stage in tl.static_range(1, STAGES + 1):
        for step in tl.static_range(stage):
            distance: tl.constexpr = 1 << (stage - 1 - step)
            other, its_number = partner(keys, N, distance), partner(numbers, N, distance)
            is_upper = (places & distance) != 0
            is_down = ((places >> stage) & 1) != 0
            takes = ((keys > other) != (is_upper != is_down)) & (keys != other)
            keys, numbers = tl.where(takes, other, keys), tl.where(takes, its_number, numbers)
    tl.store(keys_ptr + places, keys)
    tl.store(numbers_ptr + places, numbers)


@proton.jit
def hadamard_kernel(x_ptr, y_ptr, N: tl.constexpr, STEPS: tl.constexpr, TIMES: tl.constexpr):
    """Each bit of the index TIMES times, which is so many transforms."""
    x = tl.load(x_ptr + tl.arange(0, N))
    for step in tl.static_range(STEPS * TIMES):
        distance: tl.constexpr = 1 << (step % STEPS)
        pairs = tl.reshape(x, (N // (2 * distance), 2, distance))
        total = tl.broadcast_to(tl.sum(pairs, 1, True), pairs.shape)
        is_upper = tl.arange(0, 2)[None, :, None] == 1
        x = tl.reshape(tl.where(is_upper, total - 2 * pairs, total), (N,))
    tl.store(y_ptr + tl.arange(0, N), x)


@pytest.mark.parametrize(
    ("rows", "size", "warps"), [(1, 512, 1), (2, 512, 4), (1, 2048, 4), (1, 2, 1)]
)
def test_sorted_rows(rows: int, size: int, warps: int, rng: np.random.Generator) -> None:
    x = rng.standard_normal((rows, size)).astype(np.float32)
    x[rng.random(x.shape) < 0.1] = rng.choice([np.nan, np.inf, -0.0, 0.0])
    y = np.empty_like(x)
    with Emulation(warps, rng).installed():
        sort_kernel[(1,)](x, y, M=rows, N=size, num_warps=warps)
    np.testing.assert_array_equal(y, np.sort(x, axis=1))


@pytest.mark.parametrize(("stages", "warps"), [(1, 1), (7, 1), (9, 1), (10, 4)])
def test_numbers_go_with_their_keys(stages: int, warps: int, rng: np.random.Generator) -> None:
    size = 1 << stages
    keys = rng.integers(-(size // 2), size, size).astype(np.int32)
    given, numbers = keys.copy(), np.full(size, -1, np.int32)
    with Emulation(warps, rng).installed():
        kernel = order_kernel[(1,)](keys, numbers, N=size, STAGES=stages, num_warps=warps)
    np.testing.assert_array_equal(keys, np.sort(given))
    np.testing.assert_array_equal(given[numbers], keys)
    np.testing.assert_array_equal(np.sort(numbers), np.arange(size))
    # Three of 55 steps go along the upper two of ten bits, which four warps have. What is made of a
    # range may be computed again, for one step.
    reductions, swaps = (kernel.asm["ttgir"].count(op) for op in ('"tt.reduce"(', '"ttg.swap"('))
    between = 2 * 3 if warps == 4 else 0
    assert reductions + swaps == stages * (stages + 1)
    assert between <= reductions <= between + 1


@pytest.mark.parametrize("times", [1, 3])
def test_transforms_keep_what_each_step_goes_along(times: int, rng: np.random.Generator) -> None:
    x = rng.integers(-3, 4, 256).astype(np.float32)
    y, want = np.empty_like(x), x
    for _ in range(times):
        matrix = np.ones((1, 1))
        for _ in range(8):
            matrix = np.block([[matrix, matrix], [matrix, -matrix]])
        want = matrix @ want
    with Emulation(1, rng).installed():
        hadamard_kernel[(1,)](x, y, N=256, STEPS=8, TIMES=times, num_warps=1)
    np.testing.assert_array_equal(y, want.astype(np.float32))


def _shuffles(kernel: Any, *types: Any, **options: Any) -> int:
    made = kernel.warmup(*types, target=GPUTarget("cuda", 90), **options)
    return int(made.asm["ptx"].count("shfl.sync"))


def test_most_steps_stay_within_threads() -> None:
    """Where a thread has 16 elements, four bits of their index stay within it."""
    pair = (tl.float32, tl.float32)
    # 15 of 45 steps, of keys and of numbers.
    assert _shuffles(order_kernel, tl.int32, tl.int32, N=512, STAGES=9, num_warps=1) == 15 * 16 * 2
    # 25 of 66 steps go along five bits of lanes, 3 along two of warps.
    assert _shuffles(sort_kernel, *pair, M=1, N=2048, num_warps=4) == 25 * 16
    # Two conversions take more than they save where 16 bytes of a load stay together.
    assert _shuffles(sort_kernel, *pair, M=1, N=512, num_warps=1) == 25 * 16
    # What goes along each bit alike stays as it was loaded: 5 of 8 bits are lanes.
    assert _shuffles(hadamard_kernel, *pair, N=256, STEPS=8, TIMES=1, num_warps=1) == 5 * 8
