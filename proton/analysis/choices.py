"""What a function of pairs does that only compares, and gives one of the two it was given.

Reductions are written so: `tl.where((a > b) | (a != a), a, b)` is a maximum that keeps NaN, and the
place of a maximum is chosen by comparing values, then places. How such a region is put does not
matter: it is run on *samples*, a pair of numbers for each way in which two numbers may compare.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from proton.dialect import by_name, isa
from proton.dialect.emit import predicate_of
from proton.dialect.mlir import Block, Operation, OpView, Type, Value, arith, ir, llvm
from proton.dialect.walk import defining_op

Sample = tuple[float, float]
_NAN = float("nan")
_EQUAL: Sample = (1, 1)  # of the same bits
_NANS: Sample = (_NAN, _NAN)
_FLOATS: list[Sample] = [
    *(_EQUAL, (1, 2), (2, 1), (0.0, -0.0), (-0.0, 0.0), (_NAN, 1), (1, _NAN), _NANS),
]
_INTEGERS: list[Sample] = [_EQUAL, (1, 2), (2, 1), (-1, 1), (1, -1)]
_RISING: Sample = (1, 2)  # indices
_LEAST_BITS = 16  # of a float that has maxima
_MOST_PAIRS = 2  # of which all samples are tried with all others

# The relations for which a comparison is true: less, equal, greater, unordered.
_Float, _Integer = arith.CmpFPredicate, arith.CmpIPredicate
_OF_FLOATS = {
    _Float.OLT: "l",
    _Float.OLE: "le",
    _Float.OEQ: "e",
    _Float.OGE: "eg",
    _Float.OGT: "g",
    _Float.ULT: "lu",
    _Float.ULE: "leu",
    _Float.UEQ: "eu",
    _Float.UGE: "egu",
    _Float.UGT: "gu",
    _Float.ONE: "lg",
    _Float.UNE: "lgu",
    _Float.ORD: "leg",
    _Float.UNO: "u",
    _Float.AlwaysTrue: "legu",
    _Float.AlwaysFalse: "",
}
_OF_INTEGERS = {
    _Integer.slt: "l",
    _Integer.sle: "le",
    _Integer.sge: "eg",
    _Integer.sgt: "g",
    _Integer.ult: "l",
    _Integer.ule: "le",
    _Integer.uge: "eg",
    _Integer.ugt: "g",
    _Integer.eq: "e",
    _Integer.ne: "lg",
}
_CONSTANTS = (arith.ConstantOp, llvm.ConstantOp)
_UNSIGNED = {_Integer.ult, _Integer.ule, _Integer.uge, _Integer.ugt}
_WORD = 1 << 64


class NaN(Enum):
    """What an extremum of a number and a NaN is."""

    WINS = "NaN"
    LOSES = "the number"


@dataclass(frozen=True)
class _Argument:
    """One of a pair."""

    pair: int
    right: bool

    @property
    def other(self) -> "_Argument":
        return _Argument(self.pair, not self.right)


_Known = bool | _Argument | None  # None: neither a condition nor an argument
_Rule = Callable[[Sequence[Sample], list[_Known]], _Known]


def _relation(left: float, right: float) -> str:
    if left != left or right != right:
        return "u"
    return "e" if left == right else "l" if left < right else "g"


def _comparison(relations: str, is_unsigned: bool) -> _Rule:
    """True for these relations of two of the same pair; conditions are equal or not."""

    def compare(samples: Sequence[Sample], sides: list[_Known]) -> _Known:
        left, right = sides
        if isinstance(left, bool) and isinstance(right, bool) and relations in ("e", "lg"):
            return (left == right) == (relations == "e")
        if not isinstance(left, _Argument) or not isinstance(right, _Argument):
            return None
        if left.pair != right.pair:
            return None
        numbers = [samples[side.pair][side.right] for side in (left, right)]
        if is_unsigned:
            numbers = [number % _WORD for number in numbers]
        return _relation(*numbers) in relations

    return compare


def _choice(samples: Sequence[Sample], found: list[_Known]) -> _Known:
    condition, yes, no = found
    if not isinstance(condition, bool):
        return None
    return yes if condition else no


def _logic(of: Callable[[list[bool]], bool]) -> _Rule:
    def rule(samples: Sequence[Sample], found: list[_Known]) -> _Known:
        conditions = [one for one in found if isinstance(one, bool)]
        return of(conditions) if len(conditions) == len(found) else None

    return rule


def _extremum(better: str, *, is_unsigned: bool = False) -> _Rule:
    """One of a pair: a number where the other one is NaN."""

    def rule(samples: Sequence[Sample], found: list[_Known]) -> _Known:
        left, right = found
        if not isinstance(left, _Argument) or not isinstance(right, _Argument):
            return None
        if left.pair != right.pair:
            return None
        one, other = (samples[side.pair][side.right] for side in (left, right))
        if is_unsigned:
            one, other = one % _WORD, other % _WORD
        return right if one != one or _relation(other, one) == better else left

    return rule


_RULES: dict[str, _Rule] = by_name(
    {
        arith.MaxNumFOp: _extremum("g"),
        arith.MinNumFOp: _extremum("l"),
        arith.MaxSIOp: _extremum("g"),
        arith.MinSIOp: _extremum("l"),
        arith.MaxUIOp: _extremum("g", is_unsigned=True),
        arith.MinUIOp: _extremum("l", is_unsigned=True),
        arith.SelectOp: _choice,
        arith.AndIOp: _logic(all),
        arith.OrIOp: _logic(any),
        arith.XOrIOp: _logic(lambda conditions: conditions[0] != conditions[1]),
        arith.ExtUIOp: _logic(any),
    }
)


def _rule_of(op: Operation) -> _Rule | None:
    if isa(op, arith.CmpIOp):
        predicate = predicate_of(op)
        return _comparison(_OF_INTEGERS[predicate], predicate in _UNSIGNED)
    if isa(op, arith.CmpFOp):
        code = _Float(ir.IntegerAttr(op.attributes["predicate"]).value)
        return _comparison(_OF_FLOATS[code], is_unsigned=False)
    return _RULES.get(op.name)


class _Region:
    """A region, read once: `region(samples)` says which arguments it gives of these numbers; None
    where that is not all it does."""

    def __init__(self, block: Block) -> None:
        arguments = list(block.arguments)
        count = len(arguments) // 2
        self.known: list[_Known] = [
            _Argument(number % count, number >= count) for number in range(2 * count)
        ]
        self.places = {argument: number for number, argument in enumerate(arguments)}
        self.steps: list[tuple[_Rule | None, list[int], int]] = []
        *body, end = [view.operation for view in block.operations]
        for op in body:
            if not isa(op, *_CONSTANTS):
                operands = [self._place(operand) for operand in op.operands]
                self.steps.append((_rule_of(op), operands, self._add(op.results[0], None)))
        self.given = [self._place(value) for value in end.operands]

    def _add(self, value: Value, known: _Known) -> int:
        self.places[value] = len(self.known)
        self.known.append(known)
        return self.places[value]

    def _place(self, value: Value) -> int:
        """Where a value's number lies; of a constant 0 or 1 it is a condition."""
        if value in self.places:
            return self.places[value]
        op = defining_op(value)
        attribute = op.attributes["value"] if isa(op, *_CONSTANTS) else None
        if isinstance(attribute, ir.BoolAttr | ir.IntegerAttr) and attribute.value in (0, 1):
            return self._add(value, bool(attribute.value))
        return self._add(value, None)

    def __call__(self, samples: Sequence[Sample]) -> list[_Argument] | None:
        known = list(self.known)
        for rule, operands, result in self.steps:
            found = None if rule is None else rule(samples, [known[place] for place in operands])
            if found is None:
                return None
            known[result] = found
        arguments = [one for place in self.given if isinstance(one := known[place], _Argument)]
        return arguments if len(arguments) == len(self.given) else None


