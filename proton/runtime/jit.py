"""`@proton.jit`: a function in the tile language that can be launched.

    add[grid](x, y, out, n, BLOCK=1024)

The first launch with a new combination of argument types and constants compiles; later ones
look the kernel up by what they are given. The look-up function is generated once per kernel.
"""

import ctypes
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from proton.base.errors import LaunchError
from proton.base.knobs import knobs
from proton.base.targets import GPUTarget
from proton.compiler import (
    CompiledKernel,
    CompileOptions,
    CPUKernel,
    Specialization,
    compile_function,
    compile_lock,
)
from proton.language import types as ty
from proton.language.function import DeviceFunction
from proton.runtime import cuda
from proton.runtime import session as sessions
from proton.runtime.arguments import Constant, GPUArgument, Memory, Parameter, ctype_of
from proton.runtime.bounds import BoundsTable
from proton.runtime.gpu_arguments import given, is_pointer
from proton.runtime.gpu_launch import GPULauncher
from proton.runtime.grid import WorkEstimate, check_grid, run_grid

# Launch options of Triton that say how a GPU runs a program; a CPU program is one thread.
GPU_OPTIONS = (
    "num_warps num_stages num_ctas maxnreg enable_fp_fusion launch_cooperative_grid launch_pdl "
    "ptx_options sched4reg"
).split()


@dataclass
class _Variant:
    """Machine code of one kernel, ready to be called."""

    kernel: CPUKernel
    function: Any  # ctypes function
    written: list[int]  # positions of the kernel's parameters that it writes through
    writes_anywhere: bool
    names: list[str]  # of all parameters
    runtime: list[int]  # positions of the parameters that the code takes
    pointers: list[int]  # those that are pointers
    estimate: WorkEstimate = field(default_factory=WorkEstimate)


