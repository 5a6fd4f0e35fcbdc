"""Specializations of a kernel: as Triton's tools see it, and out of text that was kept.

`jit_cache_hook` is told of each compilation with `compile["specialization_data"]`, JSON that names
the kernel, its types, constants and options; `preload` compiles that again, in another process or
after the cache is gone, and launches of this process find it.
"""

import json
import sys
from collections.abc import Callable, Iterator, Mapping
from types import SimpleNamespace
from typing import Any, ClassVar, Self, cast

from proton.backends.compiler import CompiledKernel
from proton.base.errors import LaunchError
from proton.base.targets import Target
from proton.base.words import shown
from proton.compiler import ASTSource, compile_source
from proton.compiling.argument_facts import attributes_of, letters_of
from proton.language import types as ty
from proton.language.constants import constexpr
from proton.language.function import DeviceFunction
from proton.language.signature import TupleForm
from proton.runtime.backend import HOST, Launcher, backend_named, default_backend, owner_of
from proton.runtime.launch.arguments import Constant, Parameter, addressed_element, refused
from proton.runtime.launch.tensor_descriptor import TensorDescriptor

Source = ASTSource  # which a kernel has by that name, too
# Of each type numbers that are of it, and are not 1: a multiple of 16, and another one; and those
# of signed types that may be negative.
_NUMBERS = {"i32": (16, 17), "i64": (1 << 40, (1 << 40) + 1), "u64": (1 << 63, (1 << 63) + 1)}
_NEGATIVE = {"i32": (-16, -17), "i64": (-1 << 40, (-1 << 40) + 1), "u64": _NUMBERS["u64"]}
_SETS = "divisible", "non_negative"  # of a signature, in its JSON


def mangle_type(arg: Any, specialize: bool = False) -> Any:
    """The type that a kernel is compiled for where it is given `arg`, as Triton's tools name it:
    "*fp32", "i32", "u1" of a bool, "constexpr" of None and, with `specialize`, of 1; of a tuple
    those of its elements, and "tensordesc<fp32[64, 32]>" of a descriptor.

    Raises BadArguments for what no kernel takes.
    """
    if isinstance(arg, tuple):
        types = [mangle_type(element, True) for element in arg]
        return type(arg)(*types) if hasattr(arg, "_fields") else tuple(types)
    parameter = Parameter.plain("arg", specialize=specialize)
    found = parameter.scalar(arg)
    if found is not None:
        key = found[0]
        return "constexpr" if isinstance(key, Constant) else {"i1": "u1"}.get(key, key)
    if isinstance(arg, TensorDescriptor):
        return arg.key(parameter, addressed_element("arg", arg.base))
    if not hasattr(arg, "dtype") or (not hasattr(arg, "data_ptr") and owner_of(arg) is None):
        raise refused("arg", arg)
    return parameter.pointer(addressed_element("arg", arg))


def specialize_impl(
    arg: Any,
    specialize_extra: Callable[..., str],
    is_const: bool = False,
    specialize_value: bool = True,
    align: bool = True,
) -> tuple[Any, Any]:
    """The type of an argument, as `mangle_type` has it, and what code depends on besides: of a
    constant the value, of addresses and integers "D" where 16 divides them, else None."""
    type_ = mangle_type(arg, specialize_value)
    if type_ == "constexpr":
        return type_, arg
    is_number = isinstance(arg, int) and not isinstance(arg, bool)
    if not is_number and not hasattr(arg, "data_ptr"):
        return type_, None
    is_asked = align and (specialize_value or not is_number)
    return type_, specialize_extra(arg, "int" if is_number else "tensor", align=align) * is_asked


