"""Emitting upstream `linalg` ops: their Python bindings cost 60 ms to import and are not needed.

Each function emits at the current insertion point and location.
"""

import math
from collections.abc import Callable, Sequence
from typing import Any

from proton.dialect.builtin import i64_attr
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import effect, index_constant
from proton.dialect.memory import DYNAMIC
from proton.dialect.mlir import Attribute, Type, Value, arith, ir, tensor
from proton.dialect.regions import ForLoop, yield_values


def generic(
    ins: list[Value],
    in_maps: Sequence[ir.AffineMap],
    out_types: list[Type],
    body: Callable[[list[Value], list[Value]], list[Value]],
    *,
    inits: list[Value] | None = None,
    out_map: ir.AffineMap | None = None,
    reductions: frozenset[int] = frozenset(),
    rank: int | None = None,
) -> list[Value]:
    """Emits a `linalg.generic`; `body(inputs, outputs)` emits the payload and gives its values."""
    rank = len(out_types[0].shape) if rank is None else rank
    out_map = out_map or ir.AffineMap.get_identity(rank)
    if inits is None:
        inits = [tensor.EmptyOp(t.shape, t.element_type).result for t in out_types]
    kinds = [_iterator("reduction" if axis in reductions else "parallel") for axis in range(rank)]
    maps = [ir.AffineMapAttr.get(m) for m in (*in_maps, *[out_map] * len(inits))]
    op = ir.Operation.create(
        "linalg.generic",
        results=out_types,
        operands=[*ins, *inits],
        attributes={
            "indexing_maps": ir.ArrayAttr.get(maps),
            "iterator_types": ir.ArrayAttr.get(kinds),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(ins), len(inits)]),
        },
        regions=1,
    )
    types = [element_of(value) for value in (*ins, *inits)]
    here = ir.Location.current
    block = ir.Block.create_at_start(op.regions[0], types, [here] * len(types))
    arguments = list(block.arguments)
    with ir.InsertionPoint(block):
        yielded = body(arguments[: len(ins)], arguments[len(ins) :])
        effect("linalg.yield", *yielded)
    return list(op.results)


def _iterator(kind: str) -> Attribute:
    return ir.Attribute.parse(f"#linalg.iterator_type<{kind}>")


def _named(name: str, ins: list[Value], out: Value, payload: Callable[[list[Value]], Value]) -> Any:
    """A named op with one output, a tensor or a memref; its result if that is a tensor."""
    is_tensor = isinstance(out.type, ir.RankedTensorType)
    op = ir.Operation.create(
        f"linalg.{name}",
        results=[out.type] if is_tensor else [],
        operands=[*ins, out],
        attributes={"operandSegmentSizes": ir.DenseI32ArrayAttr.get([len(ins), 1])},
        regions=1,
    )
    types = [element_of(value) for value in (*ins, out)]
    here = ir.Location.current
    block = ir.Block.create_at_start(op.regions[0], types, [here] * len(types))
    with ir.InsertionPoint(block):
        effect("linalg.yield", payload(list(block.arguments)))
    return op.result if is_tensor else None


def fill(scalar: Value, out: Value) -> Value:
    """`linalg.fill`: every element of `out` becomes the scalar."""
    return _named("fill", [scalar], out, lambda arguments: arguments[0])


def filled(attribute: Attribute, type_: Type) -> Value:
    """A new tensor filled with a constant."""
    scalar = arith.ConstantOp(type_.element_type, attribute).result
    return fill(scalar, tensor.EmptyOp(type_.shape, type_.element_type).result)


def copy_into(source: Value, out: Value) -> Value:
    """`linalg.copy`: the elements of `source` in the place of `out`'s. Its result, which a
    memref does not have."""
    return _named("copy", [source], out, lambda arguments: arguments[0])


def matmul(a: Value, b: Value, acc: Value) -> Value:
    """`linalg.matmul`: acc + a @ b, all of one element type."""
    is_float = isinstance(element_of(acc), ir.FloatType)

    def payload(arguments: list[Value]) -> Value:
        left, right, total = arguments
        product = (arith.MulFOp if is_float else arith.MulIOp)(left, right).result
        return (arith.AddFOp if is_float else arith.AddIOp)(total, product).result

    return _named("matmul", [a, b], acc, payload)


