"""The back end of the CPU: it is always there, and its arrays lie in the host's memory."""

from typing import Any

from proton.backends.cpu.target import CPU
from proton.runtime.backend import HOST, Backend, KernelFunction, Launcher
from proton.runtime.cpu.arguments import is_array, layout_of, memory_of
from proton.runtime.cpu.launch import CPULauncher


class CPUBackend(Backend):
    """This machine's processor."""

    name = HOST
    compiler = CPU

    def is_there(self) -> bool:
        return True

    def owns(self, value: Any) -> bool:
        return is_array(value)

    def element_bytes(self, array: Any) -> int:
        memory = memory_of("base", array)
        assert memory is not None, "another back end would own it"
        return memory.element.itemsize

    def layout(self, array: Any) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return layout_of(array)

    def launcher(self, kernel: KernelFunction) -> Launcher:
        return CPULauncher(kernel)


BACKEND = CPUBackend()
