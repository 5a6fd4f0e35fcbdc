"""A value that threads exchange several times goes to shared memory once.

    %a = ttg.convert_layout %x : #stored        %m = ttg.local_alloc %x
    tt.store %p, %a                             %a = ttg.local_load %m : #stored
    %b = ttg.convert_layout %x : #operand  =>   tt.store %p, %a
    %s = ttng.mma_sync %q, %b, %c               %b = ttg.local_load %m : #operand
                                                %s = ttng.mma_sync %q, %b, %c

Each conversion writes shared memory, waits for all threads, and reads it. Behind the first one the
value is there for all: where a product reads it from memory, as that product wants it, else as
suits all of its readers. It costs the others no write, and no barrier. A conversion that would take
longer from there has scratch memory of its own; both are written ahead of one barrier.
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
from proton.dialect.mlir import Module, Operation, Type, Value
from proton.dialect.walk import before, functions, ops_named, replace, users
from proton.layout.conversion import exchange_cost
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
            values = dict.fromkeys(
                op.operands[0] for op in ops_named(function, ttg.ConvertLayoutOp)
            )
            found = [shared for value in values if (shared := _Shared.of(value)) is not None]
            if not found:
                continue
            crowded = Crowded(module, function, self.target)
            for shared in found:
                taken = allocate(call_graph(module))[function_name(function)].size
                more = taken + desc_bytes(shared.memory)
                if more > self.target.facts.shared_bytes:
                    continue  # conversions alone can be done in parts
                if crowded.programs(more) == crowded.programs(taken):
                    shared.share()


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
    if len(shape) != 2:
        return None
    layouts = tuple(ttg.layout_of(v.type) for v in (value, *(op.results[0] for op in conversions)))
    orders = tuple((axis, 1 - axis) for axis in dict.fromkeys(map(fast_axis, layouts)))
    layout = thread_memory(shape, stored_bytes(element), orders, layouts)
    return None if layout is None else ttg.mem_desc(shape, element, layout)
