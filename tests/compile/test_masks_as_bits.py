"""Masks of more accesses than a thread has predicates: computed by the first op that asks, bits of
words for those behind it."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from proton.backends.nvidia import compiler
from proton.backends.nvidia.machine_code import loads_of
from proton.base.targets import GPUTarget
from tests.compile.ptx.machine import run_on_arrays

HOPPER = GPUTarget("cuda", 90)


@proton.jit
def moved(x_ptr, at_ptr, out_ptr, n, COUNT: tl.constexpr):
    """Elements that lie anywhere, where they are wanted."""
    at = tl.arange(0, COUNT)
    is_in = at < n
    found = tl.load(at_ptr + at, is_in, other=0)
    is_wanted = is_in & (found >= 0)
    x = tl.load(x_ptr + found, is_wanted, other=-1)
    tl.store(out_ptr + at * 3, x + at, is_wanted)


@proton.jit
def moved_if(x_ptr, at_ptr, out_ptr, n, first, COUNT: tl.constexpr):
    """The same mask in one of two branches, in a loop behind them, and at the end."""
    at = tl.arange(0, COUNT)
    found = tl.load(at_ptr + at)
    is_wanted = (found >= 0) & (at < n)
    x = at
    if first > 0:
        x += tl.load(x_ptr + found, is_wanted, other=-1)
    else:
        x -= tl.load(x_ptr + found * 2, is_wanted, other=-3)
    for number in range(first):
        x += tl.load(x_ptr + found + number, is_wanted, other=-1)
    tl.store(out_ptr + at * 3, x, is_wanted)


def _drawn(rng: np.random.Generator, count: int) -> tuple[np.ndarray, np.ndarray]:
    """Values and indices, of which some are negative."""
    x = rng.integers(-100, 100, 3 * count).astype(np.int64)
    return x, rng.integers(-count // 3, count, count).astype(np.int32)


@pytest.mark.parametrize(("count", "warps"), [(256, 1), (1024, 1), (2048, 1), (2048, 2)])
def test_elements_that_several_ops_ask_for(
    count: int, warps: int, rng: np.random.Generator, monkeypatch: pytest.MonkeyPatch
) -> None:
    """8, 32, 64 and 32 of a thread, whose loads wait for no predicate, but for some of 64."""
    monkeypatch.setattr(compiler, "with_loads_together", lambda ptx: ptx)
    given = tl.int64, tl.int32, tl.int64, count - 5
    with proton.knobs.scope(always_compile=True):
        kernel = moved.warmup(*given, COUNT=count, target=HOPPER, num_warps=warps)
    (x, at), n = _drawn(rng, count), count - int(rng.integers(0, count))
    out = np.zeros(3 * count, np.int64)
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32 * warps, kernel.shared, [x, at, out, n], rng)
    is_wanted = (np.arange(count) < n) & (at >= 0)
    wanted = np.where(is_wanted, x[np.maximum(at, 0)] + np.arange(count), 0)
    np.testing.assert_array_equal(out[::3], wanted)
    loads = loads_of(kernel.asm["cubin"], kernel.metadata["symbol"])
    assert loads.waits == (3 if count > 1024 * warps else 2)


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize("first", [-1, 0, 1, 3])
def test_masks_of_branches_and_loops(first: int, rng: np.random.Generator) -> None:
    of: dict[str, Any] = {"COUNT": 1024, "target": HOPPER, "num_warps": 1}
    kernel = moved_if.warmup(tl.int64, tl.int32, tl.int64, 1000, 2, **of)
    (x, at), out = _drawn(rng, 1024), np.zeros(3 * 1024, np.int64)
    numbers = [x, at, out, 1000, first]
    run_on_arrays(kernel.asm["ptx"], (1, 1, 1), 32, kernel.shared, numbers, rng)
    index, is_wanted = np.arange(1024), (at >= 0) & (np.arange(1024) < 1000)
    safe = np.maximum(at, 0)
    wanted = index + x[safe] if first > 0 else index - x[2 * safe]
    wanted = wanted + sum((x[safe + number] for number in range(first)), np.zeros_like(x[safe]))
    np.testing.assert_array_equal(out[::3], np.where(is_wanted, wanted, 0))
