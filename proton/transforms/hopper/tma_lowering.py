"""Loads and stores of TMA that no pipeline took: memory, a barrier, the copy, and the wait for it.

    %x = ttng.tma_load %t, %i, %j
becomes
    %m = ttg.local_reserve;  %b = ttg.local_reserve
    ttng.init_barrier %b;  ttng.fence_async_shared
    ttng.async_tma_copy_global_to_local %t, %b, %m, %i, %j
    ttng.barrier_expect %b {bytes}
    ttng.wait_barrier %b, 0;  ttng.inval_barrier %b
    %x = ttg.local_load %m

What stays in memory is waited for where it is asked for.

In a loop over the tiles of a persistent kernel, and in one that only adds by TMA, a store goes on
while the next block is made: it has memory of its own, and is waited for before that is written
again.
"""

import functools
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.axis_info import AxisInfos
from proton.analysis.scratch import stored_bytes
from proton.analysis.signs import is_non_negative
from proton.analysis.tensor_maps import box_of_map
from proton.dialect import isa, names_of, ttng
from proton.dialect.builtin import i32_attr, integer
from proton.dialect.emit import constant, emit_if, emit_when
from proton.dialect.mlir import Module, Operation, OpView, Type, Value, arith, ir
from proton.dialect.regions import ForLoop, end_of, with_carried
from proton.dialect.ttg import mem_desc, mem_desc_parts
from proton.dialect.ttg_memory import LocalAllocOp, LocalReserveOp, LocalStoreOp, MemDescTransOp
from proton.dialect.walk import all_ops, before, ops_named, producer_of, users
from proton.layout import LinearLayout
from proton.layout.tensor_map import ROW_BYTES
from proton.passes import Pass, register
from proton.schedule.buffers import begin_tma, start_barriers, take_from
from proton.schedule.loads import TMA_LOAD, Load, loop_of_store, reduction_of

_STORE, _COPY = ttng.TMAStoreOp, ttng.AsyncTMAStoreOp
_NOWHERE = -(1 << 30)  # an index that no block is near


@register
@dataclass(frozen=True)
class TMALowering(Pass):
    """Copies in the place of `ttng.tma_load` and `ttng.tma_store`.

    TMA cannot write a block that begins before the tensor, nor one whose rows do not begin at
    multiples of 16 bytes (an illegal instruction); and it writes all of the last 16 bytes of a
    row, also what of them is beyond the tensor (seen on an H200, by any map). Where the indices and
    the size may say so, they are looked at, and threads write such a block.
    """

    name: ClassVar[str] = "triton-nvidia-gpu-tma-lowering"
    only_for: ClassVar[frozenset[str]] = names_of(TMA_LOAD, _STORE)

    def run(self, module: Module) -> None:
        for op in ops_named(module, TMA_LOAD):
            with before(op):
                _load(op)
        stores = ops_named(module, _STORE)
        if not stores:
            return
        infos, commute = AxisInfos(module), bool(reduction_of(module.operation))
        for op in stores:
            with before(op):
                _store(op, infos, commute)


def _load(op: Operation) -> None:
    load, zero = Load(op), constant(0, integer(32))
    memory = LocalReserveOp(load.memory).result
    barrier = start_barriers(1)
    begin_tma([load], [memory], barrier, constant(1, integer(1)), {})
    with before(_asks(load)):
        ttng.WaitBarrierOp(barrier, zero)
        ttng.InvalBarrierOp(barrier)
    take_from(load, memory)


def _asks(load: Load) -> Operation:
    """The op that data is waited for ahead of: the first one of the block that takes it, where it
    stays in memory until then anyway. All warps come to the wait together."""
    if load.alloc is None:
        return load.op
    takers = {op for value in _views(load.alloc) for op in users(value)}
    ops = [view.operation for view in load.op.block.operations]
    behind = ops[ops.index(load.op) + 1 :]
    asks = (
        op
        for op in behind
        if takers & {op, *all_ops(op)} - {load.alloc} or isa(op, ttng.OrderBeginOp)
    )
    return next(asks, load.op)


def _views(alloc: Operation) -> list[Value]:
    """The memory of an allocation, and other views of it."""
    (memory,) = alloc.results
    own = [op for op in users(memory) if isa(op, MemDescTransOp)]
    return [memory, *(value for op in own for value in _views(op))]


def _store(op: Operation, infos: AxisInfos, commute: bool) -> None:
    view = op.opview
    box, element = box_of_map(view.map.type), view.map.type.element
    assert box is not None, "as the pass chose it"
    shape, indices = tuple(view.map.type.target.shape), list(view.indices)
    loop = loop_of_store(op)
    if loop is not None:
        memory = _reserve_around(loop, shape, element, box.layout)
        with before(_meeting(op)):
            _wait(0)
        LocalStoreOp(view.src, memory)
        if commute:
            pass
        elif reduction_of(loop):  # only what came before the loop is of another kind
            with before(loop):
                _wait(0, landed=True)
        elif len(ops_named(loop, _STORE, _COPY)) > 1:
            _wait(0, landed=True)  # the last one is another's, and may overlap
        else:
            _wait_for_overlap(loop, shape, indices)
        _copy(view, memory, infos)
    else:
        type_ = mem_desc(shape, element, box.layout)
        memory = LocalAllocOp(view.src, type_).result
        if not commute:
            _wait(0, landed=True)
        _copy(view, memory, infos)
        _wait(0)
    op.erase()


