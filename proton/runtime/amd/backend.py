"""The back end of AMD's GPUs: it compiles; a launch is an error."""

from proton.backends.amd.target import AMD_COMPILER, compile_only
from proton.backends.compiler import CompiledKernel
from proton.base.errors import CompilationError
from proton.base.targets import Target
from proton.runtime.backend import Backend, KernelFunction
from proton.runtime.launch.plain import PlainLauncher
from proton.trace.instrumentation import Instrumentation


class AMDLauncher(PlainLauncher):
    """Compiles."""

    def compile(
        self,
        values: tuple[object, ...],
        options: dict[str, object],
        target: Target | None = None,
        records: Instrumentation | None = None,
    ) -> CompiledKernel:
        if records is not None:
            raise CompilationError("kernels for AMD GPUs record nothing: leave profile out")
        return super().compile(values, options, target)

    def run(
        self, kernel: CompiledKernel, grid: tuple[int, int, int], arguments: list[object]
    ) -> None:
        raise compile_only()


class AMDBackend(Backend):
    """GPUs that code is compiled for alone."""

    name = "hip"
    plug_in = "amd"
    compiler = AMD_COMPILER
    options = ("num_warps", "enable_fp_fusion")

    def is_there(self) -> bool:
        return False

    def owns(self, value: object) -> bool:
        return False

    def target(self) -> Target:
        raise compile_only()

    def launcher(self, kernel: KernelFunction) -> AMDLauncher:
        return AMDLauncher(self, kernel)


BACKEND = AMDBackend()
