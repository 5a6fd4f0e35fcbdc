"""What a structured tensor is made of: a source, numbers, dimensions; how two of them differ."""

from dataclasses import dataclass, replace
from typing import Protocol

from proton.analysis import scalar as sc
from proton.analysis.scalar import Expr, Leaf
from proton.dialect.mlir import Value

Gather = tuple[Leaf, Expr]  # a tensor of integers along one dimension, and its factor


@dataclass(frozen=True)
class Dim:
    """wrap(offset + i * stride), and of each gather its element i times its factor.

    Without a parent the offset is 0 (it is in the scalar).
    """

    stride: Expr = 0
    offset: Expr = 0
    parent: Expr | None = None
    gathers: tuple[Gather, ...] = ()

    def plus(self, other: "Dim") -> "Dim | None":
        """The sum; None where both wrap, or one does and the other has a stride."""
        gathers = self.gathers + other.gathers
        if self.parent is None and other.parent is None:
            return Dim(sc.add(self.stride, other.stride), gathers=gathers)
        wrapped, rest = (self, other) if self.parent is not None else (other, self)
        if rest.parent is not None or rest.stride != 0:
            return None
        return replace(wrapped, gathers=gathers)

    def times(self, factor: Expr) -> "Dim":
        """The product with a number."""
        if factor == 0:
            return Dim()
        parent = None if self.parent is None else sc.mul(self.parent, factor)
        gathers = tuple((index, sc.mul(own, factor)) for index, own in self.gathers)
        return Dim(sc.mul(self.stride, factor), sc.mul(self.offset, factor), parent, gathers)


@dataclass(frozen=True)
class Structure:
    """A structured tensor; see the package's docstring."""

    dims: tuple[Dim, ...]
    scalar: Expr = 0
    source: Expr | None = None  # a scalar pointer

    @property
    def uniform(self) -> bool:
        """True if every element is the same."""
        return all(dim.stride == 0 and dim.parent is None and not dim.gathers for dim in self.dims)

    @property
    def gathers(self) -> bool:
        """True if a dimension's places come from a tensor."""
        return any(dim.gathers for dim in self.dims)


# Parts: what a loop or a branch may carry of a structure


@dataclass(frozen=True)
class Part:
    """A number, or pointer, of a structure: its scalar, its source, or of dimension `axis` the
    stride, offset or parent."""

    name: str
    axis: int = 0

    def of(self, structure: Structure) -> Expr | None:
        """What it is in a structure."""
        if self.name in ("scalar", "source"):
            found: Expr | None = getattr(structure, self.name)
            return found
        of_dim: Expr | None = getattr(structure.dims[self.axis], self.name)
        return of_dim

    def put(self, structure: Structure, expr: Expr) -> Structure:
        """A structure with another one in its place."""
        if self.name == "scalar":
            return replace(structure, scalar=expr)
        if self.name == "source":
            return replace(structure, source=expr)
        dims = list(structure.dims)
        changed = {self.name: expr}
        dims[self.axis] = replace(dims[self.axis], **changed)  # type: ignore[arg-type]
        return replace(structure, dims=tuple(dims))


SCALAR = Part("scalar")
SOURCE = Part("source")


@dataclass(frozen=True)
class CarriedPart:
    """What stands for a part of a carried tensor until the transform has made it."""

    tensor: Value
    part: Part


def leaf_of(tensor: Value, part: Part) -> Leaf:
    """The expression of a carried part; of the scalar it is the tensor's own."""
    return Leaf(tensor if part == SCALAR else CarriedPart(tensor, part))


def parts_of(structure: Structure) -> list[Part]:
    """All that may be carried of a structure."""
    parts = [SCALAR] + ([SOURCE] if structure.source is not None else [])
    for axis, dim in enumerate(structure.dims):
        parts.append(Part("stride", axis))
        if dim.parent is not None:
            parts += [Part("offset", axis), Part("parent", axis)]
    return parts


def differences(a: Structure, b: Structure) -> set[Part] | None:
    """The parts in which two structures differ; None where that is not all."""
    if len(a.dims) != len(b.dims) or (a.source is None) != (b.source is None):
        return None
    for one, other in zip(a.dims, b.dims, strict=True):
        if (one.parent is None) != (other.parent is None) or one.gathers != other.gathers:
            return None
    return {part for part in parts_of(a) if part.of(a) != part.of(b)}


def leaves(expr: Expr | None) -> list[Leaf]:
    """The scalars in an expression."""
    if isinstance(expr, Leaf):
        return [expr]
    if isinstance(expr, sc.Node):
        return [leaf for argument in expr.args for leaf in leaves(argument)]
    return []


class Analysis(Protocol):
    """What rules ask of the analysis of a function (core.py), which imports them."""

    carried: dict[Value, tuple[Part, ...]]  # what is carried in a tensor's place
    carried_values: dict[Value, Structure]
    memo: dict[Value, Structure | None]

    def structure(self, value: Value) -> Structure | None: ...
