"""Splits of what a thread holds both halves of: no exchange between threads, in the code of 9.0."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
ROWS, COLUMNS, WARPS = 16, 32, 2


@proton.jit
def block(ptr, M: tl.constexpr, N: tl.constexpr):
    return ptr + tl.arange(0, M)[:, None] * N + tl.arange(0, N)[None, :]


@proton.jit
def pack(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """Two numbers of 4 bits in a byte."""
    x = tl.load(block(x_ptr, M, N)).to(tl.uint8).reshape(M, N // 2, 2)
    left, right = x.split()
    tl.store(block(out_ptr, M, N // 2), (left << 4 | (right & 15)).to(tl.float32))


@proton.jit
def rotate(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """Neighbours are complex numbers."""
    x, y = tl.load(block(x_ptr, M, N)), tl.load(block(y_ptr, M, N))
    real, imaginary = tl.split(x.reshape(M, N // 2, 2))
    cos, sin = tl.split(y.reshape(M, N // 2, 2))
    both = tl.join(real * cos - imaginary * sin, real * sin + imaginary * cos)
    tl.store(block(out_ptr, M, N), both.reshape(M, N))


@proton.jit
def butterfly(x_ptr, y_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """Two levels of sums and differences in a loop."""
    x = tl.load(block(x_ptr, M, N))
    for _ in range(3):
        even, odd = tl.split(x.reshape(M, N // 2, 2))
        x = tl.join(even + odd, even - odd).reshape(M, N) * 0.5
    tl.store(block(out_ptr, M, N), x)


def packed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    whole = x.astype(np.uint8)
    return (whole[:, ::2] << 4 | whole[:, 1::2] & 15).astype(np.float32)


def rotated(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    product = x.view(np.complex64) * y.view(np.complex64)
    return product.view(np.float32)


def transformed(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    for _ in range(3):
        even, odd = x[:, ::2], x[:, 1::2]
        x = np.stack([even + odd, even - odd], -1).reshape(x.shape) * np.float32(0.5)
    return x


REFERENCES: dict[Any, Any] = {pack: packed, rotate: rotated, butterfly: transformed}


@pytest.mark.parametrize("kernel", REFERENCES, ids=lambda kernel: str(kernel.__name__))
def test_splits_within_threads(kernel: Any, rng: np.random.Generator) -> None:
    x, y = (rng.integers(0, 200, (ROWS, COLUMNS)).astype(np.float32) for _ in range(2))
    expected = REFERENCES[kernel](x, y)
    out = np.zeros_like(expected)
    found = kernel.warmup(*[tl.float32] * 3, M=ROWS, N=COLUMNS, target=HOPPER, num_warps=WARPS)
    run_on_arrays(found.asm["ptx"], (1, 1, 1), 32 * WARPS, found.shared, [x, y, out], rng)
    np.testing.assert_allclose(out, expected, rtol=1e-6)
    before, split, _ = found.asm["ttgir"].partition('"tt.split"')
    assert split
    assert "ttg.convert_layout" not in before