class SpecializedKernel:
    """What a kernel has for tools of Triton's that look at its launches, or take them apart: they
    bind arguments, compile for those (in another process, say), and have later launches find it."""

    ASTSource: ClassVar = ASTSource

    def __init__(self, fn: Callable[..., Any], repr: Callable[..., str] | None) -> None:
        if repr is not None and not callable(repr):
            raise TypeError(
                f"{fn.__name__}: repr takes a function that gets what the kernel is compiled for "
                f"and returns a name, got {shown(repr)}"
            )
        self._put: dict[str, dict[object, CompiledKernel]] = {}  # by back end
        self._under_way: dict[Launcher, dict[object, Any]] = {}  # by the keys on disk
        self._fn_name, self.represent = f"{fn.__module__}.{fn.__qualname__}", repr

    def __copy__(self) -> Self:
        """Another kernel that is all that this one is."""
        copied = type(self).__new__(type(self))
        copied.__dict__.update(self.__dict__)
        return copied

    def __deepcopy__(self, memo: object) -> Self:
        """The same one, as of a function."""
        return self

    def is_gluon(self) -> bool:
        """False: it is a kernel in the tile language."""
        return False

    def repr(self, specialization: object) -> str:
        """What it is called where it is compiled so: what `repr=` of `proton.jit` says, or its
        module and name."""
        return self._fn_name if self.represent is None else self.represent(specialization)

    def get_capture_scope(self) -> dict[str, object]:
        """The variables around it, of its module and of the functions that it is defined in: to
        make other kernels out of its source."""
        kernel = cast(Any, self)
        cells = kernel._closure.cells
        return {**kernel.__globals__, **{n: kernel._closure[n] for n in cells}}

    @property
    def device_caches(self) -> "DeviceCaches":
        """What is compiled, by device, as Triton has it."""
        return DeviceCaches(self, self._put)

    def under_way(self, launcher: Launcher) -> dict[object, Any]:
        """The kernels that are being compiled (`AsyncCompileMode`)."""
        return self._under_way.setdefault(launcher, {})

    def create_binder(self) -> tuple[Any, ...]:
        """`device_caches` of the default device; the last is a function that binds arguments."""
        return self.device_caches[None]

    def _pack_args(
        self,
        backend: object,
        kwargs: dict[str, object],
        bound_args: dict[str, object],
        specialization: list[tuple[object, ...]],
        options: object,
    ) -> tuple[SimpleNamespace, dict[str, object], dict[tuple[int], object], dict[tuple[int], Any]]:
        """What `compile` takes for a launch with the keyword arguments `kwargs`, of which a binder
        gave the others: its options, and `signature`, `constexprs` and `attrs` of `ASTSource`."""
        names, kernel = list(bound_args), cast(Any, self)
        if unknown := kwargs.keys() - {*names, *kernel.options}:
            raise KeyError(f"{kernel.__name__} has no parameter or option {unknown.pop()!r}")
        kinds = [of[0] for of in specialization]
        constants = [place for place, kind in enumerate(kinds) if kind == "constexpr"]
        return (
            SimpleNamespace(**kernel._options.of(tuple(bound_args.values()), kwargs)),
            dict(zip(names, kinds, strict=True)),
            {(place,): bound_args[names[place]] for place in constants},
            {
                (place,): attributes_of(str(letters))
                for place, (_, letters) in enumerate(specialization)
                if letters and place not in constants
            },
        )

    def compile(
        self, src: Source, target: Target, options: dict[str, object] | None = None
    ) -> CompiledKernel:
        """The kernel of such a source. A launch with these arguments finds it on disk."""
        compiler = backend_named(target.backend).compiler
        return compile_source(compiler, src, target, dict(options or {}))

    def preload(self, specialization_data: str) -> CompiledKernel:
        """Compiles what a `jit_cache_hook` was told of (`compile["specialization_data"]`), for
        later launches to find."""
        return preload(self, specialization_data)


class CompiledCode(Mapping[object, CompiledKernel]):
    """The kernels that launches of this process have, also by the key that hooks are told
    (`kernel.key`), those that are under way, and those that were put here; `clear` drops them."""

    def __init__(
        self, launcher: Launcher, put: dict[object, CompiledKernel], under_way: dict[object, Any]
    ) -> None:
        self._launcher, self._put, self._under_way = launcher, put, under_way

    def __getitem__(self, key: object) -> CompiledKernel:
        kernels = self._kernels()
        if key in kernels:
            return kernels[key]
        for kernel in self._launcher.compiled().values():
            if kernel.key == key:
                return kernel
        raise KeyError(key)

    def __setitem__(self, key: object, kernel: CompiledKernel) -> None:
        """Keeps a kernel for who asks for it by this key; launches go by keys of their own."""
        self._put[key] = kernel

    def __iter__(self) -> Iterator[object]:
        return iter(self._kernels())

    def __len__(self) -> int:
        return len(self._kernels())

    def clear(self) -> None:
        """Drops them; what is under way goes on."""
        self._launcher.forget()
        self._put.clear()

    def _kernels(self) -> dict[object, CompiledKernel]:
        coming = dict(self._under_way)  # other threads end them
        there = self._launcher.compiled()
        for kernel in list(there.values()):
            coming.pop(kernel.key, None)
        return self._put | coming | there


class DeviceCaches:
    """`[device]` gives what Triton has for a device: (kernels, keys, target, back end, binder);
    keys are the kernels'. None is the default device."""

    def __init__(self, kernel: Any, put: dict[str, dict[object, CompiledKernel]]) -> None:
        self._kernel, self._put = kernel, put

    def __getitem__(self, device: object) -> tuple[object, ...]:
        backend = backend_named(HOST) if str(device) == HOST else default_backend()
        launcher = self._kernel.launcher(backend)
        put = self._put.setdefault(backend.name, {})
        kernels = CompiledCode(launcher, put, self._kernel.under_way(launcher))
        return kernels, kernels, backend.target(), backend.compiler, binder(self._kernel)

    def clear(self) -> None:
        """Drops what is compiled, for all devices; what lies on disk stays."""
        self._kernel.forget()
        self._put.clear()


