"""A CUDA driver that runs kernels on `machine`: launches need no GPU.

    with Emulation(num_warps=4, rng=rng).installed():
        kernel[grid](array, ...)

Launches take the way that they take on a GPU of 9.0, from arguments to `cuLaunchKernelEx`, whose
memory is read here.
"""

import contextlib
import ctypes
import itertools
import struct
import weakref
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock

import numpy as np

from proton.backends.nvidia.target import GPUKernel
from proton.base.targets import GPUTarget
from proton.runtime.nvidia import cuda, launch, tensor_maps, variant
from tests.compile.ptx.copies import TensorMap
from tests.compile.ptx.machine import run
from tests.compile.ptx.memory import WARP, Heap
from tests.compile.ptx.text import parsed
from tests.gpu.staging import Staging

_CONFIG_BYTES = 56  # of CUlaunchConfig
_TARGET = GPUTarget("cuda", 90)


class EmulatedDevice:
    """Memory of the emulated GPU, as `Staging` asks for it."""

    def __init__(self) -> None:
        self.heap = Heap()

    def allocate(self, size: int, unused: int) -> int:
        address = self.heap.allocate(size)
        self.heap.forbid(address, unused)
        return address

    def write(self, address: int, data: np.ndarray) -> None:
        self.heap.bytes(address, len(data))[:] = data

    def read(self, address: int, size: int) -> np.ndarray:
        return self.heap.bytes(address, size)

    def finish(self) -> None:
        """Launches have ended when they return."""


class _Driver:
    """What launches call; one for good, as kernels keep how they are launched."""

    def __init__(self) -> None:
        self.kernels = weakref.WeakValueDictionary[int, GPUKernel]()
        self.numbers = itertools.count()
        self.emulation: Emulation | None = None
        self.function = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)(self._launch)

    def load(self, kernel: GPUKernel) -> int:
        number = next(self.numbers)
        self.kernels[number] = kernel
        return number

    def _launch(self, config: int, function: int, parameters: int, extra: int | None) -> int:
        assert self.emulation is not None
        try:
            numbers = struct.unpack("<7I4xQQI4x", ctypes.string_at(config, _CONFIG_BYTES))
            ptx = self.emulation.edit(self.kernels[function or 0].asm["ptx"])
            sizes = parsed(ptx).parameters.values()
            places = struct.unpack(f"<{len(sizes)}Q", ctypes.string_at(parameters, 8 * len(sizes)))
            given = [ctypes.string_at(place, n) for place, n in zip(places, sizes, strict=True)]
            of = self.emulation
            run(
                ptx, numbers[:3], numbers[3], numbers[6], given, of.emulated.heap, of.rng,
                checks_races=of.checks_races, apart=of.apart,
            )  # fmt: skip
        except Exception as problem:  # ctypes would only print it
            self.emulation.problem = problem
        return 0


_DRIVER = _Driver()


class Emulation(Staging):
    """Runs launches on the machine while it is installed; `edit` changes the PTX before. Without
    `checks_races` threads may race in global memory, where warps run in random order."""

    def __init__(
        self,
        num_warps: int,
        rng: np.random.Generator,
        edit: Callable[[str], str] = lambda ptx: ptx,
        *,
        checks_races: bool = True,
        apart: int = WARP,
    ) -> None:
        self.rng, self.edit, self.emulated = rng, edit, EmulatedDevice()
        self.checks_races, self.apart = checks_races, apart
        self.problem: Exception | None = None
        super().__init__(num_warps, self.emulated)

    def run_any(self, *args: Any) -> Any:
        self.problem, self.emulated.heap = None, Heap()
        result = super().run_any(*args)
        if self.problem is not None:
            raise self.problem
        return result

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Patches launching, and what it asks of the driver."""
        instead: dict[str, Any] = {
            "device_count": lambda: 1,
            "target_of": lambda device: _TARGET,
            "current_device": lambda: 0,
            "current_stream": lambda device: 0,
            "pointer_device": lambda address: 0,
            "launch_function": lambda: _DRIVER.function,
            "encode_tensor_map": TensorMap.encoded,
        }
        with contextlib.ExitStack() as stack:
            for name, value in instead.items():
                stack.enter_context(mock.patch.object(cuda, name, value))
            stack.enter_context(mock.patch.object(launch, "_loaded", _DRIVER.load))
            stack.enter_context(mock.patch.object(variant, "scratch_for", _scratch))
            stack.enter_context(mock.patch.object(tensor_maps, "_outside", self._outside))
            stack.enter_context(mock.patch.object(_DRIVER, "emulation", self))
            stack.enter_context(super().installed())
            yield

    def _outside(self, device: int, is_nan: bool) -> int:
        address = self.emulated.heap.allocate(16)
        self.emulated.write(address, np.full(16, 0xFF if is_nan else 0, np.uint8))
        return address


def _scratch(device: int, size: int, programs: int, stream: int) -> tuple[int, Any]:
    assert _DRIVER.emulation is not None
    return _DRIVER.emulation.emulated.heap.allocate(size * programs), None
