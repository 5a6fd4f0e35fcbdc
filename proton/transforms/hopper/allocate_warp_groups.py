"""Groups of warps as the author of a kernel in Gluon writes them: workers beside the program's own
warps, which go on.

    prefix                                  scalars and memory that workers use
    ttg.worker {...} {warps = 1}            ttg.warp_specialize ({ prefix
    ttg.start_workers                becomes  ttg.meet          }, { ttg.meet
    default                                   default                worker
    ttg.join_workers                          ttg.meet               ttg.meet
    suffix                                    suffix            }) {warps = 4}

What workers use of the code around them all warps compute: numbers, names of memory. Tensors, loads
and everything else is the default group's.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.group_registers import MOST_OF_GROUP, STEP
from proton.base.errors import CompilationError
from proton.dialect import isa, name_of, names_of, tt
from proton.dialect.attributes import NUM_WARPS, ROLES
from proton.dialect.builtin import i32_attr, strings_attr
from proton.dialect.mlir import Block, Location, Module, Operation, ir
from proton.dialect.partitions import role_names
from proton.dialect.regions import end_of
from proton.dialect.traits import AllocatesShared, Pure, has
from proton.dialect.ttg import (
    JoinWorkersOp,
    MeetOp,
    StartWorkersOp,
    WarpReturnOp,
    WarpSpecializeOp,
    WorkerOp,
    is_tensor,
)
from proton.dialect.ttng import SetRegistersOp
from proton.dialect.walk import all_ops, defining_op, functions, ops_named, source_span
from proton.layout.tensor_cores import GROUP_WARPS
from proton.passes import Pass, register


@dataclass(frozen=True)
class WorkerGroups:
    """The workers of a kernel: most warps that run at once, and whether they ask for registers."""

    warps: int
    has_registers: bool

    def rounded(self, num_warps: int) -> int:
        """Their warps, with those that idle: a program is of whole warp groups."""
        return -(-(num_warps + self.warps) // GROUP_WARPS) * GROUP_WARPS - num_warps


def worker_groups(module: Module) -> WorkerGroups:
    """The workers of a module."""
    most, has_registers = 0, False
    for function in functions(module):
        warps = 0
        for op in all_ops(function):
            if isa(op, WorkerOp):
                warps += _number(op, "warps")
                has_registers |= _number(op, "registers") > 0
            elif isa(op, StartWorkersOp):
                most, warps = max(most, warps), 0
    return WorkerGroups(most, has_registers)


def _number(op: Operation, name: str) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value)


@register
@dataclass(frozen=True)
class AllocateWarpGroups(Pass):
    """`ttg.warp_specialize` in the place of workers, in programs of `program_warps` warps, of which
    `num_warps` are the default group; a thread has `registers` at first (0: it is not said)."""

    name: ClassVar[str] = "allocate-warp-groups"
    only_for: ClassVar[frozenset[str]] = names_of(StartWorkersOp)

    num_warps: int = 4
    program_warps: int = 8
    registers: int = 0

    def run(self, module: Module) -> None:
        for function in functions(module):
            if not ops_named(function, WorkerOp):
                for op in ops_named(function, StartWorkersOp, JoinWorkersOp):
                    op.erase()
            else:
                module.operation.attributes[NUM_WARPS] = i32_attr(self.program_warps)
                self._split(function)

    def _split(self, function: Operation) -> None:
        block = function.regions[0].blocks[0]
        for op in ops_named(function, WorkerOp, StartWorkersOp, JoinWorkersOp):
            if op.block != block:
                raise _refused(op, "warp_specialize in a loop or a branch", "put the loop inside")
        ops = [view.operation for view in block.operations]
        end = end_of(block)
        shared = _used_by_workers(block, ops)
        with ir.InsertionPoint(end), function.location:
            made = ir.Operation.create(
                name_of(WarpSpecializeOp),
                attributes={"warps": i32_attr(self.num_warps)},
                regions=2,
            )
            mine, theirs = (ir.Block.create_at_start(region, []) for region in made.regions)
        self._name_roles(function)
        groups: list[list[Operation]] = [[]]
        for op in ops:
            if op == end or op in shared:
                continue
            if isa(op, WorkerOp):
                groups[-1].append(op)
                continue
            if isa(op, StartWorkersOp, JoinWorkersOp):
                with ir.InsertionPoint(mine), op.location:
                    MeetOp()
                    if isa(op, StartWorkersOp):
                        self._set_default_registers(self._plan(groups[-1]))
                if isa(op, StartWorkersOp):
                    groups.append([])
                op.erase()
                continue
            mine.append(op)
        with ir.InsertionPoint(mine), function.location:
            WarpReturnOp()
        for workers in groups[:-1]:
            location = workers[0].location if workers else function.location
            with ir.InsertionPoint(theirs), location:
                MeetOp()
            self._run(theirs, workers, location)
            with ir.InsertionPoint(theirs), location:
                MeetOp()
            for worker in workers:
                worker.erase()
        with ir.InsertionPoint(theirs), function.location:
            WarpReturnOp()

    def _name_roles(self, function: Operation) -> None:
        """Notes what each warp runs, if that is one thing; those that idle have no role."""
        starts = ops_named(function, StartWorkersOp)
        if len(starts) > 1:
            return
        groups = [
            *((op, self.num_warps) for op in starts),
            *((op, _number(op, "warps")) for op in _in_order(ops_named(function, WorkerOp))),
        ]
        names = role_names([str(ir.StringAttr(op.attributes["role"]).value) for op, _ in groups])
        roles = [name for name, (_, warps) in zip(names, groups, strict=True) for _ in range(warps)]
        idle = [""] * (self.program_warps - len(roles))
        function.attributes[ROLES] = strings_attr([*roles, *idle])

    # Workers

    def _run(self, block: Block, workers: Sequence[Operation], location: Location) -> None:
        """The workers at the end of a block, large ones first, so that warp groups are whole."""
        ordered = _in_order(workers)
        left = self.program_warps - self.num_warps
        self._nest(block, ordered, left, self._plan(workers), location)

    def _nest(
        self,
        block: Block,
        workers: Sequence[Operation],
        left: int,
        registers: dict[int, int],
        location: Location,
    ) -> None:
        """`left` warps run the workers, those that remain nothing."""
        begins = self.program_warps - left
        if not workers:
            self._set_registers(block, begins, registers, location)
            return
        first, *rest = workers
        warps = _number(first, "warps")
        if warps == left:
            self._set_registers(block, begins, registers, location)
            _move(first.regions[0].blocks[0], block)
            return
        with ir.InsertionPoint(block), first.location:
            made = ir.Operation.create(
                name_of(WarpSpecializeOp), attributes={"warps": i32_attr(warps)}, regions=2
            )
            own, others = (ir.Block.create_at_start(region, []) for region in made.regions)
        self._set_registers(own, begins, registers, location)
        _move(first.regions[0].blocks[0], own)
        self._nest(others, rest, left - warps, registers, location)
        for end in (own, others):
            with ir.InsertionPoint(end), first.location:
                WarpReturnOp()

    def _set_registers(
        self, block: Block, begins: int, registers: dict[int, int], location: Location
    ) -> None:
        """Has the group that begins with a warp take the registers of its warp group."""
        count = registers.get(begins // GROUP_WARPS, 0)
        if count:
            with ir.InsertionPoint(block), location:
                SetRegistersOp(i32_attr(count), ir.BoolAttr.get(count > self.registers))

    def _set_default_registers(self, registers: dict[int, int]) -> None:
        """What the workers leave is the default group's."""
        if not registers:
            return
        own = self.num_warps // GROUP_WARPS
        total = self.registers * (self.program_warps // GROUP_WARPS)
        left = (total - sum(registers.values())) // own // STEP * STEP
        count = min(left, MOST_OF_GROUP)
        if count > self.registers:
            SetRegistersOp(i32_attr(count), ir.BoolAttr.get(True))

    def _plan(self, workers: Sequence[Operation]) -> dict[int, int]:
        """The registers of each warp group of workers, by its number: the most that one of its
        workers asks for. None where one says nothing, or where a group is shared with others."""
        if not self.registers or self.num_warps % GROUP_WARPS:
            return {}
        if not all(_number(op, "registers") for op in workers):
            return {}
        found: dict[int, int] = {}
        warp = self.num_warps
        for op in _in_order(workers):
            asked = -(-_number(op, "registers") // STEP) * STEP
            warps = _number(op, "warps")
            for number in range(warp // GROUP_WARPS, -(-(warp + warps) // GROUP_WARPS)):
                found[number] = max(found.get(number, 0), asked)
            warp += warps
        return found


def _in_order(workers: Sequence[Operation]) -> list[Operation]:
    """Large ones first: so their warps follow each other."""
    return sorted(workers, key=lambda op: -_number(op, "warps"))


def _move(source: Block, target: Block) -> None:
    """All ops of a block but its terminator to the end of another one."""
    ops = [view.operation for view in source.operations]
    for op in ops[:-1]:
        target.append(op)


def _used_by_workers(block: Block, ops: Sequence[Operation]) -> set[Operation]:
    """The ops of a block whose results workers use, and those whose results they do."""
    found: dict[Operation, None] = {}
    pending = [
        (defining_op(operand), worker)
        for worker in ops
        if isa(worker, WorkerOp)
        for inner in all_ops(worker)
        for operand in inner.operands
    ]
    while pending:
        op, worker = pending.pop()
        if op is None or op.block != block or op in found:
            continue
        _check_shared(op, worker)
        found[op] = None
        pending += [(defining_op(operand), worker) for operand in op.operands]
    return set(found)


def _check_shared(op: Operation, worker: Operation) -> None:
    """Raises CompilationError for what not all warps may compute."""
    makes_tensor = any(is_tensor(result.type) for result in op.results)
    is_free = has(op, Pure) or (has(op, AllocatesShared) and not len(op.operands))
    is_free |= isa(op, tt.MakeTensorDescOp)
    if makes_tensor or not is_free:
        what = "a tensor" if makes_tensor else "a value that is loaded, or computed by a loop or if"
        raise _refused(
            op,
            f"a worker that uses {what} of the code around warp_specialize",
            "compute it in the worker, or hand it over in shared memory",
        )


def _refused(op: Operation, what: str, hint: str) -> CompilationError:
    span = source_span(op.location)
    return CompilationError(f"{what} is not supported", span if span.file else None, hint)
