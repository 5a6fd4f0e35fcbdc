"""`tts` loads and stores become `memref`s of the caller's memory, read and written in place
where that is safe, and copies elsewhere.

A block is *whole* when its mask is full, nothing wraps around and nothing is gathered. Such a
block is a strided memref of the memory itself; otherwise a local buffer is filled (or written
back) element by element. Which of the two is decided at run time, per access:

    %m = scf.if %whole -> memref<...> { in place } else { buffer, filled with `other` }

A load is in place only if the kernel writes no memory that it may read (`disjoint`, checked by
the launcher, and the argument is not written). The right factor of a matmul is always copied,
that is its packing; the left one, of which a tile reads a few rows one element after another,
where its rows are not contiguous. A store is in place always: the elementwise op that computes
the value, or one that copies it, writes to the destination.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import ClassVar

from proton.analysis import scalar as sc
from proton.analysis.alias import UNKNOWN, pointer_argument
from proton.base.errors import CompilationError
from proton.conversion.masked_products import cut_products, is_all_read, shorten
from proton.conversion.wrapped_loops import Loop, all_of, does_not_wrap, gathered, wrapped_loops
from proton.dialect import isa, tts
from proton.dialect.attributes import PROGRAM_ORDER, STORED_EXTENT, WRITTEN
from proton.dialect.builtin import i64_attr, integer
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import constant, emit_if, index_constant, index_loop, number_of, zero_of
from proton.dialect.linalg import fill, generic
from proton.dialect.memory import (
    DYNAMIC,
    element_pointer,
    materialize,
    memref_at,
    pointer_type,
    row_address,
    taken_apart,
    to_tensor,
)
from proton.dialect.mlir import Module, Operation, Type, Value, ir
from proton.dialect.tt import is_pointer_like
from proton.dialect.upstream import arith, builtin, linalg, llvm, memref, tensor
from proton.dialect.walk import (
    before,
    defining_op,
    functions,
    ops_of_each,
    producer_of,
    replace,
    source_span,
    users,
)
from proton.passes import Pass, register

CACHE_LINE = 64  # bytes


@register
@dataclass(frozen=True)
class StructuredToMemref(Pass):
    """Lowers `tts` to `memref`; `disjoint` promises that written arguments overlap no others."""

    name: ClassVar[str] = "structured-to-memref"

    disjoint: bool = False

    def run(self, module: Module) -> None:
        for function in functions(module):
            # Where nobody has noted what it writes, it may write anything.
            written = frozenset(function.attributes.get(WRITTEN, [UNKNOWN]))
            lowering = _Lowering(function, self.disjoint, written)
            stores, loads, pointers, products = ops_of_each(
                function,
                tts.StructuredStoreOp,
                tts.StructuredLoadOp,
                tts.MakeStructuredPtrOp,
                linalg.MatmulOp,
            )
            cut = cut_products(products)
            for op in stores:
                with before(op):
                    lowering.store(op)
            for op in loads:
                with before(op):
                    lowering.load(op, is_all_read(op, cut))
            for op in pointers:
                op.erase()
            for product, depth in cut:
                shorten(product, depth)


def _address_of(pointer: Value) -> Value:
    """A pointer as LLVM has it, also ahead of `triton-pointers-to-llvm`."""
    type_ = pointer_type()
    if pointer.type == type_:
        return pointer
    return builtin.UnrealizedConversionCastOp([type_], [pointer]).results[0]


def _row(indices: Value) -> Value:
    """A row of indices, of its known size where it was cast."""
    op = defining_op(indices)
    return op.operands[0] if isa(op, tensor.CastOp) else indices


def _check_element(op: Operation, element: Type) -> None:
    """Refuses what memory cannot hold as it is, and another pass makes integers of."""
    earlier = None
    if is_pointer_like(element):
        earlier = "triton-pointers-to-llvm"
    elif isinstance(element, ir.FloatType) and element.width < 16:
        earlier = "expand-float8"
    if earlier is not None:
        raise CompilationError(
            f"{op.name} of a block of {element}, which no buffer holds",
            source_span(op.location),
            f"run {earlier} first: it makes integers of them",
        )


class _Access:
    """One tts access: its addresses, and when its block is whole."""

    def __init__(self, op: Operation, shape: tuple[int, ...], element: Type) -> None:
        pointer = producer_of(op.operands[0]).opview
        self.shape, self.element, self.is_store = shape, element, isa(op, tts.StructuredStoreOp)
        _check_element(op, element)
        self.base, self.strides = _address_of(pointer.base), list(pointer.strides)
        self.offsets, self.order = list(pointer.offsets), list(pointer.order)
        parents = iter(pointer.parents)
        self.parents = [sc.not_zero(next(parents)) if wraps else None for wraps in pointer.wraps]
        indices = iter(pointer.indices)
        self.gathers = [_row(next(indices)) if gathers else None for gathers in pointer.gathers]
        self.dims, self.starts = list(op.opview.dims), list(op.opview.starts)
        self.mask = op.opview.mask
        self.is_filled = self.is_cut  # a buffer for it, before what is there is read into it
        self.start = self._start()
        self.whole = self._whole()

    @property
    def is_cut(self) -> bool:
        """True if a box may cut the block; a mask that is no box is asked for each element."""
        sizes = zip(self.dims, self.shape, strict=False)
        cut = any(number_of(d) != size for d, size in sizes)
        return cut or any(number_of(start) != 0 for start in self.starts)

    def _start(self) -> Value:
        """The address of element 0, after wrapping."""
        base, i64 = self.base, integer(64)
        for offset, parent in zip(self.offsets, self.parents, strict=True):
            if parent is not None:
                wrapped = arith.RemSIOp(offset, parent).result
                wrapped = arith.IndexCastOp(i64, wrapped).result
                base = element_pointer(base, wrapped, self.element)
        return base

    def _whole(self) -> Value | None:
        """An i1, or None where the block always is."""
        if self.mask is not None or any(row is not None for row in self.gathers):
            return constant(0, integer(1))
        conditions = []
        for axis, (dim, size) in enumerate(zip(self.dims, self.shape, strict=False)):
            if number_of(dim) != size:
                full = arith.CmpIOp(arith.CmpIPredicate.eq, dim, index_constant(size)).result
                if self.is_store:
                    producer_of(full).attributes[STORED_EXTENT] = i64_attr(axis)
                conditions.append(full)
        for start in self.starts:
            if number_of(start) != 0:
                zero = index_constant(0)
                conditions.append(arith.CmpIOp(arith.CmpIPredicate.eq, start, zero).result)
        for axis, parent in enumerate(self.parents):
            if parent is not None:
                length, stride = index_constant(self.shape[axis] - 1), self.strides[axis]
                needed = length if number_of(stride) == 1 else arith.MulIOp(length, stride).result
                conditions.append(does_not_wrap(self.offsets[axis], parent, needed))
        return all_of(*conditions) if conditions else None

    # Memrefs

    def memref_type(self) -> Type:
        """The type of the block in place, to which a row-major buffer can be cast, too: all
        strides are dynamic but that of a contiguous last dimension."""
        strides = [DYNAMIC] * len(self.strides)
        if number_of(self.strides[-1]) == 1:
            strides[-1] = 1
        layout = ir.StridedLayoutAttr.get(DYNAMIC, strides)
        return ir.MemRefType.get(self.shape, self.element, layout=layout)

    def is_row_major(self) -> bool:
        """True if reading in place is as good as reading a row-major buffer: no other dimension
        than the last is contiguous."""
        strides = [number_of(s) for s in self.strides]
        return all(s != 1 for s in strides[:-1]) or all(size == 1 for size in self.shape[1:])

    def has_contiguous_rows(self) -> bool:
        """True if a product can read the block, as its left factor, a cache line after another."""
        return number_of(self.strides[-1]) == 1

    def in_place(self) -> Value:
        """The memory itself as a memref."""
        strides = [1 if number_of(stride) == 1 else stride for stride in self.strides]
        view = memref_at(self.start, self.shape, self.element, strides)
        return cast(view, self.memref_type())

    # Element by element

    def for_each_element(self, body: Callable[..., object]) -> None:
        """Emits loops over the unmasked elements; `body(indices, address)` inside."""

        def with_address(indices: list[Value], offset: Value) -> None:
            body(indices, self._at(offset))

        self._nest(len(self.shape), with_address)

    def _nest(self, axes: int, body: Callable[[list[Value], Value], object]) -> None:
        """Emits loops over the first dimensions; `body(indices, offset)` inside."""
        dimensions = [self._loops(axis) for axis in range(axes)]

        def nest(indices: list[Value], offset: Value) -> None:
            if len(indices) == axes:
                body(indices, offset)
                return
            for loop in dimensions[len(indices)]:
                with loop() as (variable, place):
                    nest([*indices, variable], arith.AddIOp(offset, place).result)

        nest([], index_constant(0))

    def _at(self, offset: Value) -> Value:
        """The address of an element."""
        place = arith.IndexCastOp(integer(64), offset).result
        return element_pointer(self.base, place, self.element)

    def _bounds(self, axis: int) -> tuple[Value, Value]:
        """The first unmasked element of a dimension, and the one behind the last."""
        limit = self.dims[axis] if self.dims else index_constant(self.shape[axis])
        return self.starts[axis] if self.starts else index_constant(0), limit

    def _loops(self, axis: int) -> list[Loop]:
        """Loops over the unmasked elements of a dimension, one behind the other; each gives the
        index and its place, wrap(offset + i * stride) + gather[i]."""
        start, limit = self._bounds(axis)
        offset, parent = self.offsets[axis], self.parents[axis]
        if parent is not None and number_of(self.strides[axis]) == 1:
            run, rest = wrapped_loops(offset, parent, start, limit)
            loops = [run.loop(), *([] if rest is None else [rest])]
        else:

            @contextlib.contextmanager
            def loop() -> Iterator[tuple[Value, Value]]:
                with index_loop(limit, start=start) as variable:
                    place = arith.MulIOp(variable, self.strides[axis]).result
                    if parent is not None:
                        place = arith.RemSIOp(arith.AddIOp(offset, place).result, parent).result
                    yield variable, place

            loops = [loop]
        row = self.gathers[axis]
        return loops if row is None else [gathered(loop, row) for loop in loops]

    def read_into(self, buffer: Value, other: Value | None) -> None:
        """Fills a buffer with the block: `other` where masked."""
        filler = other if other is not None else zero_of(self.element)
        if self.is_filled:
            fill(filler, buffer)
        if self._has_rows():
            self._copy_rows(buffer, is_read=True)
            return

        def body(indices: list[Value], address: Value) -> None:
            def read() -> list[Value]:
                return [llvm.LoadOp(self.element, address).result]

            # The element is stored in either case: so LLVM makes masked loads of vectors.
            (value,) = self._chosen(indices, [self.element], read, lambda: [filler])
            memref.StoreOp(value, buffer, indices)

        self.for_each_element(body)

    def write_from(self, buffer: Value) -> None:
        """Writes the unmasked elements of a buffer to memory."""
        if self._has_rows():
            self._copy_rows(buffer, is_read=False)
            return

        def body(indices: list[Value], address: Value) -> None:
            value = memref.LoadOp(buffer, indices).result

            def write() -> list[Value]:
                llvm.StoreOp(value, address)
                return []

            self._chosen(indices, [], write, list)

        self.for_each_element(body)

    def _has_rows(self) -> bool:
        """True if the unmasked elements of a row follow each other in memory, until it wraps."""
        is_plain = self.mask is None and self.gathers[-1] is None
        width = 0 if isinstance(self.element, ir.IndexType) else self.element.width
        return is_plain and self.has_contiguous_rows() and width % 8 == 0 < width

    def _copy_rows(self, buffer: Value, *, is_read: bool) -> None:
        """Reads or writes the unmasked elements a row at a time; one by one those of it that come
        after the first wrap."""
        axes, zero = len(self.shape) - 1, index_constant(0)
        run, rest = wrapped_loops(self.offsets[axes], self.parents[axes], *self._bounds(axes))
        count = arith.MaxSIOp(arith.SubIOp(run.end, run.start).result, zero).result
        size = arith.MulIOp(count, index_constant(self.element.width // 8)).result
        size = arith.IndexCastOp(integer(64), size).result
        parts = taken_apart(buffer)

        def move(indices: list[Value], offset: Value, size: Value) -> None:
            ends = row_address(parts, buffer.type, indices), self._at(offset)
            llvm.MemcpyOp(*(ends if is_read else reversed(ends)), size, False)

        def body(indices: list[Value], offset: Value) -> None:
            move([*indices, run.start], arith.AddIOp(offset, run.place).result, size)
            if rest is not None:
                with rest() as (variable, place):
                    one = constant(self.element.width // 8, integer(64))
                    move([*indices, variable], arith.AddIOp(offset, place).result, one)

        self._nest(axes, body)

    def _chosen(
        self,
        indices: list[Value],
        types: list[Type],
        access: Callable[[], list[Value]],
        without: Callable[[], list[Value]],
    ) -> list[Value]:
        """What `access` gives where the mask, if there is one that is no box, is true."""
        if self.mask is None:
            return access()
        return emit_if(tensor.ExtractOp(self.mask, indices).result, types, access, without)


class _Lowering:
    """The rules for one kernel."""

    def __init__(self, function: Operation, disjoint: bool, written: frozenset[int]) -> None:
        self.entry = function.regions[0].blocks[0]
        self.disjoint, self.written = disjoint, written
        self.in_program_order = PROGRAM_ORDER in function.attributes

    def _only_read(self, base: Value) -> bool:
        """True if nothing that this kernel writes can be what this pointer reads."""
        if not self.written:
            return True
        if not self.disjoint or UNKNOWN in self.written:
            return False
        argument = pointer_argument(base, self.entry)
        return argument != UNKNOWN and argument not in self.written

    def load(self, op: Operation, is_all_read: bool) -> None:
        """tts.load, of which something may read all, or nothing what the mask leaves out."""
        value, other = op.results[0], op.opview.other
        access = _Access(op, shape_of(value), element_of(value))
        access.is_filled = access.is_cut and is_all_read
        products = [user for user in users(value) if isa(user, linalg.MatmulOp)]
        is_right = any(product.operands[1] == value for product in products)
        suits = access.has_contiguous_rows() if products else access.is_row_major()
        if self._only_read(access.base) and suits and not is_right:
            memory = self._view_or_buffer(access, other)
        else:
            buffer = allocate_right_factor(access) if is_right else allocate(access)
            memory = self._copy(access, other, buffer)
        replace(op, [to_tensor(memory)])

    def _view_or_buffer(self, access: _Access, other: Value | None) -> Value:
        if access.whole is None:
            return access.in_place()

        def buffered() -> list[Value]:
            buffer = allocate(access)
            access.read_into(buffer, other)
            return [cast(buffer, access.memref_type())]

        type_ = access.memref_type()
        (block,) = emit_if(access.whole, [type_], lambda: [access.in_place()], buffered)
        return block

    def _copy(self, access: _Access, other: Value | None, buffer: Value) -> Value:
        def whole() -> list[Value]:
            memref.CopyOp(access.in_place(), buffer)
            return []

        def partial() -> list[Value]:
            access.read_into(buffer, other)
            return []

        if access.whole is None:
            whole()
        else:
            emit_if(access.whole, [], whole, partial)
        return buffer

    def store(self, op: Operation) -> None:
        """tts.store: the value's producer writes to the destination itself."""
        value = op.opview.value
        producer = None if self.in_program_order else _direct_producer(op, value)
        if producer is None:
            producer = _identity(value)
        access = _Access(op, shape_of(value), element_of(value))
        self._write(op, producer, access)
        op.erase()

    def _write(self, op: Operation, producer: Operation, access: _Access) -> None:
        """Gives an elementwise op the memory, or for a cut block a buffer, as its destination."""
        if access.whole is None:
            destination = access.in_place()
        else:
            destination = emit_if(
                access.whole,
                [access.memref_type()],
                lambda: [access.in_place()],
                lambda: [cast(allocate(access), access.memref_type())],
            )[0]
        target = to_tensor(destination, writable=True)
        producer.move_before(op)
        producer.operands[len(producer.operands) - 1] = target
        materialize(producer.results[0], destination)
        if access.whole is not None:

            def write_back() -> list[Value]:
                access.write_from(destination)
                return []

            emit_if(access.whole, [], list, write_back)


