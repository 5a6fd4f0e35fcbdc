"""The decision which loops have a warp of their own for copies (warp specialization).

    producer, one warp                     consumer, the program's own warps
    for each iteration                     for each iteration
      wait until a buffer is empty           wait until it is filled
      begin the copies that fill it          use it
                                             arrive: it is empty

Where threads copy, and the loop asks for it, the producer is a warp group. It runs ahead by as many
iterations as there are buffers, and the consumers meet nowhere: a warp group may be iterations
behind another. Loads with one first consumer share a *channel*; K and V of attention have one each,
so that K's buffer is filled again while V's is still read.

A dot that takes what is computed from another dot of its iteration may be *delayed*: it runs beside
the next iteration's dots, and tensor cores work while what lies between is computed.

    iteration i      scores i + 1 | values i | weights i + 1 (values i go on) | wait for values i

Source of both: Shah et al., "FlashAttention-3", sections 3.1 and 3.2.
"""

from collections.abc import Collection

from proton.analysis import group_registers
from proton.analysis.alias import Roots
from proton.analysis.call_graph import function_of
from proton.analysis.tensor_maps import is_made_by_kernel
from proton.base.chips.chip import Chip
from proton.base.targets import MAX_THREADS, WARP_SIZE
from proton.dialect import isa, ttg
from proton.dialect.attributes import KERNEL, WARP_SPECIALIZE
from proton.dialect.diagnostics import element_of
from proton.dialect.mlir import Module, Operation, Value, arith, func, ir, scf
from proton.dialect.regions import ForLoop, end_of, is_inside
from proton.dialect.traits import AllocatesShared, Elementwise, Orders, Pure, TileIndex, has
from proton.dialect.ttg import is_mem_desc, is_tensor, layout_of, num_warps
from proton.dialect.walk import all_ops, defining_op, parent_of, users
from proton.layout.tensor_cores import GROUP_WARPS
from proton.schedule.dots import DOT
from proton.schedule.loads import Load, is_apart, written_by
from proton.schedule.partitions import LEAST_WORK, longest_work
from proton.schedule.plan import Channel, Schedule

# Registers of a consumer's thread that hold no results of dots and no operands: attention of 128 x
# 128 x 128 leaves so many, and does not spill.
FREE_REGISTERS = 40


def may_be_specialized(module: Module, function: Operation, schedule: Schedule) -> bool:
    """True if warps of their own could begin all copies of a loop."""
    loop, copies = schedule.loop, schedule.copies
    if loop is None or copies is None:
        return False
    warps = num_warps(module)
    if KERNEL not in function.attributes or warps % GROUP_WARPS:
        return False
    if (warps + GROUP_WARPS) * WARP_SIZE > MAX_THREADS:
        return False
    maps = [op for load in copies.loads if (op := defining_op(load.pointer)) is not None]
    block = function.regions[0].blocks[0]
    if any(is_made_by_kernel(made) and made.block != block for made in maps):
        return False  # each role would make it again
    root = _root(loop)
    if root is None or not _is_known(schedule, root) or _is_ordered(root):
        return False
    read = [load.op for load in copies.by_threads] + copies.slice.loads
    return not read or _is_apart(read, root)


def _is_ordered(root: Operation) -> bool:
    """True if a loop, or what comes ahead of it, may wait for what other programs write: copies
    that begin with the program come too early then."""
    ops = [view.operation for view in root.block.operations]
    ahead = ops[: ops.index(root) + 1]
    return any(has(inner, Orders) for op in ahead for inner in (op, *all_ops(op)))


def _is_apart(loads: list[Operation], root: Operation) -> bool:
    """True if nothing ahead of a loop, or in it, writes what loads take."""
    function = function_of(root)
    roots = Roots(function)
    ops = [view.operation for view in root.block.operations]
    ahead = ops[: ops.index(root) + 1]
    written = written_by((inner for op in ahead for inner in (op, *all_ops(op))), roots)
    return written is not None and all(is_apart(load, written, roots) for load in loads)


def _root(loop: Operation) -> Operation | None:
    """The op of the function's block that a loop is in, by loops that count; None without."""
    while (around := parent_of(loop)).name != func.FuncOp.OPERATION_NAME:
        if not isa(around, scf.ForOp):
            return None
        loop = around
    return loop


