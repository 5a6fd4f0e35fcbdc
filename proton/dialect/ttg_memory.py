"""Ops of the `ttg` dialect on shared memory: tensors that lie there, copies that go on by
themselves, and groups of warps that run at once.

What an op does to the memory that its operands name stands with it (`SharedEffects`), operand by
operand. A copy that goes on gives a token: what it writes is there when `ttg.async_wait` has waited
for that. `ttg-to-llvm` lowers what `convert-triton-to-tritongpu` makes today: `ttg.local_alloc` and
`ttg.dot`. The others are what pipelines are made of; the analyses know them.
"""

from collections.abc import Sequence

from proton.dialect import traits as t
from proton.dialect.asynchronous import COPIES, Issues, Retires
from proton.dialect.diagnostics import (
    check_block,
    check_choice,
    check_product,
    element_of,
    reject,
    shape_of,
)
from proton.dialect.kinds import isa
from proton.dialect.mlir import AnyType, Operand, Operation, Region, Result, Type, Value, ir
from proton.dialect.tt_memory import RMW_OPS
from proton.dialect.ttg_core import (
    TTG,
    MemDescType,
    MutableMemDescType,
    is_mem_desc,
    is_tensor,
    mem_desc,
    mem_desc_block,
    mem_desc_parts,
    mem_desc_view,
)
from proton.layout import shapes


class AsyncTokenType(TTG.Type, name="async_token"):
    """`!ttg.async_token`: copies that may be under way."""


def _verify_tensor(op: Operation, desc: Value, tensor: Value, what: str) -> bool:
    """The tensor is what the memory holds."""
    if not is_mem_desc(desc.type):
        return reject(op, f"memory must be a !ttg.memdesc, got {desc.type}")
    shape, element = mem_desc_block(desc.type)
    return check_block(op, what, tensor, shape, element)


def _verify_mutable(op: Operation, desc: Value) -> bool:
    return isinstance(desc.type, MutableMemDescType) or reject(
        op, f"what is written must be a !ttg.mutable_memdesc, got {desc.type}"
    )


class LocalAllocOp(
    TTG.Operation, name="local_alloc", traits=[t.Pure, t.Speculatable, t.AllocatesShared]
):
    """`ttg.local_alloc %src`: the tensor in shared memory, where nothing changes it."""

    src: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "LocalAllocOp") -> bool:
        if not isinstance(op.result.type, MemDescType):
            return reject(op, f"result must be a !ttg.memdesc, got {op.result.type}")
        shape, element, _ = mem_desc_parts(op.result.type)
        return check_block(op, "operand", op.src, shape, element)


class SharedDotOp(
    TTG.Operation,
    name="dot",
    traits=[t.Pure, t.LayoutAnchor, t.Multiplies, t.SharedEffects(reads=(0, 1))],
):
    """`ttg.dot %a, %b, %acc`: the product of matrices, or of as many pairs of them, in shared
    memory, by multiply-adds."""

    a: Operand[AnyType]
    b: Operand[AnyType]
    acc: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "SharedDotOp") -> bool:
        for side in (op.a, op.b):
            if not isinstance(side.type, MemDescType):
                return reject(op, f"operands lie in shared memory, got {side.type}")
        shapes = [mem_desc_parts(side.type)[0] for side in (op.a, op.b)]
        fits = check_product(op, *shapes, shape_of(op.acc))
        return fits and (op.acc.type == op.result.type or reject(op, "the result has acc's type"))


class LocalReserveOp(
    TTG.Operation, name="local_reserve", traits=[t.Writes, t.AllocatesShared, t.NamesMemory]
):
    """`ttg.local_reserve`: shared memory with nothing in it yet."""

    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "LocalReserveOp") -> bool:
        return _verify_mutable(op, op.result)


class LocalLoadOp(
    TTG.Operation, name="local_load", traits=[t.LayoutAnchor, t.SharedEffects(reads=(0,))]
):
    """`ttg.local_load %desc`: the tensor that lies there."""

    src: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "LocalLoadOp") -> bool:
        return _verify_tensor(op, op.src, op.result, "result")


class LocalStoreOp(
    TTG.Operation, name="local_store", traits=[t.Writes, t.SharedEffects(writes=(1,))]
):
    """`ttg.local_store %tensor, %desc`."""

    src: Operand[AnyType]
    dst: Operand[AnyType]

    @staticmethod
    def verify_invariants(op: "LocalStoreOp") -> bool:
        return _verify_mutable(op, op.dst) and _verify_tensor(op, op.dst, op.src, "operand")


class LocalDeallocOp(TTG.Operation, name="local_dealloc", traits=[t.Writes, t.SharedEffects()]):
    """`ttg.local_dealloc %desc`: the memory is not used again before here."""

    src: Operand[AnyType]


def _verify_indexed(op: Operation, desc: Value, indices: Value, tensor: Value) -> bool:
    if not is_mem_desc(desc.type):
        return reject(op, f"memory must be a !ttg.memdesc, got {desc.type}")
    (shape, element), i32 = mem_desc_block(desc.type), ir.IntegerType.get_signless(32)
    if len(shape_of(indices)) != len(shape):
        return reject(op, f"indices must have {len(shape)} dimensions, got {indices.type}")
    return check_block(op, "indices", indices, shape_of(tensor), i32) and check_block(
        op, "the tensor", tensor, shape_of(indices), element
    )


