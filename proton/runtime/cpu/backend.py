"""The back end of the CPU: it is always there, and its arrays lie in the host's memory."""

import os
import platform
from pathlib import Path
from typing import Any

from proton.backends.cpu.target import CPU
from proton.base.errors import LaunchError
from proton.base.targets import CPUTarget
from proton.language import types as ty
from proton.runtime.backend import HOST, Backend, DirectLaunch, KernelFunction, Launcher, Timer
from proton.runtime.cpu.arguments import is_array, layout_of, memory_of
from proton.runtime.cpu.caches import core_cache, last_level_cache
from proton.runtime.cpu.launch import CPULauncher
from proton.runtime.cpu.recorder import CPURecorder
from proton.runtime.cpu.timer import CPUTimer
from proton.runtime.session.recording import SessionState


class CPUBackend(Backend):
    """This machine's processor."""

    name = HOST
    compiler = CPU

    def is_there(self) -> bool:
        return True

    def owns(self, value: object) -> bool:
        return is_array(value)

    def element(self, array: object) -> ty.dtype:
        memory = memory_of("base", array)
        assert memory is not None, "another back end would own it"
        return memory.element

    def layout(self, array: object) -> tuple[tuple[int, ...], tuple[int, ...]]:
        return layout_of(array)

    def target(self) -> CPUTarget:
        return CPUTarget()

    def properties(self, device: int | None = None) -> dict[str, object]:
        if device not in (None, 0):
            raise LaunchError(f"there is one CPU, device 0, got {device}")
        cores = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count()
        return {
            "name": processor_name(),
            "multiprocessor_count": cores,
            "max_shared_mem": core_cache(),  # what a program's blocks should fit into
            "last_level_cache": last_level_cache(),
        }

    def timer(self) -> Timer:
        return CPUTimer()

    def launcher(self, kernel: KernelFunction) -> Launcher:
        return CPULauncher(kernel)

    def direct(self, kernel: Any) -> DirectLaunch:
        from proton.runtime.cpu.direct import CPUDirectLaunch as Direct  # which few programs need

        return Direct(kernel)

    def interpreter(self, kernel: KernelFunction) -> Any:
        from proton.runtime.cpu.interpreted import InterpretedLauncher  # modules of its own

        return InterpretedLauncher(kernel)

    def recorder(self, session: SessionState) -> CPURecorder:
        return CPURecorder(session)


def processor_name() -> str:
    """The name of the processor."""
    cpuinfo = Path("/proc/cpuinfo")
    lines = cpuinfo.read_text().splitlines() if cpuinfo.exists() else []
    names = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(names, platform.processor() or platform.machine())


BACKEND = CPUBackend()
