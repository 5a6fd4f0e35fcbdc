"""`triton.compiler`: what `proton.compiler` has, and the launch interface of compiled kernels.

`triton.compile` gives a kernel that programs launch themselves: `kernel.run` with the sizes of the
grid, the stream, `kernel.function` and the arguments. It goes through a pickle to another process.
"""

import copyreg
import functools
import importlib.util
import operator
import sys
from collections import namedtuple
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import proton.compiler
from proton.backends.compiler import Asm, SourceOfKernel
from proton.backends.compiler import CompiledKernel as Kernel
from proton.base.errors import ProtonError
from proton.base.targets import Target
from proton.compat.triton.inductor import launch_as_operator, show_static_launcher
from proton.compat.triton.libtriton import AccessModule, access_module
from proton.compat.triton.targets import GPUTarget as GPUTarget
from proton.compat.triton.targets import make_backend as make_backend
from proton.compat.triton.targets import options_of
from proton.compiler import IRSource as IRSource
from proton.language import profiling
from proton.language.signature import Signature
from proton.runtime import driver
from proton.runtime.backend import DirectLaunch, backend_named
from proton.runtime.cache import triton_key as triton_key
from proton.runtime.launch.hooks import LazyDict as LazyDict
from proton.runtime.launch.jit import JITFunction

compiler = sys.modules[__name__]  # Triton has a package here


# Options of Triton's by which its library of functions is chosen: Proton's flushes no denormals.
_MEANINGLESS = ("enable_reflect_ftz",)


class TritonASTSource(proton.compiler.ASTSource):
    """The same, with the signature as it was given: what launches of compiled code look at."""

    def __init__(
        self,
        fn: Any,
        signature: dict[Any, str],
        constexprs: Mapping[Any, object] | None = None,
        attrs: Mapping[Any, object] | None = None,
    ) -> None:
        super().__init__(fn, signature, constexprs, attrs)
        self.attrs, self.given = attrs or {}, SourceOfKernel(fn, signature, dict(constexprs or {}))

    def make_ir(
        self,
        target: Target,
        options: object,
        implementation: object,
        modules: object,
        context: object,
    ) -> AccessModule:
        """What torch reads of the kernel's IR; the other arguments are what Triton needs for it."""
        signature = Signature(self.signature, self.constants, self.divisible, self.non_negative)
        return access_module(self.fn, signature, target)


class _AnyKernel(type):
    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, Kernel) or type.__instancecheck__(cls, value)


class TritonCompiledKernel(metaclass=_AnyKernel):
    """A compiled kernel, with what Triton's launchers take of it. It has all of Proton's kernel,
    too."""

    function: str | None  # what stands for the driver's handle
    run: "_Run | None"

    def __init__(self, kernel: Kernel, source: SourceOfKernel) -> None:
        self.compiled, self.src = kernel, source
        self.name, self.hash, self.asm = kernel.name, kernel.hash, _code_of(kernel)
        self.metadata = _metadata_of(kernel)
        self.packed_metadata = (self.metadata.num_warps, 1, self.metadata.shared, 1, 1, 1)
        self.module = self.function = self.run = None

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__") or name == "compiled":
            raise AttributeError(name)
        return getattr(self.compiled, name)

    @property
    def n_spills(self) -> int:
        """Registers of a thread that lie in local memory, as Triton counts them, not bytes: torch
        tries no kernel that has many. On the CPU it is 0."""
        return int(getattr(self.compiled, "spilled_registers", 0))

    def __getstate__(self) -> dict[str, object]:
        return self.__dict__ | dict.fromkeys(("module", "function", "run"))

    def __getitem__(self, grid: object) -> Any:
        return self.compiled[grid]

    def _init_handles(self) -> None:
        """Loads the code: from then on `run` launches it."""
        if self.run is None:
            target = self.compiled.metadata["target"]
            launch = backend_named(target.partition(":")[0]).direct(self.compiled)
            self.function, self.run = self.hash, _Run(self.name, launch, self._passed())

    def _passed(self) -> list[int]:
        """Of all arguments of a launch the positions of those that code takes."""
        types = self.compiled.signature.types
        return [number for number, name in enumerate(self.src.fn.arg_names) if name in types]

    def launch_metadata(self, grid: tuple[int, ...], stream: int, *args: object) -> LazyDict:
        """What hooks are told of a launch."""
        facts = LazyDict({"name": self.name, "function": self.function, "stream": stream})
        more = getattr(self.src.fn, "launch_metadata", None)
        if more is not None:
            names = self.src.fn.arg_names
            facts.add(more, (grid, self.metadata, dict(zip(names, args, strict=False))))
        return facts


def max_shared_mem(device: int) -> int:
    """The bytes of shared memory that a block of threads may have on a device."""
    return int(driver.active.utils.get_device_properties(device)["max_shared_mem"])  # type: ignore[call-overload]


