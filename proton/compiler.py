"""Source and signature to a compiled kernel, through the disk cache.

MLIR is imported only when something has to be compiled: a process that finds all of its
kernels on disk links their objects and starts.
"""

import contextlib
import functools
import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from importlib import metadata
from typing import Any, TypeVar

from proton import cache
from proton.backends.cpu import llvm
from proton.backends.nvidia import tools
from proton.backends.nvidia.cubin import disassemble
from proton.backends.nvidia.options import GPUOptions
from proton.base.knobs import knobs
from proton.base.symbols import END, mangled
from proton.language import profiling
from proton.language.function import DeviceFunction
from proton.language.surroundings import describe
from proton.language.types import dtype

CPU_FILES = {  # level of `kernel.asm` -> its file in the cache
    "ttir": "ttir.mlir",
    "ttsir": "ttsir.mlir",
    "memref": "memref.mlir",
    "llvm": "llvm.mlir",
    "llir": "llir.ll",
    "obj": "code.o",
}
GPU_FILES = {
    "ttir": "ttir.mlir",
    "ttgir": "ttgir.mlir",
    "llir": "llir.mlir",
    "ptx": "code.ptx",
    "cubin": "code.cubin",
}
_BYTES = ("obj", "cubin")


class Asm(Mapping[str, Any]):
    """The levels of a kernel by name: text, except machine code (bytes).

    The last level, `asm` on a CPU and `sass` on a GPU, is disassembled on use; `sass` raises
    ProtonError where `nvdisasm` is not to be found.
    """

    def __init__(self, files: dict[str, bytes], source: str) -> None:
        self._files, self._source = files, source
        self._is_gpu = GPU_FILES["cubin"] in files

    def __getitem__(self, level: str) -> Any:
        if level == "source":
            return self._source
        if level == "asm" and not self._is_gpu:
            return llvm.disassembly(self["llir"])
        if level == "sass" and self._is_gpu:
            return disassemble(self["cubin"])
        content = self._files[self._names[level]]
        return content if level in _BYTES else content.decode()

    @property
    def _names(self) -> dict[str, str]:
        return GPU_FILES if self._is_gpu else CPU_FILES

    def __iter__(self) -> Iterator[str]:
        return iter(["source", *self._names, "sass" if self._is_gpu else "asm"])

    def __len__(self) -> int:
        return len(self._names) + 2


@dataclass
class CompiledKernel:
    """A kernel for one signature and set of options.

    `metadata` is what the launcher needs; `times` the milliseconds of each compile stage, empty
    after a cache hit.
    """

    name: str
    key: str
    metadata: dict[str, Any]
    asm: Asm
    times: dict[str, float] = field(default_factory=dict)
    from_cache: bool = False


class CPUKernel(CompiledKernel):
    """Its metadata: name, symbol, written, extras, assertions, bounds, profile, disjoint."""

    @cached_property
    def code(self) -> llvm.LinkedCode:
        """The machine code, linked into this process on first use."""
        return llvm.linker().link(self.asm["obj"], self.metadata["symbol"])


class GPUKernel(CompiledKernel):
    """Its metadata: name, symbol, target, num_warps, num_ctas, shared, n_regs, n_spills."""

    @property
    def n_regs(self) -> int:
        """Registers of a thread."""
        return int(self.metadata["n_regs"])

    @property
    def n_spills(self) -> int:
        """Bytes of local memory that a thread keeps registers in."""
        return int(self.metadata["n_spills"])

    @property
    def shared(self) -> int:
        """Bytes of shared memory of a program."""
        return int(self.metadata["shared"])


Kernel = TypeVar("Kernel", bound=CompiledKernel)


# One compilation at a time. A fork waits for it to end: the child would inherit locks of MLIR
# and LLVM that nobody ever releases.
compile_lock = threading.RLock()
os.register_at_fork(
    before=compile_lock.acquire,
    after_in_parent=compile_lock.release,
    after_in_child=compile_lock.release,
)


@dataclass(frozen=True)
class Specialization:
    """What a kernel is compiled for: parameter -> type, and parameter -> constant.

    `divisible` names parameters whose values are multiples of 16.
    """

    types: tuple[tuple[str, dtype], ...]
    constants: tuple[tuple[str, Any], ...] = ()
    divisible: tuple[str, ...] = ()


