"""Source and signature to a compiled kernel, through the disk cache.

MLIR is imported only when something has to be compiled: a process that finds all of its
kernels on disk links their objects and starts.
"""

import os
import threading
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

from proton import cache
from proton.backends.cpu import llvm
from proton.base.knobs import knobs
from proton.language.function import DeviceFunction
from proton.language.types import dtype

ASM_FILES = {  # level of `kernel.asm` -> its file in the cache
    "ttir": "ttir.mlir",
    "ttsir": "ttsir.mlir",
    "memref": "memref.mlir",
    "llvm": "llvm.mlir",
    "llir": "llir.ll",
    "obj": "code.o",
}


class Asm(Mapping[str, Any]):
    """The levels of a kernel by name: text, except `obj` (bytes). `asm` is disassembled on use."""

    def __init__(self, files: dict[str, bytes], source: str) -> None:
        self._files, self._source = files, source

    def __getitem__(self, level: str) -> Any:
        if level == "source":
            return self._source
        if level == "asm":
            return llvm.disassembly(self["llir"])
        content = self._files[ASM_FILES[level]]
        return content if level == "obj" else content.decode()

    def __iter__(self) -> Iterator[str]:
        return iter(["source", *ASM_FILES, "asm"])

    def __len__(self) -> int:
        return len(ASM_FILES) + 2


@dataclass
class CompiledKernel:
    """A kernel for one signature and set of options.

    `metadata` is what the launcher needs (name, symbol, written, extras, assertions, profile,
    disjoint); `times` the milliseconds of each compile stage, empty after a cache hit.
    """

    name: str
    key: str
    metadata: dict[str, Any]
    asm: Asm
    times: dict[str, float] = field(default_factory=dict)
    from_cache: bool = False

    @cached_property
    def code(self) -> llvm.LinkedCode:
        """The machine code, linked into this process on first use."""
        return llvm.linker().link(self.asm["obj"], self.metadata["symbol"])


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
    """What a kernel is compiled for: parameter -> type, and parameter -> constant."""

    types: tuple[tuple[str, dtype], ...]
    constants: tuple[tuple[str, Any], ...] = ()


@dataclass(frozen=True)
class CompileOptions:
    """Options that change the code; see proton.backends.cpu.compiler.CPUOptions.

    `instrumentation` is (strategy, capacity, placement), or None without records.
    """

    disjoint: bool = True
    debug: bool = False
    instrumentation: tuple[str, int, str] | None = None


def compile_function(
    fn: DeviceFunction, specialization: Specialization, options: CompileOptions
) -> CompiledKernel:
    """The kernel, from the disk cache if it is there."""
    with compile_lock:
        return _load_or_compile(fn, specialization, options)


def _load_or_compile(
    fn: DeviceFunction, specialization: Specialization, options: CompileOptions
) -> CompiledKernel:
    start = time.perf_counter()
    key = _key(fn, specialization, options)
    bypass = knobs.always_compile or knobs.dump_to is not None or knobs.override_from is not None
    if not bypass and (entry := cache.load(key)) is not None:
        data, files = entry
        times = {"load": (time.perf_counter() - start) * 1e3}
        return CompiledKernel(fn.__name__, key, data, Asm(files, fn.src), times, from_cache=True)
    result = _compile(fn, specialization, options, f"{fn.__name__}-{key[:8]}")
    if knobs.override_from is None:  # an edited dump is not what the key describes
        cache.store(key, result.data, result.files)
    return CompiledKernel(fn.__name__, key, result.data, Asm(result.files, fn.src), result.times)


def _key(fn: DeviceFunction, specialization: Specialization, options: CompileOptions) -> str:
    return cache.make_key(
        {
            "proton": cache.compiler_version(),
            "source": fn.source_key(),
            "types": [(name, type_.mangle()) for name, type_ in specialization.types],
            "constants": [(name, _constant_key(v)) for name, v in specialization.constants],
            "options": repr(options),
            "cpu": llvm.host_cpu(),
            "features": llvm.host_features(),
            "llvm": llvm.version(),
            "bindings": _bindings_version(),
        }
    )


def _constant_key(value: Any) -> str:
    if isinstance(value, DeviceFunction):
        return value.source_key()
    if isinstance(value, tuple):
        return f"({', '.join(map(_constant_key, value))})"
    return f"{type(value).__name__}:{value!r}"


def _bindings_version() -> str:
    from importlib import metadata

    return metadata.version("numba-cuda-mlir")


def _compile(
    fn: DeviceFunction, specialization: Specialization, options: CompileOptions, label: str
) -> Any:
    from proton.backends.cpu.compiler import CPUOptions, compile_kernel
    from proton.backends.cpu.pipeline import Instrumentation
    from proton.frontend import Signature

    return compile_kernel(
        fn,
        Signature(dict(specialization.types), dict(specialization.constants)),
        CPUOptions(
            disjoint=options.disjoint,
            debug=options.debug,
            instrumentation=options.instrumentation and Instrumentation(*options.instrumentation),
        ),
        label,
    )
