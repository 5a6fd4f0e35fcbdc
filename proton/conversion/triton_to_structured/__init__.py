"""`tt` loads and stores of structured pointers become `tts` ops.

A load or store whose pointers are structured (proton.analysis.structure) becomes `tts.make_tptr`
with `tts.load` or `tts.store`. Loops and branches that carry structured tensors carry numbers
instead (carried.py). Everything else stays as it is, for the gather and scatter fallback.
"""

from dataclasses import dataclass
from typing import ClassVar

from proton.analysis.scalar import Materializer, Substitutes
from proton.analysis.structure import Mask, MaskBox, Structure, StructureAnalysis
from proton.conversion.triton_to_structured.carried import gathered_line, plan
from proton.dialect import isa, tt, tts
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import create
from proton.dialect.mlir import Attribute, Module, Operation, Type, Value, arith, ir, tensor
from proton.dialect.walk import before, constant_in, defining_op, functions, ops_named, replace
from proton.passes import Pass, register


@dataclass
class _Access:
    """A load or store that can be rewritten, and how."""

    op: Operation
    pointer: Structure
    mask: Mask | None
    other: Value | Attribute | None  # a scalar; None: there is none
    select: bool  # `other` is not uniform: select it afterwards


@register
@dataclass(frozen=True)
class TritonToStructured(Pass):
    """Rewrites structured `tt.load` and `tt.store` to `tts`; leaves the rest alone."""

    name: ClassVar[str] = "triton-to-structured"

    def run(self, module: Module) -> None:
        for function in functions(module):
            analysis = StructureAnalysis()
            for block in function.regions[0].blocks:
                analysis.analyse(block)
            accesses = _accesses(analysis, function)
            rewritings = plan(function, analysis)
            substitutes: Substitutes = {}
            # An inner loop may start from what an outer one carries, and an outer one end with an
            # inner one's result: all heads first, then all ends.
            for rewriting in rewritings:
                rewriting.rewrite_head(substitutes)
            for rewriting in rewritings:
                rewriting.rewrite_ends(substitutes)
            for access in accesses:
                _rewrite_access(access, substitutes)


def _accesses(analysis: StructureAnalysis, function: Operation) -> list[_Access]:
    """The accesses to rewrite, decided before any IR changes."""
    accesses = []
    for op in ops_named(function, tt.LoadOp, tt.StoreOp):
        view = op.opview
        pointer = analysis.structure(view.ptr) if shape_of(view.ptr) else None
        if pointer is None or pointer.source is None or not _is_worth_it(pointer, view.ptr):
            continue
        if isa(op, tt.LoadOp) and view.volatile.value:  # each element is loaded once, here
            continue
        mask = None if view.mask is None else analysis.mask(view.mask)
        other, select = None, False
        if isa(op, tt.LoadOp) and view.mask is not None and view.other is not None:
            other = uniform_scalar(view.other)
            select = other is None
        accesses.append(_Access(op, pointer, mask, other, select))
    return accesses


def _is_worth_it(pointer: Structure, value: Value) -> bool:
    """True if elements lie side by side, or evenly apart: where a tensor says where each one is,
    that tensor of addresses is as good."""
    pairs = zip(pointer.dims, shape_of(value), strict=True)
    return not pointer.gathers or any(size > 1 and not dim.gathers for dim, size in pairs)


def uniform_scalar(value: Value) -> Value | Attribute | None:
    """The scalar (Value or Attribute) that fills a tensor; None where it varies."""
    op = defining_op(value)
    if op is None:
        return None
    if isa(op, tt.BroadcastOp, tt.ExpandDimsOp, tt.ReshapeOp):
        return uniform_scalar(op.operands[0])
    if isa(op, tt.SplatOp):
        return op.operands[0]
    return constant_in(value)


def _rewrite_access(access: _Access, substitutes: Substitutes) -> None:
    op = access.op
    view = op.opview
    with before(op):
        emit = Materializer(substitutes)
        pointee = tt.pointee_of(view.ptr)
        block = ir.RankedTensorType.get(shape_of(view.ptr), pointee)
        pointer = _make_tptr(access.pointer, block, emit)
        dims, starts, chosen = _limits(access.mask, emit)
        if isa(op, tt.StoreOp):
            tts.StructuredStoreOp(pointer, view.value, dims, starts, mask=chosen)
            op.erase()
            return
        other = access.other
        if isinstance(other, ir.Attribute):
            other = arith.ConstantOp(element_of(view.result), other).result
        value = tts.StructuredLoadOp(pointer, dims, starts, block, other=other, mask=chosen).result
        if access.select:
            value = arith.SelectOp(view.mask, value, view.other).result
        substitutes[op.results[0]] = value  # it may be where another access gathers from
        replace(op, [value])


def _limits(mask: Mask | None, emit: Materializer) -> tuple[list[Value], list[Value], Value | None]:
    """The operands of an access that a mask makes: counts, starts, and what is no box."""
    if mask is None:
        return [], [], None
    if mask.others and mask.box == MaskBox.first(shape_of(emit(mask.others[0]))):
        return [], [], _all_of(mask, emit)
    dims, starts = [emit(count) for count in mask.box.counts], []
    if any(start != 0 for start in mask.box.starts):
        starts = [emit(start) for start in mask.box.starts]
    return dims, starts, _all_of(mask, emit)


def _all_of(mask: Mask, emit: Materializer) -> Value | None:
    """What of a mask is no box, as one tensor."""
    chosen = None
    for other in mask.others:
        value = emit(other)
        chosen = value if chosen is None else arith.AndIOp(chosen, value).result
    return chosen


def _make_tptr(pointer: Structure, block: Type, emit: Materializer) -> Value:
    assert pointer.source is not None
    base = emit(pointer.source)
    if pointer.scalar != 0:
        base = tt.AddPtrOp(base, emit(pointer.scalar), base.type).result
    parents = [emit(dim.parent) for dim in pointer.dims if dim.parent is not None]
    indices = [
        create(tensor.CastOp, tts.index_row(), gathered_line(dim, size, integer(64), emit))
        for dim, size in zip(pointer.dims, block.shape, strict=True)
        if dim.gathers
    ]
    array = ir.DenseI64ArrayAttr.get
    return tts.MakeStructuredPtrOp(
        base,
        [emit(dim.stride) for dim in pointer.dims],
        [emit(dim.offset) for dim in pointer.dims],
        parents,
        indices,
        array([int(dim.parent is not None) for dim in pointer.dims]),
        array([int(bool(dim.gathers)) for dim in pointer.dims]),
        array(_order(pointer)),
        tts.StructuredPointerType.get(block),
    ).result


def _order(pointer: Structure) -> list[int]:
    """Dimensions, the one with stride 1 first, otherwise the last one first."""
    axes = list(reversed(range(len(pointer.dims))))
    axes.sort(key=lambda axis: pointer.dims[axis].stride != 1)
    return axes
