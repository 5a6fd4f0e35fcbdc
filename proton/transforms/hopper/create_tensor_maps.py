"""Tensor maps that the host cannot make: the kernel makes them when it runs.

    %t = ttng.tensor_map %base, %m, %n, %stride
    ... uses of %t ...
becomes
    %memory = ttg.local_reserve
    %t = ttng.tensormap_create %memory, %base, %m, %n, %stride {warp = 0}
    ttg.barrier
    ... uses of %t ...

Maps of which none is used before the last of them is made are made side by side, each by a warp of
its own, and share the barrier. Where a loop makes a map again, no copy may be under way that reads
the one before. Loads have been waited for, by all threads; of stores each thread knows its own, so
it waits until they have read what they need, and all meet.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.tensor_maps import is_made_by_kernel
from proton.base.errors import CompilationError
from proton.dialect import isa, names_of, ttng
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Block, Module, Operation, func, ir
from proton.dialect.regions import in_loop
from proton.dialect.traits import Concurrent, has
from proton.dialect.ttg import BarrierOp, num_warps
from proton.dialect.ttg_memory import LocalReserveOp
from proton.dialect.walk import (
    all_ops,
    functions,
    ops_named,
    parent_of,
    replace,
    source_span,
    users,
)
from proton.passes import Pass, register

_COPY_TO_GLOBAL = ttng.AsyncTMAStoreOp


@register
@dataclass(frozen=True)
class CreateTensorMaps(Pass):
    """`ttng.tensormap_create` in the place of each `ttng.tensor_map` that the host cannot make, and
    a barrier before the first use. It comes when copies have taken the place of loads and stores.
    """

    name: ClassVar[str] = "triton-nvidia-gpu-create-tensor-maps"
    only_for: ClassVar[frozenset[str]] = names_of(ttng.TensorMapOp)

    def run(self, module: Module) -> None:
        for function in functions(module):
            maps: dict[Block, list[Operation]] = {}
            for op in ops_named(function, ttng.TensorMapOp):
                if is_made_by_kernel(op):
                    maps.setdefault(op.block, []).append(op)
            for block, made in maps.items():
                for together, user in _groups(block, made):
                    _make(together, user, 1 if _in_group(user) else num_warps(module))


def _groups(block: Block, maps: list[Operation]) -> list[tuple[list[Operation], Operation]]:
    """The maps that a block makes: each with those before it, until an op uses one of these, and
    that op. There is one for each, as nothing else is left of a map."""
    groups: list[tuple[list[Operation], Operation]] = []
    pending: list[Operation] = []
    for view in block.operations:
        op = view.operation
        if pending and _uses(op, pending):
            groups.append((pending, op))
            pending = []
        if op in maps:
            pending.append(op)
    return groups


def _uses(op: Operation, maps: list[Operation]) -> bool:
    made = [map_.results[0] for map_ in maps]
    return any(value in made for inner in (op, *all_ops(op)) for value in inner.operands)


def _make(maps: list[Operation], user: Operation, warps: int) -> None:
    """Makes maps right before the first op that uses one of them."""
    location = maps[-1].location
    stored = [user for map_ in maps for user in users(map_.results[0]) if _stores(user)]
    with ir.InsertionPoint(user), location:
        if stored and in_loop(maps[0]):
            ttng.TMAStoreWaitOp(i32_attr(0), ir.BoolAttr.get(False))
            BarrierOp()
        memory = [LocalReserveOp(ttng.map_memory()).result for _ in maps]
    for number, op in enumerate(maps):
        if ttng.is_im2col(op.results[0].type):
            raise CompilationError(
                "a copy of pixels (im2col) by a descriptor that a loop or a branch chooses is not "
                "supported",
                source_span(op.location),
                "pass the descriptor as an argument, and copy by each in a branch of its own",
            )
        rank = len(op.results[0].type.target.shape)
        base, *numbers = op.operands
        with ir.InsertionPoint(user), op.location:
            made = ttng.TensorMapCreateOp(
                memory[number],
                base,
                numbers[:rank],
                numbers[rank:],
                i32_attr(number % warps),
                op.results[0].type,
            )
        replace(op, [made.result])
    with ir.InsertionPoint(user), location:
        BarrierOp()


def _in_group(op: Operation) -> bool:
    """True if only some of the program's warps run an op; the first of these makes maps then."""
    while not isa(op, func.FuncOp):
        op = parent_of(op)
        if has(op, Concurrent):
            return True
    return False


def _stores(op: Operation) -> bool:
    return isa(op, _COPY_TO_GLOBAL)
