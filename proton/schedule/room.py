"""The shared memory that a function takes beside the buffers of roles, which it has for good.

Planned like `proton/analysis/allocation.py` will place it: a block has memory from where it is made
up to its last use. What TMA loads and stores, and the buffers of other loops, are still to come.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from proton.analysis.allocation import allocate, live_buffers
from proton.analysis.call_graph import call_graph
from proton.analysis.scratch import desc_bytes
from proton.analysis.tensor_maps import box_of_map
from proton.dialect import isa
from proton.dialect.mlir import Module, Operation
from proton.dialect.walk import all_ops, ops_named, parent_of
from proton.schedule.loads import TMA_LOAD, TMA_STORE, Load, loop_of_store
from proton.schedule.plan import Schedule


@dataclass(frozen=True)
class _Span:
    """Bytes that are in use from one position of a function to another one."""

    start: int
    end: int
    size: int


def bytes_beside(module: Module, function: Operation, schedules: Iterable[Schedule]) -> int:
    """The most bytes that are in use at once but for buffers of loops with roles."""
    position = {op: number for number, op in enumerate(all_ops(function))}
    piped = [s for s in schedules if s.loop is not None and s.copies is not None]
    gone = {op for schedule in piped if schedule.copies for op in schedule.copies.removed}
    kept = {op: s.loop for s in piped if s.loop for wait in s.waits for op in wait.kept}
    spans = [
        _Span(*_extent(kept[buffer.op], position), buffer.size)
        if buffer.op in kept
        else _Span(buffer.start, buffer.end, buffer.size)
        for buffer in live_buffers(function, allocate(call_graph(module)))
        if buffer.op not in gone
    ]
    spans += [_of_pipeline(s, position) for s in piped if not s.channels]
    boxes = (op for op in ops_named(function, TMA_LOAD, TMA_STORE) if op not in gone)
    spans += [_of_box(op, function, position) for op in boxes]
    at_once = (
        sum(span.size for span in spans if span.start <= place <= span.end)
        for place in {span.start for span in spans}
    )
    return max(at_once, default=0)


def _of_pipeline(schedule: Schedule, position: dict[Operation, int]) -> _Span:
    """The buffers of a loop without roles."""
    assert schedule.copies is not None
    loop = schedule.loop if schedule.copies.tiles is None else schedule.copies.tiles.loop
    assert loop is not None
    each = sum(desc_bytes(load.memory) for load in schedule.copies.loads)
    return _Span(*_extent(loop, position), schedule.copies.buffers * each)


def _of_box(op: Operation, function: Operation, position: dict[Operation, int]) -> _Span:
    """A block that TMA loads, which may begin with the kernel, up to the operand that it becomes,
    or one that it stores, which a loop may keep."""
    box = box_of_map(op.operands[0].type)
    assert box is not None, "as the pass chose it"
    around, place = parent_of(op), position[op]
    if isa(op, TMA_LOAD):
        alloc = Load(op).alloc
        end = place if alloc is None else position[alloc] - 1
        return _Span(0 if around == function else place, end, box.bytes)
    if (loop := loop_of_store(op)) is not None:
        return _Span(*_extent(loop, position), box.bytes)
    return _Span(place, place, box.bytes)


def _extent(loop: Operation, position: dict[Operation, int]) -> tuple[int, int]:
    return position[loop], position[all_ops(loop)[-1]]
