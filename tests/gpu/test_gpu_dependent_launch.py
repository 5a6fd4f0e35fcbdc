"""Programmatic dependent launch: a kernel that begins early sees all of the one before it."""

from typing import Any

import pytest

import proton
import proton.language as tl


@proton.jit
def slow(x, n, turns, BLOCK: tl.constexpr):
    """Lets the next kernel begin at once, and writes late."""
    tl.extra.cuda.gdc_launch_dependents()
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    value = tl.load(x + offsets, mask=offsets < n)
    for _ in range(turns):
        value = value * 0.5 + 1.0
    tl.store(x + offsets, value, mask=offsets < n)


@proton.jit
def after(x, y, n, BLOCK: tl.constexpr, WAITS: tl.constexpr):
    offsets = tl.program_id(0) * BLOCK + tl.arange(0, BLOCK)
    if WAITS:
        tl.extra.cuda.gdc_wait()
    tl.store(y + offsets, tl.load(x + offsets, mask=offsets < n), mask=offsets < n)
    tl.extra.cuda.gdc_launch_dependents()


def run(pdl: bool, waits: bool) -> tuple[Any, Any]:
    torch = pytest.importorskip("torch")
    n, block = 4001, 256
    x = torch.full((n,), 100.0, device="cuda")
    y = torch.zeros_like(x)
    grid = (proton.cdiv(n, block),)
    slow[grid](x, n, 1, BLOCK=block)
    after[grid](x, y, n, BLOCK=block, WAITS=waits, launch_pdl=pdl)
    torch.cuda.synchronize()
    x.fill_(100.0)
    y.fill_(0.0)
    slow[grid](x, n, 2_000_000, BLOCK=block)
    after[grid](x, y, n, BLOCK=block, WAITS=waits, launch_pdl=pdl)
    torch.cuda.synchronize()
    return x, y


@pytest.mark.parametrize("pdl", [False, True])
def test_what_was_written_is_seen(pdl: bool) -> None:
    x, y = run(pdl, waits=True)
    assert bool((y == x).all())
    assert float(y.max()) < 3


def test_it_begins_early() -> None:
    """Without the wait it reads what the slow kernel has not written yet."""
    _, y = run(True, waits=False)
    assert float(y.min()) == 100
    _, y = run(False, waits=False)
    assert float(y.max()) < 3
