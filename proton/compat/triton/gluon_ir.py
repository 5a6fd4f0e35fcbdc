"""`triton._C.libtriton.gluon_ir`, as far as tests of Gluon ask it."""

from collections.abc import Sequence


def make_cga_layout(
    ctas_per_cga: Sequence[int], cta_split: Sequence[int], cta_order: Sequence[int]
) -> list[list[int]]:
    """The bases of a cluster's blocks over a tensor, which `cta_split` of them share along each
    dimension; the others along it hold copies. `cta_order` names the dimensions, fastest first."""
    rank = len(ctas_per_cga)
    bases = []
    for axis in cta_order:
        split = cta_split[axis]
        for bit in range(ctas_per_cga[axis].bit_length() - 1):
            step = 1 << bit if 1 << bit < split else 0
            bases.append([step if other == axis else 0 for other in range(rank)])
    return bases
