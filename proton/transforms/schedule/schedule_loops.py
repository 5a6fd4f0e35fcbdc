"""Plans the loops of a kernel, and makes of them what the plans say (proton/schedule)."""

from dataclasses import dataclass
from typing import ClassVar

from proton.base.targets import GPUTarget
from proton.dialect import names_of
from proton.dialect.attributes import SCHEDULE, SINGLE_BUFFERS
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
    begins its copies (`ttg.worker`), unless `roles` is false. Where a loop has a single buffer the
    module says so, unless `single_buffers` is false: the rest of the kernel may need that room."""

    name: ClassVar[str] = "tritongpu-schedule-loops"
    only_for: ClassVar[frozenset[str]] = names_of(scf.ForOp, WAIT)

    target: GPUTarget
    num_stages: int = 3
    roles: bool = True
    single_buffers: bool = True

    def run(self, module: Module) -> None:
        chip = self.target.facts
        if not chip.has_async_copies:
            return
        for function in functions(module):
            planner = Planner(
                module, function, self.num_stages, chip, self.roles, self.single_buffers
            )
            schedules = planner.schedules()
            if any(schedule.copies and schedule.copies.is_tight for schedule in schedules):
                module.operation.attributes[SINGLE_BUFFERS] = ir.UnitAttr.get()
            texts = [str(schedule) for schedule in schedules if schedule.loop is not None]
            expand(module, function, schedules)
            if texts:
                found = [ir.StringAttr.get(text) for text in texts]
                function.attributes[SCHEDULE] = ir.ArrayAttr.get(found)
