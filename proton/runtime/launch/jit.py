"""`@proton.jit`: a function in the tile language that can be launched.

    add[grid](x, y, out, n, BLOCK=1024)

The first launch with a new combination of argument types and constants compiles; later ones look
the kernel up by a function that is generated once per kernel.
"""

import abc
import functools
import inspect
import types
import warnings
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from proton.backends.compiler import CompiledKernel
from proton.base.errors import BadArguments, LaunchError, ProtonError, UnknownKeyword
from proton.base.knobs import knobs
from proton.base.targets import Target
from proton.base.tracebacks import boundary, shorten
from proton.base.words import did_you_mean, shown
from proton.compiler import Request, compile_lock
from proton.compiling import compile_hooks
from proton.language import types as ty
from proton.language.function import ConstexprFunction as ConstexprFunction
from proton.language.function import DeviceFunction
from proton.language.function import constexpr_function as constexpr_function
from proton.language.source import Source
from proton.language.surroundings import Link, has_changed, shown_change
from proton.runtime.backend import (
    HOST,
    Backend,
    Launcher,
    backend_named,
    default_backend,
    owner_of,
)
from proton.runtime.launch import hooks
from proton.runtime.launch.annotations import evaluate_annotation
from proton.runtime.launch.arguments import Parameter, refused
from proton.runtime.launch.arguments import type_canonicalisation_dict as type_canonicalisation_dict
from proton.runtime.launch.grid import GridArguments, grid_of
from proton.runtime.launch.interface import KernelInterface, Named, Values
from proton.runtime.launch.launch_options import LaunchOptions, launch_options
from proton.runtime.launch.placed import PlacedKernel
from proton.runtime.launch.reinterpret import MockTensor as MockTensor
from proton.runtime.launch.reinterpret import TensorWrapper as TensorWrapper
from proton.runtime.launch.reinterpret import reinterpret as reinterpret
from proton.runtime.launch.specializations import SpecializedKernel
from proton.runtime.launch.specializations import compute_cache_key as compute_cache_key
from proton.runtime.launch.specializations import mangle_type as mangle_type
from proton.runtime.launch.specializations import specialize_impl as specialize_impl
from proton.runtime.session import session as sessions
from proton.runtime.tuning.async_compile import active_mode

serialize_specialization_data = compile_hooks.serialize_specialization_data
_NO_OPTIONS = {  # what one may take for an option of a launch
    "target": "a launch runs where its arguments are: to compile for a GPU that is not there, call "
    "{kernel}.warmup(..., target=...)",
    "device": "a launch runs where its arguments are: move those",
    "stream": "a launch goes to the current stream, as of torch.cuda.stream(...)",
    "grid": "the grid goes in brackets: {kernel}[grid](...)",
    "warmup": "to compile without a launch, call {kernel}.warmup(...)",
    **dict.fromkeys(
        ("waves_per_eu", "matrix_instr_nonkdim", "kpack", "schedule_hint", "allow_flush_denorm"),
        "it is an option for AMD GPUs, which are not supported: leave it out",
    ),
}
_JIT_OPTIONS = (
    *("noinline", "do_not_specialize", "do_not_specialize_on_alignment", "debug", "repr"),
    *("launch_metadata", "interpret"),
)
_JIT_IGNORED = ("version",)
_OF_DECORATED = 6  # frames from a warning about a kernel to its definition


class JITCallable(abc.ABC):  # noqa: B024  # no methods: Triton's name for two classes
    """What kernels may call, for `isinstance`."""


JITCallable.register(DeviceFunction)
JITCallable.register(ConstexprFunction)


