"""How the clock of CPU records relates to time, and what a record costs, measured here and now.

The cost is measured with a kernel of a loop around one scope, with and without records: the
difference per iteration is what a slice adds to whatever encloses it, and the mean length of
the slices themselves, which hold one store, is what it adds to its own duration.
"""

import ctypes
import functools
import platform
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.backends.cpu import llvm
from proton.backends.cpu.options import CPUOptions
from proton.backends.cpu.target import CPU, CPUKernel
from proton.base.errors import ProfileError
from proton.compiler import compile_function
from proton.language import types as ty
from proton.language.signature import Signature
from proton.language.standard import calibration
from proton.runtime.cpu.support_code import Once, object_of
from proton.trace import wire
from proton.trace.instrumentation import Instrumentation

ITERATIONS = 2000
REPEATS = 15
PAIR_TRIES = 50
_CAPACITY = 256
# A clock's steps, from so many reads. Differences are at least three multiples of one, and the mean
# of their cosines is so close to 1; it is largest within so many of the tenths below.
READS, LEAST_STEP_NS, MOST_STEP_NS = 257, 3.0, 150.0
LEAST_MULTIPLES, ALIKE, PEAK = 3, 0.9, 10

_CLOCK_IR = """
define i64 @proton_clock() {
  %registers = call { i32, i32 } asm sideeffect "rdtsc", "={ax},={dx},~{memory}"()
  %low = extractvalue { i32, i32 } %registers, 0
  %high = extractvalue { i32, i32 } %registers, 1
  %wide_low = zext i32 %low to i64
  %wide_high = zext i32 %high to i64
  %shifted = shl i64 %wide_high, 32
  %now = or i64 %wide_low, %shifted
  ret i64 %now
}
"""


@dataclass(frozen=True)
class ClockPair:
    """The record clock and `time.perf_counter_ns()` at one moment, and how sure that is."""

    ticks: int
    host_ns: int
    error_ns: float


@dataclass(frozen=True)
class Calibration:
    """The cost of recording one slice, ns: to the slice around it, and to itself; and the steps
    that the clock goes in, 0 where they are less than LEAST_STEP_NS."""

    slice_cost_ns: float
    edge_cost_ns: float
    step_ns: float


def check_machine() -> None:
    """Raises ProfileError where kernels cannot read a clock."""
    if platform.machine() not in ("x86_64", "AMD64"):
        raise ProfileError(
            f"profiling inside CPU kernels needs the time stamp counter of x86-64, and this is "
            f"{platform.machine()}; host scopes work everywhere"
        )


@Once
def _clock() -> Any:
    check_machine()
    return ctypes.CFUNCTYPE(ctypes.c_uint64)(_clock_code().address)


@Once
def _clock_code() -> llvm.LinkedCode:
    return llvm.linker().link(object_of(_CLOCK_IR), "proton_clock")


def read_clock() -> Callable[[], int]:
    """The reader of the clock of CPU records."""
    function: Callable[[], int] = _clock()
    return function


def clock_pair() -> ClockPair:
    """A pair, read as closely together as the host can: the best of some tries."""
    clock, best = _clock(), None
    for _ in range(PAIR_TRIES):
        before = time.perf_counter_ns()
        ticks = clock()
        after = time.perf_counter_ns()
        if best is None or after - before < best[0]:
            best = after - before, ticks, (before + after) // 2
    assert best is not None
    return ClockPair(best[1], best[2], max(1.0, best[0] / 2))


def _compiled(instrumented: bool) -> CPUKernel:
    signature = Signature({"out_ptr": ty.pi32_t, "n": ty.int32})
    records = Instrumentation(capacity=_CAPACITY, placement="program").on_cpu()
    options = CPUOptions(instrumentation=records if instrumented else None)
    return compile_function(CPU, calibration, signature, options)


def _prototype(extras: list[str]) -> Any:
    extra = [ctypes.c_int32 if name == "thread" else ctypes.c_void_p for name in extras]
    return ctypes.CFUNCTYPE(
        None,
        ctypes.c_void_p,
        *[ctypes.c_int32] * 4,
        *[ctypes.c_int64] * 2,
        *extra,
    )


@functools.cache
def calibrate() -> Calibration:
    """Measured once a process: the median of some repetitions."""
    ns_per_tick = _ns_per_tick()
    plain, instrumented = _compiled(False), _compiled(True)
    assert instrumented.profile is not None
    block = instrumented.profile.block
    out = np.zeros(1, np.int32)
    buffer = np.zeros(block.bytes + wire.BLOCK_ALIGNMENT, np.uint8)
    base = buffer.ctypes.data + (-buffer.ctypes.data % wire.BLOCK_ALIGNMENT)
    extras = {"profile": base, "thread": 0}
    costs, lengths = [], []
    for _ in range(REPEATS):
        without = _time(plain, out, {})
        costs.append((_time(instrumented, out, extras) - without) / ITERATIONS)
        start = base - buffer.ctypes.data + block.segments
        records = buffer[start : start + block.segment_bytes].view(block.schema.dtype)
        lengths.append(_mean_length(records) * ns_per_tick)
    step = step_of(_reads(), LEAST_STEP_NS / ns_per_tick, MOST_STEP_NS / ns_per_tick)
    return Calibration(
        max(0.0, float(np.median(costs)) * ns_per_tick),
        max(0.0, float(np.median(lengths))),
        step * ns_per_tick,
    )


def _reads() -> np.ndarray:
    """Times of the clock, with some work between two that is not always the same."""
    clock = read_clock()
    return np.array([(clock(), sum(range(n % 16)))[0] for n in range(READS)], np.uint64)


def step_of(times: np.ndarray, least: float, most: float) -> float:
    """The period, in ticks, that all differences of times are multiples of; 0 where none from
    `least` to `most` is. It is the longest one at which their phases are: the mean of cos(2 pi d /
    period) is 1 for multiples, and near 0 for what is spread at random (Rayleigh's test of a known
    direction; Mardia and Jupp, "Directional Statistics", 1999, section 6.3)."""
    gaps = np.diff(times).astype(np.int64)
    gaps = gaps[(gaps >= 0) & (gaps < 4 * most)]
    if not gaps.any():
        return 0.0
    # From one to the next the phase of the longest difference changes by a tenth.
    rates = np.arange(1 / most, 1 / least, 0.1 / gaps.max())
    alike = np.cos(2 * np.pi * gaps[:, None] * rates).mean(0)
    for first in np.flatnonzero(alike > ALIKE):
        best = first + int(alike[first : first + PEAK].argmax())
        if np.unique(np.rint(gaps * rates[best])).size >= LEAST_MULTIPLES:
            return float(1 / rates[best])
    return 0.0


def _mean_length(records: np.ndarray) -> float:
    return float(np.median(records["end"] - records["start"]))


def _time(kernel: CPUKernel, out: np.ndarray, extras: dict[str, int]) -> int:
    """Ticks of one run."""
    names = kernel.metadata["extras"]
    function = _prototype(names)(kernel.code.address)
    clock = _clock()
    start = clock()
    function(out.ctypes.data, ITERATIONS, 1, 1, 1, 0, 1, *[extras[name] for name in names])
    return int(clock() - start)


def _ns_per_tick() -> float:
    first = clock_pair()
    time.sleep(0.002)
    last = clock_pair()
    return (last.host_ns - first.host_ns) / max(1, last.ticks - first.ticks)
