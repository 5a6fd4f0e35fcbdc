"""The memory that a session's launches write their records to."""

import numpy as np
import pytest

from proton.runtime.cpu import recorder
from proton.runtime.cpu.recorder import FIRST_BYTES, SLAB_BYTES, HostSlab
from proton.trace.wire import BLOCK_ALIGNMENT


@pytest.fixture
def largest(monkeypatch: pytest.MonkeyPatch) -> int:
    """Bytes of the largest slabs: fewer than in sessions, since all of them is written."""
    monkeypatch.setattr(recorder, "SLAB_BYTES", SLAB_BYTES // 8)
    return SLAB_BYTES // 8


def test_parts_are_zero_aligned_and_nobody_elses(rng: np.random.Generator, largest: int) -> None:
    """... and a session that records little takes little memory: slabs grow with what is taken."""
    assert FIRST_BYTES <= 1 << 20, "or a session writes much before its first launch"
    slab, taken, slabs = HostSlab(), [], {}
    sizes = [*rng.integers(0, 100_000, 80), largest + 1, 0, 1, *rng.integers(0, 100_000, 20)]
    for number, size in enumerate(map(int, sizes)):
        part = slab.take(size)
        slabs.setdefault(id(slab.block), slab.block)
        assert part.size == size
        assert not part.any()
        assert size == 0 or part.ctypes.data % BLOCK_ALIGNMENT == 0
        part[:] = number % 255 + 1
        taken.append(part)
        room = sum(block.size for block in slabs.values())
        assert room <= 3 * sum(map(len, taken)) + FIRST_BYTES + len(slabs) * BLOCK_ALIGNMENT
    assert all((part == number % 255 + 1).all() for number, part in enumerate(taken))
    assert max(block.size for block in slabs.values()) == largest + 1 + BLOCK_ALIGNMENT
    assert len(slabs) < 12


def test_slabs_stop_growing(largest: int) -> None:
    """Nothing that was taken is kept, so that the test itself takes little."""
    slab, sizes = HostSlab(), []
    for _ in range(24):
        slab.take(largest // 4)
        sizes.append(slab.block.size)
    assert sizes == sorted(sizes)
    assert sizes[-1] == largest + BLOCK_ALIGNMENT