@dataclass(frozen=True)
class CompileOptions:
    """Options that change the code for the CPU; see proton.backends.cpu.compiler.CPUOptions.

    `instrumentation` is (strategy, capacity, placement, every), or None without records.
    """

    disjoint: bool = True
    debug: bool = False
    instrumentation: tuple[str, int, str, int] | None = None
    check_bounds: bool = False


Options = CompileOptions | GPUOptions


def compile_function(
    fn: DeviceFunction, specialization: Specialization, options: CompileOptions
) -> CPUKernel:
    """The kernel for this machine's CPU, from the disk cache if it is there."""
    with compile_lock, _host_slice(fn):
        return _load_or_compile(CPUKernel, fn, specialization, options)


def compile_for_gpu(
    fn: DeviceFunction, specialization: Specialization, options: GPUOptions
) -> GPUKernel:
    """The kernel for a GPU, from the disk cache if it is there. Needs no GPU."""
    with compile_lock, _host_slice(fn):
        return _load_or_compile(GPUKernel, fn, specialization, options)


@contextlib.contextmanager
def _host_slice(fn: DeviceFunction) -> Iterator[None]:
    """Shows the running session how long a compilation took."""
    start = time.perf_counter_ns()
    try:
        yield
    finally:
        if profiling.host is not None:
            profiling.host.add(f"compile {fn.__name__}", start, "compile")


def _load_or_compile(
    kind: type[Kernel], fn: DeviceFunction, specialization: Specialization, options: Options
) -> Kernel:
    start = time.perf_counter()
    key = _key(fn, specialization, options)
    bypass = knobs.always_compile or knobs.dump_to is not None or knobs.override_from is not None
    if not bypass and (entry := cache.load(key)) is not None:
        data, files = entry
        times = {"load": (time.perf_counter() - start) * 1e3}
        return kind(fn.__name__, key, data, Asm(files, fn.src), times, from_cache=True)
    label = f"{mangled(fn.__name__).removesuffix(END)}-{key[:8]}"
    result = _compile(fn, specialization, options, label)
    if knobs.override_from is None:  # an edited dump is not what the key describes
        cache.store(key, result.data, result.files)
    return kind(fn.__name__, key, result.data, Asm(result.files, fn.src), result.times)


def _key(fn: DeviceFunction, specialization: Specialization, options: Options) -> str:
    return cache.make_key(
        {
            "proton": cache.compiler_version(),
            "source": fn.source_key(),
            "types": [(name, type_.mangle()) for name, type_ in specialization.types],
            "constants": [(name, describe(v)) for name, v in specialization.constants],
            "divisible": specialization.divisible,
            "options": repr(options),
            "bindings": _version("numba-cuda-mlir"),
            **_code_generator(options),
        }
    )


_version = functools.cache(metadata.version)


def _code_generator(options: Options) -> dict[str, Any]:
    """What else the machine code depends on."""
    if isinstance(options, GPUOptions):
        return {
            "ptxas": tools.identity(tools.ptxas(options.target), tools.PTXAS_WHEEL),
            "libdevice": tools.identity(tools.libdevice(), "nvidia-nvvm"),
        }
    return {
        "cpu": llvm.host_cpu(),
        "features": llvm.host_features(),
        "llvm": llvm.version(),
    }


def _compile(
    fn: DeviceFunction, specialization: Specialization, options: Options, label: str
) -> Any:
    from proton.frontend import Signature

    signature = Signature(
        dict(specialization.types),
        dict(specialization.constants),
        frozenset(specialization.divisible),
    )
    if isinstance(options, GPUOptions):
        from proton.backends.nvidia import compiler as nvidia

        return nvidia.compile_kernel(fn, signature, options, label)
    from proton.backends.cpu.compiler import CPUOptions, compile_kernel
    from proton.backends.cpu.pipeline import Instrumentation

    cpu_options = CPUOptions(
        disjoint=options.disjoint,
        debug=options.debug,
        check_bounds=options.check_bounds,
        instrumentation=options.instrumentation and Instrumentation(*options.instrumentation),
    )
    return compile_kernel(fn, signature, cpu_options, label)
