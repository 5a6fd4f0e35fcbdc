"""The loop that a schedule's copies become.

With S stages there are S buffers, and the copies of iteration i + S - 1 begin in iteration i:

    prologue   copy 0 | copy 1 | ... | copy S - 2
    loop       wait for copy i,  use buffer i mod S,  begin copy i + S - 1
    epilogue   wait for what is under way, which is zeros beyond the end

What the copies need (addresses, masks) is computed twice: for the iteration that is being worked
on, where anything else asks for it, and for the one whose copies begin. Beyond the loop's end
copies are masked off. Indices that addresses follow from are loaded an iteration further ahead, so
that nothing waits for them. What TMA copies has no groups and tokens: each buffer has a barrier in
shared memory that its bytes arrive at, and iteration i waits for phase i / S of barrier i mod S.
Beyond the end nothing is copied, and nothing waits. Where groups of warps alternate, each copies a
part of what all read: the groups of copies have such barriers, too, at which all warps arrive.

A loop that is known to have no more than S iterations has a buffer for each, and all copies begin
in the prologue. Of a tight plan there are S - 1 buffers: copy i + S - 1 begins at the end of
iteration i, behind a barrier, in the buffer that i has read.
"""

from collections.abc import Callable
from functools import partial

from proton.dialect import isa, tt, ttg
from proton.dialect.asynchronous import set_ahead, set_iteration
from proton.dialect.builtin import i32_attr
from proton.dialect.emit import create, remade
from proton.dialect.mlir import Operation, Type, Value, arith, ir
from proton.dialect.regions import ForLoop, end_of, with_carried
from proton.dialect.ttg import BarrierOp, is_tensor, mem_desc, mem_desc_parts
from proton.dialect.ttg_memory import (
    AsyncCommitGroupOp,
    AsyncCopyOp,
    AsyncTokenType,
    AsyncWaitOp,
    LocalReserveOp,
    MemDescIndexOp,
)
from proton.dialect.ttng import OrderBeginOp, OrderEndOp, OrderPassOp, OrderWaitOp
from proton.dialect.ttng_memory import (
    ArriveWithCopiesOp,
    InitBarrierOp,
    InvalBarrierOp,
    WaitBarrierOp,
    barriers,
    one_barrier,
)
from proton.dialect.walk import all_ops, before, producer_of
from proton.layout.tensor_cores import GROUP_WARPS
from proton.schedule.buffers import begin_tma, start_barriers, take_from
from proton.schedule.loads import Load
from proton.schedule.plan import Copies, Item, Schedule, SyncPoint

_Predicate = arith.CmpIPredicate


