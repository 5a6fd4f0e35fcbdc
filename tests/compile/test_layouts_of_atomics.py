"""Atomics on neighbours are side by side in a warp, as wide as an instruction, whatever else a
kernel accesses; those at any place lie as what they add."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
SIZE, WARPS = 2048, 4


@proton.jit
def sums(x_ptr, out_ptr, at_ptr, SIZE: tl.constexpr):
    """Of 16 bits, 8 of which a thread loads at once."""
    at = tl.arange(0, SIZE)
    x = tl.load(x_ptr + at).to(out_ptr.dtype.element_ty)
    tl.atomic_add(out_ptr + at, x * 2)


@proton.jit
def twice(x_ptr, out_ptr, at_ptr, SIZE: tl.constexpr):
    """Two elements of a program are added to each number."""
    at = tl.arange(0, SIZE)
    tl.atomic_add(out_ptr + at % (SIZE // 2), tl.load(x_ptr + at))


@proton.jit
def largest(x_ptr, out_ptr, at_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.atomic_max(out_ptr + at, tl.load(x_ptr + at).to(tl.int32), sem="relaxed")


@proton.jit
def anywhere(x_ptr, out_ptr, at_ptr, SIZE: tl.constexpr):
    at = tl.arange(0, SIZE)
    tl.atomic_add(out_ptr + tl.load(at_ptr + at), tl.load(x_ptr + at).to(tl.float32))


# Kernel, type of the results: elements of a thread that lie side by side.
CASES = [
    *((sums, "float32", 4), (sums, "float16", 8), (sums, "int32", 1), (largest, "int32", 1)),
    *((twice, "float16", 8), (anywhere, "float32", 8)),
]


@pytest.mark.parametrize(("kernel", "element", "width"), CASES)
def test_atomics_have_no_gaps(
    kernel: Any, element: str, width: int, rng: np.random.Generator
) -> None:
    types = tl.float16, getattr(tl, element), tl.int32
    made = kernel.warmup(*types, SIZE=SIZE, target=HOPPER, num_warps=WARPS)
    line = next(line for line in made.asm["ttgir"].splitlines() if "tt.atomic_rmw" in line)
    name = line.split("tensor<2048x!tt.ptr")[1].split("#")[1].split(">")[0]
    layout = next(x for x in made.asm["ttgir"].splitlines() if x.startswith(f"#{name} = "))
    first_lane = layout.split("]], [[")[1].split("]")[0]
    assert int(first_lane) == width
    x = rng.integers(-100, 100, SIZE).astype(np.float16)
    at, out = rng.integers(0, 64, SIZE).astype(np.int32), np.zeros(SIZE, element)
    run_on_arrays(made.asm["ptx"], (1, 1, 1), 32 * WARPS, made.shared, [x, out, at], rng)
    wanted = np.zeros(SIZE, element)
    if kernel is anywhere:
        np.add.at(wanted, at, x.astype(element))
    elif kernel is twice:
        wanted[: SIZE // 2] = x.reshape(2, -1).sum(0)
    else:
        wanted = (x * 2 if kernel is sums else x.clip(0)).astype(element)
    np.testing.assert_array_equal(out, wanted)
