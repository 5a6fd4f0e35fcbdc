"""Functions that programs have called around compilations: `knobs.runtime.jit_cache_hook` and
`jit_post_compile_hook`, `knobs.compilation.listener`; with the keywords that Triton's get."""

import json
import threading
from collections.abc import Callable
from typing import Any, NamedTuple

from proton.backends.compiler import CompiledKernel, asked_options
from proton.base.errors import ProtonError
from proton.base.knob_groups import CompileTimes
from proton.base.knobs import knobs
from proton.base.targets import CPUTarget, Target
from proton.compiling import cache
from proton.compiling.argument_facts import attributes_of, letters_of
from proton.language.function import DeviceFunction
from proton.language.signature import Signature
from proton.language.types import dtype

_US_PER_MS = 1000.0
_KEPT_OPTIONS = (  # of which hooks are told
    *("num_warps", "num_ctas", "num_stages", "debug", "sanitize_overflow"),
    *("maxnreg", "enable_fp_fusion", "launch_pdl", "launch_cooperative_grid"),
)


class _Thread(threading.local):
    """What the calling thread does."""

    is_warming = False  # it compiles without a launch


_thread = _Thread()


def warming(compile: Callable[..., CompiledKernel], *args: object) -> CompiledKernel:
    """The kernel that `compile` gives; hooks are told that none is launched."""
    before, _thread.is_warming = _thread.is_warming, True
    try:
        return compile(*args)
    finally:
        _thread.is_warming = before


class Vetoed(ProtonError):
    """A program's `jit_cache_hook` wants a kernel not to be compiled: the launch does nothing."""


class JITFunctionInfo(NamedTuple):
    """Which kernel a hook is told of."""

    module: str
    name: str
    jit_function: DeviceFunction


class CompiledSource(NamedTuple):
    """What a listener is told was compiled. Parameters of `signature` are named, those of
    `constants` and `attrs` are places in the kernel: (2,) is the third."""

    fn: DeviceFunction
    name: str
    signature: dict[str, str]
    constants: dict[tuple[int, ...], object]
    attrs: dict[tuple[int, ...], list[list[object]]]


def before(key: str, fn: DeviceFunction, signature: Signature, options: object) -> None:
    """Asks whether to compile what this process has not; raises Vetoed where the answer is no."""
    hook = knobs.runtime.jit_cache_hook
    if hook is not None and hook(**_facts(key, fn, signature, options), already_compiled=False):
        raise Vetoed(f"jit_cache_hook wants {fn.__name__} not to be compiled")


def after(kernel: CompiledKernel) -> None:
    """Says that a kernel is there now."""
    if (hook := knobs.runtime.jit_post_compile_hook) is not None:
        warps = kernel.metadata.get("num_warps")
        facts = _facts(kernel.key, kernel.fn, kernel.signature, kernel.options, warps)
        hook(**facts, already_compiled=True)
    if (listener := knobs.compilation.listener) is not None:
        target = _target(kernel)
        listener(
            src=_source(kernel.fn, kernel.signature),
            metadata=dict(kernel.metadata) | {"target": target, "backend_name": target.backend},
            metadata_group={
                f"{kernel.name}.{level}": path
                for level, path in cache.paths(kernel.key, kernel.asm.file_names).items()
            },
            times=_times(kernel),
            cache_hit=kernel.from_cache,
        )


def _source(fn: DeviceFunction, signature: Signature) -> CompiledSource:
    places = {name: (place,) for place, name in enumerate(fn.signature.parameters)}
    return CompiledSource(
        fn,
        fn.__name__,
        _types(fn, signature),
        {places[name]: value for name, value in signature.constants.items() if name in places},
        {
            place: attributes_of(letters)
            for name, place in places.items()
            if (letters := letters_of(signature, name))
        },
    )


def _types(fn: DeviceFunction, signature: Signature) -> dict[str, str]:
    """All parameters, of which those that are no arguments of the code are constexprs."""
    types = {name: type_.short for name, type_ in signature.types.items()}
    return {name: types.get(name, "constexpr") for name in fn.signature.parameters} | types


def _target(kernel: CompiledKernel) -> Target:
    target = getattr(kernel.options, "target", None)
    return target if isinstance(target, Target) else CPUTarget()


def _times(kernel: CompiledKernel) -> CompileTimes:
    us = {name: ms * _US_PER_MS for name, ms in kernel.times.items()}
    found = us.pop("load", 0.0) + us.pop("key", 0.0)
    stored = us.pop("store", 0.0)
    return CompileTimes(found, list(us.items()), stored)


def _facts(
    key: str, fn: DeviceFunction, signature: Signature, options: object, warps: object = None
) -> dict[str, object]:
    """What hooks are told; `warps` are those of a kernel that is there, chosen or given."""
    kept = _kept(options)
    if "num_warps" in kept and kept["num_warps"] is None:
        kept["num_warps"] = warps
    types = {name: type_.short for name, type_ in signature.types.items()}
    return {
        "key": key,
        "repr": f"{fn.__name__}({', '.join(f'{n}: {t}' for n, t in types.items())})",
        "fn": JITFunctionInfo(fn.__module__, fn.fn.__qualname__, fn),
        "compile": {
            "key": key,
            "specialization_data": serialize_specialization_data(key, fn, signature, options),
            "signature": _types(fn, signature),
            "constants": dict(signature.constants),
            "configs": sorted(signature.divisible),
            "is_warmup": _thread.is_warming,
            **kept,
        },
        "is_manual_warmup": _thread.is_warming,
    }


def serialize_specialization_data(
    key: str, fn: DeviceFunction, signature: Signature, options: object
) -> str:
    """What `JITFunction.preload` makes the kernel of again: JSON, in which `constants` is null
    where one of them is none."""
    data = {
        "name": fn.__name__,
        "key": key,
        "types": {name: type_.short for name, type_ in signature.types.items()},
        "divisible": sorted(signature.divisible),
        "non_negative": sorted(signature.non_negative),
        "tuples": {
            name: {"class": _place(form.kind), "count": form.count}
            for name, form in signature.tuples.items()
        },
        "options": _kept(options),
    }
    try:
        constants = {name: _in_json(value) for name, value in signature.constants.items()}
        return json.dumps(data | {"constants": constants})
    except TypeError:
        return json.dumps(data | {"constants": None})


def _kept(options: object) -> dict[str, object]:
    """The options that hooks are told, without the warps that the compiler chooses."""
    return asked_options(options, [name for name in _KEPT_OPTIONS if hasattr(options, name)])


def _in_json(value: object) -> object:
    """A constant as `preload` reads it: a dtype by its name, a kernel by name and source, a tuple
    as a list; raises TypeError for what JSON would make something else of, as of a named tuple."""
    if value is None or type(value) in (bool, int, float, str):
        return value
    if type(value) is tuple:
        return [_in_json(element) for element in value]
    if isinstance(value, dtype):
        return {"dtype": value.short}
    if isinstance(value, DeviceFunction):
        return {"function": _place(value.fn), "source": value.source_key()}
    raise TypeError(f"{type(value).__name__} is not of JSON")


def _place(value: Any) -> list[str]:
    """Where Python has a class or a function, if it is no local one."""
    return [value.__module__, value.__qualname__]
