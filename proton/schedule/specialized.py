"""The loops of a producer and a consumer (roles.py decides which).

    %full, %empty = barriers, a pair for each buffer of a channel
    ttg.worker ({                          ttg.start_workers
      scf.for ... {                        scf.for ... {
        wait %empty[i]                       wait %full[i]
        copies to the buffers i, and         use the buffers i
        the bytes arrive at %full[i]         each warp arrives at %empty[i]
      }                                    }
    }) {warps = 1}                         ttg.join_workers

Both carry of each channel which buffer comes next and the parity of its phase, through all loops
that specialized ones are in, and from one loop to the next.
"""

from collections.abc import Iterable
from dataclasses import dataclass

from proton.analysis import group_registers
from proton.dialect import isa, name_of, ttg
from proton.dialect.builtin import i32_attr, integer, string_attr
from proton.dialect.emit import constant
from proton.dialect.mlir import Block, Operation, Type, Value, arith, ir, scf
from proton.dialect.regions import ForLoop, end_of, is_invariant, with_carried, yield_values
from proton.dialect.ttg import mem_desc, mem_desc_parts
from proton.dialect.ttg_memory import (
    AsyncCommitGroupOp,
    AsyncCopyOp,
    AsyncTokenType,
    LocalReserveOp,
    MemDescIndexOp,
)
from proton.dialect.ttng_memory import (
    ArriveOfWarpsOp,
    ArriveWithCopiesOp,
    InitBarrierOp,
    WaitBarrierOp,
    barriers,
    one_barrier,
)
from proton.dialect.walk import backward_slice, before, defining_op, producer_of, users
from proton.layout.linear import LinearLayout, log2
from proton.layout.tensor_cores import GROUP_WARPS
from proton.schedule.buffers import begin_tma, start_barriers, take_from
from proton.schedule.delayed import delay
from proton.schedule.dots import WAIT
from proton.schedule.in_order import in_order
from proton.schedule.loads import TMA_LOAD
from proton.schedule.pipelined_loop import i32, is_less, next_index, next_phase
from proton.schedule.plan import Channel, Copies, Schedule
from proton.schedule.roles import may_be_shared

_ROLES = "producer", "consumer"
State = list[Value]  # of each ring (the buffer that comes next, the parity of its phase)


@dataclass
class Ring:
    """The memory of a channel: buffers of each of its loads, and their barriers."""

    stages: int
    buffers: list[Value]
    full: Value
    empty: Value

    @classmethod
    def of(cls, channel: Channel, stages: int, warps: int) -> "Ring":
        """A ring that consumers of so many warps empty."""
        buffers = []
        for load in channel.loads:
            shape, element, layout = mem_desc_parts(load.memory)
            type_ = mem_desc((stages, *shape), element, layout, is_mutable=True)
            with load.op.location:
                buffers.append(LocalReserveOp(type_).result)
        with channel.filled.location:
            empty = LocalReserveOp(barriers(stages)).result
            InitBarrierOp(empty, i32_attr(warps))
            return cls(stages, buffers, start_barriers(stages, _arrivals(channel)), empty)

    def buffer(self, channel: Channel, number: int, index: Value) -> Value:
        """A buffer of a channel's load of this number."""
        return MemDescIndexOp(self.buffers[number], index, channel.loads[number].memory).result


@dataclass
class Nest:
    """A loop that is specialized, or one with such loops in it. Known before the first one is
    changed: a new op may lie where an erased one did."""

    loop: Operation
    schedule: Schedule | None
    inner: "list[Nest]"

    @classmethod
    def all_of(cls, block: Block, schedules: dict[Operation, Schedule]) -> "list[Nest]":
        """Those of a block."""
        found = []
        for op in [view.operation for view in block.operations]:
            if op in schedules:
                found.append(cls(op, schedules[op], []))
            elif isa(op, scf.ForOp) and (inner := cls.all_of(ForLoop(op).body, schedules)):
                found.append(cls(op, None, inner))
        return found

    def all(self) -> "list[Nest]":
        """It and those in it."""
        return [self, *(nest for inner in self.inner for nest in inner.all())]

    def asked(self) -> list[Value]:
        """What a producer takes of the code around the loop."""
        found = list(ForLoop(self.loop).bounds)
        if self.schedule is not None:
            taken = _copies_of(self.schedule).taken(self.loop)
            found += [value for value in taken if is_invariant(value, self.loop)]
        return found


