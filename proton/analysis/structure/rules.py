"""The structure of what an op gives, by that of what it takes: one rule for each op."""

from collections.abc import Callable
from dataclasses import replace

from proton.analysis import scalar as sc
from proton.analysis.scalar import Expr, Leaf
from proton.analysis.structure.values import Analysis, Dim, Structure, differences
from proton.dialect import OpRules, isa, tt
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import shape_of
from proton.dialect.mlir import Operation, arith, ir
from proton.dialect.walk import defining_op

Rule = Callable[[Analysis, Operation, tuple[int, ...]], Structure | None]
RULES = OpRules[Rule]()


@RULES.of(tt.MakeRangeOp)
def _make_range(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure:
    return Structure((Dim(stride=1),), op.attributes["start"].value)


@RULES.of(tt.SplatOp)
def _splat(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    inner = analysis.structure(op.operands[0])
    return inner and replace(inner, dims=(Dim(),) * len(shape))


@RULES.of(arith.ConstantOp)
def _constant(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseIntElementsAttr) or not attribute.is_splat:
        return None
    value = attribute.get_splat_value()
    if value.type == integer(1):
        return None
    return Structure((Dim(),) * len(shape), ir.IntegerAttr(value).value)


@RULES.of(tt.AddPtrOp, arith.AddIOp)
def _add(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    left, right = map(analysis.structure, op.operands)
    return _sum(left, right)


def _sum(left: Structure | None, right: Structure | None) -> Structure | None:
    if left is None or right is None:
        return None
    dims = []
    for a, b in zip(left.dims, right.dims, strict=True):
        dim = a.plus(b)
        if dim is None:
            return None
        dims.append(dim)
    source = right.source if left.source is None else left.source
    return Structure(tuple(dims), sc.add(left.scalar, right.scalar), source)


@RULES.of(arith.SubIOp)
def _subtract(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    left, right = map(analysis.structure, op.operands)
    if left is None or right is None or any(dim.parent is not None for dim in right.dims):
        return None
    found = _sum(left, _product(right, -1))
    return found and replace(found, scalar=sc.sub(left.scalar, right.scalar))


@RULES.of(arith.MulIOp)
def _multiply(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    left, right = map(analysis.structure, op.operands)
    if left is None or right is None:
        return None
    if left.uniform:
        left, right = right, left
    return _product(left, right.scalar) if right.uniform else None


def _product(structure: Structure, factor: Expr) -> Structure:
    dims = tuple(dim.times(factor) for dim in structure.dims)
    return Structure(dims, sc.mul(structure.scalar, factor))


@RULES.of(arith.ShLIOp)
def _shift(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    left, right = map(analysis.structure, op.operands)
    if left is None or right is None or not right.uniform:
        return None
    amount = right.scalar
    return _product(left, 1 << amount) if isinstance(amount, int) and 0 <= amount < 31 else None


@RULES.of(arith.SelectOp)
def _select(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    """One of two, as a whole: each part that differs is chosen."""
    condition = op.operands[0]
    splat = defining_op(condition)
    if isa(splat, tt.SplatOp):
        condition = splat.operands[0]
    left, right = (analysis.structure(value) for value in list(op.operands)[1:])
    if shape_of(condition) or left is None or right is None:
        return None
    parts = differences(left, right)
    if parts is None:
        return None
    for part in parts:
        a, b = part.of(left), part.of(right)
        assert a is not None
        assert b is not None
        left = part.put(left, sc.select(Leaf(condition), a, b))
    return left


@RULES.of(arith.RemSIOp)
def _remainder(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    left, right = map(analysis.structure, op.operands)
    if left is None or right is None or not right.uniform:
        return None
    if any(dim.parent is not None for dim in left.dims) or left.gathers:
        return None
    if left.uniform:
        if not _is_small(left.scalar):
            return None
        return replace(left, scalar=sc.rem(left.scalar, right.scalar))
    varying = [axis for axis, dim in enumerate(left.dims) if dim.stride != 0]
    if len(varying) != 1 or not _is_small(left.dims[varying[0]].stride, left.scalar):
        return None
    dims = list(left.dims)
    dims[varying[0]] = Dim(left.dims[varying[0]].stride, left.scalar, right.scalar)
    return Structure(tuple(dims))


# A dividend with larger factors than these may overflow its 32 bits on purpose, as hashes do;
# the expressions here are 64 bits wide and would not.
MAX_FACTOR = 1 << 16


def _is_small(*exprs: Expr) -> bool:
    """True if no expression has a constant factor that makes an overflow likely."""
    return all(_factor(expr) <= MAX_FACTOR for expr in exprs)


def _factor(expr: Expr) -> int:
    """How large an expression is if its leaves are 1."""
    if isinstance(expr, int):
        return abs(expr)
    if isinstance(expr, Leaf):
        return 1
    factors = [_factor(argument) for argument in expr.args]
    if expr.op == "mul":
        return factors[0] * factors[1]
    return sum(factors) if expr.op in ("add", "sub") else max(factors)


@RULES.of(tt.ExpandDimsOp)
def _expand_dims(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    inner, axis = analysis.structure(op.operands[0]), op.attributes["axis"].value
    return inner and replace(inner, dims=(*inner.dims[:axis], Dim(), *inner.dims[axis:]))


@RULES.of(tt.BroadcastOp)
def _broadcast(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    inner, source = analysis.structure(op.operands[0]), shape_of(op.operands[0])
    if inner is None:
        return None
    dims, scalar = [], inner.scalar
    for dim, old, new in zip(inner.dims, source, shape, strict=True):
        if old == new:
            dims.append(dim)
            continue
        if dim.gathers:
            return None
        if dim.parent is not None:  # one element, repeated: its wrapped place is a scalar
            scalar = sc.add(scalar, sc.rem(dim.offset, dim.parent))
        dims.append(Dim())
    return replace(inner, dims=tuple(dims), scalar=scalar)


@RULES.of(tt.TransOp)
def _transpose(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    inner = analysis.structure(op.operands[0])
    return inner and replace(inner, dims=tuple(inner.dims[axis] for axis in op.attributes["order"]))


@RULES.of(tt.ReshapeOp)
def _reshape(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    """One that only adds and drops dimensions of size 1."""
    inner, source = analysis.structure(op.operands[0]), shape_of(op.operands[0])
    if inner is None or [n for n in source if n != 1] != [n for n in shape if n != 1]:
        return None
    pairs = list(zip(source, inner.dims, strict=True))
    if any(n == 1 and (dim.parent is not None or dim.gathers) for n, dim in pairs):
        return None  # its one place is not 0
    kept = (dim for n, dim in pairs if n != 1)
    return replace(inner, dims=tuple(next(kept) if n != 1 else Dim() for n in shape))


@RULES.of(arith.ExtSIOp)
def _widen(analysis: Analysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    source = op.operands[0].type.element_type
    if source == integer(1):
        return None
    return analysis.structure(op.operands[0])
