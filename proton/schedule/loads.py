"""What a software pipeline is made of: the loads of a loop that may begin iterations early, what
they are computed from, and who takes their data.

Nothing here changes the IR.
"""

from collections.abc import Container, Iterable, Sequence
from dataclasses import dataclass

from proton.analysis.alias import UNKNOWN, Roots
from proton.analysis.axis_info import AxisInfos, access_elements
from proton.analysis.reloads import feeds_product
from proton.analysis.scratch import stored_bytes
from proton.analysis.tensor_maps import box_of_map, is_made_by_kernel
from proton.dialect import isa, tt, ttg, ttng
from proton.dialect.attributes import FLATTEN
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import is_zeros
from proton.dialect.mlir import Operation, Type, Value, ir, scf
from proton.dialect.regions import ForLoop, is_invariant
from proton.dialect.traits import Accesses, Pure, Writes, has
from proton.dialect.tt_memory import is_volatile
from proton.dialect.ttg import is_mem_desc, is_tensor, layout_of, mem_desc, mem_desc_parts
from proton.dialect.walk import all_ops, defining_op, ops_named, parent_of, users
from proton.layout import LinearLayout
from proton.layout.matrix_memory import transposing_layout
from proton.layout.named import shared_row_major
from proton.layout.tensor_map import Box, with_ones
from proton.layout.thread_memory import thread_memory

COPY_BYTES = 4  # at least, of one `cp.async`
_SQUARES = 1, 4  # bytes of elements of which threads carry squares of 4 x 4
TMA_LOAD, TMA_STORE = ttng.TMALoadOp, ttng.TMAStoreOp
LOADS = (tt.LoadOp, TMA_LOAD)
PRODUCTS = (ttng.WarpGroupDotOp, ttng.MmaSyncOp)


def loop_of_store(store: Operation) -> Operation | None:
    """The loop around a store by TMA that keeps its memory, so that the copy goes on beside the
    next iteration: one over the tiles of a persistent kernel, or one whose stores all are the same
    reduction, which may land in any order."""
    around = parent_of(store)
    if not isa(around, scf.ForOp):
        return None
    return around if FLATTEN in around.attributes or reduction_of(around) else None


def reduction_of(around: Operation) -> str:
    """The reduction that all stores by TMA in an op are; the empty string if they are not one."""
    stores = ops_named(around, TMA_STORE, ttng.AsyncTMAStoreOp)
    found = {str(ir.StringAttr(op.attributes["reduction"]).value) for op in stores}
    return found.pop() if len(found) == 1 and ttng.NO_REDUCTION not in found else ""


def is_innermost(loop: Operation) -> bool:
    return not any(isa(op, scf.ForOp, scf.WhileOp) for op in all_ops(loop))


