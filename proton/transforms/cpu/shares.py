"""Blocks of memory divided among the register tiles of a product, which fetch or copy them."""

from proton.dialect.builtin import integer, string_attr
from proton.dialect.emit import create, emit_when, index_constant, index_loop
from proton.dialect.memory import address_and_stride, element_pointer
from proton.dialect.mlir import Operation, Type, Value, arith, ir, llvm, vector
from proton.dialect.regions import ForLoop
from proton.dialect.walk import producer_of

CACHE_LINE = 64  # bytes


def iterations(op: Operation) -> int:
    """How often a loop of constant bounds runs."""
    lower, upper, step = (producer_of(v).attributes["value"].value for v in ForLoop(op).bounds)
    return -(-(upper - lower) // step)


def share_number(outer: Operation, tiles: Operation) -> Value:
    """The number of a tile, at the beginning of the inner loop's body."""
    loops = ForLoop(outer), ForLoop(tiles)
    numbers = [arith.DivUIOp(of.induction_var, of.bounds[2]).result for of in loops]
    before_row = arith.MulIOp(numbers[0], index_constant(iterations(tiles))).result
    return arith.AddIOp(before_row, numbers[1]).result


def fetch_lines(address: Value, lines: int, level: str) -> None:
    """Fetches lines in a row into a cache. One by one: where all begin at once, what the iteration
    itself reads waits for them."""
    step = f"prefetch{level} ($0); addq $${CACHE_LINE}, $0"
    create(
        llvm.InlineAsmOp,
        address.type,
        address,
        asm_string=string_attr(f"movl $${lines}, %ecx; 1: {step}; decl %ecx; jnz 1b"),
        constraints=string_attr("=r,0,~{rcx},~{flags}"),
        has_side_effects=ir.UnitAttr.get(),
    )


class Shares:
    """A block, a matrix with contiguous rows, in equal shares of a few pieces of rows each."""

    def __init__(self, type_: Type, outer: Operation, tiles: Operation) -> None:
        self.type = type_
        (rows, columns), element = type_.shape, type_.element_type
        shares = iterations(outer) * iterations(tiles)
        lines = columns * element.width // (CACHE_LINE * 8)
        most = max(1, min(-(-rows * lines // shares), lines))
        self.per_row = lines // (1 << (most.bit_length() - 1))
        self.lines = lines // self.per_row
        self.width = columns // self.per_row
        self.pieces = rows * self.per_row
        self.count = -(-self.pieces // shares)
        self.all = self.count * shares == self.pieces

    @staticmethod
    def divide(type_: Type) -> bool:
        """True if a block's rows can be divided: a power of two of whole lines."""
        lines, rest = divmod(type_.shape[-1] * type_.element_type.width, CACHE_LINE * 8)
        return len(type_.shape) == 2 and not rest and lines > 0 and not lines & (lines - 1)

    def copy(self, share: Value, view: Value, buffer: Value, ahead: int) -> None:
        """Copies a share, and fetches the lines of the one that is `ahead` of it."""
        first = arith.MulIOp(share, index_constant(self.count)).result
        with index_loop(self.count) as number:
            piece = arith.AddIOp(first, number).result
            fetched = arith.AddIOp(piece, index_constant(self.count * ahead)).result
            self._fetch(fetched, view, "t0")
            if self.all:
                self._copy(piece, view, buffer)
            else:
                limit = index_constant(self.pieces)
                is_there = arith.CmpIOp(arith.CmpIPredicate.ult, piece, limit).result
                emit_when(is_there, lambda: self._copy(piece, view, buffer))

    def fetch(self, share: Value, view: Value) -> None:
        """Fetches the lines of a share into the second-level cache."""
        first = arith.MulIOp(share, index_constant(self.count)).result
        with index_loop(self.count) as number:
            self._fetch(arith.AddIOp(first, number).result, view, "t1")

    def _place(self, piece: Value) -> list[Value]:
        per_row = index_constant(self.per_row)
        column = arith.MulIOp(
            arith.RemUIOp(piece, per_row).result, index_constant(self.width)
        ).result
        return [arith.DivUIOp(piece, per_row).result, column]

    def _copy(self, piece: Value, view: Value, buffer: Value) -> None:
        type_ = ir.VectorType.get([self.width], self.type.element_type)
        place = self._place(piece)
        vector.StoreOp(vector.LoadOp(type_, view, place).result, buffer, place)

    def _fetch(self, piece: Value, view: Value, level: str) -> None:
        row, column = self._place(piece)
        address, stride = address_and_stride(view)
        offset = arith.AddIOp(arith.MulIOp(row, stride).result, column).result
        offset = arith.IndexCastOp(integer(64), offset).result
        fetch_lines(element_pointer(address, offset, self.type.element_type), self.lines, level)
