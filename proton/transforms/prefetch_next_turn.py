"""Fetches the blocks that the next turn of a loop reads while this turn computes.

The processor's own prefetchers stop at the end of a page, and a row of a matrix often is one. So
each row, or row of a block, begins with a wait, and the compiler knows the address a turn before:

    for i, (offset = 0):                         for i, (offset = 0):
      %block = view (base + offset)                %next = view (base + (offset + step))
      work(%block)                                 %block = view (base + offset)
      yield offset + step                          prefetch %next; work(%block)
                                                   yield offset + step

The fetches are spread over the work, as the processor can wait for a dozen lines at a time: each
`linalg` op of the turn, or each register tile of a product, is preceded by its share of them. In
the last turn there are none.
"""

import math
from dataclasses import dataclass, field
from typing import Any, ClassVar

from proton.dialect.attributes import TILE_LOOP
from proton.dialect.builtin import i32_attr
from proton.dialect.emit import constant, effect, index_constant, loop
from proton.dialect.mlir import Block, Module, Operation, Type, Value, arith, ir
from proton.dialect.regions import ForLoop, is_inside
from proton.dialect.traits import Recomputed, has
from proton.dialect.walk import before, defining_op, functions, ops_named, producer_of
from proton.passes import Pass, register

CACHE_LINE = 64  # bytes
SMALLEST = 1 << 10  # bytes of a block that is worth it
FIRST_LEVEL, SECOND_LEVEL = 16 << 10, 256 << 10  # bytes of a block that a cache has room for


@register
@dataclass(frozen=True)
class PrefetchNextTurn(Pass):
    """Adds `memref.prefetch` to loops that read blocks in place or copy them."""

    name: ClassVar[str] = "prefetch-next-turn"

    def run(self, module: Module) -> None:
        for function in functions(module):
            for op in ops_named(function, "scf.for"):
                _Turn(op).prefetch()


@dataclass
class _Turn:
    """One turn of a loop."""

    loop: Operation
    later: dict[Value, Value] = field(default_factory=dict)  # values of the next turn
    moved: dict[Value, Value] = field(default_factory=dict)  # of this one, at its beginning

    @property
    def block(self) -> Block:
        return ForLoop(self.loop).body

    def prefetch(self) -> None:
        works = self._works()
        views = [view for view in self._views() if works and self._is_known(view)]
        if not views:
            return
        variable, (_, end, step) = self.block.arguments[0], ForLoop(self.loop).bounds
        with ir.InsertionPoint.at_block_begin(self.block), self.loop.location:
            nexts = [self._later(view) for view in views]
            goes_on = arith.CmpIOp(
                arith.CmpIPredicate.slt, variable, arith.SubIOp(end, step).result
            ).result
        for number, work in enumerate(works):
            for view in nexts:
                if work.name == "scf.for":
                    _prefetch_by_tiles(view, work, goes_on)
                else:
                    with before(work):
                        share = index_constant(number)
                        _prefetch_share(view, share, len(works), goes_on)

    def _works(self) -> list[Operation]:
        """What the fetches are spread over: products where there are any."""
        ops = [op.operation for op in self.block.operations]
        tiles = [
            tile
            for op in ops
            if op.name == "scf.for"
            for tile in ops_named(op, "scf.for")
            if TILE_LOOP in tile.attributes and tile.parent.operation == op
        ]
        return tiles[:1] or [op for op in ops if op.name == "linalg.generic"]

    def _views(self) -> list[Value]:
        """Blocks of memory that a turn reads: in it, or in a branch that depends on the mask."""
        return [
            op.results[0]
            for op in ops_named(self.loop, "memref.reinterpret_cast")
            if _is_fetched(op.results[0].type)
            and self._is_of_turn(op)
            and not _is_written(op.results[0])
        ]

    def _is_of_turn(self, op: Operation) -> bool:
        parent = op.parent.operation
        if parent.name == "scf.if":
            parent = parent.parent.operation
        return bool(parent == self.loop)

    def _is_inside(self, op: Operation) -> bool:
        return is_inside(op, self.loop)

    def _is_known(self, view: Value) -> bool:
        """Whether a block's address changes with the turn, and its next one can be computed."""
        changes, seen, pending = False, set(), [view]
        while pending:
            value = pending.pop()
            if value in seen:
                continue
            seen.add(value)
            op = defining_op(value)
            if op is None:
                if value.owner == self.block:
                    changes = True
                    pending += self._yielded(value)
            elif self._is_inside(op):
                if not has(op, Recomputed):
                    return False
                pending += op.operands
        return changes

    def _yielded(self, argument: Value) -> list[Value]:
        """What a turn gives to the next for an argument of its block, but the loop's variable."""
        number = ir.BlockArgument(argument).arg_number
        return [ForLoop(self.loop).yielded[number - 1]] if number else []

    def _later(self, value: Value) -> Value:
        """A value as the next turn has it, computed anew."""
        if value not in self.later:
            if defining_op(value) is None and value.owner == self.block:
                given = self._yielded(value)
                self.later[value] = (
                    self._now(given[0])
                    if given
                    else arith.AddIOp(value, ForLoop(self.loop).bounds[2]).result
                )
            else:
                self.later[value] = self._copied(value, self._later)
        return self.later[value]

    def _now(self, value: Value) -> Value:
        """A value of this turn, computed anew where it may come too late."""
        if value not in self.moved:
            self.moved[value] = self._copied(value, self._now)
        return self.moved[value]

    def _copied(self, value: Value, operand: Any) -> Value:
        op = defining_op(value)
        if op is None or not self._is_inside(op):
            return value
        operands = [operand(v) for v in op.operands]
        copy = op.clone()
        for position, new in enumerate(operands):
            copy.operands[position] = new
        return copy.results[ir.OpResult(value).result_number]