@dataclass
class Load:
    """A load to be pipelined."""

    op: Operation

    @property
    def is_tma(self) -> bool:
        """True if TMA copies it, and not the threads."""
        return bool(isa(self.op, TMA_LOAD))

    @property
    def pointer(self) -> Value:
        """What it loads from: pointers, or a tensor map."""
        return self.op.operands[0]

    @property
    def inputs(self) -> list[Value]:
        """What has to be known ahead to begin it."""
        if self.is_tma:
            return list(self.op.operands)
        return [self.pointer] if self.mask is None else [self.pointer, self.mask]

    @property
    def mask(self) -> Value | None:
        if self.is_tma:
            return None
        segments = list(ir.DenseI32ArrayAttr(self.op.attributes["operandSegmentSizes"]))
        return self.op.operands[1] if segments[1] else None

    @property
    def other(self) -> Value | None:
        """What stands where the mask is false; None for zeros, which a copy leaves there."""
        if self.is_tma:
            return None
        segments = list(ir.DenseI32ArrayAttr(self.op.attributes["operandSegmentSizes"]))
        if not segments[2] or is_zeros(self.op.operands[segments[1] + 1]):
            return None
        return self.op.operands[segments[1] + 1]

    @property
    def alloc(self) -> Operation | None:
        """The `ttg.local_alloc` that takes the data as it is copied, and alone; None without."""
        value = self.op.results[0] if self.reshape is None else self.reshape.results[0]
        takers = users(value)
        if len(takers) != 1 or not isa(takers[0], ttg.LocalAllocOp) or self.other is not None:
            return None
        kept = mem_desc_parts(takers[0].results[0].type)[2]
        if self.is_tma:
            return takers[0] if with_ones(kept, self._box.block) == self._box.layout else None
        wanted = kept.bases("offset")
        own = layout_of(self.op.results[0].type).bases("register")
        return takers[0] if fast_axis(wanted) == fast_axis(own) else None

    @property
    def replaced(self) -> list[Operation]:
        """The ops that give way to the buffer beside the load."""
        ops = [] if self.alloc is None else [self.alloc, self.reshape]
        return [*(op for op in ops if op is not None), *self.conversions]

    @property
    def reshape(self) -> Operation | None:
        """The op that takes leading dimensions of one element from what TMA loads, and is alone, in
        whatever layout; None without. Memory lies the same with them and without."""
        takers = users(self.op.results[0])
        if len(takers) == 1 and isa(takers[0], ttg.ConvertLayoutOp):
            takers = users(takers[0].results[0])
        return takers[0] if self.is_tma and len(takers) == 1 and drops_ones(takers[0]) else None

    @property
    def conversions(self) -> list[Operation]:
        """The changes of layout that fall to those who read the data from shared memory."""
        if self.other is not None:
            return []
        return [user for user in users(self.op.results[0]) if isa(user, ttg.ConvertLayoutOp)]

    @property
    def memory(self) -> Type:
        """The type of one buffer: that of the product's operand, if it is one as it is."""
        shape, element = shape_of(self.op.results[0]), element_of(self.op.results[0])
        if self.is_tma:
            return mem_desc(shape, element, self._box.layout, is_mutable=True)
        layout = layout_of(self.op.results[0].type)
        if (alloc := self.alloc) is not None:
            kept = mem_desc_parts(alloc.results[0].type)[2]
            return mem_desc(shape, element, kept, is_mutable=True)
        fast = fast_axis(layout.bases("register"))
        order = (fast, *(a for a in reversed(range(len(shape))) if a != fast))
        chosen = None
        if len(shape) == 2:
            readers = [layout_of(op.results[0].type) for op in self.conversions]
            plain = mem_desc(shape, element, shared_row_major(shape, order))
            takers = users(self.op.results[0])
            readers += filter(None, (self.transposed(user, plain) for user in takers))
            by_rows = ((order[0], order[1]),)
            chosen = thread_memory(shape, stored_bytes(element), by_rows, (layout, *readers))
        return mem_desc(shape, element, chosen or shared_row_major(shape, order), is_mutable=True)

    def transposed(self, user: Operation, memory: Type) -> LinearLayout | None:
        """How a user reads data from memory to store it in rows of the other dimension, of elements
        that only threads can transpose; None where it does not."""
        if not isa(user, ttg.LocalAllocOp) or self.other is not None:
            return None
        type_ = self.op.results[0].type
        shape, element_bytes = tuple(type_.shape), stored_bytes(type_.element_type)
        if len(shape) != 2 or element_bytes not in _SQUARES:
            return None
        source, target = (
            fast_axis(mem_desc_parts(desc)[2].bases("offset"))
            for desc in (memory, user.results[0].type)
        )
        if source == target:
            return None
        return transposing_layout(shape, element_bytes, source, layout_of(type_).in_size("warp"))

    @property
    def _box(self) -> Box:
        box = box_of_map(self.pointer.type)
        assert box is not None, "as the pass chose it"
        return box


def drops_ones(op: Operation) -> bool:
    """True if an op takes leading dimensions of one element from a block."""
    if not isa(op, tt.ReshapeOp):
        return False
    shape, rest = shape_of(op.operands[0]), shape_of(op.results[0])
    return shape == (1,) * (len(shape) - len(rest)) + rest


def fast_axis(bases: Sequence[tuple[int, ...]]) -> int:
    """The dimension of the first of some bases that is along one."""
    first = next((basis for basis in bases if any(basis)), None)
    return 0 if first is None else next(axis for axis, value in enumerate(first) if value)


def unwritten(loop: Operation, roots: Roots) -> set[Operation]:
    """The loads of a loop's own block that take nothing of what the loop writes: they may run ahead
    of their iteration."""
    written = written_by(all_ops(loop), roots)
    if written is None:
        return set()
    loads = [op for view in ForLoop(loop).body.operations if isa(op := view.operation, *LOADS)]
    return {op for op in loads if is_apart(op, written, roots) and not is_volatile(op)}


