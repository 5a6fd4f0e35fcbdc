"""Chooses the instruction of each product: tensor cores where one fits, multiply-adds elsewhere.

A `tt.dot` becomes, by what the target has and the shape and the types allow,

- `ttng.warp_group_dot` (Hopper, four warps together): operands in swizzled shared memory, the left
  one in registers where it was computed there;
- `ttng.mma_sync` (Ampere and later): operands in the registers of each warp;
- `ttg.dot`: operands in shared memory, multiply-adds of the threads.

    %d = tt.dot %a, %b, %c : tensor<128x64xf16, #default>, ...
becomes
    %x = ttg.local_alloc %a : !ttg.memdesc<[128, 64], f16, #swizzled>
    %y = ttg.local_alloc %b : !ttg.memdesc<[64, 256], f16, #swizzled>
    %e = ttng.warp_group_dot %x, %y, %c : tensor<128x256xf32, #accumulator>
    %d = ttng.warp_group_dot_wait %e {pendings = 0}
"""

from dataclasses import dataclass
from math import prod
from typing import ClassVar

from proton.base.chips.chip import Chip, MMAKind, OperandPlace
from proton.base.targets import GPUTarget
from proton.dialect import isa, tt, ttg
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import filled, remade
from proton.dialect.layouts import convert
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir, math
from proton.dialect.regions import loop_around
from proton.dialect.traits import Elementwise, Multiplies, has
from proton.dialect.ttng import MmaSyncOp, WarpGroupDotOp, WarpGroupDotWaitOp
from proton.dialect.walk import before, defining_op, ops_named, replace, users
from proton.layout import LinearLayout
from proton.layout.matrix_memory import transposing_layout
from proton.layout.named import shared_row_major, spread
from proton.layout.tensor_cores import (
    K_BITS,
    WarpGroupTiling,
    WarpTiling,
    warp_group_tiling,
    warp_tiling,
)
from proton.passes import Pass, register
from proton.schedule.loads import LOADS, drops_ones
from proton.transforms.layout.matrix_operands import as_matrix, fast_axis

DOT_TILE = 4  # rows and columns of the result that a thread computes by multiply-adds
WIDENED = ("f8E4M3FN", "f8E5M2")  # to fp16, where no instruction takes them


@dataclass(frozen=True)
class Split:
    """fp32 as a sum of `parts` numbers that an instruction takes: products of those that add up to
    less than `parts` places count. Source: Ootomo and Yokota, "Recovering single precision accuracy
    from Tensor Cores"."""

    parts: int
    is_bf16: bool

    @property
    def dropped_bits(self) -> int:
        """Of fp32's mantissa in a part that another one follows."""
        return 16 if self.is_bf16 else 13

    @property
    def pairs(self) -> list[tuple[int, int]]:
        """The factors of each dot, the smallest first."""
        places = range(self.parts)
        found = [(i, j) for i in places for j in places if i + j < self.parts]
        return sorted(found, key=sum, reverse=True)


INFINITY_BITS = 0x7F800000  # of fp32
# What is left out of a product of two numbers lies below 2**-20, 2**-16 and 2**-24 of it.
SPLITS = {"tf32x3": Split(2, False), "bf16x3": Split(2, True), "bf16x6": Split(3, True)}


@register
@dataclass(frozen=True)
class AccelerateMatmul(Pass):
    """Rewrites all `tt.dot` by the matrix instructions of the target."""

    name: ClassVar[str] = "tritongpu-accelerate-matmul"

    target: GPUTarget

    def run(self, module: Module) -> None:
        program = ttg.num_warps(module)
        for op in ops_named(module, tt.DotOp):
            warps = ttg.group_warps(op, program, program)
            with before(op):
                product = _Product(op, self.target.facts, warps)
                replace(op, [convert(product.rewritten(), ttg.layout_of(op.results[0].type))])


