"""Runs kernels that are given numpy arrays on the GPU: arrays go there, and come back.

So the tests of tests/cpu, which know nothing of GPUs, check the same kernels there. Arrays that
share memory share it on the GPU; an address keeps its alignment.
"""

import contextlib
import ctypes
import dataclasses
import types
from collections.abc import Iterator
from typing import Any, Protocol
from unittest import mock

import numpy as np

import proton
from proton.runtime.backend import backend_named
from proton.runtime.launch.jit import JITFunction
from proton.runtime.launch.reinterpret import TensorWrapper
from proton.runtime.launch.tensor_descriptor import TensorDescriptor

ALIGNMENT = 256  # of the GPU's allocations


class Device(Protocol):
    """Memory that kernels see, and when they have ended."""

    def allocate(self, size: int, unused: int) -> int:
        """The address of so many bytes, a multiple of ALIGNMENT, of which nobody uses the first."""

    def write(self, address: int, data: np.ndarray) -> None:
        """Copies bytes there."""

    def read(self, address: int, size: int) -> np.ndarray:
        """The bytes that are there."""

    def finish(self) -> None:
        """Waits for the kernels."""


class _Torch:
    """The GPU, by way of torch."""

    def __init__(self) -> None:
        self.blocks: dict[int, Any] = {}

    def allocate(self, size: int, unused: int) -> int:
        import torch

        block = torch.empty(size + ALIGNMENT, dtype=torch.uint8, device="cuda")
        self.blocks[block.data_ptr()] = block
        return int(block.data_ptr())

    def _bytes(self, address: int, size: int) -> Any:
        first = max(block for block in self.blocks if block <= address)
        return self.blocks[first][address - first : address - first + size]

    def write(self, address: int, data: np.ndarray) -> None:
        import torch

        self._bytes(address, len(data)).copy_(torch.from_numpy(data.copy()))

    def read(self, address: int, size: int) -> np.ndarray:
        found: np.ndarray = self._bytes(address, size).cpu().numpy()
        return found

    def finish(self) -> None:
        import torch

        torch.cuda.synchronize()


class _Copies:
    """A device's copies of the memory that a launch's arrays lie in."""

    def __init__(self, device: Device) -> None:
        self.device = device
        self.owners: dict[int, tuple[np.ndarray, int]] = {}  # address -> owner, address there

    def argument(self, value: Any) -> Any:
        """What stands for an argument on the GPU."""
        if isinstance(value, TensorWrapper):
            return proton.reinterpret(self.argument(value.base), value.dtype)
        if isinstance(value, TensorDescriptor):
            return dataclasses.replace(value, base=self.argument(value.base))
        if isinstance(value, tuple):
            elements = [self.argument(element) for element in value]
            return value._make(elements) if hasattr(value, "_make") else tuple(elements)
        if not isinstance(value, np.ndarray):
            return value
        owner = value
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        low, high = np.lib.array_utils.byte_bounds(owner)
        if low not in self.owners:
            shift = low % ALIGNMENT
            first = self.device.allocate(shift + high - low, shift) + shift
            self.device.write(first, _bytes(low, high))
            self.owners[low] = owner, first
        address = self.owners[low][1] + value.__array_interface__["data"][0] - low
        interface = {
            "shape": value.shape,
            "typestr": value.dtype.str,
            "data": (address, False),
            "version": 3,
        }
        return types.SimpleNamespace(__cuda_array_interface__=interface)

    def copy_back(self) -> None:
        """What the kernel wrote, where the test looks for it."""
        for low, (owner, first) in self.owners.items():
            if owner.flags.writeable:
                _, high = np.lib.array_utils.byte_bounds(owner)
                _bytes(low, high)[:] = self.device.read(first, high - low)


def _bytes(low: int, high: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))


class Staging:
    """Sends launches to the GPU while it is installed."""

    def __init__(self, num_warps: int, device: Device | None = None) -> None:
        self.num_warps, self.device = num_warps, device

    def run_any(
        self, kernel: JITFunction, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """In the place of `JITFunction.run_any`."""
        device = self.device or _Torch()
        bound = kernel._bound(args, kwargs)
        if callable(grid):
            grid = grid(dict(zip(kernel.arg_names, bound, strict=True)))
        copies = _Copies(device)
        staged = tuple(
            value if parameter.constexpr else copies.argument(value)
            for parameter, value in zip(kernel.params, bound, strict=True)
        )
        # numpy rounds after each operation.
        options = {"num_warps": self.num_warps, "enable_fp_fusion": False} | kwargs
        result = kernel.launcher(backend_named("cuda")).launch(grid, staged, options)
        device.finish()
        ctypes.CDLL(None).fflush(None)  # what kernels printed
        copies.copy_back()
        return result

    @contextlib.contextmanager
    def installed(self) -> Iterator[None]:
        """Patches launching."""

        def getitem(kernel: JITFunction, grid: Any) -> Any:
            return lambda *args, **kwargs: self.run_any(kernel, grid, args, kwargs)

        with mock.patch.object(JITFunction, "__getitem__", getitem):
            yield