def _samples_of(type_: Type) -> list[Sample]:
    return _FLOATS if isinstance(type_, ir.FloatType) else _INTEGERS


def _swapped(sample: Sample) -> Sample:
    return sample[1], sample[0]


def chooses_alike(block: Block) -> bool:
    """True if a region only compares and chooses, and gives the same whichever of each pair it is
    given first: of one pair the same bits, of two the same numbers. Zeros of both signs it tells
    apart by the other pair, as it tells apart equal numbers, or not at all."""
    count = len(block.arguments) // 2
    if not 0 < count <= _MOST_PAIRS:
        return False
    kinds = [_samples_of(argument.type) for argument in list(block.arguments)[:count]]
    region = _Region(block)
    for samples in itertools.product(*kinds):
        found = region(samples)
        turned = region([_swapped(sample) for sample in samples])
        if found is None or turned is None:
            return False
        for one, other in zip(found, turned, strict=True):
            same = one.pair == other.pair and _are_same(samples[one.pair], by_bits=count == 1)
            if one != other.other and not same:
                return False
    return True


@dataclass(frozen=True)
class RisingChoice:
    """Which of two pairs of a value and an index a region gives, where the right index is the
    greater one: the right index where `predicate` holds of the values, and the right value with it
    if `has_value`. None: where the value that is given is another one than the left; of two NaN
    that is wrong, whose left index is given."""

    predicate: Enum | None  # of `arith.cmpf` or `arith.cmpi`
    has_value: bool = False


