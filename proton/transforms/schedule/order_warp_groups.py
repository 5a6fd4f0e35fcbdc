"""Warp groups that alternate at the tensor cores.

In attention's loop a product makes scores, the scores become weights, and a product takes them.
Two warp groups that meet at a barrier in each iteration do each at the same time: tensor cores wait
while both compute weights. Here a group has its turn for two products, the one that takes the
weights and the next scores, while the other computes its weights:

    group 0    values i - 1, scores i │ weights i                 │ values i, scores i + 1 │ ...
    group 1    weights i - 1          │ values i - 1, scores i    │ weights i              │ ...

    scf.for {                              scf.for {
      ttg.async_wait {d - 1}                 ttng.wait_barrier %full[i mod S], %phase
      ttng.fence_async_shared                %s = ttng.warp_group_dot    scores
      %s = ttng.warp_group_dot               ttng.order_pass
      copies of iteration i + d              ttng.warp_group_dot_wait %s
      ttng.warp_group_dot_wait %s      =>    ttng.arrive_with_copies %full[i + 1 mod S] {d - 2}
      weights                                weights
      %o = ttng.warp_group_dot               ttng.order_wait
      ttng.warp_group_dot_wait %o            %o = ttng.warp_group_dot    values
    }                                        copies of iteration i + d
                                             ttng.warp_group_dot_wait %o
                                           }

No barrier of all warps is left in the loop, so a group may be half an iteration ahead. What one
reads the other has copied half of, so each tells the other when its copies have landed: an mbarrier
for each buffer. Copies of iteration i + d write the buffer of iteration i - 1. When it is a group's
turn before values i, the other has passed it on behind scores i at the earliest, and had
waited for values i - 1 before.

Source of the order: Shah et al., "FlashAttention-3", section 3.1 (pingpong scheduling).
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.pipelining import is_innermost
from proton.analysis.scratch import scratch_bytes
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Module, Operation, Value, ir
from proton.dialect.regions import ForLoop, end_of, with_carried
from proton.dialect.traits import (
    Accesses,
    AllocatesShared,
    Asynchronous,
    Barrier,
    Orders,
    Pure,
    SharedEffects,
    has,
)
from proton.dialect.ttg import BarrierOp, is_mem_desc, layout_of, mem_desc_parts
from proton.dialect.ttg_memory import LocalReserveOp, MemDescIndexOp
from proton.dialect.ttng import OrderBeginOp, OrderEndOp, OrderPassOp, OrderWaitOp
from proton.dialect.ttng_memory import (
    ArriveWithCopiesOp,
    InitBarrierOp,
    InvalBarrierOp,
    WaitBarrierOp,
    barriers,
    one_barrier,
)
from proton.dialect.walk import (
    all_ops,
    before,
    defining_op,
    functions,
    ops_named,
    ops_of_each,
    users,
)
from proton.layout.tensor_cores import GROUP_WARPS
from proton.passes import Pass, register
from proton.transforms.schedule.pipelined_loop import i32, next_index, next_phase

_PRODUCT, _WAIT = "ttng.warp_group_dot", "ttng.warp_group_dot_wait"
_FENCE, _LANDED, _GROUP = "ttng.fence_async_shared", "ttg.async_wait", "ttg.async_commit_group"
_GROUPS = 2


@register
@dataclass(frozen=True)
class OrderWarpGroups(Pass):
    """Two warp groups alternate in pipelined loops of two products, of which the second takes
    exponentials, or other functions, of the first."""

    name: ClassVar[str] = "triton-nvidia-gpu-order-warp-groups"
    only_for: ClassVar[frozenset[str]] = frozenset({_LANDED})

    def run(self, module: Module) -> None:
        for function in functions(module):
            for loop in ops_named(function, "scf.for"):
                if is_innermost(loop) and (found := _PingPong.of(loop)) is not None:
                    found.order()


@dataclass
class _PingPong:
    """A loop whose groups may alternate: its products and the waits for them, its wait for copies
    and the group of those that begin, and the buffers' number of the iteration that is read."""

    loop: Operation
    products: list[Operation]
    waits: list[Operation]
    landed: Operation
    group: Operation
    stages: int
    read: int  # which of the values that the loop carries

    @classmethod
    def of(cls, loop: Operation) -> "_PingPong | None":
        """None for other loops."""
        products, waits, landed, groups = ops_of_each(loop, _PRODUCT, _WAIT, _LANDED, _GROUP)
        if [len(found) for found in (products, waits, landed, groups)] != [2, 2, 1, 1]:
            return None
        body = ForLoop(loop).body
        ops = [view.operation for view in body.operations]
        order = [landed[0], products[0], groups[0], waits[0], products[1], waits[1]]
        if any(op not in ops for op in order) or sorted(order, key=ops.index) != order:
            return None
        if any(wait.attributes["pendings"].value for wait in waits):
            return None
        if [defining_op(wait.operands[0]) for wait in waits] != products:
            return None
        if layout_of(products[0].results[0].type).in_size("warp") != _GROUPS * GROUP_WARPS:
            return None
        buffers = _buffers(loop, products[0].operands[1])
        distance = int(landed[0].attributes["pendings"].value) + 1
        if buffers is None or buffers[0] != distance + 1 or distance < 2:
            return None
        if _buffers(loop, products[1].operands[1]) != buffers:
            return None
        between = ops[ops.index(waits[0]) : ops.index(products[1])]
        if not any(op.name.startswith("math.") for op in between):
            return None
        others = (op for op in all_ops(loop) if op not in order and not has(op, Asynchronous))
        if not all(_stays_apart(op) for op in others):
            return None
        return cls(loop, products, waits, landed[0], groups[0], *buffers)

    def order(self) -> None:
        """Lets the groups alternate."""
        distance, (first, second) = self.stages - 1, self.products
        with before(self.loop):
            full = LocalReserveOp(barriers(self.stages)).result
            InitBarrierOp(full, i32_attr(_GROUPS * GROUP_WARPS))
            _arrive(full, i32(0), distance - 1)
            OrderBeginOp()
            carried = i32(0)
        number = len(self.loop.results)
        self.loop = with_carried(self.loop, [carried])
        view = ForLoop(self.loop)
        ops = [op.operation for op in view.body.operations]
        read, phase, end = view.iter_args[self.read], view.iter_args[number], end_of(view.body)
        with ir.InsertionPoint(self.landed), first.location:
            WaitBarrierOp(MemDescIndexOp(full, read, one_barrier()).result, phase)
        weights = ops[ops.index(self.waits[0]) + 1]
        with ir.InsertionPoint(weights), weights.location:
            following = next_index(read, self.stages)
            _arrive(full, following, distance - 2)
        self._begin_copies_behind(second)
        with ir.InsertionPoint.after(first), first.location:
            OrderPassOp()
        with before(second):
            OrderWaitOp()
        with before(end):
            end.operands[number] = next_phase(phase, following)
        for op in (self.landed, *ops_named(self.loop, _FENCE)):
            op.erase()
        with ir.InsertionPoint.after(self.loop), self.loop.location:
            OrderEndOp()
            BarrierOp()
            InvalBarrierOp(full)

    def _begin_copies_behind(self, product: Operation) -> None:
        """Moves the copies behind a product, and what is computed for them alone."""
        ops = [view.operation for view in ForLoop(self.loop).body.operations]
        start, end = ops.index(self.products[0]) + 1, ops.index(self.waits[0])
        later = set(ops[ops.index(product) :])
        moved = []
        for op in reversed(ops[start:end]):
            is_asked = op == self.group or has(op, Asynchronous)
            if is_asked or (has(op, Pure) and all(set(users(r)) <= later for r in op.results)):
                moved.append(op)
                later.add(op)
        for op in moved:  # the last one first
            op.move_after(product)


def _buffers(loop: Operation, memory: Value) -> tuple[int, int] | None:
    """Of a pipeline's buffers how many there are, and which value that the loop carries says which
    of them this is; None for other memory."""
    op = defining_op(memory)
    while op is not None and op.name == "ttg.memdesc_trans":
        op = defining_op(op.operands[0])
    carried = ForLoop(loop).iter_args
    if op is None or op.name != "ttg.memdesc_index" or op.operands[1] not in carried:
        return None
    return int(mem_desc_parts(op.operands[0].type)[0][0]), carried.index(op.operands[1])


def _stays_apart(op: Operation) -> bool:
    """Whether no warp waits for another at an op, and it has no part in shared memory."""
    if has(op, Barrier, AllocatesShared) or scratch_bytes(op):
        return False
    if has(op, Orders) and not has(op, Accesses):
        return False  # a call, or assembly that may be a barrier
    effects = SharedEffects.of(op)
    return not any(is_mem_desc(op.operands[n].type) for n in (*effects.reads, *effects.writes))


def _arrive(barriers: Value, index: Value, pendings: int) -> None:
    barrier = MemDescIndexOp(barriers, index, one_barrier()).result
    ArriveWithCopiesOp(barrier, i32_attr(pendings))
