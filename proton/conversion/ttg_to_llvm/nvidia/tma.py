"""The tensor memory accelerator. One thread of each warp issues the boxes of a block that fall to
the warp. What the copies arrive at is in barriers.py."""

from collections.abc import Sequence
from dataclasses import dataclass
from math import prod

from proton.analysis.scratch import stored_bytes
from proton.analysis.tensor_maps import box_of_map
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.atomics import relaxed
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, is_float8
from proton.conversion.ttg_to_llvm.nvidia import primitives as nvidia
from proton.conversion.ttg_to_llvm.nvidia.barriers import is_issuer, issues
from proton.conversion.ttg_to_llvm.nvidia.rules import lowers
from proton.dialect import isa, ttng
from proton.dialect.mlir import Value, llvm
from proton.dialect.tt_block import REDUCE_KINDS
from proton.dialect.ttg import mem_desc_parts, mem_desc_view
from proton.layout.linear import log2

# Copies of blocks by the tensor memory accelerator. Addresses of shared memory are i32; under a
# predicate that does not hold nothing happens.


def _prefetch_tensor_map(map_: Value, predicate: Value) -> None:
    """Brings a map to where copies look for it."""
    nvidia.assembly("@$1 prefetch.tensormap [$0];", "l,b", None, map_, predicate)


def _policy(site: Site) -> list[Value]:
    """The hint of a copy for the second-level cache, if it has one."""
    if ttng.L2_PRIORITIES not in site.op.attributes:
        return []
    first, second = (word.value for word in site.op.attributes[ttng.L2_PRIORITIES])
    rest = "" if second == "evict_unchanged" else f".L2::{second}"  # which is the default
    share = site.op.attributes[ttng.L2_SHARE].value
    return [nvidia.cache_policy(f".L2::{first}{rest}", share)]


def _hint(policy: Sequence[Value], number: int) -> tuple[str, str, str]:
    """Of a copy with such a hint what its name, its operands and their constraints have more."""
    return (".L2::cache_hint", f", ${number}", ",l") if policy else ("", "", "")


def _copy_tensor_to_shared(
    target: Value,
    map_: Value,
    coordinates: Sequence[Value],
    offsets: Sequence[Value],
    barrier: Value,
    predicate: Value,
    policy: Sequence[Value],
) -> None:
    """Begins to copy a box; its bytes arrive at a barrier. In im2col mode there are offsets."""
    count, more = len(coordinates), len(offsets)
    name, operand, constraint = _hint(policy, 4 + count + more)
    mode, moved = (".im2col", f", {nvidia.braced(4 + count, more)}") if offsets else ("", "")
    text = (
        f"@$0 cp.async.bulk.tensor.{count}d.shared::cluster.global{mode}"
        f".mbarrier::complete_tx::bytes{name} "
        f"[$1], [$2, {nvidia.braced(4, count)}], [$3]{moved}{operand};"
    )
    constraints = "b,r,l,r" + ",r" * count + ",h" * more + constraint
    operands = [predicate, target, map_, barrier, *coordinates, *offsets, *policy]
    nvidia.assembly(text, constraints, None, *operands)


def _copy_tensor_to_global(
    map_: Value,
    coordinates: Sequence[Value],
    source: Value,
    predicate: Value,
    reduction: str,
    policy: Sequence[Value],
) -> None:
    """Begins to copy a box to global memory, or to combine it with what is there: add, min, max,
    and, or, xor."""
    count, name = len(coordinates), "cp.reduce.async" if reduction else "cp.async"
    combined = f".{reduction}" if reduction else ""
    hint, operand, constraint = _hint(policy, 3 + count)
    text = (
        f"@$0 {name}.bulk.tensor.{count}d.global.shared::cta{combined}.bulk_group{hint} "
        f"[$1, {nvidia.braced(3, count)}], [$2]{operand};"
    )
    constraints = "b,l,r" + ",r" * count + constraint
    nvidia.assembly(text, constraints, None, predicate, map_, source, *coordinates, *policy)


def _commit_bulk_copies(predicate: Value) -> None:
    """The copies to global memory begun since the last time are a group."""
    nvidia.assembly("@$0 cp.async.bulk.commit_group;", "b", None, predicate)


def _wait_bulk_copies(predicate: Value, pendings: int, *, read: bool) -> None:
    """Until all but so many of this thread's groups have landed, or have at least been read from
    shared memory."""
    kind = ".read" if read else ""
    nvidia.assembly(
        f"@$0 cp.async.bulk.wait_group{kind} {pendings};", "b,~{memory}", None, predicate
    )


@lowers(ttng.PrefetchTensorMapOp)
def _prefetch_map(ctx: Lowering, site: Site) -> list[Value]:
    (map_,) = site.operands
    _prefetch_tensor_map(map_, is_issuer(ctx))
    return []


@dataclass(frozen=True)
class _Copy:
    """One box for each of some warps: where it begins in the tensor, the fastest dimension first,
    and in shared memory, and whether this thread issues it."""

    coordinates: list[Value]
    address: Value
    issues: Value


