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

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, ClassVar

from proton.analysis.alias import Roots
from proton.analysis.axis_info import AxisInfos
from proton.analysis.pipelining import (
    Load,
    Slice,
    candidates,
    consumer_of,
    flying,
    is_innermost,
    is_live_in,
    slice_of,
)
from proton.analysis.scratch import desc_bytes
from proton.base.targets import GPUTarget
from proton.dialect.asynchronous import set_ahead, set_iteration
from proton.dialect.attributes import NUM_STAGES
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Operation, Value, arith, ir
from proton.dialect.regions import ForLoop, end_of, with_carried
from proton.dialect.traits import Combines, Pure, has
from proton.dialect.ttg import mem_desc, mem_desc_parts
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
from proton.dialect.walk import all_ops, before, defining_op, functions, ops_named, producer_of
from proton.passes import Pass, register

_SIGNED_LESS, _UNSIGNED_LESS, _UNSIGNED_GREATER, _EQUAL = 2, 6, 8, 0  # arith.cmpi's predicates


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
            loops = [op for op in ops_named(function, "scf.for") if is_innermost(op)]
            if not loops:
                continue
            infos, roots = AxisInfos(module), Roots(function)
            for loop in loops:
                stages, is_asked = self._stages(loop)
                loads = candidates(loop, infos, roots, is_asked) if stages > 1 else []
                if loads:
                    _pipeline(function, loop, loads, stages, limit)

    def _stages(self, loop: Any) -> tuple[int, bool]:
        """(stages, whether the loop itself asked for them)."""
        if NUM_STAGES in loop.attributes:
            return int(ir.IntegerAttr(loop.attributes[NUM_STAGES]).value), True
        return self.num_stages, False


# The new loop


def _pipeline(function: Any, loop: Any, loads: list[Load], stages: int, limit: int) -> None:
    loads = [load for load in loads if list(load.op.results[0].uses)]
    each = sum(desc_bytes(load.memory) for load in loads)
    replaced = [load.alloc for load in loads if load.alloc]
    others = sum(
        desc_bytes(op.results[0].type)
        for op in ops_named(function, "ttg.local_alloc", "ttg.local_reserve")
        if op not in replaced and is_live_in(op, loop, function)
    )
    stages = min(stages, (limit - others) // each) if each else 0
    if stages > 1:
        _Pipeline(loop, loads, stages).run()


class _Pipeline:
    """One loop: `distance` iterations lie between the beginning of a copy and its use."""

    def __init__(self, loop: Any, loads: list[Load], stages: int) -> None:
        self.loop, self.loads, self.stages = loop, loads, stages
        self.distance = stages - 1
        order = {view.operation: n for n, view in enumerate(ForLoop(loop).body.operations)}
        for load in loads:
            load.consumer = consumer_of(load.alloc or load.op, order)
        self.consumer = min((load.consumer for load in loads), key=lambda op: order[op])
        slice_ = slice_of(loop, loads)
        assert slice_ is not None, "asked of each load"
        self.slice: Slice = slice_

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
        in_flight = flying(self.loop, self.loads)
        initial = [*ahead, *tokens, *indices]
        old = len(self.loop.results)
        self.loop = with_carried(self.loop, initial)
        self._body(old, in_flight)
        self._epilogue(old, in_flight)

    # Copies

    def _copies(
        self, mapping: dict[Any, Any], index: Any, is_inside: Any, note: Callable[[Any], None]
    ) -> Value:
        """Begins the copies of an iteration whose values are in `mapping`; their group's token.
        `note` writes on an op which iteration that is."""
        for op in self.slice.ops:
            clone = op.operation.clone()
            for number, operand in enumerate(op.operands):
                clone.operation.operands[number] = mapping.get(operand, operand)
            for result, value in zip(op.results, clone.operation.results, strict=True):
                mapping[result] = value
        copies = [self._copy(load, mapping, index, is_inside) for load in self.loads]
        with self.loads[-1].op.location:
            group: Value = AsyncCommitGroupOp(copies, _token()).group
        for token in (*copies, group):
            note(producer_of(token))
        return group

    def _copy(self, load: Load, mapping: dict[Any, Any], index: Any, is_inside: Any) -> Any:
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
        less = _UNSIGNED_LESS if "unsignedCmp" in self.loop.attributes else _SIGNED_LESS
        runs = arith.CmpIOp(less, lower, upper).result
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
            note = partial(set_iteration, number=number)
            tokens.append(self._copies(mapping, _i32(number), is_inside, note))
            state = [mapping.get(yielded[n], yielded[n]) for n in self.slice.carried]
            variable = arith.AddIOp(variable, step).result
            passed = step if passed is None else arith.AddIOp(passed, step).result
        return tokens, state

    def _body(self, old: int, in_flight: list[Operation]) -> None:
        view = ForLoop(self.loop)
        arguments = view.iter_args
        original, extra = arguments[:old], arguments[old:]
        count = len(self.slice.carried)
        ahead, tokens, (write, read) = extra[:count], extra[count:-2], extra[-2:]
        end = end_of(view.body)
        with ir.InsertionPoint(self.consumer), self.loads[-1].op.location:
            AsyncWaitOp(tokens[0], i32_attr(self.distance - 1))
        with self._where_copies_begin(end, bool(in_flight)), self.loop.location:
            is_inside, variable = self._ahead(view)
            mapping = {view.induction_var: variable}
            mapping |= {
                original[n]: value for n, value in zip(self.slice.carried, ahead, strict=True)
            }
            note = partial(set_ahead, iterations=self.distance)
            begun = self._copies(mapping, write, is_inside, note)
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

    def _use(self, load: Load, index: Any) -> None:
        """Reads the buffer where the load's data was taken, and erases the load."""
        with load.op.location:
            memory = MemDescIndexOp(load.buffers, index, load.memory).result
            value = load.op.results[0]
            if (alloc := load.alloc) is not None:
                _replace_memory(alloc.results[0], memory)
                alloc.erase()
            converted = []
            for use in list(value.uses):
                user = use.owner.operation
                if user.name == "ttg.convert_layout" and load.other is None:
                    read = LocalLoadOp(memory, user.results[0].type).result
                    user.results[0].replace_all_uses_with(read)
                    converted.append(user)
            if len(list(value.uses)) > len(converted):
                read = LocalLoadOp(memory, value.type).result
                if load.other is not None:
                    read = arith.SelectOp(load.mask, read, load.other).result
                value.replace_all_uses_with(read)
            for user in converted:
                user.erase()
        load.op.erase()

    def _epilogue(self, old: int, in_flight: list[Operation]) -> None:
        with ir.InsertionPoint.after(self.loop), self.loop.location:
            last = old + len(self.slice.carried) + self.distance - 1
            AsyncWaitOp(self.loop.results[last], i32_attr(0))
        for wait in in_flight:
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
        made_by = defining_op(value)
        if made_by is not None:
            work += made_by.operands
        elif value in arguments:
            work.append(end.operands[arguments.index(value)])
    for number in range(count):
        if arguments[number] not in live:
            end.operands[number] = arguments[number]


def _i32(value: int) -> Any:
    return arith.ConstantOp(ir.IntegerType.get_signless(32), value).result


def _token() -> Any:
    return AsyncTokenType.get()