class _Product:
    """One `tt.dot`, to be emitted otherwise at the insertion point."""

    def __init__(self, op: Operation, chip: Chip, warps: int) -> None:
        self.op, self.chip, self.warps = op, chip, warps
        self.a, self.b, self.acc = op.operands
        self.element, self.result = element_of(self.a), element_of(self.acc)
        self.precision = ir.StringAttr(op.attributes["inputPrecision"]).value
        self.imprecise = ir.IntegerAttr(op.attributes["maxNumImpreciseAcc"]).value

    def rewritten(self) -> Value:
        """The result, in the layout of the instruction."""
        if not self._is_for_tensor_cores():
            return self._multiply_adds()
        if self._split is not None:
            return self._split_products(self._split)
        return self._product(self.a, self.b, self.acc)

    @property
    def _is_f32(self) -> bool:
        return isinstance(self.element, ir.F32Type)

    @property
    def _split(self) -> Split | None:
        """How fp32 is taken apart; None where it is not."""
        return SPLITS.get(self.precision) if self._is_f32 else None

    def _is_for_tensor_cores(self) -> bool:
        """True if an instruction takes the types and the inner size."""
        if self.chip.mma_of(MMAKind.WARP, self._operand) is None:
            return False
        if self._is_f32 and self.precision not in ("tf32", *SPLITS):
            return False
        long_enough = shape_of(self.a)[-1] * self._bits >= K_BITS
        return long_enough and warp_tiling(shape_of(self.acc), self.warps) is not None

    @property
    def _operand(self) -> Type:
        """The element type that the instruction takes."""
        if self._split is not None and self._split.is_bf16:
            return ir.BF16Type.get()
        has_own = self.chip.mma_of(MMAKind.WARP, self.element) is not None
        is_widened = str(self.element) in WIDENED and not has_own
        return ir.F16Type.get() if is_widened else self.element

    @property
    def _bits(self) -> int:
        """Of an element, as the instruction takes it."""
        return int(self._operand.width)

    def _product(self, a: Value, b: Value, acc: Value) -> Value:
        shape = shape_of(acc)
        instruction = self.chip.mma_of(MMAKind.WARP_GROUP, self._operand)
        if instruction is not None and len(shape) == 2:
            tiling = warp_group_tiling(shape, self.warps, instruction.columns)
            in_memory = tiling is not None and OperandPlace.SHARED in instruction.right
            right = self._in_memory(b, 0) if in_memory else None
            if tiling is not None and right is not None:
                in_memory = OperandPlace.SHARED in instruction.left and _loaded(a) is not None
                left = self._in_memory(a, 1) if in_memory else None
                return self._warp_groups(tiling, a, left, right, acc)
        warps = warp_tiling(shape, self.warps, _reduced_along(self.op))
        assert warps is not None, "asked before"
        return self._mma(warps, a, b, acc)

    # Warp groups

    def _warp_groups(
        self, tiling: WarpGroupTiling, a: Value, left: Value | None, right: Value, acc: Value
    ) -> Value:
        if left is None:
            left = convert(a, tiling.operand_a(shape_of(a)[1], self._bits))
        start = convert(acc, tiling.accumulator)
        i32 = ir.IntegerType.get_signless(32)
        is_inexact = self._bits == 8 and isinstance(self.result, ir.F32Type)
        imprecise = ir.IntegerAttr.get(i32, max(1, self.imprecise) if is_inexact else 0)
        issued = WarpGroupDotOp(left, right, start, imprecise, start.type).result
        return WarpGroupDotWaitOp(issued, ir.IntegerAttr.get(i32, 0), start.type).result

    def _in_memory(self, value: Value, k_axis: int) -> Value | None:
        """An operand in swizzled memory; None where its rows are too short for it. Elements of 16
        bits may lie along either dimension: they stay along that of the load, so that they are
        copied as they are. Of 32 bits they are loaded so that threads transpose them."""
        source, is_transposed = _behind_trans(value)
        k = k_axis ^ is_transposed
        fast = k
        if self._bits == 32:
            source = _loaded_in_squares(source, k, self.warps)
        if self._bits == 16 and (load := _first_load(source)) is not None:
            ones = len(shape_of(load)) - len(shape_of(source))
            fast = max(0, fast_axis(ttg.layout_of(load.type)) - ones)
        return as_matrix(source, (fast, k), is_transposed)

    # One warp

    def _mma(self, tiling: WarpTiling, a: Value, b: Value, acc: Value) -> Value:
        bits = self._bits
        if bits == 8 and isinstance(self.result, ir.F16Type):  # such `mma` came with PTX 8.7
            bits = 16
        if bits != element_of(a).width:
            a, b = _widened(a), _widened(b)
        k = shape_of(a)[-1]
        left = convert(a, tiling.operand_a(k, bits))
        right = convert(b, tiling.operand_b(k, bits))
        start = convert(acc, tiling.accumulator)
        return MmaSyncOp(left, right, start, start.type).result

    def _split_products(self, split: Split) -> Value:
        """Dots of the parts. Of infinity the largest alone counts: times a smaller part it is no
        number, or has another sign."""
        left, right = (_parts(side, split) for side in (self.a, self.b))
        layout = ttg.layout_of(self.acc.type)
        rest = filled(self.acc.type, 0.0)
        *small, (i, j) = split.pairs
        for m, n in small:
            rest = convert(self._product(left[m], right[n], rest), layout)
        size = math.AbsFOp(rest).result
        infinity = filled(rest.type, float("inf"))
        is_finite = arith.CmpFOp(arith.CmpFPredicate.OLT, size, infinity).result
        rest = arith.SelectOp(is_finite, rest, filled(rest.type, 0.0)).result
        return self._product(left[i], right[j], arith.AddFOp(self.acc, rest).result)

    # Threads

    def _multiply_adds(self) -> Value:
        layout = dot_layout(shape_of(self.acc), self.warps, self.chip.warp_size)
        # A thread reads some rows of a and some columns of b at each step: these lie together.
        *batch, rows, columns = range(len(shape_of(self.acc)))
        sides = [
            ttg.LocalAllocOp(
                side,
                ttg.mem_desc(
                    shape_of(side), element_of(side), shared_row_major(shape_of(side), order)
                ),
            ).result
            for side, order in (
                (self.a, (rows, columns, *batch)),
                (self.b, (columns, rows, *batch)),
            )
        ]
        start = convert(self.acc, layout)
        return ttg.SharedDotOp(*sides, start, start.type).result


