"""The back end of AMD's GPUs: it compiles; a launch is an error."""

from proton.backends.amd.target import AMD_COMPILER
from proton.backends.compiler import CompiledKernel
from proton.base.errors import LaunchError
from proton.base.targets import Target
from proton.runtime.backend import Backend, KernelFunction
from proton.runtime.launch.plain import PlainLauncher


def _compile_only() -> LaunchError:
    return LaunchError(
        "kernels are not launched on AMD GPUs: compile for one with "
        'kernel.warmup(..., target=proton.GPUTarget("hip", "gfx942"))'
    )


class AMDLauncher(PlainLauncher):
    """Compiles."""

    def run(
        self, kernel: CompiledKernel, grid: tuple[int, int, int], arguments: list[object]
    ) -> None:
        raise _compile_only()


class AMDBackend(Backend):
    """GPUs that code is compiled for alone."""

    name = "hip"
    compiler = AMD_COMPILER
    options = ("num_warps", "enable_fp_fusion")

    def is_there(self) -> bool:
        return False

    def owns(self, value: object) -> bool:
        return False

    def target(self) -> Target:
        raise _compile_only()

    def launcher(self, kernel: KernelFunction) -> AMDLauncher:
        return AMDLauncher(self, kernel)


BACKEND = AMDBackend()
