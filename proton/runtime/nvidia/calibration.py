"""What a GPU's clocks have to do with the host's, and what a record costs there, measured here.

The global timer is read by a kernel of one thread that stores it into pinned memory, while the
host looks at its own clock before and after: the best of some tries says how far apart they are.
The cost of a slice is that of a loop around one, less that of the same loop without.
"""

import ctypes
import functools
import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.backends.nvidia.cubin import Assembler
from proton.backends.nvidia.options import GPUOptions
from proton.backends.nvidia.target import NVIDIA, GPUKernel
from proton.base.errors import ProfileError
from proton.compiler import compile_function
from proton.language import types as ty
from proton.language.signature import Signature
from proton.language.standard import gpu_calibration
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.queue import Queue
from proton.trace.instrumentation import Instrumentation

PAIR_TRIES = 30
PATIENCE_NS = 1_000_000_000  # until a kernel of one thread is given up
ITERATIONS = 2000
REPEATS = 5
_CAPACITY = 64
_THREADS = 128

_TIMER_PTX = """
.version {version}
.target {chip}
.address_size 64
.visible .entry timer(.param .u64 out)
{{
    .reg .b64 %rd<3>;
    ld.param.u64 %rd1, [out];
    mov.u64 %rd2, %globaltimer;
    st.volatile.global.u64 [%rd1], %rd2;
    ret;
}}
"""


@dataclass(frozen=True)
class TimerPair:
    """A GPU's global timer and `time.perf_counter_ns()` at one moment, and how sure that is."""

    timer_ns: int
    host_ns: int
    error_ns: float


@dataclass(frozen=True)
class GPUCalibration:
    """The cost of recording one slice, in cycles: to the slice around it, and to itself."""

    slice_cost_cycles: float
    edge_cost_cycles: float


@dataclass(frozen=True)
class _Timer:
    function: int
    cell: ctypes.c_uint64
    address: int
    stream: int


@functools.cache
def _timer(device: int) -> _Timer:
    target = cuda.target_of(device)
    with Assembler(target, "timer") as assembler:
        version = "{}.{}".format(*divmod(target.facts.ptx, 10))
        assembler.feed(_TIMER_PTX.format(version=version, chip=target.facts.chip))
        code = assembler.finish().code
    address = cuda.allocate_host(8)
    cell = ctypes.c_uint64.from_address(address)
    return _Timer(cuda.load(code, "timer", 0), cell, address, cuda.new_stream())


def timer_pair(device: int) -> TimerPair:
    """A pair, read as closely together as the host can."""
    with cuda.on_device(device):
        return _timer_pair(device)


def _timer_pair(device: int) -> TimerPair:
    timer, best = _timer(device), None
    for _ in range(PAIR_TRIES):
        timer.cell.value = 0
        before = time.perf_counter_ns()
        cuda.launch_once(timer.function, 1, 1, timer.stream, [(timer.address, ctypes.c_void_p)])
        while not timer.cell.value:
            if time.perf_counter_ns() - before > PATIENCE_NS:
                cuda.synchronize(device)  # raises what the driver has to say
                if not timer.cell.value:
                    raise ProfileError("the GPU's global timer did not answer")
        after = time.perf_counter_ns()
        if best is None or after - before < best[0]:
            best = after - before, timer.cell.value, (before + after) // 2
    assert best is not None
    return TimerPair(best[1], best[2], best[0] / 2)


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
    function = cuda.load(kernel.asm["cubin"], kernel.metadata["symbol"], kernel.shared)
    stream, size = cuda.new_stream(), block.bytes
    queue = Queue()
    memory = cuda.allocate_device(size + 4 * _THREADS)
    host = cuda.allocate_host(size)
    first = slice(block.segments, block.segments + block.segment_bytes)  # the first unit's
    outers, inners = [], []
    for _ in range(REPEATS):
        arguments: list[tuple[int, Any]] = [
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
