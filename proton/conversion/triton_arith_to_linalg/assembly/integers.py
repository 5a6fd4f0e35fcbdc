"""What instructions of PTX compute on integers and bits."""

from typing import Protocol

from proton.conversion.triton_arith_to_linalg.assembly.text import Untranslatable
from proton.conversion.triton_arith_to_linalg.assembly.values import Int, joined, number_of, parted


class Op(Protocol):
    """An instruction: the words of its name, and the type that its operands are taken as."""

    parts: tuple[str, ...]
    type: str
    literals: tuple[int | None, ...]  # by operand, of what is a number in the text


def _signed(op: Op) -> bool:
    return op.type.startswith("s")


def saturated(x: Int, bits: int, *, of_signed: bool = True, to_signed: bool = True) -> Int:
    """An integer in so many bits; the least or the greatest where it has no room."""
    room, range_ = (_range(n, signed=s) for n, s in ((bits, to_signed), (x.bits, of_signed)))
    if room[0] > range_[0]:
        x = x.greatest(room[0], signed=of_signed)
    if room[1] < range_[1]:
        x = x.least(room[1], signed=of_signed)
    return x.to(bits, signed=of_signed)


def _range(bits: int, *, signed: bool) -> tuple[int, int]:
    return (-(1 << (bits - 1)) if signed else 0), (1 << (bits - signed)) - 1


# Arithmetic


def add(op: Op, a: Int, b: Int) -> Int:
    """And `sub`."""
    wide = 64 if "sat" in op.parts else a.bits
    left, right = a.to(wide, signed=True), b.to(wide, signed=True)
    found = left - right if op.parts[0] == "sub" else left + right
    return saturated(found, a.bits) if "sat" in op.parts else found


def mul(op: Op, a: Int, b: Int) -> Int:
    if "wide" in op.parts:
        wide = 2 * a.bits
        return a.to(wide, signed=_signed(op)) * b.to(wide, signed=_signed(op))
    return _upper(a, b, signed=_signed(op)) if "hi" in op.parts else a * b


def _upper(a: Int, b: Int, *, signed: bool) -> Int:
    """The upper half of a product."""
    wide = 2 * a.bits
    return ((a.to(wide, signed=signed) * b.to(wide, signed=signed)) >> a.bits).to(a.bits)


def mad(op: Op, a: Int, b: Int, c: Int) -> Int:
    product = mul(op, a, b)
    if "sat" in op.parts:
        return saturated(product.to(64, signed=True) + c.to(64, signed=True), 32)
    return product + c


def mul24(op: Op, a: Int, b: Int) -> Int:
    """Of the lower 24 bits of two integers; `hi` has the bits from 16 on of a product of 48."""
    signed = _signed(op)
    left, right = (
        ((x << 8).with_signs(8) if signed else x & 0xFFFFFF).to(64, signed=signed) for x in (a, b)
    )
    product = left * right
    return (product >> 16 if "hi" in op.parts else product).to(32)


def mad24(op: Op, a: Int, b: Int, c: Int) -> Int:
    product = mul24(op, a, b)
    if "sat" in op.parts:
        return saturated(product.to(64, signed=True) + c.to(64, signed=True), 32)
    return product + c


def sad(op: Op, a: Int, b: Int, c: Int) -> Int:
    signed = _signed(op)
    return a.greatest(b, signed=signed) - a.least(b, signed=signed) + c


def div(op: Op, a: Int, b: Int) -> Int:
    """By 0 all bits are set, as a GPU has them; the least number by -1 is itself."""
    is_zero = b.compare("eq", 0)
    if not _signed(op):
        divided = a.divided(is_zero.select(b.of(1), b), "divui")
    else:
        is_minus = b.compare("eq", -1)
        one = is_zero | is_minus
        divided = is_minus.select(-a, a.divided(one.select(b.of(1), b), "divsi"))
    return is_zero.select(b.of(-1), divided)


def rem(op: Op, a: Int, b: Int) -> Int:
    return a - div(op, a, b) * b


def absolute(op: Op, a: Int) -> Int:
    return a.compare("slt", 0).select(-a, a)


def neg(op: Op, a: Int) -> Int:
    return -a


