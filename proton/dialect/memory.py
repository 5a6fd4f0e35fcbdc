"""Memrefs over raw addresses."""

from collections.abc import Sequence

from proton.dialect.builtin import integer, segments_of
from proton.dialect.emit import create, effect
from proton.dialect.mlir import Type, Value, arith, ir, llvm, memref
from proton.dialect.walk import defining_op

BUFFER_ALIGNMENT = 64  # bytes: a cache line, an AVX-512 register
GLOBAL, SHARED = 1, 3  # address spaces of a GPU
DYNAMIC = -(1 << 63)  # ShapedType::kDynamic


def pointer_type(space: int = 0) -> Type:
    """`!llvm.ptr`, or `!llvm.ptr<space>`."""
    return llvm.PointerType.get(space)


def element_pointer(base: Value, offset: Value, element: Type) -> Value:
    """The address `offset` (i64) elements after `base`."""
    dynamic = ir.DenseI32ArrayAttr.get([-(1 << 31)])  # GEPOp::kDynamicIndex
    return llvm.GEPOp(base.type, base, [offset], dynamic, element, None).result


def byte_pointer(base: Value, offset: int) -> Value:
    """The address a constant number of bytes after `base`."""
    constant = ir.DenseI32ArrayAttr.get([offset])
    i8 = integer(8)
    return llvm.GEPOp(base.type, base, [], constant, i8, None).result


def memref_at(
    address: Value,
    shape: tuple[int, ...],
    element: Type,
    strides: Sequence[int | Value] | None = None,
) -> Value:
    """A memref of `shape` whose first element is at `address`.

    `strides` (in elements; ints or index values) default to row-major.
    """
    if strides is None:
        sizes = [1] * len(shape)
        for axis in reversed(range(len(shape) - 1)):
            sizes[axis] = sizes[axis + 1] * shape[axis + 1]
        strides = sizes
        type_ = ir.MemRefType.get(shape, element)
    else:
        static = [s if isinstance(s, int) else DYNAMIC for s in strides]
        type_ = ir.MemRefType.get(shape, element, layout=ir.StridedLayoutAttr.get(0, static))
    origin = _scalar_memref(address, element)
    dynamic = [s for s in strides if not isinstance(s, int)]
    array = ir.DenseI64ArrayAttr.get
    return create(
        "memref.reinterpret_cast",
        type_,
        origin,
        *dynamic,
        static_offsets=array([0]),
        static_sizes=array(shape),
        static_strides=array([s if isinstance(s, int) else DYNAMIC for s in strides]),
        operandSegmentSizes=ir.DenseI32ArrayAttr.get([1, 0, 0, len(dynamic)]),
    )


def taken_apart(view: Value) -> list[Value]:
    """A memref's address (`!llvm.ptr`), and its strides as far as its type does not say them: those
    that it was made of, where that is known."""
    strides, offset = view.type.get_strides_and_offset()
    known = _made_of(view)
    if known is None:
        return _extracted(view, offset, [s == DYNAMIC for s in strides])
    address, given = known
    return [
        address,
        *[
            arith.ConstantOp(ir.IndexType.get(), s).result if isinstance(s, int) else s
            for s, static in zip(given, strides, strict=True)
            if static == DYNAMIC
        ],
    ]


def _made_of(view: Value) -> tuple[Value, list[int | Value]] | None:
    """The address and the strides that `memref_at` made a view of."""
    op = defining_op(view)
    while op is not None and op.name == "memref.cast":
        op = defining_op(op.operands[0])
    if op is None or op.name != "memref.reinterpret_cast":
        return None
    _, offsets, sizes, _ = segments_of(op)
    address = _inserted(op.operands[0])
    if address is None or offsets or sizes or list(op.attributes["static_offsets"]) != [0]:
        return None
    given = iter(list(op.operands)[1:])
    return address, [next(given) if s == DYNAMIC else s for s in op.attributes["static_strides"]]


def _inserted(origin: Value) -> Value | None:
    """The address of which `_scalar_memref` made a memref."""
    cast = defining_op(origin)
    if cast is None or cast.name != "builtin.unrealized_conversion_cast":
        return None
    last = defining_op(cast.operands[0])  # of what was inserted, and it is 0
    with_addresses = None if last is None else defining_op(last.operands[0])
    if with_addresses is None or with_addresses.name != "llvm.insertvalue":
        return None
    return with_addresses.operands[1]


