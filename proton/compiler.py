"""Source and signature to a compiled kernel, through the disk cache.

What differs between devices is the back end's (proton.backends.compiler). MLIR is imported only
when something has to be compiled: a process that finds all of its kernels on disk links their
objects and starts.
"""

import contextlib
import functools
import os
import threading
import time
from collections.abc import Iterator
from importlib import metadata
from typing import Any, NamedTuple

from proton import cache
from proton.backends.compiler import Asm, Compiler, Kernel, Options
from proton.base.knobs import knobs
from proton.base.symbols import END, mangled
from proton.language import profiling
from proton.language.function import DeviceFunction
from proton.language.signature import Signature
from proton.language.surroundings import describe

# One compilation at a time. A fork waits for it to end: the child would inherit locks of MLIR
# and LLVM that nobody ever releases.
compile_lock = threading.RLock()
os.register_at_fork(
    before=compile_lock.acquire,
    after_in_parent=compile_lock.release,
    after_in_child=compile_lock.release,
)


class Request(NamedTuple):
    """What `compile_function` is asked for."""

    compiler: Compiler[Any, Any]
    fn: DeviceFunction
    signature: Signature
    options: Any

    @property
    def key(self) -> str:
        """Its key in the disk cache; raises ProtonError where a tool is missing."""
        return _key(self.fn, self.signature, self.compiler, self.options)


def compile_function(
    compiler: Compiler[Options, Kernel], fn: DeviceFunction, signature: Signature, options: Options
) -> Kernel:
    """The kernel of a back end's, from the disk cache if it is there. Needs no device."""
    with compile_lock, _host_slice(fn):
        return _load_or_compile(compiler, fn, signature, options)


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
    compiler: Compiler[Options, Kernel], fn: DeviceFunction, signature: Signature, options: Options
) -> Kernel:
    start = time.perf_counter()
    key = _key(fn, signature, compiler, options)
    if not bypasses_cache() and (entry := cache.load(key)) is not None:
        data, files = entry
        times = {"load": (time.perf_counter() - start) * 1e3}
        asm = Asm(compiler, files, fn.src)
        return compiler.kernel(fn.__name__, key, data, asm, times, from_cache=True)
    label = f"{mangled(fn.__name__).removesuffix(END)}-{key[:8]}"
    result = compiler.compile(fn, signature, options, label)
    if knobs.override_from is None:  # an edited dump is not what the key describes
        cache.store(key, result.data, result.files)
    asm = Asm(compiler, result.files, fn.src)
    return compiler.kernel(fn.__name__, key, result.data, asm, result.times)


def bypasses_cache() -> bool:
    """Whether kernels are compiled anew, whatever there is on disk."""
    return knobs.always_compile or knobs.dump_to is not None or knobs.override_from is not None


def _key(
    fn: DeviceFunction, signature: Signature, compiler: Compiler[Any, Any], options: Any
) -> str:
    return cache.make_key(
        {
            "proton": cache.compiler_version(),
            "source": fn.source_key(),
            "types": [(name, type_.mangle()) for name, type_ in signature.types.items()],
            "constants": [(name, describe(v)) for name, v in signature.constants.items()],
            "divisible": sorted(signature.divisible),
            "compiler": f"{type(compiler).__module__}.{type(compiler).__qualname__}",
            "options": repr(options),
            "bindings": _version("numba-cuda-mlir"),
            "identity": compiler.identity(options),
        }
    )


_version = functools.cache(metadata.version)
