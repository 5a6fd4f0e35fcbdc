"""Ops of the `tt` dialect on blocks of a tensor in memory, given by where the tensor lies: block
pointers, which are at one block, and tensor descriptors, which are given offsets at each access.

`rewrite-tensor-pointer` and `rewrite-tensor-descriptor-to-pointer` make ordinary pointers of them.
"""

from collections.abc import Sequence

from proton.dialect import traits as t
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import (
    check_block,
    check_choice,
    check_element,
    check_type,
    reject,
    shape_of,
)
from proton.dialect.mlir import (
    AnyAttr,
    AnyType,
    Operand,
    Operation,
    OpView,
    Result,
    Type,
    Value,
    ir,
)
from proton.dialect.tt_core import TT, PointerType, is_block_pointer
from proton.dialect.tt_memory import CACHE_MODIFIERS, EVICTION_POLICIES
from proton.layout.tensor_map import IM2COL_RANKS, TF32

PADDINGS = ("zero", "nan")  # what a block has where its tensor has nothing
BOUNDARY_CHECK = "boundaryCheck"  # on tt.load and tt.store: the dimensions in which to look
PADDING = "padding"  # on tt.load: what lies outside
ORDERED_KINDS = ("add", "min", "max")  # which floats have, too
REDUCE_KINDS = (*ORDERED_KINDS, "and", "or", "xor")
MAX_RANK = 5  # of a descriptor's tensor


def _verify_ranks(op: Operation, rank: int, *groups: str) -> bool:
    for name in groups:
        if len(getattr(op, name)) != rank:
            return reject(op, f"{name} must have {rank} entries, got {len(getattr(op, name))}")
    return True


class MakeTensorPtrOp(
    TT.Operation, name="make_tensor_ptr", traits=[t.Pure, t.Speculatable, t.PassesPointers]
):
    """`tt.make_tensor_ptr %base, %shape, %strides, %offsets {order}`: a pointer to the block at
    `offsets` of a tensor, `!tt.ptr<tensor<16x8xf32>>`; `order` names its dimensions, fastest first.
    """

    base: Operand[AnyType]
    shape: Sequence[Operand[ir.IntegerType[64]]]
    strides: Sequence[Operand[ir.IntegerType[64]]]
    offsets: Sequence[Operand[ir.IntegerType[32]]]
    order: AnyAttr
    result: Result[AnyType]

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


class AdvanceOp(TT.Operation, name="advance", traits=[t.Pure, t.Speculatable, t.PassesPointers]):
    """`tt.advance %ptr, %offsets`: a pointer to the block so many elements further on."""

    ptr: Operand[AnyType]
    offsets: Sequence[Operand[ir.IntegerType[32]]]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "AdvanceOp") -> bool:
        if not is_block_pointer(op.ptr.type):
            return reject(op, f"operand 0 must be a pointer to a block, got {op.ptr.type}")
        return check_type(op, "result", op.result, op.ptr.type) and _verify_ranks(
            op, len(op.ptr.type.target.shape), "offsets"
        )


# Tensor descriptors


class TensorDescType(TT.Type, name="tensordesc"):
    """`!tt.tensordesc<tensor<64x32xf16>, "zero">`: a tensor in memory, of which blocks of this type
    are loaded and stored; what they have outside of it is "zero" or "nan", behind it "tf32" where
    loads round fp32."""

    block: ir.TypeAttr
    padding: ir.StringAttr

    @property
    def target(self) -> Type:
        """The tensor type of a block."""
        return ir.TypeAttr(self.block).value

    @property
    def outside(self) -> str:
        """What a block has outside of the tensor."""
        return str(ir.StringAttr(self.padding).value).partition(" ")[0]

    @property
    def loaded(self) -> str:
        """The element type of loads, "tf32" where they round to it."""
        rounds = ir.StringAttr(self.padding).value.endswith(TF32)
        return TF32 if rounds else str(self.target.element_type)

    @property
    def rank(self) -> int:
        """The dimensions of the tensor."""
        return len(self.target.shape)

    @property
    def index_count(self) -> int:
        """How many integers say where a block is."""
        return self.rank


