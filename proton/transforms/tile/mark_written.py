"""Notes on each function which arguments it may write: `proton.written = array<i64: 2>`.

-1 stands for memory that is no argument's (proton.analysis.alias), and for any that a function
writes that kernels call: which of their arguments that is, calls say. The launcher decides by it
which variant of a kernel may run, and `structured-to-memref` what may be read in place.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.alias import UNKNOWN, accesses_of
from proton.analysis.call_graph import function_name
from proton.dialect.attributes import KERNEL, WRITTEN
from proton.dialect.mlir import Module, ir
from proton.dialect.walk import functions
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class MarkWritten(Pass):
    """Records the arguments that `tt` stores and atomics may reach."""

    name: ClassVar[str] = "mark-written"

    def run(self, module: Module) -> None:
        known = accesses_of(module)
        for function in functions(module):
            accesses = known[function_name(function)]
            written = accesses.written
            if written and (UNKNOWN in accesses.read or KERNEL not in function.attributes):
                # What is read through an unknown pointer may be what an argument writes, and
                # no comparison of the arguments can tell; nor is a callee's compared with others.
                written |= {UNKNOWN}
            function.attributes[WRITTEN] = ir.DenseI64ArrayAttr.get(sorted(written))
