"""Software pipelines: a loop's loads begin iterations before their data is used.

The loads of a loop that feed tensor cores (all loads, where `tl.range(num_stages=)` asks for it)
become copies to shared memory that go on by themselves. With `num_stages` = S there are S buffers,
and the copies of iteration i + S - 1 begin in iteration i:

    prologue   copy 0 | copy 1 | ... | copy S - 2
    loop       wait for copy i,  use buffer i mod S,  begin copy i + S - 1
    epilogue   wait for what is under way, which is zeros beyond the end

What the copies need (addresses, masks) is computed twice: for the iteration that is being worked
on, where anything else asks for it, and for the one whose copies begin. Beyond the loop's end
copies are masked off. A product of warp groups that nothing but the next iteration asks for stays
in flight, too: it is waited for when the next one has been issued.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any, ClassVar

from proton.analysis.alias import UNKNOWN, Roots
from proton.analysis.axis_info import AxisInfos, access_elements
from proton.analysis.scratch import desc_bytes, stored_bytes
from proton.base.targets import GPUTarget
from proton.dialect.attributes import NUM_STAGES
from proton.dialect.builtin import i32_attr
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Operation, Value, arith, ir
from proton.dialect.regions import ForLoop, end_of, is_invariant, with_carried
from proton.dialect.traits import Accesses, Combines, Pure, Writes, has
from proton.dialect.ttg import is_mem_desc, is_tensor, layout_of, mem_desc, mem_desc_parts
from proton.dialect.ttg_memory import (
    AsyncCommitGroupOp,
    AsyncCopyOp,
    AsyncTokenType,
    AsyncWaitOp,
    LocalLoadOp,
    LocalReserveOp,
    MemDescIndexOp,
    MemDescTransOp,
)
from proton.dialect.ttng import WarpGroupDotWaitOp
from proton.dialect.walk import all_ops, before, defining_op, functions, ops_named
from proton.layout.matrix_memory import matrix_layout
from proton.layout.named import shared_row_major
from proton.passes import Pass, register

COPY_BYTES = 4  # at least, of one `cp.async`
PRODUCTS = ("ttng.warp_group_dot", "ttng.mma_sync")
_SIGNED_LESS, _UNSIGNED_GREATER, _EQUAL = 2, 8, 0  # arith.cmpi's predicates


@register
@dataclass(frozen=True)
class PipelineLoops(Pass):
    """Pipelines innermost loops in `num_stages` stages, or in as many as `tt.num_stages` says, on a
    GPU of compute capability `arch` / 10; in fewer where its shared memory has no room."""

    name: ClassVar[str] = "tritongpu-pipeline"

    num_stages: int = 3
    arch: int = 90

    def run(self, module: Any) -> None:
        limit = GPUTarget("cuda", self.arch).facts.shared_bytes
        for function in functions(module):
            loops = [op for op in ops_named(function, "scf.for") if _is_innermost(op)]
            if not loops:
                continue
            infos, roots = AxisInfos(module), Roots(function)
            for loop in loops:
                stages, is_asked = self._stages(loop)
                loads = _candidates(loop, infos, roots, is_asked) if stages > 1 else []
                if loads:
                    _pipeline(function, loop, loads, stages, limit)

    def _stages(self, loop: Any) -> tuple[int, bool]:
        """(stages, whether the loop itself asked for them)."""
        if NUM_STAGES in loop.attributes:
            return int(ir.IntegerAttr(loop.attributes[NUM_STAGES]).value), True
        return self.num_stages, False


def _is_innermost(loop: Any) -> bool:
    return not any(op.name in ("scf.for", "scf.while") for op in all_ops(loop))


# Which loads


@dataclass
class _Load:
    """A load to be pipelined."""

    op: Any
    consumer: Any = None  # the first op of the body that takes its data
    buffers: Any = None  # the memory of all stages

    @property
    def pointer(self) -> Any:
        return self.op.operands[0]

    @property
    def mask(self) -> Any:
        segments = list(ir.DenseI32ArrayAttr(self.op.attributes["operandSegmentSizes"]))
        return self.op.operands[1] if segments[1] else None

    @property
    def alloc(self) -> Any:
        """The `ttg.local_alloc` that takes the data as it is copied, and alone; None without."""
        users = [use.owner.operation for use in self.op.results[0].uses]
        if len(users) != 1 or users[0].name != "ttg.local_alloc":
            return None
        wanted = mem_desc_parts(users[0].results[0].type)[2].bases("offset")
        own = layout_of(self.op.results[0].type).bases("register")
        return users[0] if _fast_axis(wanted) == _fast_axis(own) else None

    @property
    def memory(self) -> Any:
        """The type of one buffer: that of the product's operand, if it is one as it is."""
        shape, element = shape_of(self.op.results[0]), element_of(self.op.results[0])
        layout = layout_of(self.op.results[0].type)
        if (alloc := self.alloc) is not None:
            kept = mem_desc_parts(alloc.results[0].type)[2]
            return mem_desc(shape, element, kept, is_mutable=True)
        fast = _fast_axis(layout.bases("register"))
        order = (fast, *(a for a in reversed(range(len(shape))) if a != fast))
        chosen = None
        if len(shape) == 2:
            chosen = matrix_layout(shape, stored_bytes(element), (order[0], order[1]))
        return mem_desc(shape, element, chosen or shared_row_major(shape, order), is_mutable=True)