class TensorDescIm2colType(TT.Type, name="tensordesc_im2col"):
    """`!tt.tensordesc_im2col<tensor<64x32xf16>, "zero", 4 : i32>`: a batch of images of so many
    dimensions, NWC to NDHWC, of which blocks of pixels and their channels are loaded. A block is at
    the indices of the first pixel, and behind these the offset of all along D, H and W."""

    block: ir.TypeAttr
    padding: ir.StringAttr
    dimensions: ir.IntegerAttr
    target, outside = TensorDescType.target, TensorDescType.outside
    loaded = TensorDescType.loaded

    @property
    def rank(self) -> int:
        """The dimensions of the tensor."""
        return int(ir.IntegerAttr(self.dimensions).value)

    @property
    def index_count(self) -> int:
        """How many integers say where a block is."""
        return 2 * self.rank - 2


def is_descriptor(type_: Type) -> bool:
    """True if a type is a tensor descriptor's, in either mode."""
    return isinstance(type_, TensorDescType | TensorDescIm2colType)


def check_images(op: Operation, type_: Type) -> bool:
    """Whether a descriptor or a map in im2col mode is of images, and its blocks of pixels."""
    block = list(type_.target.shape)
    return (type_.rank in IM2COL_RANKS and len(block) == 2) or reject(
        op, f"images have 3 to 5 dimensions, and blocks 2, got {type_.rank} and {block}"
    )


def _verify_descriptor(op: OpView) -> bool:
    type_ = op.desc.type
    if isinstance(type_, TensorDescIm2colType):
        return check_images(op, type_)
    return isinstance(type_, TensorDescType) or reject(
        op, f"operand 0 must be a tensor descriptor, got {type_}"
    )


def _verify_tiled(op: OpView) -> bool:
    return _verify_descriptor(op) and (
        isinstance(op.desc.type, TensorDescType)
        or reject(op, f"operand 0 must be a descriptor of tiles, got {op.desc.type}")
    )


def _verify_block(op: OpView, what: str, value: Value) -> bool:
    """The value is a block at as many indices as say where one is. Layouts are free."""
    block = op.desc.type.target
    return check_block(op, what, value, tuple(block.shape), block.element_type) and _verify_ranks(
        op, op.desc.type.index_count, "indices"
    )


def _verify_rows(op: OpView, what: str, value: Value) -> bool:
    """The value has a row of the descriptor's for each offset."""
    if not _verify_tiled(op):
        return False
    block = op.desc.type.target
    rows = shape_of(op.x_offsets)
    if len(block.shape) != 2 or block.shape[0] != 1:
        return reject(op, f"the descriptor's block must be one row, got {list(block.shape)}")
    if len(rows) != 1:
        return reject(op, f"x_offsets must have one dimension, got {rows}")
    i32 = integer(32)
    shape = (rows[0], block.shape[1])
    return check_element(op, "x_offsets", op.x_offsets, i32) and check_block(
        op, what, value, shape, block.element_type
    )


class MakeTensorDescOp(
    TT.Operation, name="make_tensor_descriptor", traits=[t.Pure, t.Speculatable]
):
    """`tt.make_tensor_descriptor %base, %shape, %strides`: the tensor at `base`. The last stride is
    1."""

    base: Operand[AnyType]
    shape: Sequence[Operand[ir.IntegerType[32]]]
    strides: Sequence[Operand[ir.IntegerType[64]]]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "MakeTensorDescOp") -> bool:
        if not isinstance(op.result.type, TensorDescType):
            return reject(op, f"result must be a tensor descriptor, got {op.result.type}")
        block = op.result.type.target
        rank, pointer = len(block.shape), PointerType.get(ir.TypeAttr.get(block.element_type))
        if not 1 <= rank <= MAX_RANK:
            return reject(op, f"a descriptor has 1 to {MAX_RANK} dimensions, got {rank}")
        if (padding := ir.StringAttr(op.result.type.padding).value) not in PADDINGS:
            return reject(op, f"padding must be one of {PADDINGS}, got {padding}")
        return _verify_ranks(op, rank, "shape", "strides") and check_type(
            op, "base", op.base, pointer
        )


class DescriptorLoadOp(TT.Operation, name="descriptor_load", traits=[t.Reads, t.LayoutAnchor]):
    """`tt.descriptor_load %desc, %indices {cache, evict}`: the block at `indices`."""

    desc: Operand[AnyType]
    indices: Sequence[Operand[ir.IntegerType[32]]]
    cache: ir.StringAttr
    evict: ir.StringAttr
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "DescriptorLoadOp") -> bool:
        return (
            _verify_descriptor(op)
            and _verify_block(op, "result", op.result)
            and check_choice(op, "cache", op.cache, CACHE_MODIFIERS)
            and check_choice(op, "evict", op.evict, EVICTION_POLICIES)
        )


