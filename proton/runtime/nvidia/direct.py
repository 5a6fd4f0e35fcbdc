"""Launching on a GPU what is compiled already, for the types that it was compiled for."""

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
    """The launches of one compiled kernel, on the current device. What a session records is
    compiled of the kernel's function."""

    def __init__(self, kernel: GPUKernel) -> None:
        self.kernel = kernel
        self._options: GPUOptions = kernel.options  # type: ignore[assignment]
        types = kernel.signature.types.values()
        self._types: list[str | None] = [p.short for of in types for p in ty.parts_of(of)]
        self._readers = [
            (number, *reader)
            for number, (name, of) in enumerate(kernel.signature.types.items())
            if (reader := _reader(name, of, number)) is not None
        ]
        self._variants: dict[int, GPUVariant] = {}  # by device

    def __call__(self, grid: tuple[int, int, int], stream: int, values: tuple[object, ...]) -> None:
        passed = list(values)
        for number, read, is_several in reversed(self._readers):
            found = read(values[number])
            passed[number : number + 1] = found if is_several else [found]
        device = cuda.current_device()
        variant = self._variants.get(device) or self._load(device)
        if not all(grid):
            return
        session = sessions.current()
        if session is None:
            variant.launch(*grid, stream, *passed)
            return
        found = variant.find_instrumented(session.instrumentation)
        if found is None:
            found = self._instrument(variant, device, session.instrumentation)
        recorder: GPURecorder = session.recorders[NAME]  # type: ignore[assignment]
        recorder.launch(variant, found, device, stream, grid, tuple(passed))

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


_Reader = tuple[Callable[[Any], Any], bool]


def _reader(name: str, type_: ty.dtype, number: int) -> _Reader | None:
    """How an argument is read, and whether it becomes several; None for a number."""
    if isinstance(type_, ty.tensor_descriptor_type):
        parameter = Parameter(
            name, constexpr=False, type=None, const_pointer=False, specialize=False, num=number
        )
        return lambda value: read_descriptor(parameter, value)[0], True
    if type_.is_ptr():
        return lambda value: _address(name, value), False
    return None


def _address(name: str, value: Any) -> int:
    """Where an array is."""
    try:
        return int(value.data_ptr())
    except AttributeError:
        return memory_of(name, value)[0]