def _is_known(schedule: Schedule, root: Operation) -> bool:
    """True if the producer can compute what the copies take: from scalars of the function, from
    variables of loops, from numbers that it loads, and tensors from these."""
    assert schedule.loop is not None
    assert schedule.copies is not None
    view, slice_ = ForLoop(schedule.loop), schedule.copies.slice
    work = [*view.bounds, *schedule.copies.taken(schedule.loop)]
    inside = {view.induction_var, *(view.iter_args[number] for number in slice_.carried)}
    numbers = [op for op in slice_.loads if not is_tensor(op.results[0].type)]
    if not all(may_be_shared(op) or may_be_repeated(op) or op in numbers for op in slice_.ops):
        return False
    seen = set(slice_.ops)
    while work:
        value = work.pop()
        op = defining_op(value)
        if op is None:
            around = value.owner.owner.operation
            if value in inside or around == parent_of(root):
                continue
            if not isa(around, scf.ForOp) or value != ForLoop(around).induction_var:
                return False
            work += ForLoop(around).bounds
        elif op not in seen:
            seen.add(op)
            if not (may_be_shared(op) or may_be_repeated(op)):
                return False
            work += op.operands
    return True


def may_be_repeated(op: Operation) -> bool:
    """True if a producer may compute a tensor again, each thread for itself."""
    if isa(op, arith.ConstantOp):
        value = op.attributes["value"]
        return not isinstance(value, ir.DenseElementsAttr) or value.is_splat
    return has(op, Pure) and has(op, TileIndex, Elementwise) and not op.regions


def may_be_shared(op: Operation) -> bool:
    """True if all warps may compute an op each for itself: numbers, and names of memory."""
    if any(is_tensor(result.type) for result in op.results) or op.regions:
        return False
    return has(op, Pure) or (has(op, AllocatesShared) and not op.operands)


def specialize(schedules: list[Schedule], chip: Chip, warps: int) -> None:
    """Decides which of these loops a producer begins the copies of, once their waits for dots are
    planned. Those that ask for it, and those with a dot that may be delayed, where the results of
    dots and their operands leave no room for a second program on an SM: else that program does what
    is gained. All have the same buffers, one after the other."""
    buffers: list[object] | None = None
    most = chip.most_registers(2, warps * WARP_SIZE)
    left = group_registers.of_consumers(chip, warps) - FREE_REGISTERS
    for schedule in schedules:
        assert schedule.loop is not None
        assert schedule.copies is not None
        channels, held = _channels(schedule), _held(schedule, ())
        if not channels or held > left:
            continue  # without a producer a thread may have more registers
        delayed = _delayed(schedule, channels, chip)
        if _held(schedule, delayed) > left:
            delayed = []
        # Addresses of copies by threads make consumers spill, too: some kernels gain, some lose.
        pays = delayed and held >= most and not schedule.copies.by_threads
        if not (pays or WARP_SPECIALIZE in schedule.loop.attributes):
            continue
        own = [schedule.copies.stages, *([load.memory for load in c.loads] for c in channels)]
        if buffers is None or own == buffers:
            buffers, schedule.channels, schedule.delayed = own, channels, delayed


def _channels(schedule: Schedule) -> list[Channel]:
    """The channels of a loop in the order in which it asks for them; none where it is not known
    what reads a buffer last."""
    assert schedule.copies is not None
    found: dict[Operation, Channel] = {}
    order = {item: number for number, item in enumerate(schedule.order)}
    pairs = list(zip(schedule.copies.loads, schedule.copies.consumers, strict=True))
    if not all(consumer in order for _, consumer in pairs):  # the next iteration's
        return []
    for load, consumer in sorted(pairs, key=lambda pair: order[pair[1]]):
        ends = _ends_of_reads(schedule, load)
        if ends is None or not all(op in order for op, _ in ends):
            return []
        channel = found.setdefault(consumer, Channel([], consumer, None))
        channel.loads.append(load)
        ends += [] if channel.emptied is None else [(channel.emptied, channel.is_later)]
        if ends:
            last = max(ends, key=lambda end: (end[1], order[end[0]]))
            channel.emptied, channel.is_later = last
    return list(found.values())


def _ends_of_reads(schedule: Schedule, load: Load) -> list[tuple[Operation, bool]] | None:
    """The ops behind which a load's buffer was read by one of those that take it as memory, and
    whether that is an iteration later; None where it is not known."""
    found: list[tuple[Operation, bool]] = []
    for reader in _readers(load.alloc.results[0]) if load.alloc is not None else []:
        if not isa(reader, DOT):
            found.append((reader, False))
            continue
        wait = next((wait for wait in schedule.waits if wait.dot == reader), None)
        if wait is None:
            return None
        if wait.is_later:  # one op stands for all of these
            wait = next(wait for wait in schedule.waits if wait.is_later and not wait.is_implied)
        found.append((wait.op, wait.is_later))
    return found