class LocalGatherOp(
    TTG.Operation, name="local_gather", traits=[t.LayoutAnchor, t.SharedEffects(reads=(0,))]
):
    """`ttg.local_gather %desc, %indices {axis}`: of each index what lies at that place along the
    axis, and else at its own."""

    src: Operand[AnyType]
    indices: Operand[AnyType]
    axis: ir.IntegerAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "LocalGatherOp") -> bool:
        return _verify_indexed(op, op.src, op.indices, op.result)


class LocalScatterOp(
    TTG.Operation, name="local_scatter", traits=[t.Writes, t.SharedEffects(writes=(0,))]
):
    """`ttg.local_scatter %desc, %values, %indices {axis}`: writes each value to its index along the
    axis, and else to its own place."""

    dst: Operand[AnyType]
    values: Operand[AnyType]
    indices: Operand[AnyType]
    axis: ir.IntegerAttr

    @staticmethod
    def verify_invariants(op: "LocalScatterOp") -> bool:
        return _verify_mutable(op, op.dst) and _verify_indexed(op, op.dst, op.indices, op.values)


class LocalAtomicScatterOp(
    TTG.Operation,
    name="local_atomic_scatter",
    traits=[t.Writes, t.LayoutAnchor, t.SharedEffects(reads=(0,), writes=(0,))],
):
    """`ttg.local_atomic_scatter %desc, %values, %indices, %mask? {rmw_op, axis}`: combines what
    lies at each index along the axis with a value; what lay there before."""

    dst: Operand[AnyType]
    values: Operand[AnyType]
    indices: Operand[AnyType]
    rmw_op: ir.StringAttr
    axis: ir.IntegerAttr
    result: Result[AnyType]
    mask: Operand[AnyType] | None = None

    @staticmethod
    def verify_invariants(op: "LocalAtomicScatterOp") -> bool:
        return (
            check_choice(op, "rmw_op", op.rmw_op, RMW_OPS)
            and _verify_mutable(op, op.dst)
            and _verify_indexed(op, op.dst, op.indices, op.values)
            and _verify_indexed(op, op.dst, op.indices, op.result)
        )


class MemDescIndexOp(TTG.Operation, name="memdesc_index", traits=[t.Pure, t.PassesMemory]):
    """`ttg.memdesc_index %desc, %i`: the part at index %i of the first dimension, to be written if
    its type says so."""

    src: Operand[AnyType]
    index: Operand[ir.IntegerType[32]]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "MemDescIndexOp") -> bool:
        if not _verify_mutable(op, op.src):
            return False
        if not is_mem_desc(op.result.type):
            return reject(op, f"the result must be memory, got {op.result.type}")
        (whole, element), (part, other) = map(mem_desc_block, (op.src.type, op.result.type))
        views = [mem_desc_view(type_) for type_ in (op.src.type, op.result.type)]
        return (whole[1:] == part and element == other and views[0] == views[1]) or reject(
            op, f"the result must be one of the {whole[0]} parts, got {op.result.type}"
        )


class MemDescTransOp(
    TTG.Operation, name="memdesc_trans", traits=[t.Pure, t.Speculatable, t.PassesMemory]
):
    """`ttg.memdesc_trans %desc`: a matrix in shared memory with its dimensions exchanged."""

    src: Operand[AnyType]
    result: Result[AnyType]

    @staticmethod
    def of(memory: Value) -> Value:
        """The transposed view of a memory."""
        return MemDescTransOp(memory, _transposed(memory.type)).result

    @staticmethod
    def verify_invariants(op: "MemDescTransOp") -> bool:
        if not is_mem_desc(op.src.type) or len(mem_desc_parts(op.src.type)[0]) != 2:
            return reject(op, f"the operand must be a matrix in memory, got {op.src.type}")
        wanted = _transposed(op.src.type)
        return op.result.type == wanted or reject(op, f"the result must be {wanted}")


class MemDescViewOp(
    TTG.Operation, name="memdesc_view", traits=[t.Pure, t.Speculatable, t.PassesMemory]
):
    """`ttg.memdesc_view %desc {offset}`: memory from so many bytes on, as the result's type has it:
    a part of it, with dimensions in another order or of other sizes, or as other elements."""

    src: Operand[AnyType]
    offset: ir.IntegerAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "MemDescViewOp") -> bool:
        is_memory = is_mem_desc(op.src.type) and is_mem_desc(op.result.type)
        return is_memory or reject(op, f"{op.src.type} and {op.result.type} must be memory")


def _transposed(type_: Type) -> Type:
    (rows, columns), element, layout = mem_desc_parts(type_)
    is_mutable = isinstance(type_, MutableMemDescType)
    return mem_desc((columns, rows), element, shapes.trans(layout, (1, 0)), is_mutable)


