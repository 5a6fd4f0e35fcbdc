"""How many warps a program has, where a launch does not say.

Dots have as many as keep the accumulators that are alive at once in registers, MOST_ACCUMULATED to
a thread, and no more than there are instructions for in the smallest one. What is combined along a
block goes from lane to lane, and from warp to warp through shared memory, and each warp computes
what comes of it: few warps with more elements each take less time, until registers are scarce. That
is by the size of the block; of a large one with several sums, each of several warps', by what is
kept meanwhile, as rows are that their sums divide: where 8 rows of 4096 are only summed up, with 16
warps it takes 1.8 times as long as with four. A block that no access takes, made of a row and a
column, is not kept: a thread has MOST_ELEMENTS of it before four warps are too few. Below four they
leave schedulers of an SM without work where programs are few and long: with two, a top-k of 1,024
took 2.6 times as long (`corpus.py --libraries sglang --against` 463d344c, H200, a2ea3a6f). A
program without tensors has one. `benchmarks/gpu_chosen.py` measured the limits.
"""

from collections import defaultdict
from math import prod

from proton.base.targets import DEFAULT_WARPS, WARP_SIZE
from proton.dialect import isa, tt
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Module, Operation, OpView, Value, func, ir, scf
from proton.dialect.regions import innermost_loop
from proton.dialect.traits import Accesses, Multiplies, has
from proton.dialect.tt import is_pointer_like
from proton.dialect.ttg import is_tensor
from proton.dialect.walk import all_ops, defining_op, parent_of, users
from proton.layout.tensor_cores import MMA_COLUMNS, MMA_ROWS

MOST_ACCUMULATED = 160  # elements of accumulators
MOST_ELEMENTS = 128  # of a block, to a thread
MOST_OF_FEW = 64  # the same, where there are less than four warps for dots that have no more
# The elements of a block that is combined, and the warps for it; more have MOST_OF_COMBINED.
OF_COMBINED, MOST_OF_COMBINED = ((256, 2), (4096, 4), (16384, 8)), 16
# Of more elements than the first, rows of more than the second are several warps'.
FEW_COMBINED, MOST_OF_WARP = 8192, 512
MOST_WARPS, MOST_OF_DOTS = 32, 8  # of 16 a thread has too few registers for an instruction
# Less than four warps multiply numbers of so many bits, beside exchanges of so many elements: for
# fp32, or beside a sort of 1,024, one warp has 2.5 times the instructions of each of four.
MOST_BITS, MOST_EXCHANGED = 16, 512
COMBINES = tt.ReduceOp, tt.ScanOp
LOADS = tt.LoadOp, tt.DescriptorLoadOp
EXCHANGES = *COMBINES, tt.GatherOp, tt.HistogramOp
# They look at memory, or may do so.
LOOKS: tuple[type[OpView], ...] = (tt.AtomicCASOp, tt.AtomicRMWOp, func.CallOp, *tt.ASSEMBLY)


