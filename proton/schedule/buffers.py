"""Loads by way of shared memory: how a copy by TMA begins, and who takes what it brought."""

from collections.abc import Mapping, Sequence

from proton.analysis.scratch import desc_bytes
from proton.dialect import isa, ttg
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Operation, Value, arith
from proton.dialect.ttg import mem_desc, mem_desc_parts, with_layout
from proton.dialect.ttg_memory import LocalLoadOp, LocalReserveOp, MemDescTransOp, MemDescViewOp
from proton.dialect.ttng import FenceAsyncSharedOp
from proton.dialect.ttng_memory import (
    AsyncTMACopyOp,
    BarrierExpectOp,
    InitBarrierOp,
    barriers,
)
from proton.schedule.loads import Load


def start_barriers(count: int, arrivals: int = 1) -> Value:
    """Barriers at which the program's first thread arrives, with the bytes that it has copied; or
    warps, `arrivals` in all. The fence is for them, and for what threads did before with the memory
    that is copied to."""
    memory: Value = LocalReserveOp(barriers(count)).result
    InitBarrierOp(memory, i32_attr(arrivals))
    FenceAsyncSharedOp()
    return memory


def begin_tma(
    loads: Sequence[Load],
    targets: Sequence[Value],
    barrier: Value,
    condition: Value,
    mapping: Mapping[Value, Value],
    iteration: Value | None = None,
) -> list[Operation]:
    """Begins the copies of TMA loads to memory, which arrive at one barrier, where the condition
    holds; the ops. `mapping` has other values in the place of what the loads take, and `iteration`
    is the number of that which they are of. Bytes may arrive before the barrier is told how many
    will: its phase lasts until then."""
    begun: list[Operation] = []
    for load, target in zip(loads, targets, strict=True):
        with load.op.location:
            map_, *indices = (mapping.get(value, value) for value in load.inputs)
            begun.append(AsyncTMACopyOp(map_, barrier, target, condition, indices))
    with loads[-1].op.location:
        size = sum(desc_bytes(load.memory) for load in loads)
        expect = BarrierExpectOp(barrier, condition, i32_attr(size), iteration=iteration)
        begun.append(expect)
    return begun


def take_from(load: Load, memory: Value) -> None:
    """Reads memory where a load's data was taken, from the insertion point on; erases the load."""
    value = load.op.results[0]
    if (alloc := load.alloc) is not None:
        reshape, own = load.reshape, memory
        if reshape is not None:
            matrix = mem_desc(*mem_desc_parts(alloc.results[0].type), is_mutable=True)
            own = MemDescViewOp(memory, i32_attr(0), matrix).result
        replace_memory(alloc.results[0], own)
        alloc.erase()
        if reshape is not None:
            reshape.erase()
            for conversion in load.conversions:
                conversion.erase()
    converted = []
    for use in list(value.uses):
        user = use.owner.operation
        if isa(user, ttg.ConvertLayoutOp) and load.other is None:
            read = LocalLoadOp(memory, user.results[0].type).result
            user.results[0].replace_all_uses_with(read)
            converted.append(user)
        elif (layout := load.transposed(user, memory.type)) is not None:
            user.operands[0] = LocalLoadOp(memory, with_layout(value.type, layout)).result
    if len(list(value.uses)) > len(converted):
        read = LocalLoadOp(memory, value.type).result
        if load.other is not None:
            read = arith.SelectOp(load.mask, read, load.other).result
        value.replace_all_uses_with(read)
    for user in converted:
        user.erase()
    load.op.erase()


def replace_memory(known: Value, memory: Value) -> None:
    """Puts one memory in the place of another of the same layout, and its views, which are made
    where it is, ahead of what takes them."""
    for use in list(known.uses):
        user = use.owner.operation
        if isa(user, ttg.MemDescTransOp):
            with user.location:
                replace_memory(user.results[0], MemDescTransOp.of(memory))
            user.erase()
        else:
            user.operands[use.operand_number] = memory
