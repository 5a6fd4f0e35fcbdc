"""The loop that a software pipeline becomes.

With S stages there are S buffers, and the copies of iteration i + S - 1 begin in iteration i:

    prologue   copy 0 | copy 1 | ... | copy S - 2
    loop       wait for copy i,  use buffer i mod S,  begin copy i + S - 1
    epilogue   wait for what is under way, which is zeros beyond the end

What the copies need (addresses, masks) is computed twice: for the iteration that is being worked
on, where anything else asks for it, and for the one whose copies begin. Beyond the loop's end
copies are masked off. What TMA copies has no groups and tokens: each buffer has a barrier in shared
memory that its bytes arrive at, and iteration i waits for phase i / S of barrier i mod S. Beyond
the end nothing is copied, and nothing waits.

A product of warp groups that nothing but the next iteration asks for stays in flight, too: it is
waited for when the next one has been issued.
"""

from collections.abc import Callable
from functools import partial

from proton.analysis.pipelining import (
    Load,
    Slice,
    consumer_of,
    flying,
    inputs_of,
    slice_of,
)
from proton.dialect.asynchronous import set_ahead, set_iteration
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import InsertionPoint, Operation, Type, Value, arith, ir
from proton.dialect.regions import ForLoop, end_of, with_carried
from proton.dialect.traits import Combines, Pure, has
from proton.dialect.ttg import mem_desc, mem_desc_parts
from proton.dialect.ttg_memory import (
    AsyncCommitGroupOp,
    AsyncCopyOp,
    AsyncTokenType,
    AsyncWaitOp,
    LocalReserveOp,
    MemDescIndexOp,
)
from proton.dialect.ttng_memory import InvalBarrierOp, WaitBarrierOp, one_barrier
from proton.dialect.walk import all_ops, before, defining_op, producer_of
from proton.transforms.schedule.late_waits import wait_behind
from proton.transforms.schedule.load_buffers import begin_tma, start_barriers, take_from

_SIGNED_LESS, _UNSIGNED_LESS, _UNSIGNED_GREATER, _EQUAL = 2, 6, 8, 0  # arith.cmpi's predicates


