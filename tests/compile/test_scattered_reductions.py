"""Reductions whose results lanes share: right, whatever is reduced; and with fewer shuffles."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays
from tests.draws import times

HOPPER = GPUTarget("cuda", 90)
TYPES = {np.float32: tl.float32, np.float16: tl.float16, np.int32: tl.int32, np.int64: tl.int64}


@proton.jit
def multiplied(a0, b0, a1, b1):
    """Complex numbers."""
    return a0 * a1 - b0 * b1, a0 * b1 + b0 * a1


@proton.jit
def reductions(x_ptr, y_ptr, whole_ptr, where_ptr, M: tl.constexpr, N: tl.constexpr,
               AXIS: tl.constexpr, KIND: tl.constexpr):  # fmt: skip
    m, n = tl.arange(0, M), tl.arange(0, N)
    at, left = m[:, None] * N + n[None, :], tl.arange(0, M if AXIS == 1 else N)
    x = tl.load(x_ptr + at)
    if KIND == 0:
        tl.store(whole_ptr + left, tl.sum(x, AXIS) * 2)
    elif KIND == 1:
        value, where = tl.max(x, AXIS, return_indices=True)
        tl.store(whole_ptr + left, value)
        tl.store(where_ptr + left, where)
    elif KIND == 2:
        a, b = tl.reduce((x, tl.load(y_ptr + at)), AXIS, multiplied)
        tl.store(whole_ptr + left, 2 * a + b)
    else:
        tl.atomic_add(whole_ptr + left, tl.sum(x, AXIS) + 1)


def expected(kind: int, x: np.ndarray, y: np.ndarray, axis: int) -> tuple[np.ndarray, np.ndarray]:
    if kind == 2:
        product = np.prod(x + 1j * y, axis)
        return 2 * product.real + product.imag, np.zeros(1)
    if kind == 1:
        return x.max(axis), x.argmax(axis)
    return (x.sum(axis) * 2 if kind == 0 else x.sum(axis) + 1), np.zeros(1)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("dtype", TYPES, ids=lambda dtype: str(dtype.__name__))
@pytest.mark.parametrize("kind", range(4), ids=["sum", "argmax", "product", "atomic"])
def test_reductions_are_those_of_numpy(dtype: Any, kind: int, rng: np.random.Generator) -> None:
    if kind == 3 and dtype is np.int64:
        pytest.skip("as for 32 bits")
    for _ in range(times(3)):
        m, n = (int(size) for size in rng.choice([1, 2, 4, 16, 32, 64], 2))
        axis, warps = int(rng.integers(2)), int(rng.choice([1, 2, 4]))
        x = rng.integers(-3, 4, (m, n)).astype(dtype)
        y = np.zeros_like(x)
        if kind == 2:  # 1, -1, i and -i, whose products are exact
            is_real, x = rng.integers(2, size=(m, n)), rng.choice([-1, 1], (m, n))
            x, y = (x * is_real).astype(dtype), (x * (1 - is_real)).astype(dtype)
        whole, where = expected(kind, x, y, axis)
        found, places = np.zeros(whole.shape, dtype), np.zeros(whole.shape, np.int32)
        kernel = reductions.warmup(
            TYPES[dtype], TYPES[dtype], TYPES[dtype], tl.int32, m, n, axis, kind,
            num_warps=warps, target=HOPPER,
        )  # fmt: skip
        run_on_arrays(
            kernel.asm["ptx"], (1, 1, 1), 32 * warps, kernel.shared, [x, y, found, places], rng
        )
        what = (m, n, axis, warps)
        assert (found == whole.astype(dtype)).all(), what
        if kind == 1:
            assert (places == where).all(), what


def test_half_of_the_results_is_exchanged_each_time() -> None:
    """A lane has 4 of 16 columns, and 8 lanes are along rows."""
    kernel = reductions.warmup(
        tl.float32, tl.float32, tl.float32, tl.int32, 64, 16, 0, 0, num_warps=1, target=HOPPER
    )
    # 2 + 1, one by which both lanes have the last, and one to where it is stored. A butterfly takes
    # 12.
    assert kernel.asm["ptx"].count("shfl") == 5