class DescriptorStoreOp(TT.Operation, name="descriptor_store", traits=[t.Writes]):
    """`tt.descriptor_store %desc, %src, %indices`: writes what of the block is in the tensor."""

    desc: Operand[AnyType]
    src: Operand[AnyType]
    indices: Sequence[Operand[ir.IntegerType[32]]]

    @staticmethod
    def verify_invariants(op: "DescriptorStoreOp") -> bool:
        return _verify_tiled(op) and _verify_block(op, "src", op.src)


class DescriptorReduceOp(TT.Operation, name="descriptor_reduce", traits=[t.Writes]):
    """`tt.descriptor_reduce %desc, %src, %indices {kind, is_unsigned}`: combines each element in
    memory with the block's, atomically."""

    desc: Operand[AnyType]
    src: Operand[AnyType]
    indices: Sequence[Operand[ir.IntegerType[32]]]
    kind: ir.StringAttr
    is_unsigned: ir.IntegerAttr

    @property
    def rmw_op(self) -> str:
        """The same as `tt.atomic_rmw` calls it: "fadd" of floats, "umax" of unsigned integers."""
        kind = str(self.kind.value)
        if kind not in ORDERED_KINDS:
            return kind
        if isinstance(self.desc.type.target.element_type, ir.FloatType):
            return f"f{kind}"
        return f"u{kind}" if self.is_unsigned.value and kind != "add" else kind

    @staticmethod
    def verify_invariants(op: "DescriptorReduceOp") -> bool:
        return (
            _verify_tiled(op)
            and _verify_block(op, "src", op.src)
            and check_choice(op, "kind", op.kind, REDUCE_KINDS)
        )


class DescriptorGatherOp(TT.Operation, name="descriptor_gather", traits=[t.Reads, t.LayoutAnchor]):
    """`tt.descriptor_gather %desc, %x_offsets, %y_offset`: a row for each of `x_offsets`, from
    column `y_offset` on."""

    desc: Operand[AnyType]
    x_offsets: Operand[AnyType]
    y_offset: Operand[ir.IntegerType[32]]
    result: Result[AnyType]

    @staticmethod
    def verify_invariants(op: "DescriptorGatherOp") -> bool:
        return _verify_rows(op, "result", op.result)


class DescriptorScatterOp(TT.Operation, name="descriptor_scatter", traits=[t.Writes]):
    """`tt.descriptor_scatter %desc, %x_offsets, %y_offset, %src`: writes each row of `src` to one
    of `x_offsets`, from column `y_offset` on."""

    desc: Operand[AnyType]
    x_offsets: Operand[AnyType]
    y_offset: Operand[ir.IntegerType[32]]
    src: Operand[AnyType]

    @staticmethod
    def verify_invariants(op: "DescriptorScatterOp") -> bool:
        return _verify_rows(op, "src", op.src)


class DescriptorSizeOp(TT.Operation, name="descriptor_size", traits=[t.Pure, t.Speculatable]):
    """`tt.descriptor_size %desc {axis}`: the tensor's size along a dimension, i32."""

    desc: Operand[AnyType]
    axis: ir.IntegerAttr
    result: Result[ir.IntegerType[32]]

    @staticmethod
    def verify_invariants(op: "DescriptorSizeOp") -> bool:
        return _verify_descriptor(op) and _verify_axis(op)


class DescriptorStrideOp(TT.Operation, name="descriptor_stride", traits=[t.Pure, t.Speculatable]):
    """`tt.descriptor_stride %desc {axis}`: elements from one index of a dimension to the next,
    i64."""

    desc: Operand[AnyType]
    axis: ir.IntegerAttr
    result: Result[ir.IntegerType[64]]

    @staticmethod
    def verify_invariants(op: "DescriptorStrideOp") -> bool:
        return _verify_descriptor(op) and _verify_axis(op)


def _verify_axis(op: OpView) -> bool:
    rank = op.desc.type.rank
    return 0 <= op.axis.value < rank or reject(
        op, f"axis must lie in [0, {rank}), got {op.axis.value}"
    )
