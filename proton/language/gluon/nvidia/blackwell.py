"""What came with Blackwell (10.0): tensor memory, its dots, launches that go on. It is there by
name, and calling it in a kernel is an error that says so."""

from typing import ClassVar

from proton.language.gluon.core import ForeignModule, OfOtherChip, absent
from proton.language.gluon.nvidia.ampere import CachePolicy as CachePolicy
from proton.language.gluon.nvidia.ampere import FractionalEvictionPolicy as FractionalEvictionPolicy
from proton.language.gluon.nvidia.ampere import async_copy as async_copy
from proton.language.gluon.nvidia.ampere import mma_v2 as mma_v2
from proton.language.gluon.nvidia.hopper import async_store as async_store
from proton.language.gluon.nvidia.hopper import cluster as cluster
from proton.language.gluon.nvidia.hopper import fence_async_shared as fence_async_shared
from proton.language.gluon.nvidia.hopper import mbarrier as mbarrier
from proton.language.gluon.nvidia.hopper import tma as _tma

_WHAT = "an op of Blackwell (10.0)"
_INSTEAD = "on Hopper use hopper.warpgroup_mma, and TMA's async_load"
_OPS = (
    *("add2", "sub2", "mul2", "fma2", "min2", "max2", "allocate_tensor_memory"),
    *("tcgen05_commit", "tcgen05_copy", "tcgen05_mma", "tcgen05_mma_barrier_count"),
    *("tcgen05_mma_scaled", "tensor_memory_descriptor", "tensor_memory_descriptor_type"),
)


class TensorMemoryLayout(OfOtherChip):
    """Where a tensor lies in the memory of Blackwell's tensor cores."""

    FIELDS: ClassVar = {
        "block": None,
        "col_stride": None,
        "cga_layout": [],
        "two_ctas": False,
        "fp4_padded": False,
    }


class TensorMemoryScalesLayout(OfOtherChip):
    """Where the scales of a dot lie there."""

    FIELDS: ClassVar = {"cga_layout": []}


_OF_TMA = {name: of for name, of in vars(_tma).items() if not name.startswith("_")}
tma = ForeignModule(f"{__name__}.tma", _WHAT, _INSTEAD, _OF_TMA)
clc = ForeignModule(f"{__name__}.clc", _WHAT, _INSTEAD)
globals().update({name: absent(name, _WHAT, _INSTEAD) for name in _OPS})
