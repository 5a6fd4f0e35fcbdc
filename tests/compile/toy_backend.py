"""A back end in one file: tile IR of straight-line kernels is its machine code, and numpy runs it.

It shows all that a back end is. The toy has a memory of its own, in which its arrays lie.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from proton.backends.compiler import CompiledKernel, Compiler, CompileResult
from proton.backends.stages import Stages
from proton.backends.ttir import ttir_passes
from proton.base.targets import Target
from proton.dialect.context import mlir_context
from proton.dialect.mlir import Module, Operation
from proton.frontend import build_module
from proton.language import types as ty
from proton.language.function import DeviceFunction
from proton.language.signature import Signature
from proton.runtime.backend import Backend, KernelFunction
from proton.runtime.launch.arguments import NUMPY_TYPES
from proton.runtime.launch.plain import LaunchTimes, PlainLauncher
from proton.runtime.session.recording import SessionState
from tests.ir.tile_interpreter import TileInterpreter

MEMORY = np.zeros(1 << 16, np.uint8)
FLOATS = MEMORY.view(np.float32)


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

    def identity(self, options: ToyOptions) -> dict[str, Any]:
        return {"toy": 1}

    def chosen(self, target: Target, options: dict[str, Any]) -> ToyOptions:
        return ToyOptions(**options)

    def compile(
        self, fn: DeviceFunction, signature: Signature, options: ToyOptions, label: str
    ) -> CompileResult:
        stages = Stages(label)
        with mlir_context():
            text = str(stages.run("ttir", build_module(fn, signature), ttir_passes(None)))
        data = {"target": "toy", "decimals": options.decimals}
        return CompileResult(data, {"ttir.mlir": text.encode()}, stages.times)


class ToyArray:
    """An array in the toy's memory, at an address in bytes."""

    def __init__(self, address: int, numbers: np.ndarray) -> None:
        self.address = address
        self.numbers = MEMORY[address : address + numbers.nbytes].view(numbers.dtype)
        self.numbers[:] = numbers


class ToyLauncher(PlainLauncher):
    """Runs programs one after the other."""

    def run(
        self, kernel: CompiledKernel, grid: tuple[int, int, int], arguments: list[object]
    ) -> None:
        passed = [v.address if isinstance(v, ToyArray) else v for v in arguments]
        with mlir_context():
            module = Module.parse(kernel.asm["ttir"])
            for place in np.ndindex(*grid):
                _Program(module, place, kernel).run(kernel.metadata["symbol"], passed)


class _Program(TileInterpreter):
    """One program: integers and addresses as the interpreter has them, and the rest."""

    def __init__(self, module: Module, place: tuple[int, ...], kernel: CompiledKernel) -> None:
        super().__init__(module, lambda value, numbers: None)
        self.place, self.decimals = place, kernel.metadata["decimals"]

    def _op(self, op: Operation, operands: list[Any]) -> list[Any]:
        match op.name:
            case "tt.get_program_id":
                return [self.place[op.attributes["axis"].value]]
            case "arith.addf":
                found = operands[0] + operands[1]
                return [found if self.decimals is None else np.round(found, self.decimals)]
            case "tt.load":
                addresses, mask = operands
                return [np.where(mask, FLOATS[np.where(mask, addresses // 4, 0)], np.float32(0))]
            case "tt.store":
                addresses, numbers, mask = operands
                FLOATS[addresses[mask] // 4] = numbers[mask]
                return []
        return super()._op(op, operands)


class ToyBackend(Backend):
    """One toy, which is always there."""

    name = "toy"
    compiler = ToyCompiler()
    options = ("decimals",)

    def is_there(self) -> bool:
        return True

    def target(self) -> Target:
        return ToyTarget()

    def owns(self, value: object) -> bool:
        return isinstance(value, ToyArray)

    def element(self, array: ToyArray) -> ty.dtype:
        return NUMPY_TYPES[array.numbers.dtype.name]

    def launcher(self, kernel: KernelFunction) -> ToyLauncher:
        return ToyLauncher(self, kernel)

    def recorder(self, session: SessionState) -> LaunchTimes:
        return LaunchTimes(session, beads=100)


TOY = ToyBackend()
