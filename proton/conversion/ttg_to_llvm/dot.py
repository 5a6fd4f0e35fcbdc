"""Products by multiply-adds, from operands in shared memory; and histograms, in shared memory."""

from functools import partial
from typing import Any

from proton.base.targets import WARP_SIZE
from proton.conversion.ttg_to_llvm import values as v
from proton.conversion.ttg_to_llvm.elementwise import widen_float8
from proton.conversion.ttg_to_llvm.layouts import read_shared
from proton.conversion.ttg_to_llvm.lowering import Lowering, Site, is_float8, lowers
from proton.conversion.ttg_to_llvm.memory import both
from proton.dialect.mlir import ir
from proton.dialect.ttg import layout_of, mem_desc_parts
from proton.layout import LinearLayout
from proton.layout.named import shared_row_major

UNROLL = 8  # steps along the inner dimension in one round of the loop
MAX_ACCESS_BYTES = 16


@lowers("ttg.dot")
def _dot(ctx: Lowering, site: Site) -> list[Any]:
    """For each k: a column of a and a row of b, as far as this thread needs them, then one
    multiply-add on the whole vector of results."""
    a, b, acc = site.operands
    (_, inner), element, _ = mem_desc_parts(site.operand_types[0])
    layout = layout_of(site.operand_types[2])
    wide = _wider(element, v.element(acc))
    start = _float_cast(acc, wide)
    steps = min(UNROLL, inner)
    lower, upper, step = (v.i32(n) for n in (0, inner, steps))
    op = ir.Operation.create(
        "scf.for", results=[start.type], operands=[lower, upper, step, start], regions=1
    )
    block = ir.Block.create_at_start(
        op.regions[0], [v.integer(32), start.type], [ir.Location.current] * 2
    )
    sides = [_Side(ctx, site, number, layout, wide) for number in (0, 1)]
    with ir.InsertionPoint(block):
        k, total = block.arguments
        for number in range(steps):
            row = v.add(k, v.i32(number)) if number else k
            left, right = (side.at(base, row) for side, base in zip(sides, (a, b), strict=True))
            total = _multiply_add(left, right, total)
        ir.Operation.create("scf.yield", operands=[total])
    return [_float_cast(op.result, v.element(acc))]


def _wider(element: Any, acc: Any) -> Any:
    """The type that products are summed in."""
    return acc if is_float8(element) or element.width <= acc.width else element


def _float_cast(value: Any, target: Any) -> Any:
    element = v.element(value)
    if element == target:
        return value
    name = "llvm.fpext" if element.width < target.width else "llvm.fptrunc"
    return v.create(name, v.like(value, target), value)


def _multiply_add(left: Any, right: Any, total: Any) -> Any:
    if isinstance(v.element(total), ir.IntegerType):
        return v.add(v.binary("llvm.mul", left, right), total)
    return v.create("llvm.intr.fma", total.type, left, right, total)


class _Side:
    """How a thread reads the part of one operand that belongs to a step k."""

    def __init__(
        self, ctx: Lowering, site: Site, number: int, layout: LinearLayout, wide: Any
    ) -> None:
        shape, self.element, _ = mem_desc_parts(site.operand_types[number])
        self.wide, self.size = wide, shape[number]
        self.stored = v.integer(8) if is_float8(self.element) else self.element
        self.thread = ctx.thread_part(layout, number)
        registers = [int(x) for x in layout.table("register")[..., number].ravel()]
        distinct = sorted(set(registers))
        self.picks = [distinct.index(r) for r in registers]
        self.runs = _runs(distinct, max(1, MAX_ACCESS_BYTES // (self.stored.width // 8)))

    def at(self, base: Any, k: Any) -> Any:
        """The elements of step k, one for each register of the result."""
        start = v.add(v.binary("llvm.mul", k, v.i32(self.size)), self.thread)
        address = v.offset_pointer(base, start, self.stored)
        parts = []
        for first, length in self.runs:
            place = v.offset_pointer(address, v.i32(first), self.stored) if first else address
            parts.append(
                v.load(place, v.vector(length, self.stored), length * (self.stored.width // 8))
            )
        return v.shuffle(self._widened(v.concatenate(parts)), self.picks)

    def _widened(self, value: Any) -> Any:
        if is_float8(self.element):
            return widen_float8(value, self.element, self.wide)
        if isinstance(self.wide, ir.IntegerType) and self.stored != self.wide:
            return v.create("llvm.sext", v.like(value, self.wide), value)
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


@lowers("tt.histogram")
def _histogram(ctx: Lowering, site: Site) -> list[Any]:
    """Counts in shared memory, by atomics; each element once, whoever holds copies of it."""
    values, mask = site.optional(2)
    source, target = layout_of(site.operand_types[0]), layout_of(site.result_type)
    bins = target.out_size("dim0")
    i32 = v.integer(32)
    base = ctx.shared(ctx.scratch(site))
    threads = WARP_SIZE * ctx.warps
    for start in range(0, bins, threads):
        number = v.add(ctx.thread, v.i32(start)) if start else ctx.thread
        inside = None if start + threads <= bins else v.compare("ult", number, v.i32(bins))
        slot = v.offset_pointer(base, number, i32)
        v.when(inside, partial(_clear, slot))
    v.barrier()
    owner = ctx.owns(source)
    i64 = v.like(values, v.integer(64))
    wide = values if values.type == i64 else v.create("llvm.sext", i64, values)
    inside = v.compare("ult", wide, v.constant(bins, wide.type))
    one = v.i32(1)
    for register in range(v.count_of(values)):
        counted = both(v.extract(inside, register), owner)
        counted = both(counted, None if mask is None else v.extract(mask, register))
        place = v.create("llvm.trunc", i32, v.extract(wide, register))
        v.when(counted, partial(_count, v.offset_pointer(base, place, i32), one))
    v.barrier()
    like = v.poison(v.vector(1, i32))
    return [read_shared(ctx, like, target, shared_row_major((bins,), (0,)), 1, base)]


def _clear(address: Any) -> None:
    v.store(address, v.i32(0), 4)


def _count(address: Any, one: Any) -> None:
    v.create(
        "llvm.atomicrmw",
        one.type,
        address,
        one,
        bin_op=ir.IntegerAttr.get(v.integer(64), 1),
        ordering=ir.IntegerAttr.get(v.integer(64), 2),
        syncscope=ir.StringAttr.get("block"),
    )
