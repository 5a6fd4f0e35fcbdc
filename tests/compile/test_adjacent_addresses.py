"""Elements side by side that are accessed one by one: one address, and constants behind it."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
WARPS = 2
_LOAD = re.compile(r"ld\.global\S* *%r\d+, *\[(%rd\d+)(?:\+(-?\d+))?\]")


@proton.jit
def triangle(x_ptr, out_ptr, n, stride, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    inside = (rows < n) & (columns < n)
    places = rows * stride + columns
    x = tl.load(x_ptr + places, mask=inside & (columns <= rows), other=-7)
    tl.store(out_ptr + places, x, mask=inside)


def compiled(multiple: int, dtype: Any = tl.int32) -> Any:
    """With strides that are a multiple of 16, or any."""
    arguments = dtype, dtype, 48, 64 + multiple, 8, 64
    return triangle.warmup(*arguments, target=HOPPER, num_warps=WARPS)


def test_a_mask_of_each_element_leaves_one_address_for_those_side_by_side() -> None:
    loads = _LOAD.findall(compiled(16).asm["ptx"])
    offsets: dict[str, list[int]] = {}
    for register, offset in loads:
        offsets.setdefault(register, []).append(int(offset or 0))
    assert len(loads) == 8 * 64 // (32 * WARPS)
    assert all(sorted(of) == [0, 4, 8, 12] for of in offsets.values()), offsets


def test_rows_that_begin_anywhere_have_an_address_for_each_element() -> None:
    """Between two of them a sum of 32 bits may wrap around."""
    loads = _LOAD.findall(compiled(1).asm["ptx"])
    assert len({register for register, _ in loads}) == len(loads) == 8


@pytest.mark.parametrize("multiple", [16, 1])
@pytest.mark.parametrize("dtype", [tl.int8, tl.int16, tl.int32, tl.int64], ids=str)
def test_each_element_is_read_and_written_where_it_is(
    dtype: Any, multiple: int, rng: np.random.Generator
) -> None:
    kernel = compiled(multiple, dtype)
    kind = np.dtype(str(dtype))
    least, most = np.iinfo(kind).min, np.iinfo(kind).max
    for n in (0, 16, 48, 64):
        stride = 64 + multiple * int(rng.integers(0, 3))
        x = rng.integers(least, most, (8, stride), kind, endpoint=True)
        out = rng.integers(least, most, (8, stride), kind, endpoint=True)
        rows, columns = np.indices(x.shape)
        inside = (rows < n) & (columns < n) & (columns < 64)
        expected = np.where(inside, np.where(columns <= rows, x, kind.type(-7)), out)
        given = [x, out, n, stride]
        run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32 * WARPS, kernel.shared, given, rng)
        np.testing.assert_array_equal(out, expected)


@proton.jit
def running(x_ptr, out_ptr, count, ROWS: tl.constexpr, COLUMNS: tl.constexpr, STRIDE: tl.constexpr):
    """Of blocks the sums of those ahead."""
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    places = rows * STRIDE + columns * 2
    x_ptrs, out_ptrs = x_ptr + places, out_ptr + 3 + rows * STRIDE + columns * 2
    total = tl.zeros((ROWS, COLUMNS), tl.int32)
    for _ in range(count):
        x = tl.load(x_ptrs)
        tl.store(out_ptrs, total)
        total += x
        x_ptrs += ROWS * STRIDE
        out_ptrs += ROWS * STRIDE


ROWS, COLUMNS = 64, 32
_MOVED = re.compile(r"mad\.wide\.s32 %rd\d+, %r\d+, 4, %rd\d+;")


def test_rows_a_constant_apart_have_one_address_in_a_loop(rng: np.random.Generator) -> None:
    stride, count = 2 * COLUMNS + 6, 3
    meta = {"ROWS": ROWS, "COLUMNS": COLUMNS, "STRIDE": stride}
    kernel = running.warmup(tl.int32, tl.int32, 3, **meta, target=HOPPER, num_warps=WARPS)
    assert len(_MOVED.findall(kernel.asm["ptx"])) == 2  # of each pointer one
    x, before = rng.integers(-9, 9, (2, count * ROWS * stride + 3), np.int32)
    out = before.copy()
    given = [x, out, count]
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32 * WARPS, kernel.shared, given, rng)
    rows, columns = np.arange(ROWS)[:, None], np.arange(COLUMNS)[None, :]
    places = np.arange(count)[:, None, None] * ROWS * stride + rows * stride + columns * 2
    before[places + 3] = np.cumsum(x[places], 0) - x[places]
    np.testing.assert_array_equal(out, before)


def test_rows_whose_offsets_wrap_around_have_an_address_each() -> None:
    """Of 32 bits: from the second half on they lie ahead of the pointer."""
    meta = {"ROWS": ROWS, "COLUMNS": COLUMNS, "STRIDE": 2**32 // ROWS}
    kernel = running.warmup(tl.int32, tl.int32, 3, **meta, target=HOPPER, num_warps=WARPS)
    assert len(_MOVED.findall(kernel.asm["ptx"])) >= ROWS // WARPS


@proton.jit
def hashed(x_ptr, out_ptr, count, STEPS: tl.constexpr, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    """Numbers that each step asks for twice."""
    rows, columns = tl.arange(0, ROWS)[:, None], tl.arange(0, COLUMNS)[None, :]
    places = rows * COLUMNS + columns
    for _ in tl.static_range(STEPS):
        places = (places ^ (places >> 1)) & 0xFFF
    x_ptrs = x_ptr + places
    total = tl.zeros((ROWS, COLUMNS), tl.int32)
    for _ in range(count):
        total += tl.load(x_ptrs)
        x_ptrs += 0x1000
    tl.store(out_ptr + rows * COLUMNS + columns, total)


@pytest.mark.usefixtures("no_assembler")
def test_an_address_of_many_steps_is_looked_at_once_for_each(rng: np.random.Generator) -> None:
    """By way of each use it would take 2**40 looks."""
    steps, count = 40, 2
    meta = {"ROWS": ROWS, "COLUMNS": COLUMNS, "target": HOPPER, "num_warps": WARPS}
    kernel = hashed.warmup(tl.int32, tl.int32, 3, steps, **meta)
    x, out = rng.integers(-9, 9, 0x1000 * count, np.int32), np.zeros((ROWS, COLUMNS), np.int32)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32 * WARPS, kernel.shared, [x, out, count], rng)
    places = np.arange(ROWS * COLUMNS)
    for _ in range(steps):
        places = (places ^ (places >> 1)) & 0xFFF
    expected = x.reshape(count, -1)[:, places].sum(0).reshape(out.shape)
    np.testing.assert_array_equal(out, expected)