class SpecializedLoops:
    """Loops of a function whose copies one producer begins."""

    def __init__(self, function: Operation, schedules: list[Schedule], warps: int) -> None:
        self.block = function.regions[0].blocks[0]
        self.nests = Nest.all_of(self.block, {s.loop: s for s in schedules if s.loop is not None})
        self.schedules, self.warps = schedules, warps
        self.rings: list[Ring] = []

    def run(self) -> None:
        """Makes the producer, and the consumer of what was there."""
        schedule, location = self.schedules[0], self.nests[0].loop.location
        with ir.InsertionPoint(self._place()), location:
            stages = _copies_of(schedule).stages
            self.rings = [Ring.of(c, stages, self.warps) for c in schedule.channels]
            state = initial = [i32(0) for _ in self.rings for _ in range(2)]
            self._worker(initial)
            start = ttg.StartWorkersOp(string_attr(_ROLES[1])).operation
        self._begin_loads(start)
        for nest in self.nests:
            state = self._consume(nest, state)
        with ir.InsertionPoint(end_of(self.block)), location:
            ttg.JoinWorkersOp()

    def _place(self) -> Operation:
        """The op that roles begin ahead of: the first one that the producer does not ask for; what
        it asks for moves ahead of it, but for tensors, which it makes itself."""
        asked = self._needed(self._asked())
        asked = {op for op in asked if not _makes_tensor(op)}
        ops = [view.operation for view in self.block.operations]
        place = next(op for op in ops if op not in asked)
        self._move(asked, place)
        return place

    def _asked(self) -> list[Value]:
        return [value for n in self.nests for inner in n.all() for value in inner.asked()]

    def _needed(self, values: Iterable[Value]) -> set[Operation]:
        """The ops of the function's block that values are computed from."""
        found = {op for _, op in backward_slice(values, lambda _: True) if op is not None}
        return {op for op in found if op.block == self.block}

    def _move(self, ops: set[Operation], place: Operation) -> None:
        """Moves ops ahead of one that they do not stand ahead of already."""
        behind = [view.operation for view in self.block.operations]
        for op in behind[behind.index(place) :]:
            if op in ops:
                op.move_before(place)

    def _begin_loads(self, start: Operation) -> None:
        """Has loads by TMA ahead of the first loop begin before the roles do: nothing that the
        kernel writes is loaded by TMA."""
        ops = [view.operation for view in self.block.operations]
        for load in ops[ops.index(start) : ops.index(self.nests[0].loop)]:
            if isa(load, TMA_LOAD):
                needed = self._needed(load.operands)
                if all(may_be_shared(op) for op in needed):
                    self._move({*needed, load}, start)

    # The producer

    def _worker(self, state: State) -> None:
        loads = [load for s in self.schedules for load in _copies_of(s).loads]
        worker = ir.Operation.create(
            name_of(ttg.WorkerOp),
            attributes={
                "warps": i32_attr(1 if all(load.is_tma for load in loads) else GROUP_WARPS),
                "registers": i32_attr(group_registers.PRODUCER),
                "role": string_attr(_ROLES[0]),
            },
            regions=1,
        )
        with ir.InsertionPoint(ir.Block.create_at_start(worker.regions[0], [])):
            known: dict[Value, Value] = {}
            self._know([v for v in self._asked() if _is_in(v, self.block)], known)
            for nest in self.nests:
                state = self._produce(nest, known, state)
            ttg.WarpReturnOp()

    def _produce(self, nest: Nest, mapping: dict[Value, Value], state: State) -> State:
        """Emits what a producer does of loops; `mapping` has its values of those of the loops
        around. What the next loop begins with."""
        loop, view, schedule = nest.loop, ForLoop(nest.loop), nest.schedule
        mapping = dict(mapping)
        carried = [] if schedule is None else _copies_of(schedule).slice.carried
        self._know(nest.asked(), mapping)
        bounds = [mapping.get(bound, bound) for bound in view.bounds]
        initial = [mapping.get(view.init_args[n], view.init_args[n]) for n in carried]
        attributes = {n: loop.attributes[n] for n in ("unsignedCmp",) if n in loop.attributes}
        with loop.location:
            made = ForLoop.create(bounds, [*initial, *state], attributes)
        inner = mapping | {view.induction_var: made.induction_var}
        inner |= {view.iter_args[n]: a for n, a in zip(carried, made.iter_args, strict=False)}
        own = made.iter_args[len(carried) :]
        with ir.InsertionPoint(made.body), loop.location:
            for child in nest.inner:
                own = self._produce(child, inner, own)
            if schedule is not None:
                own = self._copies(schedule, inner, own)
            ahead = [inner.get(view.yielded[n], view.yielded[n]) for n in carried]
            yield_values([*ahead, *own])
        return list(made.op.results)[len(carried) :]

    def _know(self, values: list[Value], mapping: dict[Value, Value]) -> None:
        """Emits again what values are computed from inside of the loops around, and tensors."""
        for value in values:
            op = defining_op(value)
            if op is None or value in mapping:
                continue
            if op.block == self.block and not _makes_tensor(op):
                continue
            self._know(list(op.operands), mapping)
            _repeat([op], mapping)

    def _copies(self, schedule: Schedule, mapping: dict[Value, Value], state: State) -> State:
        """Emits an iteration of a producer's loop; the state of the next one."""
        slice_, copies = _copies_of(schedule).slice, _copies_of(schedule)
        taken = slice_.needed(copies.inputs)
        _repeat(taken, mapping)
        following: State = []
        under_way: list[Value] = []
        for number, (channel, ring) in enumerate(zip(schedule.channels, self.rings, strict=True)):
            index, phase = state[2 * number : 2 * number + 2]
            with channel.loads[0].op.location:
                before_ = arith.XOrIOp(phase, i32(1)).result
                WaitBarrierOp(MemDescIndexOp(ring.empty, index, one_barrier()).result, before_)
                targets = [ring.buffer(channel, n, index) for n in range(len(channel.loads))]
                filled = MemDescIndexOp(ring.full, index, one_barrier()).result
                _begin(channel, targets, filled, mapping)
                under_way += [filled] if channel.by_threads else []
            following += _next(ring, index, phase)
        _repeat([op for op in slice_.ops if op not in taken], mapping)
        # Behind the next iteration's the producer might wait for who waits for these.
        for number, filled in enumerate(under_way, 1):
            ArriveWithCopiesOp(filled, i32_attr(len(under_way) - number))
        return following

    # The consumer

    def _consume(self, nest: Nest, state: State) -> State:
        """Has loops take what the producer copies; what the next loop begins with."""
        if nest.schedule is not None:
            return self._consumer(nest.schedule, state)
        count = len(state)
        loop = with_carried(nest.loop, state)
        own = ForLoop(loop).iter_args[-count:]
        for inner in nest.inner:
            own = self._consume(inner, own)
        end = end_of(ForLoop(loop).body)
        for number, value in enumerate(own):
            end.operands[len(end.operands) - count + number] = value
        return list(loop.results)[-count:]

    def _consumer(self, schedule: Schedule, state: State) -> State:
        assert schedule.loop is not None
        place_waits, count = in_order(schedule), len(state)
        loop = with_carried(schedule.loop, state)
        place_waits(loop, {})
        view = ForLoop(loop)
        own, end = view.iter_args[-count:], end_of(view.body)
        apart = [op for w in schedule.waits if w.dot in schedule.delayed for op in (w.dot, w.op)]
        numbers = set[int]()
        for number, (channel, ring) in enumerate(zip(schedule.channels, self.rings, strict=True)):
            index, phase = own[2 * number : 2 * number + 2]
            is_apart = channel.filled in schedule.delayed
            made = self._take(channel, ring, loop, index, phase)
            with before(end):
                following = _next(ring, index, phase)
            for place, value in enumerate(following, len(end.operands) - count + 2 * number):
                end.operands[place] = value
                numbers |= {place} if is_apart else set()
            apart += made if is_apart else []
        _copies_of(schedule).slice.erase_unused_loads()
        results = delay(loop, apart, numbers) if schedule.delayed else list(loop.results)
        return results[-count:]

    def _take(
        self, channel: Channel, ring: Ring, loop: Operation, index: Value, phase: Value
    ) -> list[Operation]:
        """Waits for a channel's data where it is asked for, and says where it has been read: these
        two ops."""
        with before(channel.filled):  # which goes where reads take its place
            filled = MemDescIndexOp(ring.full, index, one_barrier()).result
            wait = WaitBarrierOp(filled, phase).operation
            always = constant(1, integer(1))
        for number, load in enumerate(channel.loads):
            with ir.InsertionPoint(producer_of(always)), load.op.location:
                take_from(load, ring.buffer(channel, number, index))
        if channel.emptied is None:
            with ir.InsertionPoint.after(producer_of(always)), wait.location:
                return [wait, self._arrive(ring, index, always)]
        view = ForLoop(loop)
        lower, upper, _ = view.bounds
        with ir.InsertionPoint.after(channel.emptied), channel.emptied.location:
            if not channel.is_later:
                return [wait, self._arrive(ring, index, always)]
            is_other = arith.CmpIOp(arith.CmpIPredicate.ne, view.induction_var, lower).result
            arrival = self._arrive(ring, _before(index, ring.stages), is_other)
        last = list(loop.results)[view.iter_args.index(index)]
        with ir.InsertionPoint.after(_last_wait(loop)), channel.emptied.location:
            self._arrive(ring, _before(last, ring.stages), is_less(loop, lower, upper))
        return [wait, arrival]

    def _arrive(self, ring: Ring, index: Value, condition: Value) -> Operation:
        barrier = MemDescIndexOp(ring.empty, index, one_barrier()).result
        return ArriveOfWarpsOp(barrier, condition).operation


