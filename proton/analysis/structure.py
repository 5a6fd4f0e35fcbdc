"""Which tensors of integers and pointers are affine in their indices, and which masks are boxes.

A tensor is *structured* when its element at (i0, i1, ...) is

    source + scalar + sum over d of wrap_d(offset_d + i_d * stride_d)

with scalar symbolic `scalar`, `offset_d` and `stride_d` (`proton.analysis.scalar`), where
`source` is a scalar pointer (none for integers) and wrap_d takes the remainder by `parent_d`
where dimension d has one. For example `ptr + pid * 4 + arange(0, 4)` has source ptr, scalar
pid * 4 and stride 1. A mask is a *box* when it is true for exactly the first `count_d`
elements of each dimension d, or for those among them from `start_d` on. The idea is
triton-shared's pointer analysis.

Pointers that a loop carries are structured when each iteration changes only their scalar.
Remainders are taken as wrap-around: the dividend must not be negative (docs/limitations.md).
"""

from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from typing import Any

from proton.analysis import scalar as sc
from proton.analysis.scalar import Expr, Leaf
from proton.dialect.builtin import integer
from proton.dialect.diagnostics import shape_of
from proton.dialect.mlir import Block, Operation, Type, Value, ir
from proton.dialect.regions import ForLoop
from proton.dialect.tt import is_pointer_like


@dataclass(frozen=True)
class Dim:
    """wrap(offset + i * stride); without a parent, the offset is 0 (it is in the scalar)."""

    stride: Expr = 0
    offset: Expr = 0
    parent: Expr | None = None


@dataclass(frozen=True)
class Structure:
    """A structured tensor; see the module's docstring."""

    dims: tuple[Dim, ...]
    scalar: Expr = 0
    source: Any = None  # a scalar pointer Value

    @property
    def uniform(self) -> bool:
        """Whether every element is the same."""
        return all(dim.stride == 0 and dim.parent is None for dim in self.dims)


@dataclass(frozen=True)
class Box:
    """A mask that is true for the first counts[d] elements of each dimension, from starts[d] on."""

    counts: tuple[Expr, ...]
    starts: tuple[Expr, ...]

    @classmethod
    def first(cls, counts: Iterable[Expr]) -> "Box":
        """One that starts at 0 in each dimension."""
        counts = tuple(counts)
        return cls(counts, (0,) * len(counts))


