"""Integers of a kernel as sums of products: sums of integers times *atoms*.

    start * stride + head * 128 + 64    ->    {(start, stride): 1, (head,): 128, (): 64}

Atoms are the kernel's arguments, and what is computed by other ops than sums and products; what is
computed alike is one atom. Of what a loop carries, and adds the same to in each iteration, it is
known how much that is: the variable of the loop is an atom, or, where it does not begin at 0, its
*progress*.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from proton.analysis import scalar as sc
from proton.analysis.signs import is_non_negative
from proton.analysis.structure import StructureAnalysis
from proton.dialect import isa, tt
from proton.dialect.diagnostics import shape_of
from proton.dialect.emit import constant, number_of
from proton.dialect.mlir import Block, Operation, Type, Value, arith, ir, scf
from proton.dialect.regions import ForLoop, is_invariant
from proton.dialect.traits import KeepsNumber, Pure, has
from proton.dialect.walk import defining_op


@dataclass(frozen=True)
class Progress:
    """What the variable of a loop has gained since it began."""

    loop: Operation


Atom = Value | Progress
Monomial = tuple[Atom, ...]  # in the order in which atoms were met
Polynomial = dict[Monomial, int]


class Polynomials:
    """Those of a kernel, whose first block is `entry`."""

    def __init__(self, entry: Block, analysis: StructureAnalysis) -> None:
        self.entry, self.analysis = entry, analysis
        self.order: dict[Atom, int] = {}
        self.alike: dict[object, list[Value]] = {}  # of which the first is the atom
        self.sizes: set[Value] = set()  # arguments that are taken not to be negative

    def of(self, expr: sc.Expr) -> Polynomial | None:
        """An expression as a sum of products; None for other ones."""
        if isinstance(expr, int):
            return {(): expr} if expr else {}
        if isinstance(expr, sc.Leaf):
            return self.of_value(expr.value) if isinstance(expr.value, Value) else None
        if expr.op not in ("add", "sub", "mul"):
            return None
        left, right = (self.of(argument) for argument in expr.args)
        if left is None or right is None:
            return None
        return self._combined(expr.op, left, right)

    def _combined(self, name: str, left: Polynomial, right: Polynomial) -> Polynomial:
        if name == "mul":
            return self.product(left, right)
        sign = -1 if name == "sub" else 1
        return add(left, {monomial: sign * factor for monomial, factor in right.items()})

    def of_value(self, value: Value) -> Polynomial | None:
        """A scalar, or what a loop carries in the place of a tensor (its `scalar`)."""
        op = defining_op(value)
        if op is None:
            return self._of_argument(value)
        if shape_of(value):
            return None
        if isa(op, arith.ConstantOp):
            number = int(ir.IntegerAttr(op.attributes["value"]).value)
            return {(): number} if number else {}
        if has(op, KeepsNumber) and not isa(op, arith.TruncIOp):
            return self.of_value(op.operands[0])
        for kind, name in ((arith.AddIOp, "add"), (arith.SubIOp, "sub"), (arith.MulIOp, "mul")):
            if isa(op, kind):
                left, right = (self.of_value(operand) for operand in op.operands)
                if left is None or right is None:
                    return None
                return self._combined(name, left, right)
        return self._atom(value)

    def _of_argument(self, value: Value) -> Polynomial | None:
        """A block argument: of what a loop carries, and adds the same to in each iteration, what it
        begins with and what it has gained."""
        loop = value.owner.owner.operation
        if value.owner == self.entry or not isa(loop, scf.ForOp):
            return self._atom(value) if not shape_of(value) else None
        view = ForLoop(loop)
        if value == view.induction_var:
            lower = self.of_value(view.bounds[0])
            return None if lower is None else add(lower, self._progress(loop))
        number = view.iter_args.index(value)
        first, step = self._scalar_of(view.init_args[number]), self.of_value(view.bounds[2])
        after = self._gain(value, view.yielded[number])
        if first is None or after is None or step is None or list(step) != [()]:
            return self._atom(value) if not shape_of(value) else None
        if any(factor % step[()] for factor in after.values()):
            return None
        each = {monomial: factor // step[()] for monomial, factor in after.items()}
        return add(first, self.product(each, self._progress(loop)))

    def _scalar_of(self, value: Value) -> Polynomial | None:
        if not shape_of(value):
            return self.of_value(value)
        structure = self.analysis.structure(value)
        return None if structure is None else self.of(structure.scalar)

    def _gain(self, argument: Value, end: Value) -> Polynomial | None:
        """What an iteration adds to a carried value; None where that is not the same in all."""
        own = sc.Leaf(argument)
        if shape_of(end):
            structure = self.analysis.structure(end)
            terms = [] if structure is None else _terms(structure.scalar)
        else:
            terms = _terms_of_value(end, argument)
        rest = [(sign, term) for sign, term in terms if term != own]
        if len(rest) != len(terms) - 1:
            return None
        loop = argument.owner.owner.operation
        found: Polynomial = {}
        for sign, term in rest:
            more = self.of(term)
            if more is None or not all(self._stays(atom, loop) for m in more for atom in m):
                return None
            found = add(found, {monomial: sign * factor for monomial, factor in more.items()})
        return found

    @staticmethod
    def _stays(atom: Atom, loop: Operation) -> bool:
        return isinstance(atom, Value) and is_invariant(atom, loop)

    def _progress(self, loop: Operation) -> Polynomial:
        """Of a loop from 0 on it is the variable."""
        view = ForLoop(loop)
        lower = self.of_value(view.bounds[0])
        return self._atom(view.induction_var if lower == {} else Progress(loop))

    def _atom(self, atom: Atom) -> Polynomial:
        if isinstance(atom, Value):
            alike = self.alike.setdefault(self._number(atom), [])
            if atom not in alike:
                alike.append(atom)
            atom = alike[0]
        self.order.setdefault(atom, len(self.order))
        return {(atom,): 1}

    def _number(self, value: Value) -> object:
        """Equal for values that are computed alike."""
        op = defining_op(value)
        if op is None or op.regions or not has(op, Pure) or len(op.results) != 1:
            return value
        attributes = tuple((name, str(op.attributes[name])) for name in op.attributes)
        return op.name, str(value.type), attributes, *map(self._number, op.operands)

    def product(self, left: Polynomial, right: Polynomial) -> Polynomial:
        found: Polynomial = {}
        for one, a in left.items():
            for other, b in right.items():
                monomial = tuple(sorted((*one, *other), key=self.order.__getitem__))
                found = add(found, {monomial: a * b})
        return found

    def is_argument(self, atom: Atom) -> bool:
        return isinstance(atom, Value) and defining_op(atom) is None and atom.owner == self.entry

    def is_of_host(self, polynomial: Polynomial) -> bool:
        return all(self.is_argument(atom) for monomial in polynomial for atom in monomial)

    def is_index(self, polynomial: Polynomial) -> bool:
        """True if a sum is known not to be negative."""
        return all(
            factor >= 0 and all(self._is_counted(atom) for atom in monomial)
            for monomial, factor in self._least(polynomial).items()
        )

    def _least(self, polynomial: Polynomial) -> Polynomial:
        """A sum that is no greater: without what is subtracted and known to be less than
        something."""
        for monomial, factor in polynomial.items():
            end = self._end(monomial) if factor < 0 else None
            if end is not None:
                polynomial = add(polynomial, {monomial: -factor, (): -factor})
                polynomial = add(polynomial, {m: f * factor for m, f in end.items()})
        return polynomial

    def _end(self, monomial: Monomial) -> Polynomial | None:
        """What a number is less than: the programs of an axis, the end of a loop; None where that
        is not known."""
        if len(monomial) != 1:
            return None
        (atom,) = monomial
        if isinstance(atom, Progress):
            lower, upper, _ = map(self.of_value, ForLoop(atom.loop).bounds)
            return None if lower is None or upper is None else add(upper, negative(lower))
        op = defining_op(atom)
        if op is not None:
            counts = (a for a in self.order if isinstance(a, Value) and _counts(a, op))
            return next((self._atom(count) for count in counts), None)
        loop = atom.owner.owner.operation
        if not isa(loop, scf.ForOp) or atom != ForLoop(loop).induction_var:
            return None
        return self.of_value(ForLoop(loop).bounds[1])

    def _is_counted(self, atom: Atom) -> bool:
        value = atom if isinstance(atom, Value) else ForLoop(atom.loop).bounds[2]
        if is_non_negative(value, frozenset(self.sizes)):
            return True
        op = defining_op(value)
        if isa(op, arith.MinSIOp):
            return all(map(self._is_known_index, op.operands))
        if isa(op, arith.DivSIOp) and (number_of(op.operands[1]) or 0) > 0:
            return self._is_known_index(op.operands[0])
        return False

    def _is_known_index(self, value: Value) -> bool:
        known = self.of_value(value)
        return known is not None and self.is_index(known)

    def emit(self, polynomial: Polynomial, type_: Type, user: Operation | None = None) -> Value:
        """A sum at the insertion point, which stands ahead of `user`; without one it is of
        arguments."""
        found: Value | None = None
        for monomial, factor in polynomial.items():
            parts = [self._emitted(atom, type_, user) for atom in monomial]
            if factor != 1 or not parts:
                parts.append(constant(factor, type_))
            term = parts[0]
            for part in parts[1:]:
                term = arith.MulIOp(term, part).result
            found = term if found is None else arith.AddIOp(found, term).result
        return constant(0, type_) if found is None else found

    def _emitted(self, atom: Atom, type_: Type, user: Operation | None) -> Value:
        if isinstance(atom, Progress):
            view = ForLoop(atom.loop)
            now, first = (_cast(value, type_) for value in (view.induction_var, view.bounds[0]))
            return arith.SubIOp(now, first).result
        alike = self.alike[self._number(atom)]
        known = [value for value in alike if user is None or _is_ahead(value, user)]
        return _cast(known[0], type_)


def _counts(value: Value, program: Operation) -> bool:
    """True if an op gives a program's number, and a value is that of programs along its axis."""
    op = defining_op(value)
    if op is None or not (isa(program, tt.GetProgramIdOp) and isa(op, tt.GetNumProgramsOp)):
        return False
    return bool(op.attributes["axis"] == program.attributes["axis"])


