"""Copies the factors of a product for the next turn of a loop while this turn computes.

    for i:                                  copy block(0) to buffer[0]
      copy block(i) to buffer               for i:
      for each register tile:                 for each register tile:
        product of buffer                       copy a share of block(i + 1) to buffer[(i + 1) % 2]
                                                product of buffer[i % 2]

A copy by itself waits for memory, as its loads come faster than the lines do. A share of it, a few
vectors, is next to nothing beside a tile of a product, and its lines are fetched some tiles ahead.
A block that is read in place is copied, too: rows that lie a power of two apart meet in a few sets
of the caches, where lines that are fetched a turn ahead, and those that the turn reads, put each
other out. A block that the mask cuts, or that wraps around, is copied behind the product.

It is left as it is where the loop writes memory, or records stand between copy and product.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect.attributes import COPIED_AHEAD, TILE_LOOP
from proton.dialect.builtin import integer
from proton.dialect.emit import constant, emit_when, index_constant
from proton.dialect.memory import element_pointer, memref_at, taken_apart
from proton.dialect.mlir import Module, Operation, Value, arith, ir, memref
from proton.dialect.regions import ForLoop, is_inside
from proton.dialect.traits import Recomputed, Records, View, Writes, has
from proton.dialect.walk import (
    all_ops,
    before,
    defining_op,
    functions,
    ops_named,
    producer_of,
    users,
)
from proton.passes import Pass, register
from proton.transforms.next_turn import NextTurn
from proton.transforms.shares import Shares, share_number

SMALLEST = 16 << 10  # bytes of a block that is worth it
AHEAD = 2  # tiles between fetching a share and copying it
LEFT = True


@register
@dataclass(frozen=True)
class CopyNextTurn(Pass):
    """Moves copies in loops of products into the turn before."""

    name: ClassVar[str] = "copy-next-turn"

    def run(self, module: Module) -> None:
        for function in functions(module):
            loops = [_Loop(op) for op in ops_named(function, "scf.for")]
            for loop in loops:
                loop.run()


@dataclass
class _Copy:
    """A block of memory that a turn copies, or would where it is not read in place."""

    op: Operation  # the copy, or a branch by whether the block is whole
    view: Value  # the memory
    used: Value  # what the product reads
    rest: Operation | None  # of the copy in another branch, its buffer's allocation

    @property
    def condition(self) -> Value | None:
        """Whether the block is whole; None where it always is."""
        return self.op.operands[0] if self.op.name == "scf.if" else None


class _Loop:
    """A loop, the tiles of whose product do the copies."""

    def __init__(self, loop: Operation) -> None:
        self.loop = loop
        self.ops = [view.operation for view in ForLoop(loop).body.operations]
        self.nests = [op for op in self.ops if op.name == "scf.for" and _tile_loop(op) is not None]

    def run(self) -> None:
        if len(self.nests) != 1:
            return
        nest = self.nests[0]
        end = self.ops.index(nest)
        copies = [
            copy
            for number, op in enumerate(self.ops[:end])
            if (copy := self._copy(op)) is not None
            and not any(has(other, Records) for other in self.ops[number:end])
        ]
        if copies and not any(_may_write(op) for op in all_ops(self.loop)):
            _Mover(self.loop, nest, _tile_loop(nest)).run(copies)

    def _copy(self, op: Operation) -> _Copy | None:
        """What an op of the body copies, or gives to the product alone."""
        copy = _as_copy(op)
        if copy is None or not Shares.divide(copy.view.type):
            return None
        if not LEFT and copy.op.name != "linalg.copy" and len(copy.op.results):
            return None
        buffer = copy.used if len(op.results) else _allocation(copy.used)
        if buffer is None or not all(self._is_of_product(u, op) for u in _all_users(buffer)):
            return None
        turn, needed = NextTurn(self.loop), [copy.view, *_outer_values(op, self.loop)]
        known = [turn.is_known(value) for value in needed if _allocation(value) is None]
        return copy if all(known) and turn.changes(copy.view) else None

    def _is_of_product(self, user: Operation, copy: Operation) -> bool:
        return is_inside(user, self.nests[0]) or is_inside(user, copy) or has(user, View)


def _tile_loop(nest: Operation) -> Operation | None:
    """The loop over tiles that stands directly in a loop."""
    for view in ForLoop(nest).body.operations:
        if TILE_LOOP in view.operation.attributes:
            return view.operation
    return None


def _as_copy(op: Operation) -> _Copy | None:
    """The copy that an op is: `linalg.copy`, or a branch of which one side copies memory or gives
    it in place, and the other fills the same buffer, or one of its own."""
    if op.name == "linalg.copy":
        view = _memory(op.operands[0])
        return None if view is None else _Copy(op, view, op.operands[1], None)
    if op.name != "scf.if" or not len(op.regions[1].blocks):
        return None
    then, other = ([v.operation for v in r.blocks[0].operations] for r in op.regions)
    if not len(op.results):
        copies = [inner for inner in then if inner.name == "linalg.copy"]
        if len(copies) != 1 or not all(has(o, Recomputed) for o in then[:-1] if o != copies[0]):
            return None
        view, used = _memory(copies[0].operands[0]), copies[0].operands[1]
        return None if view is None else _Copy(op, view, used, None)
    if len(op.results) != 1 or not isinstance(op.results[0].type, ir.MemRefType):
        return None
    view, buffer = _memory(then[-1].operands[0]), _allocation(other[-1].operands[0])
    if view is None or buffer is None or not all(has(o, Recomputed) for o in then[:-1]):
        return None
    return _Copy(op, view, op.results[0], producer_of(buffer))


def _memory(value: Value) -> Value | None:
    """The view of memory with contiguous rows that a value is, by way of casts."""
    while (op := defining_op(value)) is not None and op.name == "memref.cast":
        value = op.operands[0]
    if op is None or op.name != "memref.reinterpret_cast":
        return None
    return value if value.type.get_strides_and_offset()[0][-1:] == [1] else None


def _allocation(value: Value) -> Value | None:
    """The allocation that a value is, or is a view of."""
    while (op := defining_op(value)) is not None and has(op, View):
        value = op.operands[0]
    return value if op is not None and op.name in ("memref.alloc", "memref.alloca") else None


def _all_users(value: Value) -> list[Operation]:
    """The users of a value, and of views of it."""
    found = []
    for user in users(value):
        found.append(user)
        if has(user, View):
            found += _all_users(user.results[0])
    return found


def _outer_values(op: Operation, loop: Operation) -> list[Value]:
    """The values that an op, with all in it, takes from around it in a loop."""
    found = {}
    for inner in [op, *all_ops(op)]:
        for value in inner.operands:
            producer = defining_op(value)
            owner = value.owner.owner.operation if producer is None else producer
            if not is_inside(owner, op) and is_inside(owner, loop):
                found[value] = None
    return list(found)


def _may_write(op: Operation) -> bool:
    """Whether an op may write memory that is no local buffer."""
    if not has(op, Writes) or has(op, Recomputed):
        return False
    if op.name == "llvm.inline_asm":
        return "has_side_effects" in op.attributes
    if op.name in ("memref.store", "vector.store"):
        return _allocation(op.operands[1]) is None
    if op.name in ("linalg.copy", "linalg.fill", "linalg.generic", "linalg.matmul"):
        return _allocation(op.operands[len(op.operands) - 1]) is None
    return op.name not in _HARMLESS


_HARMLESS = frozenset(
    {
        *("memref.alloc", "linalg.yield", "vector.broadcast", "vector.fma"),
        *("memref.extract_strided_metadata", "memref.extract_aligned_pointer_as_index"),
    }
)


class _Mover:
    """Moves copies of a loop one turn ahead."""

    def __init__(self, loop: Operation, nest: Operation, tiles: Operation) -> None:
        self.loop, self.nest, self.tiles = loop, nest, tiles
        self.turn = NextTurn(loop)

    def run(self, copies: list[_Copy]) -> None:
        view = ForLoop(self.loop)
        lower, upper, step = view.bounds
        with before(self.loop):
            buffers = [_double_buffer(copy) for copy in copies]
            runs = arith.CmpIOp(arith.CmpIPredicate.slt, lower, upper).result
            for copy, buffer in zip(copies, buffers, strict=True):
                self._copy_first(copy, _half(buffer, copy, index_constant(0)), runs)
        with ir.InsertionPoint.at_block_begin(view.body), self.loop.location:
            number = arith.DivUIOp(arith.SubIOp(view.induction_var, lower).result, step).result
            if not isinstance(number.type, ir.IndexType):
                number = arith.IndexCastOp(ir.IndexType.get(), number).result
            half = arith.RemUIOp(number, index_constant(2)).result
            other = arith.SubIOp(index_constant(1), half).result
            halves = [
                [_half(b, c, h) for h in (half, other)]
                for b, c in zip(buffers, copies, strict=True)
            ]
            later = [self._later(copy) for copy in copies]
        for copy, (this, following), values in zip(copies, halves, later, strict=True):
            self._move(copy, this, following, values)

    def _later(self, copy: _Copy) -> dict[Value, Value]:
        """The values of a copy in the next turn."""
        values = {value: self.turn.later(value) for value in self._values(copy)}
        _mark(values[copy.view])
        return values

    def _values(self, copy: _Copy) -> list[Value]:
        outer = [v for v in _outer_values(copy.op, self.loop) if _allocation(v) is None]
        return [copy.view, *outer]

    def _copy_first(self, copy: _Copy, buffer: Value, runs: Value) -> None:
        """Ahead of the loop, what its first turn reads."""
        values = {value: self.turn.first(value) for value in self._values(copy)}

        def whole() -> None:
            _clone(copy, buffer, values)

        emit_when(runs, whole)

    def _move(self, copy: _Copy, this: Value, following: Value, later: dict[Value, Value]) -> None:
        condition, goes_on = copy.condition, self.turn.goes_on
        with before(self.nest):
            whole = goes_on
            if condition is not None:
                given = later.get(condition, condition)
                whole = arith.AndIOp(goes_on, given).result
                cut = arith.AndIOp(goes_on, arith.XOrIOp(given, constant(1, integer(1))).result)
            used = this
            if this.type != copy.used.type:
                used = memref.CastOp(copy.used.type, this).result
        shares = Shares(later[copy.view].type, self.nest, self.tiles)
        with ir.InsertionPoint.at_block_begin(ForLoop(self.tiles).body), self.tiles.location:
            share = share_number(self.nest, self.tiles)
            emit_when(whole, lambda: shares.copy(share, later[copy.view], following, AHEAD))
        if condition is not None:
            with ir.InsertionPoint.after(self.nest), self.nest.location:
                emit_when(cut.result, lambda: _clone(copy, following, later, cut=True))
            for user in users(cut.result):
                user.attributes[COPIED_AHEAD] = ir.UnitAttr.get()
        _replace_in(self.nest, copy.used, used)
        buffer = None if len(copy.op.results) else copy.used
        copy.op.erase()
        if buffer is not None:
            _erase_unused(buffer)


def _erase_unused(view: Value) -> None:
    """Erases a buffer, and the views of it, that nothing uses any more."""
    op = defining_op(view)
    while op is not None and not users(op.results[0]):
        base = op.operands[0] if has(op, View) else None
        op.erase()
        op = None if base is None else defining_op(base)


def _mark(view: Value) -> None:
    """Says of a view, and those that it is made of, that it is fetched by shares."""
    producer_of(view).attributes[COPIED_AHEAD] = ir.UnitAttr.get()


def _shape(copy: _Copy) -> list[int]:
    """The rows and columns of a copy's buffer."""
    buffer = copy.rest.results[0] if copy.rest is not None else _allocation(copy.used)
    return list(buffer.type.shape)


