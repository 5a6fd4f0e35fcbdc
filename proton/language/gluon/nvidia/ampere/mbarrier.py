"""Barriers in shared memory, which go from phase to phase when as many have arrived as they count
(PTX: `mbarrier`)."""

from typing import Any

from proton.language import core, types
from proton.language.function import DeviceFunction, builtin, constexpr_function
from proton.language.gluon import core as gluon
from proton.language.gluon.layouts import SwizzledSharedLayout

_int64 = types.int64


class MBarrierLayout(SwizzledSharedLayout):
    """The layout of barriers: one behind the other."""

    def __init__(self, cga_layout: Any = None) -> None:
        super().__init__(1, 1, 1, [0], cga_layout or [])

    @staticmethod
    @constexpr_function
    def multicta(num_ctas: int, two_cta: bool = False) -> "MBarrierLayout":
        """That of barriers of a cluster, each block's own."""
        count = num_ctas // 2 if two_cta else num_ctas
        bases = [[1 << bit] for bit in range(count.bit_length() - 1)]
        return MBarrierLayout([[0]] * bool(two_cta) + bases)


@DeviceFunction
def allocate_mbarrier(batch: Any = None, two_ctas: Any = False):
    """Memory for a barrier, or for `batch` of them, of which `.index(i)` takes one."""
    shape = (1,) if batch is None else (batch, 1)
    core.static_assert(not two_ctas, "barriers of two blocks of a cluster are not supported")
    return gluon.allocate_shared_memory(_int64, shape, MBarrierLayout())


@builtin
def init(mbarrier, count):
    """A barrier that waits for `count` arrivals in a phase."""


@builtin
def invalidate(mbarrier):
    """The barrier is ordinary memory again."""


@builtin
def wait(mbarrier, phase, pred=True, deps=()):
    """Until the phase of this parity has ended, if `pred` holds. `deps` are what the barrier says
    of."""


@builtin
def arrive(mbarrier, *, pred=True, from_cta=None):
    """One arrival for all threads that run this, behind a barrier of theirs, if `pred` holds."""
