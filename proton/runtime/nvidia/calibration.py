"""The cost of a record on a GPU, measured here.

The cost of a slice is that of a loop around one, less that of the same loop without.
"""

import ctypes
import functools
from dataclasses import dataclass

import numpy as np

from proton.backends.nvidia.options import GPUOptions
from proton.backends.nvidia.target import NVIDIA, GPUKernel
from proton.compiler import compile_function
from proton.language import types as ty
from proton.language.signature import Signature
from proton.language.standard import gpu_calibration
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.queue import Queue
from proton.trace.instrumentation import Instrumentation

ITERATIONS = 2000
REPEATS = 5
_CAPACITY = 64
_THREADS = 128


@dataclass(frozen=True)
class GPUCalibration:
    """The cost of recording one slice, in cycles: to the slice around it, and to itself."""

    slice_cost_cycles: float
    edge_cost_cycles: float


def _compiled(device: int, clock_bits: int, inner: bool) -> GPUKernel:
    signature = Signature({"out_ptr": ty.pointer_type(ty.float32), "n": ty.int32}, {"INNER": inner})
    instrumentation = Instrumentation(capacity=_CAPACITY, clock_bits=clock_bits)
    options = GPUOptions(cuda.target_of(device), instrumentation=instrumentation)
    return compile_function(NVIDIA, gpu_calibration, signature, options)


@functools.cache
def calibrate(device: int, clock_bits: int) -> GPUCalibration:
    """Measured once a process and device: the median of some repetitions."""
    plain, nested = (_measured(device, clock_bits, inner) for inner in (False, True))
    cost = (nested[0] - plain[0]) / ITERATIONS
    edge = nested[1] - plain[0] / ITERATIONS
    return GPUCalibration(max(0.0, cost), max(0.0, edge))


def _measured(device: int, clock_bits: int, inner: bool) -> tuple[float, float]:
    """(cycles of the outer slice, mean cycles of the inner ones)"""
    kernel = _compiled(device, clock_bits, inner)
    assert kernel.profile is not None
    block = kernel.profile.block
    function = cuda.load(kernel.asm.kept("cubin"), kernel.metadata["symbol"], kernel.shared)
    stream, size = cuda.new_stream(), block.bytes
    queue = Queue()
    memory = cuda.allocate_device(size + 4 * _THREADS)
    host = cuda.allocate_host(size)
    first = slice(block.segments, block.segments + block.segment_bytes)  # the first unit's
    outers, inners = [], []
    for _ in range(REPEATS):
        arguments: list[tuple[int, cuda.CType]] = [
            (memory + size, ctypes.c_void_p),
            (ITERATIONS, ctypes.c_int32),
            (memory, ctypes.c_void_p),
        ]
        cuda.launch_once(function, 1, _THREADS, stream, arguments, kernel.shared)
        queue.copy_to_host(host, memory, size, stream)
        cuda.synchronize(device)
        records = cuda.host_bytes(host, size)[first].view(block.schema.dtype)
        elapsed = records["end"] - records["start"]  # also where the clock began anew between them
        written = ITERATIONS + 1 if inner else 1
        outer = (written - 1) % block.capacity
        outers.append(float(elapsed[outer]))
        if inner:
            inners.append(float(np.median(np.delete(elapsed, outer))))
    cuda.release_device(memory)
    cuda.release_host(host)
    cuda.release_stream(stream)
    return float(np.median(outers)), float(np.median(inners)) if inners else 0.0
