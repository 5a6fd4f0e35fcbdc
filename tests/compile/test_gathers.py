"""Tables that are read by what data says: nothing moves for it, and the results are right."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.emulation import Emulation

CODES = 32
FP32, INT8 = tl.pointer_type(tl.float32), tl.pointer_type(tl.uint8)


@proton.jit
def bisected(x, codes, out, n, BLOCK: tl.constexpr):
    """Of each element the last code that is below it, and that code, by halving."""
    place = tl.arange(0, BLOCK)
    values = tl.reshape(tl.load(x + place, place < n, other=0.0), (1, BLOCK))
    low, high = tl.zeros((1, BLOCK), tl.int32), tl.full((1, BLOCK), 31, tl.int32)
    for _ in range(5):
        middle = (low + high) // 2
        is_above = values > tl.load(codes + middle)
        low, high = tl.where(is_above, middle, low), tl.where(is_above, high, middle)
    found = tl.reshape(low + tl.load(codes + low), (BLOCK,))
    tl.store(out + place, found, place < n)


@proton.jit
def looked_up(x, codes, out, n, BLOCK: tl.constexpr):
    """The codes of bytes, which are rows of four: offsets lie in another layout than codes."""
    place = tl.arange(0, BLOCK)
    rows = tl.reshape(tl.load(x + place, place < n, other=0), (BLOCK // 4, 4))
    found = tl.load(codes + rows % 32) * 2.0
    tl.store(out + place, tl.reshape(found, (BLOCK,)), place < n)


def expected(kernel: Any, x: np.ndarray, codes: np.ndarray) -> np.ndarray:
    if kernel is looked_up:
        return codes[x % CODES] * np.float32(2)
    low = np.clip(np.searchsorted(codes, x, "left") - 1, 0, CODES - 2)
    return low.astype(np.float32) + codes[low]


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(("kernel", "element"), [(bisected, FP32), (looked_up, INT8)])
def test_tables_are_read_in_place(kernel: Any, element: Any, rng: np.random.Generator) -> None:
    types = element, FP32, FP32, 1024
    ptx = kernel.warmup(*types, 1024, target=GPUTarget("cuda", 90)).asm["ptx"]
    assert not re.search(r"bar\.sync|\.shared|shfl", ptx)
    n = 999
    x = rng.standard_normal(n).astype(np.float32)
    if element is INT8:
        x = rng.integers(0, 256, n, np.uint8)
    codes = np.sort(rng.standard_normal(CODES).astype(np.float32))
    out = np.zeros(n, np.float32)
    with Emulation(4, rng).installed():
        kernel[(1,)](x, codes, out, n, BLOCK=1024)
    np.testing.assert_array_equal(out, expected(kernel, x, codes))


@proton.jit
def unpacked_groups(x, starts, out, n, each, BLOCK: tl.constexpr, GROUPS: tl.constexpr):
    """Bytes of groups of `each` go to where their group's numbers start. What a row gathers for the
    next iteration is carried by the loop, as addresses of stores."""
    table = tl.load(starts + tl.arange(0, GROUPS))
    at = tl.program_id(0) * each * 4 + tl.arange(0, BLOCK)
    group = at // each
    place = tl.gather(table, tl.where(group < GROUPS, group, 0), 0) + at % each
    for _ in range(2):
        values = tl.load(x + at, at < n)
        tl.store(out + place, values, at < n)
        at += BLOCK
        group = at // each
        place = tl.gather(table, tl.where(group < GROUPS, group, 0), 0) + at % each


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("warps", [1, 4])
def test_addresses_that_are_gathered_are_where_data_is(
    warps: int, rng: np.random.Generator
) -> None:
    """They lie as the store takes them, two bytes a thread, and so does what the loop carries."""
    blocks = {"BLOCK": 256, "GROUPS": 32}
    kernel = unpacked_groups.warmup(
        INT8, tl.pointer_type(tl.int32), INT8, 1024, 64, **blocks, num_warps=warps,
        target=GPUTarget("cuda", 90),
    )  # fmt: skip
    assert "convert_layout" not in kernel.asm["ttgir"]
    assert "ld.global.b16" in kernel.asm["ptx"] or warps == 1
    each, n = 16, 500
    x, starts = rng.integers(0, 256, 512, np.uint8), 16 * rng.permutation(32).astype(np.int32)
    out = np.zeros(512, np.uint8)
    with Emulation(warps, rng).installed():
        unpacked_groups[(1,)](x, starts, out, n, each, **blocks)
    at = np.arange(n)
    want = np.zeros(512, np.uint8)
    want[starts[at // each] + at % each] = x[at]
    np.testing.assert_array_equal(out, want)


@proton.jit
def followed(next_ptr, out_ptr, n, BLOCK: tl.constexpr):
    """Where each place of a list leads to after some steps."""
    at = tl.arange(0, BLOCK)
    following, place = tl.load(next_ptr + at), at
    for _ in range(n):
        place = tl.gather(following, place, 0)
    tl.store(out_ptr + at, place)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("steps", [0, 3])
def test_indices_that_a_loop_carries_are_gathered(steps: int, rng: np.random.Generator) -> None:
    following = rng.integers(0, 256, 256, np.int32)
    out, place = np.zeros(256, np.int32), np.arange(256)
    with Emulation(4, rng).installed():
        followed[(1,)](following, out, steps, 256)
    for _ in range(steps):
        place = following[place]
    np.testing.assert_array_equal(out, place)


@proton.jit
def of_what_was_gathered(x_ptr, i_ptr, out_ptr, BLOCK: tl.constexpr):
    """Two gathers of one table each, the second of which is a result of the first."""
    at = tl.arange(0, BLOCK)
    x, i = tl.load(x_ptr + at), tl.load(i_ptr + at)
    first, other = tl.gather(x, i, 0), tl.gather(x, i ^ 1, 0)
    tl.store(out_ptr + at, tl.gather(first, i, 0) - tl.gather(first, i ^ 1, 0) + other)


@pytest.mark.usefixtures("no_assembler")
def test_tables_that_were_gathered_are_gathered(rng: np.random.Generator) -> None:
    x, i = rng.integers(-99, 99, 256, np.int32), rng.integers(0, 256, 256, np.int32)
    out = np.zeros(256, np.int32)
    with Emulation(4, rng).installed():
        of_what_was_gathered[(1,)](x, i, out, 256)
    first = x[i]
    np.testing.assert_array_equal(out, first[i] - first[i ^ 1] + x[i ^ 1])
