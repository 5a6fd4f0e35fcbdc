"""Ops of the `ttng` dialect on memory: the tensor memory accelerator (TMA), and barriers in shared
memory that copies arrive at.

`ttng.tma_load` and `ttng.tma_store` say that TMA does what a tensor descriptor asked for; which
memory and which barrier it takes is said by the copies that they become. An *mbarrier* counts the
bytes that its copies still have to bring (PTX ISA, "Asynchronous barrier"). It goes from phase to
phase, and a thread waits for the end of the one whose parity it names: 0, 1, 0, ... Here one thread
of each warp issues the boxes that fall to it, one says how many bytes will come, and all wait.
"""

from collections.abc import Sequence

from proton.dialect import traits as t
from proton.dialect.asynchronous import COPIES, STORES, Issues, Retires
from proton.dialect.diagnostics import check_block, check_choice, reject
from proton.dialect.mlir import AnyType, Operand, OpView, Result, Type, Value, ir
from proton.dialect.tt_block import (
    TensorDescIm2colType,
    TensorDescType,
    check_images,
    is_descriptor,
)
from proton.dialect.tt_memory import RMW_OPS
from proton.dialect.ttg_core import MutableMemDescType, is_mem_desc, mem_desc, mem_desc_block
from proton.dialect.ttng_core import TTNG
from proton.layout.named import shared_row_major
from proton.layout.tensor_map import TENSOR_MAP_BYTES

NO_REDUCTION = "none"  # of a store that overwrites


class TensorMapType(TTNG.Type, name="tensormap"):
    """`!ttng.tensormap<tensor<64x32xf16>, "zero">`: a tensor in memory as TMA knows it, of which
    blocks of this type are copied; what they have outside of it is "zero" or "nan". Integers that
    TMA compares as signed ones have a sign, `si32`."""

    block: ir.TypeAttr
    padding: ir.StringAttr
    target, outside = TensorDescType.target, TensorDescType.outside
    loaded = TensorDescType.loaded
    rank, index_count = TensorDescType.rank, TensorDescType.index_count

    @property
    def element(self) -> Type:
        """The type of a block's elements, as tensors have it."""
        type_ = ir.TypeAttr(self.block).value.element_type
        is_signed = isinstance(type_, ir.IntegerType) and type_.is_signed
        return ir.IntegerType.get_signless(type_.width) if is_signed else type_


class TensorMapIm2colType(TTNG.Type, name="tensormap_im2col"):
    """`!ttng.tensormap_im2col<tensor<64x32xf16>, "zero", 4 : i32>`: a batch of images as TMA knows
    it, as `!tt.tensordesc_im2col` describes it."""

    block: ir.TypeAttr
    padding: ir.StringAttr
    dimensions: ir.IntegerAttr
    target, outside = TensorDescType.target, TensorDescType.outside
    loaded = TensorDescType.loaded
    rank, index_count = TensorDescIm2colType.rank, TensorDescIm2colType.index_count
    element = TensorMapType.element


def is_tensor_map(type_: Type) -> bool:
    """True if a type is a tensor map, in either mode."""
    return isinstance(type_, TensorMapType | TensorMapIm2colType)


def is_im2col(type_: Type) -> bool:
    """True if a type is a tensor map in im2col mode."""
    return isinstance(type_, TensorMapIm2colType)


