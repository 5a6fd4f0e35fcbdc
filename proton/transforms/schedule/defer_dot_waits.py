"""Waits for products that only the next iteration takes come behind that iteration's loads.

    scf.for ... iter_args(%acc) {              %m = ttg.local_reserve
      %a = tt.load                             scf.for ... iter_args(%acc) {
      %m = ttg.local_alloc %a                    %a = tt.load
      %e = ttng.warp_group_dot %m, ..., %acc     %s = ttng.warp_group_dot_wait %acc {0}
      %d = ttng.warp_group_dot_wait %e {0}   =>  ttg.local_store %a, %m
      scf.yield %d                               %e = ttng.warp_group_dot %m, ..., %s
    }                                            scf.yield %e
                                               }
                                               %d = ttng.warp_group_dot_wait ... {0}

Such a loop has no pipeline: `cp.async` takes 4 bytes at least, and rows of an odd number of 16-bit
elements begin anywhere. Its loads wait in registers for their place in shared memory, which the
product before still reads. So they can be on their way while that product is.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.pipelining import LOADS, is_innermost
from proton.analysis.scratch import scratch_bytes
from proton.base.targets import GPUTarget
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Module, Operation
from proton.dialect.regions import ForLoop, end_of, is_invariant
from proton.dialect.traits import AllocatesShared, has
from proton.dialect.ttg import mem_desc, mem_desc_parts
from proton.dialect.ttg_memory import LocalReserveOp, LocalStoreOp
from proton.dialect.ttng import WarpGroupDotWaitOp
from proton.dialect.walk import (
    all_ops,
    before,
    defining_op,
    functions,
    ops_named,
    ops_of_each,
    replace,
    users,
)
from proton.passes import Pass, register
from proton.transforms.schedule.late_waits import wait_behind

_PRODUCT, _WAIT = "ttng.warp_group_dot", "ttng.warp_group_dot_wait"
_CONTROL_FLOW = "scf.if", "func.call"  # registers of a product under way stay where they are


@register
@dataclass(frozen=True)
class DeferDotWaits(Pass):
    """In innermost loops whose loads go through registers, a product goes on while the next
    iteration loads; on a GPU of compute capability `arch` / 10, where its shared memory has room
    for all operands at once."""

    name: ClassVar[str] = "triton-nvidia-gpu-defer-dot-waits"
    only_for: ClassVar[frozenset[str]] = frozenset({_WAIT})

    arch: int = 90

    def run(self, module: Module) -> None:
        limit = GPUTarget("cuda", self.arch).facts.shared_bytes
        for function in functions(module):
            loops = [loop for loop in ops_named(function, "scf.for") if is_innermost(loop)]
            if loops and _most_bytes(function) <= limit:
                for loop in loops:
                    _defer_in(loop)


def _most_bytes(function: Operation) -> int:
    """The shared memory that a function needs if all that it allocates is in use at once."""
    ops = all_ops(function)
    allocated = sum(scratch_bytes(op) for op in ops if has(op, AllocatesShared))
    return allocated + max(scratch_bytes(op) for op in ops if not has(op, AllocatesShared))


def _defer_in(loop: Operation) -> None:
    waits, products, *others = ops_of_each(loop, _WAIT, _PRODUCT, *_CONTROL_FLOW)
    if len(waits) != 1 or len(products) != 1 or any(others):
        return
    (wait,), (product,) = waits, products
    view = ForLoop(loop)
    number, allocs = _carried_number(wait, product, view), _allocs(product, loop)
    if number is None or not allocs:
        return
    first = _first_store(view, allocs)
    if not _loads_ahead(first):
        return
    acc = product.operands[2]
    with before(first), wait.location:
        product.operands[2] = WarpGroupDotWaitOp(acc, i32_attr(0), acc.type).result
    wait_behind(loop, number, wait.location)
    replace(wait, [product.results[0]])
    for alloc in allocs:
        _keep_outside(alloc, loop)


def _carried_number(wait: Operation, product: Operation, view: ForLoop) -> int | None:
    """Which carried value the product adds to and becomes, waited for; None where anything else
    takes it."""
    acc, (of,) = product.operands[2], wait.operands
    if of != product.results[0] or len(users(of)) != 1 or product.block != view.body:
        return None
    uses = list(wait.results[0].uses)
    if len(uses) != 1 or uses[0].owner.operation != end_of(view.body):
        return None
    number = int(uses[0].operand_number)
    if wait.attributes["pendings"].value or users(acc) != [product]:
        return None
    return number if acc == view.iter_args[number] else None


def _allocs(product: Operation, loop: Operation) -> list[Operation]:
    """What the loop stores its product's operands by; none where anything else gives one."""
    found: dict[Operation, None] = {}
    for side in list(product.operands)[:2]:
        while (op := defining_op(side)) is not None and op.name == "ttg.memdesc_trans":
            side = op.operands[0]
        if op is None or op.name != "ttg.local_alloc":
            return []
        if not is_invariant(side, loop):
            found[op] = None
    return list(found)


def _first_store(view: ForLoop, allocs: list[Operation]) -> Operation:
    """The first op of the body that writes what the product reads."""
    return next(op.operation for op in view.body.operations if op.operation in allocs)


def _loads_ahead(place: Operation) -> bool:
    """Whether a load stands ahead of an op, in its block."""
    for view in place.block.operations:
        if view.operation == place:
            return False
        if view.operation.name in LOADS:
            return True
    return False


def _keep_outside(alloc: Operation, loop: Operation) -> None:
    """Gives memory that is made in each iteration one place for all of them: it is in use when the
    next one begins."""
    (source,), memory = alloc.operands, alloc.results[0]
    with before(loop), alloc.location:
        type_ = mem_desc(*mem_desc_parts(memory.type), is_mutable=True)
        place = LocalReserveOp(type_).result
    with before(alloc):
        LocalStoreOp(source, place)
    replace(alloc, [place])