def _begin(
    channel: Channel, targets: list[Value], filled: Value, mapping: dict[Value, Value]
) -> None:
    """Begins the copies of a channel's loads to memory: those of TMA arrive at a barrier, those of
    threads are a group."""
    pairs = list(zip(channel.loads, targets, strict=True))
    if by_tma := channel.by_tma:
        memory = [target for load, target in pairs if load.is_tma]
        begin_tma(by_tma, memory, filled, constant(1, integer(1)), mapping)
    tokens = []
    for load, target in pairs:
        if not load.is_tma:
            pointer, *mask = (mapping.get(value, value) for value in load.inputs)
            with load.op.location:
                type_, given = AsyncTokenType.get(), mask[0] if mask else None
                tokens.append(AsyncCopyOp(pointer, target, type_, mask=given).token)
    if tokens:
        AsyncCommitGroupOp(tokens, AsyncTokenType.get())


def _arrivals(channel: Channel) -> int:
    """How many arrivals fill a buffer: of a thread with TMA's bytes, of each warp that copies."""
    return bool(channel.by_tma) + GROUP_WARPS * bool(channel.by_threads)


def _makes_tensor(op: Operation) -> bool:
    return any(ttg.is_tensor(result.type) for result in op.results)


def _is_in(value: Value, block: Block) -> bool:
    """True if an op of a block, not of one in it, makes a value."""
    op = defining_op(value)
    return op is not None and op.block == block


