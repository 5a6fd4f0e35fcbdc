"""`@proton.jit`: a function in the tile language that can be launched.

    add[grid](x, y, out, n, BLOCK=1024)

The first launch with a new combination of argument types and constants compiles; later ones
look the kernel up by what they are given. The look-up function is generated once per kernel.
"""

import ctypes
import functools
import inspect
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from typing import Any

from proton.base.errors import LaunchError
from proton.base.knobs import knobs
from proton.base.targets import GPUTarget
from proton.base.words import did_you_mean, shown
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
from proton.language.surroundings import Link, has_changed
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


_NO_OPTIONS = {  # what one may take for an option of a launch
    "target": "a launch runs where its arguments are: to compile for a GPU that is not there, call "
    "{kernel}.warmup(..., target=...)",
    "device": "a launch runs where its arguments are: move those",
    "stream": "a launch goes to the current stream, as of torch.cuda.stream(...)",
    "grid": "the grid goes in brackets: {kernel}[grid](...)",
    "warmup": "to compile without a launch, call {kernel}.warmup(...)",
}
_JIT_OPTIONS = ("noinline", "do_not_specialize", "debug", "repr")
_JIT_IGNORED = ("do_not_specialize_on_alignment", "version", "launch_metadata")


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
        self.options = tuple(name for name in GPU_OPTIONS if name not in self.arg_names)
        self._classifiers = [parameter.classify for parameter in self.params]
        self._variants: dict[Any, _Variant] = {}
        self._bind = _make_binder(self)
        self._gpu = GPULauncher(self)
        self.watched: list[Link] = []

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
            known = dict(zip(self.arg_names, bound, strict=True)) | self._options(kwargs)
            grid = _grid_of(grid, _GridArguments(self, known))
        try:
            return self._run_on_cpu(grid, bound)
        except GPUArgument:
            return self._gpu.first_launch(grid, bound, self._options(kwargs))

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

    def warmup(self, /, *args: Any, **kwargs: Any) -> CompiledKernel:
        """Compiles for these arguments without launching; a dtype stands for an array of it.

        `target=` names a GPU, which need not be there; without one the kernel is compiled for
        where it would run. `grid=` means nothing. Where a parameter of the kernel has one of these
        names, the keyword is the parameter's, unless it is a GPUTarget.
        """
        target = kwargs.get("target")
        if isinstance(target, GPUTarget) or "target" not in self.arg_names:
            kwargs.pop("target", None)
            if target is not None and not isinstance(target, GPUTarget):
                raise LaunchError(
                    'target must be a GPU target, such as proton.GPUTarget("cuda", 90), got '
                    f"{shown(target)}; leave it out for where the kernel would run"
                )
        else:
            target = None
        if "grid" not in self.arg_names:
            kwargs.pop("grid", None)
        bound = self._bound(args, kwargs)
        if target is None:
            target = self._home(bound)
        if target is not None:
            described = [given(p, value) for p, value in zip(self.params, bound, strict=True)]
            return self._gpu.compile(target, described, self._options(kwargs))
        keys = []
        for parameter, value in zip(self.params, bound, strict=True):
            if isinstance(value, ty.dtype) and not parameter.constexpr:
                keys.append(value.short if value.is_ptr() else parameter.prefix + value.short)
            else:
                keys.append(parameter.classify(value)[0])
        self.check_globals()
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
            if now is not value and has_changed(now, value):
                is_alike = repr(now) == repr(value)
                raise LaunchError(
                    f"{self.__name__}: {name} was {value!r} when the kernel was compiled and is "
                    f"{'another one' if is_alike else repr(now)} now; pass it as a parameter"
                )

    def watch_globals(self, links: list[Link] | None = None) -> None:
        """Notes what compiled code holds of the surroundings: `watched`. It is for after a
        compilation; `links` are from before it."""
        found = self.links() if links is None else links
        once = {(id(namespace), name): (namespace, name, value) for namespace, name, value in found}
        self.watched[:] = once.values()

    def is_debug(self) -> bool:
        """Whether device assertions are compiled in."""
        return bool(knobs.debug if self.debug is None else self.debug)

    def _options(self, kwargs: dict[str, Any]) -> dict[str, Any]:
        """The launch options among keywords: a parameter of such a name is none."""
        return {name: kwargs[name] for name in self.options if name in kwargs}

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            return self._bind(*args, **kwargs)
        except TypeError as problem:
            text = str(problem).replace("binder()", self.__name__)
            raise LaunchError(text + self._help_with(kwargs)) from None

    def _help_with(self, kwargs: dict[str, Any]) -> str:
        """What to do about keywords that do not fit."""
        for name in kwargs:
            if name in self.arg_names or name in GPU_OPTIONS:
                continue
            if name in _NO_OPTIONS:
                return f"; {_NO_OPTIONS[name].format(kernel=self.__name__)}"
            guess = did_you_mean(name, (*self.arg_names, *GPU_OPTIONS))
            return guess or f"; its parameters are {', '.join(self.arg_names) or 'none'}"
        return f"; its parameters are {', '.join(self.arg_names) or 'none'}"

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
        links = self.links()
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
        self.watch_globals(links)
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


