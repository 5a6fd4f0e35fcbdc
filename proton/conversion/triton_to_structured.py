"""`tt` loads and stores of structured pointers become `tts` ops.

A load or store whose pointers are structured and whose mask is a box (proton.analysis.structure)
becomes `tts.make_tptr` with `tts.load` or `tts.store`; loops that carry structured pointers
carry one index instead. Everything else stays as it is, for the gather and scatter fallback.
"""

from dataclasses import dataclass
from typing import Any, ClassVar

from proton.analysis.scalar import Materializer
from proton.analysis.structure import Box, Structure, StructureAnalysis
from proton.dialect import tt, tts
from proton.dialect.builtin import i32_attr, integer
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.mlir import Attribute, Block, Module, Operation, Type, Value, arith, ir
from proton.dialect.regions import ForLoop, end_of
from proton.dialect.walk import before, defining_op, functions, ops_named, replace
from proton.passes import Pass, register


@dataclass
class _Access:
    """A load or store that can be rewritten, and how."""

    op: Operation
    pointer: Structure
    box: Box | None
    other: Any  # scalar Value, or None
    select: bool  # `other` is not uniform: select it afterwards


@dataclass
class _LoopPlan:
    """A loop to rewrite: which carried values, and their structures on entry and at the end."""

    loop: Any
    positions: list[int]
    initials: list[Any]
    yields: list[Any]


@register
@dataclass(frozen=True)
class TritonToStructured(Pass):
    """Rewrites structured `tt.load` and `tt.store` to `tts`; leaves the rest alone."""

    name: ClassVar[str] = "triton-to-structured"

    def run(self, module: Module) -> None:
        for function in functions(module):
            for block in function.regions[0].blocks:
                analysis = StructureAnalysis()
                analysis.analyse_loops(block)
                accesses = _plan(analysis, function)
                substitutes: dict[Any, Any] = {}
                plans = [
                    _LoopPlan(
                        loop,
                        positions,
                        [analysis.structure(ForLoop(loop).init_args[p]) for p in positions],
                        [analysis.structure(ForLoop(loop).yielded[p]) for p in positions],
                    )
                    for loop, positions in _outer_first(analysis, function)
                    if positions
                ]
                # An inner loop may start from what an outer one carries, and an outer one end
                # with an inner one's result: all heads first, then all ends.
                blocks = [_rewrite_head(plan, substitutes) for plan in plans]
                for plan, body in zip(plans, blocks, strict=True):
                    _rewrite_end(plan, body, substitutes)
                for access in accesses:
                    _rewrite_access(access, substitutes)


def _outer_first(analysis: StructureAnalysis, function: Operation) -> list[tuple[Any, list[int]]]:
    """The analysed loops in pre-order."""
    loops = ops_named(function, "scf.for")
    keys = [loop.regions[0].blocks[0].arguments[0] for loop in loops]
    return [analysis.loops[key] for key in keys if key in analysis.loops]


def _plan(analysis: StructureAnalysis, function: Operation) -> list[_Access]:
    """The accesses to rewrite, decided before any IR changes."""
    accesses = []
    for op in ops_named(function, "tt.load", "tt.store"):
        view = op.opview
        if not shape_of(view.ptr) or isinstance(tt.pointee_of(view.ptr), tt.PointerType):
            continue
        pointer = analysis.structure(view.ptr)
        if pointer is None or pointer.source is None:
            continue
        box = None
        if view.mask is not None and (box := analysis.box(view.mask)) is None:
            continue
        other, select = None, False
        if op.name == "tt.load" and view.mask is not None and view.other is not None:
            other = uniform_scalar(view.other)
            select = other is None
        accesses.append(_Access(op, pointer, box, other, select))
    return accesses


def uniform_scalar(value: Value) -> Value | Attribute | None:
    """The scalar (Value or Attribute) that fills a tensor; None where it varies."""
    op = defining_op(value)
    if op is None:
        return None
    if op.name in ("tt.broadcast", "tt.expand_dims", "tt.reshape"):
        return uniform_scalar(op.operands[0])
    if op.name == "tt.splat":
        return op.operands[0]
    if op.name == "arith.constant":
        attribute = op.attributes["value"]
        if isinstance(attribute, ir.DenseElementsAttr) and attribute.is_splat:
            return attribute.get_splat_value()
    return None


def _rewrite_head(plan: _LoopPlan, substitutes: dict[Any, Any]) -> Block:
    """A new `scf.for` that carries scalars in place of the structured tensors; its body, which
    still yields the tensors."""
    loop, positions, initials = plan.loop, plan.positions, plan.initials
    old = ForLoop(loop)
    old_block, init_args = old.body, old.init_args
    with before(loop):
        for position, structure in zip(positions, initials, strict=True):
            init_args[position] = Materializer(substitutes)(structure.scalar)
        locations = [argument.location for argument in old_block.arguments]
        new_loop = ForLoop.create(old.bounds, init_args, loop.attributes, locations)
    new, block = new_loop.op, new_loop.body
    for op in list(old_block.operations):
        block.append(op.operation)
    structures = dict(zip(positions, initials, strict=True))
    for place, (was, fresh) in enumerate(zip(old_block.arguments, block.arguments, strict=True)):
        with ir.InsertionPoint.at_block_begin(block), loop.location:
            _substitute(was, fresh, structures.get(place - 1), substitutes)
    for place, (was, fresh) in enumerate(zip(loop.results, new.results, strict=True)):
        with before(loop):
            _substitute(was, fresh, structures.get(place), substitutes)
    loop.erase()
    return block


