"""Says how often LLVM unrolls loops whose number of iterations it does not know: not at all, but
for short ones with records.

The assembler unrolls such loops, too, and better: four iterations, whose loads are all under way at
once. Behind LLVM it leaves them, and LLVM takes two where one has some thirty instructions, and up
to seven remain for a loop of their own (decision 222).

A loop with records the assembler does not unroll. At the end of an iteration everything waits for
the last store and for the compare, so this pass asks for several iterations, by the size of the
work alone. Loops of tensor cores are long, and stay, and so do those in which threads meet: a
barrier is work that must stay the same. LLVM would take their first iteration out of such a loop,
since before that nothing is pending; saying that enough iterations have been taken out already
keeps it from that. A loop that takes records out of shared memory has several accesses under way in
one iteration, and is not unrolled.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, names_of
from proton.dialect.attributes import LOOP_ANNOTATION
from proton.dialect.memory import pointer_type
from proton.dialect.mlir import Block, Module, Operation, ir, llvm
from proton.passes import Pass, register

# No instructions, or a part of a record.
_FREE = names_of(
    *(llvm.InlineAsmOp, llvm.ConstantOp, llvm.BitcastOp, llvm.InsertElementOp, llvm.GEPOp),
    *(llvm.ExtractElementOp, llvm.ExtractValueOp),
)
SIZE = 150  # instructions of an unrolled loop: twice of what LLVM allows for NVPTX
MOST = 8  # iterations
_BY_ASSEMBLER = "unroll = <runtimeDisable = true>"
ALL_PEELED = 7  # iterations that LLVM takes out of a loop at most


@register
@dataclass(frozen=True)
class AnnotateLoops(Pass):
    """Sets the `loop_annotation` of the branches that close loops, unless they have one."""

    name: ClassVar[str] = "annotate-loops"

    def run(self, module: Module) -> None:
        for view in module.body.operations:
            function = view.operation
            if isa(function, llvm.LLVMFuncOp) and len(function.regions[0].blocks):
                _annotate(list(function.regions[0].blocks))


def _annotate(blocks: list[Block]) -> None:
    """A loop's blocks are those from where a branch goes back to, to where it comes from."""
    numbers = {block: number for number, block in enumerate(blocks)}
    terminators = [block.operations[-1].operation for block in blocks]
    loops = [
        (numbers[successor], end)
        for end, terminator in enumerate(terminators)
        for successor in terminator.successors
        if numbers[successor] <= end
    ]
    for first, end in loops:
        branch = terminators[end]
        if not isa(branch, llvm.BrOp) or LOOP_ANNOTATION in branch.attributes:
            continue
        what = _BY_ASSEMBLER
        if not any(first <= f and e <= end and (f, e) != (first, end) for f, e in loops):
            ops = [view.operation for block in blocks[first : end + 1] for view in block.operations]
            what = _of_records(ops) if any(map(_records, ops)) else what
        _annotate_loop(branch, what)


def _of_records(ops: list[Operation]) -> str:
    """What LLVM is to make of an innermost loop with records."""
    if any(map(_takes_records, ops)):
        return "unroll = <disable = true>"
    if any(map(_is_convergent, ops)):
        return f"peeled = <count = {ALL_PEELED} : i32>"
    iterations = _iterations(sum(map(_size, ops)))
    if iterations > 1 and not any(map(_multiplies_matrices, ops)):
        return f"unroll = <count = {iterations} : i32>"
    return _BY_ASSEMBLER


def _annotate_loop(branch: Operation, what: str) -> None:
    branch.attributes["loop_annotation"] = ir.Attribute.parse(f"#llvm.loop_annotation<{what}>")


def _iterations(size: int) -> int:
    iterations = 1
    while 2 * iterations <= MOST and 2 * iterations * size <= SIZE:
        iterations *= 2
    return iterations


def _size(op: Operation) -> int:
    """Instructions of the code without records, as LLVM counts them: assembly as a call, with one
    for each argument. Empty assembly is an optimization barrier, which that code has not."""
    if isa(op, llvm.InlineAsmOp):
        is_there = _assembly(op) and not _records(op)
        return 1 + len(op.operands) if is_there else 0
    if isa(op, llvm.LoadOp, llvm.StoreOp):
        address = op.operands[isa(op, llvm.StoreOp)]
        return int(address.type != pointer_type())  # a variable becomes a register
    return int(op.name not in _FREE)


def _assembly(op: Operation) -> str:
    return op.attributes["asm_string"].value if isa(op, llvm.InlineAsmOp) else ""


def _records(op: Operation) -> bool:
    return "// proton" in _assembly(op)


def _takes_records(op: Operation) -> bool:
    return _records(op) and "ld.shared" in _assembly(op)


def _is_convergent(op: Operation) -> bool:
    return op.name.startswith(("nvvm.barrier", "nvvm.shfl")) or _waits(op)


def _waits(op: Operation) -> bool:
    """True if an op waits for what others copy, as a producer's loop does: one for each of its
    copies."""
    return "mbarrier.try_wait" in _assembly(op)


def _multiplies_matrices(op: Operation) -> bool:
    return "mma" in _assembly(op)
