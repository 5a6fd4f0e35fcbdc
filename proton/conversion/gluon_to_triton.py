"""Kernels in Gluon without threads: what they compute, in the order in which it is written.

A CPU runs a program in one thread. Layouts say nothing there, shared memory is a buffer of the
program, asynchronous copies and dots take effect where they begin, and barriers hold nobody up.

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

from proton.analysis.scratch import stored_bytes
from proton.base.errors import CompilationError
from proton.dialect import OpRules, isa, tt, ttg, ttng
from proton.dialect.builtin import i32_attr, integer, optional_operand, string_attr
from proton.dialect.diagnostics import shape_of
from proton.dialect.emit import constant, emit_when, filled
from proton.dialect.layouts import set_constant_type
from proton.dialect.mlir import Module, Operation, Type, Value, arith, func, ir, memref
from proton.dialect.tt_block import REDUCE_KINDS
from proton.dialect.walk import all_ops, before, replace, source_span
from proton.layout.linear import log2
from proton.layout.named import dim
from proton.layout.shared_view import SharedView
from proton.passes import Pass, register


@register
@dataclass(frozen=True)
class GluonToTriton(Pass):
    """`tt` ops on tensors without layouts in the place of `ttg` and `ttng` ops."""

    name: ClassVar[str] = "gluon-to-triton"

    def run(self, module: Module) -> None:
        ops = all_ops(module)
        _Lowering().run(ops)


@dataclass
class _Lowering:
    """`types` are those that memory had, by the pointer that stands for it."""

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
        at = _pointers(pointer, _offsets(view), shape)
        return _load(at, shape, element)

    def store(self, value: Value, pointer: Value) -> None:
        """Writes all of memory."""
        shape, _, view = self.parts(pointer)
        _store(_pointers(pointer, _offsets(view), shape), value)


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


# Where elements lie


def _range(size: int, axis: int, rank: int) -> Value:
    """0 to size - 1 along a dimension of as many, the others of size 1."""
    i32 = integer(32)
    value = tt.MakeRangeOp(i32_attr(0), i32_attr(size), ir.RankedTensorType.get([size], i32)).result
    for other in range(rank):
        if other != axis:
            sizes = list(shape_of(value))
            sizes.insert(other, 1)
            type_ = ir.RankedTensorType.get(sizes, i32)
            value = tt.ExpandDimsOp(value, i32_attr(other), type_).result
    return value


def _spread(value: Value, shape: Sequence[int]) -> Value:
    if shape_of(value) == tuple(shape):
        return value
    type_ = ir.RankedTensorType.get(shape, value.type.element_type)
    return tt.BroadcastOp(value, type_).result


def _combined(index: Value, bases: Sequence[int]) -> Value:
    """The offsets of indices along a dimension, by the offset of each of their bits."""
    step = bases[0] if bases else 0
    if list(bases) == [step << bit for bit in range(len(bases))]:
        return arith.MulIOp(index, filled(index.type, step)).result
    total = filled(index.type, 0)
    for bit, basis in enumerate(bases):
        low = arith.ShRUIOp(index, filled(index.type, bit)).result
        one = arith.AndIOp(low, filled(index.type, 1)).result
        own = arith.MulIOp(one, filled(index.type, basis)).result
        total = arith.XOrIOp(total, own).result
    return total


def _offsets(view: SharedView, indices: Value | None = None, axis: int = -1) -> Value:
    """The offset of each element of a view; along an axis those of indices."""
    shape = view.shape if indices is None else shape_of(indices)
    rank = len(shape)
    total: Value | None = None
    reached = 0
    for number, size in enumerate(shape):
        bases = [basis[0] for basis in view.places.bases(dim(number))]
        index = indices if number == axis and indices is not None else _range(size, number, rank)
        own = _spread(_combined(index, bases), shape)
        span = sum(bases) if len(set(bases)) == len(bases) else -1
        is_apart = not reached & span
        if total is None:
            total = own
        else:
            total = (arith.AddIOp if is_apart else arith.XOrIOp)(total, own).result
        for basis in bases:
            reached |= basis
    assert total is not None, "memory has a dimension"
    if view.start:
        total = arith.XOrIOp(total, filled(total.type, view.start)).result
    padded = total
    for interval, padding in view.paddings:
        count = arith.ShRUIOp(total, filled(total.type, log2(interval))).result
        room = arith.MulIOp(count, filled(total.type, padding)).result
        padded = arith.AddIOp(padded, room).result
    return padded


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
    at = _pointers(memory, _offsets(view, indices, axis), shape)
    return [_load(at, shape, element)]


@_RULES.of(ttg.LocalScatterOp)
def _scatter(ctx: _Lowering, op: Operation) -> list[Value]:
    memory, values, indices = op.operands
    _, _, view = ctx.parts(memory)
    axis = int(ir.IntegerAttr(op.attributes["axis"]).value)
    _store(_pointers(memory, _offsets(view, indices, axis), shape_of(indices)), values)
    return []


@_RULES.of(ttg.LocalAtomicScatterOp)
def _atomic_scatter(ctx: _Lowering, op: Operation) -> list[Value]:
    memory, values, indices = list(op.operands)[:3]
    _, _, view = ctx.parts(memory)
    axis = int(ir.IntegerAttr(op.attributes["axis"]).value)
    at = _pointers(memory, _offsets(view, indices, axis), shape_of(indices))
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
    *(ttng.InitBarrierOp, ttng.InvalBarrierOp, ttng.BarrierExpectOp, ttng.ArriveOnceOp),
    *(ttng.ArriveBehindCopiesOp, ttng.WaitBarrierOp, ttng.WaitBarrierIfOp, ttng.TMAStoreWaitOp),
)


@_RULES.of(*_NOTHING)
def _nothing(ctx: _Lowering, op: Operation) -> None:
    """Who comes here has waited: all that was begun is done."""
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
    descriptor, _, memory, condition, *indices = op.operands

    def copy() -> None:
        none = string_attr(_NONE)
        loaded = tt.DescriptorLoadOp(descriptor, indices, none, none, _block(descriptor)).result
        ctx.store(loaded, memory)

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
        is_signed = isinstance(value.type.element_type, ir.FloatType)
        tt.DescriptorReduceOp(
            descriptor, value, indices, string_attr(plain), ir.BoolAttr.get(not is_signed)
        )
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
