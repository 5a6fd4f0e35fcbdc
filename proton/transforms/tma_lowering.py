"""Loads and stores of TMA that no pipeline took: memory, a barrier, the copy, and the wait for it.

    %x = ttng.tma_load %t, %i, %j
becomes
    %m = ttg.local_reserve;  %b = ttg.local_reserve
    ttng.init_barrier %b;  ttng.fence_async_shared
    ttng.barrier_expect %b {bytes}
    ttng.async_tma_copy_global_to_local %t, %b, %m, %i, %j
    ttng.wait_barrier %b, 0;  ttng.inval_barrier %b
    %x = ttg.local_load %m
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from proton.analysis.pipelining import TMA_LOAD, Load
from proton.analysis.tensor_maps import box_of_map
from proton.dialect.builtin import integer
from proton.dialect.emit import constant
from proton.dialect.mlir import Module, Operation
from proton.dialect.ttg import mem_desc
from proton.dialect.ttg_memory import LocalAllocOp, LocalReserveOp
from proton.dialect.ttng_memory import (
    InvalBarrierOp,
    TMACopyToGlobalOp,
    WaitBarrierOp,
)
from proton.dialect.walk import before, ops_named
from proton.passes import Pass, register
from proton.transforms.load_buffers import begin_tma, start_barriers, take_from


@register
@dataclass(frozen=True)
class TMALowering(Pass):
    """Copies in the place of `ttng.tma_load` and `ttng.tma_store`."""

    name: ClassVar[str] = "triton-nvidia-gpu-tma-lowering"

    def run(self, module: Module) -> None:
        for op in ops_named(module, TMA_LOAD):
            with before(op):
                _load(op)
        for op in ops_named(module, "ttng.tma_store"):
            with before(op):
                _store(op)


def _load(op: Operation) -> None:
    load, zero = Load(op), constant(0, integer(32))
    memory = LocalReserveOp(load.memory).result
    barrier = start_barriers(1)
    begin_tma([load], [memory], barrier, constant(1, integer(1)), {})
    WaitBarrierOp(barrier, zero)
    InvalBarrierOp(barrier)
    take_from(load, memory)


def _store(op: Operation) -> None:
    view: Any = op.opview
    block, box = view.map.type.target, box_of_map(view.map.type)
    assert box is not None, "as the pass chose it"
    type_ = mem_desc(tuple(block.shape), block.element_type, box.layout)
    TMACopyToGlobalOp(view.map, LocalAllocOp(view.src, type_).result, list(view.indices))
    op.erase()