def _reduced_along(dot: Operation) -> int | None:
    """The dimension of a dot's matrices along which its results are reduced as often as it runs, as
    they are or by way of what is computed of each element; None where it is no single one."""
    axes, waiting, seen = set[int](), [dot.results[0]], set()
    rank = len(shape_of(dot.results[0]))
    while waiting:
        value = waiting.pop()
        for user in users(value):
            if user in seen or user.block != dot.operation.block:
                continue
            seen.add(user)
            if isa(user, tt.ReduceOp):
                axes.add(ir.IntegerAttr(user.attributes["axis"]).value)
            elif has(user, Elementwise) or isa(user, ttg.ConvertLayoutOp):
                waiting += [r for r in user.results if len(shape_of(r)) == rank]
    axis = axes.pop() - (rank - 2) if len(axes) == 1 else -1
    return axis if axis >= 0 else None


def dot_layout(shape: tuple[int, ...], warps: int, lanes: int) -> LinearLayout:
    """A square of the result in each thread, lanes along rows of the result. Of a small result it
    is smaller, so that no two threads compute the same."""
    *batch, rows, columns = shape
    tile = [*(1 for _ in batch), min(DOT_TILE, rows), min(DOT_TILE, columns)]
    while prod(tile) > 1 and prod(tile) * warps * lanes > prod(shape):
        tile[tile.index(max(tile))] //= 2
    order = tuple(reversed(range(len(shape))))
    return spread(shape, tuple(tile), order, warps, lanes=lanes)


def _through(value: Value) -> Value:
    """The value behind conversions of its layout."""
    while isa(op := defining_op(value), ttg.ConvertLayoutOp):
        value = op.operands[0]
    return value


def _behind_trans(value: Value) -> tuple[Value, bool]:
    """(what is transposed, whether it is): memory is read either way."""
    source, is_transposed = _through(value), False
    while isa(op := defining_op(source), tt.TransOp):
        source, is_transposed = _through(op.operands[0]), not is_transposed
    return source, is_transposed


def _loaded(value: Value) -> Operation | None:
    """The load that an operand is as it is; None where it was computed."""
    op = defining_op(_behind_trans(value)[0])
    if op is not None and drops_ones(op):
        return _loaded(op.operands[0])
    return op if isa(op, *LOADS) else None