def _meeting(store: Operation) -> Operation:
    """The op that threads meet behind anyway on the way to a store: the last one that writes what a
    dot reads, if no other store comes behind it; else the store."""
    found = store
    for view in store.block.operations:
        op = view.operation
        if op == store:
            return found
        if isa(op, LocalStoreOp, LocalAllocOp) and len(op.operands):
            memory = op.operands[1] if isa(op, LocalStoreOp) else op.results[0]
            found = op if _is_for_dot(memory) else found
        elif ops_named(op, _STORE, _COPY) or isa(op, _STORE, _COPY):
            found = store
    return found


def _is_for_dot(memory: Value) -> bool:
    """True if a dot of warp groups reads memory, as it is or transposed."""
    return any(
        isa(op, ttng.WarpGroupDotOp) or (isa(op, MemDescTransOp) and _is_for_dot(op.results[0]))
        for op in users(memory)
    )


def _wait(pendings: int, *, landed: bool = False) -> None:
    ttng.TMAStoreWaitOp(i32_attr(pendings), ir.BoolAttr.get(landed))


def _wait_for_overlap(loop: Operation, shape: tuple[int, ...], indices: list[Value]) -> None:
    """Copies land in no order: waits for all but the last one, and for that, too, where it writes
    what the next one does. The loop carries its indices."""
    i32 = integer(32)
    with before(loop):
        _wait(0, landed=True)
        nowhere = [constant(_NOWHERE, i32) for _ in indices]
    new = with_carried(loop, nowhere)
    end, count = end_of(ForLoop(new).body), len(indices)
    for number, index in enumerate(indices):
        end.operands[len(end.operands) - count + number] = index
    overlaps = []
    for size, index, last in zip(shape, indices, ForLoop(new).iter_args[-count:], strict=True):
        apart = arith.AddIOp(arith.SubIOp(index, last).result, constant(size - 1, i32)).result
        overlaps.append(
            arith.CmpIOp(arith.CmpIPredicate.ult, apart, constant(2 * size - 1, i32)).result
        )
    _wait(1, landed=True)
    emit_when(_all(overlaps), lambda: _wait(0, landed=True))


def _all(conditions: list[Value]) -> Value:
    return functools.reduce(lambda x, y: arith.AndIOp(x, y).result, conditions)


def _copy(store: OpView, memory: Value, infos: AxisInfos) -> None:
    """Writes memory where a `ttng.tma_store` does, and as it does."""
    indices = list(store.indices)

    def by_tma() -> list[Value]:
        ttng.AsyncTMAStoreOp(store.map, memory, indices, store.reduction)
        return []

    def by_threads() -> list[Value]:
        rank = len(indices)
        base, *numbers = producer_of(store.map).operands
        ttng.LocalToGlobalOp(memory, base, numbers[:rank], numbers[rank:], indices, store.reduction)
        return []

    shape, element, _ = mem_desc_parts(memory.type)
    doubts = _doubts(indices, stored_bytes(element), infos)
    size = producer_of(store.map).operands[len(indices)]
    doubts += _doubts_of_edge(indices[-1], shape[-1], size, stored_bytes(element), infos)
    if not doubts:
        by_tma()
        return
    emit_if(_all(doubts), [], by_tma, by_threads)


def _doubts(indices: list[Value], element_bytes: int, infos: AxisInfos) -> list[Value]:
    """What has to be true of the indices for TMA to write the block, and is not known to be."""
    i32 = integer(32)
    found = [
        arith.CmpIOp(arith.CmpIPredicate.sge, index, constant(0, i32)).result
        for index in indices
        if not is_non_negative(index, frozenset())
    ]
    last, row = indices[-1], ROW_BYTES // element_bytes
    if row > 1 and infos[last].divisibility[0] % row:
        rest = arith.AndIOp(last, constant(row - 1, i32)).result
        found.append(arith.CmpIOp(arith.CmpIPredicate.eq, rest, constant(0, i32)).result)
    return found


def _doubts_of_edge(
    index: Value, width: int, size: Value, element_bytes: int, infos: AxisInfos
) -> list[Value]:
    """What has to be true for the last 16 bytes of the block's rows to be in a tensor whose rows
    have `size` elements, and is not known to be: all of them are, or these rows end before."""
    i32, row = integer(32), ROW_BYTES // element_bytes
    if row <= 1 or infos[size].divisibility[0] % row == 0:
        return []
    rest = arith.AndIOp(size, constant(row - 1, i32)).result
    is_whole = arith.CmpIOp(arith.CmpIPredicate.eq, rest, constant(0, i32)).result
    last = arith.SubIOp(size, constant(width, i32)).result
    ends_before = arith.CmpIOp(arith.CmpIPredicate.sge, last, index).result
    return [arith.OrIOp(is_whole, ends_before).result]


def _reserve_around(
    loop: Operation, shape: tuple[int, ...], element: Type, layout: LinearLayout
) -> Value:
    """Memory of a loop, behind which nothing reads it any more."""
    with before(loop):
        memory = LocalReserveOp(mem_desc(shape, element, layout, is_mutable=True)).result
    with ir.InsertionPoint.after(loop), loop.location:
        _wait(0)
    return memory
