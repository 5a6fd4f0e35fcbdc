"""Copies the factors of a product for the next iteration of a loop while this iteration computes.

    for i:                            for i:
      copy block(i) to buffer           if first iteration: copy block(i) to buffer[0]
      for each register tile:           for each register tile:
        product of buffer                 copy a share of block(i + 1) to buffer[(i + 1) % 2]
                                          product of buffer[i % 2]

A copy by itself waits for memory, as its loads come faster than the lines do. A share of it, a few
vectors, is next to nothing beside a tile of a product, and its lines are fetched some tiles ahead.
A block that the mask cuts, or that wraps around, is copied by the iteration that reads it, as
before.

With `in_place` a block that is read in place is copied, too, for all iterations but the first, if
its rows lie a multiple of 8 KiB apart: they meet in a few sets of the second-level cache, where
lines that are fetched an iteration ahead, and those that the iteration reads, put each other out.
Of others shares are fetched alone. A copy takes room in the first-level cache beside what a tile
reads: with 48 KiB it is a gain, with 32 KiB a loss.

A share has the scopes of its copy, and the product is work of these as well (`place-records`).

It is left as it is where the loop writes memory; with `in_order` also where records stand between
copy and product.
"""

from dataclasses import dataclass
from functools import partial, reduce
from typing import ClassVar

from proton.dialect import isa
from proton.dialect.attributes import COPIED_AHEAD, TILE_LOOP
from proton.dialect.builtin import integer
from proton.dialect.emit import constant, emit_when, index_constant
from proton.dialect.memory import (
    address_and_stride,
    chosen_rows,
    element_pointer,
    memref_at,
    taken_apart,
)
from proton.dialect.mlir import (
    Module,
    Operation,
    Type,
    Value,
    arith,
    ir,
    linalg,
    llvm,
    memref,
    scf,
    vector,
)
from proton.dialect.regions import ForLoop, is_inside
from proton.dialect.traits import Address, KeepsMemory, Recomputed, Records, View, Writes, has
from proton.dialect.walk import (
    all_ops,
    before,
    defining_op,
    functions,
    ops_named,
    parent_of,
    producer_of,
    users,
)
from proton.passes import Pass, register
from proton.transforms.cpu.next_iteration import NextIteration
from proton.transforms.cpu.shares import Shares, share_number

AHEAD = 2  # tiles between fetching a share and copying it
CROWDED = 8 << 10  # bytes between rows of which 256 fill sets of 16 lines in 2 MiB


@register
@dataclass(frozen=True)
class CopyNextIteration(Pass):
    """Moves copies in loops of products into the iteration before; with `in_place` also copies what
    would be read in place."""

    name: ClassVar[str] = "copy-next-iteration"

    in_place: bool = False
    in_order: bool = False

    def run(self, module: Module) -> None:
        for function in functions(module):
            loops = {
                parent_of(parent_of(op)): None
                for op in ops_named(function, scf.ForOp)
                if TILE_LOOP in op.attributes
            }
            # All before the first one moves: copies, which have loops, are made anew.
            for found in [self._found(op) for op in loops if isa(op, scf.ForOp)]:
                if found is not None:
                    _move(*found)

    def _found(
        self, loop: Operation
    ) -> "tuple[list[_Copy], NextIteration, Operation, Operation] | None":
        """The copies to move of a loop with one product, and the product's loops."""
        ops = [view.operation for view in ForLoop(loop).body.operations]
        nests = [(op, tiles) for op in ops if isa(op, scf.ForOp) and (tiles := _tile_loop(op))]
        if len(nests) != 1:
            return None
        nest, tiles = nests[0]
        end, iteration = ops.index(nest), NextIteration(loop)
        copies = [
            copy
            for number, op in enumerate(ops[:end])
            if (copy := _as_copy(op)) is not None
            and (self.in_place or not copy.in_place)
            and copy.is_for(nest, iteration)
            and not (self.in_order and any(has(other, Records) for other in ops[number:end]))
        ]
        if not copies or any(_may_write(op) for op in all_ops(loop)):
            return None
        return copies, iteration, nest, tiles


def _tile_loop(nest: Operation) -> Operation | None:
    """The loop over tiles that stands directly in a loop."""
    for view in ForLoop(nest).body.operations:
        if TILE_LOOP in view.operation.attributes:
            return view.operation
    return None


