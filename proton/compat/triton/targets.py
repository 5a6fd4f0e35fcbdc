"""`triton.backends.compiler`: targets and back ends as programs make and ask them."""

from dataclasses import dataclass, fields
from types import SimpleNamespace
from typing import Any

from proton.backends.compiler import BaseBackend as BaseBackend
from proton.base import targets
from proton.base.errors import ProtonError
from proton.compiling.argument_facts import attributes_of, letters_of_value
from proton.compiling.cache import compiler_version, make_key
from proton.runtime.backend import backend_named, backends


@dataclass(frozen=True)
class OtherTarget(targets.Target):
    """A device that Proton does not compile for: it can be named, and compiling says so."""

    backend: str
    arch: object
    warp_size: int


class _AnyTarget(type):
    """Calls give the target that Proton has for a device, and all targets are instances."""

    def __call__(cls, backend: str, arch: Any, warp_size: int = 0) -> Any:
        if backend == targets.CPUTarget.backend:
            return targets.CPUTarget()
        if (backend, arch) in targets.CHIPS:
            return targets.GPUTarget(backend, arch, warp_size)  # type: ignore[arg-type]  # known
        return OtherTarget(backend, arch, warp_size)

    def __instancecheck__(cls, value: object) -> bool:
        return isinstance(value, targets.Target)


class TritonGPUTarget(metaclass=_AnyTarget):
    """`GPUTarget("cuda", 90, 32)`, and that of every other device: `GPUTarget("cpu", "x86", 1)`."""


GPUTarget = TritonGPUTarget


class TargetBackend:
    """`make_backend(target)`: what programs ask Triton's back end of a target."""

    def __init__(self, target: targets.Target) -> None:
        known = {backend.name for backend in backends()}
        if target.backend not in known:
            raise ProtonError(
                f"kernels are compiled for {' and '.join(sorted(known))}, not for {target.backend}"
            )
        self.target, self._compiler = target, backend_named(target.backend).compiler
        self.binary_ext = next(iter(self._compiler.binary))

    def parse_options(self, options: dict[str, object]) -> SimpleNamespace:
        """The options of a launch with their defaults; what means nothing here is left out."""
        known = {f.name for f in fields(self._compiler.chosen(self.target, {}))}
        chosen = {name: value for name, value in options.items() if name in known - {"target"}}
        return options_of(self._compiler.chosen(self.target, chosen))

    def hash(self) -> str:
        """A hash of what machine code depends on besides the kernel."""
        options = self._compiler.chosen(self.target, {})
        identity = self._compiler.identity(options)
        return make_key({"version": compiler_version(), "of": identity, "for": str(self.target)})

    @staticmethod
    def get_arg_specialization(value: object, type_: str, **_: object) -> str:
        """ "D" of an address or an integer that 16 divides, "N" of an integer from 0 on."""
        return letters_of_value(value)

    @staticmethod
    def parse_attr(text: str) -> list[list[object]]:
        """What such a text says of an argument: `attrs` of ASTSource."""
        return attributes_of(text)

    def get_codegen_implementation(self, options: object) -> dict[str, object]:
        """Nothing: the front end knows the targets."""
        return {}

    def get_module_map(self) -> dict[str, object]:
        """Nothing, likewise."""
        return {}

    def load_dialects(self, context: object) -> None:
        """Nothing: ours are loaded when something is compiled."""


def make_backend(target: targets.Target) -> TargetBackend:
    """The back end of a target; raises ProtonError where there is none."""
    return TargetBackend(target)


_DEFAULTS: dict[str, object] = {  # of options that every kernel of Triton's has
    "num_warps": 1,
    "num_stages": 1,
    "num_ctas": 1,
    "cluster_dims": (1, 1, 1),
    "maxnreg": None,
    "extern_libs": (),
    "launch_pdl": False,
    "launch_cooperative_grid": False,
}


def options_of(options: Any) -> SimpleNamespace:
    """What a kernel was compiled with, under Triton's names."""
    found = {f.name: getattr(options, f.name) for f in fields(options)}
    return SimpleNamespace(**_DEFAULTS | {"warp_size": targets.WARP_SIZE} | found)
