"""What the back ends share: running pipelines stage by stage."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field

from proton.backends.compiler import LOCATED
from proton.base.knobs import knobs
from proton.dialect.mlir import Module, Operation
from proton.dialect.text import module_file
from proton.passes import Pass, Pipeline


@dataclass
class Stages:
    """Runs pipelines one after the other; `levels` has the IR after each, `times` the ms.

    `label` names the folder of the dumps. `kept` is IR ahead of a level, for what is said of it.
    """

    label: str
    number: int = 1
    levels: dict[str, Operation] = field(default_factory=dict)
    times: dict[str, float] = field(default_factory=dict)
    kept: dict[str, Operation] = field(default_factory=dict)

    def run(self, stage: str, module: Module, passes: list[Pass]) -> Module:
        """Runs the passes and returns the module; a copy is kept under the stage's name."""
        with self.timed(stage):
            pipeline = Pipeline(passes, self.label)
            module = pipeline.run(module, self.number)
            self.number += len(passes)
        self.levels[stage] = module.operation.clone()  # ten times faster than its text
        if knobs.pass_timing:
            pipeline.print_timings()
        return module

    def texts(self) -> dict[str, bytes]:
        """The text of each level as files have it, all of which went through the rest of the
        compiler; to be called within the context of the module."""
        return {
            stage: module_file(of, with_locations=stage in LOCATED)
            for stage, of in self.levels.items()
        }

    @contextmanager
    def timed(self, stage: str) -> Iterator[None]:
        """Adds the time of a `with` block to a stage."""
        start = time.perf_counter()
        yield
        self.times[stage] = self.times.get(stage, 0.0) + (time.perf_counter() - start) * 1e3