def _fast_axis(bases: Any) -> int:
    first = next((basis for basis in bases if any(basis)), None)
    return 0 if first is None else next(axis for axis, value in enumerate(first) if value)


def _candidates(loop: Any, infos: AxisInfos, roots: Roots, is_asked: bool) -> list[_Load]:
    """The loads of a loop's own block that may begin early, and are worth it."""
    inner = all_ops(loop)
    written: set[int] = set()
    for op in inner:
        if not has(op, Writes) or op.name.startswith(("scf.", "ttng.")):
            continue
        if not has(op, Accesses):
            return []  # a call, a barrier of the author's: who knows what it orders
        written |= roots.of(op.operands[0])
    found = []
    for view in ForLoop(loop).body.operations:
        op = view.operation
        if op.name != "tt.load" or not is_tensor(op.operands[0].type):
            continue
        read = roots.of(op.operands[0])
        is_safe = not written or (UNKNOWN not in written | read and not written & read)
        if is_safe and _is_copied(op, infos) and (is_asked or _feeds_product(op)):
            found.append(_Load(op))
    return [load for load in found if _slice(loop, [load]) is not None]


def _is_copied(op: Any, infos: AxisInfos) -> bool:
    """Whether `cp.async` can do it: 4 bytes at least lie side by side, and what is masked off is
    zero, or anything."""
    if op.attributes["volatile"].value or is_invariant(op.operands[0], op.parent):
        return False
    element = element_of(op.results[0])
    if not isinstance(element, ir.IntegerType | ir.FloatType) or element.width < 8:
        return False
    segments = list(ir.DenseI32ArrayAttr(op.attributes["operandSegmentSizes"]))
    if segments[2] and not _is_zero(op.operands[segments[1] + 1]):
        return False
    return access_elements(op, infos) * stored_bytes(element) >= COPY_BYTES


def _is_zero(value: Any) -> bool:
    op = defining_op(value)
    if op is None or op.name != "arith.constant":
        return False
    attribute = op.attributes["value"]
    is_splat = isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat
    return is_splat and attribute.get_splat_value().value == 0


def _feeds_product(op: Any) -> bool:
    """Whether tensor cores multiply what is loaded, or what is computed from it in the body."""
    seen, work = set(), [op]
    while work:
        for result in work.pop().results:
            for use in result.uses:
                user = use.owner.operation
                if user.name in PRODUCTS:
                    if use.operand_number < 2:
                        return True
                elif user.block == op.block and user not in seen and has(user, Pure):
                    seen.add(user)
                    work.append(user)
    return False


# What they need


@dataclass
class _Slice:
    """What the addresses and masks of loads are computed from: ops of the body in order, and the
    numbers of the values that the loop carries for them."""

    ops: list[Any]
    carried: list[int]


