"""Has the last iteration of a loop of products write the result to the memory that it is stored to.

    fill buffer with 0                      row = 0, 0, ...
    for i:                                  for i:
      for each register tile:                 from = first iteration ? row : buffer
        buffer[tile] += product               to = last iteration, store is whole ? memory : buffer
    copy buffer to memory                     for each register tile:
                                                to[tile] = from[tile] + product
                                            copy buffer to memory, unless the last iteration wrote
                                            that;
                                              where there was no iteration, row

So the result passes the caches once in place of three times, beside a product that leaves them
idle. Sums stay in the buffer until then: rows of the memory may meet in a few sets of the caches.
A large result does not enter the caches at all (`streamed_stores.py`).

With `in_order` it is left as it is where records stand between product and copy.
"""

from dataclasses import dataclass
from functools import cached_property, partial
from typing import ClassVar

from proton.dialect import isa
from proton.dialect.attributes import COPIED_AHEAD, STORED_EXTENT, TILE_LOOP
from proton.dialect.builtin import integer
from proton.dialect.emit import cloned, constant, emit_when, index_constant
from proton.dialect.linalg import copy_into, fill
from proton.dialect.memory import chosen_rows, memref_at, taken_apart
from proton.dialect.mlir import Module, Operation, Value, arith, ir, linalg, memref, scf, vector
from proton.dialect.regions import ForLoop, is_inside
from proton.dialect.traits import Recomputed, Records, has
from proton.dialect.walk import (
    before,
    defining_op,
    functions,
    ops_named,
    parent_of,
    producer_of,
    replace,
    users,
)
from proton.passes import Pass, register
from proton.transforms.cpu.streamed_stores import can_stream, fence, is_streamed, stream


@register
@dataclass(frozen=True)
class StoreLastIteration(Pass):
    """Moves stores of sums of products into the loop's last iteration."""

    name: ClassVar[str] = "store-last-iteration"

    in_order: bool = False

    def run(self, module: Module) -> None:
        for function in functions(module):
            for op in ops_named(function, linalg.CopyOp):
                found = _Result.of(op)
                if found is not None and found.may_move(self.in_order):
                    found.move(function)


