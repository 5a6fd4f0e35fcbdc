"""Ops of the `tt` dialect on blocks of a tensor in memory, given by where the tensor lies: block
pointers. `rewrite-tensor-pointer` makes ordinary pointers of them.
"""

from collections.abc import Sequence
from typing import Any

from proton.dialect.diagnostics import check_type, reject
from proton.dialect.mlir import ext, ir
from proton.dialect.traits import PassesPointers, Pure, Speculatable
from proton.dialect.tt import TT, PointerType, is_block_pointer

Operand, Result = ext.Operand, ext.Result
PADDINGS = ("zero", "nan")  # what a block has where its tensor has nothing
BOUNDARY_CHECK = "boundaryCheck"  # on tt.load and tt.store: the dimensions in which to look
PADDING = "padding"  # on tt.load: what lies outside


def _verify_ranks(op: Any, rank: int, *groups: str) -> bool:
    for name in groups:
        if len(getattr(op, name)) != rank:
            return reject(op, f"{name} must have {rank} entries, got {len(getattr(op, name))}")
    return True


class MakeTensorPtrOp(
    TT.Operation, name="make_tensor_ptr", traits=[Pure, Speculatable, PassesPointers]
):
    """`tt.make_tensor_ptr %base, %shape, %strides, %offsets {order}`: a pointer to the block at
    `offsets` of a tensor, `!tt.ptr<tensor<16x8xf32>>`; `order` names its dimensions, fastest first.
    """

    base: Operand[Any]
    shape: Sequence[Operand[ir.IntegerType[64]]]
    strides: Sequence[Operand[ir.IntegerType[64]]]
    offsets: Sequence[Operand[ir.IntegerType[32]]]
    order: Any
    result: Result[Any]

    @staticmethod
    def verify_invariants(op: "MakeTensorPtrOp") -> bool:
        if not is_block_pointer(op.result.type):
            return reject(op, f"result must be a pointer to a block, got {op.result.type}")
        block = op.result.type.target
        rank = len(block.shape)
        if not _verify_ranks(op, rank, "shape", "strides", "offsets"):
            return False
        if sorted(op.order) != list(range(rank)):
            return reject(op, f"order must permute {rank} dimensions, got {list(op.order)}")
        return check_type(op, "base", op.base, PointerType.get(ir.TypeAttr.get(block.element_type)))


class AdvanceOp(TT.Operation, name="advance", traits=[Pure, Speculatable, PassesPointers]):
    """`tt.advance %ptr, %offsets`: a pointer to the block so many elements further on."""

    ptr: Operand[Any]
    offsets: Sequence[Operand[ir.IntegerType[32]]]
    result: Result[Any]

    @staticmethod
    def verify_invariants(op: "AdvanceOp") -> bool:
        if not is_block_pointer(op.ptr.type):
            return reject(op, f"operand 0 must be a pointer to a block, got {op.ptr.type}")
        return check_type(op, "result", op.result, op.ptr.type) and _verify_ranks(
            op, len(op.ptr.type.target.shape), "offsets"
        )
