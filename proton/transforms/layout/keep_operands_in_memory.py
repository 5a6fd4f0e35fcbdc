"""Operands of `mma` that a loop does not change wait in shared memory where registers lack room.

    %q = ttg.convert_layout %x : #operand       %m = ttg.local_alloc %x
    scf.for ... {                               scf.for ... {
      %s = ttng.mma_sync %q, %k, %c       =>      %q = ttg.local_load %m : #operand
                                                  %s = ttng.mma_sync %q, %k, %c

Registers hold what a loop carries, its largest product, its largest operand, and the operands from
outside. Where that is more than a thread has, the assembler spills, and reads the operand from
local memory in each iteration, element by element; where it is less, an SM may still have registers
for fewer programs than without them. Shared memory gives it four matrices at a time (`ldmatrix`),
right before they are multiplied, a step of K at a time. It takes what the operand is
made of, as it was before it was converted and transposed, where that is: outside of all loops
that do not change it.

A value that waits for its products where values in registers are more than a thread has, in a loop
or not, goes to memory once, too. So do both operands of a product in a loop that threads would
exchange one after the other: they meet for both at once.
"""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from proton.analysis.allocation import allocate
from proton.analysis.call_graph import call_graph, function_name
from proton.analysis.pressure import BESIDE, Crowded, registers
from proton.analysis.scratch import desc_bytes, is_exchanged, scratch_bytes, stored_bytes
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of, tt, ttg, ttng
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import remade
from proton.dialect.mlir import Module, Operation, Type, Value
from proton.dialect.regions import loop_around
from proton.dialect.traits import Loop, Pure, has
from proton.dialect.walk import (
    all_ops,
    before,
    defining_op,
    following,
    functions,
    ops_named,
    parent_of,
    producer_of,
    users,
)
from proton.layout.thread_memory import thread_memory
from proton.passes import Pass, register
from proton.transforms.layout.matrix_operands import fast_axis

# Programs that an SM keeps where it had them, as far as it has registers for them: one waits while
# another computes. In blocks of 64 x 64 with two warps one program took 1.46 of the time of two,
# and spilled less (benchmarks/gpu_operands_in_memory.py, H200, 2aab34e4).
PROGRAMS = 2