@dataclass(frozen=True)
class _Result:
    """The sums that a loop makes in a buffer, and the store behind it."""

    fill: Operation
    loop: Operation
    copy: Operation
    nest: Operation
    buffer: Value
    view: Value  # the memory
    whole: Value | None  # whether the copy goes there; None where it always does

    @classmethod
    def of(cls, copy: Operation) -> "_Result | None":
        """What a copy stores; None where it is something else."""
        buffer, target = copy.operands[0], _target(copy.operands[1])
        allocation = defining_op(buffer)
        if not isa(allocation, memref.AllocOp) or target is None:
            return None
        if len(buffer.type.shape) != 2:
            return None
        others = [user for user in users(buffer) if user != copy]
        fills = [user for user in others if isa(user, linalg.FillOp)]
        nests = {_nest(user) for user in others if not isa(user, linalg.FillOp)}
        nest = nests.pop() if len(nests) == 1 else None
        if len(fills) != 1 or nest is None:
            return None
        loop = parent_of(nest)
        return cls(fills[0], loop, copy, nest, buffer, *target)

    def may_move(self, in_order: bool) -> bool:
        """True if nothing stands between that could tell when memory is written; with `in_order`
        records could."""
        if not isa(self.loop, scf.ForOp) or self.loop.block != self.copy.block:
            return False
        if self.fill.block != self.copy.block:
            return False
        order = [view.operation for view in self.copy.block.operations]
        body = [view.operation for view in ForLoop(self.loop).body.operations]
        fill, loop, copy = (order.index(op) for op in (self.fill, self.loop, self.copy))
        if not fill < loop < copy:
            return False
        between = order[loop + 1 : copy]
        later = body[body.index(self.nest) + 1 : -1]
        branches = [] if self.branch is None else [self.branch]
        passed = (Recomputed,) if in_order else (Recomputed, Records)
        return (
            all(has(op, *passed) or op in branches for op in between)
            and all(has(op, *passed) for op in later)
            and self._are_known([self.view] if self.whole is None else [self.view, self.whole])
            and (self.branch is None or self._write_back() is not None)
        )

    def _write_back(self) -> Operation | None:
        """The branch that writes a block that the mask cuts, if nothing else reads the copy."""
        found = {
            self._where_cut(user) for user in users(self.copy.operands[1]) if user != self.copy
        }
        return found.pop() if len(found) == 1 else None

    def _where_cut(self, reader: Operation) -> Operation | None:
        """The branch by whether the block is whole that an op is in."""
        while reader.block != self.copy.block:
            reader = parent_of(reader)
            if isa(reader, scf.IfOp) and reader.operands[0] == self.whole:
                return reader
        return None

    @cached_property
    def branch(self) -> Operation | None:
        """The branch that says where the copy goes."""
        producer = defining_op(self.copy.operands[1])
        return producer if isa(producer, scf.IfOp) else None

    def _are_known(self, pending: list[Value]) -> bool:
        """True if values can be computed ahead of the loop."""
        seen = set()
        while pending:
            value = pending.pop()
            op = defining_op(value)
            if op is None or value in seen:
                continue
            seen.add(value)
            if op == self.loop or is_inside(op, self.nest):
                return False
            if self._is_later(op):
                if not has(op, Recomputed):
                    return False
                pending += op.operands
        return True

    def _is_later(self, op: Operation) -> bool:
        """True if an op stands behind the loop, or in a branch that does."""
        branch = self.branch
        if branch is not None and op != branch and is_inside(op, branch):
            return True
        return bool(op.block == self.loop.block and not op.is_before_in_block(self.loop))

    def move(self, function: Operation) -> None:
        """Has the iterations write where they should."""
        view, step, stores = ForLoop(self.loop), ForLoop(self.loop).bounds[2], self._stores()
        lower, upper, _ = view.bounds
        copies: dict[Value, Value] = {}
        with before(self.loop):
            memory = self._ahead(self.view, copies)
            whole = None if self.whole is None else self._ahead(self.whole, copies)
            runs = arith.CmpIOp(arith.CmpIPredicate.slt, lower, upper).result
            start = self._row()
            may_stream = can_stream(stores, memory.type, function)
            streamed = is_streamed(memory, function) if may_stream else None
        with ir.InsertionPoint.at_block_begin(view.body), self.nest.location:
            first = arith.CmpIOp(arith.CmpIPredicate.eq, view.induction_var, lower).result
            left = arith.SubIOp(upper, view.induction_var).result
            last = arith.CmpIOp(arith.CmpIPredicate.ule, left, step).result
            if whole is not None:
                last = arith.AndIOp(last, whole).result
            source = _chosen(first, start, self.buffer)
            target = _chosen(last, memory, self.buffer)
            past = None if streamed is None else arith.AndIOp(last, streamed).result
        self._redirect(source, target)
        if past is not None:
            stream(stores, past)
        self._skip_tiles({axis: self._ahead(n, copies) for axis, n in self._extents().items()})
        with before(self.copy):
            if past is not None:
                fence()
            self._finish(runs, memory, start)
        self.fill.erase()

    def _finish(self, runs: Value, memory: Value, start: Value) -> None:
        """What the loop did not do: where there was no iteration, and where the mask cuts the
        block, which is written from the buffer."""
        sums, write_back = _chosen(runs, self.buffer, start), self._write_back()
        if self.whole is None or write_back is None:
            has_none = arith.XOrIOp(runs, constant(1, integer(1))).result
            emit_when(has_none, partial(_copy, sums, memory))
            self.copy.erase()
            return
        write_back.operands[0] = arith.AndIOp(runs, self.whole).result
        branch = producer_of(self.copy.operands[1])
        written = memref.CastOp(branch.results[0].type, sums).result
        self.copy.erase()
        replace(branch, [written])

    def _extents(self) -> dict[int, Value]:
        """How much of a dimension is stored, by axis, where a mask may cut it."""
        found: dict[int, Value] = {}
        pending = [] if self.whole is None else [self.whole]
        while pending:
            op = defining_op(pending.pop())
            if op is not None and STORED_EXTENT in op.attributes:
                found[op.attributes[STORED_EXTENT].value] = op.operands[0]
            elif isa(op, arith.AndIOp):
                pending += op.operands
        return found

    def _skip_tiles(self, extents: dict[int, Value]) -> None:
        """Has tiles multiply nothing of which nothing is stored."""
        if not extents:
            return
        loops = [view.operation for view in ForLoop(self.nest).body.operations]
        (tiles,) = (op for op in loops if TILE_LOOP in op.attributes)
        places = [ForLoop(loop).induction_var for loop in (tiles, self.nest)]  # of row and column
        work = [view.operation for view in ForLoop(tiles).body.operations]
        (product,) = (op for op in work if isa(op, scf.ForOp) and len(op.results))
        less = arith.CmpIPredicate.slt
        with before(product):
            for axis, extent in extents.items():
                is_stored = arith.CmpIOp(less, places[axis], extent).result
                depth = arith.SelectOp(is_stored, product.operands[1], index_constant(0)).result
                product.operands[1] = depth

    def _row(self) -> Value:
        """A row with what the buffer was filled with, as a block all of whose rows it is."""
        type_ = self.buffer.type
        columns, element = type_.shape[1], type_.element_type
        row = memref.AllocOp(ir.MemRefType.get([columns], element), [], []).result
        with self.fill.location:
            fill(self.fill.operands[0], row)
        address, *_ = taken_apart(row)
        return memref_at(address, tuple(type_.shape), element, [index_constant(0), 1])

    def _stores(self) -> list[Operation]:
        """What writes a tile's sums, in order."""
        inner = [view.operation for view in ForLoop(self.nest).body.operations]
        tiles = [op for op in inner if TILE_LOOP in op.attributes]
        ops = [view.operation for loop in tiles for view in ForLoop(loop).body.operations]
        return [op for op in ops if isa(op, vector.StoreOp) and op.operands[1] == self.buffer]

    def _redirect(self, source: Value, target: Value) -> None:
        for user in users(self.buffer):
            if isa(user, vector.LoadOp):
                user.operands[0] = source
            elif isa(user, vector.StoreOp):
                user.operands[1] = target

    def _ahead(self, value: Value, copies: dict[Value, Value]) -> Value:
        """A value computed ahead of the loop."""
        if value not in copies:
            op = defining_op(value)
            if op is None or not self._is_later(op):
                return value
            copy = cloned(op, [self._ahead(v, copies) for v in op.operands])
            copies[value] = copy.results[ir.OpResult(value).result_number]
        return copies[value]


