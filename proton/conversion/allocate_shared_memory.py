"""Writes down where the shared memory of every op lies: what `ttg-to-llvm` reads."""

from dataclasses import dataclass
from typing import Any, ClassVar

from proton.analysis.allocation import allocate
from proton.analysis.call_graph import call_graph
from proton.dialect.mlir import ir
from proton.dialect.ttg import OFFSET, SHARED
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class AllocateSharedMemory(Pass):
    """`ttg.offset` (bytes) on every op with a buffer, `ttg.shared` (bytes) on every function."""

    name: ClassVar[str] = "allocate-shared-memory"

    def run(self, module: Any) -> None:
        i32 = ir.IntegerType.get_signless(32)
        graph = call_graph(module)
        for name, allocation in allocate(graph).items():
            graph.functions[name].attributes[SHARED] = ir.IntegerAttr.get(i32, allocation.size)
            for op, offset in allocation.offsets.items():
                op.attributes[OFFSET] = ir.IntegerAttr.get(i32, offset)