def _extracted(view: Value, offset: int, dynamic: list[bool]) -> list[Value]:
    """The address of a memref, and those of its strides that are dynamic, asked of itself."""
    type_, index, i64 = view.type, ir.IndexType.get(), integer(64)
    rank, element = len(type_.shape), type_.element_type
    base = create("memref.extract_aligned_pointer_as_index", index, view)
    address = llvm.IntToPtrOp(pointer_type(), arith.IndexCastOp(i64, base).result).result
    if offset == 0 and not any(dynamic):
        return [address]
    results = [ir.MemRefType.get([], element), *[index] * (1 + 2 * rank)]
    _, start, *rest = ir.Operation.create(
        "memref.extract_strided_metadata", results=results, operands=[view]
    ).results
    if offset != 0:
        address = element_pointer(address, arith.IndexCastOp(i64, start).result, element)
    return [address, *[s for s, asked in zip(rest[rank:], dynamic, strict=True) if asked]]


def row_address(parts: Sequence[Value], type_: Type, indices: Sequence[Value]) -> Value:
    """The address of the element at `indices`, the first ones, of a memref `taken_apart`."""
    address, *dynamic = parts
    given = iter(dynamic)
    strides, _ = type_.get_strides_and_offset()
    for index, stride in zip(indices, strides, strict=False):
        known = stride != DYNAMIC
        step = arith.ConstantOp(ir.IndexType.get(), stride).result if known else next(given)
        offset = arith.IndexCastOp(integer(64), arith.MulIOp(index, step).result).result
        address = element_pointer(address, offset, type_.element_type)
    return address


def chosen_rows(condition: Value, one: Value, other: Value) -> Value:
    """One of two matrices of one shape, whose rows are contiguous."""
    (address, stride), parts = address_and_stride(one), address_and_stride(other)
    address = arith.SelectOp(condition, address, parts[0]).result
    stride = arith.SelectOp(condition, stride, parts[1]).result
    return memref_at(address, tuple(other.type.shape), other.type.element_type, [stride, 1])


def address_and_stride(matrix: Value) -> tuple[Value, Value]:
    """The address of a matrix's first element, and the distance of its rows in elements."""
    strides, _ = matrix.type.get_strides_and_offset()
    address, *dynamic = taken_apart(matrix)
    known = strides[0] != DYNAMIC
    return address, arith.ConstantOp(ir.IndexType.get(), strides[0]).result if known else dynamic[0]


def put_together(parts: list[Value], type_: Type) -> Value:
    """The memref of a type that was `taken_apart`."""
    address, *dynamic = parts
    given = iter(dynamic)
    strides = [next(given) if s == DYNAMIC else s for s in type_.get_strides_and_offset()[0]]
    view = memref_at(address, tuple(type_.shape), type_.element_type, strides)
    return view if view.type == type_ else memref.CastOp(type_, view).result


def _scalar_memref(address: Value, element: Type) -> Value:
    """The descriptor that a rank-0 memref becomes in LLVM, cast to that memref."""
    struct = ir.Type.parse("!llvm.struct<(ptr, ptr, i64)>")
    descriptor = create("llvm.mlir.poison", struct)
    zero = arith.ConstantOp(integer(64), 0).result
    for position, value in ((0, address), (1, address), (2, zero)):
        place = ir.DenseI64ArrayAttr.get([position])
        descriptor = llvm.InsertValueOp(descriptor, value, place).result
    return create("builtin.unrealized_conversion_cast", ir.MemRefType.get([], element), descriptor)


def to_tensor(memory: Value, *, writable: bool = False) -> Value:
    """The tensor in a memref, which nothing else writes; `writable` for a destination."""
    attributes = {"restrict": ir.UnitAttr.get()}
    if writable:
        attributes["writable"] = ir.UnitAttr.get()
    type_ = ir.RankedTensorType.get(memory.type.shape, memory.type.element_type)
    return create("bufferization.to_tensor", type_, memory, **attributes)


def materialize(value: Value, destination: Value) -> None:
    """Says that a tensor ends up in a memref."""
    effect(
        "bufferization.materialize_in_destination",
        value,
        destination,
        restrict=ir.UnitAttr.get(),
        writable=ir.UnitAttr.get(),
    )
