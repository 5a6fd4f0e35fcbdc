"""Launches of interpreted kernels: the same arguments, checks and records as on the CPU."""

import copy
import hashlib
import operator
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from proton.backends.compiler import Asm, CompiledKernel, Compiler, CompileResult, Metadata
from proton.backends.cpu.options import CPUOptions
from proton.base.bounds import Extent
from proton.base.errors import LaunchError
from proton.base.knobs import knobs
from proton.base.symbols import mangled
from proton.compiler import compile_lock
from proton.conversion.allocate_profile import AllocateProfile
from proton.conversion.proton_to_proton_gpu import ProtonToProtonGPU
from proton.dialect.context import mlir_context
from proton.dialect.profile import profile_of
from proton.dialect.text import module_text
from proton.dialect.walk import kernel_functions
from proton.frontend import build_module
from proton.interpreter.debugging import InterpretedGenerator
from proton.interpreter.descriptors import TensorInMemory
from proton.interpreter.formats import NOBODY, format_named, pointers
from proton.interpreter.memory import LaunchMemory
from proton.interpreter.program import Chosen, Interpreter, Program, run_grid
from proton.interpreter.recorder import BlockRecorder
from proton.interpreter.rewrite import Rewritten
from proton.interpreter.values import Value
from proton.language import types as ty
from proton.language.function import DeviceFunction
from proton.language.signature import Signature, TupleForm
from proton.runtime.backend import HOST, KernelFunction
from proton.runtime.cpu import calibration
from proton.runtime.cpu.arguments import PointerArgument as ArrayMemory
from proton.runtime.cpu.arguments import classify
from proton.runtime.cpu.bounds import extent
from proton.runtime.cpu.grid import check_grid
from proton.runtime.cpu.launch import blocks_of_layouts
from proton.runtime.cpu.recorder import CPURecorder
from proton.runtime.launch.arguments import Argument, ArrayArgument, is_torch, signature_of
from proton.runtime.session import session as sessions
from proton.trace.instrumentation import Instrumentation


class _Levels(Compiler[None, CompiledKernel]):
    """What there is to see of an interpreted kernel: its tile IR, and the Python that runs."""

    levels: ClassVar[dict[str, str]] = {"ttir": "ttir.mlir"}
    binary = frozenset[str]()
    disassembly = "python"
    kernel = CompiledKernel

    def __init__(self, rewritten: Rewritten) -> None:
        self.rewritten = rewritten

    def identity(self, options: None) -> dict[str, object]:
        return {"interpreter": 1}

    def compile(
        self, fn: DeviceFunction, signature: Signature, options: None, label: str
    ) -> CompileResult:
        raise LaunchError("an interpreted kernel is launched, and has no code")

    def disassemble(self, asm: Asm) -> str:
        return self.rewritten.text