@dataclass
class StructureAnalysis:
    """Answers for one module, once `analyse_loops` has run on its functions' blocks."""

    # Loop variable -> (its `scf.for`, which of the carried values keep all of their structure
    # but the scalar). Values are the keys because an operation's hash changes with it.
    loops: dict[Value, tuple[Any, list[int]]] = field(default_factory=dict)
    # Their block arguments and results -> the structure, in which `Leaf(that value)` stands
    # for the scalar that the transform will carry in the tensor's place.
    loop_values: dict[Value, Structure] = field(default_factory=dict)
    memo: dict[Value, Structure | None] = field(default_factory=dict)

    def structure(self, value: Value) -> Structure | None:
        """The structure of a scalar or tensor of integers or pointers; None where it has none."""
        if value in self.loop_values:
            return self.loop_values[value]
        if value not in self.memo:
            self.memo[value] = None  # a cycle has no structure
            self.memo[value] = self._compute(value)
        return self.memo[value]

    def _compute(self, value: Value) -> Structure | None:
        shape = shape_of(value)
        op = _defining_op(value)
        if not shape:
            constant = _scalar_constant(op)
            if constant is not None:
                return Structure((), constant)
            if is_pointer_like(value.type):
                return Structure((), 0, value)
            return Structure((), Leaf(value)) if _is_number(value.type) else None
        if op is None:
            return None
        rule = _RULES.get(op.name)
        return rule(self, op, shape) if rule else None

    # Loops

    def analyse_loops(self, block: Block) -> None:
        """Analyses every `scf.for` below a block, outer ones first; see `loops`."""
        for op in block.operations:
            if op.operation.name == "scf.for":
                self._analyse_loop(op.operation)
            else:
                for region in op.operation.regions:
                    for inner in region.blocks:
                        self.analyse_loops(inner)

    def _analyse_loop(self, op: Operation) -> None:
        """Assumes that all candidates keep their structure, drops those that do not, repeats."""
        loop = ForLoop(op)
        body, arguments, yielded = loop.body, loop.iter_args, loop.yielded
        candidates: dict[int, Structure] = {}
        for position, value in enumerate(loop.init_args):
            if shape_of(value) and (structure := self.structure(value)) is not None:
                candidates[position] = structure
        known = dict(self.loop_values)
        while True:
            # What inner loops were found to carry rests on what is assumed here: start anew.
            self.loop_values = dict(known)
            for position, structure in candidates.items():
                argument = arguments[position]
                self.loop_values[argument] = replace(structure, scalar=Leaf(argument))
            self.memo.clear()
            self.analyse_loops(body)
            failed = [
                position
                for position, structure in candidates.items()
                if not _keeps_structure(
                    op, arguments[position], structure, self.structure(yielded[position])
                )
            ]
            for position in failed:
                del candidates[position]
            if not failed:
                break
        self.memo.clear()
        for position, structure in candidates.items():
            result = op.results[position]
            self.loop_values[result] = replace(structure, scalar=Leaf(result))
        self.loops[body.arguments[0]] = op, sorted(candidates)

    # Masks

    def box(self, mask: Value) -> Box | None:
        """The box of a mask; None where it is not one."""
        shape = shape_of(mask)
        op = _defining_op(mask)
        if op is None:
            return _scalar_box(mask, shape) if not shape else None
        match op.name:
            case "arith.constant":
                return _constant_box(op, shape)
            case "tt.splat":
                return _scalar_box(op.operands[0], shape)
            case "tt.expand_dims":
                inner = self.box(op.operands[0])
                if inner is None:
                    return None
                axis = op.attributes["axis"].value
                return Box(
                    (*inner.counts[:axis], 1, *inner.counts[axis:]),
                    (*inner.starts[:axis], 0, *inner.starts[axis:]),
                )
            case "tt.broadcast":
                return self._broadcast_box(op, shape)
            case "arith.andi":
                return self._and_box(op, shape)
            case "arith.cmpi":
                return self._compare_box(op, shape)
        return None

    def _and_box(self, op: Operation, shape: tuple[int, ...]) -> Box | None:
        left, right = self.box(op.operands[0]), self.box(op.operands[1])
        if left is None or right is None:
            return None
        return Box(
            tuple(map(sc.minimum, left.counts, right.counts)),
            tuple(map(sc.maximum, left.starts, right.starts)),
        )

    def _broadcast_box(self, op: Operation, shape: tuple[int, ...]) -> Box | None:
        inner, source = self.box(op.operands[0]), shape_of(op.operands[0])
        if inner is None:
            return None

        # A repeated element is there for all of the new dimension, or for nothing of it.
        def repeated(limits: tuple[Expr, ...]) -> tuple[Expr, ...]:
            triples = zip(limits, source, shape, strict=True)
            return tuple(limit if a == b else sc.mul(limit, b) for limit, a, b in triples)

        return Box(repeated(inner.counts), repeated(inner.starts))

    def _compare_box(self, op: Operation, shape: tuple[int, ...]) -> Box | None:
        """i + scalar < bound or i + scalar >= bound, in any of their spellings."""
        predicate = op.attributes["predicate"].value
        left, right = self.structure(op.operands[0]), self.structure(op.operands[1])
        if left is None or right is None or left.source or right.source or not shape:
            return None
        slt, sle, sgt, sge = 2, 3, 4, 5
        if predicate in (sgt, sge):
            left, right, predicate = right, left, {sgt: slt, sge: sle}[predicate]
        is_lower = left.uniform  # bound < i + scalar
        row, limit = (right, left) if is_lower else (left, right)
        varying = [axis for axis, dim in enumerate(row.dims) if dim != Dim()]
        if predicate not in (slt, sle) or not limit.uniform or len(varying) != 1:
            return None
        axis = varying[0]
        if row.dims[axis] != Dim(stride=1):
            return None
        bound = sc.sub(limit.scalar, row.scalar)
        if predicate == (slt if is_lower else sle):
            bound = sc.add(bound, 1)
        bound = sc.maximum(0, sc.minimum(bound, shape[axis]))
        counts: list[Expr] = list(shape)
        starts: list[Expr] = [0] * len(shape)
        (starts if is_lower else counts)[axis] = bound
        return Box(tuple(counts), tuple(starts))


