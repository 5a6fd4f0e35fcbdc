"""Fetches the blocks that the next iteration of a loop reads while this iteration computes.

The processor's own prefetchers stop at the end of a page, and a row of a matrix often is one. So
each row, or row of a block, begins with a wait, and the compiler knows the address an iteration
before:

    for i, (offset = 0):                         for i, (offset = 0):
      %block = view (base + offset)                %then = last iteration ? offset : offset + step
      work(%block)                                 %next = view (base + %then)
      yield offset + step                          %block = view (base + offset)
                                                   prefetch %next; work(%block)
                                                   yield offset + step

The fetches are spread over the work, as the processor can wait for a dozen lines at a time: each
`linalg` op of the iteration, or each register tile of a product, is preceded by its share of them.
The last iteration fetches what it has, so there is no branch. One piece of assembly, a loop,
fetches the lines of a row: LLVM takes as long for a loop of fetches, or for calls of
`llvm.prefetch`, as for a loop that computes.
"""

import math
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa
from proton.dialect.attributes import COPIED_AHEAD, TILE_LOOP
from proton.dialect.builtin import integer
from proton.dialect.emit import index_constant, index_loop
from proton.dialect.memory import DYNAMIC, element_pointer, taken_apart
from proton.dialect.mlir import (
    Block,
    Module,
    Operation,
    Type,
    Value,
    arith,
    ir,
    linalg,
    memref,
    scf,
    vector,
)
from proton.dialect.regions import ForLoop
from proton.dialect.walk import before, functions, ops_named, parent_of
from proton.passes import Pass, register
from proton.transforms.cpu.next_iteration import NextIteration
from proton.transforms.cpu.shares import CACHE_LINE, fetch_lines, iterations, share_number

SMALLEST = 1 << 10  # bytes of a block that is worth it
FIRST_LEVEL, SECOND_LEVEL = 16 << 10, 256 << 10  # bytes of a block that a cache has room for


@register
@dataclass(frozen=True)
class PrefetchNextIteration(Pass):
    """Adds fetches to loops that read blocks in place or copy them."""

    name: ClassVar[str] = "prefetch-next-iteration"

    def run(self, module: Module) -> None:
        for function in functions(module):
            for op in ops_named(function, scf.ForOp):
                _FetchingIteration(op).prefetch()


@dataclass
class _FetchingIteration:
    """One iteration of a loop."""

    loop: Operation

    @property
    def block(self) -> Block:
        return ForLoop(self.loop).body

    def prefetch(self) -> None:
        works, iteration = self._works(), NextIteration(self.loop)
        views = [view for view in self._views() if works and iteration.changes(view)]
        if not views:
            return
        with ir.InsertionPoint.at_block_begin(self.block), self.loop.location:
            blocks = [_Block(iteration.later(view)) for view in views]
        for number, work in enumerate(works):
            for block in blocks:
                if isa(work, scf.ForOp):
                    _fetch_by_tiles(block, work)
                else:
                    with before(work):
                        block.fetch_share(index_constant(number), len(works))

    def _works(self) -> list[Operation]:
        """What the fetches are spread over: products where there are any."""
        ops = [op.operation for op in self.block.operations]
        tiles = [
            tile
            for op in ops
            if isa(op, scf.ForOp)
            for tile in ops_named(op, scf.ForOp)
            if TILE_LOOP in tile.attributes and parent_of(tile) == op
        ]
        return tiles[:1] or [op for op in ops if isa(op, linalg.GenericOp)]

    def _views(self) -> list[Value]:
        """Blocks of memory that an iteration reads: in it, or in a branch that depends on the
        mask."""
        return [
            op.results[0]
            for op in ops_named(self.loop, memref.ReinterpretCastOp)
            if _is_fetched(op.results[0].type)
            and COPIED_AHEAD not in op.attributes
            and self._is_of_iteration(op)
            and not _is_written(op.results[0])
        ]

    def _is_of_iteration(self, op: Operation) -> bool:
        parent = parent_of(op)
        if isa(parent, scf.IfOp):
            parent = parent_of(parent)
        return bool(parent == self.loop)


