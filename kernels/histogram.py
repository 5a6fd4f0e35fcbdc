"""How often each of 0 to bins - 1 is in a vector of integers."""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main

BINS = 256


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


def configuration(x: Array) -> dict[str, int]:
    """The options of `histogram` that suit x's device."""
    if arrays.on_gpu(x):
        return {"block": 4096, "programs": 4 * arrays.SMS, "num_warps": 8}
    return {"block": 2048, "programs": 64}


def histogram(x: Array, out: Array | None = None, bins: int = BINS, **options: object) -> Array:
    """int32 counts of a contiguous array's values; those that lie in no bin are not counted.

    `options`: `block`, `programs`, and those of the launch (num_warps, ...).
    """
    if out is None:
        out = arrays.empty(x, (bins,), "int32")
    out[...] = 0
    options = configuration(x) | options
    n, block, programs = arrays.size(x), options.pop("block"), options.pop("programs")
    share = max(1, proton.cdiv(proton.cdiv(n, block), programs))
    histogram_kernel[(proton.cdiv(n, share * block),)](
        x,
        out,
        n,
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


CASE = Case(
    name="histogram",
    shapes=lambda n: [(n,)],
    prepare=lambda x: ((x * (BINS / 6) + BINS / 2).astype(np.int32),),  # some lie in no bin
    launch=histogram,
    reference=reference,
    torch=lambda torch, out, x: torch.bincount(x.clamp(0, BINS - 1), minlength=BINS),
    tolerance=0.0,
    ugly=((1,), (3,), (1000,), (16384,), (16385,), (1_000_003,)),
    benchmark=((1 << 12,), (1 << 16,), (1 << 20,), (1 << 24,)),
)

if __name__ == "__main__":
    main(CASE)
