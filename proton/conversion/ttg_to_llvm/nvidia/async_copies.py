"""Copies of threads from global to shared memory that go on meanwhile: `cp.async`."""

from proton.analysis.scratch import stored_bytes
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.layouts import addresses, groups
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site
from proton.conversion.ttg_to_llvm.core.memory import conditions
from proton.conversion.ttg_to_llvm.core.shared_memory import stored, vector_of
from proton.conversion.ttg_to_llvm.nvidia import primitives as nvidia
from proton.conversion.ttg_to_llvm.nvidia.rules import lowers
from proton.dialect import ttg
from proton.dialect.mlir import Value, llvm
from proton.layout.linear import LinearLayout

COPY_BYTES = (4, 8, 16)  # that one `cp.async` takes


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
    vector = min(vector_of(places, view, bytes_), site.access, _in_order(places))
    size = vector * bytes_
    parts = groups(places, vector)
    starts = addresses(ctx, places, [part[0] for part in parts], base, stored(element), view)
    condition = conditions(ctx, mask, [part[0] for part in parts])
    owns = ctx.threads.owns(ttg.layout_of(site.operand_types[0]))
    for (register, *_), target in zip(parts, starts, strict=True):
        source = ctx.scalars.element(pointers, register)
        inside = condition(register)
        if size not in COPY_BYTES:
            _copy(source, target, size, inside)
            continue
        _copy_async(target, source, size, inside, owns)
    return [v.i32(0)]


def _in_order(places: LinearLayout) -> int:
    """How many registers in a row lie side by side in shared memory: those are the ones that have
    adjacent pointers."""
    own = [basis[0] for basis in places.bases("register")]
    return 1 << next((bit for bit, step in enumerate(own) if step != 1 << bit), len(own))


def _copy_async(
    target: Value, source: Value, size: int, predicate: Value | None, owns: Value | None
) -> None:
    """`cp.async`, where a thread `owns` the place: begins a copy of 4, 8 or 16 bytes from global to
    shared memory; of zeros, where a predicate is given that does not hold."""
    kind = "cg" if size == 16 else "ca"  # 16 bytes need no place in L1
    text = f"cp.async.{kind}.shared.global [$0], [$1], {size}"
    values, constraints = [nvidia.shared_address(target), source], "r,l"
    if predicate is not None:
        values.append(v.binary(llvm.XOrOp, predicate, v.constant(1, v.integer(1))))
        text, constraints = f"{text}, $2", f"{constraints},b"
    if owns is not None:
        text, constraints = f"@${len(values)} {text}", f"{constraints},b"
        values.append(owns)
    nvidia.assembly(f"{text};", constraints, None, *values)


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
    if ttg.FENCES in site.op.attributes:
        nvidia.fence_async_shared()
    ctx.threads.barrier()
    return []


@lowers(ttg.AsyncWaitOp)
def _async_wait(ctx: Lowering, site: Site) -> list[Value]:
    nvidia.wait_copies(site.number("pendings"))
    return []