@register
@dataclass(frozen=True)
class KeepOperandsInMemory(Pass):
    """Moves such operands, the largest first, until the rest fits."""

    name: ClassVar[str] = "keep-operands-in-memory"
    only_for: ClassVar[frozenset[str]] = names_of(ttng.MmaSyncOp)

    target: GPUTarget

    def run(self, module: Module) -> None:
        for function in functions(module):
            by_loop: dict[Operation, list[Operation]] = {}
            for op in ops_named(function, ttng.MmaSyncOp):
                by_loop.setdefault(loop_around(op) or function, []).append(op)
            loops = [_Loop(loop, products) for loop, products in by_loop.items()]
            for of in loops:
                self._store(module, function, of)
            for product in ops_named(function, ttng.MmaSyncOp):
                if loop_around(product) is not None:
                    self._store_both(module, function, product)
            held: dict[tuple[Value, Type], Value] = {}
            for of in loops:
                self._relieve(module, function, of, held)

    def _store(self, module: Module, function: Operation, loop: "_Loop") -> None:
        """Values that wait without room are stored right away, and read where they are taken."""
        if not (converted := loop.converted()):
            return
        crowded = Crowded(module, function, self.target)
        for value in _without_room(crowded, converted, loop.products):
            memory = _memory_type(value, converted[value])
            if memory is None or desc_bytes(memory) > self._room(module, function, loop):
                continue
            made = producer_of(value)
            with before(following(made)), made.location:
                held = ttg.LocalAllocOp(value, memory).result
            for operand in converted[value]:
                _read_in_loop(operand, held, set(loop.products))

    def _store_both(self, module: Module, function: Operation, product: Operation) -> None:
        """Both operands of a product that threads exchange for it, where an SM keeps its programs:
        threads meet for both at once."""
        operands = list(product.operands)[:2]
        reads = [_before_transposing(operand) for operand in operands]
        conversions = [defining_op(read) for read in reads]
        if not all(_is_exchange(op, product) for op in conversions) or not _is_plain(conversions):
            return
        values = [op.operands[0] for op in conversions if op is not None]
        memories = [
            _memory_type(value, {operand: k_axis if read == operand else 1 - k_axis})
            for value, operand, read, k_axis in zip(values, operands, reads, (1, 0), strict=True)
        ]
        if None in memories:
            return
        facts, threads = self.target.facts, self.target.warp_size * ttg.num_warps(module)
        taken = allocate(call_graph(module))[function_name(function)].size
        more = sum(desc_bytes(memory) for memory in memories if memory is not None)
        if facts.programs_per_sm(threads, taken + more) < min(
            facts.programs_per_sm(threads, taken), facts.sm_threads // 2 // threads
        ):
            return
        for operand, value, memory_type in zip(operands, values, memories, strict=True):
            made = producer_of(value)
            with before(following(made)), made.location:
                memory = ttg.LocalAllocOp(value, memory_type).result
            _read_in_loop(operand, memory, {product})

    def _relieve(
        self,
        module: Module,
        function: Operation,
        loop: "_Loop",
        held: dict[tuple[Value, Type], Value],
    ) -> None:
        """Moves operands of the products of a loop, as far as shared memory goes, until the rest
        fits into the registers of a thread. `held`: memory by what is in it and how."""
        inside, operands = loop.inside(), loop.operands()
        words = sum(map(registers, operands)) + loop.registers_of_others()
        waiting = sorted(operands, key=registers, reverse=True)
        while waiting:
            if self._is_enough(module, function, words, waiting):
                return
            operand = waiting.pop(0)
            read = _before_transposing(operand)
            k_axis = operands[operand] if read == operand else 1 - operands[operand]
            written = _before_converting(read)
            memory = _memory_type(written, {read: k_axis})
            if memory is None:
                continue
            key = written, memory
            if key not in held:
                if desc_bytes(memory) > self._room(module, function, loop):
                    continue
                with before(_at(loop.op, key[0])):
                    held[key] = ttg.LocalAllocOp(*key).result
            words -= registers(operand)
            _read_in_loop(operand, held[key], inside)

    def _is_enough(
        self, module: Module, function: Operation, words: int, waiting: list[Value]
    ) -> bool:
        """True if so many words fit into the registers of a thread, and an SM would not have a
        quarter as many programs more with these operands in shared memory."""
        facts, threads = self.target.facts, self.target.warp_size * ttg.num_warps(module)
        taken = allocate(call_graph(module))[function_name(function)].size

        def programs(words: int, shared: int) -> int:
            taken = min(words + BESIDE, facts.max_registers)
            by_registers = facts.programs_by_registers(taken, threads)
            return min(by_registers, facts.programs_per_sm(threads, shared))

        left = words - sum(map(registers, waiting))
        with_them = programs(left, taken + sum(map(_bytes, waiting)))
        # By half as many a search for nearest vectors kept 126 registers, for 96, and took 1.15 of
        # the time; nine others took 0.97 to 1.02 (corpus.py --against 5431c6a0 of 3cf66462 with
        # this line, H200).
        is_worth_it = 4 * with_them >= 5 * programs(words, taken)
        return words <= facts.max_registers and not is_worth_it

    def _room(self, module: Module, function: Operation, loop: "_Loop") -> int:
        """Bytes of shared memory that a program may take besides what it takes at most: what leaves
        an SM as many programs as before, of those that it would have registers for if all operands
        that could move had. Operands that are too much for a thread by themselves have all memory:
        each iteration would read them from local memory."""
        facts = self.target.facts
        words = min(facts.max_registers, loop.registers_of_others())
        fit = facts.programs_by_registers(words, self.target.warp_size * ttg.num_warps(module))
        most = facts.most_shared(max(1, min(PROGRAMS, fit)))
        taken = allocate(call_graph(module))[function_name(function)].size
        if taken > most or sum(map(registers, loop.operands())) > facts.max_registers:
            most = facts.shared_bytes
        return most - taken


@dataclass(frozen=True)
class _Loop:
    """A loop and the products in it, but for those in loops inside."""

    op: Operation
    products: list[Operation]

    def inside(self) -> set[Operation]:
        return {self.op, *all_ops(self.op)}

    def operands(self) -> dict[Value, int]:
        """The operands from outside, and the dimension of each along K."""
        inside = self.inside()
        return {
            value: k_axis
            for op in self.products
            for value, k_axis in zip(list(op.operands)[:2], (1, 0), strict=True)
            if _is_outside(value, inside)
        }

    def converted(self) -> dict[Value, dict[Value, int]]:
        """By value that is made in it the operands that it is converted to, as it is or transposed
        behind that; and the dimension of the value along K of each."""
        found: dict[Value, dict[Value, int]] = {}
        for op in self.products:
            for operand, k_axis in zip(list(op.operands)[:2], (1, 0), strict=True):
                read = _before_transposing(operand)
                conversion = defining_op(read)
                if not isa(conversion, ttg.ConvertLayoutOp) or not self._has(conversion):
                    continue
                value = conversion.operands[0]
                made = defining_op(value)
                if made is not None and made.block == conversion.block:
                    found.setdefault(value, {})[operand] = k_axis if read == operand else 1 - k_axis
        return found

    def _has(self, op: Operation) -> bool:
        """True if an op is in this loop, and in none inside of it."""
        around = loop_around(op)
        return not has(self.op, Loop) if around is None else around == self.op

    def registers_of_others(self) -> int:
        """Of what the loop carries, of the largest product that it does not carry, and of the
        largest operand that is made in it."""
        carried = {value for region in self.op.regions for value in region.blocks[0].arguments}
        results = [op.results[0] for op in self.products if op.operands[2] not in carried]
        made = {v for op in self.products for v in list(op.operands)[:2]} - self.operands().keys()
        largest = [max(map(registers, values), default=0) for values in (results, made)]
        return sum(map(registers, carried)) + sum(largest)