class PipelinedLoop:
    """One loop: `distance` iterations lie between the beginning of a copy and its use."""

    def __init__(self, loop: Operation, loads: list[Load], stages: int) -> None:
        self.loop, self.loads = loop, loads
        self.stages, self.distance = stages, stages - 1
        order = {view.operation: n for n, view in enumerate(ForLoop(loop).body.operations)}
        # Of each load the first op of the body that takes its data, and of these the first.
        self.consumers = [consumer_of(load.alloc or load.op, order) for load in loads]
        self.consumer = min(self.consumers, key=lambda op: order[op])
        slice_ = slice_of(loop, loads)
        assert slice_ is not None, "asked of each load"
        self.slice: Slice = slice_
        # What the copies take, and what only the next ones do: that comes behind them, so that no
        # address is there twice, as it is and as it will be.
        taken = inputs_of(loads, slice_.ops)
        self.taken = [op for op in slice_.ops if op in taken]
        self.following = [op for op in slice_.ops if op not in taken]
        self.copied = [load for load in loads if not load.is_tma]  # in groups, with tokens
        self.arrivals = [load for load in loads if load.is_tma]
        self.barriers: object = None  # of all stages

    def run(self) -> None:
        """Makes the pipeline."""
        with before(self.around):
            for load in self.loads:
                shape, element, layout = mem_desc_parts(load.memory)
                with load.op.location:
                    load.buffers = LocalReserveOp(
                        mem_desc((self.stages, *shape), element, layout, is_mutable=True)
                    ).result
            if self.arrivals:
                self.barriers = start_barriers(self.stages)
            state = self.prologue()
            phases = [i32(0)] if self.arrivals else []
            initial = [*state, *phases, i32(self.distance), i32(0)]
        self._allocate_behind_copies()
        in_flight = flying(self.loop, self.loads)
        old = len(self.loop.results)
        self.carry(initial)
        self._body(old, in_flight)
        self._epilogue(old, in_flight)

    # What loops over tiles do otherwise

    @property
    def around(self) -> Operation:
        """The loop that buffers are made before."""
        return self.loop

    def carry(self, initial: list[Value]) -> None:
        """Makes the loop carry values."""
        self.loop = with_carried(self.loop, initial)

    def prologue(self) -> list[Value]:
        """Begins the copies of the first iterations; what the loop carries for the next ones:
        values ahead of its own, then tokens."""
        view = ForLoop(self.loop)
        lower, upper, step = view.bounds
        arguments, yielded = view.iter_args, view.yielded
        state = [view.init_args[number] for number in self.slice.carried]
        runs, left = is_less(self.loop, lower, upper), arith.SubIOp(upper, lower).result
        tokens: list[Value] = []
        variable, passed = lower, None
        for number in range(self.distance):
            is_inside = runs
            if passed is not None:
                more = arith.CmpIOp(_UNSIGNED_GREATER, left, passed).result
                is_inside = arith.AndIOp(runs, more).result
            mapping = {view.induction_var: variable}
            mapping |= {arguments[n]: v for n, v in zip(self.slice.carried, state, strict=True)}
            note = partial(set_iteration, number=number)
            tokens += self.copies(mapping, i32(number), is_inside, note)
            state = [mapping.get(yielded[n], yielded[n]) for n in self.slice.carried]
            variable = arith.AddIOp(variable, step).result
            passed = step if passed is None else arith.AddIOp(passed, step).result
        return [*state, *tokens]

    def _allocate_behind_copies(self) -> None:
        """Has blocks that nothing asks for ahead of the loop go to shared memory behind the
        prologue: one may wait for a load, as the copies need not."""
        ops = [view.operation for view in self.loop.block.operations]
        asked: set[Value] = set()
        for op in reversed(ops[: ops.index(self.loop)]):
            if op.name == "ttg.local_alloc" and op.operands and op.results[0] not in asked:
                op.move_before(self.loop)
            asked.update(value for inner in (op, *all_ops(op)) for value in inner.operands)

    def go_on(self, state: list[Value], write: Value) -> list[Value]:
        """In the body, begins copies to the buffer `write`; what is carried then."""
        view, count = ForLoop(self.loop), len(self.slice.carried)
        original, yielded = view.iter_args, view.yielded
        is_inside, variable = self._ahead(view)
        mapping = {view.induction_var: variable}
        mapping |= {original[n]: v for n, v in zip(self.slice.carried, state[:count], strict=True)}
        note = partial(set_ahead, iterations=self.distance)
        begun = self.copies(mapping, write, is_inside, note)
        ahead = [mapping.get(yielded[n], yielded[n]) for n in self.slice.carried]
        return [*ahead, *state[count + 1 :], *begun]

    # Copies

    def copies(
        self,
        mapping: dict[Value, Value],
        index: Value,
        is_inside: Value,
        note: Callable[[Operation], None],
        iteration: Value | None = None,
    ) -> list[Value]:
        """Begins the copies of an iteration whose values are in `mapping`; the token of the group
        of those that have one. `note` writes on an op of theirs which iteration that is, unless
        TMA's copies have its number."""
        clone(self.taken, mapping)
        if self.arrivals:
            with self.arrivals[0].op.location:
                barrier = MemDescIndexOp(self.barriers, index, one_barrier()).result
                targets = [
                    MemDescIndexOp(load.buffers, index, load.memory).result
                    for load in self.arrivals
                ]
            begun = begin_tma(self.arrivals, targets, barrier, is_inside, mapping, iteration)
            for op in begun:
                note(op.operation)
        if not self.copied:
            clone(self.following, mapping)
            return []
        copies = [self._copy(load, mapping, index, is_inside) for load in self.copied]
        with self.copied[-1].op.location:
            group: Value = AsyncCommitGroupOp(copies, _token()).group
        for token in (*copies, group):
            note(producer_of(token))
        clone(self.following, mapping)
        return [group]

    def _copy(
        self, load: Load, mapping: dict[Value, Value], index: Value, is_inside: Value
    ) -> Value:
        with load.op.location:
            pointer = mapping.get(load.pointer, load.pointer)
            i1 = ir.IntegerType.get_signless(1)
            type_ = ir.RankedTensorType.get(pointer.type.shape, i1, encoding=pointer.type.encoding)
            mask = ir.Operation.create("tt.splat", results=[type_], operands=[is_inside]).result
            if load.mask is not None:
                mask = arith.AndIOp(mapping.get(load.mask, load.mask), mask).result
            target = MemDescIndexOp(load.buffers, index, load.memory).result
            return AsyncCopyOp(pointer, target, _token(), mask=mask).token

    def _body(self, old: int, in_flight: list[Operation]) -> None:
        view = ForLoop(self.loop)
        *state, write, read = view.iter_args[old:]
        phases = [state.pop()] if self.arrivals else []
        end = end_of(view.body)
        with ir.InsertionPoint(self.consumer), self.loads[-1].op.location:
            if self.copied:
                AsyncWaitOp(state[len(self.slice.carried)], i32_attr(self.distance - 1))
            for phase in phases:
                WaitBarrierOp(MemDescIndexOp(self.barriers, read, one_barrier()).result, phase)
        with self._where_copies_begin(end, bool(in_flight)), self.loop.location:
            following = self.go_on(state, write)
        for load, consumer in zip(self.loads, self.consumers, strict=True):
            with before(consumer):
                self._use(load, read)
        with before(end):
            indices = [next_index(write, self.stages), next_index(read, self.stages)]
            phases = [next_phase(phase, indices[1]) for phase in phases]
        for number, value in enumerate([*following, *phases, *indices]):
            end.operands[old + number] = value
        _drop_unused(self.loop, old)

    def _where_copies_begin(self, end: Operation, is_flying: bool) -> InsertionPoint:
        """Behind the last read of the buffer that is written: that was in the iteration before,
        but for products in flight, which end in this one. A product of warp groups is issued
        first, and goes on meanwhile."""
        if is_flying:
            return ir.InsertionPoint(end)
        if self.consumer.name == "ttng.warp_group_dot":
            return ir.InsertionPoint.after(self.consumer)
        return ir.InsertionPoint(self.consumer)

    def _ahead(self, view: ForLoop) -> tuple[Value, Value]:
        """(whether the iteration whose copies begin is one, its variable)."""
        _, upper, step = view.bounds
        far = arith.MulIOp(step, arith.ConstantOp(step.type, self.distance).result).result
        left = arith.SubIOp(upper, view.induction_var).result
        is_inside = arith.CmpIOp(_UNSIGNED_GREATER, left, far).result
        return is_inside, arith.AddIOp(view.induction_var, far).result

    # Uses

    def _use(self, load: Load, index: Value) -> None:
        """Reads the buffer where the load's data was taken, and erases the load."""
        with load.op.location:
            take_from(load, MemDescIndexOp(load.buffers, index, load.memory).result)

    def _epilogue(self, old: int, in_flight: list[Operation]) -> None:
        if self.copied:
            with ir.InsertionPoint.after(self.loop), self.loop.location:
                last = old + len(self.slice.carried) + self.distance - 1
                AsyncWaitOp(self.loop.results[last], i32_attr(0))
        if self.arrivals:
            with ir.InsertionPoint.after(self.around), self.around.location:
                InvalBarrierOp(self.barriers)
        for wait in in_flight:
            wait.attributes["pendings"] = i32_attr(1)
            (use,) = wait.results[0].uses
            wait_behind(self.loop, use.operand_number, wait.location)


