"""How many registers of a thread tensors take at once, by the order of the ops of a function.

    %a = load          64
    %b = load         128
    %c = dot %a, %b    64    nothing reads %a and %b any more

What is integer arithmetic of addresses and masks is not counted: the assembler computes it again.
"""

from collections.abc import Iterable
from itertools import accumulate

from proton.analysis.cost import Cost, cost
from proton.analysis.scratch import stored_bytes
from proton.base.targets import GPUTarget
from proton.dialect import isa, ttg
from proton.dialect.diagnostics import element_of
from proton.dialect.mlir import Module, Operation, Value, arith
from proton.dialect.traits import Loop, has
from proton.dialect.walk import all_ops, defining_op, parent_of, users

WORD_BITS = 32
# Registers of addresses, masks and parts of results, beside tensors: 57 and 71 in two loops of
# parallel_nsa (fla-core 0.6.0), as `keep-operands-in-memory` counts those (ptxas 13.5 for 9.0, by
# benchmarks/library_specimens.py, 9ac83883).
BESIDE = 64


def registers(value: Value) -> int:
    """Registers of a thread that a value takes; 1 for a scalar."""
    if not ttg.is_tensor(value.type):
        return 1
    bits = 8 * stored_bytes(element_of(value))
    return max(1, ttg.layout_of(value.type).in_size("register") * bits // WORD_BITS)


class Crowded:
    """Where the tensors of a function take more registers than a thread may have; `position`
    numbers its ops, `peak` is how many they take at most. It knows no op that is made later."""

    def __init__(self, module: Module, function: Operation, target: GPUTarget) -> None:
        ops = all_ops(function)
        self.position = {op: number for number, op in enumerate(ops)}
        last = {op: self.position[all_ops(op)[-1]] for op in ops if len(op.regions)}
        self._ends = self.position | last
        changes = [0] * (len(ops) + 1)
        for op, number in self.position.items():
            made = [(a, number) for r in op.regions for b in r.blocks for a in b.arguments]
            if cost(op) > Cost.INDEX or isa(op, arith.SelectOp):
                made += [(result, self._ends[op]) for result in op.results]
            for value, start in made:
                if ttg.is_tensor(value.type) and (end := self.last_use(value)) > start:
                    changes[start] += registers(value)
                    changes[end] -= registers(value)
        self._facts, self._threads = target.facts, target.warp_size * ttg.num_warps(module)
        most = self._facts.most_registers(1, self._threads)
        taken = list(accumulate(changes))
        self.peak = max(taken)
        self._places = [n for n, words in enumerate(taken) if words > most]

    def between(self, first: Operation, last: Iterable[Operation]) -> bool:
        """True if a place is behind an op and ahead of the last one of others."""
        start, end = self.position[first], max(map(self.position.__getitem__, last))
        return any(start < place < end for place in self._places)

    def at(self, op: Operation) -> bool:
        """True if there is no room for what an op makes."""
        return self.position[op] in self._places

    def programs(self, shared: int, threads: int = 0, beside: int = BESIDE) -> int:
        """How many programs of so many bytes of shared memory, and threads, an SM holds at once,
        and at least 1: a thread takes registers for the tensors, and `beside`."""
        threads = threads or self._threads
        words = min(self.peak + beside, self._facts.max_registers)
        by_registers = self._facts.programs_by_registers(words, threads)
        return max(1, min(by_registers, self._facts.programs_per_sm(threads, shared)))

    def last_use(self, value: Value) -> int:
        """The position of the op that reads a value last: of a loop that it is not made in the
        end, as the next iteration comes back to it. -1 where nothing reads it."""
        return max((self._read(user, value) for user in users(value)), default=-1)

    def _read(self, user: Operation, value: Value) -> int:
        made = defining_op(value)
        home = value.owner.owner.operation if made is None else parent_of(made)
        at, around = self.position[user], parent_of(user)
        while around != home:
            if has(around, Loop):
                at = max(at, self._ends[around])
            around = parent_of(around)
        return at