Binding = tuple[dict[str, object], list[tuple[object, ...]], object]


def binder(kernel: Any) -> Callable[..., Binding]:
    """A function of a launch's arguments that gives them by name, what each is specialized for,
    and the options: ("*fp32", "D") is a pointer that 16 divides, ("i32", "N") an integer from 0 on,
    ("constexpr", 8) a constant."""

    def bind(*args: object, **kwargs: object) -> Binding:
        request = kernel.request(*args, **kwargs)
        signature = request.signature
        specialization: list[tuple[object, ...]] = [
            (signature.types[name].short, letters_of(signature, name))
            if name in signature.types
            else ("constexpr", signature.constants[name])
            for name in kernel.arg_names
        ]
        return kernel.bound(*args, **kwargs), specialization, request.options

    return bind


def compute_cache_key(
    keys: object, specialization: list[tuple[object, ...]], options: object
) -> str:
    """A text for what a binder gives, which is the same for launches of the same code. `keys` is
    what Triton keeps such texts in."""
    return f"{specialization} {options}"


def preload(kernel: Any, specialization_data: str) -> CompiledKernel:
    """The kernel of such a text, compiled where it would be launched by default."""
    data = json.loads(specialization_data)
    if data["name"] != kernel.__name__:
        raise LaunchError(f"Specialization data is for {data['name']}, not {kernel.__name__}")
    _check_target(kernel, data.get("target"))
    if data["constants"] is None:
        raise LaunchError(f"{kernel.__name__} was compiled with constants that are no JSON")
    arguments = {name: _argument(name, data) for name in kernel.arg_names}
    options = {name: value for name, value in data["options"].items() if name in kernel.options}
    found: CompiledKernel = kernel.warmup(**arguments, **options)
    if data["key"] != found.key:
        raise LaunchError(
            f"{kernel.__name__}: the specialization data is of another source, target or version "
            f"of Proton, or for arrays that 16 does not divide: compiled now is {found.signature}"
        )
    return found


def _check_target(kernel: Any, said: dict[str, object] | None) -> None:
    """Raises for data that says another target than the one that is there."""
    if said is not None:
        found = kernel.device_caches[None][2]
        here = {name: getattr(found, name, None) for name in ("backend", "arch", "warp_size")}
        if said != here:
            raise LaunchError(
                f"{kernel.__name__}: the specialization data is for the target {said}, not {here}"
            )


def _argument(name: str, data: dict[str, Any]) -> Any:
    """What a kernel is warmed up with for a parameter, or an element of a tuple, to be what it
    was."""
    if name in data["constants"]:
        value = _constant(data["constants"][name])
        return value if name.isidentifier() else constexpr(value)
    if name in data.get("tuples", {}):
        said = data["tuples"][name]
        form = TupleForm(_found(said["class"]), said["count"])
        return form.made_of([_argument(part, data) for part in form.names(name)])
    return _stand_in(name, data["types"][name], *(name in data[of] for of in _SETS))


def _constant(value: object) -> object:
    """A constant of JSON: a dtype is {"dtype": its short name}, a tuple a list; a kernel is what
    its module has by its name, if that is the same source."""
    if isinstance(value, list):
        return tuple(map(_constant, value))
    if not isinstance(value, dict):
        return value
    return _function(value) if "function" in value else ty.str_to_ty(value["dtype"])


def _function(said: dict[str, Any]) -> DeviceFunction:
    found = _found(said["function"])
    if not isinstance(found, DeviceFunction) or found.source_key() != said["source"]:
        raise LaunchError(
            f"the specialization data is of another source: {'.'.join(said['function'])} is "
            "another function now"
        )
    return found


def _found(place: list[str]) -> Any:
    """What a module has by its name."""
    module, name = place
    found: Any = sys.modules.get(module)
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise LaunchError(
            f"the specialization data names {module}.{name}, which is not there: import it before, "
            "and define it in the module, outside of functions"
        )
    return found


def _stand_in(name: str, text: str, divisible: bool, non_negative: bool) -> object:
    """An argument that a kernel for this type is compiled for."""
    type_ = ty.str_to_ty(text)
    if isinstance(type_, ty.pointer_type):
        return type_.element_ty
    if text in _NUMBERS:
        return (_NUMBERS if non_negative else _NEGATIVE)[text][0 if divisible else 1]
    if text in ("i1", "u1"):
        return True
    if type_.is_floating():
        return 1.5
    raise LaunchError(f"argument {name} of type {shown(text)} cannot be preloaded")
