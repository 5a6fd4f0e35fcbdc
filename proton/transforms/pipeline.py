"""Software pipelines: a loop's loads begin iterations before their data is used.

The loads of a loop that feed tensor cores (all loads, where `tl.range(num_stages=)` asks for it)
become copies to shared memory that go on by themselves. With `num_stages` = S there are S buffers,
and the copies of iteration i + S - 1 begin in iteration i:

    prologue   copy 0 | copy 1 | ... | copy S - 2
    loop       wait for copy i,  use buffer i mod S,  begin copy i + S - 1
    epilogue   wait for what is under way, which is zeros beyond the end

What the copies need (addresses, masks) is computed twice: for the iteration that is being worked
on, where anything else asks for it, and for the one whose copies begin. Beyond the loop's end
copies are masked off. What TMA copies has no groups and tokens: each buffer has a barrier in shared
memory that its bytes arrive at, and iteration i waits for phase i / S of barrier i mod S. Beyond
the end nothing is copied, and nothing waits.

Of a loop over tiles that is to be flattened (`tl.range(flatten=True)`), the copies of the next
tile's first iterations begin behind this tile's last one, and go on while it is stored.

A product of warp groups that nothing but the next iteration asks for stays in flight, too: it is
waited for when the next one has been issued.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from proton.analysis.alias import Roots
from proton.analysis.axis_info import AxisInfos
from proton.analysis.pipelining import (
    Load,
    Slice,
    Tiles,
    candidates,
    consumer_of,
    flying,
    is_innermost,
    is_live_in,
    slice_of,
    tiles_of,
)
from proton.analysis.scratch import desc_bytes, scratch_bytes
from proton.analysis.tensor_maps import box_of_map
from proton.base.targets import GPUTarget
from proton.dialect.attributes import NUM_STAGES
from proton.dialect.builtin import i32_attr
from proton.dialect.mlir import Operation, Value, arith, ir
from proton.dialect.regions import ForLoop, end_of, with_carried
from proton.dialect.traits import AllocatesShared, Combines, Pure, has
from proton.dialect.ttg import mem_desc, mem_desc_parts
from proton.dialect.ttg_memory import (
    AsyncCommitGroupOp,
    AsyncCopyOp,
    AsyncTokenType,
    AsyncWaitOp,
    LocalReserveOp,
    MemDescIndexOp,
)
from proton.dialect.ttng import WarpGroupDotWaitOp
from proton.dialect.ttng_memory import InvalBarrierOp, WaitBarrierOp, one_barrier
from proton.dialect.walk import all_ops, before, defining_op, functions, ops_named
from proton.passes import Pass, register
from proton.transforms.load_buffers import begin_tma, start_barriers, take_from

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
    if not each:
        return
    pipeline, tiles = _Pipeline(loop, loads), None
    found = tiles_of(loop, loads, pipeline.slice)
    if found is not None:
        most = (limit - others - _bytes_beside(found.loop)) // each
        if min(stages, most) > 1:
            stages, tiles = min(stages, most), found
    stages = min(stages, (limit - others - _bytes_beside(loop)) // each)
    if stages > 1:
        pipeline.run(stages, tiles)


def _bytes_beside(loop: Any) -> int:
    """Shared memory that is in use in a loop while buffers are: of blocks that TMA stores, and
    scratch memory."""
    boxes = [box_of_map(op.operands[0].type) for op in ops_named(loop, "ttng.tma_store")]
    scratch = max(scratch_bytes(op) for op in all_ops(loop) if not has(op, AllocatesShared))
    return scratch + sum(box.bytes for box in boxes if box is not None)


class _Pipeline:
    """One loop: `distance` iterations lie between the beginning of a copy and its use."""

    def __init__(self, loop: Any, loads: list[Load]) -> None:
        self.loop, self.loads = loop, loads
        self.stages = self.distance = 0
        order = {view.operation: n for n, view in enumerate(ForLoop(loop).body.operations)}
        for load in loads:
            load.consumer = consumer_of(load.alloc or load.op, order)
        self.consumer = min((load.consumer for load in loads), key=lambda op: order[op])
        slice_ = slice_of(loop, loads)
        assert slice_ is not None, "asked of each load"
        self.slice: Slice = slice_
        self.copied = [load for load in loads if not load.is_tma]  # in groups, with tokens
        self.arrivals = [load for load in loads if load.is_tma]
        self.barriers: Any = None  # of all stages

    def run(self, stages: int, tiles: Tiles | None) -> None:
        """Makes the pipeline; with `tiles`, one that goes on from tile to tile."""
        self.stages, self.distance = stages, stages - 1
        with before(tiles.loop if tiles else self.loop):
            for load in self.loads:
                shape, element, layout = mem_desc_parts(load.memory)
                with load.op.location:
                    load.buffers = LocalReserveOp(
                        mem_desc((self.stages, *shape), element, layout, is_mutable=True)
                    ).result
            if self.arrivals:
                self.barriers = start_barriers(self.stages)
            known, runs = _first_tile(tiles) if tiles else ({}, None)
            tokens, ahead = self._prologue(known, _i32(0), runs)
            phases = [_i32(0)] if self.arrivals else []
            initial = [*ahead, *tokens, *phases, _i32(self.distance), _i32(0)]
        in_flight = flying(self.loop, self.loads)
        if tiles:
            tiles.loop = with_carried(tiles.loop, initial)
            initial = ForLoop(tiles.loop).iter_args[-len(initial) :]
        old = len(self.loop.results)
        self.loop = with_carried(self.loop, initial)
        if tiles:
            self._next_tile(tiles, len(initial))
        self._body(old, in_flight)
        self._epilogue(old, in_flight, tiles.loop if tiles else self.loop)

    def _next_tile(self, tiles: Tiles, count: int) -> None:
        """Behind the loop, begins the copies of the next tile's first iterations."""
        outer, state = ForLoop(tiles.loop), list(self.loop.results)[-count:]
        _, upper, step = outer.bounds
        with ir.InsertionPoint.after(self.loop), self.loop.location:
            left = arith.SubIOp(upper, outer.induction_var).result
            is_there = arith.CmpIOp(_UNSIGNED_GREATER, left, step).result
            known = {outer.induction_var: arith.AddIOp(outer.induction_var, step).result}
            _clone(tiles.ops, known)
            self._prologue(known, state[-1], is_there)
        end = end_of(outer.body)
        for number, value in enumerate(state):
            end.operands[len(end.operands) - count + number] = value

    # Copies

    def _copies(self, mapping: dict[Any, Any], index: Any, is_inside: Any) -> list[Value]:
        """Begins the copies of an iteration whose values are in `mapping`; the token of the group
        of those that have one."""
        _clone(self.slice.ops, mapping)
        if self.arrivals:
            with self.arrivals[0].op.location:
                barrier = MemDescIndexOp(self.barriers, index, one_barrier()).result
                targets = [
                    MemDescIndexOp(load.buffers, index, load.memory) for load in self.arrivals
                ]
            begin_tma(self.arrivals, targets, barrier, is_inside, mapping)
        if not self.copied:
            return []
        copies = [self._copy(load, mapping, index, is_inside) for load in self.copied]
        with self.copied[-1].op.location:
            return [AsyncCommitGroupOp(copies, _token()).group]

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

    def _prologue(
        self, known: dict[Any, Any], index: Any, condition: Any
    ) -> tuple[list[Value], list[Value]]:
        """Begins the copies of the first iterations, from the buffer `index` on, if the condition
        holds: (their tokens, carried values ahead of them). `known` has other values in the place
        of those outside of the loop."""
        view = ForLoop(self.loop)
        lower, upper, step = (known.get(bound, bound) for bound in view.bounds)
        arguments, yielded = view.iter_args, view.yielded
        state = [view.init_args[number] for number in self.slice.carried]
        less = _UNSIGNED_LESS if "unsignedCmp" in self.loop.attributes else _SIGNED_LESS
        runs = arith.CmpIOp(less, lower, upper).result
        if condition is not None:
            runs = arith.AndIOp(runs, condition).result
        left = arith.SubIOp(upper, lower).result
        tokens: list[Value] = []
        variable, passed = lower, None
        for number in range(self.distance):
            is_inside = runs
            if passed is not None:
                more = arith.CmpIOp(_UNSIGNED_GREATER, left, passed).result
                is_inside = arith.AndIOp(runs, more).result
            mapping = known | {view.induction_var: variable}
            mapping |= {arguments[n]: v for n, v in zip(self.slice.carried, state, strict=True)}
            index = self._next(index) if number else index
            tokens += self._copies(mapping, index, is_inside)
            state = [mapping.get(yielded[n], yielded[n]) for n in self.slice.carried]
            variable = arith.AddIOp(variable, step).result
            passed = step if passed is None else arith.AddIOp(passed, step).result
        return tokens, state

    def _body(self, old: int, in_flight: list[Operation]) -> None:
        view = ForLoop(self.loop)
        arguments = view.iter_args
        original, extra = arguments[:old], arguments[old:]
        count, phases = len(self.slice.carried), []
        ahead, tokens, (write, read) = extra[:count], extra[count:-2], extra[-2:]
        if self.arrivals:
            phases = [tokens.pop()]
        end = end_of(view.body)
        with ir.InsertionPoint(self.consumer), self.loads[-1].op.location:
            if tokens:
                AsyncWaitOp(tokens[0], i32_attr(self.distance - 1))
            for phase in phases:
                WaitBarrierOp(MemDescIndexOp(self.barriers, read, one_barrier()).result, phase)
        with self._where_copies_begin(end, bool(in_flight)), self.loop.location:
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
            phases = [_next_phase(phase, indices[1]) for phase in phases]
        for number, value in enumerate([*following, *tokens[1:], *begun, *phases, *indices]):
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
            take_from(load, MemDescIndexOp(load.buffers, index, load.memory).result)

    def _epilogue(self, old: int, in_flight: list[Operation], last_loop: Any) -> None:
        if self.copied:
            with ir.InsertionPoint.after(self.loop), self.loop.location:
                last = old + len(self.slice.carried) + self.distance - 1
                AsyncWaitOp(self.loop.results[last], i32_attr(0))
        if self.arrivals:
            with ir.InsertionPoint.after(last_loop), last_loop.location:
                InvalBarrierOp(self.barriers)
        for wait in in_flight:
            wait.attributes["pendings"] = i32_attr(1)
            (use,) = wait.results[0].uses
            result = self.loop.results[use.operand_number]
            uses = list(result.uses)
            with ir.InsertionPoint.after(self.loop), wait.location:
                landed = WarpGroupDotWaitOp(result, i32_attr(0), result.type).result
            for outer in uses:
                outer.owner.operation.operands[outer.operand_number] = landed


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