class InterpretedLauncher:
    """The launches of one kernel by the interpreter."""

    def __init__(self, kernel: KernelFunction) -> None:
        self.kernel, self.interpreter = kernel, Interpreter()
        self._kernels: dict[Any, CompiledKernel] = {}

    def launch(
        self, grid: object, values: tuple[object, ...], options: dict[str, object]
    ) -> CompiledKernel:
        """Runs a grid. Raises CompilationError for what the compiler refuses, BoundsError for an
        access outside of an array."""
        copies = _Copies({})
        kernel = self._launch(grid, tuple(map(copies.of, values)), options)
        copies.put_back()
        return kernel

    def _launch(
        self, grid: object, values: tuple[object, ...], options: dict[str, object]
    ) -> CompiledKernel:
        keys, given = [], []
        for parameter, value in zip(self.kernel.params, values, strict=True):
            key, found = classify(parameter, value)
            keys.append(key)
            given.append(found)
        self._check_home(values)
        sizes = check_grid(grid)
        self.kernel.check_globals()
        recorder: CPURecorder | None = sessions.recorder_of(HOST)
        chosen = self._chosen(options)
        kernel = self._checked(keys, chosen, None if recorder is None else recorder.instrumentation)
        if 0 not in sizes:
            arguments, memory = self._arguments(keys, values, given)
            fn: Any = self.kernel
            program = Program(self.interpreter, fn, sizes, memory, *chosen)
            _run(program, arguments, kernel, recorder)
        return kernel

    def _check_home(self, values: tuple[object, ...]) -> None:
        home = self.kernel.home(values)
        if home.name != HOST:
            raise LaunchError(
                f"{self.kernel.__name__} is interpreted, which is done in the host's memory, and "
                f"has arrays of {home.name}: pass copies, as of x.cpu()"
            )

    def _chosen(self, options: dict[str, object]) -> Chosen:
        return *self.kernel.checks(options), blocks_of_layouts(self.kernel, options)[0]

    def compile(
        self,
        values: tuple[object, ...],
        options: dict[str, object],
        target: None = None,
        records: Instrumentation | None = None,
    ) -> CompiledKernel:
        """Checks the kernel for such arguments; a dtype stands for an array of it."""
        keys = []
        for parameter, value in zip(self.kernel.params, values, strict=True):
            key = parameter.stand_in(value)
            keys.append(classify(parameter, value)[0] if key is None else key)
        return self._checked(keys, self._chosen(options), records and records.on_cpu())

    def _checked(
        self, keys: list[object], chosen: Chosen, records: Instrumentation | None
    ) -> CompiledKernel:
        """The kernel as the front end sees it, which refuses what it refuses when it compiles."""
        key = (*keys, chosen, records)
        if key not in self._kernels:
            with compile_lock:
                self._kernels[key] = self._check(keys, chosen, records)
        return self._kernels[key]

    def _check(
        self, keys: list[Any], chosen: Chosen, records: Instrumentation | None
    ) -> CompiledKernel:
        fn: Any = self.kernel
        links = self.kernel.links()
        signature = signature_of(fn.arg_names, map(Argument.of, keys))
        with mlir_context():
            module = build_module(
                fn,
                signature,
                debug=chosen[0],
                sanitize_overflow=chosen[1],
                num_warps=chosen[2],
                generator=InterpretedGenerator,
            )
            text, profile = module_text(module, with_locations=True), None
            if records is not None:
                ProtonToProtonGPU(records.strategy, records.every).run(module)
                AllocateProfile(records.strategy, records.capacity).run(module)
                profile = profile_of(kernel_functions(module)[0])
        self.kernel.watch_globals(links)
        levels, name = _Levels(self.interpreter.rewritten(fn)), fn.name_of(signature)
        metadata = Metadata(
            name=name,
            symbol=mangled(name),
            target="cpu",
            signature=str(signature),
            profile=None if profile is None else profile.to_plain(),
        )
        metadata.options = CPUOptions(warps=chosen[2])
        facts = repr((fn.source_key(), str(signature), chosen, records))
        key = f"interpreted-{hashlib.sha256(facts.encode()).hexdigest()[:32]}"
        asm = Asm(levels, {"ttir.mlir": text.encode()}, fn.src)
        return CompiledKernel(name, key, metadata, asm)

    def _arguments(
        self, keys: list[Any], values: tuple[object, ...], given: list[Any]
    ) -> tuple[dict[str, object], LaunchMemory]:
        """(what the kernel's function is called with, the arrays that it may access)"""
        arrays = _Arrays([], set())
        names = self.kernel.arg_names
        arguments = {
            name: arrays.argument(name, Argument.of(key), value, found)
            for name, key, value, found in zip(names, keys, values, given, strict=True)
        }
        return arguments, LaunchMemory(arrays.extents, arrays.read_only)


def _is_elsewhere(value: Any) -> bool:
    """True for a tensor of torch's whose memory the host can copy, and not look at."""
    return is_torch(value) and value.device.type not in ("cpu", "meta")


