"""What wrappers of kernels would launch on a GPU, compiled without one."""

import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import proton.language as tl
from kernels import arrays
from proton.backends.nvidia import compiler
from proton.backends.nvidia.cubin import Cubin
from proton.backends.nvidia.machine_code import GlobalLoads
from proton.backends.nvidia.target import GPUKernel
from proton.base.targets import GPUTarget
from proton.runtime.launch.jit import JITFunction
from proton.schedule import planning
from proton.transforms.hopper import describe_loads
from tests.draws import IS_FUZZ


@pytest.fixture
def by_groups(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """Loops have no producer, and threads copy what pointers load: warp groups alternate. Other
    tests, for which kernels are compiled otherwise, find none of these."""
    monkeypatch.setattr(planning, "may_be_specialized", lambda *given: False)
    monkeypatch.setattr(describe_loads, "_candidates", lambda *given: [])
    monkeypatch.setenv("PROTON_CACHE_DIR", str(tmp_path))


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


class NoAssembler:
    """In the place of ptxas, which takes most of the time and changes no order of PTX."""

    def __init__(self, target: GPUTarget, *_: str) -> None:
        # With so many registers nothing is assembled again for the sake of another number.
        self.registers = target.facts.most_registers(1, target.facts.sm_threads // 2)

    def __enter__(self) -> "NoAssembler":
        return self

    def __exit__(self, *_: Any) -> None:
        pass

    def feed(self, ptx: str) -> None:
        pass

    def finish(self) -> Cubin:
        return Cubin(b"", registers=self.registers, spills=0, frame=0, log="")


@pytest.fixture
def no_assembler(monkeypatch: pytest.MonkeyPatch) -> None:
    """Nothing that is compiled here may be found in the cache later, but by such tests."""
    monkeypatch.setattr(compiler, "Assembler", NoAssembler)
    monkeypatch.setattr(compiler, "loads_of", lambda *_: GlobalLoads(0, 0, 0))
    monkeypatch.setenv("PROTON_CACHE_DIR", os.environ["PROTON_CACHE_DIR"] + "-without-ptxas")


@pytest.fixture
def fuzz_assembler(request: pytest.FixtureRequest) -> None:
    """Under `make fuzz` what is drawn is assembled, too."""
    if not IS_FUZZ:
        request.getfixturevalue("no_assembler")


@pytest.fixture
def no_ptx(monkeypatch: pytest.MonkeyPatch, no_assembler: None) -> None:
    """Nor is PTX made, for tests that look at the levels ahead of it: LLVM takes longest of all."""
    monkeypatch.setattr(compiler, "emit_ptx", lambda *_: "")
    monkeypatch.setenv("PROTON_CACHE_DIR", os.environ["PROTON_CACHE_DIR"] + "-or-ptx")