class _GridArguments(dict[str, Any]):
    """What a function that gives a grid is called with."""

    def __init__(self, kernel: JITFunction, known: dict[str, Any]) -> None:
        super().__init__(known)
        self.kernel = kernel

    def __missing__(self, name: object) -> Any:
        guess = did_you_mean(name, self) or f"; there are {', '.join(self) or 'none'}"
        raise LaunchError(
            f"the grid of {self.kernel.__name__} asks for the argument {shown(name)}, which the "
            f"kernel does not have{guess}"
        )


def _grid_of(function: Callable[..., Any], arguments: _GridArguments) -> Any:
    """The grid that a function gives."""
    try:
        return function(arguments)
    except TypeError as problem:
        here = problem.__traceback__
        if here is not None and here.tb_next is not None:
            raise  # the function's own mistake
        raise LaunchError(
            f"the grid of {arguments.kernel.__name__} is a function that cannot be called with the "
            f"launch's arguments, one dict ({problem}): write `lambda meta: (...,)`"
        ) from None


def _check_names(fn: JITFunction, option: str, names: Any) -> None:
    """Raises LaunchError where an option that lists parameters lists others."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise LaunchError(
            f"{fn.__name__}: {option} is a list of parameters' names or positions, got "
            f"{shown(names)}"
        )
    for name in names:
        if name in fn.arg_names or (type(name) is int and name in range(len(fn.arg_names))):
            continue
        guess = did_you_mean(name, fn.arg_names)
        raise LaunchError(
            f"{fn.__name__}: {option} names {shown(name)}, which is no parameter{guess}"
        )


def _parameters(fn: JITFunction, do_not_specialize: tuple[str | int, ...]) -> list[Parameter]:
    _check_names(fn, "do_not_specialize", do_not_specialize)
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
    parts += [f"{option}=None" for option in fn.options]
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
    if not extras and session is None:
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
    """A launch within a session, or of code with assertions or checks in it."""
    metadata, function = variant.kernel.metadata, variant.function
    extras = metadata["extras"]
    status = ctypes.c_int64(0)
    fixed = {"status": ctypes.addressof(status)}
    if bounds is not None:
        fixed["bounds"] = bounds.address
    recording = None
    if session is not None:
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
    known = (*_JIT_OPTIONS, *_JIT_IGNORED)
    for name in options:
        if name not in known:
            guess = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise TypeError(f"jit has no option {name!r}{guess}")
    for name, allowed in (("noinline", (bool,)), ("debug", (bool, type(None)))):
        if name in options and not isinstance(options[name], allowed):
            raise TypeError(f"jit: {name} must be a bool, got {shown(options[name])}")
    for ignored in _JIT_IGNORED:
        options.pop(ignored, None)

    def decorate(function: Callable[..., Any]) -> JITFunction:
        return JITFunction(function, **options)

    return decorate if fn is None else decorate(fn)