def _readers(memory: Value) -> list[Operation]:
    """What takes memory, as it is or by another view."""
    found: list[Operation] = []
    for user in users(memory):
        found += _readers(user.results[0]) if isa(user, ttg.MemDescTransOp) else [user]
    return found


# Delayed dots


def _delayed(schedule: Schedule, channels: list[Channel], chip: Chip) -> list[Operation]:
    """The dots of a loop behind its longest work between two, if all of them may be delayed."""
    if not chip.dot_per_cycle or any(channel.is_later for channel in channels):
        return []
    found = longest_work(schedule, chip, LEAST_WORK, float("inf"))
    if found is None:
        return []
    first = schedule.order.index(found[1])
    ops = [op for op in schedule.ops if isa(op, DOT)]
    dots = [op for op in ops if schedule.order.index(op) >= first]
    if len(dots) == len(ops) or not all(_may_be_delayed(dot, schedule) for dot in dots):
        return []
    waits = {wait.op for wait in schedule.waits if wait.dot in dots}
    if any((channel.filled in dots) != (channel.emptied in waits) for channel in channels):
        return []  # of one buffer the first dots take something, too
    last = next(op for op in reversed(ops) if op not in dots)
    if _asks_before(schedule, dots, last):
        return []
    return dots


def _may_be_delayed(dot: Operation, schedule: Schedule) -> bool:
    """True if only the next iteration takes a dot's result, and its operands stay until then."""
    wait = next((wait for wait in schedule.waits if wait.dot == dot), None)
    assert schedule.loop is not None
    if wait is None or wait.is_later or users(dot.results[0]) != [wait.op]:
        return False
    if set(users(wait.op.results[0])) != {end_of(ForLoop(schedule.loop).body)}:
        return False
    assert schedule.copies is not None
    buffered = [load.alloc for load in schedule.copies.loads if load.alloc]
    for side in list(dot.operands)[:2]:
        is_own = is_mem_desc(side.type) and is_inside(_maker(side), schedule.loop)
        if is_own and _maker(side) not in buffered:
            return False
    return True


def _maker(memory: Value) -> Operation:
    op = defining_op(memory)
    assert op is not None
    return _maker(op.operands[0]) if isa(op, ttg.MemDescTransOp) else op


def _asks_before(schedule: Schedule, dots: list[Operation], last: Operation) -> bool:
    """True if the loop asks for the results of dots of the iteration before ahead of an op."""
    assert schedule.loop is not None
    view = ForLoop(schedule.loop)
    waits = {wait.op for wait in schedule.waits if wait.dot in dots}
    carried = [
        view.iter_args[number]
        for number, value in enumerate(view.yielded)
        if defining_op(value) in waits
    ]
    ahead = [op for op in schedule.ahead_of(last) if op not in dots] + [last]
    ahead += [inner for op in ahead for inner in all_ops(op)]
    return any(user in ahead for value in carried for user in users(value))


def _held(schedule: Schedule, delayed: Collection[Operation]) -> int:
    """The most registers of a thread that hold results of dots and their operands at once; operands
    of delayed dots are those of two iterations."""
    assert schedule.loop is not None
    view, place = ForLoop(schedule.loop), {op: n for n, op in enumerate(schedule.ops)}
    carried, waits = {*view.iter_args, *view.yielded}, {wait.dot: wait for wait in schedule.waits}
    words = [0] * len(place)

    def hold(value: Value, first: Operation | None, last: Collection[Operation]) -> None:
        """From one op to the last of others; without the former, in all of the loop."""
        start, end = 0, len(words) - 1
        if first is not None:
            start, end = place.get(first, 0), max(place.get(op, end) for op in (first, *last))
        size = layout_of(value.type).in_size("register") * element_of(value).width // 32
        for number in range(start, end + 1):
            words[number] += size

    for dot in (op for op in schedule.ops if isa(op, DOT)):
        wait, (result,) = waits.get(dot), dot.results
        values = [result, *([] if wait is None else wait.op.results)]
        stays = wait is None or wait.is_later or not carried.isdisjoint((*values, dot.operands[2]))
        hold(result, None if stays else dot, [op for value in values for op in users(value)])
        if is_tensor((left := dot.operands[0]).type):
            hold(left, defining_op(left), [dot, *([] if wait is None else [wait.op])])
            if dot in delayed:
                hold(left, None, ())
    return max(words, default=0)
