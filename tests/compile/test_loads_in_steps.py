"""What several elements of a thread share is loaded once, and what lies side by side in one access:
of the cases of tests/cpu/test_packed_loads.py the loads of a thread."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.emulation import Emulation
from tests.compile.ptx.machine import run_on_arrays
from tests.cpu.test_packed_loads import CASES, K, N, carried, expected, given

HOPPER = GPUTarget("cuda", 90)
# With two warps a thread has eight elements: of pairs that are four words, of fours two, of eights
# one. Rows that begin at odd places have one element an access; masks, and what stands for masked
# elements, that differ among the elements of a word as many as there are elements, or words. LLVM
# unrolls the loop: all of its loads are of one kind.
LOADS = [1, 4, 4, 1, 1, 1, 2, 8, 8, "b32", "v2.b32"]


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(("case", "loads"), [*zip(CASES, LOADS, strict=True)])
def test_what_shares_words_is_loaded_once(
    case: tuple[Any, ...], loads: int | str, rng: np.random.Generator
) -> None:
    kernel, dtype, each, mask, first, rows = case
    arguments = given(kernel, dtype, first, rows, rng)
    x, out, *numbers = arguments
    types = getattr(tl, np.dtype(dtype).name), tl.int16
    found = kernel.warmup(*types, *numbers, each, mask, target=HOPPER, num_warps=2)
    ptx = found.asm["ptx"]
    kinds = re.findall(r"ld\.global\.(\S+)", ptx)
    assert set(kinds) == {loads} if kernel is carried else len(kinds) == loads
    run_on_arrays(ptx, (1, 1, 1), 64, found.shared, arguments, rng)
    wanted = expected(kernel, x, *numbers, each, mask)
    np.testing.assert_array_equal(out.reshape(N, K), wanted)


@proton.jit
def first_bytes(x_ptr, out_ptr, EACH: tl.constexpr):
    k = tl.arange(0, 256)
    x_ptrs = (x_ptr + k // EACH).to(tl.pointer_type(tl.int8))
    tl.store(out_ptr + k, tl.load(x_ptrs))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("each", [1, 2, 4])
@pytest.mark.parametrize("dtype", [np.int8, np.int16, np.int64])
def test_pointers_that_become_those_of_bytes_are_as_far_apart(
    dtype: Any, each: int, rng: np.random.Generator
) -> None:
    x, out = rng.integers(-100, 100, 256, dtype), np.zeros(256, np.int8)
    with Emulation(1, rng).installed():
        first_bytes[(1,)](x, out, each, num_warps=1)
    np.testing.assert_array_equal(out, x[np.arange(256) // each].astype(np.int8))


@proton.jit
def halved(x_ptr, out_ptr, TYPE: tl.constexpr, AHEAD: tl.constexpr):
    k = tl.arange(0, 128)
    halves = (k.to(tl.uint8).to(TYPE) + AHEAD) // 2
    tl.store(out_ptr + k, tl.load(x_ptr + 20000 + halves.to(tl.int32)))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("ahead", [32704, 0])
def test_sums_of_narrow_numbers_wrap_around(ahead: int, rng: np.random.Generator) -> None:
    """From -32768 on halves are rounded up: pairs begin at odd places."""
    x, out = rng.integers(0, 100, 40000, np.int8), np.zeros(128, np.int8)
    with Emulation(1, rng).installed():
        halved[(1,)](x, out, tl.int16, ahead, num_warps=1)
    numbers = (np.arange(128) + ahead).astype(np.int16)
    np.testing.assert_array_equal(out, x[20000 + np.trunc(numbers / 2).astype(int)])


@proton.jit
def around_zero(x_ptr, out_ptr, n, TYPE: tl.constexpr):
    k = tl.arange(0, 256)
    x_ptrs = x_ptr + 1000 + k.to(TYPE) // 4
    total = tl.zeros((256,), tl.int32)
    for _ in range(n):
        total += tl.load(x_ptrs)
        x_ptrs += 8
    tl.store(out_ptr + k, total)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("dtype", [np.int8, np.int16])
def test_offsets_of_few_bits_have_signs_in_loops(dtype: Any, rng: np.random.Generator) -> None:
    x, out = rng.integers(0, 100, 2000, np.int32), np.zeros(256, np.int32)
    with Emulation(4, rng).installed():
        around_zero[(1,)](x, out, 3, getattr(tl, np.dtype(dtype).name), num_warps=4)
    first = 1000 + np.trunc(np.arange(256).astype(dtype) / 4).astype(int)
    np.testing.assert_array_equal(out, x[first] + x[first + 8] + x[first + 16])
