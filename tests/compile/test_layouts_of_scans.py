"""Scans stay in the layout of what they scan, where a thread has a run of it, lanes continue that,
and not too many of them pass numbers on; elsewhere it is laid out so."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation


@proton.jit
def summed(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REV: tl.constexpr):
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    tl.store(y_ptr + places, tl.cumsum(tl.load(x_ptr + places), AXIS, reverse=REV))


@proton.jit
def multiplied(
    x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REV: tl.constexpr
):
    """What is scanned is computed from what was loaded, and the result is used further."""
    places = tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]
    x = tl.where(tl.load(x_ptr + places) > 0, 2, 1)
    y = tl.cumprod(x & 1, AXIS, reverse=REV) * 3 + tl.cumsum(x, AXIS, reverse=REV)
    tl.store(y_ptr + places, y)


@proton.jit
def last_of(value1, at1, value2, at2):
    """No function of which the order does not count."""
    taken = value2 >= 0
    return tl.where(taken, value2, value1), tl.where(taken, at2, at1)


@proton.jit
def carried(x_ptr, y_ptr, M: tl.constexpr, N: tl.constexpr, AXIS: tl.constexpr, REV: tl.constexpr):
    """The last number that is not negative, and where it stands."""
    rows, columns = tl.arange(0, M)[:, None], tl.arange(0, N)[None, :]
    places = rows * N + columns
    indices = tl.broadcast_to(columns if AXIS else rows, (M, N))
    pair = tl.load(x_ptr + places), indices
    value, index = tl.associative_scan(pair, AXIS, last_of, reverse=REV)
    tl.store(y_ptr + places, value * 1000 + index)


def _summed(x: np.ndarray) -> np.ndarray:
    return np.cumsum(x, -1)


def _multiplied(x: np.ndarray) -> np.ndarray:
    found = np.where(x > 0, 2, 1)
    return np.cumprod(found & 1, -1) * 3 + np.cumsum(found, -1)


def _carried(x: np.ndarray, places: np.ndarray) -> np.ndarray:
    at = np.maximum.accumulate(np.where(x >= 0, np.arange(x.shape[-1]), 0), -1)
    return np.take_along_axis(x, at, -1) * 1000 + places[at]


# Shapes, axes, warps, and whether the layout of the load is kept.
CASES = [
    (16, 64, 1, 4, True),
    (64, 64, 1, 4, True),
    (16, 128, 1, 4, True),
    (8, 32, 1, 1, True),
    (1, 512, 1, 4, True),  # lanes, then warps
    (1, 1024, 1, 4, False),  # a thread has two runs
    (64, 32, 0, 4, False),  # a thread's neighbours are columns
    (4, 4096, 1, 4, False),
    (32, 1, 0, 4, True),
]


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("reverse", [False, True])
@pytest.mark.parametrize(("rows", "columns", "axis", "warps", "is_kept"), CASES)
@pytest.mark.parametrize("kernel", [summed, multiplied, carried], ids=lambda k: str(k.__name__))
def test_scans_where_their_operands_are(
    kernel: Any, rows: int, columns: int, axis: int, warps: int, is_kept: bool, reverse: bool,
    rng: np.random.Generator,
) -> None:  # fmt: skip
    x = rng.integers(-3, 4, (rows, columns)).astype(np.int32)
    y = np.empty_like(x)
    with Emulation(warps, rng).installed():
        made = kernel[(1,)](x, y, M=rows, N=columns, AXIS=axis, REV=reverse, num_warps=warps)
    forward: Callable[..., np.ndarray] = np.flip if reverse else lambda array, _: array
    along, found = (forward(np.moveaxis(array, axis, -1), -1) for array in (x, y))
    if kernel is carried:
        expected = _carried(along, forward(np.arange(along.shape[-1]), -1))
    else:
        expected = (_summed if kernel is summed else _multiplied)(along)
    np.testing.assert_array_equal(found, expected)
    if kernel is summed:
        assert ("ttg.convert_layout" not in made.asm["ttgir"]) == is_kept


@pytest.mark.usefixtures("no_assembler")
def test_halves_are_scanned_in_runs_of_eight(rng: np.random.Generator) -> None:
    x = rng.integers(-8, 8, (32, 256)).astype(np.float16)
    y = np.empty_like(x)
    with Emulation(1, rng).installed():
        summed[(1,)](x, y, M=32, N=256, AXIS=1, REV=False, num_warps=1)
    np.testing.assert_array_equal(y, np.cumsum(x.astype(np.float32), 1).astype(np.float16))
