"""Puts barriers between loads and stores of elements of which several threads hold copies (see
proton/analysis/copied_loads.py)."""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.copied_loads import missing_barriers
from proton.dialect import names_of, ttg
from proton.dialect.mlir import Module
from proton.dialect.walk import before, functions
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class OrderCopiedLoads(Pass):
    """`ttg.barrier` where a thread might store before others have loaded, or load before it."""

    name: ClassVar[str] = "order-copied-loads"
    makes: ClassVar[frozenset[str] | None] = names_of(ttg.BarrierOp)

    def run(self, module: Module) -> None:
        for function in functions(module):
            for op in missing_barriers(function):
                with before(op):
                    ttg.BarrierOp()