class TensorMapOp(
    TTNG.Operation,
    name="tensor_map",
    traits=[t.Pure, t.Speculatable, t.PassesPointers, t.TileIndex],
):
    """`ttng.tensor_map %base, %sizes..., %strides..., %pixels...`: the map of a tensor, its last
    stride left out, which is 1. In im2col mode `%pixels` are, each along D, H and W, the lower
    corners of the bounding box, the upper ones, and the steps of the walk. Until descriptors are
    taken apart, `%base` is one, and nothing follows. The host makes the map if it can
    (proton/analysis/tensor_maps.py), else a `ttng.tensormap_create` in its place."""

    base: Operand[AnyType]
    sizes: Sequence[Operand[ir.IntegerType[32]]]
    strides: Sequence[Operand[ir.IntegerType[64]]]
    pixels: Sequence[Operand[ir.IntegerType[32]]]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "TensorMapOp") -> bool:
        if not is_tensor_map(op.result.type):
            return reject(op, f"result must be a tensor map, got {op.result.type}")
        is_of_pixels = is_im2col(op.result.type)
        if is_of_pixels and not check_images(op, op.result.type):
            return False
        rank, found = op.result.type.rank, (len(op.sizes), len(op.strides), len(op.pixels))
        wanted = rank, rank - 1, 3 * (rank - 2) * is_of_pixels
        if is_descriptor(op.base.type):
            wanted = 0, 0, 0
            if op.base.type.index_count != op.result.type.index_count:
                return reject(op, f"{op.base.type} is not what {op.result.type} is of")
        return found == wanted or reject(
            op, "{} sizes, {} strides and {} of pixels, got {}, {} and {}".format(*wanted, *found)
        )


class PrefetchTensorMapOp(TTNG.Operation, name="prefetch_tensor_map", traits=[t.Writes]):
    """`ttng.prefetch_tensor_map %map`: brings a map to where copies look for it (PTX:
    `prefetch.tensormap`)."""

    map: Operand[AnyType]

    @staticmethod
    def verify_invariants(op: "PrefetchTensorMapOp") -> bool:
        return is_tensor_map(op.map.type) or reject(
            op, f"operand 0 must be a tensor map, got {op.map.type}"
        )


class TensorCheckOp(TTNG.Operation, name="tensor_check", traits=[t.Reads]):
    """`ttng.tensor_check %base, %sizes..., %strides... {message}`: ends the kernel if a tensor that
    has elements has an address or strides that TMA cannot take: no multiples of 16 bytes, negative,
    or 2^40 bytes and more. It says `message` then, as `tt.assert` does; with none it is a trap."""

    base: Operand[AnyType]
    sizes: Sequence[Operand[ir.IntegerType[32]]]
    strides: Sequence[Operand[ir.IntegerType[64]]]
    message: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "TensorCheckOp") -> bool:
        wanted = len(op.sizes) - 1
        return len(op.strides) == wanted or reject(
            op, f"{wanted} strides for {len(op.sizes)} sizes, got {len(op.strides)}"
        )


class TensorMapCreateOp(
    TTNG.Operation,
    name="tensormap_create",
    traits=[t.Writes, t.PassesPointers, t.SharedEffects(reads=(0,), writes=(0,))],
):
    """`ttng.tensormap_create %memory, %base, %sizes..., %strides... {warp}`: one warp makes the map
    of a tensor in 128 bytes of shared memory, and copies it to the program's global scratch memory,
    over what the op has put there before. Threads of other warps may use it behind a barrier."""

    memory: Operand[AnyType]
    base: Operand[AnyType]
    sizes: Sequence[Operand[ir.IntegerType[32]]]
    strides: Sequence[Operand[ir.IntegerType[64]]]
    warp: ir.IntegerAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "TensorMapCreateOp") -> bool:
        if not is_tensor_map(op.result.type) or is_im2col(op.result.type):
            return reject(op, f"result must be a tensor map of tiles, got {op.result.type}")
        if op.memory.type != map_memory():
            return reject(op, f"memory must be {map_memory()}, got {op.memory.type}")
        found, rank = (len(op.sizes), len(op.strides)), len(op.result.type.target.shape)
        return found == (rank, rank - 1) or reject(
            op, f"{rank} sizes and {rank - 1} strides, got {found[0]} and {found[1]}"
        )


