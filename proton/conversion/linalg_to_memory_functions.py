"""Fills with zeros and copies, of contiguous rows, become `memset` and `memcpy`.

LLVM makes the same calls of loops, after it has simplified, rotated and analysed them; each loop
that it does not see saves a few per cent of a kernel's compile time. Rows that follow each other
without a gap are one row.
"""

import contextlib
import math
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa
from proton.dialect.builtin import integer
from proton.dialect.emit import constant, index_loop
from proton.dialect.memory import row_address, taken_apart
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir, linalg, llvm
from proton.dialect.walk import before, defining_op, ops_of_each
from proton.passes import Pass, register

SMALLEST = 64  # bytes of a row: shorter ones are a few instructions


@register
@dataclass(frozen=True)
class LinalgToMemoryFunctions(Pass):
    """Lowers `linalg.fill` and `linalg.copy` on memrefs of contiguous rows."""

    name: ClassVar[str] = "linalg-to-memory-functions"

    def run(self, module: Module) -> None:
        fills, copies = ops_of_each(module, linalg.FillOp, linalg.CopyOp)
        for op in fills:
            if _is_zero(op.operands[0]):
                _lower(op, [op.operands[1]])
        for op in copies:
            if op.operands[0].type.element_type == op.operands[1].type.element_type:
                _lower(op, list(op.operands))


def _is_zero(value: Value) -> bool:
    """True if a value is 0 with all bits clear."""
    op = defining_op(value)
    if not isa(op, arith.ConstantOp):
        return False
    number = op.attributes["value"].value
    return bool(number == 0 and math.copysign(1, number) > 0)


def _lower(op: Operation, memory: list[Value]) -> None:
    """One call for each row, where rows are contiguous in all of the memrefs."""
    types = [view.type for view in memory]
    if isinstance(types[0].element_type, ir.IndexType):
        return
    axes = min(map(_contiguous_axes, types))
    shape, width = types[0].shape, types[0].element_type.width
    size = math.prod(shape[len(shape) - axes :]) * width // 8
    if not axes or width % 8 or size < SMALLEST:
        return
    with before(op), contextlib.ExitStack() as loops:
        parts = [taken_apart(view) for view in memory]
        outer = [loops.enter_context(index_loop(n)) for n in shape[: len(shape) - axes]]
        rows = [row_address(part, type_, outer) for part, type_ in zip(parts, types, strict=True)]
        length = constant(size, integer(64))
        if len(rows) == 1:
            llvm.MemsetOp(rows[0], constant(0, integer(8)), length, False)
        else:
            llvm.MemcpyOp(rows[1], rows[0], length, False)
    op.erase()


def _contiguous_axes(type_: Type) -> int:
    """How many of the last dimensions follow each other without a gap."""
    strides, _ = type_.get_strides_and_offset()
    size, count = 1, 0
    for extent, stride in zip(reversed(type_.shape), reversed(strides), strict=True):
        if stride != size:
            break
        size, count = size * extent, count + 1
    return count
