"""Scalars in the IR with Python's operators, and the types of PTX that they are taken as."""

from collections.abc import Callable
from typing import Any

from proton.conversion.triton_arith_to_linalg.assembly.text import REGISTER_BITS
from proton.dialect.builtin import integer
from proton.dialect.emit import constant, create
from proton.dialect.mlir import Type, Value, arith, ir, llvm

# Bits of the types of instructions; two numbers may share a register.
BITS = REGISTER_BITS | {"bf16": 16, "bf16x2": 32, "s16x2": 32, "u16x2": 32, "tf32": 32}
BITS |= {"e4m3x2": 16, "e5m2x2": 16}
_FLOATS: dict[str, Callable[[], Any]] = {
    "f16": ir.F16Type.get, "bf16": ir.BF16Type.get, "f32": ir.F32Type.get, "f64": ir.F64Type.get,
}  # fmt: skip
# Bits of the fraction of a float, which are the lowest.
FRACTION = {"f16": 10, "bf16": 7, "f32": 23, "f64": 52}


def is_float(type_: str) -> bool:
    """True if a type is one number that IR has as a float."""
    return type_ in _FLOATS


def float_type(type_: str) -> Type:
    """The IR's type of such a number."""
    return _FLOATS[type_]()


class Int:
    """An integer of as many bits as its value's type; Python's integers beside it are constants.

    `/` and `%` are not there. Shifts are by less than the bits, unless they are `shl` and `shr`.
    """

    def __init__(self, value: Value) -> None:
        self.value = value

    @property
    def bits(self) -> int:
        return int(self.value.type.width)

    def of(self, number: int) -> "Int":
        """A constant of as many bits."""
        return number_of(number, self.bits)

    def _other(self, other: "Int | int") -> Value:
        return other.value if isinstance(other, Int) else self.of(other).value

    def _emit(self, name: str, other: "Int | int") -> "Int":
        return Int(create(f"arith.{name}", self.value.type, self.value, self._other(other)))

    def __add__(self, other: "Int | int") -> "Int":
        return self._emit("addi", other)

    def __sub__(self, other: "Int | int") -> "Int":
        return self._emit("subi", other)

    def __mul__(self, other: "Int | int") -> "Int":
        return self._emit("muli", other)

    def __and__(self, other: "Int | int") -> "Int":
        return self._emit("andi", other)

    def __or__(self, other: "Int | int") -> "Int":
        return self._emit("ori", other)

    def __xor__(self, other: "Int | int") -> "Int":
        return self._emit("xori", other)

    def __lshift__(self, other: "Int | int") -> "Int":
        return self._emit("shli", other)

    def __rshift__(self, other: "Int | int") -> "Int":
        """Zeros come in."""
        return self._emit("shrui", other)

    def __invert__(self) -> "Int":
        return self ^ -1

    def __neg__(self) -> "Int":
        return self.of(0) - self

    def with_signs(self, other: "Int | int") -> "Int":
        """Shifted right; copies of the sign come in."""
        return self._emit("shrsi", other)

    def least(self, other: "Int | int", *, signed: bool = False) -> "Int":
        return self._emit("minsi" if signed else "minui", other)

    def greatest(self, other: "Int | int", *, signed: bool = False) -> "Int":
        return self._emit("maxsi" if signed else "maxui", other)

    def divided(self, other: "Int", name: str) -> "Int":
        """`divsi`, `divui`, `remsi` or `remui`, of what is known not to trap."""
        return self._emit(name, other)

    def compare(self, predicate: str, other: "Int | int") -> "Int":
        """`arith.cmpi`: an integer of one bit."""
        chosen = getattr(arith.CmpIPredicate, predicate)
        return Int(arith.CmpIOp(chosen, self.value, self._other(other)).result)

    def select(self, yes: "Int", no: "Int | int") -> "Int":
        """Of a bit: one of two integers."""
        return Int(arith.SelectOp(self.value, yes.value, yes._other(no)).result)

    def to(self, bits: int, *, signed: bool = False) -> "Int":
        """In another number of bits: cut off, or extended."""
        if bits == self.bits:
            return self
        if bits < self.bits:
            return Int(arith.TruncIOp(integer(bits), self.value).result)
        return Int((arith.ExtSIOp if signed else arith.ExtUIOp)(integer(bits), self.value).result)

    def shl(self, by: "Int") -> "Int":
        """Shifted left by any amount: from the bits on all are gone."""
        return self._any(by, lambda amount: self << amount, self.of(0))

    def shr(self, by: "Int") -> "Int":
        """Shifted right by any amount, zeros come in."""
        return self._any(by, lambda amount: self >> amount, self.of(0))

    def shr_signed(self, by: "Int") -> "Int":
        """Shifted right by any amount, copies of the sign come in."""
        return self.with_signs(by.least(self.bits - 1).to(self.bits))

    def _any(self, by: "Int", shift: "Callable[[Int], Int]", beyond: "Int") -> "Int":
        inside = by.compare("ult", self.bits)
        return inside.select(shift(by.least(self.bits - 1).to(self.bits)), beyond)

    def count(self, name: str) -> "Int":
        """`ctpop`, `ctlz` or `cttz` of `math`."""
        return Int(create(f"math.{name}", self.value.type, self.value))

    def turned(self) -> "Int":
        """The first bit last."""
        return Int(create(llvm.BitReverseOp, self.value.type, self.value))

    def as_float(self, type_: str) -> Value:
        """The float that has these bits."""
        return arith.BitcastOp(float_type(type_), self.value).result


def number_of(number: int, bits: int) -> Int:
    """A constant of so many bits; what does not fit is cut off."""
    number &= (1 << bits) - 1
    if bits > 1 and number >> (bits - 1):
        number -= 1 << bits
    return Int(constant(number, integer(bits)))


def bits_of(value: Value) -> Int:
    """The bits of a float."""
    return Int(arith.BitcastOp(integer(value.type.width), value).result)


def joined(parts: list[Int], bits: int = 0) -> Int:
    """One integer of several of the same bits, the first one lowest: of as many bits as they have
    together, or of `bits`."""
    each = parts[0].bits
    whole = parts[0].to(bits or each * len(parts))
    for place, part in enumerate(parts[1:], 1):
        whole = whole | part.to(whole.bits) << place * each
    return whole


def parted(whole: Int, count: int) -> list[Int]:
    """So many integers that share one, the lowest first."""
    each = whole.bits // count
    return [(whole >> place * each if place else whole).to(each) for place in range(count)]
