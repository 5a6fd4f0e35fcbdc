"""Times of work on the CPU, which has run when a call returns."""

import time

import numpy as np

from proton.runtime.cpu.caches import last_level_cache

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
