"""Plans the loops of a kernel, and makes of them what the plans say (proton/schedule)."""

from dataclasses import dataclass
from typing import ClassVar

from proton.base.targets import GPUTarget
from proton.dialect import names_of
from proton.dialect.attributes import SCHEDULE
from proton.dialect.mlir import Module, ir, scf
from proton.dialect.walk import functions
from proton.passes import Pass, register
from proton.schedule.dots import WAIT
from proton.schedule.expand import expand
from proton.schedule.planning import Planner


@register
@dataclass(frozen=True)
class ScheduleLoops(Pass):
    """Pipelines innermost loops in `num_stages` stages, or in as many as `tt.num_stages` says, on a
    target with asynchronous copies; in fewer where its shared memory has no room. Dots of
    warp groups go on until their results are asked for, and warp groups alternate at them. Where a
    loop asks for it, or has dots that may run beside those of its next iteration, a warp of its own
    begins its copies (`ttg.worker`), unless `roles` is false."""

    name: ClassVar[str] = "tritongpu-schedule-loops"
    only_for: ClassVar[frozenset[str]] = names_of(scf.ForOp, WAIT)

    target: GPUTarget
    num_stages: int = 3
    roles: bool = True

    def run(self, module: Module) -> None:
        chip = self.target.facts
        if not chip.has_async_copies:
            return
        for function in functions(module):
            schedules = Planner(module, function, self.num_stages, chip, self.roles).schedules()
            texts = [str(schedule) for schedule in schedules if schedule.loop is not None]
            expand(module, function, schedules)
            if texts:
                found = [ir.StringAttr.get(text) for text in texts]
                function.attributes[SCHEDULE] = ir.ArrayAttr.get(found)
