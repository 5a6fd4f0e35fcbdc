"""What the wrappers of kernels choose for a GPU fits one: they are compiled, and not launched."""

from typing import cast

import numpy as np
import pytest

from kernels.harness import Case
from proton.backends.nvidia.target import GPUKernel
from tests.cpu.test_torch_kernels import places

SIZES = {1: [(1,), (1 << 22,)], 2: [(1, 1), (4096, 256), (4099, 1025), (1024, 4096)]}
SIZES[3] = [(1, 1, 1), (1024, 1024, 1024)]


class Zeros:
    """In the place of random numbers: memory that is never touched."""

    def standard_normal(self, shape: tuple[int, ...], dtype: type[np.floating]) -> np.ndarray:
        return np.zeros(shape, dtype)


@pytest.mark.parametrize("case, sizes", places(SIZES), ids=lambda p: getattr(p, "name", str(p)))
def test_registers_and_shared_memory_suffice(
    launched: list[tuple[tuple[int, ...], GPUKernel]],
    case: Case,
    sizes: tuple[int, ...],
) -> None:
    case.launch(*case.inputs(cast(np.random.Generator, Zeros()), *sizes))
    assert launched
    for grid, kernel in launched:
        assert kernel.n_spills == 0
        assert kernel.shared <= 48 << 10, "two programs and more share a multiprocessor"
        assert kernel.metadata["num_warps"] in (4, 8, 16)
        assert all(grid)
        assert max(grid[1:], default=0) <= 65535
