"""A back end in one file: tile IR of straight-line kernels is its machine code, and numpy runs it.

It shows all that a back end is. The toy has a memory of its own, in which its arrays lie.
"""

import time
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from proton.backends.compiler import Asm, CompiledKernel, Compiler, CompileResult
from proton.backends.stages import Stages
from proton.backends.ttir import ttir_passes
from proton.base.symbols import mangled
from proton.base.targets import Target
from proton.compiler import compile_function
from proton.dialect.context import mlir_context
from proton.dialect.mlir import ir
from proton.frontend import build_module
from proton.language.function import DeviceFunction
from proton.language.signature import Signature
from proton.runtime import session as sessions
from proton.runtime.arguments import NUMPY_TYPES, Argument, Parameter, refused, signature_of
from proton.runtime.backend import Backend, KernelFunction, Launcher
from proton.runtime.grid import grid_sizes
from proton.runtime.recording import Recorded, Recorder, SessionState
from proton.trace.model import Launch
from tests.ir.tile_interpreter import TileInterpreter

MEMORY = np.zeros(1 << 16, np.uint8)


@dataclass(frozen=True)
class ToyOptions:
    """What changes the code: a number that all arithmetic in floats is rounded to, or None."""

    decimals: int | None = None


class ToyTarget(Target):
    """The one device there is."""

    backend = "toy"


class ToyCompiler(Compiler[ToyOptions, CompiledKernel]):
    """Compiles to the tile IR, as text."""

    levels: ClassVar[dict[str, str]] = {"ttir": "ttir.mlir"}
    binary = frozenset[str]()
    disassembly = "listing"
    kernel = CompiledKernel

    def identity(self, options: ToyOptions) -> dict[str, Any]:
        return {"toy": 1}

    def compile(
        self, fn: DeviceFunction, signature: Signature, options: ToyOptions, label: str
    ) -> CompileResult:
        stages = Stages(label)
        with mlir_context():
            module = stages.run("ttir", build_module(fn, signature), ttir_passes(None))
            text = str(module)
        data = {"name": fn.__name__, "symbol": mangled(fn.__name__), "target": "toy"}
        data |= {"signature": str(signature), "profile": None, "decimals": options.decimals}
        return CompileResult(data, {"ttir.mlir": text.encode()}, stages.times)

    def disassemble(self, asm: Asm) -> str:
        lines = asm["ttir"].splitlines()
        return "\n".join(f"{number:4} {line.strip()}" for number, line in enumerate(lines))


class ToyArray:
    """An array in the toy's memory, at an address in bytes."""

    def __init__(self, address: int, numbers: np.ndarray) -> None:
        self.address = address
        self.numbers = MEMORY[address : address + numbers.nbytes].view(numbers.dtype)
        self.numbers[:] = numbers


class ToyLauncher(Launcher):
    """Runs programs one after the other."""

    def __init__(self, kernel: KernelFunction) -> None:
        self.kernel = kernel

    def launch(self, grid: Any, values: tuple[Any, ...], options: dict[str, Any]) -> CompiledKernel:
        keys = [_key(p, v) for p, v in zip(self.kernel.params, values, strict=True)]
        kernel = self._compiled(keys, options)
        runtime = [v for v, key in zip(values, keys, strict=True) if isinstance(key, str)]
        passed = [v.address if isinstance(v, ToyArray) else v for v in runtime]
        sizes, begin = grid_sizes(grid), time.perf_counter_ns()
        with mlir_context():
            module = ir.Module.parse(kernel.asm["ttir"])
            for place in np.ndindex(*sizes):
                _Program(module, place, kernel.metadata["decimals"]).run(
                    kernel.metadata["symbol"], passed
                )
        recorder: ToyRecorder | None = sessions.recorder_of("toy")
        if recorder is not None:
            recorder.keep(kernel, sizes, begin)
        return kernel

    def compile(
        self, values: tuple[Any, ...], options: dict[str, Any], target: Target | None = None
    ) -> CompiledKernel:
        pairs = list(zip(self.kernel.params, values, strict=True))
        return self._compiled([p.stand_in(v) or _key(p, v) for p, v in pairs], options)

    def _compiled(self, keys: list[Any], options: dict[str, Any]) -> CompiledKernel:
        signature = signature_of(self.kernel.arg_names, map(Argument.of, keys))
        return compile_function(TOY.compiler, self.kernel, signature, ToyOptions(**options))


def _key(parameter: Parameter, value: Any) -> Any:
    if isinstance(value, ToyArray):
        return parameter.pointer(NUMPY_TYPES[value.numbers.dtype.name])
    scalar = parameter.scalar(value)
    if scalar is None:
        raise refused(parameter.name, value)
    return scalar[0]


class _Program(TileInterpreter):
    """One program: integers and addresses as the interpreter has them, and the rest."""

    def __init__(self, module: Any, place: tuple[int, ...], decimals: int | None) -> None:
        super().__init__(module, lambda value, numbers: None)
        self.place, self.decimals = place, decimals

    def _op(self, op: Any, operands: list[Any]) -> list[Any]:
        match op.name:
            case "tt.get_program_id":
                return [self.place[op.attributes["axis"].value]]
            case "arith.addf":
                found = operands[0] + operands[1]
                return [found if self.decimals is None else np.round(found, self.decimals)]
            case "tt.load":
                addresses, mask = operands
                return [np.where(mask, _floats[np.where(mask, addresses // 4, 0)], np.float32(0))]
            case "tt.store":
                addresses, numbers, mask = operands
                _floats[addresses[mask] // 4] = numbers[mask]
                return []
        return super()._op(op, operands)


_floats = MEMORY.view(np.float32)


class ToyRecorder(Recorder):
    """Keeps the times of launches, which have no records."""

    def __init__(self, session: SessionState) -> None:
        self.session = session
        self.launches: list[Launch] = []

    def keep(self, kernel: CompiledKernel, grid: tuple[int, int, int], begin: int) -> None:
        """A launch that has ended."""
        session = self.session
        with session.lock:
            if session.begins():
                launch = Launch(
                    kernel=session.kernel_number(kernel, session.instrumentation),
                    grid=grid,
                    capacity=0,
                    host_start=begin,
                    host_end=time.perf_counter_ns(),
                    buffer=np.zeros(0, np.uint8),
                    path=session.host.path(),
                )
                self.launches.append(launch)

    def disown(self) -> None:
        self.launches = []

    def finish(self) -> Recorded:
        return Recorded(self.launches, machine={"beads": 100})


class ToyBackend(Backend):
    """One toy, which is always there."""

    name = "toy"
    compiler = ToyCompiler()
    options = ("decimals",)

    def is_there(self) -> bool:
        return True

    def owns(self, value: Any) -> bool:
        return isinstance(value, ToyArray)

    def element_bytes(self, array: Any) -> int:
        return int(array.numbers.itemsize)

    def launcher(self, kernel: KernelFunction) -> Launcher:
        return ToyLauncher(kernel)

    def recorder(self, session: SessionState) -> ToyRecorder:
        return ToyRecorder(session)


TOY = ToyBackend()