def _clone(ops: list[Any], mapping: dict[Any, Any]) -> None:
    """Emits ops again, with other values in the place of those in `mapping`, and adds theirs."""
    for op in ops:
        clone = op.operation.clone()
        for number, operand in enumerate(op.operands):
            clone.operation.operands[number] = mapping.get(operand, operand)
        for result, value in zip(op.results, clone.operation.results, strict=True):
            mapping[result] = value


def _first_tile(tiles: Tiles) -> tuple[dict[Any, Any], Value]:
    """(values of the first tile, whether there is one), ahead of the loop over tiles."""
    view = ForLoop(tiles.loop)
    lower, upper, _ = view.bounds
    less = _UNSIGNED_LESS if "unsignedCmp" in tiles.loop.attributes else _SIGNED_LESS
    known = {view.induction_var: lower}
    _clone(tiles.ops, known)
    return known, arith.CmpIOp(less, lower, upper).result


def _next_phase(phase: Any, read: Any) -> Any:
    """The parity of the next iteration's phase: another one, once around."""
    is_around = arith.CmpIOp(_EQUAL, read, _i32(0)).result
    return arith.XOrIOp(phase, arith.ExtUIOp(phase.type, is_around).result).result


def _i32(value: int) -> Any:
    return arith.ConstantOp(ir.IntegerType.get_signless(32), value).result


def _token() -> Any:
    return AsyncTokenType.get()
