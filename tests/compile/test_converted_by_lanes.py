"""Conversions within a warp: a word or two for which a lane takes one of two registers are shuffled
twice, and go through no memory. Random layouts of all sizes arrive as they are."""

from typing import Any

import numpy as np
import pytest

from proton import gluon
from proton.gluon import language as gl
from tests.compile.ptx.emulation import Emulation
from tests.draws import times

LANES, WARPS = 5, 2  # bits


@gluon.jit
def convert(x, y, SIZE: gl.constexpr, FROM: gl.constexpr, TO: gl.constexpr):
    value = gl.load(x + gl.arange(0, SIZE, FROM))
    gl.store(y + gl.arange(0, SIZE, TO), gl.convert_layout(value, TO))


def layout(bases: list[list[int]], registers: int, warps: list[list[int]]) -> Any:
    """Of bits of the index: those of registers, of lanes (0: a copy), and of warps."""
    lanes = bases[registers:] + [[0]] * (LANES - len(bases) + registers)
    size = [1 << sum(basis != [0] for basis in bases + warps)]
    return gl.DistributedLinearLayout(bases[:registers], lanes, warps, [], size)


def converted(dtype: Any, given: Any, wanted: Any, rng: np.random.Generator) -> Any:
    """The kernel, whose result is compared."""
    (size,) = given.shape
    x = rng.integers(0, 2, size).astype(dtype) if dtype is bool else rng.integers(-99, 99, size)
    x, y = x.astype(dtype), np.zeros(size, dtype)
    with Emulation(1 << WARPS, rng).installed():
        kernel = convert[(1,)](x, y, SIZE=size, FROM=given, TO=wanted, num_warps=1 << WARPS)
    np.testing.assert_array_equal(y, x)
    return kernel


def goes_by_lanes(kernel: Any) -> bool:
    return "st.shared" not in kernel.asm["ptx"]


@pytest.mark.usefixtures("no_assembler")
def test_random_layouts_within_a_warp(rng: np.random.Generator) -> None:
    by_lanes = 0
    for _ in range(times(60)):
        registers, others = int(rng.integers(0, 4)), int(rng.integers(0, 4))
        bits = LANES + min(registers, others)
        index = [[1 << int(bit)] for bit in rng.permutation(bits + WARPS)]
        warps, own = index[:WARPS], index[WARPS:]
        given = layout(own, bits - LANES if registers <= others else registers, warps)
        shuffled = [own[int(bit)] for bit in rng.permutation(bits)]
        wanted = layout(shuffled, others if others < registers else bits - LANES, warps)
        dtype = rng.choice(np.array([np.int8, np.int16, np.int32, np.int64, np.float32]))
        by_lanes += goes_by_lanes(converted(dtype, given, wanted, rng))
    assert by_lanes


# Indices that a lane's registers have, those of its lanes, and where the target has them.
FEW = {
    "one of two": ([[16], [1], [2], [4], [8], [0]], 1, [[1], [2], [4], [8], [16]], 0),
    "two of two": ([[32], [1], [2], [4], [8], [16]], 1, [[1], [32], [2], [4], [8], [16]], 1),
    "two of four": (
        [[16], [32], [1], [2], [4], [8], [0]], 2, [[16], [32], [1], [2], [4], [8]], 1
    ),
}  # fmt: skip


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("dtype", [bool, np.int8, np.int16, np.int32, np.float32])
@pytest.mark.parametrize("name", FEW)
def test_few_numbers_go_by_lanes(name: str, dtype: Any, rng: np.random.Generator) -> None:
    given, registers, wanted, others = FEW[name]
    top = max(basis[0] for basis in given) * 2
    warps = [[top << bit] for bit in range(WARPS)]
    kernel = converted(dtype, layout(given, registers, warps), layout(wanted, others, warps), rng)
    assert goes_by_lanes(kernel)


@pytest.mark.usefixtures("no_assembler")
def test_many_numbers_go_through_memory(rng: np.random.Generator) -> None:
    """Four words of a thread are eight shuffles, or two accesses."""
    warps = [[128], [256]]
    given = layout([[32], [64], [1], [2], [4], [8], [16]], 2, warps)
    wanted = layout([[1], [64], [32], [2], [4], [8], [16]], 2, warps)
    assert not goes_by_lanes(converted(np.int32, given, wanted, rng))