def map_memory() -> Type:
    """The type of shared memory that a map is made in: 128 bytes."""
    words = (TENSOR_MAP_BYTES // 4,)
    layout = shared_row_major(words, (0,))
    return mem_desc(words, ir.IntegerType.get_signless(32), layout, is_mutable=True)


def _verify_map(op: OpView) -> bool:
    """The first operand is a map, and as many indices as it asks for say where the block is."""
    if not is_tensor_map(op.map.type):
        return reject(op, f"operand 0 must be a tensor map, got {op.map.type}")
    wanted = op.map.type.index_count
    return len(op.indices) == wanted or reject(op, f"{wanted} indices, got {len(op.indices)}")


def _verify_tiled(op: OpView) -> bool:
    """The same, and the map is not in im2col mode, which only copies to shared memory have."""
    return _verify_map(op) and (
        not is_im2col(op.map.type) or reject(op, f"a map of tiles, got {op.map.type}")
    )


def _verify_tensor(op: OpView, what: str, value: Value) -> bool:
    block = op.map.type.target
    return check_block(op, what, value, tuple(block.shape), op.map.type.element)


def _verify_reduction(op: OpView) -> bool:
    return check_choice(op, "reduction", op.reduction, (NO_REDUCTION, *RMW_OPS))


def _verify_memory(op: OpView, memory: Value) -> bool:
    """The memory holds a block of the map."""
    block = op.map.type.target
    if not is_mem_desc(memory.type):
        return reject(op, f"memory must be a !ttg.memdesc, got {memory.type}")
    shape, element = mem_desc_block(memory.type)
    fits = (shape, element) == (tuple(block.shape), op.map.type.element)
    return fits or reject(op, f"{memory.type} does not hold {block}")


class TMALoadOp(TTNG.Operation, name="tma_load", traits=[t.Reads, t.Accesses, t.LayoutAnchor]):
    """`ttng.tma_load %map, %indices`: the block at `indices`."""

    map: Operand[AnyType]
    indices: Sequence[Operand[ir.IntegerType[32]]]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "TMALoadOp") -> bool:
        return _verify_tiled(op) and _verify_tensor(op, "result", op.result)


class TMAStoreOp(TTNG.Operation, name="tma_store", traits=[t.Writes, t.Accesses]):
    """`ttng.tma_store %map, %src, %indices {reduction}`: writes what of the block is in the tensor,
    or combines each element in memory with the block's: what `tt.atomic_rmw` names, or "none"."""

    map: Operand[AnyType]
    src: Operand[AnyType]
    indices: Sequence[Operand[ir.IntegerType[32]]]
    reduction: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "TMAStoreOp") -> bool:
        return _verify_tiled(op) and _verify_tensor(op, "src", op.src) and _verify_reduction(op)


# What they become

# Of a copy, what it tells the second-level cache of its lines: the priority of a share of them and
# that of the others; the share.
L2_PRIORITIES, L2_SHARE = "l2_priorities", "l2_share"


class AsyncTMACopyOp(
    TTNG.Operation,
    name="async_tma_copy_global_to_local",
    traits=[
        t.Writes,
        t.Accesses,
        Issues(COPIES, closes=False),
        t.SharedEffects(reads=(1,), writes=(2,), lands_later=True),
    ],
):
    """`ttng.async_tma_copy_global_to_local %map, %barrier, %dst, %pred, %indices`: a thread of
    each warp begins to copy its boxes of the block at `indices`, if `pred` holds; their bytes
    arrive at the barrier. In im2col mode offsets, which have no sign, are behind the indices."""

    map: Operand[AnyType]
    barrier: Operand[AnyType]
    dst: Operand[AnyType]
    pred: Operand[ir.IntegerType[1]]
    indices: Sequence[Operand[ir.IntegerType[32]]]

    @staticmethod
    def verify_invariants(op: "AsyncTMACopyOp") -> bool:
        is_mutable = isinstance(op.dst.type, MutableMemDescType)
        if not is_mutable:
            return reject(op, f"what is written must be mutable, got {op.dst.type}")
        return _verify_map(op) and _verify_memory(op, op.dst) and _verify_barrier(op)


class AsyncTMAStoreOp(
    TTNG.Operation,
    name="async_tma_copy_local_to_global",
    traits=[
        t.Writes,
        t.Accesses,
        Issues(STORES),
        t.SharedEffects(reads=(1,), reads_later="stores"),
    ],
):
    """`ttng.async_tma_copy_local_to_global %map, %src, %indices {reduction}`: a thread of each warp
    begins to copy its boxes of the block to `indices`, or to combine them with what is there."""

    map: Operand[AnyType]
    src: Operand[AnyType]
    indices: Sequence[Operand[ir.IntegerType[32]]]
    reduction: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "AsyncTMAStoreOp") -> bool:
        return _verify_tiled(op) and _verify_memory(op, op.src) and _verify_reduction(op)