def _loaded_in_squares(value: Value, k: int, warps: int) -> Value:
    """What a load of rows of the other dimension than `k` gives, loaded in squares; the value as it
    is where it is no such load, where there are more threads than squares, and where others than
    products take it. In a loop it may be copied to memory: squares are read there, then."""
    load, shape = defining_op(value), shape_of(value)
    if not isa(load, tt.LoadOp) or len(shape) != 2 or loop_around(load) is not None:
        return value
    if not _is_multiplied(value):
        return value
    given, squares = ttg.layout_of(value.type), transposing_layout(shape, 4, 1 - k, warps)
    if fast_axis(given) == k or any(squares.free_bits().values()):
        return value
    with before(load), load.location:
        operands = [convert(v, squares) if ttg.is_tensor(v.type) else v for v in load.operands]
        loaded = remade(load, [ttg.with_layout(value.type, squares)], operands).result
        replace(load, [convert(loaded, given)])
    return loaded


def _is_multiplied(value: Value) -> bool:
    """True if only products take a value, transposed or as it is, from registers or from memory."""
    for user in users(value):
        is_same = isa(user, ttg.ConvertLayoutOp, tt.TransOp)
        is_taken = isa(user, ttg.LocalAllocOp) or has(user, Multiplies)
        if not is_taken and not (is_same and _is_multiplied(user.results[0])):
            return False
    return True


def _first_load(value: Value, depth: int = 8) -> Value | None:
    """The result of a load that a value of the same shape was computed from; None without one."""
    op = defining_op(_through(value))
    if op is None or not depth:
        return None
    if drops_ones(op):
        return _first_load(op.operands[0], depth - 1)
    if isa(op, *LOADS):
        return op.results[0]
    if not has(op, Elementwise):
        return None
    found = (_first_load(v, depth - 1) for v in op.operands if ttg.is_tensor(v.type))
    return next((load for load in found if load is not None), None)


def _widened(value: Value) -> Value:
    type_ = ir.RankedTensorType.get(
        value.type.shape, ir.F16Type.get(), encoding=value.type.encoding
    )
    return arith.ExtFOp(type_, value).result


def _parts(value: Value, split: Split) -> list[Value]:
    """fp32 as a sum, the largest part first."""
    found, rest = [], value
    for _ in range(split.parts - 1):
        large = _upper_bits(rest, split.dropped_bits)
        found.append(large)
        difference = arith.SubFOp(rest, large).result
        # Infinity less itself is no number.
        is_whole = arith.CmpFOp(arith.CmpFPredicate.OEQ, rest, large).result
        rest = arith.SelectOp(is_whole, filled(value.type, 0.0), difference).result
    return [_narrowed(part) if split.is_bf16 else part for part in (*found, rest)]


def _upper_bits(value: Value, dropped: int) -> Value:
    """fp32 rounded to its upper bits, cut where that would overflow; what is no number stays so."""
    i32 = ir.IntegerType.get_signless(32)
    type_ = ir.RankedTensorType.get(value.type.shape, i32, encoding=value.type.encoding)
    bits, half = arith.BitcastOp(type_, value).result, 1 << (dropped - 1)
    size = arith.AndIOp(bits, filled(type_, (1 << 31) - 1)).result
    least_too_large = filled(type_, INFINITY_BITS - half)
    fits = arith.CmpIOp(arith.CmpIPredicate.ult, size, least_too_large).result
    more = arith.SelectOp(fits, filled(type_, half), filled(type_, 0)).result
    kept = arith.AndIOp(arith.AddIOp(bits, more).result, filled(type_, -(1 << dropped))).result
    large = arith.BitcastOp(value.type, kept).result
    return arith.SelectOp(_is_number(value), large, value).result


def _narrowed(value: Value) -> Value:
    type_ = ir.RankedTensorType.get(
        value.type.shape, ir.BF16Type.get(), encoding=value.type.encoding
    )
    return arith.TruncFOp(type_, value).result


def _is_number(value: Value) -> Value:
    return arith.CmpFOp(arith.CmpFPredicate.ORD, value, value).result
