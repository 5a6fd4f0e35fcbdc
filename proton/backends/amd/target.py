"""AMD's GPUs as a target: compiled for, and not launched."""

from dataclasses import dataclass, fields
from typing import Any, ClassVar

from proton.backends.compiler import CompiledKernel, Compiler, CompileResult
from proton.base.errors import CompilationError
from proton.base.targets import GPUTarget, Target, check_num_warps
from proton.base.words import did_you_mean
from proton.language.function import DeviceFunction
from proton.language.signature import Signature


@dataclass(frozen=True)
class AMDOptions:
    """What changes the code of a kernel besides its signature; names are Triton's. A warp is a
    wave of 64 threads. Raises CompilationError for a value outside of its range."""

    target: GPUTarget
    num_warps: int = 4
    enable_fp_fusion: bool = True

    def __post_init__(self) -> None:
        check_num_warps(self.num_warps, self.target.warp_size)


class AMDCompiler(Compiler[AMDOptions, CompiledKernel]):
    """Compiles for the GPU that the options name, which need not be there."""

    levels: ClassVar[dict[str, str]] = {
        "ttir": "ttir.mlir",
        "ttgir": "ttgir.mlir",
        "llvm": "llvm.mlir",
        "llir": "llir.ll",
        "amdgcn": "code.amdgcn",
    }

    def identity(self, options: AMDOptions) -> dict[str, object]:
        from proton.backends.cpu import llvm

        return {"llvm": llvm.version()}

    def compile(
        self, fn: DeviceFunction, signature: Signature, options: AMDOptions, label: str
    ) -> CompileResult:
        from proton.backends.amd import compiler

        self.check_source(fn.ir, options.target)
        return compiler.compile_kernel(fn, signature, options, label)

    def chosen(self, target: Target, options: dict[str, Any]) -> AMDOptions:
        assert isinstance(target, GPUTarget)
        known = [field.name for field in fields(AMDOptions)[1:]]
        for name in options:
            if name not in known:
                guess = did_you_mean(name, known) or f"; there are {', '.join(known)}"
                raise CompilationError(f"kernels for {target} have no option {name!r}{guess}")
        return AMDOptions(target, **options)


AMD_COMPILER = AMDCompiler()
