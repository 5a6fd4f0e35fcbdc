"""Keeps the work of scopes apart for placement "program": tensors that cross a record are
computed before it.

Each tensor that is made before a record and used after it is copied in front of the record
(`bufferization.alloc_tensor copy`), which no fusion crosses. That is the price of seeing scopes
where they were written; with the default placement the pass does not run.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa, proton
from proton.dialect.emit import create
from proton.dialect.mlir import Block, Module, Operation, Value, bufferization, ir, tensor
from proton.dialect.walk import all_ops, before, functions, parent_of
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class MaterializeAtRecords(Pass):
    """Materialises tensors that cross records."""

    name: ClassVar[str] = "materialize-at-records"

    def run(self, module: Module) -> None:
        for function in functions(module):
            for op in [function, *all_ops(function)]:
                for region in op.regions:
                    for block in region.blocks:
                        _materialize_in(block)


def _materialize_in(block: Block) -> None:
    operations = [op.operation for op in block.operations]
    records = [isa(op, proton.RecordOp) for op in operations]
    if not any(records):
        return
    interval, intervals = 0, []
    for is_record in records:
        interval += is_record
        intervals.append(interval)
    edges = [op for op, is_record in zip(operations, records, strict=True) if is_record]
    places = {op: position for position, op in enumerate(operations)}
    plans = []
    for op, made_in in zip(operations, intervals, strict=True):
        for value in op.results:
            if isinstance(value.type, ir.RankedTensorType) and not isa(op, tensor.EmptyOp):
                late = [
                    use
                    for use in value.uses
                    if intervals[places[_ancestor_in(block, use.owner.operation)]] > made_in
                ]
                if late:
                    plans.append((value, late, edges[made_in]))
    for value, late, edge in plans:
        with before(edge):
            copy = _copy(value)
        for use in late:
            use.owner.operation.operands[use.operand_number] = copy


def _ancestor_in(block: Block, op: Operation) -> Operation:
    while op.block != block:
        op = parent_of(op)
    return op


def _copy(value: Value) -> Value:
    return create(
        bufferization.AllocTensorOp,
        value.type,
        value,
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([0, 1, 0]),
    )