def _is_fetched(type_: Type) -> bool:
    """Whether blocks of a type are large enough to be worth it, and their rows contiguous."""
    strides, _ = type_.get_strides_and_offset()
    return bool(strides) and strides[-1] == 1 and SMALLEST <= _bytes(type_) <= SECOND_LEVEL


def _bytes(type_: Type) -> int:
    return int(math.prod(type_.shape) * type_.element_type.width // 8)


def _is_written(view: Value) -> bool:
    """Whether a block is the destination of anything, by way of casts and branches."""
    for use in view.uses:
        op, place = use.owner.operation, use.operand_number
        if op.name == "memref.cast" and _is_written(op.results[0]):
            return True
        if op.name == "scf.yield":
            parent = op.parent.operation
            if parent.name != "scf.if" or _is_written(parent.results[place]):
                return True
        if op.name.startswith("linalg.") and place == len(op.operands) - 1:
            return True
        if op.name in ("vector.store", "memref.store"):
            return True
    return False


def _prefetch_by_tiles(view: Value, tile_loop: Operation, goes_on: Value) -> None:
    """Fetches a block by the turns of a tile loop and of the loop around it."""
    outer = tile_loop.parent.operation
    index = ir.IndexType.get()
    counts = [_turns(op) for op in (outer, tile_loop)]
    loops = ForLoop(outer), ForLoop(tile_loop)
    with ir.InsertionPoint.at_block_begin(loops[1].body), tile_loop.location:
        numbers = [arith.DivUIOp(of.induction_var, of.bounds[2]).result for of in loops]
        before_row = arith.MulIOp(numbers[0], constant(counts[1], index)).result
        share = arith.AddIOp(before_row, numbers[1]).result
        _prefetch_share(view, share, math.prod(counts), goes_on)


def _turns(op: Operation) -> int:
    """How often a loop of constant bounds runs."""
    lower, upper, step = (producer_of(v).attributes["value"].value for v in ForLoop(op).bounds)
    return -(-(upper - lower) // step)


def _prefetch_share(view: Value, share: Value, shares: int, goes_on: Value) -> None:
    """Fetches one of `shares` equal parts of a block's cache lines, if the loop goes on."""
    index, shape = ir.IndexType.get(), view.type.shape
    lanes = CACHE_LINE * 8 // view.type.element_type.width
    lines = [*shape[:-1], -(-shape[-1] // lanes)]
    count = -(-math.prod(lines) // shares)
    zero, one = constant(0, index), constant(1, index)
    end = arith.SelectOp(goes_on, constant(count, index), zero).result
    first = arith.MulIOp(share, constant(count, index)).result
    with loop(zero, end, one) as line:
        *outer, last = _delinearized(arith.AddIOp(first, line).result, lines)
        _prefetch(view, [*outer, arith.MulIOp(last, constant(lanes, index)).result])


def _delinearized(place: Value, shape: list[int]) -> list[Value]:
    """The indices of the element of a row-major block at a place."""
    indices = []
    for size in reversed(shape[1:]):
        factor = index_constant(size)
        indices.append(arith.RemUIOp(place, factor).result)
        place = arith.DivUIOp(place, factor).result
    return [place, *reversed(indices)]


def _prefetch(view: Value, indices: list[Value]) -> None:
    """`memref.prefetch` of an element to read, into the cache that has room for the block."""
    nearest = 3 if _bytes(view.type) <= FIRST_LEVEL else 2
    effect(
        "memref.prefetch",
        view,
        *indices,
        isWrite=ir.BoolAttr.get(False),
        isDataCache=ir.BoolAttr.get(True),
        localityHint=i32_attr(nearest),
    )
