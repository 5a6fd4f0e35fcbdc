"""A stand-in for the CUDA driver: it records launches, decoding the memory that the driver reads.

What a launch passes to `cuLaunchKernelEx` is a contract of the CUDA driver API (CUlaunchConfig);
here it is read back byte by byte, on a machine without a GPU.
"""

import ctypes
import struct
import types
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from proton.base.targets import GPUTarget
from proton.runtime.nvidia import cuda

STREAM = 0x5EED


def check_loadable(cubin: bytes, name: str) -> None:
    """What `cuModuleGetFunction` wants: an ELF file with a function of that name."""
    assert cubin[:4] == b"\x7fELF"
    assert b"\0" + name.encode() + b"\0" in cubin, f"no symbol {name}"


def _attributes(address: int, count: int) -> tuple[tuple[int, int], ...]:
    """Ids and values of an array of CUlaunchAttribute, of 72 bytes each."""
    assert bool(address) == bool(count)
    return tuple(
        struct.unpack("<i4xi", ctypes.string_at(address + 72 * number, 12))
        for number in range(count)
    )


@dataclass
class Launch:
    """One call of `cuLaunchKernelEx`."""

    function: int
    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    shared: int
    stream: int
    parameters: int  # address of the array of pointers to arguments
    attributes: tuple[tuple[int, int], ...] = ()  # CUlaunchAttribute: ids and values

    def argument(self, number: int, kind: Any) -> Any:
        """The value of a kernel parameter, read as a ctypes type while the call is under way."""
        address = ctypes.c_uint64.from_address(self.parameters + 8 * number).value
        return kind.from_address(address).value


@dataclass
class FakeDriver:
    """Install with `monkeypatch`; `status` is what the next launch returns."""

    read: list[Any] = field(default_factory=list)  # ctypes types of the arguments to read
    launches: list[tuple[Launch, list[Any]]] = field(default_factory=list)
    loaded: list[tuple[str, int]] = field(default_factory=list)
    memory: dict[int, int] = field(default_factory=dict)  # address -> device
    device: int = 0
    status: int = 0

    def install(self, monkeypatch: Any) -> None:
        monkeypatch.setattr(cuda, "device_count", lambda: 2)
        monkeypatch.setattr(cuda, "target_of", lambda device: GPUTarget("cuda", 90))
        monkeypatch.setattr(cuda, "current_device", lambda: self.device)
        monkeypatch.setattr(cuda, "current_stream", lambda device: STREAM)
        monkeypatch.setattr(cuda, "pointer_device", self.memory.get)
        monkeypatch.setattr(cuda, "load", self._load)
        prototype = ctypes.CFUNCTYPE(ctypes.c_int, *[ctypes.c_void_p] * 4)
        function = prototype(self._launch)
        monkeypatch.setattr(cuda, "launch_function", lambda: function)

    def _load(self, cubin: bytes, name: str, shared: int) -> int:
        check_loadable(cubin, name)
        self.loaded.append((name, shared))
        return 100 + len(self.loaded)

    def _launch(self, config: int, function: int, parameters: int, extra: int | None) -> int:
        assert extra is None
        numbers = struct.unpack("<7I4xQQI4x", ctypes.string_at(config, 56))
        launch = Launch(
            *(function, numbers[:3], numbers[3:6], numbers[6], numbers[7], parameters or 0),
            _attributes(*numbers[8:]),
        )
        self.launches.append(
            (launch, [launch.argument(n, kind) for n, kind in enumerate(self.read)])
        )
        return self.status

    def array(self, dtype: str, address: int = 0x10000, device: int = 0, size: int = 1000) -> Any:
        """An array on the GPU, by the CUDA Array Interface."""
        self.memory[address] = device
        return types.SimpleNamespace(
            __cuda_array_interface__={
                "shape": (size,),
                "typestr": np.dtype(dtype).str,
                "data": (address, False),
                "version": 3,
            }
        )
