"""Offsets that are divided, of an argument that a launch knows to be 0 or above, or negative:
division rounds to zero."""

import numpy as np
import pytest

import proton
import proton.language as tl

MIDDLE, BLOCK = 2048, 1024


@proton.jit
def wrapped(x_ptr, out_ptr, first, columns, padding, BLOCK: tl.constexpr):
    """Rows of `columns` numbers, and of `padding` ones behind these."""
    at = first + tl.arange(0, BLOCK)
    for step in range(2):
        inside = at % columns < columns - padding
        place = at - at // columns * padding
        x = tl.load(x_ptr + 2048 + place, inside & (place < 1600), -1)
        y = tl.load(x_ptr + 2048 + at % columns)
        tl.store(out_ptr + step * 2 * BLOCK + tl.arange(0, BLOCK), x)
        tl.store(out_ptr + step * 2 * BLOCK + BLOCK + tl.arange(0, BLOCK), y)
        at += BLOCK


@pytest.mark.parametrize("padding", [0, 16])
@pytest.mark.parametrize("columns", [32, 64, 48])
def test_offsets_of_either_sign(columns: int, padding: int, rng: np.random.Generator) -> None:
    x = rng.integers(0, 1 << 20, 2 * MIDDLE, np.int32)
    for first in (0, 16, 5, -16, -32, -64, -128, -7):
        out = np.zeros((2, 2, BLOCK), np.int32)
        wrapped[(1,)](x, out, first, columns, padding, BLOCK)
        at = first + np.arange(2 * BLOCK).reshape(2, BLOCK)
        rest = np.fmod(at, columns)
        place = at - (at - rest) // columns * padding
        inside = (rest < columns - padding) & (place < 1600)
        wanted = np.where(inside, x[(MIDDLE + place) * inside], -1), x[MIDDLE + rest]
        np.testing.assert_array_equal(out, np.stack(wanted, 1), f"first = {first}")
