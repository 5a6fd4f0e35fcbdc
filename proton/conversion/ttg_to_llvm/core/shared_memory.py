"""Tensors in shared memory: what is stored there and read again."""

from proton.analysis.scratch import stored_bytes
from proton.base.chips.chip import ACCESS_BYTES
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.layouts import (
    warps_read_shared,
    warps_write_shared,
)
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, is_float8, lowers
from proton.dialect import ttg
from proton.dialect.mlir import Type, Value, llvm
from proton.layout import LinearLayout


def contiguous(places: LinearLayout, element_bytes: int) -> int:
    """How many consecutive offsets one access may take, 16 bytes at most."""
    others = [b[0] for name, bases in places.ins if name != "register" for b in bases]
    registers = {b[0] for b in places.bases("register")}
    count = 1
    while (
        count * element_bytes < ACCESS_BYTES
        and count in registers
        and not any(other & count for other in others)
        and all(r == count or not r & count for r in registers)
    ):
        count *= 2
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
    source, (_, _, shared) = ttg.layout_of(type_), ttg.mem_desc_parts(desc)
    vector = contiguous(source.invert_and_compose(shared), stored_bytes(v.element(value)))
    warps_write_shared(ctx, value, source, shared, vector, base)


@lowers(ttg.LocalLoadOp)
def _local_load(ctx: Lowering, site: Site) -> list[Value]:
    (base,) = site.operands
    _, element, shared = ttg.mem_desc_parts(site.operand_types[0])
    target = ttg.layout_of(site.result_type)
    vector = contiguous(target.invert_and_compose(shared), stored_bytes(element))
    return [warps_read_shared(ctx, stored(element), target, shared, vector, base)]


@lowers(ttg.MemDescIndexOp)
def _memdesc_index(ctx: Lowering, site: Site) -> list[Value]:
    base, index = site.operands
    _, element, layout = ttg.mem_desc_parts(site.result_type)
    size = (1 << layout.total_in_bits) * stored_bytes(element)
    offset = v.binary(llvm.MulOp, index, v.i32(size))
    return [v.offset_pointer(base, offset, v.integer(8))]


@lowers(ttg.MemDescTransOp)
def _memdesc_trans(ctx: Lowering, site: Site) -> list[Value]:
    return site.operands


@lowers(ttg.BarrierOp)
def _barrier(ctx: Lowering, site: Site) -> list[Value]:
    ctx.threads.barrier()
    return []
