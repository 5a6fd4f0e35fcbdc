"""Instructions in the place of which ops are emitted, one after the other, on registers of bits."""

from dataclasses import dataclass
from typing import Any

from proton.conversion.triton_arith_to_linalg.assembly import floats
from proton.conversion.triton_arith_to_linalg.assembly.forms import Form, forms
from proton.conversion.triton_arith_to_linalg.assembly.text import (
    UNUSED,
    CallOperand,
    Instruction,
    Integer,
    Negated,
    Operand,
    Other,
    Pair,
    Real,
    Register,
    Untranslatable,
    Vector,
    shown,
)
from proton.conversion.triton_arith_to_linalg.assembly.values import (
    BITS,
    FRACTION,
    Int,
    bits_of,
    float_type,
    is_float,
    joined,
    number_of,
    parted,
)
from proton.dialect.emit import constant

HINT = "write it with functions of tl, or launch the kernel on arrays of a GPU"
Place = Register | CallOperand
_RAW = {"mov": 1, "selp": 2, "slct": 2}  # of so many operands only the bits are looked at


@dataclass(frozen=True)
class Call:
    """What a rule sees of an instruction (`integers.Op`)."""

    parts: tuple[str, ...]
    type: str
    literals: tuple[int | None, ...]


class Machine:
    """The registers of a text, as values of the IR. `bits` has how wide operands of the call are,
    `values` what is in those that have been given."""

    def __init__(self, bits: dict[int, int], values: dict[int, Int]) -> None:
        self.bits = bits
        self.registers: dict[Place, Int] = {CallOperand(n): x for n, x in values.items()}

    def run(self, instruction: Instruction) -> None:
        """Emits an instruction's ops. Raises Untranslatable."""
        form = forms().get(instruction.name)
        if form is None:
            raise Untranslatable(_unknown(instruction.name), HINT)
        operands, name = list(instruction.operands), instruction.name
        if not operands:
            raise Untranslatable(f"{name} has no operands", "write them")
        guard = None
        if instruction.guard is not None:
            guard = self._read(instruction.guard, "pred", name)
            guard = ~guard if instruction.is_opposite else guard
        target, *given = operands
        if name.startswith("mov.b") and (
            isinstance(target, Vector) or any(isinstance(x, Vector) for x in given)
        ):
            self._move_parts(name, BITS[form.parts[-1]], target, given, guard)
            return
        _check_count(form, len(given))
        self._store(form, target, self._results(form, given), guard)

    # Computing

    def _results(self, form: Form, given: list[Operand]) -> list[Int]:
        """What the instruction gives, in the bits of its types."""
        types = form.operands[: len(given)]
        name = form.name
        if not _is_halved(form):
            raw = _RAW.get(form.parts[0], 0)
            values = [
                self._taken(x, t, form, raw=n < raw)
                for n, (x, t) in enumerate(zip(given, types, strict=True))
            ]
            return _given(form, form.results, _compute(form, given, values))
        half = form.parts[-1].removesuffix("x2")
        sides = [
            parted(self._read(x, t, name), 2) if t.endswith("x2") else [self._read(x, t, name)] * 2
            for x, t in zip(given, types, strict=True)
        ]
        results = tuple(t.removesuffix("x2") for t in form.results)
        found = []
        for side in zip(*sides, strict=True):
            typed = [
                _typed(x, half, form) if t.endswith("x2") else x
                for x, t in zip(side, types, strict=True)
            ]
            found.append(_given(form, results, _compute(form, given, typed)))
        if form.parts[0] == "setp":  # p is of the lower number, q of the upper one
            return [found[0][0], found[1][0]]
        return [joined([found[0][0], found[1][0]])]

    def _taken(self, operand: Operand, type_: str, form: Form, *, raw: bool) -> Any:
        bits = self._read(operand, type_, form.name, loose=form.is_loose)
        return bits if raw else _typed(bits, type_, form)

    # Registers

    def _width(self, place: Place) -> int:
        if isinstance(place, Register):
            return place.bits
        if place.number not in self.bits:
            raise Untranslatable(
                f"{shown(place)}: the call has {len(self.bits)} operands",
                "they are counted from $0, results first",
            )
        return self.bits[place.number]

    def _read(self, operand: Operand, type_: str, name: str, *, loose: bool = False) -> Int:
        """The bits of an operand, taken as a type."""
        match operand:
            case Negated(part):
                if type_ != "pred":
                    raise Untranslatable(f"{name}: {shown(operand)} is no {type_}", "use not")
                return ~self._read(part, "pred", name)
            case Integer() | Real():
                return _literal(operand, type_, name)
            case Register() | CallOperand():
                width = self._width(operand)
                if operand not in self.registers:
                    raise Untranslatable(
                        f"{name}: {shown(operand)} is read before it is written", "write it first"
                    )
                _check_width(operand, width, type_, name, loose=loose)
                return self.registers[operand].to(BITS[type_])
        raise Untranslatable(_no_operand(operand, name), HINT)

    def _write(self, place: Operand, value: Int, name: str, guard: Int | None) -> None:
        if place == UNUSED:
            return
        if not isinstance(place, Register | CallOperand):
            raise Untranslatable(_no_operand(place, name), HINT)
        if guard is not None:
            # Nobody knows what was there before the first instruction that writes it.
            old = self.registers.get(place, value.of(0))
            value = guard.select(value, old)
        self.registers[place] = value

    def _store(self, form: Form, target: Operand, values: list[Int], guard: Int | None) -> None:
        targets = [target.first, target.second] if isinstance(target, Pair) else [target]
        both_needed = form.parts[0] == "setp" and form.parts[-1].endswith("x2")
        if len(targets) > len(form.results) or (both_needed and len(targets) < 2):
            raise Untranslatable(f"{form.name} does not write {shown(target)}", "write p or p|q")
        for place, type_, value in zip(targets, form.results, values, strict=False):
            if isinstance(place, Register | CallOperand):
                width = self._width(place)
                _check_width(place, width, type_, form.name, loose=form.is_loose)
                value = value.to(width, signed=type_.startswith("s"))
            self._write(place, value, form.name, guard)

    def _move_parts(
        self, name: str, bits: int, target: Operand, given: list[Operand], guard: Int | None
    ) -> None:
        """`mov.b32 {a, b}, c` and `mov.b32 c, {a, b}`."""
        source = given[0] if len(given) == 1 else None
        if isinstance(target, Vector) and source is not None and not isinstance(source, Vector):
            width = _part_width(name, bits, target)
            parts = parted(self._read(source, name.split(".")[1], name), len(target.parts))
            for place, part in zip(target.parts, parts, strict=True):
                if isinstance(place, Register | CallOperand):
                    _check_width(place, self._width(place), f"b{width}", name)
                self._write(place, part, name, guard)
            return
        if not isinstance(source, Vector) or isinstance(target, Vector):
            raise Untranslatable(f"{name} takes one vector", "write {a, b} on one side")
        type_ = f"b{_part_width(name, bits, source)}"
        whole = joined([self._read(x, type_, name) for x in source.parts])
        if isinstance(target, Register | CallOperand):
            _check_width(target, self._width(target), f"b{bits}", name)
        self._write(target, whole, name, guard)


