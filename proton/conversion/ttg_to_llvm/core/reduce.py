"""Reductions and scans: registers, then lanes, then warps (proton/layout/reduction.py).

The combine region is emitted on whole vectors of registers (regions.py): combining 32 registers
with 32 others is one op for each op of the region.
"""

from proton.analysis.choices import NaN, rising_choice
from proton.analysis.scratch import axis_of, exchange_bytes, reduction_of, stored_bytes
from proton.conversion.ttg_to_llvm.core import values as v
from proton.conversion.ttg_to_llvm.core.layouts import exchange
from proton.conversion.ttg_to_llvm.core.lowering import Lowering, Site, lowers
from proton.conversion.ttg_to_llvm.core.regions import Combiner, RisingCombiner, Values
from proton.dialect import by_name, tt, ttg
from proton.dialect.attributes import FUSED
from proton.dialect.mlir import Value, arith, ir, llvm, math
from proton.dialect.ttg import is_tensor, layout_of
from proton.dialect.walk import producer_of
from proton.layout import LinearLayout
from proton.layout.linear import Basis, log2
from proton.layout.reduction import Reduction, WarpExchange, plan_reduction

ACCUMULATORS = 4  # of a thread: as many as its additions take cycles

# What one instruction combines all lanes of a warp by, of i32.
_OVER_WARP = by_name(
    {
        arith.AddIOp: "add",
        arith.AndIOp: "and",
        arith.OrIOp: "or",
        arith.XOrIOp: "xor",
        arith.MinSIOp: "min.s32",
        arith.MaxSIOp: "max.s32",
        arith.MinUIOp: "min.u32",
        arith.MaxUIOp: "max.u32",
    }
)


def _on_pairs(values: Values, first: list[int], second: list[int], combine: Combiner) -> Values:
    return combine(
        [v.shuffle(value, first) for value in values],
        [v.shuffle(value, second) for value in values],
    )


def _fold_bits(values: Values, bits: list[int], combine: Combiner) -> Values:
    """Combines registers that differ in these bits, the highest first; they are gone after."""
    for bit in sorted(bits, reverse=True):
        registers = range(v.count_of(values[0]))
        low = [r for r in registers if not r >> bit & 1]
        values = _on_pairs(values, low, [r | 1 << bit for r in low], combine)
    return values


