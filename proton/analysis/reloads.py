"""Which values are better loaded again in another layout than moved between threads.

A block of fewer elements than there are threads is in a cache once one warp has asked for it, so
that each thread may load what it needs of it: moving it through shared memory takes two barriers.
What is computed from such loads by arithmetic is computed again, too. What a loop of products
copies ahead, in stages, for an operand is not: those who read it from shared memory choose their
layout.

Threads of a program are not in step. Where one loads an element that another one stores, the load
may see what was stored. So a block is loaded again only if nothing in the function may write to
the same argument, and nothing writes a block of the same shape and type, as what computes in place
would by way of another argument. The latter does not matter where each warp loads all of it anyway.
"""

from proton.analysis.alias import UNKNOWN, Roots
from proton.analysis.cost import Cost, cost
from proton.dialect import isa, tt, ttg
from proton.dialect.attributes import NUM_STAGES, WARP_SPECIALIZE
from proton.dialect.diagnostics import block_type, element_of, shape_of
from proton.dialect.mlir import Operation, Type, Value, func, ir
from proton.dialect.regions import loop_around
from proton.dialect.traits import (
    Accesses,
    Barrier,
    Loop,
    Multiplies,
    Pure,
    SharedEffects,
    Writes,
    has,
)
from proton.dialect.tt import is_pointer_like, pointee_of
from proton.dialect.tt_memory import is_volatile
from proton.dialect.ttg import is_tensor
from proton.dialect.ttng import is_tensor_map
from proton.dialect.walk import all_ops, defining_op


class Reloads:
    """The answers for one function of a program of so many threads, whose loops have so many stages
    where they do not say."""

    def __init__(self, function: Operation, threads: int, num_stages: int) -> None:
        self.function, self.threads, self.num_stages = function, threads, num_stages
        self.known: dict[Value, bool] = {}
        self.roots: Roots | None = None
        self.written: set[int] = set()
        self.blocks: set[Type] = set()

    def allow(self, value: Value) -> bool:
        """Whether to load a tensor again: it is made of small loads, by cheap arithmetic."""
        return self._holds_load(value) and self._allow(value)

    def go_anywhere(self, op: Operation) -> bool:
        """Whether an op is a small load that threads may repeat, beside products of a loop, but not
        of an operand: nothing is pipelined there, and each iteration waits for where it goes."""
        is_load = isa(op, tt.LoadOp) and is_tensor(op.results[0].type)
        if not is_load or not self._is_small(op.results[0]) or not _is_beside_products(op):
            return False
        return self._may_load(op) and not feeds_product(op)

    def _holds_load(self, value: Value) -> bool:
        """True if there is a load among what a tensor is computed from, as far as it is small."""
        op = _behind_conversions(value)
        if op is None or not self._is_small(op.results[0]):
            return False
        if isa(op, tt.LoadOp):
            return True
        return cost(op) <= Cost.ARITHMETIC and any(
            self._holds_load(v) for v in op.operands if is_tensor(v.type)
        )

    def _allow(self, value: Value) -> bool:
        op = _behind_conversions(value)
        if not is_tensor(value.type):
            return True
        if op is None or not self._is_small(value):
            return False
        if value not in self.known:
            may_load = cost(op) <= Cost.ARITHMETIC or (
                self._may_load(op) and not self._is_copied_ahead(op)
            )
            self.known[value] = may_load and all(map(self._allow, op.operands))
        return self.known[value]

    def _is_copied_ahead(self, op: Operation) -> bool:
        """True if stages of a loop may hold what a load loads."""
        loop = loop_around(op)
        if loop is None or stages_of(loop, self.num_stages)[0] < 2:
            return False
        return _is_beside_products(op) and feeds_product(op)

    def _is_small(self, value: Value) -> bool:
        count = 1
        for size in shape_of(value):
            count *= size
        return count < self.threads

    def _may_load(self, op: Operation) -> bool:
        if not isa(op, tt.LoadOp) or is_volatile(op):
            return False
        if self.roots is None:
            self.roots = Roots(self.function)
            for writer in filter(lambda one: has(one, Writes), all_ops(self.function)):
                self._note(writer)
        roots = self.roots.of(op.operands[0])
        if UNKNOWN in self.written or UNKNOWN in roots or roots & self.written:
            return False
        loaded = op.results[0]
        is_written = block_type(tuple(shape_of(loaded)), element_of(loaded)) in self.blocks
        return not is_written or _is_in_every_warp(loaded)

    def _note(self, op: Operation) -> None:
        """What an op writes: one that is no access, as a call, anything in global memory, but for
        what is known to write shared memory alone."""
        assert self.roots is not None
        if not has(op, Accesses):
            if not has(op, Barrier) and not _stays_on_chip(op):
                self.written.add(UNKNOWN)
            return
        self.written |= self.roots.of(op.operands[0])
        shape = tuple(shape_of(op.operands[0])) if is_tensor(op.operands[0].type) else ()
        self.blocks.add(block_type(shape, pointee_of(op.operands[0])))


def _is_in_every_warp(value: Value) -> bool:
    """True if each warp has all elements of a tensor: it loads them itself in any layout."""
    return not any(map(any, ttg.layout_of(value.type).bases("warp")))


def _stays_on_chip(op: Operation) -> bool:
    """True if an op writes to registers and to shared memory: it says what it does to that, and
    knows no place in global memory."""
    return SharedEffects.are_known(op) and not any(
        is_pointer_like(value.type) or is_tensor_map(value.type) for value in op.operands
    )


def _behind_conversions(value: Value) -> Operation | None:
    op = defining_op(value)
    while isa(op, ttg.ConvertLayoutOp):
        op = defining_op(op.operands[0])
    return op


def feeds_product(op: Operation, *kinds: type[ir.OpView]) -> bool:
    """True if an operand of a product, or one of some kinds, is computed in the op's block from
    what it loads: such a load may begin iterations early, and those who read it from shared memory
    choose their layout."""
    seen, work = set[Operation](), [op]
    while work:
        for use in (use for result in work.pop().results for use in result.uses):
            user = use.owner.operation
            if isa(user, *kinds) if kinds else has(user, Multiplies):
                if use.operand_number < 2:
                    return True
            elif user.block == op.block and user not in seen and has(user, Pure):
                seen.add(user)
                work.append(user)
    return False


def stages_of(loop: Operation, default: int) -> tuple[int, bool]:
    """(stages, whether the loop itself asked for them, or for a producer)."""
    if NUM_STAGES in loop.attributes:
        return int(ir.IntegerAttr(loop.attributes[NUM_STAGES]).value), True
    return default, WARP_SPECIALIZE in loop.attributes


def _is_beside_products(op: Operation) -> bool:
    """True if it is in a loop that multiplies matrices."""
    parent = op.parent
    while parent is not None and not isa(parent, func.FuncOp):
        if has(parent, Loop) and any(has(one, Multiplies) for one in all_ops(parent)):
            return True
        parent = parent.parent
    return False
