"""Runs kernels that are given numpy arrays on the GPU: arrays go there, and come back.

So the tests of tests/cpu, which know nothing of GPUs, check the same kernels there. Arrays that
share memory share it on the GPU; an address keeps its alignment.
"""

import contextlib
import ctypes
import dataclasses
import types
from collections.abc import Iterator
from typing import Any
from unittest import mock

import numpy as np

import proton
from proton.runtime.backend import backend_named
from proton.runtime.jit import JITFunction
from proton.runtime.reinterpret import TensorWrapper
from proton.runtime.tensor_descriptor import TensorDescriptor

ALIGNMENT = 256  # of the GPU's allocations


class _Copies:
    """The GPU's copies of the memory that a launch's arrays lie in."""

    def __init__(self) -> None:
        self.owners: dict[int, tuple[np.ndarray, int, Any]] = {}  # address -> owner, shift, copy

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
        import torch

        owner = value
        while isinstance(owner.base, np.ndarray):
            owner = owner.base
        low, high = np.lib.array_utils.byte_bounds(owner)
        if low not in self.owners:
            shift = low % ALIGNMENT
            copy = torch.empty(shift + high - low + ALIGNMENT, dtype=torch.uint8, device="cuda")
            copy[shift : shift + high - low] = torch.from_numpy(_bytes(low, high).copy()).cuda()
            self.owners[low] = owner, shift, copy
        _, shift, copy = self.owners[low]
        address = copy.data_ptr() + shift + value.__array_interface__["data"][0] - low
        interface = {
            "shape": value.shape,
            "typestr": value.dtype.str,
            "data": (address, False),
            "version": 3,
        }
        return types.SimpleNamespace(__cuda_array_interface__=interface)

    def copy_back(self) -> None:
        """What the kernel wrote, where the test looks for it."""
        for low, (owner, shift, copy) in self.owners.items():
            if owner.flags.writeable:
                _, high = np.lib.array_utils.byte_bounds(owner)
                _bytes(low, high)[:] = copy[shift : shift + high - low].cpu().numpy()


def _bytes(low: int, high: int) -> np.ndarray:
    return np.ctypeslib.as_array((ctypes.c_uint8 * (high - low)).from_address(low))


class Staging:
    """Sends launches to the GPU while it is installed."""

    def __init__(self, num_warps: int) -> None:
        self.num_warps = num_warps

    def run_any(
        self, kernel: JITFunction, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
    ) -> Any:
        """In the place of `JITFunction.run_any`."""
        import torch

        bound = kernel._bound(args, kwargs)
        if callable(grid):
            grid = grid(dict(zip(kernel.arg_names, bound, strict=True)))
        copies = _Copies()
        staged = tuple(
            value if parameter.constexpr else copies.argument(value)
            for parameter, value in zip(kernel.params, bound, strict=True)
        )
        # numpy rounds after each operation.
        options = {"num_warps": self.num_warps, "enable_fp_fusion": False} | kwargs
        result = kernel.launcher(backend_named("cuda")).launch(grid, staged, options)
        torch.cuda.synchronize()
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