def _in_one_group(type_: Type) -> Type:
    """The type of a tensor of several warps in one warp group: where there are more, its threads
    have the elements of some in registers of their own."""
    if not ttg.is_tensor(type_):
        return type_
    layout, kept = ttg.layout_of(type_), log2(GROUP_WARPS)
    warps = layout.bases("warp")
    registers = [*layout.bases("register"), *(basis for basis in warps[kept:] if any(basis))]
    ins = dict(layout.ins) | {"register": registers, "warp": warps[:kept]}
    return ttg.with_layout(type_, LinearLayout.of(ins, dict(layout.outs)))


def _repeat(ops: Iterable[Operation], mapping: dict[Value, Value]) -> None:
    """Emits ops again, with other values in the place of those in `mapping`, and adds theirs. What
    several warps have a copying warp group has in more registers."""
    for op in ops:
        attributes = {name: op.attributes[name] for name in op.attributes}
        types = [_in_one_group(result.type) for result in op.results]
        if isa(op, arith.ConstantOp) and _makes_tensor(op):
            splat = ir.DenseElementsAttr(op.attributes["value"]).get_splat_value()
            attributes["value"] = ir.DenseElementsAttr.get_splat(types[0], splat)
        operands = [mapping.get(operand, operand) for operand in op.operands]
        made = ir.Operation.create(op.name, types, operands, attributes, loc=op.location)
        mapping |= dict(zip(op.results, made.results, strict=True))


def _copies_of(schedule: Schedule) -> Copies:
    assert schedule.copies is not None
    return schedule.copies


def _last_wait(loop: Operation) -> Operation:
    """The last wait behind a loop for dots that were under way when it ended."""
    ops = [view.operation for view in loop.block.operations]
    waits = [user for result in loop.results for user in users(result) if isa(user, WAIT)]
    return max([loop, *waits], key=ops.index)


def _next(ring: Ring, index: Value, phase: Value) -> State:
    following = next_index(index, ring.stages)
    return [following, next_phase(phase, following)]


def _before(index: Value, stages: int) -> Value:
    """The index of the buffer before one, around."""
    is_first = arith.CmpIOp(arith.CmpIPredicate.eq, index, i32(0)).result
    less = arith.SubIOp(index, i32(1)).result
    return arith.SelectOp(is_first, i32(stages - 1), less).result