@dataclass(frozen=True)
class _Copy:
    """A block of memory that an iteration copies, or reads in place where it is whole."""

    op: Operation  # the copy, or a branch by whether the block is whole
    view: Value  # the memory
    used: Value  # what the product reads

    @property
    def in_place(self) -> bool:
        """True if a whole block is not copied."""
        return len(self.op.results) > 0

    @property
    def condition(self) -> Value | None:
        """Whether the block is whole; None where it always is."""
        return self.op.operands[0] if isa(self.op, scf.IfOp) else None

    def is_for(self, nest: Operation, iteration: NextIteration) -> bool:
        """True if the product alone reads it, and the next iteration's block is known."""
        known = [self.view] if self.condition is None else [self.view, self.condition]
        if not Shares.divide(self.view.type) or not all(map(iteration.is_known, known)):
            return False
        readers = users(self.used)
        if not self.in_place:
            buffer = _allocation(self.used)
            if buffer is None or any(u not in readers for u in _all_readers(buffer)):
                return False
        return iteration.changes(self.view) and all(
            user == self.op or is_inside(user, self.op) or is_inside(user, nest) for user in readers
        )

    @property
    def _room(self) -> tuple[int, int]:
        """The rows and columns of a buffer for a block."""
        alike = self.view if self.in_place else _allocation(self.used)
        assert alike is not None
        rows, columns = alike.type.shape
        return rows, columns

    def doubled(self) -> Value:
        """The address of two buffers for a block each."""
        type_ = ir.MemRefType.get([2, *self._room], self.view.type.element_type)
        return taken_apart(memref.AllocOp(type_, [], []).result)[0]

    def half(self, address: Value, number: Value) -> Value:
        """One of them."""
        shape, element = self.view.type.shape, self.view.type.element_type
        rows, stride = self._room
        with self.op.location:
            offset = arith.MulIOp(number, index_constant(rows * stride)).result
            place = element_pointer(address, arith.IndexCastOp(integer(64), offset).result, element)
            made = _marked(memref_at(place, tuple(shape), element, [stride, 1]))
            return made if self.in_place else _cast(made, self.used.type)


def _as_copy(op: Operation) -> _Copy | None:
    """The copy that an op is: `linalg.copy`, or a branch of which one side copies memory, or gives
    it in place."""
    if isa(op, linalg.CopyOp):
        return _copied(op, op)
    if not isa(op, scf.IfOp) or not len(op.regions[1].blocks):
        return None
    *then, end = (view.operation for view in op.regions[0].blocks[0].operations)
    work = [inner for inner in then if not has(inner, Recomputed)]
    if not len(op.results):
        is_copy = len(work) == 1 and isa(work[0], linalg.CopyOp)
        return _copied(op, work[0]) if is_copy else None
    if len(op.results) != 1 or not isinstance(op.results[0].type, ir.MemRefType) or work:
        return None
    view = _memory(end.operands[0])
    return None if view is None else _Copy(op, view, op.results[0])


def _copied(op: Operation, copy: Operation) -> _Copy | None:
    view = _memory(copy.operands[0])
    return None if view is None else _Copy(op, view, copy.operands[1])


def _memory(value: Value) -> Value | None:
    """The view of memory with contiguous rows that a value is, by way of casts."""
    while (op := defining_op(value)) is not None and isa(op, memref.CastOp):
        value = op.operands[0]
    if not isa(op, memref.ReinterpretCastOp):
        return None
    return value if value.type.get_strides_and_offset()[0][-1:] == [1] else None


def _allocation(value: Value) -> Value | None:
    """The allocation that a value is, is a view of, or an address in."""
    while (op := defining_op(value)) is not None and has(op, View, Address):
        value = op.operands[0]
    return value if isa(op, memref.AllocOp) else None


def _all_readers(value: Value) -> list[Operation]:
    """The users of a value and of views of it, but for those."""
    found = []
    for user in users(value):
        found += _all_readers(user.results[0]) if has(user, View) else [user]
    return found


def _may_write(op: Operation) -> bool:
    """True if an op may write memory that is no local buffer."""
    if not has(op, Writes) or has(op, Recomputed, KeepsMemory):
        return False
    if isa(op, llvm.InlineAsmOp):
        return "has_side_effects" in op.attributes
    if isa(op, memref.StoreOp, vector.StoreOp):
        return _allocation(op.operands[1]) is None
    if isa(op, llvm.MemcpyOp):
        return _allocation(op.operands[0]) is None
    if isa(op, linalg.CopyOp, linalg.FillOp, linalg.GenericOp):
        return _allocation(op.operands[len(op.operands) - 1]) is None
    return True


