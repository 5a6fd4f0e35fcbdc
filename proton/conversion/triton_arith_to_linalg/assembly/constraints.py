"""Constraints of inline assembly, and how elements share registers."""

import re
from dataclasses import dataclass

from proton.conversion.triton_arith_to_linalg.assembly.text import Untranslatable
from proton.conversion.triton_arith_to_linalg.assembly.values import Int, bits_of, joined
from proton.dialect.builtin import integer
from proton.dialect.mlir import Type, Value, arith, ir

REGISTER = 32  # bits that elements share
# Bits of the registers that a letter stands for
_LETTERS = {"b": 1, "c": 16, "h": 16, "r": 32, "f": 32, "l": 64, "d": 64}
_HINT = "write one for each result, =r or =f or ..., then one for each argument"


@dataclass(frozen=True)
class Constraints:
    """Bits of the registers of results and of arguments; an argument may share one with a result,
    whose number it has then."""

    results: tuple[int, ...]
    arguments: tuple[int, ...]
    tied: tuple[int | None, ...]  # by argument


def read_constraints(text: str) -> Constraints:
    """Of `=r,=&f,r,0`. Raises Untranslatable."""
    results: list[int] = []
    arguments: list[int] = []
    tied: list[int | None] = []
    for one in re.sub(r"\s", "", text).split(",") if text.strip() else []:
        if re.fullmatch(r"~\{\w*\}", one):
            continue  # what it clobbers: there is nothing that could be
        found = re.fullmatch(r"(=&?)?([a-z]|\d{1,3})", one)
        if found is None or (found[2] not in _LETTERS and (found[1] or not found[2].isdigit())):
            raise Untranslatable(f"the constraint {one!r} is not translated", _HINT)
        if found[1]:
            if arguments:
                raise Untranslatable(
                    f"the constraint {one!r} of a result is behind those of arguments", _HINT
                )
            results.append(_LETTERS[found[2]])
        elif found[2].isdigit():
            number = int(found[2])
            if number >= len(results):
                raise Untranslatable(f"the constraint {one!r} names no result", _HINT)
            arguments.append(results[number])
            tied.append(number)
        else:
            arguments.append(_LETTERS[found[2]])
            tied.append(None)
    return Constraints(tuple(results), tuple(arguments), tuple(tied))


def bits_of_type(type_: Type) -> int:
    """Raises Untranslatable for what is no number."""
    if not isinstance(type_, ir.IntegerType | ir.FloatType):
        raise Untranslatable("its operands may not be pointers", "pass integers and floats")
    return int(type_.width)


def per_register(type_: Type, pack: int) -> int:
    """How many of `pack` elements lie in one register."""
    return min(max(1, REGISTER // bits_of_type(type_)), pack)


def packed(elements: list[Value], bits: list[int]) -> list[Int]:
    """The registers, of so many bits each, that hold some elements of one operand."""
    count = len(elements) // len(bits)
    found = []
    for place, width in enumerate(bits):
        parts = [_as_bits(x) for x in elements[place * count : (place + 1) * count]]
        if (taken := parts[0].bits * count) > width:
            raise Untranslatable(
                f"an argument of {taken} bits has a constraint for {width}", "use another one"
            )
        found.append(joined(parts, width))
    return found


def _as_bits(value: Value) -> Int:
    return Int(value) if isinstance(value.type, ir.IntegerType) else bits_of(value)


def unpacked(registers: list[Int], type_: Type, pack: int) -> list[Value]:
    """`pack` elements of a result in registers."""
    count, width = per_register(type_, pack), bits_of_type(type_)
    found = []
    for register in registers:
        if register.bits < count * width:
            raise Untranslatable(
                f"a result of {count * width} bits has a constraint for {register.bits}",
                "use another one",
            )
        for place in range(count):
            part = register >> place * width if place else register
            found.append(_as_type(part.to(width), type_))
    return found


def _as_type(bits: Int, type_: Type) -> Value:
    if isinstance(type_, ir.IntegerType):
        return bits.value
    assert integer(bits.bits) == bits.value.type
    return arith.BitcastOp(type_, bits.value).result
