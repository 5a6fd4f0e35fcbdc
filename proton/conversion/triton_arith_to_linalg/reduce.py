"""The rule of `tt.reduce` in `triton-arith-to-linalg`: a `linalg.generic` with a reduction
iterator.

A region that is one known op starts from that op's identity; any other starts from the first
element and reduces the rest. Either computes in fp32 on fp16 and bf16 (widening.py).
"""

from typing import Any

from proton.dialect import by_name, isa, names_of, tt
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import cloned, constant, remade
from proton.dialect.linalg import convert_elements, dimension_map, filled, generic
from proton.dialect.mlir import Attribute, Block, Operation, Type, Value, arith, ir, tensor
from proton.dialect.walk import all_ops, replace
from proton.transforms.tile.widening import is_narrow, narrowed, widen, widened


def lower_reduce(op: Operation) -> None:
    """Replaces a `tt.reduce`; the insertion point is before it."""
    axis, sources = op.attributes["axis"].value, list(op.operands)
    combine, element = op.regions[0].blocks[0], element_of(sources[0])
    left = [size for d, size in enumerate(shape_of(sources[0])) if d != axis]
    if len(sources) == 1 and _identity(combine) is not None:
        wide = _accumulator(element)
        source = convert_elements(sources[0], wide)
        name = combine.operations[0].operation.name
        if name in _EXTREMES:
            result = _extreme(source, axis, left, name)
        else:
            result = _from_identity(source, axis, left, combine)
        results = [convert_elements(result, element)]
    elif widen(op):
        results = _from_first(widened(sources), axis, left, combine)
        results = narrowed(results, [element_of(source) for source in sources])
    else:
        results = _from_first(sources, axis, left, combine)
    replace(op, [r if left else tensor.ExtractOp(r, []).result for r in results])


def _from_identity(source: Value, axis: int, left: list[int], combine: Block) -> Value:
    """A reduction by one known op."""
    element = element_of(source)
    identity, type_ = _identity(combine, element), ir.RankedTensorType.get(left, element)
    inits = [filled(identity, type_)]
    return _reduce_generic([source], inits, [type_], axis, combine, identity)[0]


def _from_first(sources: list[Value], axis: int, left: list[int], combine: Block) -> list[Value]:
    """A reduction that starts from the first element and reduces the others."""
    inits = [_slice(source, axis, 0, 1, drop=True) for source in sources]
    size = shape_of(sources[0])[axis]
    if size == 1:
        return inits
    types: list[Type] = [ir.RankedTensorType.get(left, element_of(source)) for source in sources]
    rest = [_slice(source, axis, 1, size - 1) for source in sources]
    return _reduce_generic(rest, inits, types, axis, combine, None)


def _extreme(source: Value, axis: int, left: list[int], name: str) -> Value:
    """maxnumf or minnumf of floats, by way of integers: NaN only where there is no number.

    LLVM reduces floats that may be NaN one after the other, integers as a tree of vectors. The
    bits of a float, the others flipped where the sign is set, are in the order of the numbers;
    NaNs lie above infinity and, around the ends of the range, below its negative. Moving the
    whole by their number puts all NaNs at the end that loses: for f32

        -0x7FFFFFFF - 1 .. all NaNs .. -inf .. -1.0 .. 0.0 .. 1.0 .. inf = 0x7FFFFFFF
    """
    element, rank = element_of(source), len(shape_of(source))
    emit, sign = _EXTREMES[name]
    bits = integer(element.width)
    largest = (1 << (element.width - 1)) - 1
    nans = sign * ((1 << _MANTISSAS[element.width]) - 1)  # of either sign
    loser = -largest - 1 if sign > 0 else largest

    def ordered(value: Value) -> Value:
        """Flips what is below a sign; its own inverse."""
        is_negative = arith.ShRSIOp(value, constant(element.width - 1, bits)).result
        mask = arith.AndIOp(is_negative, constant(largest, bits)).result
        return arith.XOrIOp(value, mask).result

    def body(inputs: list[Value], outputs: list[Value]) -> list[Value]:
        key = ordered(arith.BitcastOp(bits, inputs[0]).result)
        key = arith.AddIOp(key, constant(nans, bits)).result
        return [emit(outputs[0], key).result]

    def decoded(inputs: list[Value], outputs: list[Value]) -> list[Value]:
        key = arith.SubIOp(inputs[0], constant(nans, bits)).result
        return [arith.BitcastOp(element, ordered(key)).result]

    keys = ir.RankedTensorType.get(left, bits)
    winner = generic(
        [source],
        [ir.AffineMap.get_identity(rank)],
        [keys],
        body,
        inits=[filled(ir.IntegerAttr.get(bits, loser), keys)],
        out_map=dimension_map(rank, [d for d in range(rank) if d != axis]),
        reductions=frozenset({axis}),
        rank=rank,
    )
    maps = [ir.AffineMap.get_identity(len(left))]
    return generic(winner, maps, [ir.RankedTensorType.get(left, element)], decoded)[0]


# op -> how integers do it, and in which direction NaNs lose
_EXTREMES = by_name({arith.MaxNumFOp: (arith.MaxSIOp, 1), arith.MinNumFOp: (arith.MinSIOp, -1)})
_MANTISSAS = {32: 23, 64: 52}


def _accumulator(element: Type) -> Type:
    """The type to reduce in: fp32 for fp16 and bf16, which LLVM cannot reduce in vectors."""
    return ir.F32Type.get() if is_narrow(element) else element


