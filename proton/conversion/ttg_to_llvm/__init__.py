"""`ttg-to-llvm`: tiles to the code of one thread. The rules are in the modules beside this one."""

from dataclasses import dataclass
from typing import Any, ClassVar

from proton.analysis.axis_info import AxisInfos
from proton.base.targets import WARP_SIZE
from proton.conversion.ttg_to_llvm import (  # noqa: F401 - importing them registers their rules
    atomics,
    calls,
    debug,
    dot,
    elementwise,
    layouts,
    memory,
    reduce,
)
from proton.conversion.ttg_to_llvm.lowering import SHARED_SYMBOL, lowering
from proton.dialect.mlir import ir
from proton.dialect.ttg import num_warps
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class TTGToLLVM(Pass):
    """Lowers all functions of a module to the `llvm`, `nvvm`, `arith`, `scf` and `func` dialects.

    It needs the attributes of `allocate-shared-memory` and the barriers of `membar`. `max_registers`
    bounds the registers of a thread; 0 leaves them to the assembler.
    """

    name: ClassVar[str] = "ttg-to-llvm"

    max_registers: int = 0

    def run(self, module: Any) -> None:
        infos = AxisInfos(module)
        functions = [
            op.operation
            for op in module.body.operations
            if op.operation.name == "func.func" and len(op.operation.regions[0].blocks)
        ]
        _declare_shared(module)
        for function in functions:
            lowering(module, function, infos).run()
            self._describe(module, function)

    def _describe(self, module: Any, function: Any) -> None:
        """What LLVM and the assembler must know: kernels, their threads, aligned arguments."""
        is_kernel = "tt.kernel" in function.attributes
        if "arg_attrs" in function.attributes:
            arguments = [_argument(a) for a in ir.ArrayAttr(function.attributes["arg_attrs"])]
            function.attributes["arg_attrs"] = ir.ArrayAttr.get(arguments)
        for name in list(function.attributes):
            if name.startswith(("tt.", "ttg.", "proton.")):
                del function.attributes[name]
        if is_kernel:
            threads = WARP_SIZE * num_warps(module)
            function.attributes["nvvm.kernel"] = ir.UnitAttr.get()
            function.attributes["nvvm.maxntid"] = ir.DenseI32ArrayAttr.get([threads])
            if self.max_registers:
                i32 = ir.IntegerType.get_signless(32)
                count = ir.IntegerAttr.get(i32, self.max_registers)
                function.attributes["nvvm.maxnreg"] = count
        else:
            noinline = ir.ArrayAttr.get([ir.StringAttr.get("noinline")])
            function.attributes["passthrough"] = noinline
            function.attributes["llvm.linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")


def _argument(attributes: Any) -> Any:
    """An argument's alignment, for LLVM; our own attributes go."""
    known = ir.DictAttr(attributes)
    if "tt.divisibility" in known and "tt.element" in known:
        return ir.DictAttr.get({"llvm.align": known["tt.divisibility"]})
    return ir.DictAttr.get({})


def _declare_shared(module: Any) -> None:
    """The symbol where a program's shared memory begins; its size is an option of the launch."""
    text = (
        f"llvm.mlir.global external @{SHARED_SYMBOL}() "
        "{addr_space = 3 : i32, alignment = 16 : i64} : !llvm.array<0 x i8>"
    )
    with ir.Location.unknown():
        parsed = ir.Module.parse(text)
        op = parsed.body.operations[0].operation.clone(
            ir.InsertionPoint.at_block_begin(module.body)
        )
    del op