def candidates(
    loop: Operation, infos: AxisInfos, may_run: set[Operation], is_asked: bool
) -> list[Load]:
    """The loads of those that may run ahead that are worth it: but those that others' addresses and
    masks are computed from, which run further ahead."""
    found = []
    for view in ForLoop(loop).body.operations:
        op = view.operation
        if op not in may_run or not (isa(op, TMA_LOAD) or is_tensor(op.operands[0].type)):
            continue
        if _is_copied(op, infos) and (is_asked or feeds_product(op, *PRODUCTS)):
            found.append(Load(op))
    slices = [(load, slice_of(loop, [load], may_run)) for load in found]
    ahead = {op for _, slice_ in slices if slice_ is not None for op in slice_.ops}
    return [load for load, slice_ in slices if slice_ is not None and load.op not in ahead]


def written_by(ops: Iterable[Operation], roots: Roots) -> set[int] | None:
    """The arguments that ops write through; None where one of them, a call or a barrier of the
    author's, may order more than what it names."""
    written: set[int] = set()
    for op in ops:
        is_inside = op.name.startswith(("scf.", "ttng.")) and not has(op, Accesses)
        if not has(op, Writes) or is_inside:
            continue
        if not has(op, Accesses):
            return None
        written |= roots.of(op.operands[0])
    return written


def is_apart(load: Operation, written: set[int], roots: Roots) -> bool:
    """True if a load takes nothing of what is written; TMA reads only what the kernel does not
    write (tensor_descriptor_to_tma.py)."""
    if isa(load, TMA_LOAD) or not written:
        return True
    read = roots.of(load.operands[0])
    return UNKNOWN not in written | read and not written & read


def _is_copied(op: Operation, infos: AxisInfos) -> bool:
    """True if TMA does it, or `cp.async` can: 4 bytes at least lie side by side."""
    if isa(op, TMA_LOAD):
        return not all(is_invariant(operand, parent_of(op)) for operand in op.operands)
    if is_invariant(op.operands[0], parent_of(op)):
        return False
    element = element_of(op.results[0])
    if not isinstance(element, ir.IntegerType | ir.FloatType) or element.width < 8:
        return False
    return access_elements(op, infos) * stored_bytes(element) >= COPY_BYTES


# What they need


@dataclass
class Slice:
    """What the addresses and masks of loads are computed from: ops of the body in order, and the
    numbers of the values that the loop carries for them. `indices` are loads among the ops that
    need no other one: indices of what is gathered."""

    ops: list[Operation]
    carried: list[int]
    indices: list[Operation]

    @property
    def loads(self) -> list[Operation]:
        """Those among the ops."""
        return [op for op in self.ops if isa(op, tt.LoadOp)]

    def erase_unused_loads(self) -> None:
        """Erases the loads that only copies take, which have their own, and what only those took:
        the canonicalizer leaves loads alone."""
        for op in reversed(self.ops if self.loads else []):
            if not any(list(result.uses) for result in op.results):
                op.erase()

    def needed(self, values: Iterable[Value], known: Iterable[Operation] = ()) -> list[Operation]:
        """Of the ops those that values of this iteration are computed from; not behind known
        ones."""
        found: set[Operation] = set()
        work = list(values)
        while work:
            op = defining_op(work.pop())
            if op is not None and op in self.ops and op not in found and op not in known:
                found.add(op)
                work += _inputs(op)
        return [op for op in self.ops if op in found]


def slice_of(
    loop: Operation, loads: Iterable[Load], may_run: Container[Operation] = ()
) -> Slice | None:
    """None where it cannot be computed ahead: products, or whatever has an effect, take part, or
    loads but those that may run ahead."""
    view = ForLoop(loop)
    arguments, yielded = view.iter_args, view.yielded
    work = [value for load in loads for value in load.inputs]
    needed: set[Operation] = set()
    carried: set[int] = set()
    while work:
        value = work.pop()
        op = defining_op(value)
        if op is None:
            if value in arguments and arguments.index(value) not in carried:
                carried.add(arguments.index(value))
                work.append(yielded[arguments.index(value)])
            continue
        if op in needed or is_invariant(value, loop):
            continue
        if op.block != view.body:
            return None
        if not (_is_pure(op) or (isa(op, tt.LoadOp) and op in may_run)):
            return None
        needed.add(op)
        work += _inputs(op)
    ops = [o.operation for o in view.body.operations if o.operation in needed]
    found = Slice(ops, sorted(carried), [])
    reads = found.loads
    found.indices = [op for op in reads if not set(reads) & set(found.needed(op.operands))]
    return found