# Numbers


def _typed(bits: Int, type_: str, form: Form) -> Any:
    """Bits as the type that a rule takes: an integer, or a float."""
    if not is_float(type_):
        return bits
    value = bits.as_float(type_)
    return floats.flushed(value, type_) if _flushes(form, type_) else value


def _flushes(form: Form, type_: str) -> bool:
    """True if denormal numbers of a type are 0: in conversions, those of fp32."""
    return "ftz" in form.parts and (form.parts[0] != "cvt" or type_ == "f32")


def _compute(form: Form, given: list[Operand], values: list[Any]) -> Any:
    literals = tuple(x.value if isinstance(x, Integer) else None for x in given)
    type_ = form.parts[-1].removesuffix("x2") if _is_halved(form) else form.parts[-1]
    return form.rule(Call(form.parts, type_, literals), *values)


def _is_halved(form: Form) -> bool:
    """True if the rule is for each of two numbers in a register."""
    return form.parts[-1].endswith("x2") and form.parts[0] != "cvt"


def _given(form: Form, results: tuple[str, ...], found: Any) -> list[Int]:
    """Results as bits."""
    values = found if isinstance(found, tuple) else (found,)
    done = []
    for value, result in zip(values, results, strict=False):  # some have no `|q`
        if isinstance(value, Int):
            done.append(value)
            continue
        if "relu" in form.parts:
            value = floats.positive(value, result)
        if "sat" in form.parts:
            value = floats.saturated(value)
        if _flushes(form, result):
            value = floats.flushed(value, result)
        done.append(bits_of(value))
    return done