def _code_of(kernel: Kernel) -> Mapping[str, Any]:
    """`kernel.asm`, without what other launchers than Proton's would launch wrongly, or not at
    all: torch's C++ wrapper and its static launcher."""
    if maps := len(kernel.metadata.get("tensor_maps", ())):
        problem = (
            f"{kernel.name} copies by TMA: its machine code takes tensor maps ({maps}) that only "
            "Proton's launches give. For AOTInductor and the C++ wrapper leave out descriptors "
            "(USE_TMA, enable_persistent_tma_matmul); to look at the code: kernel.compiled.asm"
        )
        return _Code(kernel.asm, {"cubin": problem})
    if "cubin" in kernel.asm:
        return _Code(kernel.asm, {})
    if "obj" in kernel.asm:
        problem = (
            f"{kernel.name} is compiled for the CPU in this process, and to no shared library: for "
            'AOTInductor and the C++ wrapper set torch._inductor.config.cpu_backend = "cpp", or '
            "export the model on a GPU"
        )
        return _Code(kernel.asm, dict.fromkeys(("so", "launcher.so"), problem))
    return kernel.asm


@dataclass(frozen=True)
class _Code(Mapping[str, Any]):
    """The levels of a kernel, with machine code whose symbol is the metadata's `name`; to ask for
    some is an error that says what to do instead."""

    levels: Asm
    refused: dict[str, str]

    def __getitem__(self, level: str) -> Any:
        if level in self.refused:
            raise ProtonError(self.refused[level])
        return self.levels.kept(level) if level == "cubin" else self.levels[level]

    def __contains__(self, level: object) -> bool:
        return level in self.levels

    def __iter__(self) -> Iterator[str]:
        return iter(self.levels)

    def __len__(self) -> int:
        return len(self.levels)


class _Run:
    """Launches: `run(x, y, z, stream, function, packed_metadata, launch_metadata, enter_hook,
    exit_hook, *args)`, of which `args` are all arguments of the function."""

    def __init__(self, name: str, launch: DirectLaunch, passed: list[int]) -> None:
        self._name, self._launch = name, launch
        self._pick = _picker(passed)

    def __call__(
        self, x: int, y: int, z: int, stream: int, function: object, packed: object,
        metadata: object, enter: Any, leave: Any, *args: object,
    ) -> None:  # fmt: skip
        values = self._pick(args)
        if enter:
            enter(metadata)
        if profiling.host is None:
            self._launch((x, y, z), stream, values)
        else:
            launch_as_operator(self._name, self._launch, (x, y, z), stream, values)
        if leave:
            leave(metadata)


def _picker(numbers: list[int]) -> Callable[[tuple[object, ...]], tuple[object, ...]]:
    """What gives some of a tuple, as a tuple."""
    if len(numbers) > 1:  # of one it gives no tuple
        return operator.itemgetter(*numbers)
    return lambda args: tuple(args[number] for number in numbers)


def _metadata_of(kernel: Kernel) -> Any:
    """Its facts and options as a named tuple, as Triton's are."""
    none = dict.fromkeys(("shared", "global_scratch_size", "profile_scratch_size"), 0)
    facts: dict[str, object] = dict(none)
    facts |= vars(options_of(kernel.options)) | dict(kernel.metadata)
    facts |= {"hash": kernel.hash, "name": kernel.metadata["symbol"]}  # the name in the code
    return _metadata({name: facts[name] for name in sorted(facts)})


def _metadata(facts: dict[str, object]) -> Any:
    return _metadata_class(tuple(facts))(**facts)


@functools.cache
def _metadata_class(names: tuple[str, ...]) -> Any:
    """A named tuple that a pickle may have, though its class is no module's."""
    plain: Any = namedtuple("KernelMetadata", names)  # type: ignore[misc]  # known at run time
    reduced = {"__reduce__": lambda self: (_metadata, (self._asdict(),)), "__slots__": ()}
    return type("KernelMetadata", (plain,), reduced)


def compile(
    src: Any, target: Any = None, options: dict[str, object] | None = None, **_: object
) -> Any:
    """As `proton.compile`; of a source it gives a kernel with Triton's launch interface."""
    given = {name: of for name, of in (options or {}).items() if name not in _MEANINGLESS}
    kernel = driver.compile(src, target, given)
    if not isinstance(src, TritonASTSource):
        return kernel
    show_static_launcher(kernel)
    return TritonCompiledKernel(kernel, src.given)


ASTSource, CompiledKernel = TritonASTSource, TritonCompiledKernel


# A kernel in a pickle


class LateFunction:
    """A kernel's function that came out of a pickle: what is asked of it without its code, which is
    loaded from its file where something is compiled of it again."""

    def __init__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state)
        self.fn = None

    def repr(self, specialization: object = None) -> str:
        """What it is called."""
        return self._shown

    @cached_property
    def _loaded(self) -> Any:
        if not Path(self.file).is_file():
            raise ProtonError(f"{self.__name__} is compiled again, and {self.file} is not there")
        spec = importlib.util.spec_from_file_location(self.__module__, self.file)
        assert spec is not None
        assert spec.loader is not None
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        found = getattr(module, self.__name__)
        while not isinstance(found, JITFunction):
            found = found.fn
        return found

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return getattr(self._loaded, name)


def _reduced(fn: JITFunction) -> tuple[Any, tuple[dict[str, Any]]]:
    shown = fn.__dict__.get("repr")  # torch has put what it gave in its place
    state = {
        "__name__": fn.__name__,
        "__module__": fn.__module__,
        "arg_names": fn.arg_names,
        "params": fn.params,
        "file": fn.file,
        "src": fn.src,
        "launch_metadata": None,
        "_shown": fn.__name__ if shown is None else shown(fn),
    }
    return LateFunction, (state,)


copyreg.pickle(JITFunction, _reduced)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(proton.compiler, name)
