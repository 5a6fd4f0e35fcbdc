"""The tensor memory accelerator, and barriers in shared memory. One thread of the program issues
copies, starts barriers and says what they wait for."""

from typing import Any

from proton.analysis.tensor_maps import box_of_map
from proton.conversion.ttg_to_llvm import nvidia
from proton.conversion.ttg_to_llvm import values as v
from proton.conversion.ttg_to_llvm.lowering import Lowering, Site, lowers
from proton.dialect.mlir import Value
from proton.dialect.ttng_memory import TensorMapType, barrier_count

_BARRIER_BYTES = 8
_ISSUER = "issuer"  # where the lowering keeps whether this thread is the one that issues


def _is_issuer(ctx: Lowering) -> Value:
    """Whether this is the program's first thread."""
    if _ISSUER not in ctx.mapped:
        with ctx.at_entry(), ctx.function.location:
            ctx.mapped[_ISSUER] = v.compare("eq", ctx.thread, v.i32(0))
    found: Value = ctx.mapped[_ISSUER]
    return found


@lowers("ttng.async_tma_copy_global_to_local")
def _copy_to_local(ctx: Lowering, site: Site) -> list[Any]:
    map_, barrier, memory, condition, *indices = site.operands
    issues = v.binary("llvm.and", condition, _is_issuer(ctx))
    arrives = nvidia.shared_address(barrier)
    for coordinates, target in _boxes(site, memory, indices):
        nvidia.copy_tensor_to_shared(target, map_, coordinates, arrives, issues)
    return []


@lowers("ttng.tma_copy_local_to_global")
def _copy_to_global(ctx: Lowering, site: Site) -> list[Any]:
    """What was written before has landed when this is written: copies are not in order."""
    map_, memory, *indices = site.operands
    issues = _is_issuer(ctx)
    nvidia.wait_bulk_copies(issues, read=False)
    for coordinates, source in _boxes(site, memory, indices):
        nvidia.copy_tensor_to_global(map_, coordinates, source, issues)
    nvidia.commit_bulk_copies(issues)
    nvidia.wait_bulk_copies(issues, read=True)
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
