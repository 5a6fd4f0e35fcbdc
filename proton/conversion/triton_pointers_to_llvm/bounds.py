"""Checks of each access against the arrays that its pointer may point into.

An address is followed back to the pointer arguments that it may come from
(proton.analysis.alias); it has to lie in the array of one of them. A pointer that was loaded
from memory or made from an integer belongs to no array that anybody knows: such accesses are
not checked. What lies outside is not accessed; the first of such accesses is reported in the
table (proton.base.bounds), which the launcher reads when the grid is through.
"""

from collections.abc import Callable
from dataclasses import dataclass

from proton.analysis.alias import UNKNOWN, Roots
from proton.base import bounds
from proton.dialect import by_name, tt
from proton.dialect.abi import AddedArgument, add_argument
from proton.dialect.attributes import BOUNDS
from proton.dialect.builtin import i64_attr, integer, string_attr
from proton.dialect.emit import constant, emit_if
from proton.dialect.memory import byte_pointer, pointer_type
from proton.dialect.mlir import Attribute, Operation, Type, Value, arith, ir, llvm
from proton.dialect.walk import source_span

_KINDS = by_name(
    {
        tt.LoadOp: "load",
        tt.StoreOp: "store",
        tt.AtomicRMWOp: "atomic operation",
        tt.AtomicCASOp: "atomic operation",
    }
)
_RELAXED = 2  # of LLVM's AtomicOrdering


@dataclass(frozen=True)
class AccessCheck:
    """The check of one access: its number in the kernel, the arguments, and an element's bytes."""

    checks: "BoundsChecks"
    number: int
    arguments: list[int]
    bytes: int

    def guarded(
        self,
        address: Value,
        types: list[Type],
        access: Callable[[], list[Value]],
        without: Callable[[], list[Value]],
    ) -> list[Value]:
        """`access()` where the address is inside; else a report, and `without()`."""

        def outside() -> list[Value]:
            self.checks.report(self.number, place)
            return without()

        place = llvm.PtrToIntOp(integer(64), address).result
        inside = [self._lies_in(place, argument) for argument in self.arguments]
        result = inside[0]
        for condition in inside[1:]:
            result = arith.OrIOp(result, condition).result
        return emit_if(result, types, access, outside)

    def _lies_in(self, place: Value, argument: int) -> Value:
        """Whether all bytes lie in the array. Offsets are unsigned: below it they are huge."""
        low, size = self.checks.array(argument)
        first = arith.SubIOp(place, low).result
        behind = arith.AddIOp(first, constant(self.bytes, first.type)).result
        starts = arith.CmpIOp(arith.CmpIPredicate.ult, first, size).result
        ends = arith.CmpIOp(arith.CmpIPredicate.ule, behind, size).result
        return arith.AndIOp(starts, ends).result


class BoundsChecks:
    """The checks of one kernel. To be made before pointers become addresses."""

    def __init__(self, function: Operation, ops: list[Operation]) -> None:
        roots = Roots(function)
        self.function, self.ops = function, ops
        self.arguments = [_arguments(op, roots) for op in ops]
        self.arrays: dict[int, tuple[Value, Value]] = {}

    def prepare(self, program: list[Value], sizes: list[int]) -> list["AccessCheck | None"]:
        """Adds the table to the kernel's arguments; the check of each op, None where there is
        none. `program`: its x, y and z; `sizes`: the bytes of an element of each access."""
        checks: list[AccessCheck | None] = []
        descriptions = []
        for op, arguments, size in zip(self.ops, self.arguments, sizes, strict=True):
            if arguments:
                descriptions.append(_describe(op, arguments))
                checks.append(AccessCheck(self, len(descriptions), arguments, size))
            else:
                checks.append(None)
        if descriptions:
            self.program = program
            self.table = add_argument(self.function, AddedArgument.BOUNDS, pointer_type())
            self.function.attributes[BOUNDS] = ir.ArrayAttr.get(descriptions)
            self._load_arrays()
        return checks

    def _load_arrays(self) -> None:
        entry = self.function.regions[0].blocks[0]
        with ir.InsertionPoint.at_block_begin(entry), self.function.location:
            for argument in sorted({a for found in self.arguments for a in found}):
                word = bounds.argument_word(argument)
                self.arrays[argument] = self._load(word), self._load(word + 1)

    def array(self, argument: int) -> tuple[Value, Value]:
        """The address of an argument's array, and its bytes."""
        return self.arrays[argument]

    def report(self, number: int, place: Value) -> None:
        """Fills the report, if nobody has."""
        i64 = integer(64)
        orders = [i64_attr(order) for order in (_RELAXED, _RELAXED)]
        word = self._word(bounds.ACCESS_WORD)
        exchange = llvm.AtomicCmpXchgOp(word, constant(0, i64), constant(number, i64), *orders)
        won = llvm.ExtractValueOp(integer(1), exchange.result, ir.DenseI64ArrayAttr.get([1])).result

        def fill() -> list[Value]:
            llvm.StoreOp(place, self._word(bounds.ADDRESS_WORD))
            for axis, place_in_grid in enumerate(self.program):
                number = arith.ExtSIOp(i64, place_in_grid).result
                llvm.StoreOp(number, self._word(bounds.PROGRAM_WORD + axis))
            return []

        emit_if(won, [], fill, list)

    def _word(self, number: int) -> Value:
        return byte_pointer(self.table, number * bounds.WORD_BYTES)

    def _load(self, number: int) -> Value:
        return llvm.LoadOp(integer(64), self._word(number)).result


def _arguments(op: Operation, roots: Roots) -> list[int]:
    """The arguments that an op accesses the arrays of; none where they are not known."""
    found = roots.of(op.operands[0]) if op.name in _KINDS else frozenset()
    return [] if UNKNOWN in found else sorted(found)


def _describe(op: Operation, arguments: list[int]) -> Attribute:
    span = source_span(op.location)
    return ir.DictAttr.get(
        {
            "kind": string_attr(_KINDS[op.name]),
            "file": string_attr(span.file),
            "line": i64_attr(span.line),
            "column": i64_attr(span.column),
            "arguments": ir.DenseI64ArrayAttr.get(arguments),
        }
    )


def checked_accesses(function: Operation) -> list[dict[str, object]]:
    """What a launcher has to know of the checks of a kernel, one entry per access."""
    return [
        {
            "kind": access["kind"].value,
            "file": access["file"].value,
            "line": access["line"].value,
            "column": access["column"].value,
            "arguments": list(access["arguments"]),
        }
        for access in function.attributes.get(BOUNDS, ())
    ]
