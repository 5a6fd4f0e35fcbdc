"""AMD's GPUs as a target: compiled for, and not launched."""

from dataclasses import fields
from typing import Any, ClassVar

from proton.backends.amd.options import AMDOptions
from proton.backends.compiler import CompiledKernel, Compiler, CompileResult
from proton.base.errors import CompilationError, LaunchError, ProtonError
from proton.base.targets import CHIPS, GPUTarget, Target
from proton.base.words import did_you_mean
from proton.language.function import DeviceFunction
from proton.language.signature import Signature


def compile_only() -> LaunchError:
    """Why nothing is launched."""
    return LaunchError(
        "kernels are compiled for AMD GPUs and not launched: look at kernel.asm of "
        'kernel.warmup(..., target=proton.GPUTarget("hip", "gfx942"))'
    )


class AMDKernel(CompiledKernel):
    """Code to look at."""

    def __getitem__(self, grid: object) -> Any:
        raise compile_only()


class AMDCompiler(Compiler[AMDOptions, AMDKernel]):
    """Compiles for the GPU that the options name, which need not be there."""

    levels: ClassVar[dict[str, str]] = {
        "ttir": "ttir.mlir",
        "ttgir": "ttgir.mlir",
        "llvm": "llvm.mlir",
        "llir": "llir.ll",
        "amdgcn": "code.amdgcn",
        "obj": "code.o",  # to be linked by lld
    }
    binary = frozenset({"obj"})
    kernel = AMDKernel

    def identity(self, options: AMDOptions) -> dict[str, object]:
        from proton.backends.cpu import llvm

        return {"llvm": llvm.version()}

    def compile(
        self, fn: DeviceFunction, signature: Signature, options: AMDOptions, label: str
    ) -> CompileResult:
        from proton.backends.amd import compiler

        self.check_source(fn.ir, options.target)
        return compiler.compile_kernel(fn, signature, options, label)

    def chosen(
        self, target: Target, options: dict[str, Any], fn: DeviceFunction | None = None
    ) -> AMDOptions:
        if not isinstance(target, GPUTarget):
            chips = ", ".join(str(arch) for name, arch in CHIPS if name == target.backend)
            raise ProtonError(f"of AMD GPUs kernels are compiled for {chips} alone")
        known = [field.name for field in fields(AMDOptions)[1:]]
        for name in options:
            if name not in known:
                guess = did_you_mean(name, known) or f"; there are {', '.join(known)}"
                raise CompilationError(f"kernels for {target} have no option {name!r}{guess}")
        return AMDOptions(target, **options)


AMD_COMPILER = AMDCompiler()
