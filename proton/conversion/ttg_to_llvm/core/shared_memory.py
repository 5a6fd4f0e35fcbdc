"""Tensors in shared memory: what is stored there and read again."""

from proton.analysis.scratch import stored_bytes
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.layouts import (
    warps_read_shared,
    warps_write_shared,
)
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, is_float8, lowers
from proton.dialect import ttg
from proton.dialect.mlir import Type, Value, llvm
from proton.layout import LinearLayout
from proton.layout.linear import log2
from proton.layout.named import dim
from proton.layout.shared_view import SharedView
from proton.layout.thread_memory import contiguous


def vector_of(places: LinearLayout, view: SharedView, element_bytes: int) -> int:
    """How many consecutive offsets one access of a view may take."""
    count = contiguous(places, element_bytes)
    breaks = [view.start, *(n for pair in view.paddings for n in pair)]
    while any(n % count for n in breaks):
        count //= 2
    return count


def stored(element: Type) -> Type:
    """The type of an element in shared memory."""
    return v.integer(8) if is_float8(element) else element


@lowers(ttg.LocalAllocOp)
def _local_alloc(ctx: Lowering, site: Site) -> list[Value]:
    base = ctx.shared(ctx.scratch(site))
    _write(ctx, site.operands[0], site.operand_types[0], site.result_type, base)
    return [base]


@lowers(ttg.LocalReserveOp)
def _local_reserve(ctx: Lowering, site: Site) -> list[Value]:
    return [ctx.shared(ctx.scratch(site))]


@lowers(ttg.LocalStoreOp)
def _local_store(ctx: Lowering, site: Site) -> list[Value]:
    value, base = site.operands
    type_, desc = site.operand_types
    _write(ctx, value, type_, desc, base)
    return []


def _write(ctx: Lowering, value: Value, type_: Type, desc: Type, base: Value) -> None:
    view = ttg.mem_desc_view(desc)
    places = view.of_threads(ttg.layout_of(type_))
    vector = vector_of(places, view, stored_bytes(v.element(value)))
    warps_write_shared(ctx, value, places, vector, base, view)


@lowers(ttg.LocalLoadOp)
def _local_load(ctx: Lowering, site: Site) -> list[Value]:
    (base,) = site.operands
    desc = site.operand_types[0]
    (_, element), view = ttg.mem_desc_block(desc), ttg.mem_desc_view(desc)
    places = view.of_threads(ttg.layout_of(site.result_type))
    vector = vector_of(places, view, stored_bytes(element))
    return [warps_read_shared(ctx, stored(element), places, vector, base, view)]


@lowers(ttg.MemDescIndexOp)
def _memdesc_index(ctx: Lowering, site: Site) -> list[Value]:
    base, index = site.operands
    (_, element), view = ttg.mem_desc_block(site.result_type), ttg.mem_desc_view(site.result_type)
    size = view.padded(view.size) * stored_bytes(element)
    offset = v.binary(llvm.MulOp, index, v.i32(size))
    return [v.offset_pointer(base, offset, v.integer(8))]


@lowers(ttg.MemDescTransOp)
def _memdesc_trans(ctx: Lowering, site: Site) -> list[Value]:
    return site.operands


@lowers(ttg.MemDescViewOp)
def _memdesc_view(ctx: Lowering, site: Site) -> list[Value]:
    (base,), offset = site.operands, site.number("offset")
    return [v.offset_pointer(base, v.i32(offset), v.integer(8)) if offset else base]


@lowers(ttg.LocalDeallocOp)
def _local_dealloc(ctx: Lowering, site: Site) -> list[Value]:
    return []


# Elements at indices


def element_addresses(
    ctx: Lowering, base: Value, desc: Type, indices: Value, axis: int, layout: LinearLayout
) -> list[Value]:
    """The address of each register's element: its own place, but for the index along an axis."""
    (_, element), view = ttg.mem_desc_block(desc), ttg.mem_desc_view(desc)
    rank = len(view.shape)
    own = [None if n == axis else ctx.threads.indices(layout, n) for n in range(rank)]
    found = []
    for register in range(layout.in_size("register")):
        offset = v.i32(view.start)
        for n, known in enumerate(own):
            index = v.extract(indices if known is None else known, register)
            bases = [basis[0] for basis in view.places.bases(dim(n))]
            if bases:
                offset = v.binary(llvm.XOrOp, offset, v.xor_of_bits(index, bases))
        padded = offset
        for interval, padding in view.paddings:
            count = v.binary(llvm.LShrOp, offset, v.i32(log2(interval)))
            padded = v.add(padded, v.binary(llvm.ShlOp, count, v.i32(log2(padding))))
        found.append(v.offset_pointer(base, padded, stored(element)))
    return found


@lowers(ttg.LocalGatherOp)
def _local_gather(ctx: Lowering, site: Site) -> list[Value]:
    base, indices = site.operands
    desc, layout = site.operand_types[0], ttg.layout_of(site.result_type)
    element = stored(ttg.mem_desc_block(desc)[1])
    places = element_addresses(ctx, base, desc, indices, site.number("axis"), layout)
    size = stored_bytes(element)
    return [v.from_elements([v.load(place, element, size) for place in places])]


@lowers(ttg.LocalScatterOp)
def _local_scatter(ctx: Lowering, site: Site) -> list[Value]:
    base, values, indices = site.operands
    desc, layout = site.operand_types[0], ttg.layout_of(site.operand_types[1])
    element = stored(ttg.mem_desc_block(desc)[1])
    places = element_addresses(ctx, base, desc, indices, site.number("axis"), layout)
    for register, place in enumerate(places):
        v.store(place, v.extract(values, register), stored_bytes(element))
    return []


@lowers(ttg.BarrierOp)
def _barrier(ctx: Lowering, site: Site) -> list[Value]:
    ctx.threads.barrier()
    return []
