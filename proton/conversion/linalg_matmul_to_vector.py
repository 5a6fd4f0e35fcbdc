"""`linalg.matmul` on buffers becomes loops around a register tile of vectors.

The tile of the result, some rows of some vectors, stays in registers while k runs:

    for j, i:  acc[r] = 0
               for k:  acc[r] += A[i + r, k] * B[k, j : j + cols]     r = 0 .. rows - 1
               C[i + r, j : j + cols] += acc[r]

A tile that is deep adds to the result at its end: the next tile then begins without a wait for
what this one stores, and sums of sums have half the rounding error. One of few iterations takes the
result as its first sum, as the additions would be 2 % of its work.

Four rows of four AVX-512 registers are 16 accumulators, enough to hide the latency of a fused
multiply-add; more spill (shared measurement: 16 accumulators 120 GFLOP/s, 32 68 to 86). Eight rows
of two take as long with one thread, and 3 % longer with two: rows that lie
a page apart meet in one set of the first-level cache. The loops are emitted here rather than by the
transform dialect: that takes 13 ms of compile time for the same inner loop.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import isa
from proton.dialect.attributes import TILE_LOOP
from proton.dialect.builtin import integer
from proton.dialect.emit import filled, index_constant, index_loop
from proton.dialect.linalg import copy_into
from proton.dialect.memory import DYNAMIC, element_pointer, taken_apart
from proton.dialect.mlir import Module, Operation, Type, Value, ir
from proton.dialect.regions import ForLoop, yield_values
from proton.dialect.upstream import arith, linalg, llvm, memref, vector
from proton.dialect.walk import before, defining_op, ops_named, producer_of, users
from proton.passes import Pass, register

ACCUMULATORS = {512: 16, 256: 8}  # by vector bits: of 32 registers, or 16
VECTORS = {512: 4, 256: 2}  # in a row of the tile, at most
MOST_ROWS = 8  # of a tile that has fewer vectors in a row
DEEP = 64  # iterations of a tile whose sums begin with 0


@register
@dataclass(frozen=True)
class LinalgMatmulToVector(Pass):
    """Lowers each `linalg.matmul` on memrefs to vector code for `vector_bits` wide registers."""

    name: ClassVar[str] = "linalg-matmul-to-vector"

    vector_bits: int = 256

    def run(self, module: Module) -> None:
        for op in ops_named(module, linalg.MatmulOp):
            with before(op):
                _lower(op, self.vector_bits)
            parts = {
                producer_of(factor)
                for factor in list(op.operands)[:2]
                if _whole(factor)[1] is not None
            }
            op.erase()
            for part in parts:  # CSE may have made one of the factors of several products
                if not users(part.result):
                    part.erase()


def _lower(op: Operation, vector_bits: int) -> None:
    (a, depth), (b, _), c = _whole(op.operands[0]), _whole(op.operands[1]), op.operands[2]
    (rows, most), columns = a.type.shape, b.type.shape[1]
    depth = index_constant(most) if depth is None else depth
    element = c.type.element_type
    lanes = max(1, vector_bits // element.width)
    tile_columns = min(columns, VECTORS[vector_bits] * lanes)
    fitting = ACCUMULATORS[vector_bits] // -(-tile_columns // lanes)
    tile_rows = min(rows, fitting, MOST_ROWS)
    b = _with_unit_stride(b)
    result = _with_unit_stride(c)
    tile = _Tile(a, b, result, tile_rows, ir.VectorType.get([tile_columns], element))
    with index_loop(columns, tile_columns) as j, index_loop(rows, tile_rows) as i:
        i.owner.owner.attributes[TILE_LOOP] = ir.UnitAttr.get()
        tile.emit(i, j, depth, is_deep=most >= DEEP)
    if result is not c:
        copy_into(result, c)


def _whole(factor: Value) -> tuple[Value, Value | None]:
    """A block, and how much of the dimension to sum over is to be taken where that is a part of it
    (`masked_products.py`)."""
    op = defining_op(factor)
    if not isa(op, memref.SubViewOp) or DYNAMIC not in factor.type.shape:
        return factor, None
    return op.operands[0], op.operands[1]


def _with_unit_stride(buffer: Value) -> Value:
    """The buffer, or a row-major copy of it where its rows are not contiguous."""
    type_ = buffer.type
    row_major = ir.MemRefType.get(type_.shape, type_.element_type)
    strides, _ = type_.get_strides_and_offset()
    if strides[-1] == 1 or type_ == row_major:
        return buffer
    packed = memref.AllocOp(row_major, [], []).result
    copy_into(buffer, packed)
    return packed


@dataclass(frozen=True)
class _Tile:
    """The register tile: `rows` vectors of `type`."""

    a: Value
    b: Value
    c: Value
    rows: int
    type: Type

    def emit(self, i: Value, j: Value, depth: Value, *, is_deep: bool) -> None:
        """One tile of the result, at (i, j)."""
        places = [self._row(i, r) for r in range(self.rows)]
        initial = [filled(self.type, 0)] * self.rows if is_deep else self._result(places, j)
        rows = self._rows_of_a(places)
        loop = ForLoop.create([index_constant(0), depth, index_constant(1)], initial)
        k, accumulators = loop.induction_var, loop.iter_args
        with ir.InsertionPoint(loop.body):
            line = vector.LoadOp(self.type, self.b, [k, j]).result
            sums = [
                self._multiply_add(self._factor(row, k), line, total)
                for row, total in zip(rows, accumulators, strict=True)
            ]
            yield_values(sums)
        totals: list[Value] = list(loop.op.results)
        if is_deep:
            totals = [
                self._sum(*pair) for pair in zip(self._result(places, j), totals, strict=True)
            ]
        for place, total in zip(places, totals, strict=True):
            vector.StoreOp(total, self.c, [place, j])

    def _result(self, places: list[Value], j: Value) -> list[Value]:
        """What the result has in the tile's rows."""
        return [vector.LoadOp(self.type, self.c, [place, j]).result for place in places]

    def _rows_of_a(self, places: list[Value]) -> list[Value]:
        """The tile's rows of the left factor: their indices, or where their distance is not
        known their addresses, by way of an empty instruction. LLVM would compute some from others
        in each iteration of the loop, to save registers, though there are enough."""
        strides, _ = self.a.type.get_strides_and_offset()
        if strides[0] != DYNAMIC or strides[1] != 1:
            return places
        i64, rows = integer(64), []
        address, stride = taken_apart(self.a)
        for place in places:
            offset = arith.IndexCastOp(i64, arith.MulIOp(place, stride).result).result
            row = element_pointer(address, offset, self.a.type.element_type)
            rows.append(llvm.InlineAsmOp(row.type, [row], "", "=r,0").res)
        return rows

    def _factor(self, row: Value, k: Value) -> Value:
        """An element of the left factor, in a row at an index or an address."""
        if isinstance(row.type, ir.IndexType):
            return memref.LoadOp(self.a, [row, k]).result
        element = self.a.type.element_type
        offset = arith.IndexCastOp(integer(64), k).result
        return llvm.LoadOp(element, element_pointer(row, offset, element)).result

    def _row(self, i: Value, r: int) -> Value:
        return arith.AddIOp(i, index_constant(r)).result

    def _multiply_add(self, scalar: Value, line: Value, total: Value) -> Value:
        factor = vector.BroadcastOp(self.type, scalar).result
        if isinstance(self.type.element_type, ir.FloatType):
            return vector.FMAOp(factor, line, total).result
        return self._sum(total, arith.MulIOp(factor, line).result)

    def _sum(self, one: Value, other: Value) -> Value:
        is_float = isinstance(self.type.element_type, ir.FloatType)
        return (arith.AddFOp if is_float else arith.AddIOp)(one, other).result