class JITFunction(DeviceFunction):
    """A kernel. Index it with a grid and call it; or call it from another kernel."""

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        noinline: bool = False,
        do_not_specialize: tuple[str | int, ...] = (),
        debug: bool | None = None,
        repr: Callable[..., str] | None = None,
    ) -> None:
        super().__init__(fn, noinline=noinline)
        self.debug, self.repr = debug, repr
        self.params = _parameters(self, do_not_specialize)
        self._classifiers = [parameter.classify for parameter in self.params]
        self._variants: dict[Any, _Variant] = {}
        self._bind = _make_binder(self)
        self._gpu = GPULauncher(self)
        self.watched: list[tuple[Mapping[str, Any], str, Any]] = []

    def __getitem__(self, grid: Any) -> Callable[..., CompiledKernel]:
        if self._gpu.launch is not None:
            return functools.partial(self._gpu.launch, grid)
        return lambda *args, **kwargs: self.run_any(grid, args, kwargs)

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> CompiledKernel:
        """Launches on a grid (1 to 3 sizes, or a function of the bound arguments).

        The CPU has run it when this returns; a GPU runs it on the current stream. Raises
        LaunchError for arguments a kernel cannot take, CompilationError for mistakes in the
        kernel.
        """
        return self[grid](*args, **kwargs)

    def run_any(self, grid: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> CompiledKernel:
        """Launches where the arguments are: what is not known yet is found out here."""
        bound = self._bound(args, kwargs)
        if callable(grid):
            options = {name: kwargs[name] for name in GPU_OPTIONS if name in kwargs}
            grid = grid(dict(zip(self.arg_names, bound, strict=True)) | options)
        try:
            return self._run_on_cpu(grid, bound)
        except GPUArgument:
            return self._gpu.first_launch(grid, bound, kwargs)

    def _run_on_cpu(self, grid: Any, bound: tuple[Any, ...]) -> CompiledKernel:
        """Raises GPUArgument where the launch belongs on a GPU."""
        keys, values = self._classify(bound)
        sizes = check_grid(grid)
        self.check_globals()
        session = sessions.current()
        variant = self._variant(keys, values, session.instrumentation if session else None)
        if sizes[0] and sizes[1] and sizes[2]:
            _launch(variant, bound, values, sizes, session)
        return variant.kernel

    def warmup(
        self, *args: Any, grid: Any = None, target: GPUTarget | None = None, **kwargs: Any
    ) -> CompiledKernel:
        """Compiles for these arguments without launching; a dtype stands for an array of it.

        `target` names a GPU, which need not be there; without one the kernel is compiled for
        where it would run.
        """
        bound = self._bound(args, kwargs)
        if target is None:
            target = self._home(bound)
        if target is not None:
            described = [given(p, value) for p, value in zip(self.params, bound, strict=True)]
            return self._gpu.compile(target, described, kwargs)
        keys = []
        for parameter, value in zip(self.params, bound, strict=True):
            if isinstance(value, ty.dtype) and not parameter.constexpr:
                keys.append(value.short if value.is_ptr() else parameter.prefix + value.short)
            else:
                keys.append(parameter.classify(value)[0])
        return self._lookup((*keys, True, self.is_debug(), None, knobs.check_bounds)).kernel

    def _home(self, bound: tuple[Any, ...]) -> GPUTarget | None:
        """The GPU where a kernel with these arguments would run; None for the CPU."""
        runtime = [v for p, v in zip(self.params, bound, strict=True) if not p.constexpr]
        if not any(map(is_pointer, runtime)):
            classified = [p.classify(v)[1] for p, v in zip(self.params, bound, strict=True)
                          if not isinstance(v, ty.dtype)]
            if any(isinstance(value, Memory) for value in classified) or not prefers_gpu():
                return None
        return cuda.target_of(cuda.current_device())

    def check_globals(self) -> None:
        """Raises LaunchError where a constant in compiled code is not what the source says now."""
        for namespace, name, value in self.watched:
            now = namespace.get(name)
            is_function = isinstance(value, DeviceFunction)
            if now is not value and (is_function or repr(now) != repr(value)):
                raise LaunchError(
                    f"{self.__name__}: the global {name} was {value!r} when the kernel was "
                    f"compiled and is {now!r} now; pass it as a parameter"
                )

    def watch_globals(self) -> None:
        """Notes what compiled code holds of the surroundings: `watched`."""
        self.watched[:] = self.watched_globals()

    def is_debug(self) -> bool:
        """Whether device assertions are compiled in."""
        return bool(knobs.debug if self.debug is None else self.debug)

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            return self._bind(*args, **kwargs)
        except TypeError as problem:
            text = str(problem).replace("binder()", self.__name__)
            raise LaunchError(text) from None

    def _classify(self, bound: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
        keys, values = [], []
        for classify, value in zip(self._classifiers, bound, strict=True):
            key, given = classify(value)
            keys.append(key)
            values.append(given)
        return keys, values

    def _variant(self, keys: list[Any], values: list[Any], instrumentation: Any) -> _Variant:
        """The code for these keys: the one that may assume that what it writes overlaps nothing
        else, unless that is not so."""
        options = self.is_debug(), instrumentation, knobs.check_bounds
        variant = self._lookup((*keys, True, *options))
        if _disjoint(variant, values):
            return variant
        return self._lookup((*keys, False, *options))

    def _lookup(self, key: tuple[Any, ...]) -> _Variant:
        variant = self._variants.get(key)
        if variant is None:
            with compile_lock:
                variant = self._variants.get(key)
                if variant is None:
                    variant = self._variants[key] = self._compile(key)
        return variant

    def _compile(self, key: tuple[Any, ...]) -> _Variant:
        *keys, disjoint, debug, instrumentation, check_bounds = key
        if prefers_gpu() and not any(isinstance(k, str) and k.startswith("*") for k in keys):
            raise GPUArgument("no argument says where the kernel runs, and there is a GPU")
        self.watch_globals()
        types, constants, runtime = [], [], []
        for position, (name, part) in enumerate(zip(self.arg_names, keys, strict=True)):
            if isinstance(part, Constant):
                constants.append((name, part.value))
            else:
                types.append((name, ty.str_to_ty(part)))
                runtime.append(position)
        kernel = compile_function(
            self,
            Specialization(tuple(types), tuple(constants)),
            CompileOptions(disjoint, debug, instrumentation, check_bounds),
        )
        extra = {"thread": ctypes.c_int32}
        prototype = ctypes.CFUNCTYPE(
            None,
            *[ctype_of(type_) for _, type_ in types],
            *[ctypes.c_int32] * 3,
            *[ctypes.c_int64] * 2,
            *[extra.get(name, ctypes.c_void_p) for name in kernel.metadata["extras"]],
        )
        written = kernel.metadata["written"]
        return _Variant(
            kernel,
            prototype(kernel.code.address),
            written=[runtime[number] for number in written if number >= 0],
            writes_anywhere=-1 in written,
            names=self.arg_names,
            runtime=runtime,
            pointers=[p for p, (_, type_) in zip(runtime, types, strict=True) if type_.is_ptr()],
        )


def prefers_gpu() -> bool:
    """Whether kernels run on a GPU whose arguments do not say where."""
    return knobs.backend == "cuda" or (knobs.backend is None and cuda.device_count() > 0)


def _parameters(fn: JITFunction, do_not_specialize: tuple[str | int, ...]) -> list[Parameter]:
    parameters = []
    for position, (name, parameter) in enumerate(fn.signature.parameters.items()):
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise LaunchError(f"{fn.__name__}: a kernel cannot have *args or **kwargs ({name})")
        annotation = parameter.annotation
        if isinstance(annotation, str):
            annotation = _evaluate_annotation(fn, annotation)
        is_const = annotation is ty.const
        if isinstance(annotation, str):
            annotation = ty.str_to_ty(annotation)
        parameters.append(
            Parameter(
                name,
                constexpr=annotation is ty.constexpr,
                annotation=annotation if isinstance(annotation, ty.dtype) else None,
                const_pointer=is_const,
                specialize=name not in do_not_specialize and position not in do_not_specialize,
            )
        )
    return parameters


def _evaluate_annotation(fn: JITFunction, text: str) -> Any:
    """An annotation that is a string: a type's short name, or postponed evaluation."""
    if text.split(".")[-1] == "constexpr":
        return ty.constexpr
    if text.split(".")[-1] == "const":
        return ty.const
    name = text.split(".")[-1]
    value = getattr(ty, name, None)
    return value if isinstance(value, ty.dtype) else text


def _make_binder(fn: JITFunction) -> Callable[..., tuple[Any, ...]]:
    """A function with the kernel's own signature that returns the arguments in order: Python's
    call does the binding, which is faster than `inspect.Signature.bind`. It takes the launch
    options of GPUs as well."""
    defaults: dict[str, Any] = {}
    parts = []
    for name, parameter in fn.signature.parameters.items():
        if parameter.kind is parameter.KEYWORD_ONLY and "*" not in parts:
            parts.append("*")
        if parameter.default is inspect.Parameter.empty:
            parts.append(name)
        else:
            defaults[f"_{name}"] = parameter.default
            parts.append(f"{name}=_{name}")
    if "*" not in parts:
        parts.append("*")
    parts += [f"{option}=None" for option in GPU_OPTIONS if option not in fn.signature.parameters]
    names = "".join(f"{name}, " for name in fn.signature.parameters)
    namespace = dict(defaults)
    exec(f"def binder({', '.join(parts)}): return ({names})", namespace)
    binder: Callable[..., tuple[Any, ...]] = namespace["binder"]
    return binder


def _disjoint(variant: _Variant, values: list[Any]) -> bool:
    """Whether no argument that the kernel writes shares a byte with another argument."""
    if variant.writes_anywhere:
        return False
    for position in variant.written:
        target = values[position]
        low, high = target.low, target.high
        for other_position in variant.pointers:
            other = values[other_position]
            if low < other.high and other.low < high and other_position != position:
                return False
    return True


def _launch(
    variant: _Variant,
    bound: tuple[Any, ...],
    values: list[Any],
    grid: tuple[int, int, int],
    session: Any,
) -> None:
    """Runs a grid; `bound` is what the caller gave, `values` what it was found to be."""
    bounds = None
    if variant.kernel.metadata["bounds"]:
        given_by_name = [(variant.names[p], bound[p], values[p]) for p in variant.runtime]
        bounds = BoundsTable(variant.kernel, given_by_name)
    for position in variant.written:
        if not values[position].writeable:
            name = variant.names[position]
            raise LaunchError(f"argument {name} is read-only, and the kernel writes through it")
    for position in variant.pointers:
        values[position] = values[position].address
    given = [*[values[position] for position in variant.runtime], *grid]
    programs, function = grid[0] * grid[1] * grid[2], variant.function
    extras = variant.kernel.metadata["extras"]
    if not extras:
        run_grid(programs, lambda first, last, _: function(*given, first, last), variant.estimate)
    else:
        _launch_with_extras(variant, given, grid, session, bounds)


def _launch_with_extras(
    variant: _Variant,
    given: list[Any],
    grid: tuple[int, int, int],
    session: Any,
    bounds: BoundsTable | None,
) -> None:
    """A launch of code with assertions, checks or records in it."""
    metadata, function = variant.kernel.metadata, variant.function
    extras = metadata["extras"]
    status = ctypes.c_int64(0)
    fixed = {"status": ctypes.addressof(status)}
    if bounds is not None:
        fixed["bounds"] = bounds.address
    recording = None
    if metadata["profile"] is not None:
        recording = session.begin_launch(variant.kernel, grid)
        fixed |= {"profile": recording.address, "flush": recording.flush_address}

    def run(first: int, last: int, thread: int) -> None:
        function(*given, first, last, *[fixed.get(name, thread) for name in extras])

    try:
        run_grid(grid[0] * grid[1] * grid[2], run, variant.estimate)
    finally:
        if recording is not None:
            session.end_launch(recording)
    if bounds is not None:
        bounds.check()
    if status.value:
        raise AssertionError(metadata["assertions"][status.value - 1])


def jit(fn: Callable[..., Any] | None = None, **options: Any) -> Any:
    """Makes a kernel of a function; `@jit` or `@jit(noinline=..., do_not_specialize=...)`."""
    known = {
        "noinline",
        "do_not_specialize",
        "do_not_specialize_on_alignment",
        "debug",
        "repr",
        "version",
        "launch_metadata",
    }
    if unknown := sorted(set(options) - known):
        raise TypeError(f"jit has no option {unknown[0]!r}; there are {', '.join(sorted(known))}")
    for ignored in ("do_not_specialize_on_alignment", "version", "launch_metadata"):
        options.pop(ignored, None)

    def decorate(function: Callable[..., Any]) -> JITFunction:
        return JITFunction(function, **options)

    return decorate if fn is None else decorate(fn)

