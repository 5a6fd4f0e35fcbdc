"""The tensor memory accelerator, and barriers in shared memory. One thread of the program issues
copies, starts barriers and says what they wait for."""

from math import prod
from typing import Any

from proton.analysis.scratch import stored_bytes
from proton.analysis.tensor_maps import box_of_map
from proton.base.targets import WARP_SIZE
from proton.conversion.ttg_to_llvm import nvidia
from proton.conversion.ttg_to_llvm import values as v
from proton.conversion.ttg_to_llvm.lowering import Lowering, Site, is_float8, lowers
from proton.dialect.mlir import Value
from proton.dialect.ttg import mem_desc_parts
from proton.dialect.ttng_memory import TensorMapType, barrier_count
from proton.layout.linear import log2

_BARRIER_BYTES = 8
_ISSUER = "issuer"  # where the lowering keeps whether this is the warp that issues


def _is_issuer(ctx: Lowering) -> Value:
    """Whether this is the thread that issues: one of the first warp, the same each time. It is
    elected where it is needed, so that the assembler knows that it is one."""
    if _ISSUER not in ctx.mapped:
        with ctx.at_entry(), ctx.function.location:
            warp = v.binary("llvm.lshr", ctx.thread, v.i32(log2(WARP_SIZE)))
            ctx.mapped[_ISSUER] = v.compare("eq", nvidia.warp_uniform(warp), v.i32(0))
    return v.binary("llvm.and", ctx.mapped[_ISSUER], nvidia.elected())


@lowers("ttng.async_tma_copy_global_to_local")
def _copy_to_local(ctx: Lowering, site: Site) -> list[Any]:
    map_, barrier, memory, condition, *indices = site.operands
    issues = v.binary("llvm.and", condition, _is_issuer(ctx))
    arrives = nvidia.shared_address(barrier)
    for coordinates, target in _boxes(site, memory, indices):
        nvidia.copy_tensor_to_shared(target, map_, coordinates, arrives, issues)
    return []


@lowers("ttng.async_tma_copy_local_to_global")
def _copy_to_global(ctx: Lowering, site: Site) -> list[Any]:
    map_, memory, *indices = site.operands
    issues = _is_issuer(ctx)
    for coordinates, source in _boxes(site, memory, indices):
        nvidia.copy_tensor_to_global(map_, coordinates, source, issues)
    nvidia.commit_bulk_copies(issues)
    return []


@lowers("ttng.local_to_global")
def _by_threads(ctx: Lowering, site: Site) -> list[Any]:
    """Element by element, in the order in which they lie in shared memory; copies that come later
    find them written."""
    memory, base, *numbers = site.operands
    shape, element, layout = mem_desc_parts(site.operand_types[0])
    rank, stored = len(shape), v.integer(8) if is_float8(element) else element
    sizes, strides, starts = numbers[:rank], numbers[rank : 2 * rank - 1], numbers[2 * rank - 1 :]
    i64 = v.integer(64)

    def one(place: Value) -> None:
        inside, offset = v.constant(1, v.integer(1)), v.constant(0, i64)
        for axis, start in enumerate(starts):
            own = v.xor_of_bits(place, [basis[axis] for basis in layout.bases("offset")])
            index = v.add(start, own)
            is_in = v.compare("ult", index, sizes[axis])  # a negative one is large
            inside = v.binary("llvm.and", inside, is_in)
            step = v.create("llvm.sext", i64, index)
            step = v.binary("llvm.mul", step, strides[axis]) if axis < rank - 1 else step
            offset = v.add(offset, step)
        source = v.offset_pointer(memory, place, stored)
        size = stored_bytes(element)

        def write() -> None:
            target = v.offset_pointer(base, offset, stored)
            v.store(target, v.load(source, stored, size), size)

        v.when(inside, write)

    threads = WARP_SIZE * ctx.warps
    v.repeat(ctx.thread, v.i32(prod(shape)), v.i32(threads), one)
    nvidia.fence_async()
    return []


@lowers("ttng.tma_store_wait")
def _store_wait(ctx: Lowering, site: Site) -> list[Any]:
    read = not site.op.attributes["landed"].value
    nvidia.wait_bulk_copies(_is_issuer(ctx), site.number("pendings"), read=read)
    return []


def _boxes(site: Site, memory: Value, indices: list[Value]) -> list[tuple[list[Value], Value]]:
    """For each copy of a block its coordinates, the fastest dimension first, and its address."""
    box = box_of_map(TensorMapType(site.operand_types[0]))
    assert box is not None, "as the pass chose it"
    start, found = nvidia.shared_address(memory), []
    for place, offset in box.pieces:
        at = [v.add(i, v.i32(n)) if n else i for i, n in zip(indices, place, strict=True)]
        found.append((at[::-1], v.add(start, v.i32(offset)) if offset else start))
    return found


# Barriers


def _each(site: Site) -> list[Value]:
    """The addresses of all barriers of an operand."""
    start = nvidia.shared_address(site.operands[0])
    count = barrier_count(site.operand_types[0])
    return [v.add(start, v.i32(n * _BARRIER_BYTES)) if n else start for n in range(count)]


@lowers("ttng.init_barrier")
def _init(ctx: Lowering, site: Site) -> list[Any]:
    for address in _each(site):
        nvidia.barrier_init(address, site.number("count"), _is_issuer(ctx))
    return []


@lowers("ttng.inval_barrier")
def _inval(ctx: Lowering, site: Site) -> list[Any]:
    for address in _each(site):
        nvidia.barrier_inval(address, _is_issuer(ctx))
    return []


@lowers("ttng.barrier_expect")
def _expect(ctx: Lowering, site: Site) -> list[Any]:
    barrier, condition = site.operands
    issues = v.binary("llvm.and", condition, _is_issuer(ctx))
    nvidia.barrier_expect(nvidia.shared_address(barrier), site.number("bytes"), issues)
    return []


@lowers("ttng.wait_barrier")
def _wait(ctx: Lowering, site: Site) -> list[Any]:
    barrier, phase = site.operands
    nvidia.barrier_wait(nvidia.shared_address(barrier), phase)
    return []