def extremum(op: Op, a: Int, b: Int) -> Int:
    signed = _signed(op)
    found = a.least(b, signed=signed) if op.parts[0] == "min" else a.greatest(b, signed=signed)
    return found.greatest(0, signed=True) if "relu" in op.parts else found


def dp4a(op: Op, a: Int, b: Int, c: Int) -> Int:
    """The products of four bytes, added up."""
    kinds = op.parts[-2:]
    sides = [
        [part.to(32, signed=kind[0] == "s") for part in parted(x, 4)]
        for x, kind in zip((a, b), kinds, strict=True)
    ]
    for left, right in zip(*sides, strict=True):
        c = c + left * right
    return c


def dp2a(op: Op, a: Int, b: Int, c: Int) -> Int:
    """The products of two halves and of two bytes, the lower or the upper ones."""
    halves = [part.to(32, signed=op.parts[-2][0] == "s") for part in parted(a, 2)]
    each = [part.to(32, signed=op.parts[-1][0] == "s") for part in parted(b, 4)]
    for left, right in zip(halves, each[2:] if op.parts[1] == "hi" else each[:2], strict=True):
        c = c + left * right
    return c


# Bits


def logic(op: Op, a: Int, b: Int) -> Int:
    match op.parts[0]:
        case "and":
            return a & b
        case "or":
            return a | b
    return a ^ b


def invert(op: Op, a: Int) -> Int:
    return ~a


def cnot(op: Op, a: Int) -> Int:
    """1 of 0, and 0 of all else."""
    return a.compare("eq", 0).to(a.bits)


def lop3(op: Op, a: Int, b: Int, c: Int, table: Int) -> Int:
    """Each bit by a table of eight."""
    rows = op.literals[3]
    if rows is None or not 0 <= rows <= 255:
        raise Untranslatable("lop3.b32: its table must be a number from 0 to 255", "write it so")
    found = a.of(0)
    for case in range(8):
        if rows >> case & 1:
            signs = case >> 2 & 1, case >> 1 & 1, case & 1
            x, y, z = (v if is_set else ~v for v, is_set in zip((a, b, c), signs, strict=True))
            found = found | (x & y & z)
    return found


def shl(op: Op, a: Int, by: Int) -> Int:
    return a.shl(by)


def shr(op: Op, a: Int, by: Int) -> Int:
    return a.shr_signed(by) if _signed(op) else a.shr(by)


def shf(op: Op, low: Int, high: Int, by: Int) -> Int:
    """64 bits shifted, of which the upper half is wanted (`l`) or the lower one (`r`)."""
    amount = by & 31 if "wrap" in op.parts else by.least(32)
    both = joined([low, high])
    if op.parts[1] == "l":
        return ((both << amount.to(64)) >> 32).to(32)
    return (both >> amount.to(64)).to(32)


# prmt: for each mode which bytes the result has, by the lower two bits of the selector
_PERMUTATIONS = {
    "f4e": ((3, 2, 1, 0), (4, 3, 2, 1), (5, 4, 3, 2), (6, 5, 4, 3)),
    "b4e": ((5, 6, 7, 0), (6, 7, 0, 1), (7, 0, 1, 2), (0, 1, 2, 3)),
    "rc8": ((0, 0, 0, 0), (1, 1, 1, 1), (2, 2, 2, 2), (3, 3, 3, 3)),
    "ecl": ((3, 2, 1, 0), (3, 2, 1, 1), (3, 2, 2, 2), (3, 3, 3, 3)),
    "ecr": ((0, 0, 0, 0), (1, 1, 1, 0), (2, 2, 1, 0), (3, 2, 1, 0)),
    "rc16": ((1, 0, 1, 0), (3, 2, 3, 2), (1, 0, 1, 0), (3, 2, 3, 2)),
}


def prmt(op: Op, a: Int, b: Int, selector: Int) -> Int:
    """Four of eight bytes, the lowest first; with bit 3 of a selector its sign eight times."""
    both = joined([a, b])
    if (rows := _PERMUTATIONS.get(op.parts[-1])) is not None:
        chosen = [joined([parted(both, 8)[n] for n in reversed(row)]) for row in rows]
        low, high = (selector & 1).to(1), (selector >> 1 & 1).to(1)
        return high.select(low.select(chosen[3], chosen[2]), low.select(chosen[1], chosen[0]))
    found = []
    for place in range(4):
        part = selector >> 4 * place
        byte = (both >> ((part & 7) << 3).to(64)).to(8)
        found.append((part >> 3).to(1).select(byte.with_signs(7), byte))
    return joined(found)


