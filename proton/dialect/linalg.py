"""Emitting upstream `linalg` ops: their Python bindings cost 60 ms to import and are not needed.

Each function emits at the current insertion point and location.
"""

from collections.abc import Callable
from typing import Any

from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.memory import DYNAMIC
from proton.dialect.mlir import arith, ir, tensor
from proton.dialect.regions import ForLoop


def generic(
    ins: list[Any],
    in_maps: list[Any],
    out_types: list[Any],
    body: Callable[[list[Any], list[Any]], list[Any]],
    *,
    inits: list[Any] | None = None,
    out_map: Any = None,
    reductions: frozenset[int] = frozenset(),
    rank: int | None = None,
) -> list[Any]:
    """Emits a `linalg.generic`; `body(inputs, outputs)` emits the payload and gives its values."""
    rank = len(out_types[0].shape) if rank is None else rank
    out_map = out_map or ir.AffineMap.get_identity(rank)
    if inits is None:
        inits = [tensor.EmptyOp(t.shape, t.element_type).result for t in out_types]
    kinds = [
        _iterator("reduction" if axis in reductions else "parallel") for axis in range(rank)
    ]
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
        ir.Operation.create("linalg.yield", operands=yielded)
    return list(op.results)


def _iterator(kind: str) -> Any:
    return ir.Attribute.parse(f"#linalg.iterator_type<{kind}>")


def _named(name: str, ins: list[Any], out: Any, payload: Callable[[list[Any]], Any]) -> Any:
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
        ir.Operation.create("linalg.yield", operands=[payload(list(block.arguments))])
    return op.result if is_tensor else None


def fill(scalar: Any, out: Any) -> Any:
    """`linalg.fill`: every element of `out` becomes the scalar."""
    return _named("fill", [scalar], out, lambda arguments: arguments[0])


def filled(attribute: Any, type_: Any) -> Any:
    """A new tensor filled with a constant."""
    scalar = arith.ConstantOp(type_.element_type, attribute).result
    return fill(scalar, tensor.EmptyOp(type_.shape, type_.element_type).result)


def copy_into(source: Any, out: Any) -> Any:
    """`linalg.copy`: the elements of `source` in the place of `out`'s."""
    return _named("copy", [source], out, lambda arguments: arguments[0])


def matmul(a: Any, b: Any, acc: Any) -> Any:
    """`linalg.matmul`: acc + a @ b, all of one element type."""
    is_float = isinstance(element_of(acc), ir.FloatType)

    def payload(arguments: list[Any]) -> Any:
        left, right, total = arguments
        product = (arith.MulFOp if is_float else arith.MulIOp)(left, right).result
        return (arith.AddFOp if is_float else arith.AddIOp)(total, product).result

    return _named("matmul", [a, b], acc, payload)


def batch_matmul(a: Any, b: Any, acc: Any) -> Any:
    """A loop of `matmul` over the first dimension, of tensors of three."""
    index = ir.IndexType.get()
    bounds = [arith.ConstantOp(index, n).result for n in (0, shape_of(acc)[0], 1)]
    loop = ForLoop.create(bounds, [acc])
    with ir.InsertionPoint(loop.body):
        place, total = loop.induction_var, loop.iter_args[0]
        product = matmul(*(_matrix(side, place) for side in (a, b, total)))
        offsets = [DYNAMIC, 0, 0], [1, *shape_of(acc)[1:]], [1, 1, 1]
        total = tensor.InsertSliceOp(product, total, [place], [], [], *offsets).result
        ir.Operation.create("scf.yield", operands=[total])
    return loop.op.results[0]


def _matrix(value: Any, place: Any) -> Any:
    """One of the matrices along the first dimension."""
    _, *shape = shape_of(value)
    type_ = ir.RankedTensorType.get(shape, element_of(value))
    offsets = [DYNAMIC, 0, 0], [1, *shape], [1, 1, 1]
    return tensor.ExtractSliceOp(type_, value, [place], [], [], *offsets).result


def dimension_map(rank: int, results: list[int | None]) -> Any:
    """(d0, ...) -> the dimensions in `results`; None is the constant 0."""
    expressions = [
        ir.AffineConstantExpr.get(0) if d is None else ir.AffineDimExpr.get(d) for d in results
    ]
    return ir.AffineMap.get(rank, 0, expressions)


def index_of(dimension: int) -> Any:
    """`linalg.index`: the loop index of a dimension, inside a generic."""
    i64 = ir.IntegerType.get_signless(64)
    op = ir.Operation.create(
        "linalg.index",
        results=[ir.IndexType.get()],
        attributes={"dim": ir.IntegerAttr.get(i64, dimension)},
    )
    return op.result


def map_elements(body: Callable[..., Any], values: list[Any], element: Any) -> Any:
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


def convert_elements(value: Any, element: Any) -> Any:
    """A tensor with its elements converted to another float, or a wider signed integer, type."""
    source = element_of(value)
    if source == element:
        return value
    type_ = ir.RankedTensorType.get(shape_of(value), element)
    if isinstance(source, ir.IntegerType):
        return arith.ExtSIOp(type_, value).result
    cast = arith.ExtFOp if source.width < element.width else arith.TruncFOp
    return cast(type_, value).result