def _is_fetched(type_: Type) -> bool:
    """True if blocks of a type are large enough to be worth it, and their rows contiguous."""
    strides, _ = type_.get_strides_and_offset()
    return bool(strides) and strides[-1] == 1 and SMALLEST <= _bytes(type_) <= SECOND_LEVEL


def _bytes(type_: Type) -> int:
    return int(math.prod(type_.shape) * type_.element_type.width // 8)


def _is_written(view: Value) -> bool:
    """True if a block is the destination of anything, by way of casts and branches."""
    for use in view.uses:
        op, place = use.owner.operation, use.operand_number
        if isa(op, memref.CastOp) and _is_written(op.results[0]):
            return True
        if isa(op, scf.YieldOp):
            parent = parent_of(op)
            if not isa(parent, scf.IfOp) or _is_written(parent.results[place]):
                return True
        if op.name.startswith("linalg.") and place == len(op.operands) - 1:
            return True
        if isa(op, vector.StoreOp, memref.StoreOp):
            return True
    return False


def _fetch_by_tiles(block: "_Block", tiles: Operation) -> None:
    """Fetches a block by the iterations of a tile loop and of the loop around it."""
    outer = parent_of(tiles)
    with ir.InsertionPoint.at_block_begin(ForLoop(tiles).body), tiles.location:
        block.fetch_share(share_number(outer, tiles), iterations(outer) * iterations(tiles))


class _Block:
    """A block to fetch, whose rows are contiguous: its address and its strides are computed here.

    A row is fetched in equal pieces. The last one may reach over the row's end by less than there
    are pieces: a fetch of memory that is not there does nothing.
    """

    def __init__(self, view: Value) -> None:
        self.type = view.type
        self.address, *given = taken_apart(view)
        dynamic = iter(given)
        strides, _ = self.type.get_strides_and_offset()
        self.strides = [next(dynamic) if s == DYNAMIC else index_constant(s) for s in strides]
        self.lines = -(-self.type.shape[-1] * self.type.element_type.width // (CACHE_LINE * 8))

    def fetch_share(self, share: Value, shares: int) -> None:
        """Fetches one of `shares` equal parts."""
        rows = math.prod(self.type.shape[:-1])
        most = min(-(-rows * self.lines // shares), self.lines)
        per_row = -(-self.lines // most)
        count = -(-rows * per_row // shares)
        first = arith.MulIOp(share, index_constant(count)).result
        if count == 1:
            self._fetch_piece(first, per_row)
            return
        with index_loop(count) as number:
            self._fetch_piece(arith.AddIOp(first, number).result, per_row)

    def _fetch_piece(self, number: Value, per_row: int) -> None:
        """Fetches one of the pieces, which are numbered row by row."""
        lines = -(-self.lines // per_row)
        width = lines * CACHE_LINE * 8 // self.type.element_type.width
        *row, piece = _delinearized(number, [*self.type.shape[:-1], per_row])
        offset = arith.MulIOp(piece, index_constant(width)).result
        for place, stride in zip(row, self.strides, strict=False):
            offset = arith.AddIOp(offset, arith.MulIOp(place, stride).result).result
        offset = arith.IndexCastOp(integer(64), offset).result
        self._fetch(element_pointer(self.address, offset, self.type.element_type), lines)

    def _fetch(self, address: Value, lines: int) -> None:
        """Fetches lines in a row into the cache that has room for the block."""
        level = "t0" if _bytes(self.type) <= FIRST_LEVEL else "t1"
        fetch_lines(address, lines, level)


def _delinearized(place: Value, shape: list[int]) -> list[Value]:
    """The indices of the element of a row-major block at a place."""
    indices = []
    for size in reversed(shape[1:]):
        factor = index_constant(size)
        indices.append(arith.RemUIOp(place, factor).result)
        place = arith.DivUIOp(place, factor).result
    return [place, *reversed(indices)]
