"""Software pipelines: a loop's loads begin iterations before their data is used.

Which loads, in which loops, and how deep: see PipelineLoops. What becomes of a loop is in
pipelined_loop.py, and of a loop over tiles in pipelined_tiles.py.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.alias import Roots
from proton.analysis.axis_info import AxisInfos
from proton.analysis.pipelining import Load, candidates, is_innermost, is_live_in, tiles_of
from proton.analysis.scratch import desc_bytes, scratch_bytes
from proton.analysis.tensor_maps import box_of_map
from proton.base.targets import GPUTarget
from proton.dialect.attributes import NUM_STAGES
from proton.dialect.mlir import Module, Operation, ir
from proton.dialect.traits import AllocatesShared, has
from proton.dialect.walk import all_ops, functions, ops_named
from proton.passes import Pass, register
from proton.transforms.schedule.pipelined_loop import PipelinedLoop
from proton.transforms.schedule.pipelined_tiles import PipelinedTiles
from proton.transforms.schedule.skip_empty_loop import is_rest, skip_empty


@register
@dataclass(frozen=True)
class PipelineLoops(Pass):
    """Pipelines innermost loops in `num_stages` stages, or in as many as `tt.num_stages` says, on a
    GPU of compute capability `arch` / 10; in fewer where its shared memory has no room."""

    name: ClassVar[str] = "tritongpu-pipeline"
    only_for: ClassVar[frozenset[str]] = frozenset({"scf.for"})

    num_stages: int = 3
    arch: int = 90

    def run(self, module: Module) -> None:
        limit = GPUTarget("cuda", self.arch).facts.shared_bytes
        for function in functions(module):
            loops = [op for op in ops_named(function, "scf.for") if is_innermost(op)]
            if not loops:
                continue
            infos, roots = AxisInfos(module), Roots(function)
            for loop in loops:
                stages, is_asked = self._stages(loop)
                loads = candidates(loop, infos, roots, is_asked) if stages > 1 else []
                if loads:
                    _pipeline(function, loop, loads, stages, limit)

    def _stages(self, loop: Operation) -> tuple[int, bool]:
        """(stages, whether the loop itself asked for them)."""
        if NUM_STAGES in loop.attributes:
            return int(ir.IntegerAttr(loop.attributes[NUM_STAGES]).value), True
        return self.num_stages, False


def _pipeline(
    function: Operation, loop: Operation, loads: list[Load], stages: int, limit: int
) -> None:
    loads = [load for load in loads if list(load.op.results[0].uses)]
    each = sum(desc_bytes(load.memory) for load in loads)
    replaced = [load.alloc for load in loads if load.alloc]
    others = sum(
        desc_bytes(op.results[0].type)
        for op in ops_named(function, "ttg.local_alloc", "ttg.local_reserve")
        if op not in replaced and is_live_in(op, loop, function)
    )
    if not each:
        return
    tiles = tiles_of(loop, loads)
    if tiles is not None:
        most = min(stages, (limit - others - _bytes_beside(tiles.loop)) // each)
        if most > 1:
            PipelinedTiles(loop, loads, most, tiles).run()
            return
    stages = min(stages, (limit - others - _bytes_beside(loop)) // each)
    if stages > 1:
        if is_rest(loop):
            skip_empty(loop)
        PipelinedLoop(loop, loads, stages).run()


def _bytes_beside(loop: Operation) -> int:
    """Shared memory that is in use in a loop while buffers are: of blocks that TMA stores, and
    scratch memory."""
    boxes = [box_of_map(op.operands[0].type) for op in ops_named(loop, "ttng.tma_store")]
    scratch = max(scratch_bytes(op) for op in all_ops(loop) if not has(op, AllocatesShared))
    return scratch + sum(box.bytes for box in boxes if box is not None)
