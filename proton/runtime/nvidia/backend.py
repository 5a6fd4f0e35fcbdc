"""The back end of NVIDIA's GPUs."""

from typing import Any

import numpy as np

from proton.backends.nvidia.target import NVIDIA
from proton.runtime.arguments import is_torch
from proton.runtime.backend import Backend, KernelFunction, Launcher
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.arguments import is_on_gpu, layout_of
from proton.runtime.nvidia.launch import LAUNCH_OPTIONS, GPULauncher


class NVIDIABackend(Backend):
    """The GPUs that the CUDA driver knows."""

    name = "cuda"
    compiler = NVIDIA
    options = LAUNCH_OPTIONS

    def is_there(self) -> bool:
        return cuda.device_count() > 0

    def owns(self, value: Any) -> bool:
        return is_on_gpu(value)

    def element_bytes(self, array: Any) -> int:
        if is_torch(array):
            return int(array.element_size())
        return int(np.dtype(array.__cuda_array_interface__["typestr"]).itemsize)

    def layout(self, array: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return layout_of(array)

    def launcher(self, kernel: KernelFunction) -> Launcher:
        return GPULauncher(kernel)


BACKEND = NVIDIABackend()