def bfe(op: Op, a: Int, start: Int, length: Int) -> Int:
    """A field of bits; a signed one is extended by the last bit of it that the number has."""
    first, count = start & 0xFF, length & 0xFF
    field = a.shr(first)
    mask = _ones(count, a.bits)
    found = field & mask
    if _signed(op):
        last = (first + count - 1).least(a.bits - 1)
        sign = a.shr(last).to(1) & count.compare("ne", 0)
        found = sign.select(found | ~(_ones(_room(a, first, count), a.bits)), found)
    return found


def _room(a: Int, first: Int, count: Int) -> Int:
    """How many bits of a field the number has."""
    return count.least(first.of(a.bits) - first.least(a.bits))


def _ones(count: Int, bits: int) -> Int:
    """So many bits that are set, from the lowest on."""
    return ~number_of(-1, bits).shl(count)


def bfi(op: Op, a: Int, b: Int, start: Int, length: Int) -> Int:
    """The lowest bits of `a` in the place of a field of `b`."""
    first, count = start & 0xFF, length & 0xFF
    mask = _ones(count, a.bits).shl(first)
    return (b & ~mask) | (a.shl(first) & mask)


def bfind(op: Op, a: Int) -> Int:
    """The highest bit that is not as the sign; all bits are set where there is none."""
    bits = a.compare("slt", 0).select(~a, a) if _signed(op) else a
    shift = bits.count("ctlz").to(32)
    place = shift if "shiftamt" in op.parts else shift.of(a.bits - 1) - shift
    return bits.compare("eq", 0).select(place.of(-1), place)


def brev(op: Op, a: Int) -> Int:
    return a.turned()


def count(op: Op, a: Int) -> Int:
    """`popc`, or `clz`: of zeros above the first bit."""
    return a.count("ctpop" if op.parts[0] == "popc" else "ctlz").to(32)


def bmsk(op: Op, start: Int, length: Int) -> Int:
    """A mask of `length` bits from `start` on."""
    if "wrap" in op.parts:
        start, length = start & 31, length & 31
    return _ones(length, 32).shl(start)


def szext(op: Op, a: Int, count: Int) -> Int:
    """The lowest bits, extended by the sign of the last one, or by zeros."""
    wraps = "wrap" in op.parts
    count = count & 31 if wraps else count.least(32)
    mask = _ones(count, 32)
    found = a & mask
    if _signed(op):
        sign = a.shr(count - 1).to(1) & count.compare("ne", 0)
        found = sign.select(found | ~mask, found)
    return found


def fns(op: Op, mask: Int, base: Int, offset: Int) -> Int:
    """The place of the n-th bit that is set, from `base` on upwards, or downwards if n is negative.

    Downwards is upwards among the bits in the other order.
    """
    is_down = offset.compare("slt", 0)
    from_here = is_down.select(base.of(31) - base, base)
    bits = is_down.select(mask.turned(), mask)
    is_alone = offset.compare("eq", 0)
    bits = is_alone.select(bits & base.of(1).shl(from_here), bits & ~_ones(from_here, 32))
    wanted = is_alone.select(offset, is_down.select(-offset, offset) - 1)
    found, before = base.of(32), base.of(0)
    for place in range(32):
        bit = bits >> place & 1
        is_it = bit.to(1) & before.compare("eq", wanted)
        found = is_it.select(base.of(place), found)
        before = before + bit
    there = found.compare("ne", 32)
    return there.select(is_down.select(base.of(31) - found, found), base.of(-1))


# Choices


def selp(op: Op, a: Int, b: Int, chosen: Int) -> Int:
    return chosen.select(a, b)


def slct(op: Op, a: Int, b: Int, c: Int) -> Int:
    return c.compare("sge", 0).select(a, b)


def mov(op: Op, a: Int) -> Int:
    return a
