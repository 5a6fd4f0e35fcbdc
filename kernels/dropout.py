"""Dropout: elements become zero by chance, the same ones for the same seed.

Element e has word e % 4 of the random words of counter e // 4, whatever the block size and the
target, so a backward pass makes the mask again instead of reading it.
"""

# mypy: allow-untyped-defs, as the arguments of a kernel have no Python type

import numpy as np

import proton
import proton.language as tl
from kernels import arrays
from kernels.arrays import Array
from kernels.harness import Case, main

P, SEED = 0.5, 2011

_ROUNDS = 10
_MULTIPLIERS = np.uint64(0xD2511F53), np.uint64(0xCD9E8D57)
_KEY_STEPS = 0x9E3779B9, 0xBB67AE85
_LOW = np.uint64(0xFFFFFFFF)
_SCALE = np.float32(4.6566127342e-10)  # just below 2^-31


@proton.jit
def dropout_kernel(x_ptr, out_ptr, n, p, scale, seed, QUARTER: tl.constexpr):
    """Each program takes 4 QUARTER elements: four random words of each counter, interleaved."""
    first = tl.program_id(0) * QUARTER
    offsets = first * 4 + tl.arange(0, 4 * QUARTER)
    mask = offsets < n
    with proton.scope("load"):
        x = tl.load(x_ptr + offsets, mask=mask)
    with proton.scope("random"):
        a, b, c, d = tl.rand4x(seed, first + tl.arange(0, QUARTER))
        chance = tl.join(tl.join(a, c), tl.join(b, d)).reshape(4 * QUARTER)
    with proton.scope("store"):
        tl.store(out_ptr + offsets, tl.where(chance >= p, x * scale, 0.0), mask=mask)


def configuration(x: Array) -> dict[str, int]:
    """The options of `dropout` that suit x's device."""
    return {"block": 1024, "num_warps": 4} if arrays.on_gpu(x) else {"block": 4096}


def dropout(
    x: Array, out: Array | None = None, p: float = P, seed: int = SEED, **options: object
) -> Array:
    """`x` with each element 0 with probability p, and the others divided by 1 - p.

    x is contiguous, p lies in [0, 1). `options`: `block`, the elements of a program, and those of
    the launch (num_warps, ...).
    """
    out = arrays.empty_like(x) if out is None else out
    options = configuration(x) | options
    n, block = arrays.size(x), options.pop("block")
    grid = (proton.cdiv(n, block),)
    dropout_kernel[grid](x, out, n, p, 1 / (1 - p), seed, QUARTER=block // 4, **options)
    return out


def reference(
    x: np.ndarray, out: np.ndarray | None = None, p: float = P, seed: int = SEED
) -> np.ndarray:
    """The same by numpy, element by element to the bit."""
    words = _philox(np.arange(proton.cdiv(x.size, 4), dtype=np.uint64), seed)
    signed = words.T.ravel()[: x.size].view(np.int32)
    chance = np.where(signed < 0, ~signed, signed).astype(np.float32) * _SCALE
    kept = (chance >= np.float32(p)).reshape(x.shape)
    scaled = x * np.float32(1 / (1 - p))
    return np.multiply(scaled, kept, out=out, where=True) if out is not None else scaled * kept


def _philox(counter: np.ndarray, seed: int) -> np.ndarray:
    """The four random words of each counter (Philox-4x32-10), as a uint32 array of four rows."""
    zero = np.zeros_like(counter)
    c0, c1, c2, c3 = counter & _LOW, zero, zero, zero
    keys = [seed & 0xFFFFFFFF, seed >> 32 & 0xFFFFFFFF]
    for _ in range(_ROUNDS):
        left, right = c0 * _MULTIPLIERS[0], c2 * _MULTIPLIERS[1]
        k0, k1 = map(np.uint64, keys)
        c0, c1 = (right >> np.uint64(32)) ^ c1 ^ k0, right & _LOW
        c2, c3 = (left >> np.uint64(32)) ^ c3 ^ k1, left & _LOW
        keys = [(key + step) & 0xFFFFFFFF for key, step in zip(keys, _KEY_STEPS, strict=True)]
    return np.stack([c0, c1, c2, c3]).astype(np.uint32)


CASE = Case(
    name="dropout",
    shapes=lambda n: [(n,)],
    launch=dropout,
    reference=reference,
    # Torch has random numbers of its own: the same work, other elements.
    torch=lambda torch, out, x: torch.dropout(x, 0.5, True),
    tolerance=0.0,
    ugly=((1,), (3,), (1000,), (16384,), (16385,), (1_000_003,)),
    benchmark=((1 << 12,), (1 << 16,), (1 << 20,), (1 << 24,)),
)

if __name__ == "__main__":
    main(CASE)
