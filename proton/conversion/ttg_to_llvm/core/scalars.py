"""Elements of a vector, computed from its beginning: one as a scalar, or some as a vector.

An access wants a few of the addresses that a vector of pointers holds. As an element of a vector
its distance to the others is lost on LLVM, which looks for constants in scalar addresses only
(SeparateConstOffsetFromGEP): each access would keep a 64-bit address of its own. Here the
arithmetic behind an element is repeated on scalars; what nobody uses then, LLVM drops.
"""

import functools
from collections.abc import Callable, Sequence

from proton.conversion.ttg_to_llvm.core import values as v
from proton.dialect import isa, names_of
from proton.dialect.emit import remade
from proton.dialect.mlir import Operation, Value, arith, func, ir, llvm, vector
from proton.dialect.walk import defining_op, producer_of

_GEP = llvm.GEPOp
_SUMS = arith.AddIOp, llvm.AddOp
_PRODUCTS = arith.MulIOp, llvm.MulOp
_REPEATED = names_of(
    *(arith.AddIOp, arith.SubIOp, arith.MulIOp, arith.ExtSIOp, arith.ExtUIOp),
    *(llvm.AddOp, llvm.MulOp, llvm.SubOp),
)
_OF_BITS = names_of(arith.AndIOp, arith.OrIOp, arith.XOrIOp, arith.ShRUIOp, arith.ShRSIOp)
_LOGIC = names_of(arith.AndIOp, arith.OrIOp, arith.XOrIOp)
_BITS = [1 << place for place in range(31)] + [-(1 << 31)]  # of an i32
Element = tuple[Value, int]  # of a vector, and its number there


def is_repeated(op: Operation) -> bool:
    """True if an op on vectors is repeated on scalars."""
    if op.name in _OF_BITS:
        return v.bits_of(v.element(op.results[0])) in v.NARROW_BITS
    return len(op.operands) == 2 if isa(op, _GEP) else op.name in _REPEATED


def place_of(op: Operation) -> int:
    """The constant number of the element that an op extracts, or inserts."""
    constant = producer_of(op.operands[len(op.operands) - 1])
    return int(ir.IntegerAttr(constant.attributes["value"]).value)


