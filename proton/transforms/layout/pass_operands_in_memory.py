"""Left operands of warp-group dots that threads would pass each other stay in shared memory.

    %t = ttg.convert_layout %x : #threads       %m = ttg.local_alloc %x
    %a = tt.trans %t           : #operand  =>   %a = ttg.memdesc_trans %m
    %d = ttng.warp_group_dot %a, %y, %c         %d = ttng.warp_group_dot %a, %y, %c

The conversion writes shared memory, waits for all threads, and reads a whole operand into the
registers of each warp group. Tensor cores read it where it lies: nothing is read by threads, and
registers are free while the dot runs. Other dots of the same value read it there, too. What is
loaded goes this way from the beginning (accelerate_matmul.py). An operand that lanes of a warp pass
each other stays in registers. So do elements of other than 16 bits: they would have to lie along K,
and take more shared memory.
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
from proton.transforms.layout.computed_again import erase_unused
from proton.transforms.layout.matrix_operands import as_matrix, fast_axis

_Key = tuple[Value, Block]


@register
@dataclass(frozen=True)
class PassOperandsInMemory(Pass):
    """Takes the place of such exchanges, in the block of the dot."""

    name: ClassVar[str] = "tritongpu-pass-operands-in-memory"
    only_for: ClassVar[frozenset[str]] = names_of(WarpGroupDotOp)

    target: GPUTarget

    def run(self, module: Module) -> None:
        dots = [dot for dot in ops_named(module, WarpGroupDotOp) if self._may_read_memory(dot)]
        operands = {dot: _Operand.of(dot) for dot in dots}
        passed = {operand.key for operand in operands.values() if operand.is_passed}
        memories: dict[_Key, Value | None] = {}
        for dot, operand in operands.items():  # in their order: the first makes the memory
            if operand.key not in passed:
                continue
            with before(dot):
                if operand.key not in memories:
                    memories[operand.key] = operand.stored()
                memory = memories[operand.key]
                if memory is None:
                    continue
                left = dot.operands[0]
                dot.operands[0] = ttg.MemDescTransOp.of(memory) if operand.is_transposed else memory
            erase_unused(left)

    def _may_read_memory(self, dot: Operation) -> bool:
        """True if its left operand is in registers, and may lie either way in memory."""
        a = dot.operands[0]
        if not ttg.is_tensor(a.type) or element_of(a).width != 16:
            return False
        instruction = self.target.facts.mma_of(MMAKind.WARP_GROUP, element_of(a))
        return instruction is not None and OperandPlace.SHARED in instruction.left


@dataclass(frozen=True)
class _Operand:
    """The left operand of a dot in `block`: a value behind conversions and transpositions, and
    whether threads pass each other its elements by way of shared memory."""

    value: Value
    block: Block
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
        return cls(value, dot.block, is_transposed, is_passed)

    @property
    def key(self) -> _Key:
        """What dots that read one memory have in common."""
        return self.value, self.block

    def stored(self) -> Value | None:
        """The value in memory, as tensor cores read it; None where its rows are too short. Rows
        are along what threads have side by side."""
        fast = fast_axis(ttg.layout_of(self.value.type))
        return as_matrix(self.value, (fast, 1 - fast), False)
