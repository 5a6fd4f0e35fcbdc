"""What the wrappers of kernels choose for a GPU fits one: they are compiled, and not launched."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import proton.language as tl
from proton.backends.nvidia.target import GPUKernel
from proton.base.targets import GPUTarget
from proton.kernels import Case, arrays
from proton.runtime.jit import JITFunction
from tests.cpu.test_torch_kernels import places

SIZES = {1: [(1,), (1 << 24,)], 2: [(1, 1), (4096, 256), (4099, 1025), (1024, 4096)]}
SIZES[3] = [(1, 1, 1), (1024, 1024, 1024)]


@pytest.fixture
def launched(monkeypatch: pytest.MonkeyPatch) -> list[tuple[tuple[int, ...], GPUKernel]]:
    """(grid, kernel) of each launch of a wrapper, which takes numpy arrays for those of a GPU."""
    found = []

    def getitem(kernel: JITFunction, grid: tuple[int, ...]) -> Callable[..., None]:
        def launch(*args: Any, **options: Any) -> None:
            types = [getattr(tl, a.dtype.name) if isinstance(a, np.ndarray) else a for a in args]
            compiled = kernel.warmup(*types, target=GPUTarget("cuda", 90), **options)
            assert isinstance(compiled, GPUKernel)
            found.append((grid, compiled))

        return launch

    monkeypatch.setattr(JITFunction, "__getitem__", getitem)
    monkeypatch.setattr(arrays, "on_gpu", lambda array: True)
    return found


@pytest.mark.parametrize("case, sizes", places(SIZES), ids=lambda p: getattr(p, "name", str(p)))
def test_registers_and_shared_memory_suffice(
    rng: np.random.Generator,
    launched: list[tuple[tuple[int, ...], GPUKernel]],
    case: Case,
    sizes: tuple[int, ...],
) -> None:
    case.launch(*case.inputs(rng, *sizes))
    assert launched
    for grid, kernel in launched:
        assert kernel.n_spills == 0
        assert kernel.shared <= 48 << 10, "two programs and more share a multiprocessor"
        assert kernel.metadata["num_warps"] in (4, 8, 16)
        assert all(grid)
        assert max(grid[1:], default=0) <= 65535
