"""Where in shared memory a value lies, and numbers that are known while a kernel is followed."""

import operator
import warnings
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from linecache import getline
from math import prod

from proton.analysis.scratch import held_bytes, stored_bytes
from proton.base.errors import CompilationError, SourceSpan
from proton.dialect import by_name, isa, ttg, ttng
from proton.dialect.attributes import NUM_WARPS
from proton.dialect.emit import predicate_of
from proton.dialect.mlir import CmpIPredicate, Location, Operation, Value, arith, ir
from proton.dialect.walk import defining_op, source_span

# What waits for a barrier, and what reads memory.
WAITS = (ttng.WaitBarrierOp, ttng.WaitBarrierIfOp)
READS = (ttg.LocalLoadOp, ttg.LocalGatherOp, ttng.WarpGroupDotOp, ttng.AsyncTMAStoreOp)


@dataclass(frozen=True)
class MemoryPlace:
    """So many bytes of an allocation, from one on; of a part that is not known (`is_part`) all that
    it may be."""

    base: Value
    start: int
    size: int = field(compare=False)
    is_part: bool = False

    def meets(self, other: "MemoryPlace") -> bool:
        """May be of the same memory."""
        is_before = self.start < other.start + other.size
        return self.base == other.base and is_before and other.start < self.start + self.size


Numbers = dict[Value, int]


def memory_place(memory: Value, numbers: Numbers) -> MemoryPlace | None:
    """None where the allocation is not known."""
    op = defining_op(memory)
    if op is None:
        return None
    if isa(op, ttg.LocalReserveOp):
        return MemoryPlace(memory, 0, held_bytes(memory.type))
    if isa(op, ttg.MemDescTransOp):
        return memory_place(op.operands[0], numbers)
    if not isa(op, ttg.MemDescViewOp, ttg.MemDescIndexOp):
        return None
    source = memory_place(op.operands[0], numbers)
    if source is None or source.is_part:
        return source
    size = held_bytes(memory.type)
    if isa(op, ttg.MemDescViewOp):
        offset = int(ir.IntegerAttr(op.attributes["offset"]).value)
        return MemoryPlace(source.base, source.start + offset, size)
    index = known_number(op.operands[1], numbers)
    if index is None:
        return replace(source, is_part=True)
    return MemoryPlace(source.base, source.start + index * size, size)


def barrier_place(memory: Value, numbers: Numbers) -> MemoryPlace | None:
    """The place of a barrier; of several at once none of them."""
    found = memory_place(memory, numbers)
    if found is None or prod(ttg.mem_desc_block(memory.type)[0]) == 1:
        return found
    return replace(found, is_part=True)


def _divided(a: int, b: int) -> int | None:
    """Towards zero."""
    return None if not b else abs(a) // abs(b) * (1 if (a < 0) == (b < 0) else -1)


def _rest(a: int, b: int) -> int | None:
    quotient = _divided(a, b)
    return None if quotient is None else a - quotient * b


_ARITHMETIC: dict[str, Callable[[int, int], int | None]] = by_name(
    {
        arith.AddIOp: operator.add,
        arith.SubIOp: operator.sub,
        arith.MulIOp: operator.mul,
        arith.DivSIOp: _divided,
        arith.RemSIOp: _rest,
        arith.AndIOp: operator.and_,
        arith.OrIOp: operator.or_,
        arith.XOrIOp: operator.xor,
        arith.MinSIOp: min,
        arith.MaxSIOp: max,
    }
)
_COMPARED: dict[CmpIPredicate, Callable[[int, int], bool]] = {
    CmpIPredicate.eq: operator.eq,
    CmpIPredicate.ne: operator.ne,
    CmpIPredicate.slt: operator.lt,
    CmpIPredicate.sle: operator.le,
    CmpIPredicate.sgt: operator.gt,
    CmpIPredicate.sge: operator.ge,
}