def _drop_unused(loop: Operation, count: int) -> None:
    """Makes the loop's first carried values their own successors, where nothing asks for them
    but they themselves: the canonicalizer takes such away."""
    view = ForLoop(loop)
    arguments, end = view.iter_args, end_of(view.body)
    live: set[Value] = set()
    work: list[Value] = [
        end.operands[n] for n in range(len(arguments)) if n >= count or list(loop.results[n].uses)
    ]
    for op in all_ops(view.op):
        if not has(op, Pure) and not has(op, Combines) and op != end:
            work += op.operands
    while work:
        value = work.pop()
        if value in live:
            continue
        live.add(value)
        made_by = defining_op(value)
        if made_by is not None:
            work += made_by.operands
        elif value in arguments:
            work.append(end.operands[arguments.index(value)])
    for number in range(count):
        if arguments[number] not in live:
            end.operands[number] = arguments[number]


def clone(ops: list[Operation], mapping: dict[Value, Value]) -> None:
    """Emits ops again, with other values in the place of those in `mapping`, and adds theirs."""
    for op in ops:
        clone = op.operation.clone()
        for number, operand in enumerate(op.operands):
            clone.operation.operands[number] = mapping.get(operand, operand)
        for result, value in zip(op.results, clone.operation.results, strict=True):
            mapping[result] = value


def is_less(loop: Operation, lower: Value, upper: Value) -> Value:
    """As the loop compares its bounds."""
    less = _UNSIGNED_LESS if "unsignedCmp" in loop.attributes else _SIGNED_LESS
    return arith.CmpIOp(less, lower, upper).result


def has_more(left: Value, upper: Value, step: Value) -> Value:
    """Whether a loop that is at `left` has another iteration."""
    return is_more(arith.SubIOp(upper, left).result, step)


def is_more(left: Value, right: Value) -> Value:
    """Whether one length is greater than another."""
    return arith.CmpIOp(_UNSIGNED_GREATER, left, right).result


def next_index(index: Value, stages: int) -> Value:
    """The index of the next buffer, around."""
    more = arith.AddIOp(index, i32(1)).result
    is_end = arith.CmpIOp(_EQUAL, more, i32(stages)).result
    return arith.SelectOp(is_end, i32(0), more).result


def next_phase(phase: Value, read: Value) -> Value:
    """The parity of the next iteration's phase: another one, once around."""
    is_around = arith.CmpIOp(_EQUAL, read, i32(0)).result
    return arith.XOrIOp(phase, arith.ExtUIOp(phase.type, is_around).result).result


def i32(value: int) -> Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(32), value).result


def _token() -> Type:
    return AsyncTokenType.get()
