"""The CPU of this machine as a target: what its kernels are, and who compiles them."""

from functools import cached_property
from typing import Any, ClassVar

from proton.backends.compiler import Asm, CompiledKernel, Compiler, CompileResult
from proton.backends.cpu import llvm
from proton.backends.cpu.options import CPUOptions
from proton.base.targets import DEFAULT_WARPS, CPUTarget, Target
from proton.language.function import DeviceFunction
from proton.language.signature import Signature


class CPUKernel(CompiledKernel):
    """Its metadata besides: written, extras, assertions, bounds, disjoint."""

    @cached_property
    def code(self) -> llvm.LinkedCode:
        """The machine code, linked into this process on first use."""
        return llvm.linker().link(self.asm["obj"], self.metadata["symbol"])


class CPUCompiler(Compiler[CPUOptions, CPUKernel]):
    """Compiles for the processor that this process runs on."""

    levels: ClassVar[dict[str, str]] = {
        "ttir": "ttir.mlir",
        "ttsir": "ttsir.mlir",
        "memref": "memref.mlir",
        "llvm": "llvm.mlir",
        "llir": "llir.ll",
        "obj": "code.o",
    }
    binary = frozenset({"obj"})
    disassembly = "asm"
    sources = ("ttir",)
    kernel = CPUKernel

    def identity(self, options: CPUOptions) -> dict[str, object]:
        return {
            "cpu": llvm.host_cpu(),
            "features": llvm.host_features(),
            "llvm": llvm.version(),
        }

    def compile(
        self, fn: DeviceFunction, signature: Signature, options: CPUOptions, label: str
    ) -> CompileResult:
        from proton.backends.cpu import compiler

        self.check_source(options.text, CPUTarget())
        return compiler.compile_kernel(fn, signature, options, label)

    def chosen(
        self, target: Target, options: dict[str, Any], fn: DeviceFunction | None = None
    ) -> CPUOptions:
        debug = bool(options.get("debug"))
        warps = options.get("num_warps") or DEFAULT_WARPS
        return CPUOptions(
            disjoint=options.get("disjoint"),
            debug=debug,
            ir_override=options.get("ir_override"),
            sanitize_overflow=debug and options.get("sanitize_overflow") is not False,
            warps=warps if fn is not None and fn.hears_warps else 0,
        )

    def warm_up(self) -> None:
        from proton.backends.cpu import compiler  # noqa: F401
        from proton.dialect.context import mlir_context

        with mlir_context():
            pass

    def disassemble(self, asm: Asm) -> str:
        return llvm.disassembly(asm["llir"])


CPU = CPUCompiler()