@dataclass
class _Copies:
    """The host's copies of torch's tensors that are elsewhere: by the address of their memory that,
    which views share, and its copy."""

    storages: dict[int, tuple[Any, Any]]

    def of(self, value: Any) -> Any:
        """An argument as the interpreter takes it: itself, if it is here."""
        if isinstance(value, tuple):
            parts = [self.of(part) for part in value]
            if all(map(operator.is_, parts, value)):
                return value
            return type(value)(*parts) if hasattr(value, "_fields") else tuple(parts)
        if isinstance(value, ArrayArgument):
            described = copy.copy(value)
            described.base = self.of(value.base)
            return described
        if not _is_elsewhere(value):
            return value
        theirs = value.untyped_storage()
        if theirs.data_ptr() not in self.storages:
            ours = type(theirs)(theirs.nbytes())
            self.storages[theirs.data_ptr()] = theirs, ours.copy_(theirs)
        _, ours = self.storages[theirs.data_ptr()]
        empty = value.detach().new_empty(0, device="cpu")
        return empty.set_(ours, value.storage_offset(), value.size(), value.stride())

    def put_back(self) -> None:
        """Writes what the kernel has written."""
        for theirs, ours in self.storages.values():
            theirs.copy_(ours)


_ALL_MEMORY = 1 << 62  # bytes that no array has: such a one does not say where it ends


@dataclass
class _Arrays:
    """The arrays among a launch's arguments, and the names of those that must not be written."""

    extents: list[Extent]
    read_only: set[str]

    def argument(self, name: str, argument: Argument, value: Any, found: Any) -> Any:
        """What the kernel's function gets in the place of one argument."""
        if argument.constant is not None:
            return ty.unwrap(argument.constant.value)
        if argument.group is not None:
            kind, elements = argument.group
            form = TupleForm(kind, len(elements))
            parts = zip(form.names(name), elements, value, found, strict=True)
            return form.made_of([self.argument(*part) for part in parts])
        assert argument.type is not None
        type_ = ty.str_to_ty(argument.type)
        if not isinstance(found, ArrayMemory):
            return Value(scalar(found, type_), type_)
        return Value(_pointer(type_, self._base(name, value, found), found), type_)

    def _base(self, name: str, value: object, found: ArrayMemory) -> np.ndarray:
        """The pointer to an array."""
        array = _extent(name, value, found)
        if array.high - array.low >= _ALL_MEMORY:
            return pointers(found.address, NOBODY)
        self.extents.append(array)
        if not found.writeable:
            self.read_only.add(name)
        return pointers(found.address, len(self.extents) - 1)


def _extent(name: str, value: object, found: ArrayMemory) -> Extent:
    """What a kernel may access of an array: of a view all that it is a view of, and with
    PROTON_CHECK_BOUNDS only its own elements."""
    if knobs.check_bounds:
        return extent(name, value, found)
    return Extent(name, found.address, found.element.itemsize, found.low, found.high)


_FORMATS = {"float16": "f16", "bfloat16": "bf16", "float32": "f32", "float64": "f64"}


def scalar(number: Any, type_: ty.dtype) -> Any:
    """A number as the interpreter holds it."""
    if type_.is_floating():
        return format_named(_FORMATS[type_.name]).narrow(np.float64(number))
    if type_.is_bool():
        return np.bool_(number)
    bits = type_.primitive_bitwidth
    return np.array(number & ((1 << bits) - 1), f"u{bits // 8}").view(f"i{bits // 8}")[()]


def _pointer(type_: ty.dtype, base: np.ndarray, found: ArrayMemory) -> object:
    """A pointer, or the tensor that a descriptor of the host describes."""
    if not isinstance(type_, ty.tensor_descriptor_type):
        return base
    rank = type_.rank
    sizes, strides = found.described[1 : 1 + rank], (*found.described[1 + rank : 2 * rank], 1)
    return TensorInMemory(base, tuple(sizes), tuple(strides), found.element.itemsize)


def _run(
    program: Program,
    arguments: dict[str, object],
    kernel: Any,
    recorder: CPURecorder | None,
) -> None:
    """Runs a grid, within a session if one records."""
    if recorder is None:
        run_grid(program, arguments)
        return
    recording = recorder.begin(kernel, program.grid)
    try:
        if recording.kept and kernel.profile is not None:
            program.recorder = BlockRecorder(
                kernel.profile,
                recording.buffer,
                recording.chunks,
                calibration.read_clock(),
                recorder.instrumentation.every,
            )
        run_grid(program, arguments)
    finally:
        recorder.end(recording)
