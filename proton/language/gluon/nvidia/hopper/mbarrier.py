"""Barriers in shared memory that wait for bytes, too."""

from proton.language.function import builtin
from proton.language.gluon.nvidia.ampere.mbarrier import MBarrierLayout as MBarrierLayout
from proton.language.gluon.nvidia.ampere.mbarrier import allocate_mbarrier as allocate_mbarrier
from proton.language.gluon.nvidia.ampere.mbarrier import init as init
from proton.language.gluon.nvidia.ampere.mbarrier import invalidate as invalidate
from proton.language.gluon.nvidia.ampere.mbarrier import wait as wait


@builtin
def expect(mbarrier, bytes_per_cta=None, pred=True, *, from_cta=None):
    """One arrival; the phase ends when so many bytes have come, too."""


@builtin
def arrive(mbarrier, *, count=1, pred=True, from_cta=None):
    """`count` arrivals for all threads that run this, behind a barrier of theirs, if `pred`
    holds."""