def _slice(loop: Any, loads: Iterable[_Load]) -> _Slice | None:
    """None where it cannot be computed ahead: products, or whatever has an effect, take part."""
    view = ForLoop(loop)
    arguments, yielded = view.iter_args, view.yielded
    work = [v for load in loads for v in (load.pointer, load.mask) if v is not None]
    needed: set[Any] = set()
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
        if op.block != view.body or op.name in PRODUCTS or len(op.regions):
            return None
        if not has(op, Pure):
            return None
        needed.add(op)
        work += op.operands
    ops = [o.operation for o in view.body.operations if o.operation in needed]
    return _Slice(ops, sorted(carried))


# The new loop


def _consumer(op: Any, order: dict[Any, int]) -> Any:
    """The first op that takes a load's data, behind those that only say where it lies."""
    found = []
    for use in op.results[0].uses:
        user = use.owner.operation
        while user not in order:
            user = user.parent
        found.append(_consumer(user, order) if user.name == "ttg.memdesc_trans" else user)
    return min(found, key=lambda user: order[user])


def _pipeline(function: Any, loop: Any, loads: list[_Load], stages: int, limit: int) -> None:
    loads = [load for load in loads if list(load.op.results[0].uses)]
    each = sum(desc_bytes(load.memory) for load in loads)
    replaced = [load.alloc for load in loads if load.alloc]
    others = sum(
        desc_bytes(op.results[0].type)
        for op in ops_named(function, "ttg.local_alloc", "ttg.local_reserve")
        if op not in replaced and _is_live_in(op, loop, function)
    )
    stages = min(stages, (limit - others) // each) if each else 0
    if stages > 1:
        _Pipeline(loop, loads, stages).run()


def _is_live_in(alloc: Operation, loop: Operation, function: Operation) -> bool:
    """Whether a loop has to leave room for a memory: it is made there, or used there or later."""
    position = {op: number for number, op in enumerate(all_ops(function))}
    inner = [op for op in all_ops(loop) if op in position]
    start, end = position[loop], max(position[op] for op in inner)
    if position[alloc] > start:
        return position[alloc] <= end
    uses, work = [], [alloc.results[0]]
    while work:
        for use in work.pop().uses:
            user = use.owner.operation
            uses.append(position[user])
            work += [result for result in user.results if is_mem_desc(result.type)]
    return any(place > start for place in uses)


class _Pipeline:
    """One loop: `distance` iterations lie between the beginning of a copy and its use."""

    def __init__(self, loop: Any, loads: list[_Load], stages: int) -> None:
        self.loop, self.loads, self.stages = loop, loads, stages
        self.distance = stages - 1
        order = {view.operation: n for n, view in enumerate(ForLoop(loop).body.operations)}
        for load in loads:
            load.consumer = _consumer(load.alloc or load.op, order)
        self.consumer = min((load.consumer for load in loads), key=lambda op: order[op])
        slice_ = _slice(loop, loads)
        assert slice_ is not None, "asked of each load"
        self.slice: _Slice = slice_

    def run(self) -> None:
        with before(self.loop):
            for load in self.loads:
                shape, element, layout = mem_desc_parts(load.memory)
                with load.op.location:
                    load.buffers = LocalReserveOp(
                        mem_desc((self.stages, *shape), element, layout, is_mutable=True)
                    ).result
            tokens, ahead = self._prologue()
            indices = [_i32(self.distance), _i32(0)]
        flying = _flying(self.loop, self.loads)
        initial = [*ahead, *tokens, *indices]
        old = len(self.loop.results)
        self.loop = with_carried(self.loop, initial)
        self._body(old, flying)
        self._epilogue(old, flying)

    # Copies

    def _copies(self, mapping: dict[Any, Any], index: Any, is_inside: Any) -> Value:
        """Begins the copies of an iteration whose values are in `mapping`; their group's token."""
        for op in self.slice.ops:
            clone = op.operation.clone()
            for number, operand in enumerate(op.operands):
                clone.operation.operands[number] = mapping.get(operand, operand)
            for result, value in zip(op.results, clone.operation.results, strict=True):
                mapping[result] = value
        copies = [self._copy(load, mapping, index, is_inside) for load in self.loads]
        with self.loads[-1].op.location:
            return AsyncCommitGroupOp(copies, _token()).group

    def _copy(self, load: _Load, mapping: dict[Any, Any], index: Any, is_inside: Any) -> Any:
        with load.op.location:
            pointer = mapping.get(load.pointer, load.pointer)
            i1 = ir.IntegerType.get_signless(1)
            type_ = ir.RankedTensorType.get(pointer.type.shape, i1, encoding=pointer.type.encoding)
            mask = ir.Operation.create("tt.splat", results=[type_], operands=[is_inside]).result
            if load.mask is not None:
                mask = arith.AndIOp(mapping.get(load.mask, load.mask), mask).result
            target = MemDescIndexOp(load.buffers, index, load.memory).result
            return AsyncCopyOp(pointer, target, _token(), mask=mask).token

    def _prologue(self) -> tuple[list[Value], list[Value]]:
        """(the tokens of the first iterations, carried values ahead of them)."""
        view = ForLoop(self.loop)
        lower, upper, step = view.bounds
        arguments, yielded = view.iter_args, view.yielded
        state = [view.init_args[number] for number in self.slice.carried]
        runs = arith.CmpIOp(_SIGNED_LESS, lower, upper).result
        left = arith.SubIOp(upper, lower).result
        tokens: list[Value] = []
        variable, passed = lower, None
        for number in range(self.distance):
            is_inside = runs
            if passed is not None:
                more = arith.CmpIOp(_UNSIGNED_GREATER, left, passed).result
                is_inside = arith.AndIOp(runs, more).result
            mapping = {view.induction_var: variable}
            mapping |= {arguments[n]: v for n, v in zip(self.slice.carried, state, strict=True)}
            tokens.append(self._copies(mapping, _i32(number), is_inside))
            state = [mapping.get(yielded[n], yielded[n]) for n in self.slice.carried]
            variable = arith.AddIOp(variable, step).result
            passed = step if passed is None else arith.AddIOp(passed, step).result
        return tokens, state

    def _body(self, old: int, flying: list[Any]) -> None:
        view = ForLoop(self.loop)
        arguments = view.iter_args
        original, extra = arguments[:old], arguments[old:]
        count = len(self.slice.carried)
        ahead, tokens, (write, read) = extra[:count], extra[count:-2], extra[-2:]
        end = end_of(view.body)
        with ir.InsertionPoint(self.consumer), self.loads[-1].op.location:
            AsyncWaitOp(tokens[0], i32_attr(self.distance - 1))
        with self._where_copies_begin(end, bool(flying)), self.loop.location:
            is_inside, variable = self._ahead(view)
            mapping = {view.induction_var: variable}
            mapping |= {
                original[n]: value for n, value in zip(self.slice.carried, ahead, strict=True)
            }
            begun = self._copies(mapping, write, is_inside)
        for load in self.loads:
            with before(load.consumer):
                self._use(load, read)
        with before(end):
            following = [mapping.get(v, v) for v in (end.operands[n] for n in self.slice.carried)]
            indices = [self._next(write), self._next(read)]
        for number, value in enumerate([*following, *tokens[1:], begun, *indices]):
            end.operands[old + number] = value
        _drop_unused(self.loop, old)

    def _where_copies_begin(self, end: Operation, is_flying: bool) -> Any:
        """Behind the last read of the buffer that is written: that was in the iteration before,
        but for products in flight, which end in this one. A product of warp groups is issued
        first, and goes on meanwhile."""
        if is_flying:
            return ir.InsertionPoint(end)
        if self.consumer.name == "ttng.warp_group_dot":
            return ir.InsertionPoint.after(self.consumer)
        return ir.InsertionPoint(self.consumer)

    def _ahead(self, view: ForLoop) -> tuple[Any, Any]:
        """(whether the iteration whose copies begin is one, its variable)."""
        _, upper, step = view.bounds
        far = arith.MulIOp(step, arith.ConstantOp(step.type, self.distance).result).result
        left = arith.SubIOp(upper, view.induction_var).result
        is_inside = arith.CmpIOp(_UNSIGNED_GREATER, left, far).result
        return is_inside, arith.AddIOp(view.induction_var, far).result

    def _next(self, index: Any) -> Any:
        """The index of the next buffer, around."""
        more = arith.AddIOp(index, _i32(1)).result
        is_end = arith.CmpIOp(_EQUAL, more, _i32(self.stages)).result
        return arith.SelectOp(is_end, _i32(0), more).result

    # Uses

    def _use(self, load: _Load, index: Any) -> None:
        """Reads the buffer where the load's data was taken, and erases the load."""
        with load.op.location:
            memory = MemDescIndexOp(load.buffers, index, load.memory).result
            value = load.op.results[0]
            if (alloc := load.alloc) is not None:
                _replace_memory(alloc.results[0], memory)
                alloc.erase()
            for use in list(value.uses):
                user = use.owner.operation
                if user.name == "ttg.convert_layout":
                    read = LocalLoadOp(memory, user.results[0].type).result
                    user.results[0].replace_all_uses_with(read)
                    user.erase()
            if list(value.uses):
                value.replace_all_uses_with(LocalLoadOp(memory, value.type).result)
        load.op.erase()

    def _epilogue(self, old: int, flying: list[Any]) -> None:
        with ir.InsertionPoint.after(self.loop), self.loop.location:
            last = old + len(self.slice.carried) + self.distance - 1
            AsyncWaitOp(self.loop.results[last], i32_attr(0))
        for wait in flying:
            wait.attributes["pendings"] = i32_attr(1)
            (use,) = wait.results[0].uses
            result = self.loop.results[use.operand_number]
            uses = list(result.uses)
            with ir.InsertionPoint.after(self.loop), wait.location:
                landed = WarpGroupDotWaitOp(result, i32_attr(0), result.type).result
            for outer in uses:
                outer.owner.operation.operands[outer.operand_number] = landed


def _replace_memory(known: Any, memory: Any) -> None:
    """Puts one memory in the place of another of the same layout, and its views."""
    for use in list(known.uses):
        user = use.owner.operation
        if user.name == "ttg.memdesc_trans":
            with ir.InsertionPoint(user), user.location:
                _replace_memory(user.results[0], MemDescTransOp.of(memory))
            user.erase()
        else:
            user.operands[use.operand_number] = memory


def _flying(loop: Any, loads: list[_Load]) -> list[Any]:
    """The waits for products that only the next iteration takes, as its sum, and whose operands
    nothing overwrites meanwhile."""
    view = ForLoop(loop)
    end, pipelined = end_of(view.body), [load.alloc for load in loads if load.alloc]
    found = []
    for op in ops_named(loop, "ttng.warp_group_dot_wait"):
        product = defining_op(op.operands[0])
        uses = list(op.results[0].uses)
        if product is None or op.block != view.body or len(uses) != 1:
            continue
        if uses[0].owner.operation != end:
            continue
        if product.operands[2] != view.iter_args[uses[0].operand_number]:
            continue
        if all(_stays(side, loop, pipelined) for side in list(product.operands)[:2]):
            found.append(op)
    return found


def _stays(side: Any, loop: Any, pipelined: list[Any]) -> bool:
    """Whether an operand is memory that the next iteration leaves alone."""
    if not is_mem_desc(side.type):
        return False
    if is_invariant(side, loop):
        return True
    op = defining_op(side)
    if op is not None and op.name == "ttg.memdesc_trans":
        return _stays(op.operands[0], loop, pipelined)
    return op is not None and op in pipelined


def _drop_unused(loop: Any, count: int) -> None:
    """Makes the loop's first carried values their own successors, where nothing asks for them
    but they themselves: the canonicalizer takes such away."""
    view = ForLoop(loop)
    arguments, end = view.iter_args, end_of(view.body)
    live: set[Any] = set()
    work: list[Any] = [
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
        op = defining_op(value)
        if op is not None:
            work += op.operands
        elif value in arguments:
            work.append(end.operands[arguments.index(value)])
    for number in range(count):
        if arguments[number] not in live:
            end.operands[number] = arguments[number]


def _i32(value: int) -> Any:
    return arith.ConstantOp(ir.IntegerType.get_signless(32), value).result


def _token() -> Any:
    return AsyncTokenType.get()