def _copy(source: Value, target: Value) -> None:
    copy_into(source, target)


def _target(value: Value) -> tuple[Value, Value | None] | None:
    """The memory that a copy goes to, and where it goes elsewhere too, whether it goes there."""
    op = defining_op(value)
    if isa(op, scf.IfOp):
        then = op.regions[0].blocks[0]
        found = _target(list(then.operations)[-1].operation.operands[0])
        return None if found is None or found[1] is not None else (found[0], op.operands[0])
    while isa(op, memref.CastOp):
        value = op.operands[0]
        op = defining_op(value)
    if not isa(op, memref.ReinterpretCastOp):
        return None
    strides, _ = value.type.get_strides_and_offset()
    return (value, None) if strides[-1] == 1 else None


def _nest(op: Operation) -> Operation | None:
    """The loops of tiles that a read or write of a result stands in."""
    if not isa(op, vector.LoadOp, vector.StoreOp):
        return None
    tiles = parent_of(op)
    return parent_of(tiles) if TILE_LOOP in tiles.attributes else None


def _chosen(condition: Value, one: Value, other: Value) -> Value:
    """One of two blocks, which needs no fetches."""
    block = chosen_rows(condition, one, other)
    producer_of(block).attributes[COPIED_AHEAD] = ir.UnitAttr.get()
    return block