def known_number(value: Value, numbers: Numbers) -> int | None:
    """A scalar, where it is known."""
    if value in numbers:
        return numbers[value]
    op = defining_op(value)
    if op is None or not isinstance(value.type, ir.IntegerType | ir.IndexType):
        return None
    if isa(op, arith.ConstantOp):
        numbers[value] = int(ir.IntegerAttr(op.attributes["value"]).value)
        return numbers[value]
    if isa(op, arith.ExtSIOp, arith.ExtUIOp, arith.TruncIOp, arith.IndexCastOp):
        return known_number(op.operands[0], numbers)
    if isa(op, arith.SelectOp):
        condition = known_number(op.operands[0], numbers)
        return (
            None if condition is None else known_number(op.operands[1 if condition else 2], numbers)
        )
    if op.name not in _ARITHMETIC and not isa(op, arith.CmpIOp):
        return None
    a, b = (known_number(operand, numbers) for operand in op.operands)
    if a is None or b is None:
        return None
    if isa(op, arith.CmpIOp):
        compare = _COMPARED.get(predicate_of(op))
        return None if compare is None else int(compare(a, b))
    return _ARITHMETIC[op.name](a, b)


# What is said


def written(location: Location) -> SourceSpan:
    """Where the user wrote it: outside of the language's own functions."""
    span = source_span(location)
    if isinstance(location, ir.CallSiteLoc) and "/proton/language/" in span.file:
        return written(location.caller)
    return span


def made_at(base: Value) -> SourceSpan:
    """Where the user allocated memory."""
    memory = defining_op(base)
    assert memory is not None, "an allocation, by memory_place"
    return written(memory.location)


def wrong(op: Operation, base: Value, problem: str, hint: str) -> CompilationError:
    """An error at an op, which names the memory that it is about."""
    span, made = written(op.location), made_at(base)
    line = getline(made.file, made.line).strip()
    return CompilationError(
        f"{problem} (it is made in line {made.line}: `{line}`)", span if span.file else None, hint
    )


def say(problem: CompilationError, is_certain: bool) -> None:
    """Raises what is certainly wrong; warns of what is so if a loop runs that may be empty."""
    span = problem.span
    if is_certain or span is None:
        raise problem
    text = f"if the loop runs, {problem.rule}"
    try:
        warnings.warn_explicit(text, UserWarning, span.file, span.line)
    except UserWarning:  # a filter of warnings makes an error of it
        raise problem from None


# Barriers


def count_of(op: Operation) -> int:
    """The arrivals of an op at a barrier, or, of an init, those that a phase has."""
    if isa(op, ttng.ArriveOfWarpsOp, ttng.ArriveWithCopiesOp):
        return _warps_of(op)
    if isa(op, ttng.BarrierCompleteOp):
        return 0
    return int(ir.IntegerAttr(op.attributes["count"]).value) if "count" in op.attributes else 1


def _warps_of(op: Operation) -> int:
    """Warps of the group that runs an op."""
    outer = op
    while outer.parent is not None and not isa(outer, ttg.WorkerOp):
        outer = outer.parent.operation
    name = "warps" if isa(outer, ttg.WorkerOp) else NUM_WARPS
    return int(ir.IntegerAttr(outer.attributes[name]).value)


def expected_bytes(op: Operation) -> int:
    """Bytes that an arrival says will come; less than none where they have come."""
    size = int(ir.IntegerAttr(op.attributes["bytes"]).value) if "bytes" in op.attributes else 0
    return -size if isa(op, ttng.BarrierCompleteOp) else size


def copied_bytes(memory: Value) -> int:
    """Those that a copy to all of some memory brings."""
    shape, element = ttg.mem_desc_block(memory.type)
    return prod(shape) * stored_bytes(element)


@dataclass
class BarrierState:
    """Of a barrier: what a phase has, what is left of this one, phases that have ended."""

    count: int
    left: int
    bytes: int = 0
    phases: int = 0

    def end(self) -> None:
        """Begins the next phase where this one has all."""
        if not self.left and not self.bytes:
            self.left, self.phases = self.count, self.phases + 1