def picked(value: Value, index: int) -> tuple[Value, int]:
    """The vector that an element comes from, behind shuffles, and its number there."""
    while isa(op := defining_op(value), llvm.ShuffleVectorOp):
        pick, count = ir.DenseI32ArrayAttr(op.attributes["mask"])[index], v.count_of(op.operands[0])
        value, index = op.operands[pick // count], pick % count
    return value, index


def _is_exact(op: Operation) -> bool:
    """True of a sum, or a pointer to bytes and an offset, that never wraps around."""
    if isa(op, _GEP):
        is_bytes = ir.TypeAttr(op.attributes["elem_type"]).value == v.integer(8)
        return is_bytes and len(op.operands) == 2
    return isa(op, arith.AddIOp) and "nsw" in str(op.attributes["overflowFlags"])


def _constant_of(scalar: Value) -> int | None:
    op = defining_op(scalar)
    if not isa(op, llvm.ConstantOp, arith.ConstantOp):
        return None
    value = op.attributes["value"]
    return int(ir.IntegerAttr(value).value) if isinstance(value, ir.IntegerAttr) else None


def _is_behind(value: Value) -> bool:
    """True if the insertion point is behind the op of a value, in its block or in one inside it."""
    block, here = producer_of(value).block, ir.InsertionPoint.current.block
    while here != block:
        owner = here.owner.operation
        if isa(owner, func.FuncOp):
            return False
        here = owner.block
    return True


def _is_one_comparison(value: Value) -> bool:
    """True of an i1, or a vector of them, that compares words: each element is an instruction."""
    op = defining_op(value)
    return isa(op, arith.CmpIOp) and v.bits_of(v.element(op.operands[0])) <= 32


def _packed(conditions: Sequence[Value]) -> list[Value]:
    """Conditions as bits of i32, made behind the last of them."""
    words = []
    op = producer_of(conditions[-1])
    with ir.InsertionPoint.after(op), op.location:
        for first in range(0, len(conditions), 32):
            part = conditions[first : first + 32]
            bits = [v.select(one, v.i32(_BITS[place]), v.i32(0)) for place, one in enumerate(part)]
            words.append(
                functools.reduce(lambda left, right: v.binary(llvm.OrOp, left, right), bits)
            )
    return words


class Scalars:
    """Elements of vectors, each made once, right behind the vector's own op."""

    def __init__(self) -> None:
        self.made: dict[Value, dict[int, Value]] = {}  # by vector and index
        self.parts: dict[Value, dict[tuple[int, ...], Value]] = {}  # by vector and indices
        self.apart: dict[Value, tuple[Value, int]] = {}  # what `constant_apart` said
        self.largest: dict[Value, int | None] = {}  # what `_most` said
        self.asked: dict[Sequence[Element], dict[Element, Value]] = {}  # for `conditions`
        self.words: dict[Sequence[Element], list[Value]] = {}  # of them, as bits

    def element(self, value: Value, index: int) -> Value:
        """Element `index` of a vector; a scalar is its own."""
        made = self.made.get(value)
        if made is None:
            if not v.is_vector(value.type):
                return value
            made = self.made[value] = {}
        if index not in made:
            op = defining_op(value)
            if op is None:
                return v.extract(value, index)
            with ir.InsertionPoint.after(op), op.location:
                made[index] = self._make(op, value, index)
        return made[index]

    def constant_apart(self, scalar: Value) -> tuple[Value, int]:
        """What a number, or a pointer to bytes, is a constant away from, and the constant: in 64
        bits, too, so arithmetic counts that never wraps around."""
        if scalar not in self.apart:
            op = defining_op(scalar)
            ahead = _constant_of(op.operands[1]) if op is not None and _is_exact(op) else None
            self.apart[scalar] = (
                self._arithmetic_apart(scalar)
                if op is None or ahead is None
                else (op.operands[0], ahead)
            )
        return self.apart[scalar]

    def _arithmetic_apart(self, scalar: Value) -> tuple[Value, int]:
        """Of a sum, or a product with a constant, of numbers that are constants away from others:
        the same of those. It is emitted for each element, and LLVM finds that they are equal."""
        op = defining_op(scalar)
        if not isa(op, *_SUMS, *_PRODUCTS):
            return scalar, 0
        factor = _constant_of(op.operands[1]) if isa(op, *_PRODUCTS) else None
        if isa(op, *_PRODUCTS) and factor is None:
            return scalar, 0
        (left, more), (right, other) = (self.constant_apart(operand) for operand in op.operands)
        most = self._most(scalar)
        if [left, right] == list(op.operands) or most is None:
            return scalar, 0
        with ir.InsertionPoint.after(op), op.location:
            base = self._repeat(op, [left, right])
        return base, more * factor if factor is not None else more + other

    def _most(self, scalar: Value) -> int | None:
        """The largest that a number may be which is not negative and did not wrap around; None
        where its ops do not tell."""
        if scalar not in self.largest:
            most = self._most_of(scalar)
            # Only one that fits says that nothing ahead of it wrapped around.
            fits = most is not None and most.bit_length() < v.bits_of(scalar.type)
            self.largest[scalar] = most if fits else None
        return self.largest[scalar]

    def _most_of(self, scalar: Value) -> int | None:
        if (known := _constant_of(scalar)) is not None:
            return known if known >= 0 else None
        op = defining_op(scalar)
        if op is None or len(op.operands) != 2:
            return None
        left, right = (self._most(operand) for operand in op.operands)
        if isa(op, llvm.AndOp):
            return min((side for side in (left, right) if side is not None), default=None)
        if left is None or right is None:
            return None
        if isa(op, *_SUMS):
            return left + right
        if isa(op, *_PRODUCTS):
            return left * right
        if isa(op, llvm.ShlOp):
            return left << min(right, v.bits_of(scalar.type))
        if isa(op, llvm.LShrOp):  # by 0, where it is not known by how much
            return left >> (_constant_of(op.operands[1]) or 0)
        return (1 << max(left, right).bit_length()) - 1 if isa(op, llvm.XOrOp) else None

    def condition(self, value: Value, index: int) -> Value:
        """Element `index` of a vector of i1, computed at the insertion point."""
        value, index = picked(value, index)
        op = defining_op(value)
        if isa(op, arith.CmpIOp):
            return self._repeat(op, [self.element(operand, index) for operand in op.operands])
        if op is not None and op.name in _LOGIC:
            return self._repeat(op, [self.condition(operand, index) for operand in op.operands])
        return v.extract(value, index)

    def conditions(
        self, elements: Sequence[Element], bit: Callable[[Value, int], Value]
    ) -> Callable[[Element], Value]:
        """What gives each of some elements of vectors of i1. The first who asks has each computed
        there. For those behind it they are bits of words, of which `bit` gives one: ptxas has
        fewer predicates, and would have each load wait for the one before. What is one comparison
        of a word is computed by each: with bits a norm of rows took 1.15 of its time."""
        if all(map(_is_one_comparison, {value for value, _ in elements})):
            return lambda element: self.condition(*element)
        known = self.asked.get(elements)
        if known and _is_behind(next(iter(known.values()))):
            if elements not in self.words:
                self.words[elements] = _packed(list(known.values()))
            words, places = self.words[elements], list(known)

            def kept(element: Element) -> Value:
                word, place = divmod(places.index(element), 32)
                return bit(words[word], place)

            return kept
        made = self.asked[elements] = {}
        self.words.pop(elements, None)

        def computed(element: Element) -> Value:
            made[element] = self.condition(*element)
            return made[element]

        return computed

    def some(self, value: Value, indices: Sequence[int]) -> Value:
        """Some elements of a vector, as a vector; a scalar is its own."""
        if not v.is_vector(value.type):
            return value
        made, key = self.parts.setdefault(value, {}), tuple(indices)
        if key not in made:
            op = defining_op(value)
            if op is None:
                return v.shuffle(value, indices)
            with ir.InsertionPoint.after(op), op.location:
                made[key] = self._make_some(op, value, indices)
        return made[key]

    def put_some(self, value: Value, indices: Sequence[int], part: Value) -> None:
        """Says what some elements of a vector are, from the insertion point on."""
        self.parts[value] = {tuple(indices): part}
        made = self.made.setdefault(value, {})
        for place, index in enumerate(indices):
            made[index] = v.extract(part, place)

    def forget(self, *values: Value) -> None:
        """These are about to go: another value may come to lie where one was."""
        for value in values:
            self.made.pop(value, None)
            self.parts.pop(value, None)

    def _make_some(self, op: Operation, value: Value, indices: Sequence[int]) -> Value:
        if isa(op, llvm.ShuffleVectorOp):
            mask = ir.DenseI32ArrayAttr(op.attributes["mask"])
            return v.shuffle(op.operands[0], [mask[i] for i in indices], op.operands[1])
        if is_repeated(op):
            return self._repeat(op, [self.some(operand, indices) for operand in op.operands])
        return v.shuffle(value, indices)

    def _make(self, op: Operation, value: Value, index: int) -> Value:
        if isa(op, llvm.ShuffleVectorOp):
            return self._picked(op, index)
        if isa(op, vector.FromElementsOp):
            return op.operands[index]
        if isa(op, llvm.InsertElementOp) and place_of(op) == index:
            return op.operands[1]
        if isa(op, llvm.ConstantOp, arith.ConstantOp):
            return self._constant(op, value, index)
        if is_repeated(op):
            return self._repeat(op, [self.element(operand, index) for operand in op.operands])
        return v.extract(value, index)

    def _repeat(self, op: Operation, operands: list[Value]) -> Value:
        """An op of other operands."""
        if isa(op, _GEP):
            base, offset = operands
            return v.offset_pointer(base, offset, ir.TypeAttr(op.attributes["elem_type"]).value)
        type_ = v.like(operands[0], v.element(op.results[0]))
        return remade(op, [type_], operands).result

    def _picked(self, op: Operation, index: int) -> Value:
        """What a shuffle takes an element from."""
        pick = ir.DenseI32ArrayAttr(op.attributes["mask"])[index]
        count = v.count_of(op.operands[0])
        return self.element(op.operands[pick // count], pick % count)

    def _constant(self, op: Operation, value: Value, index: int) -> Value:
        attribute = op.attributes["value"]
        if not isinstance(attribute, ir.DenseElementsAttr) or not isinstance(
            v.element(value), ir.IntegerType
        ):
            return v.extract(value, index)
        dense = ir.DenseIntElementsAttr(attribute)
        return v.constant(dense[index], v.element(value))
