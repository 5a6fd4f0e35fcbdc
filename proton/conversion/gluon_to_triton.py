"""Kernels in Gluon without threads: what they compute, in the order in which it is written.

A CPU runs a program in one thread. Layouts say nothing there, shared memory is a buffer of the
program, asynchronous copies and dots take effect where they begin. Barriers hold nobody up but in
kernels with workers, whose groups of warps run one at a time (outline_workers.py).

    %m = ttg.local_reserve                       %m = memref.alloc, as a pointer
    ttng.async_tma_copy_global_to_local          tt.descriptor_load, tt.store
    %t = ttg.local_load %m            becomes    %t = tt.load %m + offsets
    %c = ttng.warp_group_dot %m, %n, %b          tt.dot of what is loaded

Elements lie in a buffer where they lie in shared memory, so that a view that takes its bytes for
something else sees what it sees on a GPU.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from math import prod
from typing import ClassVar

from proton.analysis.call_graph import function_name, function_of
from proton.analysis.memory_places import written
from proton.analysis.scratch import stored_bytes
from proton.base.errors import CompilationError
from proton.base.targets import DEFAULT_WARPS, WARP_SIZE
from proton.conversion.outline_workers import Partitions, outline_workers
from proton.conversion.shared_offsets import offsets
from proton.dialect import OpRules, isa, tt, ttg, ttng
from proton.dialect.builtin import i32_attr, integer, optional_operand, string_attr
from proton.dialect.diagnostics import shape_of
from proton.dialect.emit import call_c, constant, emit_when, filled
from proton.dialect.layouts import set_constant_type
from proton.dialect.mlir import Module, Operation, Type, Value, arith, func, ir, memref
from proton.dialect.partitions import Runtime
from proton.dialect.tt_block import REDUCE_KINDS
from proton.dialect.walk import all_ops, before, replace, source_span
from proton.layout.shared_view import SharedView
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class GluonToTriton(Pass):
    """`tt` ops on tensors without layouts in the place of `ttg` and `ttng` ops."""

    name: ClassVar[str] = "gluon-to-triton"

    num_warps: int = DEFAULT_WARPS  # of the groups whose threads arrive one by one

    def run(self, module: Module) -> None:
        partitions = outline_workers(module)
        _Lowering(partitions, self.num_warps).run(all_ops(module))


@dataclass
class _Lowering:
    """`types` are those that memory had, by the pointer that stands for it."""

    partitions: Partitions
    num_warps: int
    types: dict[Value, Type] = field(default_factory=dict)

    def run(self, ops: Sequence[Operation]) -> None:
        for op in ops:
            rule = _RULES.get(op.name)
            if rule is not None:
                with before(op):
                    found = rule(self, op)
                if found is not None:
                    replace(op, found)
                continue
            if op.name.startswith(("ttg.", "ttng.")):
                raise _refused(op)
            self._retype(op)

    def _retype(self, op: Operation) -> None:
        """An op that stays, with results and arguments of blocks that have no layouts."""
        for result in op.results:
            self._plain(result)
        for region in op.regions:
            for block in region.blocks:
                for argument in block.arguments:
                    self._plain(argument)
        if isa(op, arith.ConstantOp) and ttg.is_tensor(op.results[0].type):
            set_constant_type(op)
        elif isa(op, func.FuncOp):
            known = ir.TypeAttr(op.attributes["function_type"]).value
            inputs, results = (
                [_plain_type(t) for t in types] for types in (known.inputs, known.results)
            )
            type_ = ir.FunctionType.get(inputs, results)
            op.attributes["function_type"] = ir.TypeAttr.get(type_)

    def _plain(self, value: Value) -> None:
        if ttg.is_mem_desc(value.type):
            self.types[value] = value.type
        value.set_type(_plain_type(value.type))

    def warps_of(self, op: Operation) -> int:
        """The warps of the group that runs an op."""
        return self.partitions.warps.get(function_name(function_of(op)), self.num_warps)

    def stuck(self, op: Operation) -> str:
        """What is said of a wait that would never end."""
        role = self.partitions.roles.get(function_name(function_of(op)), "the default group")
        span = written(op.location)
        return (
            f"{span.file}:{span.line}: deadlock: {role} waits here, and all other groups of warps "
            "wait, too, or have ended: let who is to arrive at this mbarrier arrive, and wait for "
            "the phase that ends then"
        )

    def memory(self, pointer: Value, type_: Type) -> Value:
        """A pointer as what stands for memory of a type."""
        self.types[pointer] = type_
        return pointer

    def parts(self, pointer: Value) -> tuple[tuple[int, ...], Type, SharedView]:
        """(shape, type of an element, where each lies) of the memory that a pointer stands for."""
        type_ = self.types[pointer]
        return *ttg.mem_desc_block(type_), ttg.mem_desc_view(type_)

    def load(self, pointer: Value) -> Value:
        """All that lies in memory."""
        shape, element, view = self.parts(pointer)
        at = _pointers(pointer, offsets(view), shape)
        return _load(at, shape, element)

    def store(self, value: Value, pointer: Value) -> None:
        """Writes all of memory."""
        shape, _, view = self.parts(pointer)
        _store(_pointers(pointer, offsets(view), shape), value)


def _plain_type(type_: Type) -> Type:
    """A tensor without its layout, a pointer for memory."""
    if ttg.is_mem_desc(type_):
        return _pointer_type(ttg.mem_desc_block(type_)[1])
    if ttg.is_tensor(type_) and type_.encoding is not None:
        return ir.RankedTensorType.get(type_.shape, type_.element_type)
    return type_


def _pointer_type(element: Type) -> Type:
    return tt.PointerType.get(ir.TypeAttr.get(element))


def _refused(op: Operation) -> CompilationError:
    span = source_span(op.location)
    name = "inline_asm" if isa(op, ttg.ThreadAssemblyOp) else op.name
    return CompilationError(
        f"{name} is not supported on a CPU",
        span if span.file else None,
        "run the kernel on a GPU",
    )


# Accesses


def _pointers(base: Value, offsets: Value, shape: Sequence[int]) -> Value:
    type_ = ir.RankedTensorType.get(shape, base.type)
    return tt.AddPtrOp(tt.SplatOp(base, type_).result, offsets, type_).result


_NONE = ""


def _load(at: Value, shape: Sequence[int], element: Type, mask: Value | None = None) -> Value:
    type_, none = ir.RankedTensorType.get(shape, element), string_attr(_NONE)
    other = None if mask is None else filled(type_, 0)
    volatile = ir.BoolAttr.get(False)
    return tt.LoadOp(at, none, none, volatile, type_, mask=mask, other=other).result


def _store(at: Value, value: Value, mask: Value | None = None) -> None:
    tt.StoreOp(at, value, string_attr(_NONE), string_attr(_NONE), mask=mask)


def _moved(pointer: Value, bytes_: Value, element: Type) -> Value:
    """A pointer so many bytes further on, to elements of a type."""
    to_bytes = _pointer_type(integer(8))
    start = pointer if pointer.type == to_bytes else tt.BitcastOp(pointer, to_bytes).result
    moved = tt.AddPtrOp(start, bytes_, to_bytes).result
    type_ = _pointer_type(element)
    return moved if type_ == to_bytes else tt.BitcastOp(moved, type_).result


# Rules: what stands for an op's results

_Rule = Callable[[_Lowering, Operation], list[Value] | None]
_RULES = OpRules[_Rule]()


@_RULES.of(ttg.ConvertLayoutOp, ttg.SetAutoLayoutOp)
def _same(ctx: _Lowering, op: Operation) -> list[Value]:
    return [op.operands[0]]


@_RULES.of(ttg.LocalReserveOp)
def _reserve(ctx: _Lowering, op: Operation) -> list[Value]:
    type_ = op.results[0].type
    (shape, element), view = ttg.mem_desc_block(type_), ttg.mem_desc_view(type_)
    count = prod(shape[: len(shape) - len(view.shape)])
    size = count * view.padded(view.size) * stored_bytes(element)
    buffer = memref.AllocOp(ir.MemRefType.get([size], integer(8)), [], []).result
    address = memref.ExtractAlignedPointerAsIndexOp(buffer).result
    number = arith.IndexCastOp(integer(64), address).result
    pointer = tt.IntToPtrOp(number, _pointer_type(element)).result
    return [ctx.memory(pointer, type_)]


@_RULES.of(ttg.LocalDeallocOp)
def _dealloc(ctx: _Lowering, op: Operation) -> list[Value]:
    return []


@_RULES.of(ttg.LocalLoadOp)
def _local_load(ctx: _Lowering, op: Operation) -> list[Value]:
    return [ctx.load(op.operands[0])]


@_RULES.of(ttg.LocalStoreOp)
def _local_store(ctx: _Lowering, op: Operation) -> list[Value]:
    ctx.store(op.operands[0], op.operands[1])
    return []


@_RULES.of(ttg.LocalGatherOp)
def _gather(ctx: _Lowering, op: Operation) -> list[Value]:
    memory, indices = op.operands
    _, element, view = ctx.parts(memory)
    axis = int(ir.IntegerAttr(op.attributes["axis"]).value)
    shape = shape_of(indices)
    at = _pointers(memory, offsets(view, indices, axis), shape)
    return [_load(at, shape, element)]


@_RULES.of(ttg.LocalScatterOp)
def _scatter(ctx: _Lowering, op: Operation) -> list[Value]:
    memory, values, indices = op.operands
    _, _, view = ctx.parts(memory)
    axis = int(ir.IntegerAttr(op.attributes["axis"]).value)
    _store(_pointers(memory, offsets(view, indices, axis), shape_of(indices)), values)
    return []


@_RULES.of(ttg.LocalAtomicScatterOp)
def _atomic_scatter(ctx: _Lowering, op: Operation) -> list[Value]:
    memory, values, indices = list(op.operands)[:3]
    _, _, view = ctx.parts(memory)
    axis = int(ir.IntegerAttr(op.attributes["axis"]).value)
    at = _pointers(memory, offsets(view, indices, axis), shape_of(indices))
    words = op.attributes["rmw_op"], string_attr("relaxed"), string_attr("cta")
    mask = optional_operand(op, 3)
    return [tt.AtomicRMWOp(at, values, *words, values.type, mask=mask).result]


@_RULES.of(ttg.MemDescIndexOp)
def _index(ctx: _Lowering, op: Operation) -> list[Value]:
    memory, index = op.operands
    type_ = op.results[0].type
    (shape, _), view = ttg.mem_desc_block(type_), ttg.mem_desc_view(type_)
    count = prod(shape[: len(shape) - len(view.shape)])
    size = count * view.padded(view.size)
    step = arith.MulIOp(index, constant(size, integer(32))).result
    return [ctx.memory(tt.AddPtrOp(memory, step, memory.type).result, type_)]


@_RULES.of(ttg.MemDescViewOp)
def _view(ctx: _Lowering, op: Operation) -> list[Value]:
    type_ = op.results[0].type
    _, element = ttg.mem_desc_block(type_)
    offset = int(ir.IntegerAttr(op.attributes["offset"]).value)
    moved = _moved(op.operands[0], constant(offset, integer(32)), element)
    return [ctx.memory(moved, type_)]


# Copies and barriers


@_RULES.of(ttg.AsyncCopyOp)
def _copy(ctx: _Lowering, op: Operation) -> list[Value] | None:
    pointers, memory = op.operands[:2]
    mask = optional_operand(op, 2)
    shape, element, _ = ctx.parts(memory)
    ctx.store(_load(pointers, shape, element, mask), memory)
    op.erase()
    return None


_NOTHING = (
    *(ttg.AsyncCommitGroupOp, ttg.AsyncWaitGroupOp, ttg.BarrierOp, ttng.FenceAsyncSharedOp),
    *(ttng.InvalBarrierOp, ttng.TMAStoreWaitOp),
)


@_RULES.of(*_NOTHING)
def _nothing(ctx: _Lowering, op: Operation) -> None:
    """Who comes here has waited: all that was begun is done."""
    op.erase()


def _scheduler(ctx: _Lowering, op: Operation) -> Value | None:
    """The state of the partitions of which one runs an op; None where there are none."""
    return ctx.partitions.schedulers.get(function_name(function_of(op)))


def _address(barrier: Value) -> Value:
    return tt.PtrToIntOp(barrier, integer(64)).result


def _update(
    ctx: _Lowering, op: Operation, arrivals: int, bytes_: int, condition: Value | None
) -> None:
    """Arrivals at an op's barrier, and bytes that are to come besides, if a condition holds."""
    scheduler = _scheduler(ctx, op)
    if scheduler is not None:
        counts = [constant(number, integer(64)) for number in (arrivals, bytes_)]
        operands = [scheduler, _address(op.operands[0]), *counts]

        def update() -> None:
            call_c(Runtime.UPDATE, operands, None)

        if condition is None:
            update()
        else:
            emit_when(condition, update)
    op.erase()