class JITFunction(DeviceFunction, SpecializedKernel, PlacedKernel, KernelInterface):
    """A kernel. Index it with a grid and call it; or call it from another kernel."""

    def __init__(
        self,
        fn: Callable[..., Any],
        *,
        noinline: bool = False,
        do_not_specialize: Sequence[str | int] | None = None,
        do_not_specialize_on_alignment: Sequence[str | int] | None = None,
        debug: bool | None = None,
        repr: Callable[..., str] | None = None,
        launch_metadata: Callable[..., dict[str, object]] | None = None,
        interpret: bool | None = None,
    ) -> None:
        DeviceFunction.__init__(self, fn, noinline=noinline)
        SpecializedKernel.__init__(self, fn, repr)
        PlacedKernel.__init__(self)
        self.debug, self.launch_metadata = debug, launch_metadata
        self.interpret = interpret
        self.do_not_specialize = () if do_not_specialize is None else do_not_specialize
        self.do_not_specialize_on_alignment = (
            () if do_not_specialize_on_alignment is None else do_not_specialize_on_alignment
        )
        self.params = self.parameters()
        self._options = LaunchOptions(self.params)
        self.options = self._options.keywords
        self.fast_path: Callable[..., Any] | None = None
        self._launchers: dict[str, Launcher] = {}
        self._host = self.launcher(backend_named(HOST))
        self._interpreted: object = None
        self.watched: list[Link] = []
        self.pre_run_hooks: list[Callable[..., object]] = []

    @functools.cached_property
    def _bind(self) -> Callable[..., tuple[Any, ...]]:
        return _make_binder(self)

    def parameters(self) -> list[Parameter]:
        """What each of the parameters is to a launch."""
        return _parameters(self)

    def __getitem__(self, grid: object) -> Callable[..., CompiledKernel]:
        if self.fast_path is not None:
            return functools.partial(self.fast_path, grid)
        return functools.partial(self._launch, grid)

    def _launch(self, grid: object, /, *args: object, **kwargs: object) -> CompiledKernel:
        fast = self.fast_path
        if fast is not None:  # `kernel[grid]` was kept from before the first launch
            launched: CompiledKernel = fast(grid, *args, **kwargs)
            return launched
        try:  # a boundary, without the call that a decorator costs
            return self.run_any(grid, args, kwargs)
        except ProtonError as error:
            shorten(error)
            raise

    @boundary
    def run(
        self, *args: object, grid: object, warmup: bool = False, **kwargs: object
    ) -> CompiledKernel:
        """Launches on a grid (1 to 3 sizes, or a function of the bound arguments), or compiles
        only (`warmup=True`).

        The CPU has run it when this returns; a GPU runs it on the current stream. Raises
        LaunchError for arguments it cannot take, CompilationError for mistakes in the kernel.
        """
        return self.warmup(*args, **kwargs) if warmup else self[grid](*args, **kwargs)

    def _set_source(self, source: Source) -> None:
        super()._set_source(source)
        self._launchers.clear()
        self._host = self.launcher(backend_named(HOST))
        self._interpreted = self.fast_path = None
        self.watched.clear()

    def add_pre_run_hook(self, hook: Callable[..., object]) -> None:
        """Has each launch call `hook` with its arguments before."""
        self.pre_run_hooks.append(hook)
        self.fast_path = None

    def bound(self, /, *args: Any, **kwargs: Any) -> dict[str, Any]:
        """The arguments of a launch, or of `warmup`, by name."""
        _, (values, *_) = self._planned(args, kwargs)
        return dict(zip(self.arg_names, values, strict=True))

    @property
    def used_global_vals(self) -> dict[str, object]:
        """The constants of its surroundings that the source reads, by name."""
        found = {name: ty.unwrap(value) for name, value in self.dependencies().items()}
        code = DeviceFunction, types.ModuleType, type
        return {n: v for n, v in found.items() if not callable(v) and not isinstance(v, code)}

    @used_global_vals.setter
    def used_global_vals(self, value: object) -> None:
        """Nothing is kept, likewise; torch drops what Triton keeps."""

    @property
    def cache_key(self) -> str:
        """A hash of the source, of what it reads and of the functions that it calls."""
        return self.source_key()

    @property
    def hash(self) -> str:
        """The same."""
        return self.cache_key

    @hash.setter
    def hash(self, value: None) -> None:
        """Nothing is kept that would have to be forgotten, as Triton's tests have it."""

    @property
    def constexprs(self) -> list[int]:
        """The positions of the parameters that the code is specialized on."""
        return [parameter.num for parameter in self.params if parameter.constexpr]

    @property
    def module(self) -> str:
        """The module that the kernel is of."""
        return self.__module__

    def run_any(self, grid: object, args: Values, kwargs: Named) -> CompiledKernel:
        """Launches where the arguments are: what is not known yet is found out here. The host's
        launcher comes first, since it is the quickest to see what it knows; it asks for `home`
        and passes on what is not its own."""
        for hook in self.pre_run_hooks:
            hook(*args, **kwargs)
        bound = self._bound(args, kwargs)
        options = self._options.of(bound, kwargs)
        if callable(grid):
            known = dict(zip(self.arg_names, bound, strict=True)) | options
            grid = grid_of(grid, GridArguments(self.__name__, known))
        if knobs.interpret if self.interpret is None else self.interpret:
            launched: CompiledKernel = self._interpreter().launch(grid, bound, options)
            return launched
        try:
            if hooks.around_launches():
                return self._hooked(grid, bound, options)
            return self._host.launch(grid, bound, options)
        except compile_hooks.Vetoed:
            return None  # type: ignore[return-value]  # as the program's hook wants it

    def _hooked(self, grid: object, bound: Values, options: Named) -> CompiledKernel:
        """Launches between the hooks of the program."""
        home = self.home(bound)
        kernel = self.launcher(home).loaded(bound, options)
        return hooks.hooked(
            functools.partial(self._host.launch, grid, bound, options),
            kernel,
            self.launch_metadata,
            grid,
            home.current_stream(home.current_device()),
            dict(zip(self.arg_names, bound, strict=True)),
        )

    def _interpreter(self) -> Any:
        """The launcher of this kernel as Python; it takes modules that others do without. A fork
        waits for their import."""
        if self._interpreted is None:
            with compile_lock:
                self._interpreted = backend_named(HOST).interpreter(self)
        return self._interpreted

    def launcher(self, backend: Backend) -> Launcher:
        """The launcher of this kernel on a back end."""
        found = self._launchers.get(backend.name)
        return found or self._launchers.setdefault(backend.name, backend.launcher(self))

    def forget(self) -> None:
        """Drops what launches were compiled to, and what the interpreter made; what lies on disk
        stays."""
        for launcher in list(self._launchers.values()):
            launcher.forget()
        self._interpreted = None

    @boundary
    def warmup(self, /, *args: object, **kwargs: object) -> CompiledKernel:
        """Compiles for these arguments without launching; a dtype stands for an array of it.

        `target=` is a GPU that need not be there (default: where the kernel would run), `profile=`
        options of a session, `{"every": 8}`, which it is as in (default: the active one). `grid=`
        means nothing. A parameter of such a name has the keyword, unless that is a GPUTarget.
        Raises ProfileError for options that a session does not have.
        """
        launcher, asked = self._planned(args, kwargs)
        task = functools.partial(compile_hooks.warming, launcher.compile, *asked)
        if (mode := active_mode()) is not None:
            request = functools.partial(launcher.request, *asked)
            return mode.submit(task, request, self.under_way(launcher))  # type: ignore[return-value]  # stands for the kernel
        try:
            return task()
        except compile_hooks.Vetoed:
            return None  # type: ignore[return-value]  # as the program's hook wants it

    def request(self, /, *args: object, **kwargs: object) -> Request | None:
        """What `warmup` would ask the compiler for; None where the back end does not say."""
        launcher, asked = self._planned(args, kwargs)
        return launcher.request(*asked)

    def _planned(self, args: Values, kwargs: Named) -> tuple[Launcher, tuple[Any, ...]]:
        """Who compiles for these arguments, and its arguments; takes the keywords that are none of
        the kernel's out of `kwargs`."""
        target = kwargs.get("target")
        if isinstance(target, Target) or "target" not in self.arg_names:
            kwargs.pop("target", None)
            if target is not None and not isinstance(target, Target):
                raise LaunchError(
                    'target must be a GPU target, such as proton.GPUTarget("cuda", 90), got '
                    f"{shown(target)}; leave it out for where the kernel would run"
                )
        else:
            target = None
        if "grid" not in self.arg_names:
            kwargs.pop("grid", None)
        asked = None if "profile" in self.arg_names else kwargs.pop("profile", None)
        records = sessions.instrumentation_of(asked)
        bound = self._bound(args, kwargs)
        backend = self.home(bound) if target is None else backend_named(target.backend)
        return self.launcher(backend), (bound, self._options.of(bound, kwargs), target, records)

    def home(self, values: Sequence[object]) -> Backend:
        """Where a kernel with these arguments runs: where its arrays are, else by default. A
        device comes before the host: its launcher says which array has to move."""
        owners = []
        pairs = zip(self.params, values, strict=True)
        for parameter, value in (leaf for p, v in pairs for leaf in p.leaves(v)):
            if parameter.is_array(value):
                owner = owner_of(value)
                if owner is None:
                    raise _homeless(parameter.name, value)
                owners.append(owner)
        if not owners:
            return default_backend()
        return next((owner for owner in owners if owner.name != HOST), owners[0])

    def check_globals(self) -> None:
        """Raises LaunchError where a constant in compiled code is not what the source says now."""
        for namespace, name, value in self.watched:
            now = namespace.get(name)
            if now is not value and has_changed(now, value):
                shown, before, after = shown_change(self.watched, (namespace, name, value))
                raise LaunchError(
                    f"{self.__name__}: Global variable {shown} has changed since we compiled this "
                    f"kernel, from {before} to {'another one' if before == after else after}; pass "
                    "it as a parameter"
                )

    def watch_globals(self, links: list[Link] | None = None) -> None:
        """Notes what compiled code holds of the surroundings: `watched`. It is for after a
        compilation; `links` are from before it."""
        found = self.links() if links is None else links
        once = {(id(namespace), name): (namespace, name, value) for namespace, name, value in found}
        self.watched[:] = once.values()

    def checks(self, options: Named) -> tuple[bool, bool]:
        """(whether a launch with these options checks assertions, whether overflows of integers).
        It has the last word against the kernel's decorator, and PROTON_DEBUG=1 against both."""
        debug = options.get("debug")
        is_debug = knobs.debug or bool(self.debug if debug is None else debug)
        return is_debug, is_debug and options.get("sanitize_overflow") is not False

    def _bound(self, args: Values, kwargs: Named) -> Values:
        try:
            return self._bind(*args, **kwargs)
        except TypeError as problem:
            text = str(problem).replace("binder()", self.__name__)
            is_unknown = "unexpected keyword" in text
            kind = UnknownKeyword if is_unknown else BadArguments
            raise kind(text + self._help_with(kwargs)) from None

    def _help_with(self, kwargs: Named) -> str:
        """What to do about keywords that do not fit."""
        for name in kwargs:
            if name in self.arg_names or name in launch_options():
                continue
            if name in _NO_OPTIONS:
                return f"; {_NO_OPTIONS[name].format(kernel=self.__name__)}"
            guess = did_you_mean(name, (*self.arg_names, *launch_options()))
            return guess or f"; its parameters are {', '.join(self.arg_names) or 'none'}"
        return f"; its parameters are {', '.join(self.arg_names) or 'none'}"