def _literal(operand: Integer | Real, type_: str, name: str) -> Int:
    """A number in the text, as bits."""
    bits = BITS[type_]
    if isinstance(operand, Integer):
        if type_ in FRACTION or type_.endswith("x2"):
            hint = (
                "write 1.0, or 0f3F800000" if bits >= 32 else "move it into a register by its bits"
            )
            raise Untranslatable(f"{name}: {operand.text} is no {type_}", hint)
        if not -(1 << (bits - 1)) <= operand.value < 1 << bits and type_ != "pred":
            raise Untranslatable(f"{name}: {operand.text} has no room in {bits} bits", "")
        return number_of(operand.value if type_ != "pred" else bool(operand.value), bits)
    if operand.bits == bits and type_ in ("f32", "f64", "b32", "b64"):
        return number_of(operand.raw, bits)  # also of a NaN
    if type_ in ("f32", "f64"):
        return bits_of(constant(operand.value, float_type(type_)))
    if type_ in ("b32", "b64") and not operand.bits:
        return bits_of(constant(operand.value, float_type(f"f{bits}")))
    raise Untranslatable(f"{name}: {operand.text} is no {type_}", "write an integer")


def _check_width(place: Place, width: int, type_: str, name: str, *, loose: bool = False) -> None:
    bits = BITS[type_]
    if width != bits and not (loose and width > bits > 1):
        raise Untranslatable(
            f"{name}: {shown(place)} has {width} bits, .{type_} has {bits}",
            "use another constraint, or a register of another type",
        )


def _check_count(form: Form, count: int) -> None:
    most = len(form.operands)
    is_combined = any(part in form.parts for part in ("and", "or", "xor"))
    least = most if not form.optional or is_combined else most - 1
    most = least if form.optional and not is_combined else most
    if not least <= count <= most:
        raise Untranslatable(
            f"{form.name} takes {least + 1} operands, its result among them, got {count + 1}",
            "see its description in NVIDIA's manual of PTX",
        )


def _part_width(name: str, bits: int, vector: Vector) -> int:
    width = bits // len(vector.parts)
    if len(vector.parts) not in (2, 4) or width < 8:
        raise Untranslatable(f"{name} has no {len(vector.parts)} parts", "it has 2 or 4")
    return width


def _unknown(name: str) -> str:
    """What to say of an instruction that is not in the table."""
    first = name.split(".")[0]
    if any(other.split(".")[0] == first for other in forms()):
        return f"{name} is no form of {first} that is translated for the CPU"
    return f"{name} is not translated for the CPU"


def _no_operand(operand: Operand, name: str) -> str:
    """What to say of an operand that an instruction does not take."""
    if isinstance(operand, Other) and operand.text.startswith("%"):
        return f"{name}: {operand.text} is a register of a GPU, or was not declared"
    if isinstance(operand, Other) and operand.text[0] != "[":
        return f"{name}: {shown(operand)} was not declared"
    return f"{name} does not take {shown(operand)}"
