"""Source and signature to a compiled kernel, through the disk cache.

What differs between devices is the back end's (proton.backends.compiler). MLIR is imported only
when something has to be compiled: a process that finds all of its kernels on disk links their
objects and starts.
"""

import contextlib
import functools
import gc
import importlib
import inspect
import os
import sys
import threading
import time
from collections.abc import Iterator, Mapping
from importlib import metadata
from typing import Any, NamedTuple

from proton.backends import code_generator
from proton.backends.compiler import Asm, CompiledKernel, Compiler, Kernel, Metadata, Options
from proton.base import errors
from proton.base.errors import CompilationError as CompilationError
from proton.base.errors import CompileTimeAssertionFailure as CompileTimeAssertionFailure
from proton.base.errors import OutOfResources as OutOfResources
from proton.base.errors import ProtonError
from proton.base.errors import UnsupportedLanguageConstruct as UnsupportedLanguageConstruct
from proton.base.knobs import knobs
from proton.base.symbols import END, mangled
from proton.base.targets import GPUTarget as GPUTarget
from proton.base.targets import Target
from proton.base.words import did_you_mean, shown
from proton.compiling import argument_facts, cache, compile_hooks
from proton.compiling.ir_source import IRSource as IRSource
from proton.language import profiling
from proton.language.function import DeviceFunction
from proton.language.signature import Signature
from proton.language.surroundings import describe
from proton.language.types import str_to_ty

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
    with compile_lock, _host_slice(fn), _without_collection():
        kernel = _load_or_compile(compiler, fn, signature, options)
    kernel.made_of(fn, signature, options)
    compile_hooks.after(kernel)
    return kernel


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
    prepared = time.perf_counter()
    compile_hooks.before(key, fn, signature, options)
    if not bypasses_cache() and (entry := cache.load(key)) is not None:
        data, files = entry
        times = {"load": (time.perf_counter() - start) * 1e3}
        asm = Asm(compiler, files, fn.src)
        metadata = Metadata(data | {"hash": key})
        return compiler.kernel(str(data["name"]), key, metadata, asm, times, from_cache=True)
    label = f"{mangled(fn.__name__).removesuffix(END)}-{key[:8]}"
    result = compiler.compile(fn, signature, options, label)
    result.data = _data(fn, signature) | result.data
    compiled = time.perf_counter()
    if knobs.override_from is None:  # an edited dump is not what the key describes
        cache.store(key, result.data, result.files)
    times = {"key": (prepared - start) * 1e3, **result.times}
    times["store"] = (time.perf_counter() - compiled) * 1e3
    asm = Asm(compiler, result.files, fn.src)
    metadata = Metadata(result.data | {"hash": key})
    return compiler.kernel(str(result.data["name"]), key, metadata, asm, times)


@contextlib.contextmanager
def _without_collection() -> Iterator[None]:
    """Keeps Python's garbage collector from running: a third of the time of loading the compiler
    goes into looking through what it has just loaded, none of which is garbage."""
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def _data(fn: DeviceFunction, signature: Signature) -> dict[str, object]:
    """The metadata that every kernel has; a back end may say otherwise."""
    return {
        "name": fn.name_of(signature),
        "symbol": mangled(fn.name_of(signature)),
        "signature": str(signature),
        "profile": None,
    }


class ASTSource:
    """A kernel and what it is compiled for, where nothing is launched that says it.

    `signature` maps its run-time parameters to types by their short names (`{"x_ptr": "*fp32",
    "n": "i32"}`), `constexprs` the others to values; `attrs` says of which `[["tt.divisibility",
    16]]` holds, or `[["tt.non_negative", 1]]`. Parameters are named, or counted: 2 or (2,) is the
    third.
    """

    def __init__(
        self,
        fn: DeviceFunction,
        signature: dict[Any, str],
        constexprs: Mapping[Any, object] | None = None,
        attrs: Mapping[Any, object] | None = None,
    ) -> None:
        if not isinstance(fn, DeviceFunction):
            raise TypeError(f"ASTSource takes a kernel, got {shown(fn)}")
        self.fn, self.name = fn, fn.__name__
        constants = {self._parameter(at): value for at, value in (constexprs or {}).items()}
        types = {self._parameter(at): text for at, text in signature.items()}
        given = {p.name: p.default for p in fn.signature.parameters.values()} | constants
        self.signature, self.constants = {}, {}
        for name in fn.arg_names:
            if types.get(name, "constexpr") != "constexpr" and name not in constants:
                self.signature[name] = str_to_ty(types[name])
            elif given[name] is not inspect.Parameter.empty:
                self.constants[name] = given[name]
            else:
                raise ProtonError(
                    f"{self.name}: signature has no type of {name}, and constexprs have no value"
                )
        said = {self._parameter(at): of for at, of in (attrs or {}).items()}
        sets = argument_facts.sets_of(said)
        self.divisible, self.non_negative = (of & self.signature.keys() for of in sets)

    def _parameter(self, at: object) -> str:
        """A parameter's name."""
        names = self.fn.arg_names
        place = at[0] if isinstance(at, tuple) and len(at) == 1 else at
        if type(place) is int and place in range(len(names)):
            return names[place]
        if place not in names:
            guess = did_you_mean(place, names) or f"; there are {', '.join(names)}"
            raise ProtonError(f"{self.name} has no parameter {shown(place)}{guess}")
        return str(place)


def compile_source(
    compiler: Compiler[Any, Any], source: ASTSource, target: Target, options: dict[str, Any]
) -> CompiledKernel:
    """The kernel of a source; `options` are those of a launch."""
    signature = Signature(source.signature, source.constants, source.divisible, source.non_negative)
    kernel: CompiledKernel = compile_function(
        compiler, source.fn, signature, compiler.chosen(target, options, source.fn)
    )
    return kernel


def bypasses_cache() -> bool:
    """True if kernels are compiled anew, whatever there is on disk."""
    return knobs.always_compile or knobs.dump_to is not None or knobs.override_from is not None


def _key(
    fn: DeviceFunction, signature: Signature, compiler: Compiler[Any, Any], options: Any
) -> str:
    return cache.make_key(
        {
            "proton": cache.compiler_version(),
            "source": fn.source_key(),
            "name": fn.name_of(signature),
            "types": [(name, type_.mangle()) for name, type_ in signature.types.items()],
            "constants": [(name, describe(v)) for name, v in signature.constants.items()],
            "divisible": sorted(signature.divisible),
            "non_negative": sorted(signature.non_negative),
            "tuples": [(name, describe(f.kind), f.count) for name, f in signature.tuples.items()],
            "compiler": f"{type(compiler).__module__}.{type(compiler).__qualname__}",
            "options": repr(options),
            "bindings": _version("numba-cuda-mlir"),
            "identity": compiler.identity(options),
        }
    )


_version = functools.cache(metadata.version)
_INSTEAD = {  # what Triton has in `compiler`, and is not here -> what to do
    "AttrsDescriptor": "attrs of ASTSource is a dict: {('x_ptr',): [['tt.divisibility', 16]]}",
    "make_backend": "proton.compile takes a target",
}


# Triton has a package here: what its modules have in common with ours is in these.
compiler = sys.modules[__name__]
_MODULES = {"compiler": compiler, "errors": errors, "code_generator": code_generator}
for _name, _module in _MODULES.items():
    sys.modules[f"{__name__}.{_name}"] = _module


def __getattr__(name: str) -> Any:
    if name == "compile":  # which launches need, too
        return importlib.import_module("proton").compile
    instead = f": {_INSTEAD[name]}" if name in _INSTEAD else ""
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}{instead}")