def _homeless(name: str, value: object) -> LaunchError:
    """The error of an array that is nowhere where kernels run."""
    device = None if isinstance(value, type) else getattr(value, "device", None)
    if device is None:
        return refused(name, value)
    return LaunchError(f"argument {name} is on {device}, which is not supported")


def _check_names(fn: JITFunction, option: str, names: object) -> None:
    """Raises LaunchError unless an option lists parameters; others, which it says nothing about,
    are a warning: there are kernels like that."""
    if isinstance(names, str) or not isinstance(names, Iterable):
        raise LaunchError(
            f"{fn.__name__}: {option} is a list of parameters' names or positions, got "
            f"{shown(names)}"
        )
    for name in names:
        if name in fn.arg_names or (type(name) is int and name in range(len(fn.arg_names))):
            continue
        guess = did_you_mean(name, fn.arg_names)
        warnings.warn(
            f"{fn.__name__}: {option} names {shown(name)}, which is no parameter{guess}",
            stacklevel=_OF_DECORATED,
        )


def _parameters(fn: JITFunction) -> list[Parameter]:
    for option in ("do_not_specialize", "do_not_specialize_on_alignment"):
        _check_names(fn, option, getattr(fn, option))
    parameters = []
    for position, (name, parameter) in enumerate(fn.signature.parameters.items()):
        if parameter.kind is parameter.VAR_KEYWORD:
            raise TypeError(f"JIT functions do not support **kwargs ({fn.__name__} has **{name})")
        annotation = parameter.annotation
        if isinstance(annotation, str):
            annotation = evaluate_annotation(annotation, fn.fn.__globals__)
        if isinstance(annotation, ty.dtype) and (annotation.is_void() or annotation.is_block()):
            raise TypeError(
                f"{fn.__name__}: {name} is annotated as {annotation}, and an argument is a number, "
                "a pointer, a tensor descriptor or a tuple: blocks are loaded"
            )
        is_pointer = isinstance(annotation, ty.pointer_type)
        if annotation is ty.constexpr and {name, position} & {*fn.do_not_specialize}:
            raise ValueError(
                f"{fn.__name__}: {name} is a constexpr: take it out of do_not_specialize"
            )
        parameters.append(
            Parameter(
                name,
                constexpr=annotation is ty.constexpr,
                type=annotation if isinstance(annotation, ty.dtype) else None,
                const_pointer=annotation.const if is_pointer else annotation is ty.const,
                specialize=not {name, position} & {*fn.do_not_specialize},
                align=not {name, position} & {*fn.do_not_specialize_on_alignment},
                num=position,
                default=parameter.default,
            )
        )
    return parameters