class LocalToGlobalOp(
    TTNG.Operation, name="local_to_global", traits=[t.Writes, t.SharedEffects(reads=(0,))]
):
    """`ttng.local_to_global %src, %base, %sizes..., %strides..., %indices... {reduction}`: the
    threads write what of the block at `indices` is in the tensor, or combine it with what is there;
    the tensor's last stride is 1, and not named."""

    src: Operand[AnyType]
    base: Operand[AnyType]
    sizes: Sequence[Operand[ir.IntegerType[32]]]
    strides: Sequence[Operand[ir.IntegerType[64]]]
    indices: Sequence[Operand[ir.IntegerType[32]]]
    reduction: ir.StringAttr

    @staticmethod
    def verify_invariants(op: "LocalToGlobalOp") -> bool:
        if not _verify_reduction(op):
            return False
        if not is_mem_desc(op.src.type):
            return reject(op, f"memory must be a !ttg.memdesc, got {op.src.type}")
        rank = len(mem_desc_block(op.src.type)[0])
        found = [len(op.sizes), len(op.strides), len(op.indices)]
        return found == [rank, rank - 1, rank] or reject(
            op, f"{rank} sizes and indices, {rank - 1} strides, got {found}"
        )


class TMAStoreWaitOp(
    TTNG.Operation,
    name="tma_store_wait",
    traits=[t.Writes, Retires(STORES), t.SharedEffects(ends_reads="stores")],
):
    """`ttng.tma_store_wait {pendings, landed}`: until all but so many of the thread's copies to
    global memory have landed; else until they have been read from shared memory."""

    pendings: ir.IntegerAttr
    landed: ir.IntegerAttr


# Barriers


def barriers(count: int) -> Type:
    """The type of so many barriers in shared memory; of several `ttg.memdesc_index` takes one."""
    layout, shape = shared_row_major((1,), (0,)), (count, 1) if count > 1 else (1,)
    return mem_desc(shape, ir.IntegerType.get_signless(64), layout, is_mutable=True)


def one_barrier() -> Type:
    """The type of one of them."""
    return barriers(1)


def barrier_count(type_: Type) -> int:
    """How many barriers memory of a type has."""
    return int(mem_desc_block(type_)[0][0])


def _verify_barrier(op: OpView) -> bool:
    return (is_mem_desc(op.barrier.type) and str(mem_desc_block(op.barrier.type)[1]) == "i64") or (
        reject(op, f"a barrier is an i64 in shared memory, got {op.barrier.type}")
    )


class InitBarrierOp(
    TTNG.Operation, name="init_barrier", traits=[t.Writes, t.SharedEffects(writes=(0,))]
):
    """`ttng.init_barrier %barriers {count}`: each waits for `count` arrivals in a phase."""

    barrier: Operand[AnyType]
    count: ir.IntegerAttr
    verify_invariants = staticmethod(_verify_barrier)


class InvalBarrierOp(
    TTNG.Operation, name="inval_barrier", traits=[t.Writes, t.SharedEffects(writes=(0,))]
):
    """`ttng.inval_barrier %barriers`: they are ordinary memory again."""

    barrier: Operand[AnyType]
    verify_invariants = staticmethod(_verify_barrier)


class BarrierExpectOp(
    TTNG.Operation,
    name="barrier_expect",
    traits=[
        t.Writes,
        Issues(COPIES, condition="pred", iteration="iteration"),
        t.SharedEffects(reads=(0,)),
    ],
):
    """`ttng.barrier_expect %barrier, %pred, %iteration? {bytes}`: one thread arrives, if `pred`
    holds; the phase ends when so many bytes have arrived, too. Records say that the copies are of
    the loop's iteration of this number."""

    barrier: Operand[AnyType]
    pred: Operand[ir.IntegerType[1]]
    bytes: ir.IntegerAttr
    iteration: Operand[ir.IntegerType[64]] | None = None
    verify_invariants = staticmethod(_verify_barrier)


