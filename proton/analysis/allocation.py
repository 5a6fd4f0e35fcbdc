"""Where in shared memory each buffer lies: liveness, interference, first fit, callees first.

A buffer is what an op allocates (alive until the last use of what names it), the scratch memory of
an op (alive at that op), or the memory of a called function (a *virtual* buffer, alive at the
call).
Two buffers *interfere* where both are alive at one time: in one stream of instructions where their
intervals of it overlap, in two streams that run at once always. What does not interfere may share
bytes. First fit, largest first, is the greedy method of Gergov's "Algorithms for Compile-Time
Memory Optimization" (SODA 1999).

Threads meet before they write bytes that others may still read. So where there is room, buffers
that follow each other, in a loop the first one after the last, have bytes of their own: the threads
that meet to read the one have all read the other.

`allocate-shared-memory` computes this once, and writes it into the IR; `allocation_of` reads it.
"""

from collections.abc import Callable, Container, Iterable, Mapping
from dataclasses import dataclass, field

from proton.analysis.call_graph import CallGraph, callee_name, function_name
from proton.analysis.scratch import alignment, scratch_bytes
from proton.analysis.shared_alias import SharedAliases
from proton.dialect import isa
from proton.dialect.attributes import SHARED_BYTES, SHARED_OFFSET
from proton.dialect.mlir import Operation, func, ir, scf
from proton.dialect.regions import loop_around
from proton.dialect.traits import Concurrent, Loop, SharedEffects, has
from proton.dialect.walk import all_ops, parent_of

_REACHES = 3, 2, 1  # how far buffers follow each other that have bytes of their own


@dataclass(frozen=True)
class Buffer:
    """Bytes that an op needs from position `start` to position `end` of its function; `streams`
    says, for each op with regions that run at once around it, outermost first, which region it is
    in."""

    op: Operation
    size: int
    start: int
    end: int
    streams: tuple[tuple[Operation, int], ...] = ()

    def interferes(self, other: "Buffer") -> bool:
        """True if both are alive at one time."""
        overlap = self.start <= other.end and other.start <= self.end
        return overlap or self._is_beside(other)

    def _is_beside(self, other: "Buffer") -> bool:
        """True if the two are in streams that run at once."""
        return any(
            mine[0] == theirs[0] and mine[1] != theirs[1]
            for mine, theirs in zip(self.streams, other.streams, strict=False)
        )


@dataclass(frozen=True)
class Allocation:
    """`offsets[op]` in bytes from the function's shared memory; `size` is the whole of it."""

    size: int
    offsets: dict[Operation, int] = field(default_factory=dict)
    sizes: dict[Operation, int] = field(default_factory=dict)
    buffers: list[Buffer] = field(default_factory=list)


def allocate(
    graph: CallGraph,
    room: Callable[[Operation, int], int] = lambda _, size: size,
    before: Mapping[str, Allocation] = {},
) -> dict[str, Allocation]:
    """The allocation of every function by name. `room`: the bytes that a function that needs so
    many may take, so that threads meet less often. `before`: another one of the same code."""
    found: dict[str, Allocation] = {}
    for function in graph.callees_first():
        name = function_name(function)
        is_known = name in before and not graph.calls[name]  # callees may take more now
        buffers = before[name].buffers if is_known else live_buffers(function, found)
        placed = _place(buffers)
        most = room(function, placed.size) if len(buffers) > 1 else placed.size
        for reach in _REACHES if most > placed.size else ():
            if (apart := _place(buffers, _neighbours(buffers, function, reach))).size <= most:
                placed = apart
                break
        found[name] = placed
    return found


def _neighbours(
    buffers: list[Buffer], function: Operation, reach: int
) -> dict[Operation, set[Operation]]:
    """By op the ops of the buffers that begin up to so many places before or behind its own, in the
    function and in each loop, where the first one comes behind the last. In the function those that
    a loop takes are left out: their threads meet once."""
    rows: dict[Operation, list[Operation]] = {}
    loops = [number for number, op in enumerate(all_ops(function)) if has(op, Loop)]
    for buffer in sorted(buffers, key=lambda buffer: buffer.start):
        around = buffer.op
        while (loop := loop_around(parent_of(around))) is not None:
            rows.setdefault(loop, []).append(buffer.op)
            around = loop
        if not any(buffer.start < number < buffer.end for number in loops):
            rows.setdefault(function, []).append(buffer.op)
    found: dict[Operation, set[Operation]] = {}
    for around, row in rows.items():
        in_turn = row if around == function else row + row
        for number, op in enumerate(row, 1):
            for other in in_turn[number : number + reach]:
                if other != op:
                    found.setdefault(op, set()).add(other)
                    found.setdefault(other, set()).add(op)
    return found


