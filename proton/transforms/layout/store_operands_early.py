"""Operands go to shared memory as soon as they are there where registers lack room.

    %x = tt.load                      %x = tt.load
    %y = tt.load                      %m = ttg.local_alloc %x
    %m = ttg.local_alloc %x     =>    %y = tt.load
    %s = ttng.warp_group_dot %m       %s = ttng.warp_group_dot %m

Blocks are loaded early, and are put into memory where a product reads them. Until then they wait in
registers, with others that do. Where these are more than a thread has, the assembler spills them.
So it does where a product has one operand in registers, and the other is first to be copied to
another layout in memory, through registers.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.allocation import allocate
from proton.analysis.call_graph import call_graph, function_name
from proton.analysis.cost import widens
from proton.analysis.pressure import Crowded, registers
from proton.analysis.scratch import scratch_bytes
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of, ttg
from proton.dialect.emit import remade
from proton.dialect.mlir import Module, Operation, Value
from proton.dialect.traits import Pure, has
from proton.dialect.walk import (
    before,
    defining_op,
    following,
    functions,
    ops_named,
    replace,
    users,
)
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class StoreOperandsEarly(Pass):
    """Moves the stores of what waits where there is no room, the largest first, as far as shared
    memory goes: an SM keeps as many programs."""

    name: ClassVar[str] = "store-operands-early"
    only_for: ClassVar[frozenset[str]] = names_of(ttg.LocalAllocOp)
    makes: ClassVar[frozenset[str] | None] = frozenset()

    target: GPUTarget

    def run(self, module: Module) -> None:
        for function in functions(module):
            if not (chains := _chains(function)):
                continue
            crowded = Crowded(module, function, self.target)
            for value, of in chains.items():
                if isa(made := defining_op(value), ttg.LocalLoadOp) and crowded.at(made):
                    _copy_early(made, of)
            waiting = _waiting(chains, crowded)
            programs = self._programs(module, function) if waiting else 0
            for one in sorted(waiting, key=lambda w: -w.registers):
                moved = one.store_early()
                if self._programs(module, function) < programs:
                    for op, place in reversed(moved):
                        op.move_before(place)
                else:
                    one.take_location(moved)

    def _programs(self, module: Module, function: Operation) -> int:
        """How many programs an SM holds at once, if a thread has all registers that it may have."""
        facts, threads = self.target.facts, self.target.warp_size * ttg.num_warps(module)
        shared = allocate(call_graph(module))[function_name(function)].size
        if shared > facts.shared_bytes:
            return 0
        by_registers = facts.programs_by_registers(facts.max_registers, threads)
        return min(facts.programs_per_sm(threads, shared), max(1, by_registers))


@dataclass(frozen=True)
class _Waiting:
    """What an op makes, which in the end only `chains` take: stores, each behind what makes wider
    what it stores."""

    made: Operation
    chains: list[list[Operation]]

    @property
    def registers(self) -> int:
        return registers(self.made.results[0])

    def store_early(self) -> list[tuple[Operation, Operation]]:
        """Moves the stores right behind the op; gives each op that moved, and the one that it stood
        ahead of."""
        moved = []
        place = following(self.made)
        for op in (op for chain in self.chains for op in chain):
            if op == place:
                place = following(op)
            else:
                moved.append((op, following(op)))
                op.move_before(place)
        return moved

    def take_location(self, moved: list[tuple[Operation, Operation]]) -> None:
        """Makes what moved anew at the op's location: of its scope, not of the product's."""
        for op, _ in moved:
            with before(op), self.made.location:
                replace(op, remade(op, [op.results[0].type], op.operands).results)


def _copy_early(load: Operation, chains: list[list[Operation]]) -> None:
    """Copies a block from memory to memory ahead of what others read to registers for a product.
    Nothing that is passed by writes memory, or needs more of it."""
    last = following(load)
    if [op for chain in chains for op in chain] != [last]:
        return
    ops = [view.operation for view in load.block.operations]
    moved, passed = [load, last], None
    for op in reversed(ops[: ops.index(load)]):
        if not (has(op, Pure) or isa(op, ttg.LocalLoadOp)) or scratch_bytes(op):
            break
        if any(result in other.operands for other in moved for result in op.results):
            moved.insert(0, op)
        elif isa(op, ttg.LocalLoadOp):
            passed = op
    if passed is None or any(isa(op, ttg.LocalLoadOp) for op in moved if op != load):
        return
    for op in moved:
        if ops.index(op) > ops.index(passed):
            op.move_before(passed)


def _chains(function: Operation) -> dict[Value, list[list[Operation]]]:
    """The stores of each value."""
    chains: dict[Value, list[list[Operation]]] = {}
    for store in ops_named(function, ttg.LocalAllocOp):
        if len(store.operands):
            chain = _chain(store)
            chains.setdefault(chain[0].operands[0], []).append(chain)
    return chains


def _waiting(chains: dict[Value, list[list[Operation]]], crowded: Crowded) -> list[_Waiting]:
    """The values that wait for their stores alone at a place without room."""
    found = []
    for value, of in chains.items():
        made, firsts = defining_op(value), {chain[0] for chain in of}
        if made is None or any(first.block != made.block for first in firsts):
            continue
        others = [user for user in users(value) if user not in firsts]
        start = max([made, *others], key=crowded.position.__getitem__)
        if crowded.last_use(value) in map(crowded.position.get, firsts) and crowded.between(
            start, firsts
        ):
            found.append(_Waiting(made, of))
    return found


def _chain(store: Operation) -> list[Operation]:
    """A store behind the ops that make wider what it alone takes."""
    chain = [store]
    while (made := defining_op(chain[0].operands[0])) is not None and widens(made):
        if made.block != store.block or len(users(made.results[0])) > 1:
            break
        chain.insert(0, made)
    return chain
