"""Block pointers become ordinary pointers, with masks where a boundary is checked."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.dialect import OpRules, tt
from proton.dialect.builtin import integer
from proton.dialect.emit import filled
from proton.dialect.mlir import Module, Operation, Type, Value, arith, ir
from proton.passes import Pass, register
from proton.transforms.tile.block_addresses import Tensor, widened
from proton.transforms.tile.unpack import Parts, Unpacking

_RULES = OpRules[Callable[[Operation, Unpacking], Parts | None]]()


@register
@dataclass(frozen=True)
class RewriteTensorPointer(Pass):
    """A block pointer becomes its base, the tensor's shape and strides, and its offsets.

        %p = tt.make_tensor_ptr %base, [%m], [%stride], [%o] : !tt.ptr<tensor<16xf32>>
        %q = tt.advance %p, [%d];  %x = tt.load %q {boundaryCheck = [0]}
    becomes
        %n = %o + %d
        %x = tt.load %base + %n * %stride + range(0, 16) * %stride, 0 <= %n + range(0, 16) < %m
    """

    name: ClassVar[str] = "rewrite-tensor-pointer"

    def run(self, module: Module) -> None:
        Unpacking(_parts_of, tt.MakeTensorPtrOp, _RULES).run(module)


def _parts_of(type_: Type) -> list[Type] | None:
    if not tt.is_block_pointer(type_):
        return None
    block = type_.target
    rank = len(block.shape)
    i32, i64 = integer(32), integer(64)
    pointer = tt.PointerType.get(ir.TypeAttr.get(block.element_type))
    return [pointer, *[i64] * (2 * rank), *[i32] * rank]


@_RULES.of(tt.MakeTensorPtrOp)
def _make(op: Operation, unpacking: Unpacking) -> Parts:
    view = op.opview
    return [view.base, *view.shape, *view.strides, *view.offsets]


@_RULES.of(tt.AdvanceOp)
def _advance(op: Operation, unpacking: Unpacking) -> Parts:
    moves = list(op.opview.offsets)
    parts = unpacking.parts(op.operands[0])
    tensor, offsets = parts[: -len(moves)], parts[-len(moves) :]
    sums = [arith.AddIOp(*pair).result for pair in zip(offsets, moves, strict=True)]
    return [*tensor, *sums]


def _pointers(op: Operation, unpacking: Unpacking) -> tuple[Value, Value | None]:
    """The pointers and the mask of an access; None for a mask that is not needed."""
    block = tuple(op.operands[0].type.target.shape)
    base, *numbers = unpacking.parts(op.operands[0])
    rank = len(block)
    tensor = Tensor(base, numbers[:rank], numbers[rank : 2 * rank])
    offsets = [widened(offset) for offset in numbers[2 * rank :]]
    dims = list(op.attributes[tt.BOUNDARY_CHECK]) if tt.BOUNDARY_CHECK in op.attributes else []
    return tensor.pointers(offsets, block), tensor.inside(offsets, block, dims)


@_RULES.of(tt.LoadOp)
def _load(op: Operation, unpacking: Unpacking) -> None:
    view, type_ = op.opview, op.results[0].type
    pointers, mask = _pointers(op, unpacking)
    other = None
    if mask is not None and tt.PADDING in op.attributes:
        number = float("nan") if op.attributes[tt.PADDING].value == "nan" else 0
        other = filled(type_, number)
    new = tt.LoadOp(pointers, view.cache, view.evict, view.volatile, type_, mask=mask, other=other)
    op.results[0].replace_all_uses_with(new.result)


@_RULES.of(tt.StoreOp)
def _store(op: Operation, unpacking: Unpacking) -> None:
    view = op.opview
    pointers, mask = _pointers(op, unpacking)
    tt.StoreOp(pointers, view.value, view.cache, view.evict, mask=mask)
