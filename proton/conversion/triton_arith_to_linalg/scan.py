"""The rules of `tt.scan`, `tt.histogram` and `tt.gather` in `triton-arith-to-linalg`: loops over
the elements of their operands that fill a buffer.
"""

from collections.abc import Callable
from typing import Any

from proton.conversion.triton_arith_to_linalg.reduce import clone_payload
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import constant, emit_if, for_each_element, index_constant
from proton.dialect.memory import to_tensor
from proton.dialect.mlir import Operation, Type, Value, arith, ir, memref, tensor
from proton.dialect.regions import ForLoop, yield_values
from proton.dialect.walk import replace
from proton.transforms.tile.widening import is_narrow, widen


def _buffer(shape: tuple[int, ...], element: Type) -> Value:
    return memref.AllocOp(ir.MemRefType.get(shape, element), [], []).result


def _at(values: list[Value], indices: list[Value]) -> list[Value]:
    return [tensor.ExtractOp(value, indices).result for value in values]


def lower_scan(op: Operation) -> None:
    """Along the axis one after the other, what came before carried in registers: of fp16 and bf16
    in fp32."""
    is_widened = widen(op)
    axis, reverse = op.attributes["axis"].value, bool(op.attributes["reverse"].value)
    sources, combine = list(op.operands), op.regions[0].blocks[0]
    shape = shape_of(sources[0])
    size = shape[axis]
    buffers = [_buffer(shape, element_of(source)) for source in sources]

    def line(others: list[Value]) -> None:
        def place(step: Value) -> list[Value]:
            along = arith.SubIOp(index_constant(size - 1), step).result if reverse else step
            return [*others[:axis], along, *others[axis:]]

        def write(values: list[Value], indices: list[Value]) -> None:
            for value, buffer in zip(values, buffers, strict=True):
                element = buffer.type.element_type
                narrow = value if value.type == element else arith.TruncFOp(element, value).result
                memref.StoreOp(narrow, buffer, indices)

        def read(indices: list[Value]) -> list[Value]:
            values, f32 = _at(sources, indices), ir.F32Type.get()
            if not is_widened:
                return values
            return [arith.ExtFOp(f32, v).result if is_narrow(v.type) else v for v in values]

        first = read(place(index_constant(0)))
        write(first, place(index_constant(0)))

        def step(number: Value, before: list[Value]) -> list[Value]:
            indices = place(number)
            after = clone_payload(combine, [*before, *read(indices)])
            write(after, indices)
            return after

        _carrying_loop(1, size, first, step)

    for_each_element((*shape[:axis], *shape[axis + 1 :]), line)
    replace(op, [to_tensor(buffer) for buffer in buffers])


def _carrying_loop(
    lower: int, upper: int, inits: list[Value], body: Callable[[Any, list[Any]], list[Any]]
) -> None:
    """An `scf.for` over [lower, upper) that carries values; what it ends with is not used."""
    loop = ForLoop.create([index_constant(n) for n in (lower, upper, 1)], inits)
    with ir.InsertionPoint(loop.body):
        yield_values(body(loop.induction_var, loop.iter_args))


def lower_histogram(op: Operation) -> None:
    """A buffer of zeros, and one added for each element that lies in a bin and is not masked."""
    view = op.opview
    source, mask, i32 = view.src, view.mask, integer(32)
    (bins,) = shape_of(op.results[0])
    buffer = _buffer((bins,), i32)
    for_each_element((bins,), lambda at: memref.StoreOp(constant(0, i32), buffer, at))

    def count(indices: list[Value]) -> None:
        (value,) = _at([source], indices)
        limit = constant(bins, value.type)
        counted = arith.CmpIOp(arith.CmpIPredicate.ult, value, limit).result
        if mask is not None:
            counted = arith.AndIOp(counted, _at([mask], indices)[0]).result

        def add() -> list[Value]:
            place = arith.IndexCastUIOp(ir.IndexType.get(), value).result
            before = memref.LoadOp(buffer, [place]).result
            memref.StoreOp(arith.AddIOp(before, constant(1, i32)).result, buffer, [place])
            return []

        emit_if(counted, [], add, list)

    for_each_element(shape_of(source), count)
    replace(op, [to_tensor(buffer)])


def lower_gather(op: Operation) -> None:
    """Each element from where its index says; an index outside reads what is at index 0."""
    source, places = op.operands
    axis, shape = op.attributes["axis"].value, shape_of(op.results[0])
    size = shape_of(source)[axis]
    buffer = _buffer(shape, element_of(source))

    def pick(indices: list[Value]) -> None:
        (place,) = _at([places], indices)
        along = arith.IndexCastOp(ir.IndexType.get(), place).result
        inside = arith.CmpIOp(arith.CmpIPredicate.ult, along, index_constant(size)).result
        along = arith.SelectOp(inside, along, index_constant(0)).result
        (value,) = _at([source], [*indices[:axis], along, *indices[axis + 1 :]])
        memref.StoreOp(value, buffer, indices)

    for_each_element(shape, pick)
    replace(op, [to_tensor(buffer)])
