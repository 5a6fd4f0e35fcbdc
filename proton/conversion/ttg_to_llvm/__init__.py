"""`ttg-to-llvm`: tiles to the code of one thread. The rules are in the folders here."""

import functools
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.axis_info import AxisInfos
from proton.base.targets import GPUTarget
from proton.conversion.ttg_to_llvm.amd import AMD
from proton.conversion.ttg_to_llvm.core import (  # noqa: F401 - registers their rules
    atomics,
    calls,
    collectives,
    dot,
    elementwise,
    layouts,
    memory,
    reduce,
    shared_memory,
)
from proton.conversion.ttg_to_llvm.core.lowering import SHARED_SYMBOL, Hardware, lowering
from proton.conversion.ttg_to_llvm.nvidia import NVIDIA
from proton.conversion.ttg_to_llvm.records import (  # noqa: F401 - registers their rules
    kept_iterations,
    optimization_barriers,
    profile,
)
from proton.dialect import proton_gpu as pg
from proton.dialect.attributes import DIVISIBILITY, ELEMENT, TENSOR_MAP
from proton.dialect.mlir import Attribute, Context, Module, Operation, ir
from proton.dialect.walk import functions, ops_named
from proton.layout.tensor_map import TENSOR_MAP_BYTES
from proton.passes import Pass, Upstream, register

# What upstream makes of the rest, behind this pass.
THREADS_TO_LLVM = Upstream(
    "convert-vector-to-llvm,convert-scf-to-cf,"
    "convert-to-llvm{filter-dialects=arith,cf,func,math,ub},"
    "reconcile-unrealized-casts,canonicalize,cse",
    checked=True,
)
# By the back end of a target.
HARDWARE: dict[str, Hardware] = {"cuda": NVIDIA, "hip": AMD}


@register
@dataclass(frozen=True)
class TTGToLLVM(Pass):
    """Lowers all functions of a module to the `llvm`, `arith`, `scf` and `func` dialects, and to
    what the target's primitives are.

    It needs the attributes of `allocate-shared-memory` and the barriers of `membar`.
    """

    name: ClassVar[str] = "ttg-to-llvm"

    target: GPUTarget

    def run(self, module: Module) -> None:
        hardware = HARDWARE[self.target.backend]
        infos = AxisInfos(module)
        defined = functions(module)
        called_record = bool(ops_named(module, pg.AttachOp))
        _declare_shared(module)
        for function in defined:
            lowering(module, function, infos, called_record, self.target, hardware).run()
            _describe_arguments(function)


def _describe_arguments(function: Operation) -> None:
    """Alignments of pointers, for LLVM; our own attributes go."""
    if "arg_attrs" in function.attributes:
        arguments = [_argument(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]
        function.attributes["arg_attrs"] = ir.ArrayAttr.get(arguments)


def _argument(attributes: Attribute) -> Attribute:
    """An argument's alignment, for LLVM; our own attributes go. A tensor map is passed by value, at
    a multiple of 64 bytes."""
    known = ir.DictAttr(attributes)
    if TENSOR_MAP in known:
        return ir.Attribute.parse(
            f"{{llvm.byval = !llvm.array<{TENSOR_MAP_BYTES} x i8>, llvm.align = 64 : i64}}"
        )
    if DIVISIBILITY in known and ELEMENT in known:
        return ir.DictAttr.get({"llvm.align": known[DIVISIBILITY]})
    return ir.DictAttr.get({})


def _declare_shared(module: Module) -> None:
    """The symbol where a program's shared memory begins; its size is an option of the launch."""
    declaration = _shared_declaration(module.context).body.operations[0].operation
    declaration.clone(ir.InsertionPoint.at_block_begin(module.body))


@functools.cache  # the op's text takes longer than a copy of it
def _shared_declaration(context: Context) -> Module:
    text = (
        f"llvm.mlir.global external @{SHARED_SYMBOL}() "
        "{addr_space = 3 : i32, alignment = 1024 : i64} : !llvm.array<0 x i8>"
    )
    with context, ir.Location.unknown():
        return ir.Module.parse(text)
