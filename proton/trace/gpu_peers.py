"""Clocks of several GPUs of one process, by what the GPUs told each other.

Each GPU lies on the host's axis by pairs of its timer and the host's clock. Two of them told each
other their timers more directly, at the beginning and at the end: then the pairs of the second are
made of those and of the line of the first, so that times of the two agree as well as that was,
from the first of these pairs to the last.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from operator import attrgetter

import numpy as np

from proton.trace.gpu_clock import device_line
from proton.trace.model import GPUClock


@dataclass(frozen=True)
class PeerPair:
    """The timers of the first GPU and of another one at one moment, and how sure that is."""

    first_ns: int
    other_ns: int
    error_ns: float


def aligned(
    clocks: Sequence[GPUClock], first: int, told: Mapping[int, Sequence[PeerPair]]
) -> list[GPUClock]:
    """The clocks of a session; those of the GPUs in `told` by that of the first, if they talked to
    it more than once: one pair does not say how the timers drift apart."""
    by = next((clock for clock in clocks if clock.device == first), None)
    if by is None:
        return list(clocks)
    return [
        _by_peer(clock, by, told[clock.device]) if len(told.get(clock.device, ())) > 1 else clock
        for clock in clocks
    ]


def _by_peer(own: GPUClock, first: GPUClock, pairs: Sequence[PeerPair]) -> GPUClock:
    line, own_line = device_line(first, 0), device_line(own, 0)
    error = max(pair.error_ns for pair in pairs)
    timer, of_first = (
        np.array([of(pair) for pair in pairs], np.int64)
        for of in (attrgetter("other_ns"), attrgetter("first_ns"))
    )
    host = line.ns(of_first.astype(np.uint64))
    apart = np.abs(host - own_line.ns(timer.astype(np.uint64)))
    uncertain = [of.error_ns + float(of.residual_ns.max()) for of in (line, own_line)]
    return replace(
        own,
        timer_ns=timer,
        host_ns=host,
        error_ns=min(uncertain[0] + error, uncertain[1] + float(apart.max())),
        peer=first.device,
        peer_error_ns=error + 1,  # as host times are rounded
    )
