"""Launching on a GPU what is compiled already, for the types that it was compiled for."""

import functools
from collections.abc import Callable
from dataclasses import replace
from typing import Any

from proton.backends.nvidia.options import GPUOptions
from proton.backends.nvidia.target import NVIDIA, GPUKernel
from proton.compiler import compile_function, compile_lock
from proton.language import types as ty
from proton.runtime.launch.arguments import Parameter
from proton.runtime.nvidia import cuda
from proton.runtime.nvidia.arguments import memory_of, read_descriptor
from proton.runtime.nvidia.fast_path import NAME
from proton.runtime.nvidia.launch import instrumented, variant_of
from proton.runtime.nvidia.recorder import GPURecorder
from proton.runtime.nvidia.variant import GPUVariant, InstrumentedVariant
from proton.runtime.session import session as sessions
from proton.trace.instrumentation import Instrumentation


class GPUDirectLaunch:
    """The launches of one compiled kernel, on the current device; the code is loaded there before
    the first one. What a session records is compiled of the kernel's function."""

    def __init__(self, kernel: GPUKernel) -> None:
        self.kernel = kernel
        self._options: GPUOptions = kernel.options  # type: ignore[assignment]
        self._arguments = kernel.signature.types.items()
        types = kernel.signature.types.values()
        self._types: list[str | None] = [p.short for of in types for p in ty.parts_of(of)]
        self._passed = _passer(tuple(of.is_ptr() or _is_descriptor(of) for of in types))
        self._variants: dict[int, GPUVariant] = {}  # by device
        self._load(cuda.current_device())
        self._device = cuda.device_query()

    def __call__(self, grid: tuple[int, int, int], stream: int, values: tuple[Any, ...]) -> None:
        try:
            passed = self._passed(*values)
        except AttributeError:  # not torch's
            passed = tuple(self._read(values))
        device = self._device()
        variant = self._variants.get(device) or self._load(device)
        session = sessions.current()
        if session is None and 0 not in grid:
            variant.launch(*grid, stream, *passed)
        elif session is not None and 0 not in grid:
            found = variant.find_instrumented(session.instrumentation)
            if found is None:
                found = self._instrument(variant, device, session.instrumentation)
            recorder: GPURecorder = session.recorders[NAME]  # type: ignore[assignment]
            recorder.launch(variant, found, device, stream, grid, passed)

    def _read(self, values: tuple[Any, ...]) -> list[Any]:
        """What code is given for arguments of any kind."""
        found: list[Any] = []
        for number, ((name, of), value) in enumerate(zip(self._arguments, values, strict=True)):
            if _is_descriptor(of):
                found += read_descriptor(Parameter.plain(name, number), value)[0]
            else:
                found.append(_address(name, value) if of.is_ptr() else value)
        return found

    def _load(self, device: int) -> GPUVariant:
        with compile_lock:
            if device not in self._variants:
                self._variants[device] = variant_of(self.kernel, device, self._types)
        return self._variants[device]

    def _instrument(
        self, plain: GPUVariant, device: int, key: Instrumentation
    ) -> InstrumentedVariant:
        """The kernel that is launched in a plain one's place while a session runs."""

        def make(more: dict[str, Any]) -> GPUVariant:
            options = replace(self._options, instrumentation=key, **more)
            made = compile_function(NVIDIA, self.kernel.fn, self.kernel.signature, options)
            return variant_of(made, device, self._types)

        with compile_lock:
            plain.instrumented[key] = found = instrumented(key, plain, make)
        return found


@functools.cache
def _passer(in_memory: tuple[bool, ...]) -> Callable[..., tuple[Any, ...]]:
    """The function of arguments that gives what code is passed for torch's: written out, since
    Inductor launches by it, and chooses between configurations by events around such launches."""
    names = [f"a{number}" for number in range(len(in_memory))]
    given = [
        f"{name}.data_ptr()" if is_array else name
        for name, is_array in zip(names, in_memory, strict=True)
    ]
    made: Callable[..., tuple[Any, ...]] = eval(
        f"lambda {', '.join(names)}: ({''.join(f'{value}, ' for value in given)})"
    )
    return made


def _is_descriptor(type_: ty.dtype) -> bool:
    return isinstance(type_, ty.tensor_descriptor_type)


def _address(name: str, value: Any) -> int:
    """Where an array is."""
    try:
        return int(value.data_ptr())
    except AttributeError:
        return memory_of(name, value)[0]
