"""Where in shared memory each buffer lies: liveness, then first fit, callees before callers.

A buffer is what `ttg.local_alloc` makes (alive until its last use), the scratch memory of an op
(alive at that op), or the memory of a called function (a *virtual* buffer, alive at the call).
Buffers that are never alive together share bytes. First fit, largest first, is the greedy method
of Gergov's "Algorithms for Compile-Time Memory Optimization" (SODA 1999).
"""

from dataclasses import dataclass, field
from typing import Any

from proton.analysis.call_graph import CallGraph, callee_name, function_name
from proton.analysis.scratch import ALIGNMENT, scratch_bytes
from proton.analysis.shared_alias import shared_aliases
from proton.dialect.walk import all_ops


@dataclass(frozen=True)
class Buffer:
    """Bytes that an op needs from position `start` to position `end` of its function."""

    op: Any
    size: int
    start: int
    end: int

    def meets(self, other: "Buffer") -> bool:
        """Whether both are alive at one time."""
        return self.start <= other.end and other.start <= self.end


@dataclass(frozen=True)
class Allocation:
    """`offsets[op]` in bytes from the function's shared memory; `size` is the whole of it."""

    size: int
    offsets: dict[Any, int] = field(default_factory=dict)
    sizes: dict[Any, int] = field(default_factory=dict)


def allocate(graph: CallGraph) -> dict[str, Allocation]:
    """The allocation of every function by name."""
    found: dict[str, Allocation] = {}
    for function in graph.callees_first():
        found[function_name(function)] = _place(live_buffers(function, found))
    return found


def live_buffers(function: Any, callees: dict[str, Allocation]) -> list[Buffer]:
    """The buffers of a function and when they are alive: positions number its ops in pre-order."""
    ops = all_ops(function)
    position = {op: number for number, op in enumerate(ops)}
    last = _last_positions(function, ops, position)
    buffers = []
    for op in ops:
        is_call = op.name == "func.call"
        size = callees[callee_name(op)].size if is_call else scratch_bytes(op)
        if size:
            buffers.append(Buffer(op, size, position[op], last.get(op, position[op])))
    return buffers


def _last_positions(function: Any, ops: list[Any], position: dict[Any, int]) -> dict[Any, int]:
    """For each `ttg.local_alloc` the position of its last use.

    A use inside of a loop that the buffer was made before counts at the loop's end: the next
    iteration comes back to it.
    """
    ends: dict[Any, int] = {}

    def end_of(op: Any) -> int:
        if op not in ends:
            inner = all_ops(op) if len(op.regions) else []
            ends[op] = position[inner[-1]] if inner else position[op]
        return ends[op]

    last: dict[Any, int] = {}
    for value, allocations in shared_aliases(function).items():
        for use in value.uses:
            for allocation in allocations:
                at = position[use.owner.operation]
                parent = use.owner.operation.parent
                while parent is not None and parent != function:
                    if position[allocation] < position[parent] and parent.name != "scf.if":
                        at = max(at, end_of(parent))
                    parent = parent.parent
                last[allocation] = max(last.get(allocation, 0), at)
    return last


def _place(buffers: list[Buffer]) -> Allocation:
    offsets: dict[Any, int] = {}
    placed: list[Buffer] = []
    for buffer in sorted(buffers, key=lambda b: (-b.size, b.start)):
        taken = sorted(
            (offsets[other.op], offsets[other.op] + other.size)
            for other in placed
            if other.meets(buffer)
        )
        offset = 0
        for start, end in taken:
            if offset + buffer.size <= start:
                break
            offset = max(offset, -(-end // ALIGNMENT) * ALIGNMENT)
        offsets[buffer.op] = offset
        placed.append(buffer)
    size = max((offsets[b.op] + b.size for b in buffers), default=0)
    return Allocation(size, offsets, {b.op: b.size for b in buffers})
