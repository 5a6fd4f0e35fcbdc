"""The cost of a record, from what a stand-in for a GPU says that it has measured."""

import ctypes
from typing import Any

import numpy as np
import pytest

from proton.base.targets import GPUTarget
from proton.runtime.nvidia import calibration as gpu_calibration
from proton.runtime.nvidia import cuda
from proton.trace import wire
from tests.compile.fake_cuda import check_loadable

CAPACITY, WARPS = 64, 4
PLAIN, NESTED, INNER = 78_000, 94_000, 43  # cycles of the outer slices, and of the inner ones


class Device:
    """It counts from `start` on and leaves records as the measuring kernels do. It is a queue of
    the driver, too."""

    def __init__(self, start: int, clock_bits: int) -> None:
        self.start, self.clock_bits = start, clock_bits
        self.launches = 0
        self.memory: dict[int, Any] = {}

    def install(self, monkeypatch: pytest.MonkeyPatch) -> None:
        monkeypatch.setattr(cuda, "target_of", lambda device: GPUTarget("cuda", 90))
        monkeypatch.setattr(cuda, "load", lambda code, name, _: check_loadable(code, name) or 1)
        monkeypatch.setattr(cuda, "new_stream", lambda: self.allocate(1))
        monkeypatch.setattr(cuda, "release_stream", self.memory.pop)
        monkeypatch.setattr(gpu_calibration, "Queue", lambda: self)
        for name in ("host", "device"):
            monkeypatch.setattr(cuda, f"allocate_{name}", self.allocate)
            monkeypatch.setattr(cuda, f"release_{name}", self.memory.pop)
        monkeypatch.setattr(cuda, "launch_once", self.launch)
        monkeypatch.setattr(cuda, "synchronize", lambda device: None)

    def allocate(self, size: int) -> int:
        block = ctypes.create_string_buffer(size)
        self.memory[ctypes.addressof(block)] = block
        return ctypes.addressof(block)

    def copy_to_host(self, host: int, address: int, size: int, stream: int) -> None:
        ctypes.memmove(host, address, size)

    def launch(
        self, function: int, programs: int, threads: int, stream: int, arguments: Any, shared: int
    ) -> None:
        """The first half of the launches are of the kernel without inner slices."""
        (_, _), (turns, _), (block, _) = arguments
        is_nested = self.launches >= gpu_calibration.REPEATS
        self.launches += 1
        layout = wire.Block(WARPS, CAPACITY, wire.RecordSchema(0, self.clock_bits))
        dtype, place = layout.schema.dtype, block + layout.segments
        records = cuda.host_bytes(place, CAPACITY * dtype.itemsize).view(dtype)
        took = np.full(CAPACITY, INNER, np.uint64)
        took[turns % CAPACITY if is_nested else 0] = NESTED if is_nested else PLAIN
        wraps = (1 << self.clock_bits) - 1
        records["start"] = self.start
        records["end"] = [(self.start + int(cycles)) & wraps for cycles in took]


@pytest.mark.parametrize("clock_bits", [32, 64])
@pytest.mark.parametrize("before_the_end", [0, 1, 3, 90_000, 1 << 31])
def test_the_cost_of_a_slice(
    monkeypatch: pytest.MonkeyPatch, clock_bits: int, before_the_end: int
) -> None:
    """Also where the clock begins anew within a slice."""
    device = Device(((1 << clock_bits) - before_the_end) % (1 << clock_bits), clock_bits)
    device.install(monkeypatch)
    found = gpu_calibration.calibrate.__wrapped__(0, clock_bits)
    assert device.launches == 2 * gpu_calibration.REPEATS
    assert not device.memory, "all memory is given back"
    assert found.slice_cost_cycles == (NESTED - PLAIN) / gpu_calibration.ITERATIONS
    assert found.edge_cost_cycles == INNER - PLAIN / gpu_calibration.ITERATIONS