def _is_exchange(op: Operation | None, product: Operation) -> bool:
    """True of the one conversion of a value that is made beside a product, by way of memory."""
    if not isa(op, ttg.ConvertLayoutOp):
        return False
    (value,) = op.operands
    made, others = defining_op(value), [user for user in users(value) if user != op]
    is_alone = not any(isa(user, ttg.ConvertLayoutOp) for user in others)
    is_beside = made is not None and made.block == product.block
    return is_alone and is_beside and scratch_bytes(op) > 0


def _is_plain(conversions: list[Operation | None]) -> bool:
    """True if between what is converted, and up to that, is what a thread does by itself."""
    made = [defining_op(op.operands[0]) for op in conversions if op is not None]
    ops = [view.operation for view in made[0].block.operations] if made[0] is not None else []
    places = [ops.index(op) for op in (*made, *conversions) if op is not None]
    return all(
        (has(op, Pure) and not scratch_bytes(op)) or isa(op, tt.LoadOp) or op in conversions
        for op in ops[min(places) : max(places)]
    )


def _without_room(
    crowded: Crowded, converted: dict[Value, dict[Value, int]], products: list[Operation]
) -> list[Value]:
    """The values that threads exchange for operands, and that wait for the last product of them at
    a place where a thread has too few registers."""
    found = list[Value]()
    for value, operands in converted.items():
        taking = [op for op in products if any(v in operands for v in op.operands)]
        types = [_before_transposing(operand).type for operand in operands]
        if crowded.between(producer_of(value), taking) and any(
            is_exchanged(value, ttg.layout_of(type_)) for type_ in types
        ):
            found.append(value)
    return found


def _bytes(operand: Value) -> int:
    return prod(shape_of(operand)) * stored_bytes(element_of(operand))


def _before_transposing(operand: Value) -> Value:
    producer = defining_op(operand)
    return producer.operands[0] if isa(producer, tt.TransOp) else operand


def _before_converting(value: Value) -> Value:
    producer = defining_op(value)
    return producer.operands[0] if isa(producer, ttg.ConvertLayoutOp) else value


def _is_outside(value: Value, inside: set[Operation]) -> bool:
    op = defining_op(value)
    owner = value.owner.owner if op is None else op
    return owner.operation not in inside


def _memory_type(value: Value, operands: dict[Value, int]) -> Type | None:
    """Swizzled as suits the threads that write the value and read the operands, each with its
    dimension along K; None where rows are too short for it. Of equal ones that with rows as threads
    write them."""
    shape, element = shape_of(value), element_of(value)
    if len(shape) != 2:
        return None
    written = ttg.layout_of(value.type)
    axes = dict.fromkeys((fast_axis(written), *operands.values()))
    orders = tuple((axis, 1 - axis) for axis in axes)
    readers = [ttg.layout_of(_before_transposing(operand).type) for operand in operands]
    layout = thread_memory(shape, stored_bytes(element), orders, (written, *readers))
    return None if layout is None else ttg.mem_desc(shape, element, layout)


def _read_in_loop(operand: Value, held: Value, inside: set[Operation]) -> None:
    """Has products read the operand right before they take it."""
    read = _before_transposing(operand)
    transposes, conversion = defining_op(operand) if read != operand else None, defining_op(read)
    for use in list(operand.uses):
        user = use.owner.operation
        if user in inside and isa(user, ttng.MmaSyncOp):
            with before(user):
                loaded = ttg.LocalLoadOp(held, read.type).result
                if transposes is not None:
                    loaded = remade(transposes, [operand.type], [loaded]).result
                user.operands[use.operand_number] = loaded
    for op in (transposes, conversion):
        if isa(op, tt.TransOp, ttg.ConvertLayoutOp) and not users(op.results[0]):
            op.erase()


def _at(loop: Operation, source: Value) -> Operation:
    """The op in the block of a value that is a loop or has it in it."""
    made, op = defining_op(source), loop
    block = source.owner if made is None else made.block
    while op.block != block:
        op = parent_of(op)
    return op