def _substitute(
    old: Value, fresh: Value, structure: Structure | None, substitutes: dict[Value, Value]
) -> None:
    """Puts a new loop's value in the place of the old one's: as it is, or as the scalar of a
    structured tensor. An integer's scalar is cut to the tensor's width, where the sum wraps."""
    substitutes[old] = fresh  # structures may name it
    if structure is None:
        old.replace_all_uses_with(fresh)
        return
    if structure.source is None:
        substitutes[old] = arith.IndexCastOp(old.type.element_type, fresh).result
    old.replace_all_uses_with(_rebuild(structure, old.type, fresh, substitutes))


def _rewrite_end(plan: _LoopPlan, body: Block, substitutes: dict[Value, Value]) -> None:
    """Makes a rewritten loop yield the scalars."""
    terminator = end_of(body)
    with before(terminator):
        for position, structure in zip(plan.positions, plan.yields, strict=True):
            terminator.operands[position] = Materializer(substitutes)(structure.scalar)


def _rebuild(
    structure: Structure, type_: Type, scalar: Value, substitutes: dict[Value, Value]
) -> Value:
    """The tensor of a structure, for uses that need it; dead where there are none."""
    emit, shape = Materializer(substitutes), tuple(type_.shape)
    i64 = integer(64)
    is_pointer = tt.is_pointer_like(type_)
    element = i64 if is_pointer else type_.element_type
    offsets = ir.RankedTensorType.get(shape, element)

    def cast(value: Value) -> Value:
        return arith.IndexCastOp(element, value).result

    total = tt.SplatOp(cast(scalar), offsets).result
    for axis, dim in enumerate(structure.dims):
        if dim.stride == 0 and dim.parent is None:
            continue
        ones = [1] * len(shape)
        ones[axis] = shape[axis]
        line_type = ir.RankedTensorType.get([shape[axis]], element)
        i32 = integer(32)
        line = tt.MakeRangeOp(
            i32_attr(0),
            i32_attr(shape[axis]),
            ir.RankedTensorType.get([shape[axis]], i32),
        ).result
        if element != i32:
            line = arith.ExtSIOp(line_type, line).result
        stride = tt.SplatOp(cast(emit(dim.stride)), line_type).result
        line = arith.MulIOp(line, stride).result
        if dim.parent is not None:
            line = arith.AddIOp(line, tt.SplatOp(cast(emit(dim.offset)), line_type).result).result
            line = arith.RemSIOp(line, tt.SplatOp(cast(emit(dim.parent)), line_type).result).result
        line = tt.ReshapeOp(line, ir.RankedTensorType.get(ones, element)).result
        line = tt.BroadcastOp(line, offsets).result
        total = arith.AddIOp(total, line).result
    if not is_pointer:
        return total
    source = tt.SplatOp(structure.source, type_).result
    return tt.AddPtrOp(source, total, type_).result


def _rewrite_access(access: _Access, substitutes: dict[Value, Value]) -> None:
    op = access.op
    view = op.opview
    with before(op):
        emit = Materializer(substitutes)
        pointee = tt.pointee_of(view.ptr)
        block = ir.RankedTensorType.get(shape_of(view.ptr), pointee)
        pointer = _make_tptr(access.pointer, block, emit)
        dims, starts = [], []
        if access.box is not None:
            dims = [emit(count) for count in access.box.counts]
            if any(start != 0 for start in access.box.starts):
                starts = [emit(start) for start in access.box.starts]
        if op.name == "tt.store":
            tts.StoreOp(pointer, view.value, dims, starts)
            op.erase()
            return
        other = access.other
        if isinstance(other, ir.Attribute):
            other = arith.ConstantOp(element_of(view.result), other).result
        value = tts.LoadOp(pointer, dims, starts, block, other=other).result
        if access.select:
            value = arith.SelectOp(view.mask, value, view.other).result
        replace(op, [value])


def _make_tptr(pointer: Structure, block: Type, emit: Materializer) -> Value:
    base = pointer.source
    if pointer.scalar != 0:
        base = tt.AddPtrOp(base, emit(pointer.scalar), base.type).result
    parents = [emit(dim.parent) for dim in pointer.dims if dim.parent is not None]
    wraps = [int(dim.parent is not None) for dim in pointer.dims]
    return tts.MakeTensorPtrOp(
        base,
        [emit(dim.stride) for dim in pointer.dims],
        [emit(dim.offset) for dim in pointer.dims],
        parents,
        ir.DenseI64ArrayAttr.get(wraps),
        ir.DenseI64ArrayAttr.get(_order(pointer)),
        tts.StructuredPointerType.get(block),
    ).result


def _order(pointer: Structure) -> list[int]:
    """Dimensions, the one with stride 1 first, otherwise the last one first."""
    axes = list(reversed(range(len(pointer.dims))))
    axes.sort(key=lambda axis: pointer.dims[axis].stride != 1)
    return axes
