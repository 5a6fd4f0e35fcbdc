"""What does not record runs code without records, where programs or warps are sampled.

    %sampled = proton_gpu.sampled
    scf.if %sampled { the kernel with records }
    else            { the kernel }

Records that nobody keeps cost nearly what kept ones cost: they take registers, and reading a clock
orders what stands around it. So there is the code of a kernel twice, and one branch where a program
begins. Registers are those of the version that takes more.

Warps of one program may run either version. They meet at the same barriers, and their buffers lie
at the same places of shared memory, since both are decided before. Where warp groups share tensor
cores all warps run the same version: groups that alternate wait for the slower one
(decision 202).

Functions that record have a copy without records, for the version that does not.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.call_graph import callee_name, function_name
from proton.dialect import ttng
from proton.dialect.attributes import KERNEL
from proton.dialect.builtin import integer, string_attr
from proton.dialect.mlir import Module, Operation, func, ir
from proton.dialect.proton import RECORDS
from proton.dialect.proton_gpu import SampledOp
from proton.dialect.regions import If, end_of, yield_values
from proton.dialect.walk import called_functions, functions, ops_named
from proton.passes import Pass, register
from proton.transforms.records.hold_waits import hold_waits


@register
@dataclass(frozen=True)
class ForkUnsampled(Pass):
    """Gives each kernel that records a second version that does not, and the branch to it.

    `programs` says whether programs are sampled; else only warps are.
    """

    name: ClassVar[str] = "fork-unsampled"
    only_for: ClassVar[frozenset[str]] = frozenset(RECORDS)

    programs: bool = True

    def run(self, module: Module) -> None:
        plain = _PlainFunctions({function_name(f): f for f in functions(module)})
        for kernel in [f for f in functions(module) if KERNEL in f.attributes]:
            if _records(kernel) and (self.programs or not _shares_tensor_cores(kernel)):
                _fork(kernel, plain)


def _fork(kernel: Operation, plain: "_PlainFunctions") -> None:
    """Puts a kernel's body into both branches of an `scf.if`, and takes records out of one."""
    block = kernel.regions[0].blocks[0]
    body = [view.operation for view in block.operations][:-1]
    with ir.InsertionPoint(body[0]), kernel.location:
        fork = If.create(SampledOp(integer(1)).result)
        with ir.InsertionPoint(fork.add_block(0)):
            yield_values()
    for op in body:
        op.move_before(end_of(fork.blocks[0]))
    copy = If(fork.op.clone().operation)
    plain.strip(copy.op)
    with ir.InsertionPoint(fork.add_block(1)), kernel.location:
        yield_values()
    for op in [view.operation for view in copy.blocks[0].operations][:-1]:
        op.move_before(end_of(fork.blocks[1]))
    copy.op.erase()


class _PlainFunctions:
    """The functions of a module, and their copies without records, by name."""

    def __init__(self, known: dict[str, Operation]) -> None:
        self.known, self.made = known, dict[str, str]()

    def strip(self, root: Operation) -> None:
        """Takes the records out of an op or a function; what it calls become their copies."""
        for op in ops_named(root, *RECORDS):
            op.erase()
        hold_waits(root)
        for call in ops_named(root, func.CallOp):
            function = self.known.get(callee_name(call))
            if function is not None and _records(function):
                name = self._copy(function)
                call.attributes["callee"] = ir.FlatSymbolRefAttr.get(name)

    def _copy(self, function: Operation) -> str:
        """The name of a function's copy without records."""
        name = function_name(function)
        if name not in self.made:
            self.made[name] = f"{name}__unsampled"
            with ir.InsertionPoint(function):
                copy = function.clone().operation
            copy.attributes["sym_name"] = string_attr(self.made[name])
            self.strip(copy)
        return self.made[name]


def _shares_tensor_cores(kernel: Operation) -> bool:
    """Whether the warps of a group have to run one instruction together."""
    together = ttng.WarpGroupDotOp, ttng.SetRegistersOp
    return any(ops_named(f, *together) for f in (kernel, *called_functions(kernel)))


def _records(function: Operation) -> bool:
    return any(ops_named(f, *RECORDS) for f in (function, *called_functions(function)))