def _move(copies: list[_Copy], iteration: NextIteration, nest: Operation, tiles: Operation) -> None:
    """Moves copies of a loop one iteration ahead."""
    with before(iteration.loop):
        addresses = [copy.doubled() for copy in copies]
    for copy in copies:
        _marked(copy.view)  # and so are its clones
    with ir.InsertionPoint.at_block_begin(iteration.block), iteration.loop.location:
        number, is_later = _place_of_iteration(iteration)
        this = arith.RemUIOp(number, index_constant(2)).result
        other = arith.SubIOp(index_constant(1), this).result
        pairs = list(zip(copies, addresses, strict=True))
        halves, others = ([copy.half(both, n) for copy, both in pairs] for n in (this, other))
        blocks = [iteration.later(copy.view) for copy in copies]
        wholes = [_is_whole_later(copy, iteration) for copy in copies]
        crowded = [
            _is_crowded(iteration.now(copy.view)) if copy.in_place else None for copy in copies
        ]
    with ir.InsertionPoint.at_block_begin(ForLoop(tiles).body), tiles.location:
        share = share_number(nest, tiles)
        for place, copy in enumerate(copies):
            block, whole, apart = blocks[place], wholes[place], crowded[place]
            shares = Shares(block.type, nest, tiles)
            with copy.op.location:
                if apart is not None:
                    fetched = arith.AndIOp(whole, _not(apart)).result
                    emit_when(fetched, partial(shares.fetch, share, block))
                    whole = arith.AndIOp(whole, apart).result
                emit_when(whole, partial(shares.copy, share, block, others[place], AHEAD))
    for copy, half, apart in zip(copies, halves, crowded, strict=True):
        _read(copy, half, [is_later] if apart is None else [is_later, apart], nest)


def _place_of_iteration(iteration: NextIteration) -> tuple[Value, Value]:
    """An iteration's number (`index`, whose lowest bit counts), and whether it is not the first."""
    lower, _, step = ForLoop(iteration.loop).bounds
    passed = arith.SubIOp(ForLoop(iteration.loop).induction_var, lower).result
    is_later = arith.CmpIOp(arith.CmpIPredicate.ne, passed, constant(0, passed.type)).result
    number = arith.DivUIOp(passed, step).result
    if not isinstance(number.type, ir.IndexType):
        number = arith.IndexCastOp(ir.IndexType.get(), number).result
    return number, is_later


def _is_whole_later(copy: _Copy, iteration: NextIteration) -> Value:
    """Whether there is a next iteration whose block is whole."""
    if copy.condition is None:
        return iteration.goes_on
    return arith.AndIOp(iteration.goes_on, iteration.later(copy.condition)).result


def _is_crowded(block: Value) -> Value:
    """Whether the rows of a block meet in a few sets of a cache."""
    elements = CROWDED * 8 // block.type.element_type.width
    rest = arith.RemUIOp(address_and_stride(block)[1], index_constant(elements)).result
    return arith.CmpIOp(arith.CmpIPredicate.eq, rest, index_constant(0)).result


def _not(condition: Value) -> Value:
    return arith.XOrIOp(condition, constant(1, integer(1))).result


def _read(copy: _Copy, half: Value, conditions: list[Value], nest: Operation) -> None:
    """Has an iteration read what the iteration before copied, where it did: under all of
    `conditions`, if the block is whole."""
    if copy.condition is not None:
        conditions = [*conditions, copy.condition]
    with before(nest if copy.in_place else copy.op):
        copied = reduce(lambda one, other: arith.AndIOp(one, other).result, conditions)
        if copy.in_place:
            block = _marked(chosen_rows(copied, half, copy.used))
            _replace_in(nest, copy.used, _cast(block, copy.used.type))
            return
        emit_when(_not(copied), lambda: _clone(copy.op))
    copy.op.erase()
    copy.used.replace_all_uses_with(half)
    _erase_unused(copy.used)


def _clone(op: Operation) -> None:
    op.clone()


def _replace_in(nest: Operation, old: Value, new: Value) -> None:
    for op in all_ops(nest):
        for position, operand in enumerate(op.operands):
            if operand == old:
                op.operands[position] = new


def _erase_unused(view: Value) -> None:
    """Erases a buffer, and the views of it, that nothing uses any more."""
    op = defining_op(view)
    while op is not None and not users(op.results[0]):
        base = op.operands[0] if has(op, View) else None
        op.erase()
        op = None if base is None else defining_op(base)


def _cast(block: Value, type_: Type) -> Value:
    return block if block.type == type_ else memref.CastOp(type_, block).result


def _marked(view: Value) -> Value:
    """A view of which it is said that it needs no fetches."""
    producer_of(view).attributes[COPIED_AHEAD] = ir.UnitAttr.get()
    return view
