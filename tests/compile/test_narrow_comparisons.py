"""Comparisons of 8 and 16-bit integers, of which a register holds several, in the PTX of 9.0: each
element is taken out of what was loaded, and not out of every result computed from it."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
WARPS, BLOCK = 1, 64  # two elements a thread


@proton.jit
def tree(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """A table of four as choices, by two bits of each half of a byte."""
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    for half in tl.static_range(2):
        bits = x & 15 if half == 0 else x >> 4
        one, two = (bits & 1) == 1, (bits & 4) == 4
        found = tl.where(two, tl.where(one, 3.0, -2.5), tl.where(one, 0.25, 7.0))
        tl.store(out_ptr + half * BLOCK + at, found)


@proton.jit
def flags(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Arithmetic on bools."""
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    found = ((x & 3) == 2).to(tl.float32) + ((x ^ 9) > 40).to(tl.float32) * 2
    tl.store(out_ptr + at, found)
    tl.store(out_ptr + BLOCK + at, (((x | 2) >> 1) < 7).to(tl.float32))


@proton.jit
def equal_pairs(x_ptr, out_ptr, BLOCK: tl.constexpr):
    """Neighbours of which the condition is one, beside a use that needs no comparison."""
    at = tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    is_low = (at // 2).to(tl.int16) < 9
    tl.store(out_ptr + at, tl.where(is_low, 1.0, 2.0))
    tl.store(out_ptr + BLOCK + at, tl.where((x & 8) != 0, (x & 7).to(tl.float32), -1.0))


def of_tree(x: np.ndarray) -> np.ndarray:
    halves = np.concatenate([x & 15, x >> 4 & 15])
    return np.array([7.0, 0.25, -2.5, 3.0])[(halves & 1) + (halves >> 2 & 1) * 2]


def of_flags(x: np.ndarray) -> np.ndarray:
    return np.concatenate([((x & 3) == 2) + ((x ^ 9) > 40) * 2.0, ((x | 2) >> 1) < 7])


def of_pairs(x: np.ndarray) -> np.ndarray:
    low = np.where(np.arange(BLOCK) // 2 < 9, 1.0, 2.0)
    return np.concatenate([low, np.where(x & 8, x & 7, -1.0)])


REFERENCES: dict[Any, Any] = {tree: of_tree, flags: of_flags, equal_pairs: of_pairs}


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("dtype", ["int8", "uint8", "int16", "uint16"])
@pytest.mark.parametrize("kernel", REFERENCES, ids=lambda kernel: str(kernel.__name__))
def test_narrow_comparisons(kernel: Any, dtype: str, rng: np.random.Generator) -> None:
    limits = np.iinfo(dtype)
    x = rng.integers(limits.min, limits.max + 1, BLOCK, dtype=dtype)
    out = np.zeros(2 * BLOCK, np.float32)
    of = getattr(tl, dtype)
    found = kernel.warmup(of, tl.float32, BLOCK=BLOCK, target=HOPPER, num_warps=WARPS)
    ptx = found.asm["ptx"]
    run_on_arrays(ptx, (1, 1, 1), 32 * WARPS, found.shared, [x, out], rng)
    np.testing.assert_array_equal(out, REFERENCES[kernel](x).astype(np.float32))
    taken_out = len(re.findall(r"mov\.b32\s+\{%rs\d+, %rs\d+\}", ptx))  # of a register of two
    assert taken_out <= 1 + (kernel is equal_pairs), taken_out  # what is converted is a vector
