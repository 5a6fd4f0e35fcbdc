"""The `tts` dialect: structured memory access, between `tt` and `memref`.

A structured pointer is a base address and, per dimension, a size, a stride and an offset in
elements, and optionally the size of the parent dimension at which addresses wrap around, and a row
of indices, which says where each element of the dimension is.
"""

from collections.abc import Sequence

from proton.dialect.builtin import integer, is_pointer
from proton.dialect.diagnostics import check_type, reject, shape_of
from proton.dialect.mlir import AnyAttr, AnyType, Operand, OpView, Result, Type, ext, ir
from proton.dialect.traits import Pure, Reads, Writes
from proton.dialect.tt_core import PointerType


class TTS(ext.Dialect, name="tts"):
    """Structured pointers, loads and stores."""


class StructuredPointerType(TTS.Type, name="tptr"):
    """`!tts.tptr<tensor<64x32xf32>>`: where the elements of such a block lie."""

    block: ir.TypeAttr

    @property
    def target(self) -> Type:
        """The tensor type of the block."""
        return ir.TypeAttr(self.block).value


class MakeStructuredPtrOp(TTS.Operation, name="make_tptr", traits=[Pure]):
    """`tts.make_tptr %base, %strides, %offsets, %parents, %indices {wraps, gathers, order}`.

    Element (i0, i1, ...) lies at base + sum over d of wrap_d(offsets[d] + i_d * strides[d]) +
    gather_d[i_d], all in elements, where wrap_d takes the remainder by parents[d] (in elements,
    too) if wraps[d] is 1 and changes nothing if it is 0, and gather_d is a row of 64-bit integers
    if gathers[d] is 1 and 0 if it is 0. `parents` has an operand for each dimension that wraps,
    `indices` one for each that gathers. `order` names the dimensions, fastest first.
    """

    base: Operand[AnyType]
    strides: Sequence[Operand[ir.IndexType]]
    offsets: Sequence[Operand[ir.IndexType]]
    parents: Sequence[Operand[ir.IndexType]]
    indices: Sequence[Operand[AnyType]]
    wraps: AnyAttr
    gathers: AnyAttr
    order: AnyAttr
    result: Result[StructuredPointerType]

    @staticmethod
    def verify_invariants(op: "MakeStructuredPtrOp") -> bool:
        if not isinstance(op.base.type, PointerType) and not is_pointer(op.base.type):
            return reject(op, f"base must be a pointer, got {op.base.type}")
        shape = list(op.result.type.target.shape)
        rank = len(shape)
        counts = [len(found) for found in (op.strides, op.offsets, op.wraps, op.gathers)]
        if counts != [rank] * 4:
            numbers = f"{', '.join(map(str, counts[:3]))} and {counts[3]}"
            return reject(
                op, f"strides, offsets, wraps and gathers must have {rank} entries, got {numbers}"
            )
        if len(op.parents) != sum(op.wraps):
            return reject(op, f"parents must have {sum(op.wraps)} entries, got {len(op.parents)}")
        if len(op.indices) != sum(op.gathers):
            number = len(op.indices)
            return reject(op, f"indices must have {sum(op.gathers)} entries, got {number}")
        if not all(check_type(op, "a row of indices", row, index_row()) for row in op.indices):
            return False
        return sorted(op.order) == list(range(rank)) or reject(
            op, f"order must permute {rank} dimensions, got {list(op.order)}"
        )


def index_row() -> Type:
    """The type of a row of indices: of no known size, since IRDL has operands of a group be of one
    type."""
    return ir.RankedTensorType.get([ir.ShapedType.get_dynamic_size()], integer(64))


def _verify_mask(op: OpView, shape: tuple[int, ...]) -> bool:
    rank = len(shape)
    for name in ("dims", "starts"):
        count = len(getattr(op, name))
        if count not in (0, rank):
            return reject(op, f"{name} must have 0 or {rank} entries, got {count}")
    if op.mask is None:
        return True
    return check_type(op, "mask", op.mask, ir.RankedTensorType.get(shape, integer(1)))


class StructuredLoadOp(TTS.Operation, name="load", traits=[Reads]):
    """`tts.load %ptr, %dims, %starts, %other?, %mask?`: the block, of which only the first
    `dims[d]` elements of each dimension are read, from element `starts[d]` on, and of these those
    for which `mask` is true; the rest is `other` (a scalar; 0 without it). `dims` is empty where
    nothing is cut, `starts` where all are 0."""

    ptr: Operand[StructuredPointerType]
    dims: Sequence[Operand[ir.IndexType]]
    starts: Sequence[Operand[ir.IndexType]]
    result: Result[AnyType]
    other: Operand[AnyType] | None = None
    mask: Operand[AnyType] | None = None

    @staticmethod
    def verify_invariants(op: "StructuredLoadOp") -> bool:
        if not _verify_mask(op, shape_of(op.result)):
            return False
        block = op.ptr.type.target
        return check_type(op, "result", op.result, block) and (
            op.other is None or check_type(op, "other", op.other, block.element_type)
        )


class StructuredStoreOp(TTS.Operation, name="store", traits=[Writes]):
    """`tts.store %ptr, %value, %dims, %starts, %mask?`: writes the elements that a load with these
    `dims`, `starts` and `mask` reads."""

    ptr: Operand[StructuredPointerType]
    value: Operand[AnyType]
    dims: Sequence[Operand[ir.IndexType]]
    starts: Sequence[Operand[ir.IndexType]]
    mask: Operand[AnyType] | None = None

    @staticmethod
    def verify_invariants(op: "StructuredStoreOp") -> bool:
        return _verify_mask(op, shape_of(op.value)) and check_type(
            op, "value", op.value, op.ptr.type.target
        )
