"""What AMD's GPUs have: there by name, and using it in a kernel is an error that says so."""

from typing import Any

from proton.language.gluon.core import OfOtherChip, absent

_WHAT, _INSTEAD = "an op of AMD's GPUs", "kernels run on NVIDIA's GPUs and on x86-64 CPUs"


class AMDMFMALayout(OfOtherChip):
    """A result of AMD's MFMA."""


class AMDWMMALayout(OfOtherChip):
    """A result of AMD's WMMA."""


class PartitionedSharedLayout(OfOtherChip):
    """Memory in partitions."""


class _Chip:
    """A chip, or one of its groups of ops: each name in it is an op that is not supported."""

    def __init__(self, name: str) -> None:
        self.__name__ = name

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        if name in ("async_copy", "tdm", "mbarrier", "cluster"):
            return _Chip(f"{self.__name__}.{name}")
        if name[:1].isupper():
            return globals().get(name, OfOtherChip)
        return absent(f"{self.__name__}.{name}", _WHAT, _INSTEAD)


cdna3, cdna4, cdna5, rdna3, rdna4, gfx1250, hint = (
    _Chip(name) for name in ("cdna3", "cdna4", "cdna5", "rdna3", "rdna4", "gfx1250", "hint")
)
slice = absent("amd.slice", _WHAT, _INSTEAD)
warp_pipeline_stage = absent("amd.warp_pipeline_stage", _WHAT, _INSTEAD)
