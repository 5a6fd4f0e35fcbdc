"""Puts the functions of a program into a `gpu.module`: what the NVPTX target of MLIR takes."""

from dataclasses import dataclass
from typing import ClassVar

from proton.base.errors import PassError
from proton.base.targets import WARP_SIZE
from proton.dialect import isa
from proton.dialect.attributes import KERNEL, KERNEL_PROFILE, LOOP_ANNOTATION
from proton.dialect.builtin import i32_attr, string_attr, strings_attr
from proton.dialect.mlir import Module, Operation, gpu, ir, llvm
from proton.dialect.ttg import num_warps
from proton.dialect.walk import all_ops, op_names
from proton.passes import Pass, register

GPU_MODULE = "kernel"
_OF_BRANCH = "loop_annotation"  # what LLVM reads of a branch that closes a loop


@register
@dataclass(frozen=True)
class LLVMToGPUModule(Pass):
    """Wraps a module of `llvm` functions, and says of each what LLVM and the assembler must know.

    A kernel runs with `num_warps` warps and at most `max_registers` registers per thread (0: the
    assembler chooses); other functions are internal and stay calls.
    """

    name: ClassVar[str] = "llvm-to-gpu-module"

    max_registers: int = 0

    def run(self, module: Module) -> None:
        _check_all_is_lowered(module)
        threads = WARP_SIZE * num_warps(module)
        ops = [view.operation for view in module.body.operations]
        for op in ops:
            if isa(op, llvm.LLVMFuncOp) and len(op.regions[0].blocks):
                self._describe(op, threads)
        module.operation.attributes["gpu.container_module"] = ir.UnitAttr.get()
        with ir.InsertionPoint(module.body), module.operation.location:
            inner = ir.Operation.create(
                gpu.GPUModuleOp.OPERATION_NAME,
                attributes={"sym_name": string_attr(GPU_MODULE)},
                regions=1,
            )
            block = ir.Block.create_at_start(inner.regions[0], [])
        for op in ops:
            block.append(op)

    def _describe(self, function: Operation, threads: int) -> None:
        attributes = function.attributes
        for block in function.regions[0].blocks:
            _annotate(block.operations[len(block.operations) - 1].operation)
        is_kernel = KERNEL in attributes
        for name in list(attributes):
            if name.startswith(("tt.", "proton.")) and name != KERNEL_PROFILE:
                del attributes[name]
        if is_kernel:
            attributes["nvvm.kernel"] = ir.UnitAttr.get()
            attributes["nvvm.maxntid"] = ir.DenseI32ArrayAttr.get([threads])
            _leave_in_place(function)
            if self.max_registers:
                attributes["nvvm.maxnreg"] = i32_attr(self.max_registers)
        else:
            attributes["passthrough"] = strings_attr(["noinline"])
            attributes["linkage"] = ir.Attribute.parse("#llvm.linkage<internal>")


def _check_all_is_lowered(module: Module) -> None:
    """Raises PassError for an op that LLVM does not know: to translate it may end the process."""
    for name in op_names(module):
        if not name.startswith(("llvm.", "nvvm.")):
            first = next(op for op in all_ops(module) if op.name == name)
            raise PassError(f"{name} is left behind the lowering (at {first.location})")


def _annotate(branch: Operation) -> None:
    """What was said of a loop is the last branch's; what was said of the branch counts more."""
    attributes = branch.attributes
    if LOOP_ANNOTATION in attributes:
        annotation = attributes[LOOP_ANNOTATION]
        del attributes[LOOP_ANNOTATION]
        if _OF_BRANCH not in attributes:
            attributes[_OF_BRANCH] = annotation


def _leave_in_place(kernel: Operation) -> None:
    """What is passed by value stays where the launch put it: its address is taken."""
    if "arg_attrs" not in kernel.attributes:
        return
    found = []
    for known in ir.ArrayAttr(kernel.attributes["arg_attrs"]):
        entries = {name.name: name.attr for name in ir.DictAttr(known)}
        if "llvm.byval" in entries:
            entries["nvvm.grid_constant"] = ir.UnitAttr.get()
        found.append(ir.DictAttr.get(entries))
    kernel.attributes["arg_attrs"] = ir.ArrayAttr.get(found)