def _copies(ctx: Lowering, site: Site, memory: Value, indices: list[Value]) -> list[_Copy]:
    """The boxes of a block, dealt out to the warps in turn: issued by one thread, each would wait
    for those before it. Where a block has fewer dimensions than the tensor, they are the last."""
    box = box_of_map(site.operand_types[0])
    assert box is not None, "as the pass chose it"
    start, number = nvidia.shared_address(memory), 2 if isa(site.op, ttng.AsyncTMACopyOp) else 1
    view = mem_desc_view(site.operand_types[number])
    pieces = box.pieces if view.layout == box.layout else box.pieces_in(view)
    assert pieces is not None, "as the front end saw"
    whole = (0,) * (len(indices) - len(box.block))
    pieces = [((*whole, *place), offset) for place, offset in pieces]
    count = len(pieces)
    at_once = min(count, ctx.threads.warps)
    steps = [pieces[1 << bit] for bit in range(log2(at_once))]
    offset = ctx.threads.warp_bits(tuple(offset for _, offset in steps))
    own = [
        ctx.threads.warp_bits(tuple(place[n] for place, _ in steps)) for n in range(len(indices))
    ]
    found = []
    for place, first in pieces[::at_once]:
        at = [_sum(i, n, mine) for i, n, mine in zip(indices, place, own, strict=True)]
        found.append(_Copy(at[::-1], _sum(start, first, offset), issues(ctx, at_once)))
    return found


def _sum(value: Value, number: int, more: Value | None) -> Value:
    value = v.add(value, more) if more is not None else value
    return v.add(value, v.i32(number)) if number else value


@lowers(ttng.AsyncTMACopyOp)
def _copy_to_local(ctx: Lowering, site: Site) -> list[Value]:
    map_, barrier, memory, condition, *indices = site.operands
    arrives, policy = nvidia.shared_address(barrier), _policy(site)
    rank = site.operand_types[0].rank
    offsets = [v.create(llvm.TruncOp, v.integer(16), n) for n in reversed(indices[rank:])]
    for copy in _copies(ctx, site, memory, indices[:rank]):
        issues = v.binary(llvm.AndOp, condition, copy.issues)
        place, at = copy.address, copy.coordinates
        _copy_tensor_to_shared(place, map_, at, offsets, arrives, issues, policy)
    return []


def _reduction(site: Site) -> str:
    """What a store combines by, as `tt.atomic_rmw` calls it; empty where it overwrites."""
    name = site.text("reduction")
    return "" if name == ttng.NO_REDUCTION else name


@lowers(ttng.AsyncTMAStoreOp)
def _copy_to_global(ctx: Lowering, site: Site) -> list[Value]:
    map_, memory, *indices = site.operands
    reduction = _reduction(site)
    name = reduction if reduction in REDUCE_KINDS else reduction[1:]  # the map knows the type
    policy = _policy(site)
    for copy in _copies(ctx, site, memory, indices):
        _copy_tensor_to_global(map_, copy.coordinates, copy.address, copy.issues, name, policy)
    # Of every warp, though it be empty: a wait counts the same groups in all of them.
    _commit_bulk_copies(nvidia.elected())
    return []


@lowers(ttng.LocalToGlobalOp)
def _by_threads(ctx: Lowering, site: Site) -> list[Value]:
    """Element by element, in the order in which they lie in shared memory; copies that come later
    find them written."""
    memory, base, *numbers = site.operands
    shape, element, layout = mem_desc_parts(site.operand_types[0])
    rank, stored = len(shape), v.integer(8) if is_float8(element) else element
    reduction = _reduction(site)
    sizes, strides, starts = numbers[:rank], numbers[rank : 2 * rank - 1], numbers[2 * rank - 1 :]
    i64 = v.integer(64)

    def one(place: Value) -> None:
        inside, offset = v.constant(1, v.integer(1)), v.constant(0, i64)
        for axis, start in enumerate(starts):
            own = v.xor_of_bits(place, [basis[axis] for basis in layout.bases("offset")])
            index = v.add(start, own)
            is_in = v.compare("ult", index, sizes[axis])  # a negative one is large
            inside = v.binary(llvm.AndOp, inside, is_in)
            step = v.create(llvm.SExtOp, i64, index)
            step = v.binary(llvm.MulOp, step, strides[axis]) if axis < rank - 1 else step
            offset = v.add(offset, step)
        source = v.offset_pointer(memory, place, stored)
        size = stored_bytes(element)

        def write() -> None:
            target, value = v.offset_pointer(base, offset, stored), v.load(source, stored, size)
            if reduction:
                relaxed(ctx, reduction, target, value)
            else:
                v.store(target, value, size)

        v.when(inside, write)

    threads = ctx.threads.count
    v.repeat(ctx.threads.number, v.i32(prod(shape)), v.i32(threads), one)
    nvidia.fence_async()
    return []


@lowers(ttng.TMAStoreWaitOp)
def _store_wait(ctx: Lowering, site: Site) -> list[Value]:
    read = not site.op.attributes["landed"].value
    _wait_bulk_copies(nvidia.elected(), site.number("pendings"), read=read)
    return []