@_RULES.of(ttng.InitBarrierOp)
def _init(ctx: _Lowering, op: Operation) -> None:
    scheduler = _scheduler(ctx, op)
    if scheduler is not None:
        memory = op.operands[0]
        shape, element, view = ctx.parts(memory)
        count = constant(int(ir.IntegerAttr(op.attributes["count"]).value), integer(64))
        step = view.padded(view.size) * stored_bytes(element)
        for number in range(prod(shape) // view.size):
            offset = constant(number * step, integer(64))
            place = arith.AddIOp(_address(memory), offset).result
            call_c(Runtime.INIT, [scheduler, place, count], None)
    op.erase()


@_RULES.of(ttng.BarrierExpectOp)
def _expect(ctx: _Lowering, op: Operation) -> None:
    size = int(ir.IntegerAttr(op.attributes["bytes"]).value)
    _update(ctx, op, 1, size, op.operands[1])


@_RULES.of(ttng.BarrierCompleteOp)
def _complete(ctx: _Lowering, op: Operation) -> None:
    size = int(ir.IntegerAttr(op.attributes["bytes"]).value)
    _update(ctx, op, 0, -size, op.operands[1])


@_RULES.of(ttng.ArriveOnceOp)
def _arrive(ctx: _Lowering, op: Operation) -> None:
    count = int(ir.IntegerAttr(op.attributes["count"]).value)
    _update(ctx, op, count, 0, op.operands[1])


@_RULES.of(ttng.ArriveBehindCopiesOp)
def _arrive_behind(ctx: _Lowering, op: Operation) -> None:
    """Copies have ended. Arrivals that the barrier counts besides its own change nothing."""
    increments = bool(ir.BoolAttr(op.attributes["increments"]).value)
    _update(ctx, op, 0 if increments else WARP_SIZE * ctx.warps_of(op), 0, None)


@_RULES.of(ttng.WaitBarrierOp, ttng.WaitBarrierIfOp)
def _wait(ctx: _Lowering, op: Operation) -> None:
    scheduler = _scheduler(ctx, op)
    if scheduler is not None:
        barrier, phase, *conditions = op.operands
        operands = [scheduler, _address(barrier), arith.ExtUIOp(integer(64), phase).result]
        message = string_attr(ctx.stuck(op))

        def wait() -> None:
            found = call_c(Runtime.WAIT, operands, integer(64))
            tt.AssertOp(arith.TruncIOp(integer(1), found).result, message)

        if conditions:
            emit_when(conditions[0], wait)
        else:
            wait()
    op.erase()


@_RULES.of(ttng.TensorMapOp)
def _map(ctx: _Lowering, op: Operation) -> list[Value]:
    """Descriptors are what accesses take."""
    return [op.operands[0]]


def _block(descriptor: Value) -> Type:
    block: Type = descriptor.type.target
    return ir.RankedTensorType.get(block.shape, block.element_type)


@_RULES.of(ttng.AsyncTMACopyOp)
def _tma_load(ctx: _Lowering, op: Operation) -> None:
    descriptor, barrier, memory, condition, *indices = op.operands
    scheduler = _scheduler(ctx, op)

    def copy() -> None:
        none = string_attr(_NONE)
        loaded = tt.DescriptorLoadOp(descriptor, indices, none, none, _block(descriptor)).result
        ctx.store(loaded, memory)
        if scheduler is not None:
            _, element, view = ctx.parts(memory)
            came = constant(-view.size * stored_bytes(element), integer(64))
            none_arrives = constant(0, integer(64))
            call_c(Runtime.UPDATE, [scheduler, _address(barrier), none_arrives, came], None)

    emit_when(condition, copy)
    op.erase()


@_RULES.of(ttng.AsyncTMAStoreOp)
def _tma_store(ctx: _Lowering, op: Operation) -> None:
    descriptor, memory, *indices = op.operands
    value = ctx.load(memory)
    kind = str(ir.StringAttr(op.attributes["reduction"]).value)
    if kind == ttng.NO_REDUCTION:
        tt.DescriptorStoreOp(descriptor, value, indices)
    else:
        plain = kind if kind in REDUCE_KINDS else kind[1:]
        is_unsigned = ir.BoolAttr.get(kind.startswith("u"))
        tt.DescriptorReduceOp(descriptor, value, indices, string_attr(plain), is_unsigned)
    op.erase()


# Dots


def _operand(ctx: _Lowering, value: Value) -> Value:
    return ctx.load(value) if value in ctx.types else value


def _dot(a: Value, b: Value, acc: Value) -> Value:
    return tt.DotOp(a, b, acc, string_attr("ieee"), i32_attr(0), acc.type).result


@_RULES.of(ttng.MmaSyncOp)
def _mma(ctx: _Lowering, op: Operation) -> list[Value]:
    return [_dot(*op.operands)]


@_RULES.of(ttng.WarpGroupDotOp)
def _warp_group_dot(ctx: _Lowering, op: Operation) -> list[Value]:
    a, b, acc = op.operands[:3]
    adds = optional_operand(op, 3)
    if adds is not None:
        acc = arith.SelectOp(adds, acc, filled(acc.type, 0)).result
    return [_dot(_operand(ctx, a), _operand(ctx, b), acc)]


@_RULES.of(ttng.WarpGroupDotWaitOp)
def _dot_wait(ctx: _Lowering, op: Operation) -> list[Value]:
    return [op.operands[0]]
