"""What MLIR moves and knows across branches, loops and calls."""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import names_of
from proton.dialect.mlir import Module, func
from proton.dialect.regions import BRANCHING
from proton.dialect.walk import op_names
from proton.passes import Pass, Upstream, register


@register
@dataclass(frozen=True)
class AcrossControlFlow(Pass):
    """Takes what does not change out of loops, and finds constants that go along branches and into
    functions. Most kernels have none of these, and need not be simplified again."""

    name: ClassVar[str] = "across-control-flow"
    only_for: ClassVar[frozenset[str]] = BRANCHING | names_of(func.CallOp)

    def run(self, module: Module) -> None:
        if not op_names(module).isdisjoint(self.only_for):  # the latter folds what has none, too
            Upstream("loop-invariant-code-motion,sccp").run(module)
