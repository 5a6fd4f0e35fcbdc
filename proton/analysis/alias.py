"""Which kernel arguments a pointer may point into, and which of them a kernel writes.

The answer follows pointers through arithmetic, shape changes, loops, branches and calls. A pointer
that is loaded from memory or made from an integer may point anywhere: `UNKNOWN`.
"""

from dataclasses import dataclass

from proton.analysis.call_graph import call_graph, callee_name, function_name
from proton.analysis.dataflow import ForwardDataflow
from proton.dialect import isa, traits
from proton.dialect.mlir import Block, Module, Operation, Value, builtin, func, ir, llvm
from proton.dialect.regions import Branch, end_of
from proton.dialect.traits import has
from proton.dialect.tt import is_pointer_like
from proton.dialect.ttng_memory import is_tensor_map
from proton.dialect.walk import all_ops, defining_op

UNKNOWN = -1


@dataclass(frozen=True)
class ArgumentAccesses:
    """Argument numbers that a function may read and write through, and of each result those that
    it may point into; UNKNOWN among them for any."""

    read: frozenset[int]
    written: frozenset[int]
    results: tuple[frozenset[int], ...] = ()


def accesses_of(module: Module) -> dict[str, ArgumentAccesses]:
    """The accesses of each function of a module in `tt` IR, those of what it calls included."""
    known: dict[str, ArgumentAccesses] = {}
    for function in call_graph(module).callees_first():
        known[function_name(function)] = _accesses(function, known)
    return known


def _accesses(function: Operation, callees: dict[str, ArgumentAccesses]) -> ArgumentAccesses:
    roots = Roots(function, callees)
    read: set[int] = set()
    written: set[int] = set()
    for op in all_ops(function):
        if has(op, traits.Accesses):
            if has(op, traits.Writes):
                written |= roots.of(op.operands[0])
            if op.results:
                read |= roots.of(op.operands[0])
        elif isa(op, func.CallOp) and callee_name(op) in callees:
            callee = callees[callee_name(op)]
            read |= roots.through(op, callee.read)
            written |= roots.through(op, callee.written)
    results = tuple(map(roots.of, end_of(function.regions[0].blocks[0]).operands))
    return ArgumentAccesses(frozenset(read), frozenset(written), results)


class Roots(ForwardDataflow[None]):
    """Follows the pointers of a kernel in `tt` IR from its arguments on."""

    def __init__(
        self, function: Operation, callees: dict[str, ArgumentAccesses] | None = None
    ) -> None:
        self.callees = callees or {}
        entry = function.regions[0].blocks[0]
        self.known: dict[Value, frozenset[int]] = {
            argument: frozenset([number]) for number, argument in enumerate(entry.arguments)
        }
        self.block(entry, None)

    def of(self, value: Value) -> frozenset[int]:
        """The arguments that a pointer may point into."""
        return self.known.get(value, frozenset([UNKNOWN]))

    def takes_part(self, op: Operation) -> bool:
        """True if an op may give a pointer."""
        return has(op, traits.PassesPointers) or isa(op, func.CallOp)

    def transfer(self, op: Operation, state: None) -> None:
        if has(op, traits.PassesPointers):
            found = [self.of(value) for value in op.operands if is_pointer_like(value.type)]
            for result in op.results:
                if is_pointer_like(result.type) or is_tensor_map(result.type):
                    self.known[result] = frozenset().union(*found)
        elif isa(op, func.CallOp) and callee_name(op) in self.callees:
            for result, numbers in zip(
                op.results, self.callees[callee_name(op)].results, strict=True
            ):
                if is_pointer_like(result.type):
                    self.known[result] = self.through(op, numbers)

    def through(self, call: Operation, numbers: frozenset[int]) -> frozenset[int]:
        """The arguments of this function that those of a callee may point into."""
        found = (
            frozenset([UNKNOWN]) if number == UNKNOWN else self.of(call.operands[number])
            for number in numbers
        )
        return frozenset().union(*found)

    def flow(self, branch: Branch) -> bool:
        is_new = False
        for source, target in zip(branch.passed, branch.received, strict=True):
            if is_pointer_like(source.type):
                known = self.known.get(target, frozenset())
                if not self.of(source) <= known:
                    self.known[target], is_new = known | self.of(source), True
        return is_new


def pointer_argument(value: Value, entry: Block) -> int:
    """The argument that a lowered scalar pointer (`!llvm.ptr`) is an offset of, or UNKNOWN."""
    while isa(op := defining_op(value), llvm.GEPOp, builtin.UnrealizedConversionCastOp):
        value = op.operands[0]
    if isinstance(value, ir.BlockArgument) and value.owner == entry:
        return int(value.arg_number)
    return UNKNOWN
