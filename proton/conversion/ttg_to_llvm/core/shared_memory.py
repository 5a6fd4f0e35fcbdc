"""Tensors in shared memory: what is stored there and read again, and copies that go on."""

from proton.analysis.scratch import stored_bytes
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.layouts import (
    addresses,
    groups,
    warps_read_shared,
    warps_write_shared,
)
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, is_float8, lowers
from proton.conversion.ttg_to_llvm.nvidia import primitives as nvidia
from proton.dialect import ttg
from proton.dialect.mlir import Type, Value, llvm
from proton.layout import LinearLayout
from proton.layout.linear import log2
from proton.layout.named import dim
from proton.layout.shared_view import SharedView

COPY_BYTES = (4, 8, 16)  # that one `cp.async` takes
MAX_ACCESS_BYTES = 16


def contiguous(places: LinearLayout, element_bytes: int) -> int:
    """How many consecutive offsets one access may take, 16 bytes at most."""
    others = [b[0] for name, bases in places.ins if name != "register" for b in bases]
    registers = {b[0] for b in places.bases("register")}
    count = 1
    while (
        count * element_bytes < MAX_ACCESS_BYTES
        and count in registers
        and not any(other & count for other in others)
        and all(r == count or not r & count for r in registers)
    ):
        count *= 2
    return count


def _vector(places: LinearLayout, view: SharedView, element_bytes: int) -> int:
    """How many consecutive offsets one access of a view may take."""
    count = contiguous(places, element_bytes)
    breaks = [view.start, *(n for pair in view.paddings for n in pair)]
    while any(n % count for n in breaks):
        count //= 2
    return count


def _stored(element: Type) -> Type:
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
    vector = _vector(places, view, stored_bytes(v.element(value)))
    warps_write_shared(ctx, value, places, vector, base, view)


@lowers(ttg.LocalLoadOp)
def _local_load(ctx: Lowering, site: Site) -> list[Value]:
    (base,) = site.operands
    desc = site.operand_types[0]
    (_, element), view = ttg.mem_desc_block(desc), ttg.mem_desc_view(desc)
    places = view.of_threads(ttg.layout_of(site.result_type))
    vector = _vector(places, view, stored_bytes(element))
    return [warps_read_shared(ctx, _stored(element), places, vector, base, view)]


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
        found.append(v.offset_pointer(base, padded, _stored(element)))
    return found


@lowers(ttg.LocalGatherOp)
def _local_gather(ctx: Lowering, site: Site) -> list[Value]:
    base, indices = site.operands
    desc, layout = site.operand_types[0], ttg.layout_of(site.result_type)
    element = _stored(ttg.mem_desc_block(desc)[1])
    places = element_addresses(ctx, base, desc, indices, site.number("axis"), layout)
    size = stored_bytes(element)
    return [v.from_elements([v.load(place, element, size) for place in places])]


@lowers(ttg.LocalScatterOp)
def _local_scatter(ctx: Lowering, site: Site) -> list[Value]:
    base, values, indices = site.operands
    desc, layout = site.operand_types[0], ttg.layout_of(site.operand_types[1])
    element = _stored(ttg.mem_desc_block(desc)[1])
    places = element_addresses(ctx, base, desc, indices, site.number("axis"), layout)
    for register, place in enumerate(places):
        v.store(place, v.extract(values, register), stored_bytes(element))
    return []


# Copies


@lowers(ttg.AsyncCopyOp)
def _async_copy(ctx: Lowering, site: Site) -> list[Value]:
    """One `cp.async` for what lies side by side in global and in shared memory; pieces that are too
    small for it are loaded and stored, which is there no later."""
    pointers, base = site.operands[:2]
    mask = site.optional(2)
    desc = site.operand_types[1]
    (_, element), view = ttg.mem_desc_block(desc), ttg.mem_desc_view(desc)
    bytes_ = stored_bytes(element)
    places = view.of_threads(ttg.layout_of(site.operand_types[0]))
    vector = min(_vector(places, view, bytes_), site.access)
    size = vector * bytes_
    parts = groups(places, vector)
    starts = addresses(ctx, places, [part[0] for part in parts], base, _stored(element), view)
    for (register, *_), target in zip(parts, starts, strict=True):
        source = ctx.scalars.element(pointers, register)
        inside = None if mask is None else v.extract(mask, register)
        if size not in COPY_BYTES:
            _copy(source, target, size, inside)
            continue
        nvidia.copy_async(target, source, size, inside)
    return [v.i32(0)]


def _copy(source: Value, target: Value, size: int, inside: Value | None) -> None:
    """One or two bytes, or zeros."""
    word = v.integer(16)
    (found,) = nvidia.load(
        source, word, 1, bits=8 * size, predicate=inside, otherwise=[v.constant(0, word)]
    )
    if size == 1:
        found = v.create(llvm.TruncOp, v.integer(8), found)
    v.store(target, found, size)


@lowers(ttg.AsyncCommitGroupOp)
def _async_commit_group(ctx: Lowering, site: Site) -> list[Value]:
    nvidia.commit_copies()
    return [v.i32(0)]


@lowers(ttg.AsyncWaitGroupOp)
def _async_wait_group(ctx: Lowering, site: Site) -> list[Value]:
    nvidia.wait_copies(site.number("pendings"))
    ctx.threads.barrier()
    return []


@lowers(ttg.AsyncWaitOp)
def _async_wait(ctx: Lowering, site: Site) -> list[Value]:
    nvidia.wait_copies(site.number("pendings"))
    return []
