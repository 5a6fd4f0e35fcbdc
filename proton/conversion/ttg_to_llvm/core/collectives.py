"""Histograms and gathers: every thread may need what any other has, so both use shared memory,
except gathers of what the warp has."""

from functools import partial

from proton.analysis.scratch import axis_of
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.layouts import read_shared, stored_type, write_shared
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, lowers
from proton.conversion.ttg_to_llvm.core.memory import both
from proton.dialect import Kind, tt
from proton.dialect.builtin import string_attr
from proton.dialect.mlir import Type, Value, ir, llvm
from proton.dialect.ttg import layout_of
from proton.layout.gather import WarpGather, gather_in_warp
from proton.layout.linear import log2
from proton.layout.named import shared_row_major
from proton.layout.thread_memory import contiguous


@lowers(tt.HistogramOp)
def _histogram(ctx: Lowering, site: Site) -> list[Value]:
    """Counts in shared memory, by atomics; each element once, whoever holds copies of it."""
    values, mask = site.operands[0], site.optional(1)
    source, target = layout_of(site.operand_types[0]), layout_of(site.result_type)
    bins = target.out_size("dim0")
    i32 = v.integer(32)
    base = ctx.shared(ctx.scratch(site))
    threads = ctx.threads.count
    for start in range(0, bins, threads):
        number = v.add(ctx.threads.number, v.i32(start)) if start else ctx.threads.number
        inside = None if start + threads <= bins else v.compare("ult", number, v.i32(bins))
        slot = v.offset_pointer(base, number, i32)
        v.when(inside, partial(_clear, slot))
    ctx.threads.barrier()
    owner = ctx.threads.owns(source)
    i64 = v.like(values, v.integer(64))
    wide = values if values.type == i64 else v.create(llvm.SExtOp, i64, values)
    inside = v.compare("ult", wide, v.constant(bins, wide.type))
    one, scope = v.i32(1), ctx.primitives.SCOPES["cta"]
    for register in sorted(set(source.first_registers())):
        counted = both(v.extract(inside, register), owner)
        counted = both(counted, None if mask is None else v.extract(mask, register))
        place = v.create(llvm.TruncOp, i32, v.extract(wide, register))
        v.when(counted, partial(_count, v.offset_pointer(base, place, i32), one, scope))
    ctx.threads.barrier()
    return [
        read_shared(ctx, i32, target.invert_and_compose(shared_row_major((bins,), (0,))), 1, base)
    ]


def _clear(address: Value) -> None:
    v.store(address, v.i32(0), 4)


def _count(address: Value, one: Value, scope: str) -> None:
    v.create(
        llvm.AtomicRMWOp,
        one.type,
        address,
        one,
        bin_op=ir.IntegerAttr.get(v.integer(64), 1),
        ordering=ir.IntegerAttr.get(v.integer(64), 2),
        syncscope=string_attr(scope),
    )


@lowers(tt.GatherOp)
def _gather(ctx: Lowering, site: Site) -> list[Value]:
    """The source lies in shared memory, row-major; every thread reads what its indices name."""
    value, index = site.operands
    source, target = layout_of(site.operand_types[0]), layout_of(site.operand_types[1])
    shape, axis = tuple(size for _, size in source.outs), axis_of(site.op)
    i32 = v.like(index, v.integer(32))
    if (way := gather_in_warp(source, target, axis)) is not None:
        return [_gathered(ctx, value, _as_i32(index, i32), way)]
    shared = shared_row_major(shape, tuple(reversed(range(len(shape)))))
    base = ctx.shared(ctx.scratch(site))
    element = v.element(value)
    places = source.invert_and_compose(shared)
    width = contiguous(places, v.bits_of(stored_type(element)) // 8)
    write_shared(ctx, value, places, width, base)
    ctx.threads.barrier()
    place: Value | None = None
    stride = 1
    for dimension in reversed(range(len(shape))):
        where = _as_i32(index, i32) if dimension == axis else ctx.threads.indices(target, dimension)
        term = v.binary(llvm.MulOp, where, v.constant(stride, i32)) if stride > 1 else where
        place = term if place is None else v.add(place, term)
        stride *= shape[dimension]
    assert place is not None, "a tensor has dimensions"
    stored = stored_type(element)
    addresses = v.to_elements(v.offset_pointer(base, place, stored))
    loaded = [v.load(address, stored, v.bits_of(stored) // 8) for address in addresses]
    result = v.from_elements(loaded)
    if stored != element:
        result = v.create(llvm.TruncOp, v.like(result, element), result)
    return [result]


def _gathered(ctx: Lowering, value: Value, index: Value, way: WarpGather) -> Value:
    """Every result from the lane that its index names, by a shuffle."""
    count = v.count_of(index)
    own = [1 << bit for bit in range(log2(ctx.threads.lanes))]
    for _, bit in way.lanes:
        own[bit] = 0
    lanes = v.splat(ctx.threads.bits(tuple(own) + (0,) * log2(ctx.threads.warps)), count)

    def shifted(kind: Kind, moved: Value, by: int) -> Value:
        return v.binary(kind, moved, v.constant(by, index.type)) if by else moved

    def of_index(first: int, bits: int) -> Value:
        mask = v.constant((1 << bits) - 1, index.type)
        return v.binary(llvm.AndOp, shifted(llvm.LShrOp, index, first), mask)

    for first, to, bits in way.runs:
        lanes = v.binary(llvm.OrOp, lanes, shifted(llvm.ShlOp, of_index(first, bits), to))
    chosen = [
        v.to_elements(v.compare("ne", of_index(bit, 1), v.constant(0, index.type)))
        for bit in way.registers
    ]
    results = []
    for register, lane in enumerate(v.to_elements(lanes)):
        moved = v.shuffle(value, way.sources[register])
        found = v.to_elements(ctx.primitives.shuffle_lanes("idx", moved, lane))
        for is_set in chosen:
            pairs = zip(found[::2], found[1::2], strict=True)
            found = [v.select(is_set[register], high, low) for low, high in pairs]
        results += found
    return v.from_elements(results)


def _as_i32(index: Value, type_: Type) -> Value:
    bits = v.element(index).width
    if bits == 32:
        return index
    return v.create(llvm.TruncOp if bits > 32 else llvm.ZExtOp, type_, index)
