"""What is known of the results of each op, given what is known of its operands.

The rules of `AxisInfos` (axis_info.py), which says what the three numbers mean.
"""

from collections.abc import Callable
from dataclasses import dataclass, replace
from math import gcd
from typing import Protocol

from proton.analysis.signs import INDEX_BITS, is_non_negative
from proton.dialect import OpRules, isa, tt, ttg
from proton.dialect import proton_gpu as pg
from proton.dialect.diagnostics import element_of, shape_of
from proton.dialect.emit import predicate_of
from proton.dialect.mlir import Operation, Value, arith, ir

MOST = 1 << 30  # what zero is divisible by, as far as anybody asks
Sizes = tuple[int, ...]


@dataclass(frozen=True)
class Steps:
    """A dimension falls into runs of `count` consecutive values, of which each is there `width`
    times: of `x // width`. The first value of each run is a multiple of `multiple`."""

    width: int
    count: int
    multiple: int

    def plus(self, info: "AxisInfo", axis: int) -> "Steps | None":
        """Those of the sum with a value that is equal in each of their runs."""
        run = self.width * self.count
        if info.constancy[axis] % run:
            return None
        return replace(self, multiple=gcd(self.multiple, _all_multiple(info, axis, run)))


@dataclass(frozen=True)
class AxisInfo:
    """The answer for one value; a scalar has one dimension of size 1."""

    contiguity: Sizes
    divisibility: Sizes
    constancy: Sizes
    constant: int | None = None  # the value, where all elements have one that is known
    steps: tuple[Steps | None, ...] = ()  # of each dimension, or of none

    def steps_of(self, axis: int) -> Steps | None:
        return self.steps[axis] if self.steps else None

    def join(self, other: "AxisInfo") -> "AxisInfo":
        """What holds for either of two values."""
        return AxisInfo(
            _gcds(self.contiguity, other.contiguity),
            _gcds(self.divisibility, other.divisibility),
            _gcds(self.constancy, other.constancy),
            self.constant if self.constant == other.constant else None,
            tuple(map(_either, self.steps, other.steps)),
        )


def _either(one: Steps | None, other: Steps | None) -> Steps | None:
    """What holds for either of two values."""
    if one is None or other is None or (one.width, one.count) != (other.width, other.count):
        return None
    return replace(one, multiple=gcd(one.multiple, other.multiple))


def _gcds(a: Sizes, b: Sizes) -> Sizes:
    return tuple(map(gcd, a, b))


def power(value: int) -> int:
    """The largest power of two that divides a number."""
    return min(value & -value, MOST) if value else MOST


def _rank(value: Value) -> int:
    return max(1, len(shape_of(value)))


def unknown(value: Value) -> AxisInfo:
    """What is always true."""
    ones = (1,) * _rank(value)
    return AxisInfo(ones, ones, ones)


class Infos(Protocol):
    """What is known of values."""

    def __getitem__(self, value: Value) -> AxisInfo: ...


Rule = Callable[[Operation, Infos], AxisInfo | None]
RULES = OpRules[Rule]()
GUESSES = OpRules[Rule]()  # instead of those above, for what is most often so


def element_bits(pointer: Value) -> int:
    """The width of what a pointer, or each pointer of a block, points to."""
    pointee = tt.pointee_of(pointer)
    return 64 if tt.is_pointer_like(pointee) else int(pointee.width)


