"""What a function of pairs does that only compares, and gives one of the two it was given.

Reductions are written so: `tl.where((a > b) | (a != a), a, b)` is a maximum that keeps NaN, and the
place of a maximum is chosen by comparing values, then places. How such a region is put does not
matter: it is run on *samples*, a pair of numbers for each way in which two numbers may compare.
"""

import itertools
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from proton.dialect import by_name, isa
from proton.dialect.emit import predicate_of
from proton.dialect.mlir import Block, Operation, OpView, Type, Value, arith, ir, llvm
from proton.dialect.walk import defining_op

Sample = tuple[float, float]
_NAN = float("nan")
_EQUAL: Sample = (1, 1)  # of the same bits
_FLOATS: list[Sample] = [
    *(_EQUAL, (1, 2), (2, 1), (0.0, -0.0), (-0.0, 0.0), (_NAN, 1), (1, _NAN), (_NAN, _NAN)),
]
_INTEGERS: list[Sample] = [_EQUAL, (1, 2), (2, 1), (-1, 1), (1, -1)]
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


_LOGIC: dict[str, Callable[[list[bool]], bool]] = by_name(
    {
        arith.AndIOp: all,
        arith.OrIOp: any,
        arith.XOrIOp: lambda conditions: conditions[0] != conditions[1],
        arith.ExtUIOp: any,
    }
)


@dataclass(frozen=True)
class _Argument:
    """One of a pair."""

    pair: int
    right: bool

    @property
    def other(self) -> "_Argument":
        return _Argument(self.pair, not self.right)


_Known = bool | _Argument


def _relation(left: float, right: float) -> str:
    if left != left or right != right:
        return "u"
    return "e" if left == right else "l" if left < right else "g"


def _compared(
    op: Operation, samples: Sequence[Sample], sides: Sequence[_Known | None]
) -> bool | None:
    """What a comparison of two of the same pair gives; None for any other."""
    numbers = [samples[x.pair][x.right] for x in sides if isinstance(x, _Argument)]
    pairs = {x.pair for x in sides if isinstance(x, _Argument)}
    if len(numbers) != len(sides) or len(pairs) != 1:
        return None
    if isa(op, arith.CmpIOp):
        predicate = predicate_of(op)
        if predicate in _UNSIGNED:
            numbers = [number % _WORD for number in numbers]
        return _relation(*numbers) in _OF_INTEGERS[predicate]
    code = _Float(ir.IntegerAttr(op.attributes["predicate"]).value)
    return code in _OF_FLOATS and _relation(*numbers) in _OF_FLOATS[code]


def _known(value: Value, known: dict[Value, _Known]) -> _Known | None:
    """What a value is; None where that is neither a condition nor an argument."""
    op = defining_op(value)
    if not isa(op, *_CONSTANTS):
        return known.get(value)
    attribute = op.attributes["value"]
    is_number = isinstance(attribute, ir.BoolAttr | ir.IntegerAttr)
    return bool(attribute.value) if is_number and attribute.value in (0, 1) else None


def _value(op: Operation, samples: Sequence[Sample], known: dict[Value, _Known]) -> _Known | None:
    """What an op of a region gives."""
    found = [_known(operand, known) for operand in op.operands]
    conditions = [one for one in found if isinstance(one, bool)]
    if isa(op, arith.SelectOp) and isinstance(found[0], bool):
        return found[1] if found[0] else found[2]
    if len(conditions) != len(found):
        return _compared(op, samples, found) if isa(op, arith.CmpIOp, arith.CmpFOp) else None
    if isa(op, arith.CmpIOp) and predicate_of(op) in (_Integer.eq, _Integer.ne):
        return (conditions[0] == conditions[1]) == (predicate_of(op) == _Integer.eq)
    rule = _LOGIC.get(op.name)
    return rule(conditions) if rule else None


def _chosen(block: Block, samples: Sequence[Sample]) -> list[_Argument] | None:
    """Which arguments a region gives of some numbers; None where that is not all it does."""
    count = len(samples)
    known: dict[Value, _Known] = {
        argument: _Argument(number % count, number >= count)
        for number, argument in enumerate(block.arguments)
    }
    *body, end = [view.operation for view in block.operations]
    for op in body:
        if isa(op, *_CONSTANTS):
            continue
        found = _value(op, samples, known)
        if found is None:
            return None
        known[op.results[0]] = found
    given = [known.get(value) for value in end.operands]
    arguments = [one for one in given if isinstance(one, _Argument)]
    return arguments if len(arguments) == len(given) else None


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
    for samples in itertools.product(*kinds):
        found = _chosen(block, samples)
        turned = _chosen(block, [_swapped(sample) for sample in samples])
        if found is None or turned is None:
            return False
        for one, other in zip(found, turned, strict=True):
            same = one.pair == other.pair and _are_same(samples[one.pair], by_bits=count == 1)
            if one != other.other and not same:
                return False
    return True


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
    is_float = isinstance(block.arguments[0].type, ir.FloatType)
    sides = []
    for sample in _OF_FLOAT_PAIRS if is_float else _OF_INTEGER_PAIRS:
        chosen = _chosen(block, [sample])
        if chosen is None:
            return None
        sides.append(chosen[0].right)
    return (_FLOAT_EXTREMA if is_float else _INTEGER_EXTREMA).get(tuple(sides))
