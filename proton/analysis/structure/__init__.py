"""Which tensors of integers and pointers are affine in their indices, and which masks are boxes.

A tensor is *structured* when its element at (i0, i1, ...) is

    source + scalar + sum over d of place_d(i_d),  where
    place_d(i) = wrap_d(offset_d + i * stride_d) + sum over its gathers of index[i] * factor

with symbolic `scalar`, `offset_d`, `stride_d` and `factor` (`proton.analysis.scalar`), where
`source` is a scalar pointer (none for integers), wrap_d takes the remainder by `parent_d` where
dimension d has one, and `index` is a tensor of integers along that dimension. For example
`ptr + pid * 4 + arange(0, 4)` has source ptr, scalar pid * 4 and stride 1, and of
`ptr + rows[:, None] * n + arange(0, 4)[None, :]`, with `rows` from memory, dimension 0 gathers
rows by the factor n. The idea is triton-shared's pointer analysis.

A mask is a *box* when it is true for exactly the first `count_d` elements of each dimension d, or
for those among them from `start_d` on (`masks.py`). Loops and branches carry the parts of a
structure that they change, instead of tensors (`carried.py`). The rules for ops are in `rules.py`.

Remainders are taken as wrap-around: the dividend must not be negative (docs/limitations.md).
"""

from proton.analysis.structure.carried import CarriedGroup, groups_of
from proton.analysis.structure.core import StructureAnalysis
from proton.analysis.structure.masks import Mask, MaskBox
from proton.analysis.structure.values import CarriedPart, Dim, Part, Structure

__all__ = [
    "CarriedGroup",
    "CarriedPart",
    "Dim",
    "Mask",
    "MaskBox",
    "Part",
    "Structure",
    "StructureAnalysis",
    "groups_of",
]
