"""Stores of whole cache lines that go past the caches.

A store to a line that no cache has first reads the line, and puts another one out. Where all of it
is written neither is needed: x86 has stores that gather a line and send it to memory. Other threads
see them in any order, until a fence.

Who reads a result next finds it in a cache if it was small enough: only large ones are streamed.
"""

from collections.abc import Sequence
from functools import reduce

from proton.dialect.abi import AddedArgument, added_arguments, argument
from proton.dialect.builtin import integer, string_attr
from proton.dialect.emit import constant, effect, emit_if
from proton.dialect.memory import address_and_stride
from proton.dialect.mlir import Operation, Type, Value, arith, ir, llvm, vector
from proton.dialect.walk import before
from proton.transforms.cpu.shares import CACHE_LINE

SMALLEST = 64 << 10  # bytes of a block: beside those of a smaller one the fence takes long
LARGE = 1 << 20  # bytes of a launch's blocks
GRID = (AddedArgument.GRID_X, AddedArgument.GRID_Y, AddedArgument.GRID_Z)


def can_stream(stores: Sequence[Operation], block: Type, function: Operation) -> bool:
    """True if vector stores of a function that write a block in turn write lines, if it begins with
    one."""
    rows, columns = block.shape
    bits = block.element_type.width
    lines = [s.operands[0].type.shape[0] * bits % (CACHE_LINE * 8) == 0 for s in stores]
    knows_grid = all(kind in added_arguments(function) for kind in GRID)
    return knows_grid and bool(lines) and all(lines) and rows * columns * bits >= SMALLEST * 8


def is_streamed(block: Value, function: Operation) -> Value:
    """Whether each row of a block begins with a cache line, and the launch's blocks are large."""
    i64, (rows, columns) = integer(64), block.type.shape
    address, stride = address_and_stride(block)
    width = block.type.element_type.width // 8
    step = arith.MulIOp(arith.IndexCastOp(i64, stride).result, constant(width, i64)).result
    bits = arith.OrIOp(llvm.PtrToIntOp(i64, address).result, step).result
    rest = arith.AndIOp(bits, constant(CACHE_LINE - 1, i64)).result
    are_lines = arith.CmpIOp(arith.CmpIPredicate.eq, rest, constant(0, i64)).result
    sizes = [arith.ExtUIOp(i64, argument(function, kind)).result for kind in GRID]
    programs = reduce(lambda one, other: arith.MulIOp(one, other).result, sizes)
    least = constant(-(-LARGE // (rows * columns * width)), i64)
    are_many = arith.CmpIOp(arith.CmpIPredicate.uge, programs, least).result
    return arith.AndIOp(are_lines, are_many).result


def stream(stores: Sequence[Operation], condition: Value) -> None:
    """Has neighbouring stores write past the caches where a condition holds."""

    def past() -> list[Value]:
        for store in stores:
            value, block, *place = store.operands
            with store.location:
                vector.StoreOp(value, block, place, nontemporal=True, alignment=CACHE_LINE)
        return []

    def usual() -> list[Value]:
        for store in stores:
            store.clone()
        return []

    with before(stores[-1]):
        emit_if(condition, [], past, usual)
    for store in stores:
        store.erase()


def fence() -> None:
    """What was streamed is there for other threads before what follows is."""
    effect(
        llvm.InlineAsmOp,
        asm_string=string_attr("sfence"),
        constraints=string_attr("~{memory}"),
        has_side_effects=ir.UnitAttr.get(),
    )