def _make_binder(fn: JITFunction) -> Callable[..., tuple[Any, ...]]:
    """A function with the kernel's own signature that returns the arguments in order: Python's
    call does the binding, which is faster than `inspect.Signature.bind`. It takes the launch
    options of GPUs as well."""
    defaults: dict[str, Any] = {}
    parts = []
    for name, parameter in fn.signature.parameters.items():
        if parameter.kind is parameter.VAR_POSITIONAL:
            parts.append(f"*{name}")
            continue
        has_rest = any(part.startswith("*") for part in parts)
        if parameter.kind is parameter.KEYWORD_ONLY and not has_rest:
            parts.append("*")
        if parameter.default is inspect.Parameter.empty:
            parts.append(name)
        else:
            defaults[f"_{name}"] = parameter.default
            parts.append(f"{name}=_{name}")
    if not any(part.startswith("*") for part in parts):
        parts.append("*")
    parts += [f"{option}=None" for option in fn.options]
    names = "".join(f"{name}, " for name in fn.signature.parameters)
    namespace = dict(defaults)
    exec(f"def binder({', '.join(parts)}): return ({names})", namespace)
    binder: Callable[..., tuple[Any, ...]] = namespace["binder"]
    return binder


def jit(fn: Callable[..., object] | None = None, **options: Any) -> Any:
    """Makes a kernel of a function; `@jit` or `@jit(noinline=..., do_not_specialize=...)`."""
    known = (*_JIT_OPTIONS, *_JIT_IGNORED)
    for name in options:
        if name not in known:
            guess = did_you_mean(name, known) or f"; there are {', '.join(known)}"
            raise TypeError(f"jit has no option {name!r}{guess}")
    flag = bool, type(None)
    for name, allowed in (("noinline", (bool,)), ("debug", flag), ("interpret", flag)):
        if name in options and not isinstance(options[name], allowed):
            raise TypeError(f"jit: {name} must be a bool, got {shown(options[name])}")
    for ignored in _JIT_IGNORED:
        options.pop(ignored, None)

    def decorate(function: Callable[..., Any]) -> JITFunction:
        return JITFunction(function, **options)

    return decorate if fn is None else decorate(fn)
