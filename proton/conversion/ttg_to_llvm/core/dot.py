"""Products by multiply-adds, from operands in shared memory."""

from proton.base.chips.chip import ACCESS_BYTES
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.float8 import widen_float8
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, is_float8, lowers
from proton.dialect import ttg
from proton.dialect.mlir import Type, Value, ir, llvm
from proton.dialect.regions import ForLoop, yield_values
from proton.layout import LinearLayout

UNROLL = 8  # steps along the inner dimension in one round of the loop


@lowers(ttg.SharedDotOp)
def _dot(ctx: Lowering, site: Site) -> list[Value]:
    """For each k: a column of a and a row of b, as far as this thread needs them, then one
    multiply-add on the whole vector of results."""
    a, b, acc = site.operands
    (*_, inner), element, _ = ttg.mem_desc_parts(site.operand_types[0])
    layout = ttg.layout_of(site.operand_types[2])
    wide = _wider(element, v.element(acc))
    start = _float_cast(acc, wide)
    steps = min(UNROLL, inner)
    sides = [_Side(ctx, site, number, layout, wide) for number in (0, 1)]
    loop = ForLoop.create([v.i32(n) for n in (0, inner, steps)], [start])
    with ir.InsertionPoint(loop.body):
        k, (total,) = loop.induction_var, loop.iter_args
        for number in range(steps):
            row = v.add(k, v.i32(number)) if number else k
            left, right = (side.at(base, row) for side, base in zip(sides, (a, b), strict=True))
            total = _multiply_add(left, right, total)
        yield_values([total])
    return [_float_cast(loop.op.result, v.element(acc))]


def _wider(element: Type, acc: Type) -> Type:
    """The type that products are summed in: fp32 at least."""
    if isinstance(acc, ir.IntegerType):
        return acc
    widest = max(acc.width, 32 if is_float8(element) else element.width, 32)
    return ir.F64Type.get() if widest == 64 else ir.F32Type.get()


def _float_cast(value: Value, target: Type) -> Value:
    element = v.element(value)
    if element == target:
        return value
    name = llvm.FPExtOp if element.width < target.width else llvm.FPTruncOp
    return v.create(name, v.like(value, target), value)


def _multiply_add(left: Value, right: Value, total: Value) -> Value:
    if isinstance(v.element(total), ir.IntegerType):
        return v.add(v.binary(llvm.MulOp, left, right), total)
    return v.create(llvm.FMAOp, total.type, left, right, total)


class _Side:
    """How a thread reads the part of one operand that belongs to a step k."""

    def __init__(
        self, ctx: Lowering, site: Site, number: int, layout: LinearLayout, wide: Type
    ) -> None:
        shape, self.element, _ = ttg.mem_desc_parts(site.operand_types[number])
        axis = len(shape) - 2 + number
        self.ctx, self.wide, self.size = ctx, wide, shape[axis]
        self.stored = v.integer(8) if is_float8(self.element) else self.element
        self.thread = ctx.threads.part(layout, axis)
        places = layout.table("register")[..., axis].ravel()
        if len(shape) == 3:  # one matrix lies behind the other
            matrix = shape[1] * shape[2]
            first = v.binary(llvm.MulOp, ctx.threads.part(layout, 0), v.i32(matrix))
            self.thread = v.add(self.thread, first)
            places = places + matrix * layout.table("register")[..., 0].ravel()
        registers = [int(x) for x in places]
        distinct = sorted(set(registers))
        self.picks = [distinct.index(r) for r in registers]
        self.runs = _runs(distinct, max(1, ACCESS_BYTES // (self.stored.width // 8)))

    def at(self, base: Value, k: Value) -> Value:
        """The elements of step k, one for each register of the result."""
        start = v.add(v.binary(llvm.MulOp, k, v.i32(self.size)), self.thread)
        address = v.offset_pointer(base, start, self.stored)
        parts = []
        for first, length in self.runs:
            place = v.offset_pointer(address, v.i32(first), self.stored) if first else address
            parts.append(
                v.load(place, v.vector(length, self.stored), length * (self.stored.width // 8))
            )
        return v.shuffle(self._widened(v.concatenate(parts)), self.picks)

    def _widened(self, value: Value) -> Value:
        if is_float8(self.element):
            return widen_float8(self.ctx, value, self.element, self.wide)
        if isinstance(self.wide, ir.IntegerType) and self.stored != self.wide:
            return v.create(llvm.SExtOp, v.like(value, self.wide), value)
        return value if self.stored == self.wide else _float_cast(value, self.wide)


def _runs(offsets: list[int], most: int) -> list[tuple[int, int]]:
    """(first, length) of accesses that cover the offsets: all of one length, each aligned."""
    length = 1
    while length * 2 <= min(most, len(offsets)) and all(
        first % (2 * length) == 0
        and offsets[at : at + 2 * length] == [*range(first, first + 2 * length)]
        for at, first in list(enumerate(offsets))[:: 2 * length]
    ):
        length *= 2
    return [(first, length) for first in offsets[::length]]
