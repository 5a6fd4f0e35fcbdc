"""What came with Blackwell (10.0): tensor memory, its products, launches that go on. It is there by
name, and calling it in a kernel is an error that says so."""

from typing import Any

from proton.language.gluon.core import OfOtherChip, absent
from proton.language.gluon.nvidia.ampere import CachePolicy as CachePolicy
from proton.language.gluon.nvidia.ampere import FractionalEvictionPolicy as FractionalEvictionPolicy
from proton.language.gluon.nvidia.ampere import async_copy as async_copy
from proton.language.gluon.nvidia.ampere import mma_v2 as mma_v2
from proton.language.gluon.nvidia.hopper import async_store as async_store
from proton.language.gluon.nvidia.hopper import cluster as cluster
from proton.language.gluon.nvidia.hopper import fence_async_shared as fence_async_shared
from proton.language.gluon.nvidia.hopper import mbarrier as mbarrier

_WHAT, _INSTEAD = "an op of Blackwell (10.0)", "on Hopper use hopper.warpgroup_mma, and TMA's async_load"
_OPS = (
    *("add2", "sub2", "mul2", "fma2", "min2", "max2", "allocate_tensor_memory"),
    *("tcgen05_commit", "tcgen05_copy", "tcgen05_mma", "tcgen05_mma_barrier_count"),
    *("tcgen05_mma_scaled", "tensor_memory_descriptor", "tensor_memory_descriptor_type"),
)


class TensorMemoryLayout(OfOtherChip):
    """Where a tensor lies in the memory of Blackwell's tensor cores."""


class TensorMemoryScalesLayout(OfOtherChip):
    """Where the scales of a product lie there."""


class _Part:
    """A module whose ops are of Blackwell, beside those of another one."""

    def __init__(self, name: str, ops: tuple[str, ...], others: Any = None) -> None:
        self.__name__, self._others = name, others
        for op in ops:
            setattr(self, op, absent(f"{name}.{op}", _WHAT, _INSTEAD))

    def __getattr__(self, name: str) -> Any:
        others = self.__dict__.get("_others")
        if others is None or name.startswith("__"):
            raise AttributeError(name)
        return getattr(others, name)


def _parts() -> dict[str, Any]:
    from proton.language.gluon.nvidia.hopper import tma

    return {
        "tma": _Part("tma", ("async_gather", "async_scatter"), tma),
        "clc": _Part("clc", ("try_cancel", "load_result")),
    }


globals().update(_parts())
globals().update({name: absent(name, _WHAT, _INSTEAD) for name in _OPS})
