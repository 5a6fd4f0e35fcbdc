"""Times of work on the CPU, which has run when a call returns."""

import os
import time

import numpy as np

_UNKNOWN = 32 << 20  # bytes of a last-level cache that the system does not tell
_MOST = 256 << 20  # bytes that are written to empty it


class CPUTimer:
    """Measures by the wall clock."""

    def __init__(self) -> None:
        self._other = np.zeros(min(_MOST, 2 * last_level_cache()), np.uint8)

    def clear_cache(self) -> None:
        self._other += 1

    def mark(self) -> int:
        return time.perf_counter_ns()

    def elapsed_ms(self, begin: int, end: int) -> float:
        return (end - begin) / 1e6

    def synchronize(self) -> None:
        pass

    def release(self) -> None:
        pass


def last_level_cache() -> int:
    """Bytes of the processor's largest cache."""
    try:
        return os.sysconf("SC_LEVEL3_CACHE_SIZE") or _UNKNOWN
    except (OSError, ValueError):
        return _UNKNOWN
