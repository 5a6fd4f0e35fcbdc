"""What came with Hopper (9.0): TMA, barriers that count bytes, dots of warp groups."""

from proton.language.function import builtin
from proton.language.gluon.core import warpgroup_mma_accumulator as warpgroup_mma_accumulator
from proton.language.gluon.nvidia.ampere import CachePolicy as CachePolicy
from proton.language.gluon.nvidia.ampere import FractionalEvictionPolicy as FractionalEvictionPolicy
from proton.language.gluon.nvidia.ampere import async_copy as async_copy
from proton.language.gluon.nvidia.ampere import mma_v2 as mma_v2
from proton.language.gluon.nvidia.hopper import cluster as cluster
from proton.language.gluon.nvidia.hopper import mbarrier as mbarrier
from proton.language.gluon.nvidia.hopper import tma as tma
from proton.language.gluon.types import (
    warpgroup_mma_accumulator_type as warpgroup_mma_accumulator_type,
)


@builtin
def fence_async_shared(cluster=False):
    """What the threads wrote to shared memory is seen by TMA and by tensor cores."""


@builtin
def async_store(dst, value, mbarrier):
    """A tensor is stored to shared memory, of all blocks of a cluster, and its bytes arrive at the
    barrier. A program is one block: it is stored when the threads go on."""


@builtin
def warpgroup_mma_init(value):
    """A tensor as the accumulator of asynchronous dots."""


@builtin
def warpgroup_mma(
    a,
    b,
    acc,
    *,
    use_acc=True,
    precision=None,
    max_num_imprecise_acc=None,
    is_async=False,
):
    """The dot of `a`, in registers or shared memory, and `b`, in shared memory, by four warps
    together, added to `acc` where `use_acc` holds. With `is_async` it goes on, and its result is
    what `warpgroup_mma_wait` gives."""


@builtin
def warpgroup_mma_wait(num_outstanding=0, deps=None):
    """Until at most so many dots are under way: those of `deps`, as tensors, of several as a
    tuple."""