def _is_ahead(value: Value, user: Operation) -> bool:
    """True if an op may take a value."""
    op = defining_op(value)
    block = value.owner if op is None else op.block
    around: Operation | None = user
    while around is not None and around.block != block:
        parent = around.parent
        around = None if parent is None else parent.operation
    if around is None:
        return False
    return op is None or bool(op.is_before_in_block(around))


def _cast(value: Value, type_: Type) -> Value:
    if value.type == type_:
        return value
    if value.type.width < type_.width:
        return arith.ExtSIOp(type_, value).result
    return arith.TruncIOp(type_, value).result


def add(left: Polynomial, right: Polynomial) -> Polynomial:
    """The sum."""
    found = dict(left)
    for monomial, factor in right.items():
        found[monomial] = found.get(monomial, 0) + factor
    return {monomial: factor for monomial, factor in found.items() if factor}


def negative(polynomial: Polynomial) -> Polynomial:
    """The same with the other sign."""
    return {monomial: -factor for monomial, factor in polynomial.items()}


def _terms(expr: sc.Expr) -> Sequence[tuple[int, sc.Expr]]:
    """The terms of a sum, with their signs."""
    if isinstance(expr, sc.Node) and expr.op in ("add", "sub"):
        left, right = (_terms(argument) for argument in expr.args)
        sign = -1 if expr.op == "sub" else 1
        return [*left, *((sign * own, term) for own, term in right)]
    return [] if expr == 0 else [(1, expr)]


def _terms_of_value(value: Value, argument: Value) -> Sequence[tuple[int, sc.Expr]]:
    """The same of a scalar: a sum of the argument and others."""
    op = defining_op(value)
    if value != argument and op is not None and isa(op, arith.AddIOp):
        left, right = (_terms_of_value(operand, argument) for operand in op.operands)
        return [*left, *right]
    return [(1, sc.Leaf(value))]