def _is_pure(op: Operation) -> bool:
    """True of what may be computed for another iteration: also of a branch of such ops, as where
    one loop goes over the tiles of a persistent kernel and each new one has a place. A tensor map
    is made over the one before: copies under way would take the wrong one."""
    if isa(op, scf.IfOp):
        return all(isa(inner, scf.YieldOp) or _is_pure(inner) for inner in all_ops(op))
    return has(op, Pure) and not isa(op, *PRODUCTS) and not is_made_by_kernel(op)


def _inputs(op: Operation) -> list[Value]:
    """What an op takes, with what its regions take from outside."""
    inner = all_ops(op) if len(op.regions) else []
    return [*op.operands, *(v for each in inner for v in each.operands if is_invariant(v, op))]


@dataclass
class Tiles:
    """The loop around, over tiles; those of its ops that say what a tile loads; and those of their
    results that the loads take."""

    loop: Operation
    ops: list[Operation]
    live: list[Value]


def tiles_of(loop: Operation, loads: list[Load], roots: Roots) -> Tiles | None:
    """The loop around that asks to be flattened, where each tile has as many iterations, what the
    loads of another tile need can be computed, no tile loads what one before it has written, and no
    other loop in it loads: buffers of both would lie beside each other."""
    outer, inner = loop.parent, slice_of(loop, loads)
    if not isa(outer, scf.ForOp) or FLATTEN not in outer.attributes:
        return None
    others = (op for op in ops_named(outer, scf.ForOp, scf.WhileOp) if op != loop)
    if inner is None or inner.carried or any(ops_named(other, *LOADS) for other in others):
        return None
    written = set() if all(load.is_tma for load in loads) else written_by(all_ops(outer), roots)
    if written is None or not all(is_apart(load.op, written, roots) for load in loads):
        return None
    if not all(is_invariant(bound, outer.operation) for bound in ForLoop(loop).bounds):
        return None
    view = ForLoop(outer.operation)
    taken = [value for load in loads for value in load.inputs]
    taken += [value for op in inner.ops for value in _inputs(op)]
    live = [v for v in dict.fromkeys(taken) if _is_of(v, view.op) and not _is_of(v, loop)]
    work, needed = list(live), set[Operation]()
    while work:
        value = work.pop()
        op = defining_op(value)
        if op is None:
            if value != view.induction_var and value.owner == view.body:
                return None
            continue
        if op in needed or not _is_of(value, view.op):
            continue
        if op.block != view.body or not has(op, Pure) or len(op.regions):
            return None
        if is_made_by_kernel(op):
            return None
        needed.add(op)
        work += op.operands
    ops = [o.operation for o in view.body.operations if o.operation in needed]
    return Tiles(view.op, ops, [value for value in live if value != view.induction_var])


def _is_of(value: Value, loop: Operation) -> bool:
    """True if a value is made in a loop."""
    return not is_invariant(value, loop)


def consumer_of(op: Operation, order: dict[Operation, int]) -> Operation:
    """The first op that takes a load's data, behind those that only say where it lies."""
    found = []
    for use in op.results[0].uses:
        user = use.owner.operation
        while user not in order:
            user = parent_of(user)
        found.append(consumer_of(user, order) if isa(user, ttg.MemDescTransOp) else user)
    return min(found, key=lambda user: order[user])


# What else takes part


def is_live_in(alloc: Operation, loop: Operation, function: Operation) -> bool:
    """True if a loop has to leave room for a memory: it is made there, or used there or later."""
    position = {op: number for number, op in enumerate(all_ops(function))}
    start, end = position[loop], position[all_ops(loop)[-1]]
    if position[alloc] > start:
        return position[alloc] <= end
    uses, work = [], [alloc.results[0]]
    while work:
        for use in work.pop().uses:
            user = use.owner.operation
            uses.append(position[user])
            work += [result for result in user.results if is_mem_desc(result.type)]
    return any(place > start for place in uses)
