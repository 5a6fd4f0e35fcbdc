"""Blocks of several layouts are combined: the fewest bytes move; right either way."""

import re

import numpy as np

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
M, N, WARPS = 64, 64, 4


@proton.jit
def rotated(x_ptr, y_ptr, angle_ptr, out_ptr, M: tl.constexpr, N: tl.constexpr):
    """Pairs of neighbours by an angle each; and the gradient of the angle, in its place."""
    m, half, n = tl.arange(0, M)[:, None], tl.arange(0, N // 2), tl.arange(0, N)
    angle = tl.load(angle_ptr + m * (N // 2) + half).to(tl.float32)
    cos, sin = tl.cos(angle * 0.5), tl.sin(angle * 0.5)
    x0, x1 = tl.split(tl.load(x_ptr + m * N + n).to(tl.float32).reshape(M, N // 2, 2))
    y0, y1 = tl.split(tl.load(y_ptr + m * N + n).to(tl.float32).reshape(M, N // 2, 2))
    r0, r1 = x0 * cos - x1 * sin, x0 * sin + x1 * cos
    tl.store(out_ptr + m * N + n, tl.join(r0, r1).reshape(M, N))
    tl.store(angle_ptr + m * (N // 2) + half, (y1 * r0 - y0 * r1).to(tl.float16))


def test_angles_move_to_what_they_rotate(rng: np.random.Generator) -> None:
    f16, f32 = tl.float16, tl.float32
    kernel = rotated.warmup(f16, f16, f16, f32, M, N, target=HOPPER, num_warps=WARPS)
    moved = re.findall(r'"ttg\.convert_layout".*-> tensor<(\w+)', kernel.asm["ttgir"])
    assert moved == ["64x32xf16", "64x32xf16"], "the angle and its gradient, as they lie in memory"
    x, y = (rng.integers(-4, 5, (M, N)).astype(np.float16) for _ in range(2))
    angle = rng.uniform(-2, 2, (M, N // 2)).astype(np.float16)
    cos, sin = np.cos(angle.astype(np.float32) / 2), np.sin(angle.astype(np.float32) / 2)
    out = np.zeros((M, N), np.float32)
    x0, x1, y0, y1 = (z[:, n::2].astype(np.float32) for z in (x, y) for n in (0, 1))
    r0, r1 = x0 * cos - x1 * sin, x0 * sin + x1 * cos
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32 * WARPS, kernel.shared, [x, y, angle, out], rng)
    np.testing.assert_allclose(out, np.stack((r0, r1), -1).reshape(M, N), rtol=1e-3, atol=1e-3)
    np.testing.assert_allclose(angle, y1 * r0 - y0 * r1, rtol=1e-2, atol=1e-2)
