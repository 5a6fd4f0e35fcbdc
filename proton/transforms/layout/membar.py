"""Puts barriers where threads of a program share memory (see proton/analysis/membar.py)."""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.allocation import allocation_of
from proton.analysis.call_graph import call_graph
from proton.analysis.membar import missing_barriers
from proton.dialect import isa, tt
from proton.dialect.mlir import Module
from proton.dialect.ttg import BarrierOp
from proton.dialect.walk import all_ops, before
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class Membar(Pass):
    """`ttg.barrier` before every op that touches shared memory another thread may still use.

    It reads the attributes of `allocate-shared-memory`. Barriers that the kernel's author wrote
    (`tt.debug_barrier`) become `ttg.barrier` as well.
    """

    name: ClassVar[str] = "membar"

    def run(self, module: Module) -> None:
        graph = call_graph(module)
        for op in missing_barriers(graph, allocation_of(graph)):
            with before(op):
                BarrierOp()
        for op in all_ops(module):
            if isa(op, tt.DebugBarrierOp):
                with before(op):
                    BarrierOp()
                op.erase()