class BarrierCompleteOp(
    TTNG.Operation,
    name="barrier_complete",
    traits=[t.Writes, t.Barrier, t.SharedEffects(reads=(0,))],
):
    """`ttng.barrier_complete %barrier, %pred {bytes}`: the group of warps meets, and so many of the
    bytes that a phase expects, which its threads have written, arrive, if `pred` holds."""

    barrier: Operand[AnyType]
    pred: Operand[ir.IntegerType[1]]
    bytes: ir.IntegerAttr
    verify_invariants = staticmethod(_verify_barrier)


class ArriveBarrierOp(
    TTNG.Operation, name="arrive_barrier", traits=[t.Writes, t.SharedEffects(reads=(0,))]
):
    """`ttng.arrive_barrier %barrier`: each thread of the group of warps arrives; what it read of
    shared memory before is read."""

    barrier: Operand[AnyType]
    verify_invariants = staticmethod(_verify_barrier)


class ArriveOnceOp(
    TTNG.Operation, name="arrive_once", traits=[t.Writes, t.Barrier, t.SharedEffects(reads=(0,))]
):
    """`ttng.arrive_once %barrier, %pred {count}`: the group of warps meets, and one thread arrives
    so often for all, if `pred` holds."""

    barrier: Operand[AnyType]
    pred: Operand[ir.IntegerType[1]]
    count: ir.IntegerAttr
    verify_invariants = staticmethod(_verify_barrier)


class ArriveOfWarpsOp(
    TTNG.Operation, name="arrive_of_warps", traits=[t.Writes, t.SharedEffects(reads=(0,))]
):
    """`ttng.arrive_of_warps %barrier, %pred`: a thread of each warp arrives, if `pred` holds; what
    the warp read of shared memory before is read. No warp waits for another."""

    barrier: Operand[AnyType]
    pred: Operand[ir.IntegerType[1]]
    verify_invariants = staticmethod(_verify_barrier)


class ArriveBehindCopiesOp(
    TTNG.Operation,
    name="arrive_behind_copies",
    traits=[t.Writes, Issues(COPIES), t.SharedEffects(reads=(0,))],
):
    """`ttng.arrive_behind_copies %barrier {increments}`: each thread arrives when the copies that
    it has begun have ended; the barrier counts these arrivals besides its own if `increments`
    (PTX: `cp.async.mbarrier.arrive`)."""

    barrier: Operand[AnyType]
    increments: ir.IntegerAttr
    verify_invariants = staticmethod(_verify_barrier)


class ArriveWithCopiesOp(
    TTNG.Operation, name="arrive_with_copies", traits=[t.Writes, t.SharedEffects(reads=(0,))]
):
    """`ttng.arrive_with_copies %barrier {pendings}`: a thread of each warp arrives when at most
    `pendings` groups of each thread's copies (`ttg.async_commit_group`) are under way. What the
    others wrote is there for who waits for the phase, and for tensor cores."""

    barrier: Operand[AnyType]
    pendings: ir.IntegerAttr
    verify_invariants = staticmethod(_verify_barrier)


class WaitBarrierOp(
    TTNG.Operation,
    name="wait_barrier",
    traits=[t.Writes, Retires(COPIES), t.SharedEffects(reads=(0,))],
):
    """`ttng.wait_barrier %barrier, %phase`: until the phase of this parity has ended. What its
    copies wrote is there then, for each thread that waited. A thread that comes two phases late
    takes the one for the other: whoever waits must also be waited for."""

    barrier: Operand[AnyType]
    phase: Operand[ir.IntegerType[32]]
    verify_invariants = staticmethod(_verify_barrier)


class WaitBarrierIfOp(
    TTNG.Operation,
    name="wait_barrier_if",
    traits=[t.Writes, Retires(COPIES), t.SharedEffects(reads=(0,))],
):
    """`ttng.wait_barrier_if %barrier, %phase, %pred`: as `ttng.wait_barrier`, if `pred` holds."""

    barrier: Operand[AnyType]
    phase: Operand[ir.IntegerType[32]]
    pred: Operand[ir.IntegerType[1]]
    verify_invariants = staticmethod(_verify_barrier)
