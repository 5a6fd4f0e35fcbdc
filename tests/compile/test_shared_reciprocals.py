"""Elements that are divided by one number: which instructions, and what they give."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.emulation import Emulation

EACH = 8  # elements of a thread of 128
BLOCK = 128 * EACH
TARGET = GPUTarget("cuda", 90)
# Divisors whose reciprocals are no normal numbers, their neighbours, and those that have none.
BOUNDS = [2.0**126, np.nextafter(np.float32(2.0**126), np.float32(np.inf)), 2.0**127]
BOUNDS += [2.0**-126, np.nextafter(np.float32(2.0**-126), np.float32(0)), 2.0**-149]
DIVISORS = [*BOUNDS, 3.4e38, 1.0, 3.0, 1e-30, 0.0, np.inf, np.nan]


@proton.jit
def divided(x, y, out, n, BLOCK: tl.constexpr):
    """A block by one number, to which another block is added."""
    place = tl.arange(0, BLOCK)
    values = tl.load(x + place, place < n)
    tl.store(out + place, values / tl.load(y), place < n)


@proton.jit
def divided_and_added(x, y, out, n, BLOCK: tl.constexpr):
    place = tl.arange(0, BLOCK)
    values = tl.load(x + place)
    tl.store(out + place, values / n.to(tl.float32) + tl.load(y + place))


@proton.jit
def divided_by_rows(x, y, out, n, ROWS: tl.constexpr, COLUMNS: tl.constexpr):
    rows, columns = tl.arange(0, ROWS), tl.arange(0, COLUMNS)
    place = rows[:, None] * COLUMNS + columns[None, :]
    tl.store(out + place, tl.load(x + place) / tl.load(y + rows)[:, None])


@proton.jit
def in_a_loop(x, y, out, n, BLOCK: tl.constexpr, SUM: tl.constexpr):
    """By a number from memory, which nothing waits for ahead of the loop but a sum, if any."""
    divisor = tl.load(y)
    place = tl.arange(0, BLOCK)
    if SUM:
        divisor += tl.sum(tl.load(x + place), 0)
    for start in range(0, n, BLOCK):
        values = tl.load(x + start + place)
        tl.store(out + start + place, values / divisor)


def instructions(kernel: Any, *constants: Any) -> tuple[int, int, int]:
    """How often PTX divides, takes a reciprocal, and multiplies fp32."""
    types = (tl.pointer_type(tl.float32),) * 3
    ptx = kernel.warmup(*types, 4096, *constants, target=TARGET).asm["ptx"]
    forms = (r"div\.full\.f32", r"rcp\.approx\.ftz\.f32", r"mul\.rn\.f32|mul\.f32|fma\.rn\.f32")
    divisions, reciprocals, products = (len(re.findall(form, ptx)) for form in forms)
    return divisions, reciprocals, products


def test_a_number_has_one_reciprocal() -> None:
    assert instructions(divided, BLOCK) == (0, 1, 2 * EACH + 1)


def test_an_addition_is_fused_with_the_second_factor() -> None:
    assert instructions(divided_and_added, BLOCK) == (0, 1, 2 * EACH + 1)


def test_few_elements_are_divided() -> None:
    assert instructions(divided, 256) == (2, 0, 0)


def test_a_row_has_one_reciprocal() -> None:
    divisions, reciprocals, _ = instructions(divided_by_rows, 16, 256)
    assert divisions == 0
    assert 0 < reciprocals <= 16


def test_a_loop_does_not_wait_for_the_reciprocal_of_what_was_loaded() -> None:
    assert instructions(in_a_loop, BLOCK, False) == (EACH, 0, 0)
    assert instructions(in_a_loop, BLOCK, True) == (0, 1, 2 * EACH + 1)


def assert_quotients(got: np.ndarray, x: np.ndarray, y: np.ndarray) -> None:
    """Within 2 units in the last place (docs/math.md)."""
    with np.errstate(all="ignore"):
        exact = x.astype(np.float64) / y.astype(np.float64)
        rounded = exact.astype(np.float32)
        error = np.abs(got.astype(np.float64) - exact)
        allowed = 2 * np.spacing(np.abs(rounded)).astype(np.float64)
        right = (got == rounded) | (np.isnan(got) & np.isnan(rounded)) | (error <= allowed)
    assert right.all(), (x[~right], y[~right], got[~right], rounded[~right])


def dividends(rng: np.random.Generator, *shape: int) -> np.ndarray:
    """Of all sizes, with zeros, infinities and NaN."""
    x = rng.integers(0, 1 << 32, shape, np.uint32).view(np.float32)
    x.flat[:4] = 0.0, -0.0, np.inf, np.nan
    return x


@pytest.mark.parametrize("sign", [1, -1])
@pytest.mark.parametrize("divisor", DIVISORS)
def test_quotients_of_one_number(divisor: float, sign: int, rng: np.random.Generator) -> None:
    n = 1000
    x, y = dividends(rng, n), np.array([sign * divisor], np.float32)
    out = np.zeros_like(x)
    with Emulation(4, rng).installed():
        divided[(1,)](x, y, out, n, BLOCK=BLOCK)
    assert_quotients(out, x, np.broadcast_to(y, x.shape))


def test_quotients_of_rows(rng: np.random.Generator) -> None:
    x, y = dividends(rng, 16, 256), np.resize(np.array(DIVISORS, np.float32), 16)
    out = np.zeros_like(x)
    with Emulation(4, rng).installed():
        divided_by_rows[(1,)](x, y, out, 0, ROWS=16, COLUMNS=256)
    assert_quotients(out, x, np.broadcast_to(y[:, None], x.shape))