def _identity(value: Value) -> Operation:
    """An elementwise copy of a tensor."""
    rank = len(shape_of(value))
    return producer_of(
        generic([value], [ir.AffineMap.get_identity(rank)], [value.type], lambda ins, _: ins)[0]
    )


def _direct_producer(op: Operation, value: Value) -> Operation | None:
    """The elementwise generic that makes a stored value for nobody else, if it can move."""
    producer = defining_op(value)
    if not isa(producer, linalg.GenericOp) or len(users(value)) != 1:
        return None
    if producer.block != op.block or len(producer.results) != 1:
        return None
    kinds = {str(kind) for kind in producer.attributes["iterator_types"]}
    if kinds - {"#linalg.iterator_type<parallel>"}:
        return None
    body = producer.regions[0].blocks[0]
    reads_output = any(True for _ in list(body.arguments)[-1].uses)
    return None if reads_output else producer


# Buffers


def allocate(access: _Access) -> Value:
    """A local buffer for the block, row-major."""
    return memref.AllocOp(ir.MemRefType.get(access.shape, access.element), [], []).result


def allocate_right_factor(access: _Access) -> Value:
    """The same with a cache line free after each row, where that makes an odd number of lines.

    A product reads few columns of all rows, again and again. Rows that are a power of two apart
    share few sets of the first-level cache; these go through all of them.
    """
    rows, columns = access.shape
    line = CACHE_LINE * 8 // access.element.width
    if columns % (2 * line):
        return allocate(access)
    wide = memref.AllocOp(ir.MemRefType.get([rows, columns + line], access.element), [], [])
    layout = ir.StridedLayoutAttr.get(0, [columns + line, 1])
    type_ = ir.MemRefType.get(access.shape, access.element, layout=layout)
    sizes = [0, 0], [rows, columns], [1, 1]
    return memref.SubViewOp(type_, wide.result, [], [], [], *sizes).result


def cast(value: Value, type_: Type) -> Value:
    """`memref.cast` where the type differs."""
    return value if value.type == type_ else memref.CastOp(type_, value).result
