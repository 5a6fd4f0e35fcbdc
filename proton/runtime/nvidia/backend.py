"""The back end of NVIDIA's GPUs."""

from typing import Any

import numpy as np

from proton.backends.nvidia.target import NVIDIA
from proton.base.targets import GPUTarget
from proton.runtime.backend import Backend, DirectLaunch, KernelFunction, Launcher, Timer
from proton.runtime.launch.arguments import is_torch
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.arguments import is_on_gpu, layout_of
from proton.runtime.nvidia.fast_path import NAME
from proton.runtime.nvidia.launch import LAUNCH_OPTIONS, GPULauncher
from proton.runtime.nvidia.recorder import GPURecorder
from proton.runtime.nvidia.timer import GPUTimer
from proton.runtime.session.recording import SessionState

# What Triton says of a device, and the driver's names for it.
_PROPERTIES = {
    "max_shared_mem": "MAX_SHARED_MEMORY_PER_BLOCK_OPTIN",
    "max_num_regs": "MAX_REGISTERS_PER_BLOCK",
    "multiprocessor_count": "MULTIPROCESSOR_COUNT",
    "warpSize": "WARP_SIZE",
    "sm_clock_rate": "CLOCK_RATE",  # kHz
    "mem_clock_rate": "MEMORY_CLOCK_RATE",  # kHz
    "mem_bus_width": "GLOBAL_MEMORY_BUS_WIDTH",  # bits
}


class NVIDIABackend(Backend):
    """The GPUs that the CUDA driver knows."""

    name = NAME
    compiler = NVIDIA
    options = LAUNCH_OPTIONS
    plug_in = "nvidia"

    def is_there(self) -> bool:
        # Processes that torch forks to compile are for the GPU that they cannot use.
        return cuda.device_count() > 0 or cuda.was_used_ahead_of_fork()

    def owns(self, value: object) -> bool:
        return is_on_gpu(value)

    def element_bytes(self, array: Any) -> int:
        if is_torch(array):
            return int(array.element_size())
        return int(np.dtype(array.__cuda_array_interface__["typestr"]).itemsize)

    def layout(self, array: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return layout_of(array)

    def target(self) -> GPUTarget:
        return cuda.target_of(cuda.current_device())

    def properties(self, device: int | None = None) -> dict[str, object]:
        device = cuda.current_device() if device is None else device
        numbers = {name: cuda.attribute(device, kind) for name, kind in _PROPERTIES.items()}
        return {"name": cuda.device_name(device), **numbers}

    def current_device(self) -> int:
        return cuda.current_device()

    def current_stream(self, device: int) -> int:
        return cuda.current_stream(device)

    def timer(self) -> Timer:
        return GPUTimer()

    def launcher(self, kernel: KernelFunction) -> Launcher:
        return GPULauncher(kernel)

    def direct(self, kernel: Any) -> DirectLaunch:
        from proton.runtime.nvidia.direct import (
            GPUDirectLaunch as Direct,  # which few programs need
        )

        return Direct(kernel)

    def recorder(self, session: SessionState) -> GPURecorder:
        return GPURecorder(session)


BACKEND = NVIDIABackend()