def _reduce_generic(
    sources: list[Value],
    inits: list[Value],
    types: list[Type],
    axis: int,
    combine: Block,
    identity: Attribute | None,
) -> list[Value]:
    rank = len(shape_of(sources[0]))

    def body(inputs: list[Value], outputs: list[Value]) -> list[Value]:
        # The accumulator comes first: combine(everything so far, the next element).
        return clone_payload(combine, [*outputs, *inputs], identity, reassociate=True)

    return generic(
        sources,
        [ir.AffineMap.get_identity(rank)] * len(sources),
        types,
        body,
        inits=inits,
        out_map=dimension_map(rank, [d for d in range(rank) if d != axis]),
        reductions=frozenset({axis}),
        rank=rank,
    )


def clone_payload(
    block: Block,
    arguments: list[Value],
    identity: Attribute | None = None,
    *,
    reassociate: bool = False,
) -> list[Value]:
    """Copies a region's ops to the insertion point with its arguments replaced; its values.

    Sums and products of a reduction, which has no order, may be reassociated: that is what lets
    LLVM use vectors.
    """
    mapping = dict(zip(block.arguments, arguments, strict=True))
    for op in [view.operation for view in block.operations]:
        if op.name in _RETURNS:
            return [mapping.get(value, value) for value in op.operands]
        operands = [mapping.get(value, value) for value in op.operands]
        if op.name in _SELECTED and identity is None:
            mapping[op.results[0]] = _by_comparison(op.name, *operands)
            continue
        copy = _clone(op, operands)
        for inner in all_ops(copy):
            for position, value in enumerate(inner.operands):
                if value in mapping:
                    inner.operands[position] = mapping[value]
        if reassociate and isa(copy, arith.AddFOp, arith.MulFOp):
            copy.attributes["fastmath"] = ir.Attribute.parse("#arith.fastmath<reassoc>")
        mapping.update(zip(op.results, copy.results, strict=True))
    raise AssertionError(f"a region ends with one of {_RETURNS}")


_RETURNS = names_of(tt.ReduceReturnOp, tt.ScanReturnOp, tt.MapElementwiseReturnOp)


# Among other ops, LLVM's vectoriser takes these for a reduction of their own, and then stops the
# process by an assertion about its cost models (LLVM 22, 2^k - 1 iterations).
_SELECTED = by_name(
    {arith.MaxNumFOp: arith.CmpFPredicate.OGT, arith.MinNumFOp: arith.CmpFPredicate.OLT}
)


def _by_comparison(name: str, left: Value, right: Value) -> Value:
    """maxnumf and minnumf as selections."""
    left_wins = arith.CmpFOp(_SELECTED[name], left, right).result
    is_nan = arith.CmpFOp(arith.CmpFPredicate.UNO, right, right).result
    return arith.SelectOp(arith.OrIOp(left_wins, is_nan).result, left, right).result


def _clone(op: Operation, operands: list[Value]) -> Operation:
    """A copy of an op on other operands; one op between floats may become one between wider."""
    if operands and operands[0].type != op.operands[0].type:
        return remade(op, [operands[0].type], operands)
    return cloned(op, operands)


def _identity(combine: Block, type_: Type | None = None) -> Any:
    """The identity of a region that is a single known op on its arguments; else None.

    That of maxnumf and minnumf is NaN: a number wins over it, and it stays where there is none.
    """
    ops = list(combine.operations)
    if len(ops) != 2 or set(ops[0].operands) != set(combine.arguments):
        return None
    type_ = type_ or combine.arguments[0].type
    if isinstance(type_, ir.FloatType):
        number = _FLOAT_IDENTITIES.get(ops[0].operation.name)
        return None if number is None else ir.FloatAttr.get(type_, number)
    name = ops[0].operation.name
    bits = type_.width
    low, high = -(1 << (bits - 1)), (1 << (bits - 1)) - 1
    if bits == 1:
        low, high = 1, 0  # as i1, -1 is the least value
    numbers = by_name(
        {
            arith.AddIOp: 0,
            arith.MulIOp: 1,
            arith.XOrIOp: 0,
            arith.OrIOp: 0,
            arith.AndIOp: -1,
            arith.MaxSIOp: low,
            arith.MinSIOp: high,
            arith.MaxUIOp: 0,
            arith.MinUIOp: -1,
        }
    )
    number = numbers.get(name)
    if number is None:
        return None
    return ir.IntegerAttr.get(type_, number if bits > 1 else number & 1)


_FLOAT_IDENTITIES = by_name(
    {
        arith.AddFOp: -0.0,  # x + -0.0 is x, also for x = -0.0
        arith.MulFOp: 1.0,
        arith.MaxNumFOp: float("nan"),
        arith.MinNumFOp: float("nan"),
        arith.MaximumFOp: float("-inf"),
        arith.MinimumFOp: float("inf"),
    }
)


def _slice(value: Value, axis: int, offset: int, size: int, drop: bool = False) -> Value:
    """Elements [offset, offset + size) along an axis; `drop` removes the axis."""
    shape = list(shape_of(value))
    rank = len(shape)
    sizes = [*shape[:axis], size, *shape[axis + 1 :]]
    kept = [*shape[:axis], *shape[axis + 1 :]] if drop else sizes
    offsets = [offset if d == axis else 0 for d in range(rank)]
    attribute = ir.DenseI64ArrayAttr.get
    op = ir.Operation.create(
        tensor.ExtractSliceOp.OPERATION_NAME,
        results=[ir.RankedTensorType.get(kept, element_of(value))],
        operands=[value],
        attributes={
            "static_offsets": attribute(offsets),
            "static_sizes": attribute(sizes),
            "static_strides": attribute([1] * rank),
            "operandSegmentSizes": ir.DenseI32ArrayAttr.get([1, 0, 0, 0]),
        },
    )
    return op.result