def _defining_op(value: Value) -> Operation | None:
    return value.owner if isinstance(value, ir.OpResult) else None


def _is_number(type_: Type) -> bool:
    """Whether the type is an integer of more than one bit, or index."""
    is_bool = isinstance(type_, ir.IntegerType) and type_.width == 1
    return isinstance(type_, ir.IntegerType | ir.IndexType) and not is_bool


def _scalar_constant(op: Operation | None) -> int | None:
    if op is None or op.name != "arith.constant":
        return None
    attribute = op.attributes["value"]
    return attribute.value if isinstance(attribute, ir.IntegerAttr) else None


def _scalar_box(condition: Any, shape: tuple[int, ...]) -> Box | None:
    op = _defining_op(condition)
    if op is not None and op.name == "arith.constant":
        return Box.first(shape if op.attributes["value"].value else (0,) * len(shape))
    if not shape:
        return None
    leaf = Leaf(condition)
    return Box.first((sc.select(leaf, shape[0], 0), *shape[1:]))


def _constant_box(op: Operation, shape: tuple[int, ...]) -> Box | None:
    attribute = op.attributes["value"]
    if not shape or not isinstance(attribute, ir.DenseElementsAttr) or not attribute.is_splat:
        return None
    true = bool(attribute.get_splat_value().value)
    return Box.first(shape if true else (0,) * len(shape))


def _keeps_structure(loop: Operation, argument: Value, a: Structure, b: Structure | None) -> bool:
    """Whether a carried value changes only its scalar.

    A carried integer tensor may be used for more than addresses, so its scalar must be exact in
    the tensor's own width: it may only move by constants of the loop, as 32-bit sums wrap where
    the sum of the 64-bit scalars, cut to 32 bits, does.
    """
    if b is None or a.dims != b.dims or a.source != b.source:
        return False
    return a.source is not None or _moves_evenly(loop, argument, b.scalar)


def _moves_evenly(loop: Any, argument: Any, expr: Expr) -> bool:
    """Whether an expression is the argument plus and minus what the loop does not change."""

    def is_constant(term: Expr) -> bool:
        if isinstance(term, Leaf):
            return not _is_inside(term.value, loop)
        return isinstance(term, int)

    while isinstance(expr, sc.Node) and expr.op in ("add", "sub"):
        left, right = expr.args
        if is_constant(right):
            expr = left
        elif expr.op == "add" and is_constant(left):
            expr = right
        else:
            return False
    return expr == Leaf(argument)


def _is_inside(value: Any, loop: Any) -> bool:
    """Whether a value is made inside an op's regions, the op's own arguments included."""
    op = _defining_op(value)
    parent = value.owner.owner if op is None else op.parent
    while parent is not None:
        if parent.operation == loop:
            return True
        parent = parent.operation.parent
    return False


# Rules: op -> the structure of its result


def _make_range(analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]) -> Structure:
    return Structure((Dim(stride=1),), op.attributes["start"].value)


def _splat(analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    inner = analysis.structure(op.operands[0])
    return inner and replace(inner, dims=(Dim(),) * len(shape))


def _constant(
    analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]
) -> Structure | None:
    attribute = op.attributes["value"]
    if not isinstance(attribute, ir.DenseIntElementsAttr) or not attribute.is_splat:
        return None
    value = attribute.get_splat_value()
    if value.type == integer(1):
        return None
    return Structure((Dim(),) * len(shape), ir.IntegerAttr(value).value)


