"""Launching on the CPU what is compiled already, for the types that it was compiled for."""

import functools
import time
from dataclasses import replace
from typing import Any

from proton.backends.cpu.options import CPUOptions
from proton.backends.cpu.target import CPU, CPUKernel
from proton.compiler import compile_function, compile_lock
from proton.language import types as ty
from proton.runtime.cpu.arguments import classify, memory_of
from proton.runtime.cpu.launch import (
    CPUVariant,
    chosen_for,
    is_disjoint,
    run_recorded,
    run_variant,
    variant_of,
)
from proton.runtime.cpu.recorder import CPURecorder
from proton.runtime.launch.arguments import Parameter
from proton.trace.instrumentation import Instrumentation


class CPUDirectLaunch:
    """The launches of one compiled kernel. Where a session records, or the kernel writes what
    other arguments share, code for that is compiled of the kernel's function."""

    def __init__(self, kernel: CPUKernel) -> None:
        self.kernel = kernel
        self._options: CPUOptions = kernel.options  # type: ignore[assignment]
        types = [*enumerate(kernel.signature.types.items())]
        self._pointers = [(number, name) for number, (name, of) in types if of.is_ptr()]
        self._described = [
            (number, Parameter.plain(name, number))
            for number, (name, of) in types
            if isinstance(of, ty.tensor_descriptor_type)
        ]
        self._variants: dict[tuple[bool | None, Instrumentation | None], CPUVariant] = {}

    def __call__(self, grid: tuple[int, int, int], stream: int, values: tuple[object, ...]) -> None:
        recorder, times = chosen_for(self.kernel.name, grid)
        begin = time.perf_counter_ns()
        self._launch(recorder, grid, values)
        if times is not None:
            times.add(time.perf_counter_ns() - begin)

    def _launch(
        self,
        recorder: CPURecorder | None,
        grid: tuple[int, int, int],
        values: tuple[object, ...],
    ) -> None:
        instrumentation = None if recorder is None else recorder.instrumentation
        given: list[Any] = list(values)
        for number, name in self._pointers:
            given[number] = memory_of(name, values[number])
        for number, parameter in self._described:
            given[number] = classify(parameter, values[number])[1]
        disjoint = self._options.disjoint
        variant = self._variant(disjoint, instrumentation)
        if variant.kernel.metadata["disjoint"] and not is_disjoint(variant, given):
            disjoint = False
            variant = self._variant(disjoint, instrumentation)
        if all(grid):
            if recorder is None:
                run_variant(variant, values, given, grid)
            else:
                plain = functools.partial(self._variant, disjoint, None)
                run_recorded(variant, plain, values, given, grid, recorder)

    def _variant(
        self, disjoint: bool | None, instrumentation: Instrumentation | None
    ) -> CPUVariant:
        key = disjoint, instrumentation
        found = self._variants.get(key)
        if found is None:
            with compile_lock:
                found = self._variants[key] = self._loaded(disjoint, instrumentation)
        return found

    def _loaded(self, disjoint: bool | None, instrumentation: Instrumentation | None) -> CPUVariant:
        kernel, asked = self.kernel, self._options
        options = replace(asked, disjoint=disjoint, instrumentation=instrumentation)
        if options != asked:
            kernel = compile_function(CPU, kernel.fn, kernel.signature, options)
        return variant_of(kernel, list(kernel.signature.types))
