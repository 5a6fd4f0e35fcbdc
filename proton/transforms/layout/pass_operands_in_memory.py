"""Left operands of warp-group dots that threads would pass each other stay in shared memory.

    %t = ttg.convert_layout %x : #threads       %m = ttg.local_alloc %x
    %a = tt.trans %t           : #operand  =>   %a = ttg.memdesc_trans %m
    %d = ttng.warp_group_dot %a, %y, %c         %d = ttng.warp_group_dot %a, %y, %c

The conversion writes shared memory, waits for all threads, and reads a whole operand into the
registers of each warp group. Tensor cores read it where it lies: nothing is read by threads, and
registers are free while the dot runs. Other dots of the same value read it there, too. What is
loaded goes this way from the beginning (accelerate_matmul.py). An operand that lanes of a warp pass
each other stays in registers.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.scratch import scratch_bytes
from proton.base.chips.chip import MMAKind, OperandPlace
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of, tt, ttg
from proton.dialect.diagnostics import element_of
from proton.dialect.mlir import Block, Module, Operation, Value
from proton.dialect.ttng import WarpGroupDotOp
from proton.dialect.walk import before, defining_op, ops_named
from proton.passes import Pass, register
from proton.transforms.layout.accelerate_matmul import as_matrix, fast_axis
from proton.transforms.layout.computed_again import erase_unused


@register
@dataclass(frozen=True)
class PassOperandsInMemory(Pass):
    """Takes the place of such exchanges, in the block of the dot."""

    name: ClassVar[str] = "tritongpu-pass-operands-in-memory"
    only_for: ClassVar[frozenset[str]] = names_of(WarpGroupDotOp)

    target: GPUTarget

    def run(self, module: Module) -> None:
        dots = [
            op for op in ops_named(module, WarpGroupDotOp) if ttg.is_tensor(op.operands[0].type)
        ]
        operands = {dot: _Operand.of(dot) for dot in dots if self._may_read_memory(dot)}
        passed = {(o.value, dot.block): dot for dot, o in operands.items() if o.is_passed}
        memories: dict[tuple[Value, Block], Value] = {}
        for dot, operand in operands.items():  # in their order: the first makes the memory
            key = operand.value, dot.block
            if key not in passed:
                continue
            with before(dot):
                if key not in memories:
                    memory = operand.stored()
                    if memory is None:
                        continue
                    memories[key] = memory
                memory = memories[key]
                left = dot.operands[0]
                dot.operands[0] = ttg.MemDescTransOp.of(memory) if operand.is_transposed else memory
            erase_unused(left)

    def _may_read_memory(self, dot: Operation) -> bool:
        """True if its instruction takes a left operand from there."""
        element = element_of(dot.operands[0])
        instruction = self.target.facts.mma_of(MMAKind.WARP_GROUP, element)
        return instruction is not None and OperandPlace.SHARED in instruction.left


@dataclass(frozen=True)
class _Operand:
    """The left operand of a dot: a value of its block, behind conversions and transpositions, and
    whether threads pass each other its elements by way of shared memory."""

    value: Value
    is_transposed: bool
    is_passed: bool

    @classmethod
    def of(cls, dot: Operation) -> "_Operand":
        value, is_transposed, is_passed = dot.operands[0], False, False
        while isa(op := defining_op(value), ttg.ConvertLayoutOp, tt.TransOp):
            if op.block != dot.block:
                break
            value = op.operands[0]
            is_transposed ^= isa(op, tt.TransOp)
            is_passed |= scratch_bytes(op) > 0
        return cls(value, is_transposed, is_passed)

    def stored(self) -> Value | None:
        """The value in memory, as tensor cores read it; None where its rows are too short. Elements
        of 16 bits may lie along either dimension: they lie as threads have them."""
        k = 1 ^ self.is_transposed
        is_free = element_of(self.value).width == 16
        fast = fast_axis(ttg.layout_of(self.value.type)) if is_free else k
        return as_matrix(self.value, (fast, k) if is_free else (k,), False)
