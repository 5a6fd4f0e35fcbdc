"""What wrappers of kernels would launch on a GPU, compiled without one."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import proton.language as tl
from kernels import arrays
from proton.backends.nvidia.target import GPUKernel
from proton.base.targets import GPUTarget
from proton.runtime.launch.jit import JITFunction


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
