"""The ops of a block in the order of its schedule, and its waits for dots."""

from collections.abc import Callable, Mapping

from proton.dialect import isa
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Operation, Value, ir, scf
from proton.dialect.regions import If, block_of, end_of, giving
from proton.dialect.ttg import mem_desc, mem_desc_parts
from proton.dialect.ttg_memory import LocalReserveOp, LocalStoreOp
from proton.dialect.ttng import WarpGroupDotWaitOp
from proton.dialect.walk import before, producer_of, replace
from proton.schedule.buffers import replace_memory
from proton.schedule.dots import carrying_use
from proton.schedule.plan import DotWait, Item, Schedule, SyncPoint

WaitPlacer = Callable[[Operation | None, Mapping[Item, Operation]], None]


def in_order(schedule: Schedule) -> WaitPlacer:
    """Puts computations where the schedule has them. What is returned puts waits for dots there,
    when the loop is what it becomes, and the ops are known that stand for marks."""
    # The last one first: each stands ahead of what follows it. Known before ops are erased.
    order = {item: number for number, item in enumerate(schedule.order)}
    waits = sorted(schedule.waits, key=lambda wait: order[wait.op], reverse=True)
    items: list[Item | None] = [*schedule.order, None]
    followed = [(wait, items[order[wait.op] + 1]) for wait in waits]
    _reorder(schedule)

    def place(loop: Operation | None, begins: Mapping[Item, Operation]) -> None:
        for wait, item in followed:
            behind = begins[item] if isinstance(item, SyncPoint) else item
            _place(wait, end_of(wait.op.block) if behind is None else behind)
        for wait in schedule.waits:
            if wait.is_later and not wait.kept:
                _give_on(wait.dot.results[0] if wait.is_implied else wait.op.results[0])
        if loop is not None:
            for alloc in {alloc: None for wait in waits for alloc in wait.kept}:
                _keep_outside(alloc, loop)

    return place


def wait_behind(schedule: Schedule) -> None:
    """Waits behind a loop for the dots of its last iteration. That comes ahead of all that makes
    loops anew: what asks for a dot may be another loop."""
    loop = schedule.loop
    for wait in schedule.waits:
        if loop is None or not wait.is_later:
            continue
        use = carrying_use(wait)
        assert use is not None, "as asked of each that is later"
        result = loop.results[int(use.operand_number)]
        uses = list(result.uses)
        with ir.InsertionPoint(wait.asked_by or end_of(loop.block)), wait.op.location:
            landed = WarpGroupDotWaitOp(result, i32_attr(0), result.type).result
        for use in uses:
            use.owner.operation.operands[use.operand_number] = landed


def _reorder(schedule: Schedule) -> None:
    """Puts computations where the schedule has them."""
    waits = {wait.op for wait in schedule.waits}
    for op in reversed([op for op in schedule.ops if op in schedule.moved]):
        behind = (other for other in schedule.behind(op) if other not in waits)
        op.move_before(next(behind, end_of(op.block)))


def _place(wait: DotWait, ahead_of: Operation) -> None:
    """Puts a wait for a dot into its place."""
    op, dot = wait.op, wait.dot
    op.attributes["pendings"] = i32_attr(wait.pendings)
    if not wait.is_later:
        op.move_before(ahead_of)
        return
    if wait.is_implied:
        replace(op, [dot.results[0]])
    elif wait.kept:  # of the iteration before; else the dot of this one is issued first
        op.results[0].replace_all_uses_with(dot.results[0])
        op.operands[0] = dot.operands[2]
        op.move_before(ahead_of)
        dot.operands[2] = op.results[0]


def _give_on(value: Value) -> None:
    """Has branches that wait for a dot give on what they waited for: it is in the registers of the
    dot, which nothing may copy before."""
    first, block = value, producer_of(value).block
    waits = {use.owner.operation.block: use.owner.operation for use in value.uses}
    for view in list(block.operations):
        branch = view.operation
        if isa(branch, scf.IfOp) and any(b in waits for b in If(branch).blocks):
            given = []
            for number in range(2):
                inside = block_of(branch, number)
                wait = None if inside is None else waits.get(inside)
                if wait is not None:
                    wait.operands[0] = value
                given.append([value if wait is None else wait.results[0]])
            results = giving(branch, *given).results
            value = results[len(results) - 1]
    end = end_of(block)
    for number, operand in enumerate(end.operands):
        if operand == first:
            end.operands[number] = value


def _keep_outside(alloc: Operation, loop: Operation) -> None:
    """Gives memory that is made in each iteration one place for all of them: it is in use when the
    next one begins."""
    (source,), memory = alloc.operands, alloc.results[0]
    with before(loop), alloc.location:
        type_ = mem_desc(*mem_desc_parts(memory.type), is_mutable=True)
        place = LocalReserveOp(type_).result
    with before(alloc):
        LocalStoreOp(source, place)
        replace_memory(memory, place)
    alloc.erase()
