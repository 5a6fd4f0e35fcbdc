"""Rules of `tl.target_info`."""

from collections.abc import Callable

from proton.base.targets import Target
from proton.base.words import shown
from proton.frontend.builder import error
from proton.frontend.interface import CodeGenerator
from proton.frontend.rules import generator_rule
from proton.language import target_info


@generator_rule(target_info.current_target)
def _current_target(g: CodeGenerator) -> Target:
    found: Target = g.target
    return found


@generator_rule(target_info.is_cuda)
def _is_cuda(g: CodeGenerator) -> bool:
    return target_info.is_gpu_of(g.target)


@generator_rule(target_info.cuda_capability_geq)
def _cuda_capability_geq(g: CodeGenerator, major: object, minor: object = 0) -> bool:
    if not isinstance(major, int) or not isinstance(minor, int):
        raise error(
            f"a compute capability is two constexpr integers, got {shown(major)}, {shown(minor)}",
            "write cuda_capability_geq(9, 0)",
        )
    return target_info.is_gpu_of(g.target, major, minor)


def _asks_for_amd(chips: tuple[str, ...]) -> Callable[[CodeGenerator], bool]:
    return lambda g: target_info.is_chip_of_amd(g.target, chips)


for _op, _chips in target_info.OF_AMD:
    generator_rule(_op)(_asks_for_amd(_chips))