def batch_matmul(a: Value, b: Value, acc: Value) -> Value:
    """A loop of `matmul` over the first dimension, of tensors of three."""
    bounds = [index_constant(n) for n in (0, shape_of(acc)[0], 1)]
    loop = ForLoop.create(bounds, [acc])
    with ir.InsertionPoint(loop.body):
        place, total = loop.induction_var, loop.iter_args[0]
        product = matmul(*(_matrix(side, place) for side in (a, b, total)))
        offsets = [DYNAMIC, 0, 0], [1, *shape_of(acc)[1:]], [1, 1, 1]
        total = tensor.InsertSliceOp(product, total, [place], [], [], *offsets).result
        yield_values([total])
    return loop.op.results[0]


def _matrix(value: Value, place: Value) -> Value:
    """One of the matrices along the first dimension."""
    _, *shape = shape_of(value)
    type_ = ir.RankedTensorType.get(shape, element_of(value))
    offsets = [DYNAMIC, 0, 0], [1, *shape], [1, 1, 1]
    return tensor.ExtractSliceOp(type_, value, [place], [], [], *offsets).result


def dimension_map(rank: int, results: list[int | None]) -> ir.AffineMap:
    """(d0, ...) -> the dimensions in `results`; None is the constant 0."""
    expressions = [
        ir.AffineConstantExpr.get(0) if d is None else ir.AffineDimExpr.get(d) for d in results
    ]
    return ir.AffineMap.get(rank, 0, expressions)


def index_of(dimension: int) -> Value:
    """`linalg.index`: the loop index of a dimension, inside a generic."""
    op = ir.Operation.create(
        "linalg.index", results=[ir.IndexType.get()], attributes={"dim": i64_attr(dimension)}
    )
    return op.result


def map_elements(body: Callable[..., Value], values: list[Value], element: Type) -> Value:
    """`body(*scalars)`, an `element`, of each element of tensors of one shape, or of scalars."""
    shape = shape_of(values[0])
    if not shape:
        return body(*values)
    return generic(
        values,
        [ir.AffineMap.get_identity(len(shape))] * len(values),
        [ir.RankedTensorType.get(shape, element)],
        lambda inputs, outputs: [body(*inputs)],
    )[0]


def reshaped(value: Value, shape: list[int]) -> Value:
    """A tensor's elements, in their order, in another shape. Through one dimension: collapse, then
    expand; both are views of a contiguous buffer."""
    element, source = element_of(value), shape_of(value)
    if len(source) != 1:
        flat = ir.RankedTensorType.get([math.prod(source)], element)
        value = _reassociate("collapse", value, flat)
    if len(shape) != 1:
        value = _reassociate("expand", value, ir.RankedTensorType.get(shape, element))
    return value


def _reassociate(kind: str, value: Value, type_: Type) -> Value:
    wide = shape_of(value) if kind == "collapse" else tuple(type_.shape)
    group = ir.ArrayAttr.get([i64_attr(d) for d in range(len(wide))])
    attributes: dict[str, Attribute] = {"reassociation": ir.ArrayAttr.get([group])}
    if kind == "expand":
        attributes["static_output_shape"] = ir.DenseI64ArrayAttr.get(wide)
    return ir.Operation.create(
        f"tensor.{kind}_shape", results=[type_], operands=[value], attributes=attributes
    ).result


def convert_elements(value: Value, element: Type) -> Value:
    """A tensor with its elements converted to another float, or a wider signed integer, type."""
    source = element_of(value)
    if source == element:
        return value
    type_ = ir.RankedTensorType.get(shape_of(value), element)
    if isinstance(source, ir.IntegerType):
        return arith.ExtSIOp(type_, value).result
    cast = arith.ExtFOp if source.width < element.width else arith.TruncFOp
    return cast(type_, value).result
