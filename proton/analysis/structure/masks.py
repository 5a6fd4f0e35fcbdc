"""Which masks are boxes, and what is left of those that are not."""

from collections.abc import Iterable
from dataclasses import dataclass

from proton.analysis import scalar as sc
from proton.analysis.scalar import Expr, Leaf
from proton.analysis.structure.values import Analysis, Dim, Structure
from proton.dialect import isa, tt
from proton.dialect.diagnostics import shape_of
from proton.dialect.emit import predicate_of
from proton.dialect.mlir import Operation, Value, arith, ir
from proton.dialect.walk import defining_op


@dataclass(frozen=True)
class MaskBox:
    """A mask that is true for the first counts[d] elements of each dimension, from starts[d] on."""

    counts: tuple[Expr, ...]
    starts: tuple[Expr, ...]

    @classmethod
    def first(cls, counts: Iterable[Expr]) -> "MaskBox":
        """One that starts at 0 in each dimension."""
        counts = tuple(counts)
        return cls(counts, (0,) * len(counts))

    def within(self, other: "MaskBox") -> "MaskBox":
        """What both have."""
        return MaskBox(
            tuple(map(sc.minimum, self.counts, other.counts)),
            tuple(map(sc.maximum, self.starts, other.starts)),
        )


@dataclass(frozen=True)
class Mask:
    """A box, of which only the elements are there for which all of `others` are true."""

    box: MaskBox
    others: tuple[Leaf, ...] = ()  # tensors of i1, of the block's shape


def mask_of(analysis: Analysis, mask: Value) -> Mask:
    """A mask as a box as far as it is one: terms of a conjunction that are none are `others`."""
    box = box_of(analysis, mask)
    if box is not None:
        return Mask(box)
    op = defining_op(mask)
    if isa(op, arith.AndIOp):
        left, right = (mask_of(analysis, operand) for operand in op.operands)
        return Mask(left.box.within(right.box), left.others + right.others)
    return Mask(MaskBox.first(shape_of(mask)), (Leaf(mask),))


def box_of(analysis: Analysis, mask: Value) -> MaskBox | None:
    """The box of a mask; None where it is not one. `analysis` knows the structure of integers."""
    shape = shape_of(mask)
    op = defining_op(mask)
    if op is None:
        return _scalar(mask, shape) if not shape else None
    match op.name:
        case arith.ConstantOp.OPERATION_NAME:
            return _constant(op, shape)
        case tt.SplatOp.OPERATION_NAME:
            return _scalar(op.operands[0], shape)
        case tt.ExpandDimsOp.OPERATION_NAME:
            inner = box_of(analysis, op.operands[0])
            if inner is None:
                return None
            axis = op.attributes["axis"].value
            return MaskBox(
                (*inner.counts[:axis], 1, *inner.counts[axis:]),
                (*inner.starts[:axis], 0, *inner.starts[axis:]),
            )
        case tt.BroadcastOp.OPERATION_NAME:
            return _broadcast(box_of(analysis, op.operands[0]), shape_of(op.operands[0]), shape)
        case arith.AndIOp.OPERATION_NAME:
            left, right = (box_of(analysis, operand) for operand in op.operands)
            return None if left is None or right is None else left.within(right)
        case arith.CmpIOp.OPERATION_NAME:
            sides = [analysis.structure(operand) for operand in op.operands]
            return _compare(predicate_of(op).name, sides[0], sides[1], shape)
    return None


def _broadcast(
    inner: MaskBox | None, source: tuple[int, ...], shape: tuple[int, ...]
) -> MaskBox | None:
    if inner is None:
        return None

    # A repeated element is there for all of the new dimension, or for nothing of it.
    def repeated(limits: tuple[Expr, ...]) -> tuple[Expr, ...]:
        triples = zip(limits, source, shape, strict=True)
        return tuple(limit if a == b else sc.mul(limit, b) for limit, a, b in triples)

    return MaskBox(repeated(inner.counts), repeated(inner.starts))


def _compare(
    name: str, left: Structure | None, right: Structure | None, shape: tuple[int, ...]
) -> MaskBox | None:
    """i + scalar < bound or i + scalar >= bound, in any of their spellings."""
    if left is None or right is None or not shape:
        return None
    if left.source is not None or right.source is not None:
        return None
    if name in ("sgt", "sge"):
        left, right, name = right, left, name.replace("g", "l")
    is_lower = left.uniform  # bound < i + scalar
    row, limit = (right, left) if is_lower else (left, right)
    varying = [axis for axis, dim in enumerate(row.dims) if dim != Dim()]
    if name not in ("slt", "sle") or not limit.uniform or len(varying) != 1:
        return None
    axis = varying[0]
    if row.dims[axis] != Dim(stride=1):
        return None
    bound = sc.sub(limit.scalar, row.scalar)
    if name == ("slt" if is_lower else "sle"):
        bound = sc.add(bound, 1)
    bound = sc.maximum(0, sc.minimum(bound, shape[axis]))
    counts: list[Expr] = list(shape)
    starts: list[Expr] = [0] * len(shape)
    (starts if is_lower else counts)[axis] = bound
    return MaskBox(tuple(counts), tuple(starts))


def _scalar(condition: Value, shape: tuple[int, ...]) -> MaskBox | None:
    op = defining_op(condition)
    if isa(op, arith.ConstantOp):
        return MaskBox.first(shape if op.attributes["value"].value else (0,) * len(shape))
    if not shape:
        return None
    leaf = Leaf(condition)
    return MaskBox.first((sc.select(leaf, shape[0], 0), *shape[1:]))


def _constant(op: Operation, shape: tuple[int, ...]) -> MaskBox | None:
    attribute = op.attributes["value"]
    if not shape or not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    true = bool(attribute.get_splat_value().value)
    return MaskBox.first(shape if true else (0,) * len(shape))
