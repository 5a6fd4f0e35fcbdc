"""What programs ask of `triton.backends.nvidia.compiler`, `triton.backends.nvidia.driver` and
`triton._C.libtriton.nvidia`."""

from collections.abc import Callable

from proton.base.nvidia_tools import get_ptxas as get_ptxas
from proton.base.nvidia_tools import include_folders
from proton.base.nvidia_tools import library_folders as library_dirs  # noqa: F401
from proton.base.targets import GPUTarget
from proton.language import types as ty
from proton.layout.tensor_cores import K_BITS, MMA_COLUMNS, MMA_ROWS
from proton.testing import blas as cublas  # noqa: F401

_DotSize = tuple[int, int, int]


def min_dot_size(target: GPUTarget) -> Callable[[ty.dtype, ty.dtype], _DotSize]:
    """A function of the types of two matrices that gives the least (m, n, k) of their product that
    tensor cores take. `tl.dot` takes less, too: those products are multiply-adds."""

    def least(lhs: ty.dtype, rhs: ty.dtype) -> _DotSize:
        narrow = min(lhs.scalar.primitive_bitwidth, rhs.scalar.primitive_bitwidth)
        return MMA_ROWS, MMA_COLUMNS, K_BITS // narrow

    return least


include_dirs = include_folders()
