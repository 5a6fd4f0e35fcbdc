"""`driver.active`: the device that kernels run on by default, as Triton's host code asks for it."""

import importlib
import sys
from abc import ABC, abstractmethod
from collections.abc import Callable
from pathlib import Path
from types import ModuleType
from typing import Any

from proton.backends.compiler import CompiledKernel
from proton.base.targets import GPUTarget, Target
from proton.base.tracebacks import boundary
from proton.base.words import shown
from proton.compiler import ASTSource, compile_function, compile_source
from proton.compiling.ir_source import IRSource
from proton.language.ir_text import IRText
from proton.runtime.backend import HOST, Backend, backend_named, default_backend
from proton.runtime.launch.ir_function import IRFunction
from proton.runtime.tuning.benchmark import do_bench


class Driver(ABC):
    """The current device of a back end, as Triton's host code asks for it."""

    @property
    @abstractmethod
    def backend(self) -> Backend:
        """Whose device it is."""

    @property
    def utils(self) -> "Driver":
        """Where Triton has `get_device_properties`."""
        return self

    def get_current_target(self) -> Target:
        """The target of compilation: `proton.GPUTarget("cuda", 90)`, or that of the CPU."""
        return self.backend.target()

    def get_current_device(self) -> int:
        """Its number."""
        return self.backend.current_device()

    def get_current_stream(self, device: int | None = None) -> int:
        """The stream that launches go to; 0 on the CPU, which has none."""
        backend = self.backend
        return backend.current_stream(backend.current_device() if device is None else device)

    def get_device_properties(self, device: int | None = None) -> dict[str, object]:
        """Facts of a device, by default the current one: `name`, `multiprocessor_count`,
        `max_shared_mem` (of a CPU, the bytes of a core's own cache) and, of a GPU, the others that
        Triton has."""
        return self.backend.properties(device)

    def get_active_torch_device(self) -> Any:
        """The device, as torch names it."""
        backend, torch = self.backend, importlib.import_module("torch")
        if backend.name == HOST:
            return torch.device(HOST)
        return torch.device(backend.name, backend.current_device())

    def get_device_interface(self) -> Any:
        """The module of torch for such devices: `torch.cuda`, `torch.cpu`."""
        return getattr(importlib.import_module("torch"), self.backend.name)

    def get_empty_cache_for_benchmark(self) -> Any:
        """A tensor of torch that is larger than a GPU's L2 cache, for `clear_cache`."""
        torch = importlib.import_module("torch")
        return torch.empty(_CACHE_BYTES, dtype=torch.int8, device=self.get_active_torch_device())

    def clear_cache(self, cache: Any) -> None:
        """Has later work find none of its data in the cache."""
        cache.zero_()

    def get_benchmarker(self) -> Callable[..., object]:
        """The function that `autotune` measures with, of a call and `quantiles=`."""
        return do_bench


_CACHE_BYTES = 256 << 20


class ActiveDriver(Driver):
    """The device that is current now."""

    @property
    def backend(self) -> Backend:
        """The back end that kernels run on whose arguments do not say it."""
        return default_backend()


default = ActiveDriver()
active: Driver = default
driver = sys.modules[__name__]  # `from triton.runtime.driver import driver`


class _Module(ModuleType):
    """Has `active` where programs replace it for a while: of the type, as it is an object's in
    Triton."""

    @property
    def active(self) -> Driver:
        """The driver of the current device, or of the one that was set."""
        found: Driver = vars(self)["active"]
        return found


driver.__class__ = _Module


def set_active(new: Driver) -> None:
    """Has `active` be a driver of one back end. Launches go where their arrays are all the same."""
    global active
    active = new


def reset_active() -> None:
    """Has it be the current device's again."""
    set_active(default)


@boundary
def compile(
    src: ASTSource | IRSource | str | Path,
    target: Target | None = None,
    options: dict[str, object] | None = None,
) -> CompiledKernel:
    """The kernel of a source, for a target that need not be there (by default the current one): of
    a kernel in Python, `ASTSource`, or of IR in a file, by its path.

    `options` are those of a launch: `{"num_warps": 8}`. What comes of IR takes the arguments that
    the IR has, and is launched by `kernel[grid](...)`.
    """
    chosen = active.get_current_target() if target is None else target
    if not isinstance(chosen, Target):
        raise TypeError(
            f"target must be a target, such as {GPUTarget('cuda', 90)!r}, got {shown(chosen)}"
        )
    backend, options = backend_named(chosen.backend), dict(options or {})
    if isinstance(src, str | Path):
        text = IRText.read(src)
        backend.compiler.check_source(text, chosen)  # before it is parsed
        src = IRSource(text)
    if isinstance(src, ASTSource):
        return compile_source(backend.compiler, src, chosen, options)
    if not isinstance(src, IRSource):
        raise TypeError(
            "compile takes a proton.compiler.ASTSource, or the path of a file of IR, got "
            f"{shown(src)}"
        )
    backend.compiler.check_source(src.text, chosen)
    kernel: CompiledKernel = compile_function(
        backend.compiler,
        IRFunction(src, backend),
        src.signature_for(chosen),
        backend.compiler.chosen(chosen, src.parse_options() | options),
    )
    return kernel
