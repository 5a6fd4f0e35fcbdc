"""Registers of a thread that are known to be equal: their quotient is computed once, and what lies
at equal addresses is loaded once. A thread has four elements."""

import re
from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)
WARPS, BLOCK, PROGRAMS = 2, 256, 3
SIZE = BLOCK * PROGRAMS


@proton.jit
def of_channels(x_ptr, table_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    """A row of a channel, as Inductor writes it."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    x = tl.load(x_ptr + at)
    scale = tl.load(table_ptr + at // 196 % 8, None, eviction_policy="evict_last")
    tl.store(out_ptr + at, x * scale)


@proton.jit
def of_any_channels(x_ptr, table_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    """The same of sizes that are arguments, in 64 bits."""
    at = (tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)).to(tl.int64)
    x = tl.load(x_ptr + at)
    tl.store(out_ptr + at, x * tl.load(table_ptr + at // by % 8))


@proton.jit
def of_remainders(x_ptr, table_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    """Two dimensions out of one: a quotient is enough for both."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(table_ptr + at // 196 % 8) * (at % 196).to(tl.float32)
    rest = (at.to(tl.int64) % by).to(tl.float32) * (at.to(tl.uint32) % 28).to(tl.float32)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * (scale + rest))


@proton.jit
def masked(x_ptr, table_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(table_ptr + at // 64 % 8, mask=at < n, other=-3.0)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * scale)


@proton.jit
def of_odd_channels(x_ptr, table_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * tl.load(table_ptr + at // 49 % 8))


@proton.jit
def behind_zero(x_ptr, table_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    """Quotients of numbers that may be negative are rounded towards zero."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(table_ptr + (at - 6) // 4 % 8 + 7)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * scale)


@proton.jit
def masked_anywhere(x_ptr, table_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    """Of equal addresses some are masked."""
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(table_ptr + at // 64 % 8, mask=at % 3 != 0, other=0.5)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * scale)


@proton.jit
def changing(x_ptr, table_ptr, out_ptr, n, by, BLOCK: tl.constexpr):
    at = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    scale = tl.load(table_ptr + at // 64 % 8, volatile=True)
    tl.store(out_ptr + at, tl.load(x_ptr + at) * scale)


# Kernel: the loads of a thread besides that of x, and what a thread's scales are of.
AT = np.arange(SIZE)
N, BY = 592, 48
CASES: dict[Any, tuple[int, Any]] = {
    of_channels: (1, lambda t: t[AT // 196 % 8]),
    of_any_channels: (1, lambda t: t[AT // BY % 8]),
    of_remainders: (1, lambda t: t[AT // 196 % 8] * (AT % 196) + AT % BY * (AT % 28)),
    masked: (1, lambda t: np.where(AT < N, t[AT // 64 % 8], -3)),
    of_odd_channels: (4, lambda t: t[AT // 49 % 8]),
    behind_zero: (4, lambda t: t[np.fmod(np.fix((AT - 6) / 4), 8).astype(int) + 7]),
    masked_anywhere: (4, lambda t: np.where(AT % 3 != 0, t[AT // 64 % 8], 0.5)),
    changing: (4, lambda t: t[AT // 64 % 8]),
}


@pytest.mark.parametrize("kernel", CASES, ids=lambda kernel: str(kernel.__name__))
def test_equal_registers_are_computed_and_loaded_once(
    kernel: Any, rng: np.random.Generator
) -> None:
    loads, scales = CASES[kernel]
    f32 = tl.float32
    found = kernel.warmup(*(f32, f32, f32, N, BY), BLOCK=BLOCK, target=HOPPER, num_warps=WARPS)
    ptx = found.asm["ptx"]
    assert len(re.findall(r"ld\.(?:volatile\.)?global", ptx)) == loads + 1
    x, out = rng.random(SIZE, np.float32), np.zeros(SIZE, np.float32)
    table = rng.random(16, np.float32)
    given = [x, table, out, N, BY]
    run_on_arrays(ptx, (PROGRAMS, 1, 1), 32 * WARPS, found.shared, given, rng)
    np.testing.assert_allclose(out, x * scales(table).astype(np.float32), rtol=1e-6)
    if kernel is of_remainders:
        quotients = len(re.findall(r"mul\.hi|div\.[su]32", ptx))
        assert quotients == 3, quotients  # by 196, by 28, and by what is not known