class PipelinedLoop:
    """Emits the copies of a schedule, and what its marks stand for."""

    def __init__(self, schedule: Schedule, copies: Copies) -> None:
        assert schedule.loop is not None
        self.schedule, self.plan, self.loop = schedule, copies, schedule.loop
        self.loads, self.slice = copies.loads, copies.slice
        self.count_of_buffers, self.distance = copies.buffers, copies.distance
        # What the copies take, and what only the next ones do: that comes behind them, so that no
        # address is there twice, as it is and as it will be. Indices are loaded for the next ones:
        # nothing waits for them.
        slice_, yielded = self.slice, ForLoop(self.loop).yielded
        self.indices = slice_.indices
        self.taken = slice_.needed(copies.inputs, self.indices)
        following = slice_.needed((yielded[n] for n in slice_.carried), self.indices)
        self.following = [op for op in following if op not in self.taken]
        inputs = [value for op in self.indices for value in op.operands]
        self.indexing = [op for op in slice_.ops if op in slice_.needed(inputs) + self.indices]
        self.by_threads, self.by_tma = copies.by_threads, copies.by_tma
        self.buffers: dict[Operation, Value] = {}  # of each load those of all stages
        self.arrivals: Value | None = None  # barriers of all stages, for copies by TMA
        self.landed: Value | None = None  # likewise, for copies by threads of several groups
        self.begins: dict[Item, Operation] = {}  # the first op that stands for a mark
        self.anchors = {mark: self._anchor(mark) for mark in SyncPoint if mark in schedule.order}

    def run(self) -> None:
        """Makes the pipeline."""
        with before(self.around):
            for load in self.loads:
                shape, element, layout = mem_desc_parts(load.memory)
                with load.op.location:
                    self.buffers[load.op] = LocalReserveOp(
                        mem_desc((self.count_of_buffers, *shape), element, layout, is_mutable=True)
                    ).result
            if self.by_tma:
                self.arrivals = start_barriers(self.count_of_buffers)
            state = self.prologue()
            phases = [i32(0)] if self.by_tma or self.alternates else []
            initial = [*state, *phases, i32(self.distance % self.count_of_buffers), i32(0)]
        self._allocate_behind_copies()
        if self.alternates:
            self._begin_order()
        old, last = len(self.loop.results), end_of(ForLoop(self.loop).body)
        carried = [consumer == last for consumer in self.plan.consumers]
        around = self.carry(initial)
        last = end_of(ForLoop(self.loop).body)
        pairs = zip(self.plan.consumers, carried, strict=True)
        self.plan.consumers = [last if is_ else consumer for consumer, is_ in pairs]
        self._body(old)
        self._epilogue(around)

    @property
    def alternates(self) -> bool:
        """True if groups of warps do."""
        return self.schedule.groups > 1

    # What loops over tiles do otherwise

    @property
    def around(self) -> Operation:
        """The loop that buffers are made before."""
        return self.loop

    def carry(self, initial: list[Value]) -> int:
        """Makes the loops carry values; how many that around carries ahead of them."""
        own = len(self.loop.results)
        self.loop = with_carried(self.loop, initial)
        return own

    def prologue(self) -> list[Value]:
        """Begins the copies of the first iterations; what the loop carries for the next ones:
        values ahead of its own, then tokens."""
        view = ForLoop(self.loop)
        lower, upper, step = view.bounds
        state = [view.init_args[number] for number in self.slice.carried]
        is_inside = runs = is_less(self.loop, lower, upper)
        left = arith.SubIOp(upper, lower).result
        tokens: list[Value] = []
        variable = passed = lower
        state += self.load_indices(self._values(lower, state), runs)
        for number in range(self.distance):
            mapping = self._values(variable, state)
            note = partial(set_iteration, number=number)
            tokens += self.copies(mapping, i32(number), is_inside, note)
            if self.plan.are_ahead and number + 1 == self.distance:
                break  # there is no further iteration
            variable = arith.AddIOp(variable, step).result
            passed = arith.AddIOp(passed, step).result if number else step
            if number + 1 < self.distance or self.indices:
                more = arith.CmpIOp(_Predicate.ugt, left, passed).result
                is_inside = arith.AndIOp(runs, more).result
            state = self._next(mapping, variable, is_inside)
        return [*state, *tokens]

    def _values(self, variable: Value, state: list[Value]) -> dict[Value, Value]:
        """Those of the loop's in another iteration, by its variable and what is carried for it."""
        view = ForLoop(self.loop)
        ahead = [view.iter_args[n] for n in self.slice.carried]
        ahead += [op.results[0] for op in self.indices]
        return {view.induction_var: variable} | dict(zip(ahead, state, strict=False))

    def _next(self, mapping: dict[Value, Value], variable: Value, is_inside: Value) -> list[Value]:
        """What is carried for the iteration behind one whose values are in `mapping`."""
        yielded = ForLoop(self.loop).yielded
        state = [mapping.get(yielded[n], yielded[n]) for n in self.slice.carried]
        return [*state, *self.load_indices(self._values(variable, state), is_inside)]

    def load_indices(self, mapping: dict[Value, Value], is_inside: Value) -> list[Value]:
        """Loads the indices of an iteration whose values are in `mapping`."""
        clone(self.indexing, mapping, is_inside)
        return [mapping[op.results[0]] for op in self.indices]

    def _allocate_behind_copies(self) -> None:
        """Has blocks that nothing asks for ahead of the loop go to shared memory behind the
        prologue: one may wait for a load, as the copies need not."""
        ops = [view.operation for view in self.loop.block.operations]
        asked: set[Value] = set()
        for op in reversed(ops[: ops.index(self.loop)]):
            if isa(op, ttg.LocalAllocOp) and op.operands and op.results[0] not in asked:
                op.move_before(self.loop)
            asked.update(value for inner in (op, *all_ops(op)) for value in inner.operands)

    def go_on(self, state: list[Value], write: Value) -> list[Value]:
        """In the body, begins copies to the buffer `write`; what is carried then."""
        is_inside, variable = self._ahead(self.distance)
        mapping = self._values(variable, state)
        note = partial(set_ahead, iterations=self.distance)
        begun = self.copies(mapping, write, is_inside, note)
        if self.indices:
            is_inside, variable = self._ahead(self.distance + 1)
        ahead = self._next(mapping, variable, is_inside)
        return [*ahead, *state[self.count + 1 :], *begun]

    def _without_copies(self, state: list[Value], place: Operation) -> list[Value]:
        """The same where all copies have begun: a group of none stands for them, as a wait counts
        the groups behind its own."""
        begun: list[Value] = []
        if self.by_threads:
            with ir.InsertionPoint(place), self.loop.location:
                begun.append(AsyncCommitGroupOp([], _token()).group)
        return [*state[: self.count], *state[self.count + 1 :], *begun]

    @property
    def count(self) -> int:
        """Of values that are carried for the next copies, ahead of tokens."""
        return len(self.slice.carried) + len(self.indices)

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
        they have its number."""
        clone(self.taken, mapping, is_inside)
        if self.by_tma:
            with self.by_tma[0].op.location:
                barrier = MemDescIndexOp(self.arrivals, index, one_barrier()).result
                targets = [self._buffer(load, index) for load in self.by_tma]
            begun = begin_tma(self.by_tma, targets, barrier, is_inside, mapping, iteration)
            self.begins.setdefault(SyncPoint.COPIES, begun[0])
            for op in begun:
                note(op.operation)
        if not self.by_threads:
            clone(self.following, mapping, is_inside)
            return []
        copies = [self._copy(load, mapping, index, is_inside) for load in self.by_threads]
        with self.by_threads[-1].op.location:
            group: Value = AsyncCommitGroupOp(copies, _token(), iteration=iteration).group
        for token in (*copies, group):
            note(producer_of(token))
        clone(self.following, mapping, is_inside)
        return [group]

    def _copy(
        self, load: Load, mapping: dict[Value, Value], index: Value, is_inside: Value
    ) -> Value:
        with load.op.location:
            pointer = mapping.get(load.pointer, load.pointer)
            mask = _mask(load, mapping, is_inside)
            copy = AsyncCopyOp(pointer, self._buffer(load, index), _token(), mask=mask)
            self.begins.setdefault(SyncPoint.COPIES, copy.operation)
            return copy.token

    def _buffer(self, load: Load, index: Value) -> Value:
        return MemDescIndexOp(self.buffers[load.op], index, load.memory).result

    def _body(self, old: int) -> None:
        view = ForLoop(self.loop)
        *state, write, read = view.iter_args[old:]
        phases = [state.pop()] if self.by_tma or self.alternates else []
        end = end_of(view.body)
        first = self._at(SyncPoint.LANDED)
        asks = first if self.alternates else self.loads[-1].op
        with ir.InsertionPoint(first), asks.location:
            self._wait_for_copies(state, read, phases)
        self.begins.pop(SyncPoint.COPIES, None)  # those of the prologue
        if self.plan.are_ahead:
            following = self._without_copies(state, first)
        else:
            with ir.InsertionPoint(self._at(SyncPoint.COPIES)), self.loop.location:
                if self.plan.is_tight:
                    BarrierOp()  # all have read it
                following = self.go_on(state, write)
        for load, consumer in zip(self.loads, self.plan.consumers, strict=True):
            with before(consumer), load.op.location:
                take_from(load, self._buffer(load, read))
        if self.alternates:
            self._order(read)
        with before(end):
            written = write if self.plan.are_ahead else next_index(write, self.count_of_buffers)
            indices = [written, next_index(read, self.count_of_buffers)]
            phases = [next_phase(phase, indices[1]) for phase in phases]
        for number, value in enumerate([*following, *phases, *indices]):
            end.operands[old + number] = value

    def _anchor(self, mark: SyncPoint) -> Operation | None:
        """The op that stands behind a mark; None for the end. Waits for dots do not stand there
        yet, and loads do no more when warp groups get their order."""
        gone = {wait.op for wait in self.schedule.waits}
        if mark not in (SyncPoint.LANDED, SyncPoint.COPIES):
            gone |= self.plan.removed
        return next((op for op in self.schedule.behind(mark) if op not in gone), None)

    def _at(self, mark: SyncPoint) -> Operation:
        """The op that what a mark stands for comes ahead of."""
        return self.anchors[mark] or end_of(ForLoop(self.loop).body)

    def _wait_for_copies(self, state: list[Value], read: Value, phases: list[Value]) -> None:
        if self.by_threads and self.landed is None:
            token = state[self.count]
            wait = AsyncWaitOp(token, i32_attr(self.distance - 1))
            self.begins.setdefault(SyncPoint.LANDED, wait.operation)
        for all_ in (self.landed, self.arrivals):
            if all_ is not None:
                one = MemDescIndexOp(all_, read, one_barrier())
                WaitBarrierOp(one.result, phases[0])
                self.begins.setdefault(SyncPoint.LANDED, one.operation)

    def _ahead(self, distance: int) -> tuple[Value, Value]:
        """(whether the iteration so many further is one, its variable)."""
        view = ForLoop(self.loop)
        _, upper, step = view.bounds
        far = arith.MulIOp(step, arith.ConstantOp(step.type, distance).result).result
        left = arith.SubIOp(upper, view.induction_var).result
        is_inside = arith.CmpIOp(_Predicate.ugt, left, far).result
        return is_inside, arith.AddIOp(view.induction_var, far).result

    def _epilogue(self, old: int) -> None:
        if self.by_threads:
            with ir.InsertionPoint.after(self.around), self.around.location:
                last = old + self.count + self.distance - 1
                AsyncWaitOp(self.around.results[last], i32_attr(0))
        if self.by_tma:
            with ir.InsertionPoint.after(self.around), self.around.location:
                InvalBarrierOp(self.arrivals)
        if self.alternates:
            with ir.InsertionPoint.after(self.loop), self.loop.location:
                OrderEndOp()
                BarrierOp()
                if self.landed is not None:
                    InvalBarrierOp(self.landed)

    # Groups of warps that alternate

    def _begin_order(self) -> None:
        """Ahead of the loop, the first group acquires the tensor cores."""
        with before(self.loop):
            if self.by_threads:
                self.landed = LocalReserveOp(barriers(self.count_of_buffers)).result
                InitBarrierOp(self.landed, i32_attr(self.schedule.groups * GROUP_WARPS))
                self._arrive(i32(0), self.distance - 1)
            OrderBeginOp()

    def _order(self, read: Value) -> None:
        """In the loop, a group acquires and releases them, and tells which copies landed."""
        last = self.schedule.ahead_of(SyncPoint.RELEASE)[-1]
        with ir.InsertionPoint(self._at(SyncPoint.RELEASE)), last.location:
            self.begins[SyncPoint.RELEASE] = OrderPassOp().operation
        with before(self._at(SyncPoint.ACQUIRE)):
            self.begins[SyncPoint.ACQUIRE] = OrderWaitOp().operation
        if self.landed is not None:
            with before(self._at(SyncPoint.TELL)):
                one = i32(1)
                self.begins[SyncPoint.TELL] = producer_of(one)
                self._arrive(around(read, one, self.count_of_buffers), self.distance - 2)

    def _arrive(self, index: Value, pendings: int) -> None:
        barrier = MemDescIndexOp(self.landed, index, one_barrier()).result
        ArriveWithCopiesOp(barrier, i32_attr(pendings))


def clone(
    ops: list[Operation], mapping: dict[Value, Value], is_inside: Value | None = None
) -> None:
    """Emits ops again, with other values in the place of those in `mapping`, and adds theirs. Loads
    read only where `is_inside`."""
    for op in ops:
        if isa(op, tt.LoadOp):
            assert is_inside is not None, "loads run ahead in loops without tiles alone"
            mapping[op.results[0]] = _load(Load(op), mapping, is_inside)
            continue
        clone = op.operation.clone()
        for inner in (clone.operation, *all_ops(clone.operation)):
            for number, operand in enumerate(inner.operands):
                inner.operands[number] = mapping.get(operand, operand)
        for result, value in zip(op.results, clone.operation.results, strict=True):
            mapping[result] = value


def _load(load: Load, mapping: dict[Value, Value], is_inside: Value) -> Value:
    """The same load in another iteration, if that is one."""
    pointer, *rest = (mapping.get(value, value) for value in load.op.operands)
    other = rest[load.mask is not None :]
    segments = ir.DenseI32ArrayAttr.get([1, 1, len(other)])
    with load.op.location:
        operands = [pointer, _mask(load, mapping, is_inside), *other]
        types = [load.op.results[0].type]
        return remade(load.op, types, operands, operandSegmentSizes=segments).result


def _mask(load: Load, mapping: dict[Value, Value], is_inside: Value) -> Value:
    """A load's mask in an iteration that may be beyond the loop's end."""
    type_ = load.pointer.type
    if is_tensor(type_):
        i1 = ir.IntegerType.get_signless(1)
        type_ = ir.RankedTensorType.get(type_.shape, i1, encoding=type_.encoding)
        is_inside = create(tt.SplatOp, type_, is_inside)
    if load.mask is None:
        return is_inside
    return arith.AndIOp(mapping.get(load.mask, load.mask), is_inside).result


def is_less(loop: Operation, lower: Value, upper: Value) -> Value:
    """As the loop compares its bounds."""
    less = _Predicate.ult if "unsignedCmp" in loop.attributes else _Predicate.slt
    return arith.CmpIOp(less, lower, upper).result


def has_more(left: Value, upper: Value, step: Value) -> Value:
    """Whether a loop that is at `left` has another iteration."""
    return is_more(arith.SubIOp(upper, left).result, step)


def is_more(left: Value, right: Value) -> Value:
    """Whether one length is greater than another."""
    return arith.CmpIOp(_Predicate.ugt, left, right).result


def next_index(index: Value, stages: int) -> Value:
    """The index of the next buffer, around."""
    return around(index, i32(1), stages)


def around(index: Value, one: Value, stages: int) -> Value:
    """The same; `one` is 1."""
    more = arith.AddIOp(index, one).result
    is_end = arith.CmpIOp(_Predicate.eq, more, i32(stages)).result
    return arith.SelectOp(is_end, i32(0), more).result


def next_phase(phase: Value, read: Value) -> Value:
    """The parity of the next iteration's phase: another one, once around."""
    is_around = arith.CmpIOp(_Predicate.eq, read, i32(0)).result
    return arith.XOrIOp(phase, arith.ExtUIOp(phase.type, is_around).result).result


def i32(value: int) -> Value:
    return arith.ConstantOp(ir.IntegerType.get_signless(32), value).result


def _token() -> Type:
    return AsyncTokenType.get()
