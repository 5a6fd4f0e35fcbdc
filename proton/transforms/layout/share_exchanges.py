"""What threads exchange goes to shared memory once, and with what else is there.

    %a = ttg.convert_layout %x : #stored        %m = ttg.local_alloc %x
    tt.store %p, %a                             %a = ttg.local_load %m : #stored
    %b = ttg.convert_layout %x : #operand  =>   tt.store %p, %a
    %s = ttng.mma_sync %q, %b, %c               %b = ttg.local_load %m : #operand
                                                %s = ttng.mma_sync %q, %b, %c

Each conversion writes shared memory, waits for all threads, and reads it. Behind the first one the
value is there for all: where a product reads it from memory, as that product wants it, else as
suits all of its readers. It costs the others no write, and no barrier. A conversion that would take
longer from there has scratch memory of its own; both are written ahead of one barrier.

Outside of loops, values that are there when another one is exchanged are written with it: the
barrier is for all.

    %a = ttg.convert_layout %x        %m = ttg.local_alloc %y
    %b = ttg.convert_layout %y   =>   %a = ttg.convert_layout %x
                                      %b = ttg.local_load %m
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.allocation import allocate
from proton.analysis.call_graph import call_graph, function_name
from proton.analysis.pressure import Crowded
from proton.analysis.scratch import desc_bytes, scratch_bytes, stored_bytes
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of, ttg
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Block, Module, Operation, Type, Value
from proton.dialect.regions import loop_around
from proton.dialect.traits import Loop, has
from proton.dialect.walk import (
    all_ops,
    before,
    defining_op,
    functions,
    ops_named,
    replace,
    users,
)
from proton.layout.conversion import exchange_cost
from proton.layout.named import shared_row_major
from proton.layout.thread_memory import access_cost, thread_memory
from proton.passes import Pass, register
from proton.transforms.layout.matrix_operands import fast_axis


@register
@dataclass(frozen=True)
class ShareExchanges(Pass):
    """Has conversions of a value read one memory, where an SM holds as many programs with it."""

    name: ClassVar[str] = "share-exchanges"
    only_for: ClassVar[frozenset[str]] = names_of(ttg.ConvertLayoutOp)

    target: GPUTarget

    def run(self, module: Module) -> None:
        for function in functions(module):
            self._share(module, function)
            self._write_together(module, function)

    def _share(self, module: Module, function: Operation) -> None:
        values = dict.fromkeys(op.operands[0] for op in ops_named(function, ttg.ConvertLayoutOp))
        found = [shared for value in values if (shared := _Shared.of(value)) is not None]
        if not found:
            return
        crowded = Crowded(module, function, self.target)
        for shared in found:
            taken = allocate(call_graph(module))[function_name(function)].size
            more = taken + desc_bytes(shared.memory)
            if more > self.target.facts.shared_bytes:
                continue  # conversions alone can be done in parts
            if crowded.programs(more) == crowded.programs(taken):
                shared.share()

    def _write_together(self, module: Module, function: Operation) -> None:
        found = [late for block in _blocks(function) for late in _written_late(block)]
        crowded = Crowded(module, function, self.target) if found else None
        for conversion, first in found:
            value = conversion.operands[0]
            memory = _for_threads(value, [conversion])
            if memory is None or crowded is None:
                continue
            if _accessed(value, memory) + _read([conversion], memory) > _apart([conversion]):
                continue
            taken = allocate(call_graph(module))[function_name(function)].size
            if taken + desc_bytes(memory) <= crowded.room(taken):
                _Shared(value, memory, None, first, [conversion]).share()


@dataclass(frozen=True)
class _Shared:
    """A value in memory: what stores it there now, if something does, the first op that would find
    it there, and the conversions that would read it."""

    value: Value
    memory: Type
    store: Operation | None
    first: Operation
    readers: list[Operation]

    @classmethod
    def of(cls, value: Value) -> "_Shared | None":
        """None where there is one exchange in the block of the first one, or several are faster."""
        exchanges = [user for user in users(value) if _is_exchange(user)]
        if not exchanges:
            return None
        block = exchanges[0].block
        exchanges = [op for op in exchanges if op.block == block]
        stores = [op for op in users(value) if isa(op, ttg.LocalAllocOp) and op.block == block]
        taking = {*exchanges, *stores[:1]}
        if len(taking) < 2:
            return None
        first = next(op.operation for op in block.operations if op.operation in taking)
        if stores:
            memory = stores[0].results[0].type
            readers = [op for op in exchanges if _read([op], memory) <= _apart([op])]
            return cls(value, memory, stores[0], first, readers)
        found = _for_threads(value, exchanges)
        if found is None or _accessed(value, found) + _read(exchanges, found) > _apart(exchanges):
            return None
        return cls(value, found, None, first, exchanges)

    def share(self) -> None:
        """Puts the value in memory ahead of the first one."""
        if self.store is None:
            with before(self.first):
                held = ttg.LocalAllocOp(self.value, self.memory).result
        else:
            held = self.store.results[0]
            if self.store != self.first:
                self.store.move_before(self.first)
        for reader in self.readers:
            with before(reader):
                replace(reader, [ttg.LocalLoadOp(held, reader.results[0].type).result])


def _blocks(function: Operation) -> list[Block]:
    """Those of a function that are in no loop: with what is in loops, five kernels of fla-core took
    1.06 to 5.03 of their time (H200, b22e90d3)."""
    ops = [function, *(op for op in all_ops(function) if loop_around(op) is None)]
    return [b for op in ops if not has(op, Loop) for r in op.regions for b in r.blocks]


def _written_late(block: Block) -> list[tuple[Operation, Operation]]:
    """The exchanges of a block whose values are there at another one, each with the first such."""
    firsts: list[Operation] = []
    known: dict[Operation, set[Operation]] = {}  # of each first one the ops ahead of it
    found, ahead = [], set[Operation]()
    for view in block.operations:
        op = view.operation
        if _is_exchange(op):
            made = defining_op(op.operands[0])
            is_outside = made is None or made.block != block
            first = next((f for f in firsts if is_outside or made in known[f]), None)
            if first is None:
                firsts.append(op)
                known[op] = set(ahead)
            else:
                found.append((op, first))
        ahead.add(op)
    return found


def _is_exchange(op: Operation) -> bool:
    return isa(op, ttg.ConvertLayoutOp) and scratch_bytes(op) > 0


def _apart(conversions: list[Operation]) -> int:
    """The wavefronts of shared memory that conversions take by themselves."""
    costs = (
        exchange_cost(
            ttg.layout_of(op.operands[0].type),
            ttg.layout_of(op.results[0].type),
            stored_bytes(element_of(op.results[0])),
        )
        for op in conversions
    )
    return sum(wavefronts for wavefronts, _ in costs)


def _read(conversions: list[Operation], memory: Type) -> float:
    """The wavefronts that they take to read memory."""
    return sum(_accessed(op.results[0], memory) for op in conversions)


def _accessed(value: Value, memory: Type) -> float:
    """The wavefronts of an access to memory by threads that have a value."""
    if (view := ttg.mem_desc_view(memory)).layout is None:
        return math.inf
    places = ttg.layout_of(value.type).compose(view.places)
    return access_cost(places, stored_bytes(element_of(value)))[0]


def _for_threads(value: Value, conversions: list[Operation]) -> Type | None:
    """Memory that suits the threads that write a value and read it."""
    shape, element = shape_of(value), element_of(value)
    if len(shape) == 1:
        return ttg.mem_desc(shape, element, shared_row_major(shape, (0,)))
    if len(shape) != 2:
        return None
    layouts = tuple(ttg.layout_of(v.type) for v in (value, *(op.results[0] for op in conversions)))
    orders = tuple((axis, 1 - axis) for axis in dict.fromkeys(map(fast_axis, layouts)))
    layout = thread_memory(shape, stored_bytes(element), orders, layouts)
    return None if layout is None else ttg.mem_desc(shape, element, layout)