def element_bytes(pointer: Value) -> int:
    """The size of what a pointer points to."""
    return max(1, element_bits(pointer) // 8)


def elementwise(op: Operation, infos: Infos) -> AxisInfo | None:
    """Equal operands give equal results, whatever an op computes."""
    if op.name.partition(".")[0] not in ("arith", "math") or not op.operands:
        return None
    known = [infos[operand] for operand in op.operands]
    constancy = known[0].constancy
    for info in known[1:]:
        constancy = _gcds(constancy, info.constancy)
    ones = (1,) * len(constancy)
    return AxisInfo(ones, ones, constancy)


def _integer(op: Operation, name: str) -> int:
    return int(ir.IntegerAttr(op.attributes[name]).value)


@RULES.of(arith.ConstantOp)
def _constant(op: Operation, infos: Infos) -> AxisInfo | None:
    attribute = op.attributes["value"]
    shape = shape_of(op.results[0]) or (1,)
    ones = (1,) * len(shape)
    if isinstance(attribute, ir.DenseElementsAttr):
        if not attribute.is_splat:
            return None
        attribute = attribute.get_splat_value()
    if isinstance(attribute, ir.BoolAttr):
        return AxisInfo(ones, ones, shape, int(attribute.value))
    if not isinstance(attribute, ir.IntegerAttr):
        return None
    value = int(attribute.value)
    return AxisInfo(ones, (power(value),) * len(shape), shape, value)


@RULES.of(tt.MakeRangeOp)
def _make_range(op: Operation, infos: Infos) -> AxisInfo:
    start, end = _integer(op, "start"), _integer(op, "end")
    return AxisInfo((end - start,), (power(start),), (1,))


@RULES.of(tt.SplatOp)
def _splat(op: Operation, infos: Infos) -> AxisInfo:
    info, shape = infos[op.operands[0]], shape_of(op.results[0])
    return AxisInfo((1,) * len(shape), info.divisibility * len(shape), shape, info.constant)


@RULES.of(ttg.ConvertLayoutOp, pg.OptimizationBarrierOp, arith.ExtSIOp, arith.IndexCastOp)
def _same(op: Operation, infos: Infos) -> AxisInfo:
    return infos[op.operands[0]]


@RULES.of(tt.BitcastOp, tt.IntToPtrOp, tt.PtrToIntOp)
def _seen_otherwise(op: Operation, infos: Infos) -> AxisInfo:
    """Pointers that follow each other are elements apart, which numbers, or elements of another
    size, do not."""
    info, size = infos[op.operands[0]], _distance(op.operands[0])
    if size == _distance(op.results[0]):
        return info
    multiples = tuple(
        multiple if run == 1 else gcd(multiple, size)
        for multiple, run in zip(info.divisibility, info.contiguity, strict=True)
    )
    return AxisInfo((1,) * len(multiples), multiples, info.constancy, info.constant)


def _distance(value: Value) -> int:
    """How far apart values are that follow each other."""
    return element_bytes(value) if tt.is_pointer_like(value.type) else 1


@RULES.of(arith.TruncIOp)
def _truncate(op: Operation, infos: Infos) -> AxisInfo:
    """Integers of less than 32 bits wrap around: a run goes on up to half of their range."""
    info, width = infos[op.operands[0]], element_of(op.results[0]).width
    if width >= INDEX_BITS:
        return info
    half = 1 << (width - 1)
    runs = [gcd(gcd(c, d), half) for c, d in zip(info.contiguity, info.divisibility, strict=True)]
    multiples = [_all_multiple(info, axis, run) for axis, run in enumerate(runs)]
    fits = info.constant is not None and -half <= info.constant < half
    return AxisInfo(tuple(runs), tuple(multiples), info.constancy, info.constant if fits else None)


@RULES.of(arith.ExtUIOp)
def _zero_extend(op: Operation, infos: Infos) -> AxisInfo:
    info = infos[op.operands[0]]
    is_negative = info.constant is not None and info.constant < 0
    return replace(info, constant=None) if is_negative else info


@RULES.of(tt.ExpandDimsOp)
def _expand_dims(op: Operation, infos: Infos) -> AxisInfo:
    info, axis = infos[op.operands[0]], _integer(op, "axis")
    # Along the new dimension every element is a run of its own: what divides all of them?
    pairs = zip(info.divisibility, info.contiguity, strict=True)
    multiple = min(d if c == 1 else 1 for d, c in pairs)

    def insert(sizes: Sizes, value: int) -> Sizes:
        return (*sizes[:axis], value, *sizes[axis:])

    return AxisInfo(
        insert(info.contiguity, 1),
        insert(info.divisibility, multiple),
        insert(info.constancy, 1),
        info.constant,
        (*info.steps[:axis], None, *info.steps[axis:]) if info.steps else (),
    )


@RULES.of(tt.BroadcastOp)
def _broadcast(op: Operation, infos: Infos) -> AxisInfo:
    info, shape = infos[op.operands[0]], shape_of(op.results[0])
    wider = [a != b for a, b in zip(shape_of(op.operands[0]), shape, strict=True)]
    return AxisInfo(
        tuple(1 if w else c for c, w in zip(info.contiguity, wider, strict=True)),
        info.divisibility,
        tuple(s if w else c for c, w, s in zip(info.constancy, wider, shape, strict=True)),
        info.constant,
        info.steps,  # a dimension of one element has none
    )


@RULES.of(tt.TransOp)
def _trans(op: Operation, infos: Infos) -> AxisInfo:
    info, order = infos[op.operands[0]], tuple(ir.DenseI64ArrayAttr(op.attributes["order"]))
    contiguity, divisibility, constancy = (
        tuple(part[axis] for axis in order)
        for part in (info.contiguity, info.divisibility, info.constancy)
    )
    steps = tuple(info.steps_of(axis) for axis in order)
    return AxisInfo(contiguity, divisibility, constancy, info.constant, steps)


@RULES.of(tt.ReshapeOp)
def _reshape(op: Operation, infos: Infos) -> AxisInfo | None:
    """The last dimension keeps what the last dimension had, as far as it reaches."""
    info = infos[op.operands[0]]
    source, target = shape_of(op.operands[0]), shape_of(op.results[0])
    if not target:
        return None
    inner = gcd(source[-1], target[-1]) if source else 1
    ones = (1,) * (len(target) - 1)
    if info.constancy == source:
        return AxisInfo((*ones, 1), info.divisibility[-1:] * len(target), target, info.constant)
    last = gcd(info.contiguity[-1], inner), gcd(info.constancy[-1], inner)
    whole = last[0] == info.contiguity[-1] or info.divisibility[-1] >= last[0]
    run = last[0] if whole else 1
    multiple = gcd(info.divisibility[-1], run) if run > 1 else 1
    return AxisInfo((*ones, run), (*ones, multiple), (*ones, last[1]))


@RULES.of(tt.AddPtrOp, arith.AddIOp, arith.SubIOp)
def _add(op: Operation, infos: Infos) -> AxisInfo:
    left, right = infos[op.operands[0]], infos[op.operands[1]]
    scale = 1
    if isa(op, tt.AddPtrOp):
        scale = element_bytes(op.operands[0])
    return _sum(left, right, scale, subtract=isa(op, arith.SubIOp))


def _sum(left: AxisInfo, right: AxisInfo, scale: int, *, subtract: bool) -> AxisInfo:
    contiguity = []
    for lc, le, rc, re in zip(
        left.contiguity, left.constancy, right.contiguity, right.constancy, strict=True
    ):
        falls = 1 if subtract else gcd(le, rc)
        contiguity.append(max(gcd(lc, re), falls))
    # The first of a run of the sum is the sum of elements that need not be firsts themselves.
    multiples = [
        gcd(_all_multiple(left, d, c), _all_multiple(right, d, c) * scale)
        for d, c in enumerate(contiguity)
    ]
    constant = None
    if left.constant is not None and right.constant is not None:
        constant = left.constant + (-1 if subtract else 1) * right.constant * scale
    constancy = _gcds(left.constancy, right.constancy)
    steps: tuple[Steps | None, ...] = ()
    if left.steps or right.steps:
        steps = _steps_of_sum(left, _scaled(right, scale), subtract=subtract)
    return AxisInfo(tuple(contiguity), tuple(multiples), constancy, constant, steps)


def _scaled(info: AxisInfo, scale: int) -> AxisInfo:
    """Of offsets in elements those in bytes, as far as steps go."""
    multiples = tuple(multiple * scale for multiple in info.divisibility)
    steps = tuple(s and replace(s, multiple=s.multiple * scale) for s in info.steps)
    return replace(info, divisibility=multiples, steps=steps)


def _steps_of_sum(left: AxisInfo, right: AxisInfo, *, subtract: bool) -> tuple[Steps | None, ...]:
    """Steps of one side are the sum's where the other side is equal."""
    found = []
    for axis in range(len(left.constancy)):
        ours, theirs = left.steps_of(axis), None if subtract else right.steps_of(axis)
        found.append(ours.plus(right, axis) if ours else theirs and theirs.plus(left, axis))
    return tuple(found)


def _all_multiple(info: AxisInfo, axis: int, run: int) -> int:
    """What divides the elements at multiples of `run`."""
    if info.contiguity[axis] <= run:
        return info.divisibility[axis]
    return gcd(info.divisibility[axis], run)


@RULES.of(arith.MulIOp)
def _multiply(op: Operation, infos: Infos) -> AxisInfo:
    left, right = infos[op.operands[0]], infos[op.operands[1]]
    return _product(left, right)


def _product(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    if left.constant == 1:
        return right
    if right.constant == 1:
        return left
    multiples = []
    for axis in range(len(left.contiguity)):
        a = left.divisibility[axis] if left.contiguity[axis] == 1 else 1
        b = right.divisibility[axis] if right.contiguity[axis] == 1 else 1
        multiples.append(min(a * b, MOST))
    constant = None
    if left.constant is not None and right.constant is not None:
        constant = left.constant * right.constant
    constancy = _gcds(left.constancy, right.constancy)
    return AxisInfo((1,) * len(constancy), tuple(multiples), constancy, constant)


@RULES.of(arith.ShLIOp)
def _shift_left(op: Operation, infos: Infos) -> AxisInfo:
    left, right = infos[op.operands[0]], infos[op.operands[1]]
    if right.constant is None or not 0 <= right.constant < 30:
        return _only_constancy(left, right)
    factor = 1 << right.constant
    ones = (1,) * len(left.contiguity)
    return _product(left, AxisInfo(ones, (factor,) * len(ones), left.constancy, factor))


def _only_constancy(left: AxisInfo, right: AxisInfo) -> AxisInfo:
    ones = (1,) * len(left.contiguity)
    return AxisInfo(ones, ones, _gcds(left.constancy, right.constancy))


@RULES.of(arith.DivSIOp, arith.DivUIOp, arith.ShRUIOp)
def quotient(op: Operation, infos: Infos) -> AxisInfo:
    """Runs of consecutive values that start at multiples of the divisor have equal quotients. Of a
    remainder: the quotient of the same two."""
    left, right = infos[op.operands[0]], infos[op.operands[1]]
    divisor = right.constant
    if isa(op, arith.ShRUIOp):
        divisor = 1 << divisor if divisor is not None and 0 <= divisor < 30 else None
    if divisor == 1:
        return left
    multiples = tuple(
        max(1, d // power(divisor)) if divisor and divisor == power(divisor) and c == 1 else 1
        for d, c in zip(left.divisibility, left.contiguity, strict=True)
    )
    if isa(op, arith.DivSIOp, arith.RemSIOp) and not is_non_negative(op.operands[0], frozenset()):
        # Division rounds towards zero, so runs may begin elsewhere. Multiples it does not round.
        return replace(_only_constancy(left, right), divisibility=multiples)
    constancy, steps = [], []
    for axis, (le, re) in enumerate(zip(left.constancy, right.constancy, strict=True)):
        run = gcd(left.contiguity[axis], left.divisibility[axis])
        steps.append(_steps_in(left, axis, run, divisor))
        by = power(divisor) if divisor else right.divisibility[axis]
        constancy.append(max(gcd(le, re), gcd(gcd(run, by), re) if divisor or by > 1 else 1))
    constant = None
    if left.constant is not None and left.constant >= 0 and divisor is not None and divisor > 0:
        constant = left.constant // divisor
    ones = (1,) * len(constancy)
    return AxisInfo(ones, multiples, tuple(constancy), constant, tuple(steps))


def _steps_in(dividend: AxisInfo, axis: int, run: int, divisor: int | None) -> Steps | None:
    """The steps of a quotient, where a run of the dividend's, which starts at a multiple of its
    length, has several."""
    if not divisor or divisor != power(divisor) or divisor >= run:
        return None
    return Steps(divisor, run // divisor, _all_multiple(dividend, axis, run) // divisor)


@RULES.of(arith.RemSIOp, arith.RemUIOp)
def _remainder(op: Operation, infos: Infos) -> AxisInfo:
    """Runs survive up to the divisor, if they start at its multiples."""
    left, right = infos[op.operands[0]], infos[op.operands[1]]
    if isa(op, arith.RemSIOp) and not is_non_negative(op.operands[0], frozenset()):
        return _divisible_by(gcd, op, infos)  # with the dividend's sign: runs may begin elsewhere
    contiguity, multiples = [], []
    for axis, (lc, re) in enumerate(zip(left.contiguity, right.constancy, strict=True)):
        by = right.divisibility[axis]
        run = gcd(gcd(lc, left.divisibility[axis]), gcd(by, re)) if lc > 1 else 1
        contiguity.append(max(1, run))
        multiples.append(gcd(left.divisibility[axis], by))
    constant = None
    by_constant = right.constant or 0
    if left.constant is not None and left.constant >= 0 and by_constant > 0:
        constant = left.constant % by_constant
    return AxisInfo(
        tuple(contiguity), tuple(multiples), _gcds(left.constancy, right.constancy), constant
    )


# Of consecutive values against one, "x < n" and "x >= n" change only at multiples of what divides
# both; turned around, "n > y" and "n <= y".
_Is = arith.CmpIPredicate
_LEFT_RUNS = {_Is.slt, _Is.sge, _Is.ult, _Is.uge}
_RIGHT_RUNS = {_Is.sle, _Is.sgt, _Is.ule, _Is.ugt}


@RULES.of(arith.CmpIOp)
def _compare(op: Operation, infos: Infos) -> AxisInfo:
    left, right = infos[op.operands[0]], infos[op.operands[1]]
    predicate = predicate_of(op)
    constancy = []
    for axis, (le, re) in enumerate(zip(left.constancy, right.constancy, strict=True)):
        best = gcd(le, re)
        common = gcd(left.divisibility[axis], right.divisibility[axis])
        if predicate in _LEFT_RUNS:
            best = max(best, gcd(gcd(left.contiguity[axis], re), common))
        if predicate in _RIGHT_RUNS:
            best = max(best, gcd(gcd(right.contiguity[axis], le), common))
        constancy.append(best)
    ones = (1,) * len(constancy)
    return AxisInfo(ones, ones, tuple(constancy))


@RULES.of(arith.SelectOp)
def _select(op: Operation, infos: Infos) -> AxisInfo:
    condition, left, right = (infos[operand] for operand in op.operands)
    both = left.join(right)
    if not shape_of(op.operands[0]):
        return both
    contiguity = _gcds(both.contiguity, condition.constancy)
    multiples = [
        gcd(_all_multiple(left, d, c), _all_multiple(right, d, c)) for d, c in enumerate(contiguity)
    ]
    constancy = _gcds(both.constancy, condition.constancy)
    return AxisInfo(contiguity, tuple(multiples), constancy, both.constant)


@RULES.of(arith.MinSIOp, arith.MinUIOp, arith.MaxSIOp, arith.MaxUIOp)
def _smaller_or_larger(op: Operation, infos: Infos) -> AxisInfo:
    """Each element is one of two."""
    return _divisible_by(gcd, op, infos)


@GUESSES.of(
    arith.RemSIOp, arith.RemUIOp, arith.MinSIOp, arith.MinUIOp, arith.MaxSIOp, arith.MaxUIOp
)
def _in_range(op: Operation, infos: Infos) -> AxisInfo:
    """What holds of an index that is inside of its range anyway: it is the index."""
    left, right = (infos[operand] for operand in op.operands)
    runs = [
        max(gcd(lc, re), gcd(le, rc))
        for lc, le, rc, re in zip(
            left.contiguity, left.constancy, right.contiguity, right.constancy, strict=True
        )
    ]
    return replace(_only_constancy(left, right), contiguity=tuple(runs))


@RULES.of(arith.AndIOp)
def _and(op: Operation, infos: Infos) -> AxisInfo:
    """A bit that either has not is not there."""
    return _divisible_by(max, op, infos)


def _divisible_by(common: Callable[[int, int], int], op: Operation, infos: Infos) -> AxisInfo:
    """Elements whose divisibility follows from that of both operands' elements."""
    left, right = (infos[operand] for operand in op.operands)
    found = _only_constancy(left, right)
    multiples = tuple(
        common(_all_multiple(left, axis, 1), _all_multiple(right, axis, 1))
        for axis in range(len(found.contiguity))
    )
    return AxisInfo(found.contiguity, multiples, found.constancy)


@RULES.of(tt.LoadOp)
def _load(op: Operation, infos: Infos) -> AxisInfo:
    """Equal addresses hold equal values."""
    info = infos[op.operands[0]]
    ones = (1,) * len(info.contiguity)
    constancy = info.constancy
    for other in list(op.operands)[1:]:
        constancy = _gcds(constancy, infos[other].constancy)
    return AxisInfo(ones, ones, constancy)