def _is_of_indices(block: Block) -> bool:
    """True of pairs of a value, which is no 8-bit float, and an integer."""
    value, *others = [argument.type for argument in block.arguments]
    is_small = isinstance(value, ir.FloatType) and value.width < _LEAST_BITS
    return len(others) == 3 and isinstance(others[0], ir.IntegerType) and not is_small


def rising_choice(block: Block) -> RisingChoice | None:
    """How a region chooses pairs of a value and an index where the right index is the greater one;
    None where no comparison says so."""
    if not _is_of_indices(block):
        return None
    type_ = block.arguments[0].type
    region, samples = _Region(block), _samples_of(type_)
    values, indices = list[bool](), list[bool]()
    for sample in samples:
        found = region([sample, _RISING])
        if found is None or [one.pair for one in found] != [0, 1]:
            return None
        values.append(found[0].right)
        indices.append(found[1].right)
    pair: list[_Known] = [_Argument(0, False), _Argument(0, True)]
    predicates = _OF_FLOATS if isinstance(type_, ir.FloatType) else _OF_INTEGERS
    for predicate, relations in predicates.items():
        holds = _comparison(relations, predicate in _UNSIGNED)
        if [holds([sample], pair) for sample in samples] == indices:
            is_chosen = isa(defining_op(block.operations[-1].operands[0]), arith.SelectOp)
            return RisingChoice(predicate, is_chosen and values == indices)
    if least_index(block) is not NaN.LOSES or not isinstance(type_, ir.FloatType):
        return None
    is_other = [one[0] != one[right] for one, right in zip(samples, values, strict=True)]
    is_other = [other and one != _NANS for other, one in zip(is_other, samples, strict=True)]
    return RisingChoice(None) if is_other == indices else None


def least_index(block: Block) -> NaN | None:
    """What wins where a region of two values and their indices gives an extremum, and the least
    index of values that are equal to it, or of NaN; None where it does not."""
    if not _is_of_indices(block):
        return None
    region, wins = _Region(block), set[NaN]()
    is_maximum: tuple[set[bool], ...] = set(), set()  # of numbers with a sign, and without
    for sample in _samples_of(block.arguments[0].type):
        relation = _relation(*sample)
        for indices in (_RISING, _swapped(_RISING), _EQUAL):
            found = region([sample, indices])
            if found is None or [one.pair for one in found] != [0, 1]:
                return None
            value, index = (one.right for one in found)
            if relation == "e" or sample == _NANS:
                value = indices != _RISING
            elif relation == "u":
                wins.add(NaN.WINS if sample[value] != sample[value] else NaN.LOSES)
            else:
                best, other = sample[value], sample[not value]
                is_maximum[0].add(best > other)
                is_maximum[1].add(best % _WORD > other % _WORD)
            if index != value and indices is not _EQUAL:
                return None
    if all(len(found) != 1 for found in is_maximum) or len(wins) > 1:
        return None
    return wins.pop() if wins else NaN.LOSES


def _are_same(sample: Sample, *, by_bits: bool) -> bool:
    return sample is _EQUAL if by_bits else _relation(*sample) == "e" or sample == (_NAN, _NAN)


# Whether the right one is chosen of these pairs, and which maximum or minimum does so. Of zeros it
# may be either: a reduction leaves the order open, and so their sign.
_OF_FLOAT_PAIRS = [(1, 2), (2, 1), (_NAN, 1), (1, _NAN)]
_OF_INTEGER_PAIRS = [(1, 2), (2, 1), (-1, 1), (1, -1)]
_FLOAT_EXTREMA: dict[tuple[bool, ...], type[OpView]] = {
    (True, False, False, True): arith.MaximumFOp,
    (True, False, True, False): arith.MaxNumFOp,
    (False, True, False, True): arith.MinimumFOp,
    (False, True, True, False): arith.MinNumFOp,
}
_INTEGER_EXTREMA: dict[tuple[bool, ...], type[OpView]] = {
    (True, False, True, False): arith.MaxSIOp,
    (True, False, False, True): arith.MaxUIOp,
    (False, True, False, True): arith.MinSIOp,
    (False, True, True, False): arith.MinUIOp,
}


def extremum(block: Block) -> type[OpView] | None:
    """The op that is the maximum or minimum which a region writes as comparisons and a choice."""
    if len(block.arguments) != 2:
        return None
    is_float = isinstance(type_ := block.arguments[0].type, ir.FloatType)
    if is_float and type_.width < _LEAST_BITS:
        return None
    sides, region = [], _Region(block)
    for sample in _OF_FLOAT_PAIRS if is_float else _OF_INTEGER_PAIRS:
        chosen = region([sample])
        if chosen is None:
            return None
        sides.append(chosen[0].right)
    return (_FLOAT_EXTREMA if is_float else _INTEGER_EXTREMA).get(tuple(sides))
