"""What AMD's GPUs have: there by name, and using it in a kernel is an error that says so."""

import sys
from typing import ClassVar

from proton.language.gluon.core import ForeignModule, OfOtherChip, absent

_WHAT, _INSTEAD = "an op of AMD's GPUs", "kernels run on NVIDIA's GPUs and on x86-64 CPUs"


class AMDMFMALayout(OfOtherChip):
    """A result of AMD's MFMA."""

    FIELDS: ClassVar = dict.fromkeys(("version", "instr_shape", "transposed", "warps_per_cta")) | {
        "element_bitwidth": 32,
        "tiles_per_warp": None,
        "cga_layout": [],
    }


class AMDWMMALayout(OfOtherChip):
    """A result of AMD's WMMA."""

    FIELDS: ClassVar = dict.fromkeys(("version", "transposed", "warp_bases")) | {
        "reg_bases": [],
        "instr_shape": [16, 16, 16],
        "cga_layout": [],
        "rank": 2,
    }


class PartitionedSharedLayout(OfOtherChip):
    """Memory in partitions."""

    FIELDS: ClassVar = dict.fromkeys(
        ("num_partitions", "num_groups", "partition_dim", "partition_layout")
    )


_layouts = sys.modules[__name__]  # Triton's name of where layouts are
_LAYOUTS = {"PartitionedSharedLayout": PartitionedSharedLayout}


def _chip(name: str, *parts: str) -> ForeignModule:
    """A chip, with groups of its ops."""
    place = f"{__name__}.{name}"
    inner = {part: ForeignModule(f"{place}.{part}", _WHAT, _INSTEAD) for part in parts}
    return ForeignModule(place, _WHAT, _INSTEAD, {**inner, **_LAYOUTS})


cdna3, rdna3, rdna4, hint = (_chip(name) for name in ("cdna3", "rdna3", "rdna4", "hint"))
cdna4 = _chip("cdna4", "async_copy")
cdna5 = gfx1250 = _chip("cdna5", "async_copy", "cluster", "mbarrier", "tdm")
slice = absent("amd.slice", _WHAT, _INSTEAD)
warp_pipeline_stage = absent("amd.warp_pipeline_stage", _WHAT, _INSTEAD)
