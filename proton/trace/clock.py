"""From ticks to nanoseconds: the least-squares line through a run's clock pairs."""

from dataclasses import dataclass

import numpy as np

from proton.trace.check import require
from proton.trace.model import Clock

MAX_NS = 1 << 61  # 73 years: sums and differences of two such times still fit in 64 bits


@dataclass(frozen=True, kw_only=True)
class ClockLine:
    """ns = slope * (ticks - ticks_zero) + ns_zero, in ns since the run's origin.

    `pair_ticks` (relative to ticks_zero) and `residual_ns` say how far each pair lies off it.
    """

    ticks_zero: int
    slope: float
    ns_zero: float
    pair_ticks: np.ndarray
    residual_ns: np.ndarray
    error_ns: float

    def ns(self, ticks: np.ndarray) -> np.ndarray:
        """Times in whole ns since the origin."""
        return to_ns(ticks, np.uint64(self.ticks_zero), self.slope, self.ns_zero)

    def error(self, ticks: np.ndarray) -> np.ndarray:
        """How far each time may be off: the uncertainty of a pair, and the larger residual of
        the two pairs around it."""
        relative = (ticks - np.uint64(self.ticks_zero)).view(np.int64)
        after = np.searchsorted(self.pair_ticks, relative)
        last = self.residual_ns.size - 1
        around = self.residual_ns[np.minimum(after, last)]
        return self.error_ns + np.maximum(around, self.residual_ns[np.clip(after - 1, 0, last)])


def to_ns(
    ticks: np.ndarray,
    zero: np.ndarray | np.uint64,
    slope: np.ndarray | float,
    offset: np.ndarray | float,
) -> np.ndarray:
    """slope * (ticks - zero) + offset in whole ns since the run's origin."""
    # lossless: the wrapped difference of two u64 is the signed one
    time = np.rint((ticks - zero).view(np.int64) * slope + offset)
    if time.size:
        far = float(np.abs(time).max())
        rule = "a record must lie within 73 years of the run's start"
        require(far < MAX_NS, "clock", rule, f"{far:.3g} ns")
    return time.astype(np.int64)


def check_clock(clock: Clock) -> None:
    """The pairs are pairs, oldest first."""
    pairs = f"{clock.ticks.size} ticks, {clock.host_ns.size} host times"
    require(clock.ticks.size == clock.host_ns.size, "clock", "ticks and host_ns must pair", pairs)
    for name in ("error_ns", "slice_cost_ns", "edge_cost_ns"):
        value = getattr(clock, name)
        good = bool(np.isfinite(value)) and 0 <= value < MAX_NS
        require(good, "clock", f"{name} must be a time in ns", value)
    for name in ("ticks", "host_ns"):
        column = getattr(clock, name)
        require(bool((column[1:] >= column[:-1]).all()), "clock", f"{name} must not fall", column)


def fit(clock: Clock, origin_ns: int, slope: float | None = None) -> ClockLine:
    """The line through the pairs; needs two of them at different ticks, or one and a slope."""
    check_clock(clock)
    needed = "two pairs are needed" if slope is None else "a pair is needed"
    require(clock.ticks.size >= (2 if slope is None else 1), "clock", needed, clock.ticks.size)
    ticks = (clock.ticks - clock.ticks[0]).astype(np.float64)
    first_ns = int(clock.host_ns[0])
    elapsed = (clock.host_ns - first_ns).astype(np.float64)
    if slope is None:
        centred = ticks - ticks.mean()
        spread = float(centred @ centred)
        require(spread > 0, "clock", "the pairs must differ in ticks", clock.ticks[0])
        slope = float(centred @ (elapsed - elapsed.mean())) / spread
        require(slope > 0, "clock", "host time must rise with ticks", f"{slope} ns a tick")
    offset = float(elapsed.mean()) - slope * float(ticks.mean())
    return ClockLine(
        ticks_zero=int(clock.ticks[0]),
        slope=slope,
        ns_zero=offset + (first_ns - origin_ns),
        pair_ticks=(clock.ticks - clock.ticks[0]).view(np.int64),
        residual_ns=np.abs(slope * ticks + offset - elapsed),
        error_ns=clock.error_ns,
    )
