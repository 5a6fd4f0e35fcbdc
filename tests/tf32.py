"""fp32 rounded to tf32 by arithmetic, and numbers that tell ways of rounding apart."""

import numpy as np

_FRACTION = 10  # bits
_LEAST = -126  # the exponent of numbers that are not normal


def nearest_tf32(values: np.ndarray) -> np.ndarray:
    """fp32 with so many bits of fraction: the nearest, of two the even one. What is not finite
    stays."""
    with np.errstate(all="ignore"):
        exact = values.astype(np.float64)
        step = np.exp2(np.maximum(np.frexp(exact)[1] - 1, _LEAST) - float(_FRACTION))
        rounded = np.copysign(np.rint(exact / step) * step, exact).astype(np.float32)
    return np.where(np.isfinite(values), rounded, values)


def hard_numbers(rng: np.random.Generator, shape: tuple[int, ...]) -> np.ndarray:
    """fp32 of any bits, ties, what is beside them, numbers that are not normal, and no numbers."""
    count = int(np.prod(shape))
    bits = rng.integers(0, 1 << 32, count, np.uint32)
    kind = np.arange(count) % 8
    tie = (bits & np.uint32(0xFFFFE000)) | np.uint32(0x1000)
    bits = np.where(kind == 1, tie, bits)
    bits = np.where(kind == 2, tie + np.uint32(1), bits)
    bits = np.where(kind == 3, tie - np.uint32(1), bits)
    bits = np.where(kind == 4, bits & np.uint32(0x807FFFFF), bits)  # not normal
    bits = np.where(kind == 5, bits | np.uint32(0x007FFFFF), bits)  # into the next power of two
    some = np.array([0, -0.0, np.inf, -np.inf, np.nan, 3.4028235e38, -3.4028235e38, 1e-45],
                    np.float32)  # fmt: skip
    found = bits.view(np.float32).reshape(shape)
    found.reshape(-1)[: len(some)] = some
    return found
