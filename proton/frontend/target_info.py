"""Rules of `tl.target_info`."""

from proton.base.targets import GPUTarget, Target
from proton.base.words import shown
from proton.frontend.builder import error
from proton.frontend.interface import CodeGenerator
from proton.frontend.rules import generator_rule, rule
from proton.language import target_info


@generator_rule(target_info.current_target)
def _current_target(g: CodeGenerator) -> Target:
    found: Target = g.target
    return found


@generator_rule(target_info.is_cuda)
def _is_cuda(g: CodeGenerator) -> bool:
    return isinstance(g.target, GPUTarget)


@generator_rule(target_info.cuda_capability_geq)
def _cuda_capability_geq(g: CodeGenerator, major: object, minor: object = 0) -> bool:
    if not isinstance(major, int) or not isinstance(minor, int):
        raise error(
            f"a compute capability is two constexpr integers, got {shown(major)}, {shown(minor)}",
            "write cuda_capability_geq(9, 0)",
        )
    return isinstance(g.target, GPUTarget) and g.target.arch >= 10 * major + minor


def _never() -> bool:
    return False


for _op in ("is_hip", "is_hip_cdna3", "is_hip_cdna4", "is_hip_gfx1250"):
    rule(getattr(target_info, _op))(_never)