def _fold_registers(site: Site, bits: list[int], combine: Combiner) -> Values:
    """Combines a thread's registers along the axis: some accumulators take them in turn, so that
    what is added up need not all be there at once. Of an extremum each takes a run, and runs that
    follow each other are combined first: as where indices rise, so that both may be one."""
    values, product = site.operands, None
    if FUSED in site.op.attributes:
        product = producer_of(values[0]).operands
    groups = _group(v.count_of(values[0]), bits)
    lowest = groups[0]
    size = min(len(groups), max(1, ACCUMULATORS // len(lowest)))
    if combine.is_extremum or isinstance(combine, RisingCombiner):
        length = len(groups) // size
        runs = [_reversed_bits(number, log2(size)) for number in range(size)]
        groups = [groups[run * length + n] for n in range(length) for run in runs]
    first, *others = [
        [register for group in groups[start : start + size] for register in group]
        for start in range(0, len(groups), size)
    ]
    running = [v.shuffle(value, first) for value in values]
    for chosen in others:
        if product is None:
            running = combine(running, [v.shuffle(value, chosen) for value in values])
        else:
            left, right = (v.shuffle(factor, chosen) for factor in product)
            running = [v.create(math.FmaOp, running[0].type, left, right, running[0])]
    kept = len(lowest)
    running = _fold_bits(running, list(range(log2(kept), log2(kept * size))), combine)
    if isinstance(combine, RisingCombiner) and bits:
        return combine.ended(running, v.shuffle(values[1], lowest))
    return running


def _reversed_bits(number: int, count: int) -> int:
    return sum((number >> bit & 1) << (count - 1 - bit) for bit in range(count))


@lowers(tt.ReduceOp)
def _reduce(ctx: Lowering, site: Site) -> Values:
    combine = Combiner(ctx, site.op, is_counted=site.is_counted)
    source = layout_of(site.operand_types[0])
    axis = axis_of(site.op)
    plan = reduction_of(site.op, source)
    choice = rising_choice(combine.block) if site.is_counted else None
    by_thread = combine if choice is None else RisingCombiner(ctx, site.op, choice)
    values = _fold_registers(site, list(plan.registers), by_thread)
    held = [basis for basis in source.bases("register") if not basis[axis]]
    if any(plan.kept):
        values = _scattered(ctx, values, plan, held, combine)
    else:
        values = _butterfly(ctx, values, plan.lanes, combine)
    if plan.exchange is not None:
        values = _gather_warps(ctx, site, values, plan.exchange)
        values = _fold_bits(values, list(range(plan.exchange.registers)), combine)
        values = _butterfly(ctx, values, plan.exchange.lanes, combine)
    if not is_tensor(site.result_type):
        return [v.extract(value, 0) for value in values]
    copies = [bit for bit, basis in enumerate(held) if not any(basis)]  # the result has none
    once = [r for r in range(1 << len(held)) if not any(r >> bit & 1 for bit in copies)]
    return [v.shuffle(value, once) for value in values]


def _scattered(
    ctx: Lowering, values: Values, plan: Reduction, held: list[Basis], combine: Combiner
) -> Values:
    """Combines lanes; of two each keeps half of the results, where the plan says which. `held` is
    what the bits of a register's number tell apart."""
    halved = [
        (lane, kept) for lane, kept in zip(plan.lanes, plan.kept, strict=True) if kept is not None
    ]
    for lane_bit, kept in halved:
        bit = held.index(kept)
        del held[bit]
        count = v.count_of(values[0])
        halves = [[r for r in range(count) if r >> bit & 1 == half] for half in (0, 1)]
        is_upper = _is_upper(ctx, 1 << lane_bit)
        own, others = Values(), Values()
        for value in values:
            low, high = (v.shuffle(value, half) for half in halves)
            sent = v.select(is_upper, low, high)
            own.append(v.select(is_upper, high, low))
            others.append(ctx.primitives.shuffle_lanes("bfly", sent, v.i32(1 << lane_bit)))
        values = _in_order(ctx, own, others, 1 << lane_bit, combine)
    return _butterfly(ctx, values, plan.lanes[len(halved) :], combine)


@lowers(ttg.SwapOp)
def _swap(ctx: Lowering, site: Site) -> Values:
    (value,) = site.operands
    plan = plan_reduction(layout_of(site.result_type), axis_of(site.op))
    for bit in plan.lanes:
        value = ctx.primitives.shuffle_lanes("bfly", value, v.i32(1 << bit))
    for bit in plan.registers:
        value = v.shuffle(value, [number ^ 1 << bit for number in range(v.count_of(value))])
    return [value]


def _butterfly(
    ctx: Lowering, values: Values, lane_bits: tuple[int, ...], combine: Combiner
) -> Values:
    """Combines lanes that differ in these bits; all of them have the result."""
    if (found := _over_warp(ctx, values, lane_bits, combine)) is not None:
        return [found]
    if combine.least_index is not None and len(lane_bits) > 1:
        return _butterfly_of_indices(ctx, values, lane_bits, combine)
    for bit in lane_bits:
        others = [ctx.primitives.shuffle_lanes("bfly", value, v.i32(1 << bit)) for value in values]
        values = _in_order(ctx, values, others, 1 << bit, combine)
    return values


_SIGN = -1 << 31


def _butterfly_of_indices(
    ctx: Lowering, values: Values, lane_bits: tuple[int, ...], combine: Combiner
) -> Values:
    """The best value of lanes first, then the least index of those that have it. An index is an i32
    without a sign: those of other lanes get one, and are greater then. Where all lanes have NaN,
    and numbers win, all of them do."""
    own, index = values
    best = own
    for bit in lane_bits:
        other = ctx.primitives.shuffle_lanes("bfly", best, v.i32(1 << bit))
        best, _ = combine([best, index], [other, index])
    if isinstance(v.element(own), ir.FloatType):
        is_other = arith.CmpFOp(arith.CmpFPredicate.UNE, own, best).result
        if combine.least_index is NaN.WINS:
            is_number = arith.CmpFOp(arith.CmpFPredicate.ORD, own, own).result
            is_other = v.binary(llvm.AndOp, is_other, is_number)
    else:
        is_other = v.compare("ne", own, best)
    sign = v.constant(_SIGN, index.type)
    index = v.select(is_other, v.binary(llvm.OrOp, index, sign), index)
    least = _by_one(ctx, "min.u32", index, lane_bits)
    if least is None:
        least = index
        for bit in lane_bits:
            other = ctx.primitives.shuffle_lanes("bfly", least, v.i32(1 << bit))
            least = v.binary(arith.MinUIOp, least, other)
    return [best, v.binary(llvm.AndOp, least, v.constant(~_SIGN, index.type))]


def _over_warp(
    ctx: Lowering, values: Values, lane_bits: tuple[int, ...], combine: Combiner
) -> Value | None:
    """The result of all lanes by one instruction; None where there is none."""
    is_one = combine.commutes and len(combine.ops) == 2
    kind = _OVER_WARP.get(combine.ops[0].name) if is_one else None
    if kind is None or v.element(values[0]) != v.integer(32):
        return None
    return _by_one(ctx, kind, values[0], lane_bits)


def _by_one(ctx: Lowering, kind: str, value: Value, lane_bits: tuple[int, ...]) -> Value | None:
    """What one instruction makes of i32 of all lanes of a warp; None where there is none."""
    if 1 << len(lane_bits) != ctx.chip.warp_size:
        return None
    return ctx.primitives.reduce_warp(kind, value)


def _in_order(
    ctx: Lowering, own: Values, others: Values, lane_bit: int, combine: Combiner
) -> Values:
    """Combines what two lanes have so that both get the same, whatever the function is."""
    if combine.commutes:
        return combine(own, others)
    is_upper = _is_upper(ctx, lane_bit)
    lower = [v.select(is_upper, b, a) for a, b in zip(own, others, strict=True)]
    upper = [v.select(is_upper, a, b) for a, b in zip(own, others, strict=True)]
    return combine(lower, upper)


def _is_upper(ctx: Lowering, lane_bit: int) -> Value:
    return v.compare("ne", v.binary(llvm.AndOp, ctx.threads.number, v.i32(lane_bit)), v.i32(0))


def _gather_warps(ctx: Lowering, site: Site, values: Values, partials: WarpExchange) -> Values:
    """Each warp's values in every warp's registers, in the lowest register bits."""
    sizes = _operand_sizes(site, values, partials)
    start = ctx.scratch(site)
    offsets = [start + sum(sizes[:number]) for number in range(len(sizes))]
    ways = [partials.plan(stored_bytes(v.element(value))) for value in values]
    return exchange(ctx, values, ways, partials.source, partials.target, offsets)


def _operand_sizes(site: Site, values: Values, partials: WarpExchange) -> list[int]:
    return [exchange_bytes(partials.plan(stored_bytes(v.element(x))), v.element(x)) for x in values]


# Scans


@lowers(tt.ScanOp)
def _scan(ctx: Lowering, site: Site) -> Values:
    """An inclusive scan: of a thread's run, of the lanes' totals, of the warps'.

    The layout (proton/layout/shapes.py, `scan`) has the axis in registers, then lanes, then warps.
    A reverse scan is a scan from the other end.
    """
    combine = Combiner(ctx, site.op)
    reverse = bool(site.op.attributes["reverse"].value)
    source = layout_of(site.operand_types[0])
    plan = plan_reduction(source, axis_of(site.op), ordered=True)
    values, totals = _scan_registers(site.operands, list(plan.registers), reverse, combine)
    known: tuple[Values, Value] | None = None  # what comes before, and whether anything does
    if plan.lanes:
        totals, known = _scan_lanes(ctx, totals, list(plan.lanes), reverse, combine)
    if plan.exchange is not None:
        last = _last_lane(ctx, totals, list(plan.lanes), reverse)
        gathered = _gather_warps(ctx, site, last, plan.exchange)
        before, has_before = _before_warp(ctx, gathered, list(plan.warps), reverse, combine)
        if known is None:
            known = before, has_before
        else:
            prefix, has_prefix = known
            both = combine(before, prefix)
            inner = _choose(has_prefix, both, before)
            prefix = _choose(has_before, inner, prefix)
            known = prefix, v.binary(llvm.OrOp, has_prefix, has_before)
    if known is None:
        return values
    prefix, has_prefix = known
    count = v.count_of(values[0]) // v.count_of(prefix[0])
    spread = _spread(prefix, source, list(plan.registers), count)
    return _choose(has_prefix, combine(spread, values), values)


def _choose(condition: Value, yes: Values, no: Values) -> Values:
    return [v.select(condition, a, b) for a, b in zip(yes, no, strict=True)]


def _group(registers: int, bits: list[int]) -> list[list[int]]:
    """Registers by their place along the axis, each with its neighbours off the axis in order."""
    others = [r for r in range(registers) if not any(r >> bit & 1 for bit in bits)]
    groups = []
    for place in range(1 << len(bits)):
        along = sum((place >> n & 1) << bit for n, bit in enumerate(bits))
        groups.append([r | along for r in others])
    return groups


def _scan_registers(
    values: Values, bits: list[int], reverse: bool, combine: Combiner
) -> tuple[Values, Values]:
    """(every register combined with those before it, the last of each run)"""
    registers = v.count_of(values[0])
    groups = _group(registers, bits)
    if reverse:
        groups.reverse()
    running = [v.shuffle(value, groups[0]) for value in values]
    steps = [running]
    for group in groups[1:]:
        running = combine(running, [v.shuffle(value, group) for value in values])
        steps.append(running)
    position = {r: n for n, r in enumerate(r for group in groups for r in group)}
    order = [position[r] for r in range(registers)]
    whole = [
        v.shuffle(v.concatenate([step[n] for step in steps]), order) for n in range(len(values))
    ]
    return whole, running


def _coordinate(ctx: Lowering, bits: list[int], shift: int, reverse: bool) -> Value:
    """How far along the axis this lane (or warp) is, counted from the end the scan starts at."""
    size = 1 << len(bits)
    bases = [0] * 10
    for number, bit in enumerate(bits):
        bases[bit + shift] = 1 << number
    place = ctx.threads.bits(tuple(bases))
    return v.binary(llvm.SubOp, v.i32(size - 1), place) if reverse else place


def _scan_lanes(
    ctx: Lowering, totals: Values, bits: list[int], reverse: bool, combine: Combiner
) -> tuple[Values, tuple[Values, Value]]:
    """(inclusive totals, (what comes before this lane, whether anything does))"""
    place = _coordinate(ctx, bits, 0, reverse)
    stride = 1 << bits[0]  # the bits of the axis are consecutive
    kind = "down" if reverse else "up"
    for number in range(len(bits)):
        distance = 1 << number
        others = [ctx.primitives.shuffle_lanes(kind, t, v.i32(distance * stride)) for t in totals]
        reaches = v.compare("uge", place, v.i32(distance))
        totals = _choose(reaches, combine(others, totals), totals)
    before = [ctx.primitives.shuffle_lanes(kind, t, v.i32(stride)) for t in totals]
    return totals, (before, v.compare("ne", place, v.i32(0)))


def _last_lane(ctx: Lowering, totals: Values, bits: list[int], reverse: bool) -> Values:
    """The total of all lanes of the axis, in each of them."""
    if not bits:
        return totals
    mask = sum(1 << bit for bit in bits)
    lane = v.binary(llvm.AndOp, ctx.threads.number, v.i32(ctx.threads.lanes - 1))
    if reverse:
        source = v.binary(llvm.AndOp, lane, v.i32(ctx.threads.lanes - 1 - mask))
    else:
        source = v.binary(llvm.OrOp, lane, v.i32(mask))
    return [ctx.primitives.shuffle_lanes("idx", total, source) for total in totals]


def _before_warp(
    ctx: Lowering, gathered: Values, bits: list[int], reverse: bool, combine: Combiner
) -> tuple[list[Value], Value]:
    """(what the warps before this one come to, whether there are any)"""
    place = _coordinate(ctx, bits, log2(ctx.threads.lanes), reverse)
    groups = _group(v.count_of(gathered[0]), list(range(len(bits))))
    if reverse:
        groups.reverse()
    running = [v.shuffle(value, groups[0]) for value in gathered]
    before = running
    for number, group in enumerate(groups[1:-1], 2):
        running = combine(running, [v.shuffle(value, group) for value in gathered])
        before = _choose(v.compare("uge", place, v.i32(number)), running, before)
    return before, v.compare("ne", place, v.i32(0))


def _spread(prefix: Values, source: LinearLayout, bits: list[int], count: int) -> Values:
    """What comes before a run, for every register of the run."""
    registers = count * v.count_of(prefix[0])
    position = {}
    for group in _group(registers, bits):
        for number, register in enumerate(group):
            position[register] = number
    picks = [position[r] for r in range(registers)]
    return [v.shuffle(value, picks) for value in prefix]
