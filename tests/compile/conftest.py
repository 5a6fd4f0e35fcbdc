"""What wrappers of kernels would launch on a GPU, compiled without one."""

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import proton.language as tl
from kernels import arrays
from proton.backends.nvidia.target import GPUKernel
from proton.base.knobs import knobs
from proton.base.targets import GPUTarget
from proton.runtime.launch.jit import JITFunction
from proton.schedule import planning
from proton.transforms.hopper import describe_loads


@pytest.fixture
def by_groups(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Loops have no producer, and threads copy what pointers load: warp groups alternate."""
    monkeypatch.setattr(planning, "may_be_specialized", lambda *given: False)
    monkeypatch.setattr(describe_loads, "_candidates", lambda *given: [])
    with knobs.scope(always_compile=True):
        yield


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
