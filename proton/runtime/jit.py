"""`@proton.jit`: a function in the tile language that can be launched.

    add[grid](x, y, out, n, BLOCK=1024)

The first launch with a new combination of argument types and constants compiles; later ones
look the kernel up by what they are given. The look-up function is generated once per kernel.
"""

import ctypes
import functools
import inspect
import threading
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from proton.base.errors import LaunchError
from proton.base.knobs import knobs
from proton.compiler import CompiledKernel, CompileOptions, Specialization, compile_function
from proton.language import types as ty
from proton.language.function import DeviceFunction
from proton.runtime import session as sessions
from proton.runtime.arguments import Memory, Parameter, check_range, converter
from proton.runtime.grid import WorkEstimate, check_grid, host_thread, run_grid

# Launch options of Triton that say how a GPU runs a program; a CPU program is one thread.
GPU_OPTIONS = frozenset(
    "num_warps num_stages num_ctas maxnreg enable_fp_fusion launch_cooperative_grid launch_pdl "
    "ptx_options sched4reg".split()
)


@dataclass
class _Variant:
    """Machine code of one kernel, ready to be called."""

    kernel: CompiledKernel
    function: Any  # ctypes function
    converters: list[tuple[int, Callable[[Any], Any]]]  # of the runtime arguments, by position
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
        self._variants: dict[Any, _Variant] = {}
        self._lock = threading.Lock()
        self._bind = _make_binder(self)
        functools.update_wrapper(self, fn, updated=())

    def __getitem__(self, grid: Any) -> Callable[..., CompiledKernel]:
        return lambda *args, **kwargs: self.run(*args, grid=grid, **kwargs)

    def run(self, *args: Any, grid: Any, **kwargs: Any) -> CompiledKernel:
        """Launches on a grid (1 to 3 sizes, or a function of the bound arguments); waits for it.

        Raises LaunchError for arguments a kernel cannot take, CompilationError for mistakes in
        the kernel.
        """
        values = self._bound(args, kwargs)
        if callable(grid):
            grid = grid(dict(zip(self.arg_names, values, strict=True)))
        sizes = check_grid(grid)
        keys, arguments = self._classify(values)
        session = sessions.current()
        instrumentation = session.instrumentation if session is not None else None
        variant = self._variant(keys, arguments, instrumentation)
        if sizes[0] * sizes[1] * sizes[2]:
            _launch(variant, arguments, sizes, session)
        return variant.kernel

    def warmup(self, *args: Any, grid: Any = None, **kwargs: Any) -> CompiledKernel:
        """Compiles for these arguments without launching; a dtype stands for an array of it."""
        keys, arguments = self._classify(self._bound(args, kwargs), allow_dtypes=True)
        return self._variant(keys, arguments, None).kernel

    def _bound(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Any, ...]:
        try:
            return self._bind(*args, **kwargs)
        except TypeError:
            for name in [name for name in kwargs if name in GPU_OPTIONS]:
                del kwargs[name]
            try:
                return self._bind(*args, **kwargs)
            except TypeError as problem:
                raise LaunchError(f"{self.__name__}: {_without_binder(problem)}") from None

    def _classify(
        self, values: tuple[Any, ...], *, allow_dtypes: bool = False
    ) -> tuple[tuple[Any, ...], list[Any]]:
        keys, arguments = [], []
        for parameter, value in zip(self.params, values, strict=True):
            if allow_dtypes and isinstance(value, ty.dtype) and not parameter.constexpr:
                pointee = value if value.is_ptr() else ty.pointer_type(value)
                keys.append(pointee)
                arguments.append(None)
                continue
            key, argument = parameter.classify(value)
            keys.append(key)
            arguments.append(argument)
        return tuple(keys), arguments

    def _variant(
        self, keys: tuple[Any, ...], arguments: list[Any], instrumentation: Any
    ) -> _Variant:
        """The code for these keys: the one that may assume that what it writes overlaps nothing
        else, unless that is not so."""
        debug = knobs.debug if self.debug is None else self.debug
        variant = self._lookup(keys, CompileOptions(True, debug, instrumentation))
        if _disjoint(variant.kernel.metadata["written"], arguments, keys):
            return variant
        return self._lookup(keys, CompileOptions(False, debug, instrumentation))

    def _lookup(self, keys: tuple[Any, ...], options: CompileOptions) -> _Variant:
        key = keys, options
        try:
            return self._variants[key]
        except KeyError:
            pass
        with self._lock:
            if key not in self._variants:
                self._variants[key] = self._compile(keys, options)
            return self._variants[key]

    def _compile(self, keys: tuple[Any, ...], options: CompileOptions) -> _Variant:
        types, constants, converters, ctypes_ = [], [], [], []
        for position, (name, key) in enumerate(zip(self.arg_names, keys, strict=True)):
            if isinstance(key, tuple):
                constants.append((name, key[1]))
                continue
            types.append((name, key))
            ctype, convert = converter(key)
            ctypes_.append(ctype)
            converters.append((position, convert))
        kernel = compile_function(self, Specialization(tuple(types), tuple(constants)), options)
        extra = {"thread": ctypes.c_int32}
        prototype = ctypes.CFUNCTYPE(
            None,
            *ctypes_,
            *[ctypes.c_int32] * 3,
            *[ctypes.c_int64] * 2,
            *[extra.get(name, ctypes.c_void_p) for name in kernel.metadata["extras"]],
        )
        return _Variant(kernel, prototype(kernel.code.address), converters)


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
    call does the binding, which is faster than `inspect.Signature.bind`."""
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
        if parameter.kind is parameter.POSITIONAL_ONLY:
            parts.append("/")
    names = "".join(f"{name}, " for name in fn.signature.parameters)
    source = f"def binder({', '.join(parts)}): return ({names})"
    namespace = dict(defaults)
    exec(source, namespace)
    binder: Callable[..., tuple[Any, ...]] = namespace["binder"]
    return binder


def _without_binder(problem: TypeError) -> str:
    return str(problem).removeprefix("binder() ")


def _disjoint(written: list[int], arguments: list[Any], keys: tuple[Any, ...]) -> bool:
    """Whether no argument that the kernel writes shares a byte with another argument.

    `written` counts runtime arguments; -1 in it means that any memory may be written.
    """
    runtime = [a for a, key in zip(arguments, keys, strict=True) if not isinstance(key, tuple)]
    if -1 in written:
        return False
    for position in written:
        target = runtime[position]
        if not isinstance(target, Memory):
            continue
        for other_position, other in enumerate(runtime):
            if other_position == position or not isinstance(other, Memory):
                continue
            if target.low < other.high and other.low < target.high:
                return False
    return True


def _launch(
    variant: _Variant, arguments: list[Any], grid: tuple[int, int, int], session: Any
) -> None:
    metadata, function = variant.kernel.metadata, variant.function
    values = _code_arguments(variant, arguments)
    values += grid
    programs = grid[0] * grid[1] * grid[2]
    if not metadata["extras"]:
        run_grid(programs, lambda a, b, thread: function(*values, a, b), variant.estimate)
        if session is not None:
            return
        return
    status = ctypes.c_int64(0)
    recording = None
    if metadata["profile"] is not None:
        recording = session.begin_launch(variant.kernel, grid)
    fixed = {
        "status": ctypes.addressof(status),
        "profile": recording.address if recording is not None else 0,
        "flush": recording.flush_address if recording is not None else 0,
    }
    extras = metadata["extras"]

    def run(first: int, last: int, thread: int) -> None:
        function(*values, first, last, *[thread if e == "thread" else fixed[e] for e in extras])

    try:
        run_grid(programs, run, variant.estimate)
    finally:
        if recording is not None:
            session.end_launch(recording)
    if status.value:
        raise AssertionError(metadata["assertions"][status.value - 1])


def _code_arguments(variant: _Variant, arguments: list[Any]) -> list[Any]:
    metadata = variant.kernel.metadata
    types = [argument for argument in variant.converters]
    values = []
    for place, (position, convert) in enumerate(types):
        value = arguments[position]
        if isinstance(value, Memory) and place in metadata["written"] and not value.writeable:
            raise LaunchError(
                f"argument {position} of {variant.kernel.name} is read-only, and the kernel "
                "writes through it"
            )
        values.append(convert(value))
    return values


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


__all__ = ["GPU_OPTIONS", "JITFunction", "check_range", "host_thread", "jit"]