class AsyncCopyOp(
    TTG.Operation,
    name="async_copy_global_to_local",
    traits=[
        t.Writes,
        t.Accesses,
        t.Asynchronous,
        Issues(COPIES, closes=False),
        t.SharedEffects(writes=(1,), lands_later=True),
    ],
):
    """`ttg.async_copy_global_to_local %pointers, %desc, %mask?`: begins a copy; gives its token.
    Where the mask is false there are zeros."""

    src: Operand[AnyType]
    dst: Operand[AnyType]
    token: Result[AsyncTokenType]
    mask: Operand[AnyType] | None = None

    @staticmethod
    def verify_invariants(op: "AsyncCopyOp") -> bool:
        if not (is_tensor(op.src.type) and _verify_mutable(op, op.dst)):
            return reject(op, f"the source must be a tensor of pointers, got {op.src.type}")
        shape, element = mem_desc_block(op.dst.type)
        pointee = getattr(element_of(op.src), "target", None)
        i1 = ir.IntegerType.get_signless(1)
        if op.mask is not None and not check_block(op, "mask", op.mask, shape, i1):
            return False
        return (shape_of(op.src) == shape and pointee == element) or reject(
            op, f"{op.src.type} does not point to what {op.dst.type} holds"
        )


class AsyncCommitGroupOp(
    TTG.Operation,
    name="async_commit_group",
    traits=[t.Writes, t.PassesTokens, Issues(COPIES, iteration="iteration")],
):
    """`ttg.async_commit_group %token0, ..., %iteration?`: the copies begun since the last one,
    whose tokens these are, become a group, which ends as one. Records say that the copies are of
    the loop's iteration of this number."""

    tokens: Sequence[Operand[AsyncTokenType]]
    group: Result[AsyncTokenType]
    iteration: Operand[ir.IntegerType[64]] | None = None


class AsyncWaitOp(
    TTG.Operation,
    name="async_wait",
    traits=[t.Writes, Retires(COPIES), t.SharedEffects(waits=True)],
):
    """`ttg.async_wait %token {pendings}`: what the token's copies write is there, for who waits. At
    most `pendings` groups, all committed after the token's, may still be under way."""

    token: Operand[AsyncTokenType]
    pendings: ir.IntegerAttr


FENCES = "fences"


class AsyncWaitGroupOp(
    TTG.Operation, name="async_wait_group", traits=[t.Writes, t.Barrier, Retires(COPIES)]
):
    """`ttg.async_wait_group {pendings}`: each thread waits until at most so many of its groups of
    copies are under way, and all meet: what the others wrote is there for each. With an attribute
    FENCES each fences first what it wrote, for `wgmma` and TMA."""

    pendings: ir.IntegerAttr


class WarpSpecializeOp(TTG.Operation, name="warp_specialize", traits=[t.Writes, t.Concurrent]):
    """`ttg.warp_specialize ({...}, {...}) {warps}`: two groups of warps run a region each, at once:
    the first so many warps, and the rest. All meet before and behind. A barrier in a region is of
    its warps, and so are its layouts."""

    warps: ir.IntegerAttr
    first: Region
    second: Region


class WarpReturnOp(
    TTG.Operation, name="warp_return", traits=[t.Pure, ir.IsTerminatorTrait, t.Terminates]
):
    """`ttg.warp_return`: ends a region of `ttg.warp_specialize`."""


# Groups as their author writes them: beside code that the program's own warps run


class WorkerOp(TTG.Operation, name="worker", traits=[t.Writes, t.Concurrent]):
    """`ttg.worker ({...}) {warps, registers, role}`: what a group of so many more warps runs
    between the next `ttg.start_workers` and the `ttg.join_workers` behind it; a thread of it has so
    many registers (0: no matter). `role` is the name of the author's function."""

    warps: ir.IntegerAttr
    registers: ir.IntegerAttr
    role: ir.StringAttr
    body: Region


class StartWorkersOp(TTG.Operation, name="start_workers", traits=[t.Writes, t.Barrier]):
    """`ttg.start_workers {role}`: the groups of the `ttg.worker`s before it begin; `role` is what
    the default group runs."""

    role: ir.StringAttr


class JoinWorkersOp(TTG.Operation, name="join_workers", traits=[t.Writes, t.Barrier]):
    """`ttg.join_workers`: those groups have ended."""


class MeetOp(TTG.Operation, name="meet", traits=[t.Writes, t.Barrier]):
    """`ttg.meet`: all warps of the program, each in its own group, come here before any goes on."""


def group_warps(op: Operation, program: int, default: int) -> int:
    """How many warps run an op in a program of so many; `default` where no groups are around it."""
    around: list[tuple[Operation, bool]] = []
    inner, outer = op, op.parent
    while outer is not None and outer.operation.name != "func.func":
        parent = outer.operation
        if isa(parent, WarpSpecializeOp):
            around.append((parent, inner.block == parent.regions[0].blocks[0]))
        inner, outer = parent, parent.parent
    warps = program if around else default
    for parent, is_first in reversed(around):
        first = int(ir.IntegerAttr(parent.attributes["warps"]).value)
        warps = first if is_first else warps - first
    return warps
