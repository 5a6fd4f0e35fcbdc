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


@proton.jit
def of_quotient(x_ptr, out_ptr, a, b, BLOCK: tl.constexpr):
    first = a // b * 16
    at = tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + 2048 + (first + at) % 64))


@proton.jit
def rows_of_quotient(x_ptr, out_ptr, rows, a, b):
    x = tl.make_tensor_descriptor(x_ptr, [rows, 16], [17, 1], [8, 16])
    at = tl.arange(0, 8)[:, None] * 16 + tl.arange(0, 16)[None, :]
    tl.store(out_ptr + at, x.load([a // b, 0]))


@pytest.mark.parametrize(("a", "b"), [(40, 16), (40, -16), (-40, 16), (-40, -16), (7, -1)])
def test_quotients_of_arguments(a: int, b: int, rng: np.random.Generator) -> None:
    """One of numbers from 0 on may be below 0: the divisor is."""
    quotient = int(np.trunc(a / b))
    x = rng.integers(0, 1 << 20, 2 * MIDDLE, np.int32)
    out = np.zeros(BLOCK, np.int32)
    of_quotient[(1,)](x, out, a, b, BLOCK)
    at = np.fmod(quotient * 16 + np.arange(BLOCK), 64)
    np.testing.assert_array_equal(out, x[MIDDLE + at])

    rows, block = x[: 16 * 17].reshape(16, 17).copy(), np.zeros((8, 16), np.int32)
    rows_of_quotient[(1,)](rows, block, 16, a, b)
    place = quotient + np.arange(8)
    is_inside = (place >= 0)[:, None]
    np.testing.assert_array_equal(block, np.where(is_inside, rows[place.clip(0), :16], 0))
