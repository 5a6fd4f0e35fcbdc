"""What is computed from ranges and constants alone is computed in the layout that takes it, however
long that takes: random numbers go through no memory on their way to what they are for."""

from typing import Any

import numpy as np
import pytest

import proton
import proton.language as tl
from tests.compile.ptx.emulation import Emulation

BLOCK, WARPS = 512, 4


@proton.jit
def dropped(x, y, seed, n, BLOCK: tl.constexpr):
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + places, mask=places < n)
    kept = tl.rand(seed, places) > 0.3
    tl.store(y + places, tl.where(kept, value / 0.7, 0.0), mask=places < n)


@proton.jit
def noisy(x, y, seed, n, BLOCK: tl.constexpr):
    """Gumbel noise, as samplers add it."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    noise = -tl.log(-tl.log(tl.rand(seed, places) * 0.98 + 0.01))
    tl.store(y + places, tl.load(x + places, mask=places < n) + noise, mask=places < n)


@proton.jit
def rounded(x, y, seed, n, BLOCK: tl.constexpr):
    """Rounding by chance, of a matrix's rows."""
    rows, columns = tl.arange(0, 4)[:, None], tl.arange(0, BLOCK // 4)[None, :]
    places = tl.program_id(0) * BLOCK + rows * (BLOCK // 4) + columns
    bits = tl.load(x + places, mask=places < n, other=0.0).to(tl.int32, bitcast=True)
    bits += tl.randint(seed, places) & 0xFFFF
    tl.store(y + places, (bits & 0xFFFF0000).to(tl.float32, bitcast=True), mask=places < n)


@proton.jit
def shared_by_two(x, y, seed, n, BLOCK: tl.constexpr):
    """Random numbers are stored, too, as bytes: in a layout of their own."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = tl.randint(seed, places)
    tl.store((y + n).to(tl.pointer_type(tl.int8)) + places, number.to(tl.int8))
    value = tl.load(x + places) + (number & 255).to(tl.float32)
    tl.store(y + places, value)


@proton.jit
def summed_up_too(x, y, seed, n, BLOCK: tl.constexpr):
    """A reduction takes what it is given."""
    places = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    number = tl.rand(seed, places)
    tl.store(y + places, tl.load(x + places) * number + tl.sum(number))


@pytest.mark.usefixtures("no_assembler")
@pytest.mark.parametrize(
    ("kernel", "is_moved"),
    [
        (dropped, True),
        (noisy, True),
        (rounded, True),
        (shared_by_two, False),
        (summed_up_too, False),
    ],
    ids=lambda value: str(getattr(value, "__name__", value)),
)
def test_where_values_of_ranges_are_computed(
    kernel: Any, is_moved: bool, rng: np.random.Generator
) -> None:
    size = 2 * BLOCK if not is_moved else 2 * BLOCK - 16  # the last part of a block is not there
    x = rng.standard_normal(3 * BLOCK, np.float32)
    given, outs = x.copy(), np.zeros((2, 3 * BLOCK), np.float32)
    with Emulation(WARPS, rng).installed():
        found = kernel[(2,)](x, outs[0], 7, size, BLOCK=BLOCK, num_warps=WARPS)
    kernel[(2,)](x, outs[1], 7, size, BLOCK=BLOCK)
    np.testing.assert_array_equal(x, given)
    np.testing.assert_allclose(outs[0], outs[1], rtol=1e-5, atol=1e-6)
    assert np.any(outs[0, :size] != x[:size])
    assert ("ttg.convert_layout" in found.asm["ttgir"]) != is_moved