def chosen_warps(module: Module) -> int:
    """The number of warps for a module of the front end."""
    ops = all_ops(module)
    if any(_waits(op) for op in ops):
        return DEFAULT_WARPS  # programs that wait for others have to fit beside each other
    sizes = [_size(value) for op in ops for value in op.results if is_tensor(value.type)]
    if not sizes:
        return 1
    largest, dots = max(sizes), [op for op in ops if has(op, Multiplies)]
    if not dots and _combines(ops):
        crosses = any(_crosses_warps(op) for op in ops)
        size = _kept(ops) if crosses else largest
        found = next((warps for most, warps in OF_COMBINED if size <= most), MOST_OF_COMBINED)
        if not crosses and largest > _accessed(ops):
            return min(found, max(DEFAULT_WARPS, largest // (MOST_ELEMENTS * WARP_SIZE)))
        return max(found, DEFAULT_WARPS) if crosses else found
    warps, accumulated = DEFAULT_WARPS, max(_accumulated(dots).values(), default=0)
    least = min(map(_instructions, dots), default=warps)
    if any(_exchanges_much(op) for op in ops):
        least = warps
    while warps > least and 2 * largest <= MOST_OF_FEW * WARP_SIZE * warps:
        warps //= 2
    while warps < (MOST_OF_DOTS if dots else MOST_WARPS) and (
        accumulated > MOST_ACCUMULATED * WARP_SIZE * warps
        or largest > MOST_ELEMENTS * WARP_SIZE * warps
    ):
        warps *= 2
    return warps


def _instructions(dot: Operation) -> int:
    """How many make a dot's result; as many as there may be warps where one does not multiply two
    numbers as they are, of 16 bits at most."""
    shape, left = shape_of(dot.results[0]), element_of(dot.operands[0])
    is_small = any(n < least for n, least in zip(shape[-2:], (MMA_ROWS, MMA_COLUMNS), strict=True))
    if is_small or isa(dot, tt.DotScaledOp) or left.width > MOST_BITS:
        return MOST_WARPS
    return prod(shape) // (MMA_ROWS * MMA_COLUMNS)


def _exchanges_much(op: Operation) -> bool:
    """True if threads exchange so much that few of them take long."""
    return isa(op, *EXCHANGES) and max(map(_size, op.operands)) > MOST_EXCHANGED


def _waits(op: Operation) -> bool:
    """True of a loop that may go on until memory has what it waits for."""
    return isa(op, scf.WhileOp) and any(
        isa(inner, *LOOKS) or tt.is_volatile(inner) for inner in all_ops(op)
    )


def _combines(ops: list[Operation]) -> bool:
    """True if elements are combined where blocks are loaded: in innermost loops, if any load."""
    loads = [op for op in ops if isa(op, *LOADS)]
    loops = {innermost_loop(op) for op in loads if is_tensor(op.results[0].type)}
    inner = loops - {None} or {None}
    return any(isa(op, *COMBINES) and innermost_loop(op) in inner for op in ops)


def _crosses_warps(op: Operation) -> bool:
    """True of an op that combines much, to many results of which each is several warps': along long
    rows, or along columns of short ones."""
    if not isa(op, *COMBINES):
        return False
    *rows, last = shape_of(op.operands[0])
    is_last = ir.IntegerAttr(op.attributes["axis"]).value == len(rows)
    is_large = prod(rows) * last > FEW_COMBINED
    return is_large and prod(rows) > 1 and is_last == (last > MOST_OF_WARP)


def _accessed(ops: list[Operation]) -> int:
    """The elements of the largest block that an access takes."""
    blocks = [op.operands[0] for op in ops if has(op, Accesses) and is_tensor(op.operands[0].type)]
    blocks += [op.results[0] for op in ops if isa(op, tt.DescriptorLoadOp)]
    return max(map(_size, blocks), default=0)


def _kept(ops: list[Operation]) -> int:
    """The elements of the largest block, but of pointers, that is needed behind an op that combines
    elements: it comes from memory, or a loop around that op carries it."""
    places = {op: place for place, op in enumerate(ops)}
    ends = dict(places)
    for op in reversed(ops):
        if (parent := op.parent) in ends:
            ends[parent] = max(ends[parent], ends[op])
    combining = [places[op] for op in ops if isa(op, *COMBINES)]

    def last_use(value: Value, op: Operation) -> int:
        last = 0
        for user in users(value):
            place = places[user]
            while user.block != op.block:
                user = parent_of(user)
                place = ends[user]
            last = max(last, place)
        return last

    kept, read = 0, set[Value]()
    for op in ops:
        blocks = [block for region in op.regions for block in region.blocks]
        needed = {value: ends[op] for block in blocks for value in block.arguments}
        if isa(op, *LOADS) or not read.isdisjoint(op.operands):
            read.update(op.results)
            needed |= {value: last_use(value, op) for value in op.results}
        for value, last in needed.items():
            is_kept = any(places[op] <= place < last for place in combining)
            if is_kept and is_tensor(value.type) and not is_pointer_like(value.type):
                kept = max(kept, _size(value))
    return kept


def _accumulated(dots: list[Operation]) -> dict[object, int]:
    """The elements that the dots of each loop, or of what is in none, accumulate. Dots that add to
    each other have one accumulator."""
    found: dict[object, int] = defaultdict(int)
    for dot in dots:
        before = defining_op(dot.operands[2])
        if before is None or not has(before, Multiplies):
            found[innermost_loop(dot)] += _size(dot.results[0])
    return found


def _size(value: Value) -> int:
    return prod(shape_of(value))
