"""Operands of `mma` that a loop does not change wait in shared memory where registers lack room.

    %q = ttg.convert_layout %x : #operand       %m = ttg.local_alloc %x
    scf.for ... {                               scf.for ... {
      %s = ttng.mma_sync %q, %k, %c       =>      %q = ttg.local_load %m : #operand
                                                  %s = ttng.mma_sync %q, %k, %c

Registers hold what a loop carries, its largest product, its largest operand, and the operands from
outside. Where that
is more than a thread has, the assembler spills, and reads the operand from local memory in each
iteration, element by element. Shared memory gives it four matrices at a time (`ldmatrix`), right
before they are multiplied, a step of K at a time.

A value that is made in the loop, and converted to several operands, goes to memory once: each is
read from there, and the value leaves its registers.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.scratch import desc_bytes, scratch_bytes, stored_bytes
from proton.base.targets import GPUTarget
from proton.dialect import isa, names_of, tt, ttg, ttng
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Module, Operation, Type, Value
from proton.dialect.regions import loop_around
from proton.dialect.traits import AllocatesShared, has
from proton.dialect.walk import all_ops, before, defining_op, functions, ops_named, replace
from proton.layout.matrix_memory import matrix_layout
from proton.passes import Pass, register

WORD_BITS = 32
# Programs that an SM keeps where it had them: one waits while another computes. In blocks of 64 x
# 64 with two warps one program took 1.46 of the time of two, and spilled less
# (benchmarks/gpu_operands_in_memory.py, H200, 2aab34e4).
PROGRAMS = 2
# Of an operand, registers of all that a thread may have: an iteration reads all of it at once. Of
# the specimens of fla-core, those of fp32 whose operand has 256 registers spill as much when it is
# read in the loop (12,168 bytes and 12,504 for 9.0), those of at most 128 less than half as much.
MOST_OF_OPERAND = 1 / 2


@register
@dataclass(frozen=True)
class KeepOperandsInMemory(Pass):
    """Moves such operands, the largest first, until the rest fits."""

    name: ClassVar[str] = "keep-operands-in-memory"
    only_for: ClassVar[frozenset[str]] = names_of(ttng.MmaSyncOp)

    target: GPUTarget

    def run(self, module: Module) -> None:
        most = self.target.facts.max_registers
        for function in functions(module):
            products = ops_named(function, ttng.MmaSyncOp)
            self._share(function, products)
            by_loop: dict[Operation, list[Operation]] = {}
            for op in products:
                if (loop := loop_around(op)) is not None:
                    by_loop.setdefault(loop, []).append(op)
            for loop, inner in by_loop.items():
                _relieve(loop, inner, self._room(_shared_bytes(function)), most)

    def _share(self, function: Operation, products: list[Operation]) -> None:
        """Values of loops that are converted to several operands are read from one memory."""
        for value, conversions in _converted(products).items():
            order = [view.operation for view in next(iter(conversions)).block.operations]
            first = min(conversions, key=order.index)
            memory = _memory_type(value, conversions[first])
            if len(conversions) < 2 or memory is None:
                continue
            if desc_bytes(memory) > self._room(_shared_bytes(function)):
                continue
            with before(first):
                held = ttg.LocalAllocOp(value, memory).result
            for op in conversions:
                with before(op):
                    replace(op, [ttg.LocalLoadOp(held, op.results[0].type).result])

    def _room(self, taken: int) -> int:
        """Bytes of shared memory that a program that takes so many may take more."""
        facts = self.target.facts
        most = facts.most_shared(PROGRAMS)
        return (most if taken <= most else facts.shared_bytes) - taken


def _converted(products: list[Operation]) -> dict[Value, dict[Operation, int]]:
    """By value of a loop the conversions to operands in its block, as they are or transposed
    behind that; and the dimension of each along K."""
    found: dict[Value, dict[Operation, int]] = {}
    for op in products:
        for operand, k_axis in zip(list(op.operands)[:2], (1, 0), strict=True):
            producer = defining_op(operand)
            if isa(producer, tt.TransOp):
                producer, k_axis = defining_op(producer.operands[0]), 1 - k_axis
            if isa(producer, ttg.ConvertLayoutOp) and producer.block == op.block:
                value = producer.operands[0]
                made = defining_op(value)
                if loop_around(op) is not None and made is not None and made.block == op.block:
                    found.setdefault(value, {})[producer] = k_axis
    return found


def _relieve(loop: Operation, products: list[Operation], room: int, most: int) -> None:
    """Moves operands of the products of a loop, as far as `room` bytes of shared memory go, until
    the rest fits into `most` registers."""
    inside = {loop, *all_ops(loop)}
    operands = {
        value: k_axis
        for op in products
        for value, k_axis in zip(list(op.operands)[:2], (1, 0), strict=True)
        if _is_outside(value, inside)
    }
    others = {v for op in products for v in list(op.operands)[:2]} - operands.keys()
    words = sum(map(registers, operands)) + _computed(loop, products)
    words += max(map(registers, others), default=0)
    for operand in sorted(operands, key=registers, reverse=True):
        if words <= most:
            return
        memory = _memory_type(operand, operands[operand])
        is_small = registers(operand) <= 1 + most * MOST_OF_OPERAND
        if memory is None or not is_small or desc_bytes(memory) > room:
            continue
        room -= desc_bytes(memory)
        words -= registers(operand)
        _read_in_loop(loop, operand, memory, inside)


def _computed(loop: Operation, products: list[Operation]) -> int:
    """Registers of what a loop carries, and of the largest product that it does not carry."""
    carried = {value for region in loop.regions for value in region.blocks[0].arguments}
    results = [op.results[0] for op in products if op.operands[2] not in carried]
    return sum(map(registers, carried)) + max(map(registers, results), default=0)


def registers(value: Value) -> int:
    """Registers of a thread that a value takes; 1 for a scalar."""
    if not ttg.is_tensor(value.type):
        return 1
    bits = 8 * stored_bytes(element_of(value))
    return max(1, ttg.layout_of(value.type).in_size("register") * bits // WORD_BITS)


def _is_outside(value: Value, inside: set[Operation]) -> bool:
    op = defining_op(value)
    owner = value.owner.owner if op is None else op
    return owner.operation not in inside


def _shared_bytes(function: Operation) -> int:
    """Of buffers, and of the scratch memory that one op at a time takes."""
    ops = all_ops(function)
    buffers = [op for op in ops if has(op, AllocatesShared)]
    scratch = max((scratch_bytes(op) for op in ops if not has(op, AllocatesShared)), default=0)
    return scratch + sum(desc_bytes(op.results[0].type) for op in buffers)


def _memory_type(operand: Value, k_axis: int) -> Type | None:
    """Rows along K, swizzled; None where they are too short for it."""
    shape, element = shape_of(operand), element_of(operand)
    if len(shape) != 2:
        return None
    layout = matrix_layout(shape, stored_bytes(element), (k_axis, 1 - k_axis))
    return None if layout is None else ttg.mem_desc(shape, element, layout)


def _read_in_loop(loop: Operation, operand: Value, memory: Type, inside: set[Operation]) -> None:
    """Has products read the operand right before they take it."""
    source = operand
    producer = defining_op(operand)
    if isa(producer, ttg.ConvertLayoutOp):
        source = producer.operands[0]
    users = [(use.owner.operation, use.operand_number) for use in operand.uses]
    with before(loop):
        held = ttg.LocalAllocOp(source, memory).result
    for user, number in users:
        if user in inside and isa(user, ttng.MmaSyncOp):
            with before(user):
                user.operands[number] = ttg.LocalLoadOp(held, operand.type).result
    if isa(producer, ttg.ConvertLayoutOp) and not list(operand.uses):
        producer.erase()