def _double_buffer(copy: _Copy) -> Value:
    type_ = ir.MemRefType.get([2, *_shape(copy)], copy.view.type.element_type)
    return memref.AllocOp(type_, [], []).result


def _half(buffer: Value, copy: _Copy, half: Value) -> Value:
    """The buffer of one of two turns, with the type of the block's own."""
    type_ = copy.rest.results[0].type if copy.rest is not None else copy.used.type
    element, (_, rows, stride) = type_.element_type, buffer.type.shape
    offset = arith.MulIOp(half, index_constant(rows * stride)).result
    address, *_ = taken_apart(buffer)
    place = element_pointer(address, arith.IndexCastOp(integer(64), offset).result, element)
    strides = None if stride == type_.shape[-1] else [stride, 1]
    made = memref_at(place, tuple(type_.shape), element, strides)
    _mark(made)
    return made


def _clone(copy: _Copy, buffer: Value, values: dict[Value, Value], cut: bool = False) -> None:
    """The copy of a block, to a buffer, of other values; with `cut` where it is not whole."""
    if copy.op.name == "linalg.copy":
        _copy_whole(values[copy.view], buffer)
        return
    condition = copy.condition
    assert condition is not None
    if cut:
        _clone_rest(copy, buffer, values)
        return
    given = values.get(condition, condition)
    emit_when(given, lambda: _copy_whole(values[copy.view], buffer))
    negated = arith.XOrIOp(given, constant(1, integer(1))).result
    emit_when(negated, lambda: _clone_rest(copy, buffer, values))


def _copy_whole(view: Value, buffer: Value) -> None:
    from proton.dialect.linalg import copy_into

    copy_into(view, buffer)


def _clone_rest(copy: _Copy, buffer: Value, values: dict[Value, Value]) -> None:
    """What the other branch does, to another buffer."""
    mapping = dict(values)
    mapping[copy.rest.results[0] if copy.rest is not None else copy.used] = buffer
    for view in list(copy.op.regions[1].blocks[0].operations)[:-1]:
        op = view.operation
        if has(op, View) or (copy.rest is not None and op == copy.rest):
            continue
        new = op.clone()
        for inner in [new, *all_ops(new)]:
            for position, operand in enumerate(inner.operands):
                if operand in mapping:
                    inner.operands[position] = mapping[operand]
        for result, made in zip(op.results, new.results, strict=True):
            mapping[result] = made


def _replace_in(nest: Operation, old: Value, new: Value) -> None:
    for op in all_ops(nest):
        for position, operand in enumerate(op.operands):
            if operand == old:
                op.operands[position] = new
