"""How often each of 0 to bins - 1 is in a vector of integers."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type
from typing import Any

import numpy as np

import proton
import proton.language as tl

BINS, BLOCK, PROGRAMS = 256, 2048, 64


@proton.jit
def histogram_kernel(x_ptr, out_ptr, n, share, bins, BLOCK: tl.constexpr, BINS: tl.constexpr):
    """Each program counts in `share` neighbouring blocks, and adds what it found to the result."""
    first = tl.program_id(0) * share
    counts = tl.zeros((BINS,), dtype=tl.int32)
    with proton.scope("count"):
        for block in range(first, first + share):
            offsets = block * BLOCK + tl.arange(0, BLOCK)
            mask = offsets < n
            x = tl.load(x_ptr + offsets, mask=mask, other=0)
            counts += tl.histogram(x, BINS, mask=mask)
    with proton.scope("add"):
        at = tl.arange(0, BINS)
        tl.atomic_add(out_ptr + at, counts, mask=at < bins)


def histogram(
    x: np.ndarray,
    out: np.ndarray | None = None,
    bins: int = BINS,
    programs: int = PROGRAMS,
    block: int = BLOCK,
    **options: Any,
) -> np.ndarray:
    """int32 counts of a contiguous array's values; those that lie in no bin are not counted.

    `options` are of the launch (num_warps, ...).
    """
    if out is None:
        out = np.empty(bins, np.int32)
    out.fill(0)
    share = max(1, proton.cdiv(proton.cdiv(x.size, block), programs))
    histogram_kernel[(proton.cdiv(x.size, share * block),)](
        x,
        out,
        x.size,
        share,
        bins,
        BLOCK=block,
        BINS=proton.next_power_of_2(bins),
        **options,
    )
    return out


def reference(x: np.ndarray, out: np.ndarray | None = None, bins: int = BINS) -> np.ndarray:
    """The same by numpy."""
    counts = np.bincount(x[(x >= 0) & (x < bins)], minlength=bins)
    if out is None:
        return counts.astype(np.int32)
    out[...] = counts
    return out
