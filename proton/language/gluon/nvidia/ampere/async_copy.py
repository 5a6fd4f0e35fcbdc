"""Copies from global to shared memory that go on by themselves (PTX: `cp.async`)."""

from proton.language.function import builtin
from proton.language.gluon.core import absent


@builtin
def async_load(
    smem,
    pointer,
    mask=None,
    cache_modifier=None,
    eviction_policy=None,
    volatile=False,
    cache_policy=None,
):
    """Begins to copy what a block of pointers points to; zeros where the mask is false."""


@builtin
def mbarrier_arrive(mbarrier, increment_count=True):
    """Each thread arrives at a barrier when the copies that it has begun have ended. With
    `increment_count` the barrier waits for these besides those that it counts."""


@builtin
def commit_group():
    """The copies begun since the last one become a group."""


@builtin
def wait_group(num_outstanding=0):
    """Until at most so many of the newest groups are under way."""


async_copy_global_to_shared = absent(
    "async_copy_global_to_shared", "a name that Triton has removed", "call async_load"
)
