"""Notes on each kernel which arguments it may write: `proton.written = array<i64: 2>`.

-1 stands for memory that is no argument's (proton.analysis.alias). The launcher decides by it
which variant of a kernel may run, and `structured-to-memref` what may be read in place.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.alias import UNKNOWN, kernel_accesses
from proton.dialect.attributes import WRITTEN
from proton.dialect.mlir import Module, ir
from proton.dialect.walk import kernel_functions
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class MarkWritten(Pass):
    """Records the arguments that `tt` stores and atomics may reach."""

    name: ClassVar[str] = "mark-written"

    def run(self, module: Module) -> None:
        for function in kernel_functions(module):
            accesses = kernel_accesses(function)
            written = accesses.written
            if written and UNKNOWN in accesses.read:
                # What is read through an unknown pointer may be what an argument writes, and
                # no comparison of the arguments can tell.
                written |= {UNKNOWN}
            function.attributes[WRITTEN] = ir.DenseI64ArrayAttr.get(sorted(written))