def _add(analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    left, right = map(analysis.structure, op.operands)
    if left is None or right is None:
        return None
    dims = []
    for a, b in zip(left.dims, right.dims, strict=True):
        if a.parent is None and b.parent is None:
            dims.append(Dim(stride=sc.add(a.stride, b.stride)))
        elif b == Dim() or a == Dim():
            dims.append(b if a == Dim() else a)
        else:
            return None
    scalar = sc.add(left.scalar, right.scalar)
    return Structure(tuple(dims), scalar, left.source or right.source)


def _subtract(
    analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]
) -> Structure | None:
    left, right = map(analysis.structure, op.operands)
    if left is None or right is None or any(dim.parent is not None for dim in right.dims):
        return None
    if any(a.parent is not None and b != Dim() for a, b in zip(left.dims, right.dims, strict=True)):
        return None
    dims = tuple(
        replace(a, stride=sc.sub(a.stride, b.stride))
        for a, b in zip(left.dims, right.dims, strict=True)
    )
    return Structure(dims, sc.sub(left.scalar, right.scalar))


def _multiply(
    analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]
) -> Structure | None:
    left, right = map(analysis.structure, op.operands)
    if left is None or right is None:
        return None
    if left.uniform:
        left, right = right, left
    if not right.uniform:
        return None
    factor = right.scalar

    def scaled(dim: Dim) -> Dim:
        parent = None if dim.parent is None else sc.mul(dim.parent, factor)
        return Dim(sc.mul(dim.stride, factor), sc.mul(dim.offset, factor), parent)

    return Structure(tuple(map(scaled, left.dims)), sc.mul(left.scalar, factor))


def _remainder(
    analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]
) -> Structure | None:
    left, right = map(analysis.structure, op.operands)
    if left is None or right is None or not right.uniform:
        return None
    if any(dim.parent is not None for dim in left.dims):
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
    """Whether no expression has a constant factor that makes an overflow likely."""
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


def _expand_dims(
    analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]
) -> Structure | None:
    inner, axis = analysis.structure(op.operands[0]), op.attributes["axis"].value
    return inner and replace(inner, dims=(*inner.dims[:axis], Dim(), *inner.dims[axis:]))


def _broadcast(
    analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]
) -> Structure | None:
    inner, source = analysis.structure(op.operands[0]), shape_of(op.operands[0])
    if inner is None:
        return None
    dims, scalar = [], inner.scalar
    for dim, old, new in zip(inner.dims, source, shape, strict=True):
        if old == new:
            dims.append(dim)
            continue
        if dim.parent is not None:  # one element, repeated: its wrapped place is a scalar
            scalar = sc.add(scalar, sc.rem(dim.offset, dim.parent))
        dims.append(Dim())
    return replace(inner, dims=tuple(dims), scalar=scalar)


def _transpose(
    analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]
) -> Structure | None:
    inner = analysis.structure(op.operands[0])
    return inner and replace(inner, dims=tuple(inner.dims[axis] for axis in op.attributes["order"]))


def _widen(analysis: StructureAnalysis, op: Operation, shape: tuple[int, ...]) -> Structure | None:
    source = op.operands[0].type.element_type
    if source == integer(1):
        return None
    return analysis.structure(op.operands[0])


_RULES = {
    "tt.make_range": _make_range,
    "tt.splat": _splat,
    "arith.constant": _constant,
    "tt.addptr": _add,
    "arith.addi": _add,
    "arith.subi": _subtract,
    "arith.muli": _multiply,
    "arith.remsi": _remainder,
    "tt.expand_dims": _expand_dims,
    "tt.broadcast": _broadcast,
    "tt.trans": _transpose,
    "arith.extsi": _widen,
}
