"""What a kernel is specialised for: as Triton's tools see it, and out of text that was kept.

`jit_cache_hook` is told of each compilation with `compile["specialization_data"]`, JSON that names
the kernel, its types, constants and options; `preload` compiles that again, in another process or
after the cache is gone, and launches of this process find it.
"""

import json
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from proton.backends.compiler import CompiledKernel
from proton.base.errors import LaunchError
from proton.base.words import shown
from proton.language import types as ty
from proton.runtime.arguments import Constant, Parameter, addressed_element, refused
from proton.runtime.backend import HOST, Launcher, backend_named, default_backend, owner_of

# Of each type numbers that are of it, and are not 1: a multiple of 16, and another one.
_NUMBERS = {"i32": (16, 17), "i64": (1 << 40, (1 << 40) + 1), "u64": (1 << 63, (1 << 63) + 1)}


def mangle_type(arg: Any, specialize: bool = False) -> Any:
    """The type that a kernel is compiled for where it is given `arg`, as Triton's tools name it:
    "*fp32", "i32", "u1" of a bool, "constexpr" of None and, with `specialize`, of 1; of a tuple
    those of its elements.

    Raises BadArguments for what no kernel takes.
    """
    if isinstance(arg, tuple):
        types = [mangle_type(element, True) for element in arg]
        return type(arg)(*types) if hasattr(arg, "_fields") else tuple(types)
    parameter = Parameter(
        "arg", constexpr=False, type=None, const_pointer=False, specialize=specialize
    )
    found = parameter.scalar(arg)
    if found is not None:
        key = found[0]
        return "constexpr" if isinstance(key, Constant) else {"i1": "u1"}.get(key, key)
    if not hasattr(arg, "dtype") or (not hasattr(arg, "data_ptr") and owner_of(arg) is None):
        raise refused("arg", arg)
    return parameter.pointer(addressed_element("arg", arg))


class CompiledCode(Mapping[object, CompiledKernel]):
    """The kernels that launches of this process have, also by the key that hooks are told
    (`kernel.key`); `clear` drops them."""

    def __init__(self, launcher: Launcher) -> None:
        self._launcher = launcher

    def __getitem__(self, key: object) -> CompiledKernel:
        kernels = self._launcher.compiled()
        if key in kernels:
            return kernels[key]
        for kernel in kernels.values():
            if kernel.key == key:
                return kernel
        raise KeyError(key)

    def __iter__(self) -> Iterator[object]:
        return iter(self._launcher.compiled())

    def __len__(self) -> int:
        return len(self._launcher.compiled())

    def clear(self) -> None:
        """Drops them."""
        self._launcher.forget()


class DeviceCaches:
    """`[device]` gives what Triton has for a device: (kernels, keys, target, back end, binder);
    keys are the kernels'. None is the default device."""

    def __init__(self, kernel: Any) -> None:
        self._kernel = kernel

    def __getitem__(self, device: object) -> tuple[object, ...]:
        backend = backend_named(HOST) if str(device) == HOST else default_backend()
        kernels = CompiledCode(self._kernel.launcher(backend))
        return kernels, kernels, backend.target(), backend.compiler, binder(self._kernel)


Binding = tuple[dict[str, object], list[tuple[object, ...]], object]


def binder(kernel: Any) -> Callable[..., Binding]:
    """A function of a launch's arguments that gives them by name, what each is specialised for,
    and the options: ("*fp32", "D") is a pointer that 16 divides, ("constexpr", 8) a constant."""

    def bind(*args: object, **kwargs: object) -> Binding:
        request = kernel.request(*args, **kwargs)
        signature = request.signature
        specialization: list[tuple[object, ...]] = [
            (signature.types[name].short, "D" if name in signature.divisible else "")
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
    if data["constants"] is None:
        raise LaunchError(f"{kernel.__name__} was compiled with constants that are no JSON")
    divisible = set(data["divisible"])
    arguments = {
        name: _constant(data["constants"][name])
        if name in data["constants"]
        else _stand_in(name, data["types"][name], name in divisible)
        for name in kernel.arg_names
    }
    options = {name: value for name, value in data["options"].items() if name in kernel.options}
    found: CompiledKernel = kernel.warmup(**arguments, **options)
    if data["key"] != found.key:
        raise LaunchError(
            f"{kernel.__name__}: the specialization data is of another source, target or version "
            f"of Proton, or for arrays that 16 does not divide: compiled now is {found.signature}"
        )
    return found


def _constant(value: object) -> object:
    """A constant of JSON: a dtype is {"dtype": its short name}, a tuple a list."""
    if isinstance(value, list):
        return tuple(map(_constant, value))
    return ty.str_to_ty(value["dtype"]) if isinstance(value, dict) else value


def _stand_in(name: str, text: str, divisible: bool) -> object:
    """An argument that a kernel for this type is compiled for."""
    type_ = ty.str_to_ty(text)
    if isinstance(type_, ty.pointer_type):
        return type_.element_ty
    if text in _NUMBERS:
        return _NUMBERS[text][0 if divisible else 1]
    if text in ("i1", "u1"):
        return True
    if type_.is_floating():
        return 1.5
    raise LaunchError(f"argument {name} of type {shown(text)} cannot be preloaded")