def allocation_of(graph: CallGraph) -> dict[str, Allocation]:
    """The allocation of every function by name, as the attributes of its ops say."""
    found: dict[str, Allocation] = {}
    for function in graph.callees_first():
        offsets, sizes = {}, {}
        for op in all_ops(function):
            if SHARED_OFFSET in op.attributes:
                offsets[op] = int(op.attributes[SHARED_OFFSET].value)
                sizes[op] = _bytes_of(op, found)
        size = ir.IntegerAttr(function.attributes[SHARED_BYTES]).value
        found[function_name(function)] = Allocation(int(size), offsets, sizes)
    return found


def _bytes_of(op: Operation, callees: dict[str, Allocation]) -> int:
    """What an op needs of its function's shared memory."""
    return callees[callee_name(op)].size if isa(op, func.CallOp) else scratch_bytes(op)


def live_buffers(function: Operation, callees: dict[str, Allocation]) -> list[Buffer]:
    """The buffers of a function and when they are alive: positions number its ops in pre-order."""
    ops = all_ops(function)
    position = {op: number for number, op in enumerate(ops)}
    last = _last_positions(function, position)
    buffers = []
    for op in ops:
        size = _bytes_of(op, callees)
        if size:
            end = last.get(op, position[op])
            buffers.append(Buffer(op, size, position[op], end, _streams(op, function)))
    return buffers


def _streams(op: Operation, function: Operation) -> tuple[tuple[Operation, int], ...]:
    """See `Buffer`."""
    found: list[tuple[Operation, int]] = []
    inner, outer = op, op.parent
    while outer is not None and inner != function:
        if has(outer.operation, Concurrent):
            regions = [list(region.blocks) for region in outer.operation.regions]
            (number,) = [n for n, blocks in enumerate(regions) if inner.block in blocks]
            found.insert(0, (outer.operation, number))
        inner, outer = outer.operation, outer.operation.parent
    return tuple(found)


def _last_positions(function: Operation, position: dict[Operation, int]) -> dict[Operation, int]:
    """For each op that allocates the position of the last use of its memory, or of what stands for
    a copy or a product that goes on: its token, its result.

    A use inside of a loop that the buffer was made before counts at the loop's end: the next
    iteration comes back to it. So does one in a region that runs beside others.
    """
    ends: dict[Operation, int] = {}

    def end_of(op: Operation) -> int:
        if op not in ends:
            inner = all_ops(op) if len(op.regions) else []
            ends[op] = position[inner[-1]] if inner else position[op]
        return ends[op]

    last: dict[Operation, int] = {}

    def use(users: Iterable[Operation], allocations: set[Operation]) -> None:
        for user in users:
            for allocation in allocations:
                at, parent = position[user], user.parent
                while parent is not None and parent != function:
                    if position[allocation] < position[parent] and not isa(parent, scf.IfOp):
                        at = max(at, end_of(parent))
                    parent = parent.parent
                last[allocation] = max(last.get(allocation, 0), at)

    aliases = SharedAliases(function)
    for value, parts in aliases.memory.items():
        use((u.owner.operation for u in value.uses), {part.op for part in parts})
    for token, copies in aliases.copies.items():
        written = {
            part.op
            for copy in copies
            for number in SharedEffects.of(copy).writes
            for part in aliases.memory.get(copy.operands[number], ())
        }
        use((u.owner.operation for u in token.uses), written)
    for value, products in aliases.products.items():
        read = {
            part.op
            for product in products
            for operand in product.operands
            for part in aliases.memory.get(operand, ())
        }
        use((u.owner.operation for u in value.uses), read)
    return last


def _place(
    buffers: list[Buffer], apart: Mapping[Operation, Container[Operation]] = {}
) -> Allocation:
    """Offsets by first fit; `apart`: which others may not share the bytes of an op's buffer."""
    offsets: dict[Operation, int] = {}
    placed: list[Buffer] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.start)):
        taken = sorted(
            (offsets[other.op], offsets[other.op] + other.size)
            for other in placed
            if other.interferes(buffer) or other.op in apart.get(buffer.op, ())
        )
        offset, unit = 0, alignment(buffer.op)
        for start, end in taken:
            if offset + buffer.size <= start:
                break
            offset = max(offset, -(-end // unit) * unit)
        offsets[buffer.op] = offset
        placed.append(buffer)
    size = max((offsets[b.op] + b.size for b in buffers), default=0)
    return Allocation(size, offsets, {b.op: b.size for b in buffers}, buffers)
