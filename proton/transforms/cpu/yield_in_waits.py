"""Has loops that wait for other programs give their core away, each time that they look.

    while tl.atomic_add(flag, 0) == 0: pass      ->   ... sched_yield()

All programs of such a kernel must run at once, each on a thread of its own, of which there may be
many more than cores. The system is called without the C library: a signal ends kernels within their
own code alone (proton/runtime/cpu/guard.py).
"""

import platform
import sys
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.handovers import waits
from proton.dialect.attributes import WAITS
from proton.dialect.builtin import integer
from proton.dialect.emit import call_c, constant
from proton.dialect.mlir import Module, ir, llvm
from proton.dialect.regions import WhileLoop, end_of
from proton.dialect.walk import before, functions, kernel_functions
from proton.passes import Pass, register

_HAS_CALL = sys.platform == "linux" and platform.machine() == "x86_64"
_SCHED_YIELD = 24  # of Linux for x86-64
_REGISTERS = "={rax},{rax},~{rcx},~{r11},~{memory}"


@register
@dataclass(frozen=True)
class YieldInWaits(Pass):
    """Notes on kernels that they wait for other programs, and yields where they do."""

    name: ClassVar[str] = "yield-in-waits"

    def run(self, module: Module) -> None:
        loops = [loop for function in functions(module) for loop in waits(function)]
        for loop in loops:
            with before(end_of(WhileLoop(loop).after)):
                _yield()
        for kernel in kernel_functions(module) if loops else ():
            kernel.attributes[WAITS] = ir.UnitAttr.get()


def _yield() -> None:
    if _HAS_CALL:
        i64 = integer(64)
        number = constant(_SCHED_YIELD, i64)
        llvm.InlineAsmOp(i64, [number], "syscall", _REGISTERS, has_side_effects=True)
    else:
        call_c("sched_yield", [], integer(32))
