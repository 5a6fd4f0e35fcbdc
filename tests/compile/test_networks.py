"""Networks of comparisons and of sums: bits of the index that most steps go along lie in registers,
and a partner that an exclusive or names is one exchange."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests import draws
from tests.compile.ptx.emulation import Emulation
from tests.cpu.harness import kernels_of


@proton.jit
def sort_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y_ptr + places, tl.sort(tl.load(x_ptr + places), 1))


@proton.jit
def topk_kernel(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, K: tl.constexpr):
    rows = tl.arange(0, M)[:, None]
    found = tl.topk(tl.load(x_ptr + rows * N + tl.arange(0, N)[None, :]), K, 1)
    tl.store(y_ptr + rows * K + tl.arange(0, K)[None, :], found)


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


@pytest.mark.usefixtures("no_assembler")
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


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("kind", [np.int64, np.uint64, np.float64])
@pytest.mark.parametrize("topk", [0, 4])
def test_sorted_rows_of_64_bits(kind: Any, topk: int, rng: np.random.Generator) -> None:
    """Lanes compare once: the maximum of two of 64 bits and their minimum are four selections."""
    x = rng.integers(-(1 << 62), 1 << 62, (4, 64)).astype(np.int64).view(kind)
    x[:, 5:9] = x[:, :1]
    if kind is np.float64:
        x[1, 3] = np.nan
    expected = np.sort(x, axis=1)
    y = np.empty_like(x)
    with Emulation(1, rng).installed():
        if topk:
            kernel = topk_kernel[(1,)](x, y, M=4, N=64, K=topk, num_warps=1)
            y, expected = y.reshape(-1)[: 4 * topk].reshape(4, topk), expected[:, : -topk - 1 : -1]
        else:
            kernel = sort_kernel[(1,)](x, y, M=4, N=64, num_warps=1)
    np.testing.assert_array_equal(y, expected)
    code = kernel.asm["ttgir"]
    assert '"ttg.swap"(' in code
    assert len(re.findall(r"arith\.cmpi [us]gt, .*i64", code)) > 0


@pytest.mark.usefixtures("no_assembler")
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


@pytest.mark.usefixtures("no_assembler")
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


Numbers = tuple[np.ndarray, np.ndarray]


def _step(kind: str, rows: int, distance: int, numbers: Numbers) -> tuple[str, Numbers]:
    """The source of a step of a network on x and z, and what it makes of both."""
    (x, z), size = numbers, numbers[0].size
    if kind == "transpose":
        shape = rows, size // rows
        source = f"x = tl.reshape(tl.trans(tl.reshape(x, {shape})), (N,))"
        return source, (x.reshape(shape).T.ravel(), z)
    shape = size // (2 * distance), 2, distance
    a, b = x.reshape(shape), z.reshape(shape)
    pairs = f"a, b = tl.reshape(x, {shape}), tl.reshape(z, {shape})\n    "
    if kind == "sum":
        source = "x = tl.reshape(a - tl.sum(a, 1, keep_dims=True), (N,))"
        return pairs + source, ((a - a.sum(1, keepdims=True, dtype=a.dtype)).ravel(), z)
    if kind == "max":
        source = "x = tl.reshape(tl.max(a, 1, keep_dims=True) - a, (N,))"
        return pairs + source, ((a.max(1, keepdims=True) - a).ravel(), z)
    source = (
        "c, d = a ^ tl.xor_sum(a, 1, True), tl.xor_sum(b, 1, True) ^ b\n"
        "    takes = (c > a) ^ (tl.arange(0, 2)[None, :, None] == 1)\n"
        "    x = tl.reshape(tl.where(takes, c, a), (N,))\n"
        "    z = tl.reshape(tl.where(takes, d, b), (N,))"
    )
    c, d = a[:, ::-1], b[:, ::-1]
    takes = (c > a) ^ (np.arange(2)[None, :, None] == 1)
    return pairs + source, (np.where(takes, c, a).ravel(), np.where(takes, d, b).ravel())


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("warps", [1, 2, 4])
def test_random_networks(warps: int, rng: np.random.Generator) -> None:
    """Steps along random bits, with sums, maxima and transposes among them."""
    for _ in range(draws.times(3)):
        bits = int(rng.integers(5, 11))
        size = 1 << bits
        x = rng.integers(-1000, 1000, size).astype(np.int32)
        numbers, source = (x, np.arange(size, dtype=np.int32) * 3), ""
        for kind in rng.choice(["swap", "swap", "sum", "max", "transpose"], rng.integers(4, 26)):
            rows, distance = 1 << int(rng.integers(0, bits + 1)), 1 << int(rng.integers(0, bits))
            line, numbers = _step(str(kind), rows, distance, numbers)
            source += f"    {line}\n"
        kernel = kernels_of(
            "@proton.jit\ndef kernel(x_ptr, y_ptr, N: tl.constexpr):\n"
            "    places = tl.arange(0, N)\n    x, z = tl.load(x_ptr + places), places * 3\n"
            f"{source}    tl.store(y_ptr + places, x + z)\n"
        ).kernel
        y = np.empty_like(x)
        with Emulation(warps, rng).installed():
            kernel[(1,)](x, y, N=size, num_warps=warps)
        np.testing.assert_array_equal(y, np.add(*numbers), err_msg=source)


def _shuffles(kernel: Any, *types: Any, **options: Any) -> int:
    made = kernel.warmup(*types, target=GPUTarget("cuda", 90), **options)
    return int(made.asm["ptx"].count("shfl.sync"))


@pytest.mark.usefixtures("no_assembler")
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
