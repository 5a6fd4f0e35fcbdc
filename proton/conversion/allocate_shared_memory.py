"""Writes down where the shared memory of every op lies: what `ttg-to-llvm` reads."""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.allocation import allocate
from proton.analysis.call_graph import call_graph
from proton.dialect.attributes import SHARED_BYTES, SHARED_OFFSET
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Module
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class AllocateSharedMemory(Pass):
    """`ttg.offset` (bytes) on every op with a buffer, `ttg.shared` (bytes) on every function."""

    name: ClassVar[str] = "allocate-shared-memory"

    def run(self, module: Module) -> None:
        graph = call_graph(module)
        for name, allocation in allocate(graph).items():
            graph.functions[name].attributes[SHARED_BYTES] = i32_attr(allocation.size)
            for op, offset in allocation.offsets.items():
                op.attributes[SHARED_OFFSET] = i32_attr(offset)
