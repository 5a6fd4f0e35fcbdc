"""The text of inline assembly, PTX with `$0`, `$1`, ... for operands, as a list of instructions.

Only the grammar is here, and which name is which register: no IR, and nothing of what instructions
mean. What is read are instructions with their guards, `{ }`, `.reg` and comments; a text that is
none of these is an `Untranslatable`.
"""

import re
import struct
from dataclasses import dataclass

from proton.base.chips.chip import WARP_SIZE


class Untranslatable(Exception):
    """What is wrong with the text, or what of it has no translation; and what to do instead."""

    def __init__(self, rule: str, hint: str = "") -> None:
        super().__init__(rule)
        self.rule, self.hint = rule, hint


@dataclass(frozen=True)
class Register:
    """A register that the text declares; `number` tells those of one name apart."""

    name: str
    bits: int
    number: int


@dataclass(frozen=True)
class CallOperand:
    """`$3`: an operand of the call."""

    number: int


@dataclass(frozen=True)
class Integer:
    """A number without a point."""

    text: str
    value: int


@dataclass(frozen=True)
class Real:
    """A number with a point, or with its bits: `1.5`, `0f3FC00000`, `0d3FF8000000000000`."""

    text: str
    value: float
    bits: int = 0  # 32 or 64 where the text has the bits of that format
    raw: int = 0  # those bits


@dataclass(frozen=True)
class Negated:
    """`!p`."""

    part: "Register | CallOperand"


@dataclass(frozen=True)
class Pair:
    """`p|q`."""

    first: "Operand"
    second: "Operand"


@dataclass(frozen=True)
class Vector:
    """`{a, b}`."""

    parts: "tuple[Operand, ...]"


@dataclass(frozen=True)
class Other:
    """Something that no instruction that is translated takes: an address, a special register."""

    text: str


Operand = Register | CallOperand | Integer | Real | Negated | Pair | Vector | Other


@dataclass(frozen=True)
class Instruction:
    """`@!guard name operands;`"""

    name: str
    operands: tuple[Operand, ...]
    guard: Register | CallOperand | None = None
    is_opposite: bool = False


UNUSED = Other("_")  # the place of a result that nobody wants

# Bits of registers, by the type that declares them; a predicate has one.
REGISTER_BITS = {"pred": 1, "f16": 16, "f16x2": 32, "f32": 32, "f64": 64}
REGISTER_BITS |= {f"{kind}{bits}": bits for kind in "bus" for bits in (8, 16, 32, 64)}

_HINT = "look for a missing ; or a misspelt name"
_MARK = "\0"  # around the number of an operand, once `$` and `$$` are told apart
_TOKEN = re.compile(
    rf"(?:\s|//[^\n]*|/\*.*?\*/)*(?:{_MARK}(?P<argument>\d+){_MARK}"
    r"|(?P<float>0[fF][\da-fA-F]{8}\b|0[dD][\da-fA-F]{16}\b"
    r"|(?:\d+\.\d*|\.\d+)(?:[eE][+-]?\d+)?|\d+[eE][+-]?\d+)"
    r"|(?P<integer>(?:0[xX][\da-fA-F]+|0[bB][01]+|0[0-7]*|[1-9]\d*)U?(?![\w.]))"
    r"|(?P<word>(?:[A-Za-z]|[_$%][\w$]|_(?![\w$]))[\w$]*(?:(?:\.|::)\w+)*)"
    r"|(?P<directive>\.\w+)"
    r"|(?P<sign>[;{}@!,|:\[\]()<>+~=-])|(?P<end>\Z))",
    re.DOTALL,
)


@dataclass(frozen=True)
class _Token:
    kind: str
    text: str

    def __str__(self) -> str:
        return {"argument": f"${self.text}", "end": "the end"}.get(self.kind, self.text)


def parse(text: str) -> list[Instruction]:
    """The instructions of a text, in order. Raises Untranslatable."""
    return _Parser(_tokens(text)).instructions


def _tokens(text: str) -> list[_Token]:
    if not text.isascii() or _MARK in text:
        raise Untranslatable("the assembly has characters that are not ASCII", _HINT)
    if lone := re.search(r"(?<!\$)(?:\$\$)*(\$(?![\d$]|\{\d{1,4}\}).?)", text, re.DOTALL):
        raise Untranslatable(
            f"{lone[1]!r} is neither an operand ($0, $1, ...) nor a dollar sign ($$)",
            "write $$ for a $",
        )
    text = re.sub(
        r"\$(?:(\$)|(\d{1,4})|\{(\d{1,4})\})",
        lambda m: m[1] or f"{_MARK}{m[2] or m[3]}{_MARK}",
        text,
    )
    found: list[_Token] = []
    place = 0
    while not found or found[-1].kind != "end":
        token = _TOKEN.match(text, place)
        if token is None:
            rest = text[place:].split(maxsplit=1)
            raise Untranslatable(f"{rest[0][:40]!r} is no PTX", _HINT)
        place = token.end()
        assert token.lastgroup is not None
        found.append(_Token(token.lastgroup, token[token.lastgroup]))
    return found


def _integer(text: str, *, minus: bool) -> Integer:
    digits = text.rstrip("U")
    if len(digits) > _MAX_DIGITS:
        raise Untranslatable(
            f"{text[:20]}...: a number of more than 64 bits", "write a smaller one"
        )
    is_octal = digits.startswith("0") and digits.isdigit()
    value = int(digits, 8) if is_octal else int(digits, 0)
    return Integer(f"-{text}" if minus else text, -value if minus else value)


def _real(text: str, *, minus: bool) -> Real:
    shown = f"-{text}" if minus else text
    if text[1:2] in ("f", "F", "d", "D"):
        bits = 32 if text[1] in "fF" else 64
        raw = int(text[2:], 16)
        (value,) = struct.unpack(">f" if bits == 32 else ">d", raw.to_bytes(bits // 8, "big"))
        if minus:
            raise Untranslatable(f"{shown}: a number by its bits has no sign", "set its first bit")
        return Real(shown, value, bits, raw)
    return Real(shown, -float(text) if minus else float(text))


class _Parser:
    """Reads tokens one after the other; `scopes` has the registers of each open `{`."""

    def __init__(self, tokens: list[_Token]) -> None:
        self.tokens, self.place = tokens, 0
        self.scopes: list[dict[str, Register]] = [{}]
        self.count = 0
        self.instructions: list[Instruction] = []
        while self._peek().kind != "end":
            self._statement()
        if len(self.scopes) > 1:
            raise Untranslatable("the assembly ends inside of { }", "write the missing }")

    # Tokens

    def _peek(self) -> _Token:
        return self.tokens[self.place]

    def _next(self) -> _Token:
        token = self.tokens[self.place]
        self.place += token.kind != "end"
        return token

    def _takes(self, sign: str) -> bool:
        """True if the next token is this sign, which is then behind us."""
        token = self._peek()
        is_it = token.kind == "sign" and token.text == sign
        self.place += is_it
        return is_it

    def _expect(self, sign: str, behind: str) -> None:
        if not self._takes(sign):
            raise Untranslatable(f"{sign!r} expected behind {behind}, got {self._peek()}", _HINT)

    # Statements

    def _statement(self) -> None:
        if self._takes("{"):
            self.scopes.append({})
        elif self._takes("}"):
            if len(self.scopes) == 1:
                raise Untranslatable("a } without its {", "remove it")
            self.scopes.pop()
        elif self._takes("@"):
            is_opposite = self._takes("!")
            guard = self._operand("@")
            if not isinstance(guard, Register | CallOperand):
                raise Untranslatable(
                    f"{shown(guard)} is no predicate", "declare it with .reg .pred"
                )
            self._instruction(guard, is_opposite)
        elif self._peek().kind == "directive":
            self._declaration()
        elif not self._takes(";"):
            self._instruction(None, False)

    def _instruction(self, guard: Register | CallOperand | None, is_opposite: bool) -> None:
        name = self._next()
        if name.kind != "word":
            raise Untranslatable(f"an instruction expected, got {name}", _HINT)
        if self._takes(":"):
            raise Untranslatable(
                f"{name}: there are no labels in what is translated", "write it with predicates"
            )
        operands: list[Operand] = []
        if not self._takes(";"):
            operands.append(self._operands(name.text))
            while self._takes(","):
                operands.append(self._operands(name.text))
            self._expect(";", name.text)
        self.instructions.append(Instruction(name.text, tuple(operands), guard, is_opposite))

    def _declaration(self) -> None:
        """`.reg .b32 a, b<4>;`"""
        directive, type_ = self._next().text, self._next()
        if directive != ".reg":
            raise Untranslatable(f"{directive} is not translated", "only .reg is")
        bits = REGISTER_BITS.get(type_.text.removeprefix("."))
        if type_.kind != "directive" or bits is None:
            raise Untranslatable(
                f"{type_} is no type of a register that is translated",
                f"one of {', '.join(REGISTER_BITS)} is",
            )
        while True:
            name = self._next()
            if name.kind != "word" or "." in name.text or name.text == "_":
                raise Untranslatable(f"a name expected behind .reg {type_}, got {name}", _HINT)
            self._declare(name.text, bits)
            if not self._takes(","):
                break
        self._expect(";", f".reg {type_}")

    def _declare(self, name: str, bits: int) -> None:
        names = [name]
        if self._takes("<"):
            count = self._next()
            if count.kind != "integer":
                raise Untranslatable(f"a number expected in {name}<>, got {count}", _HINT)
            number = _integer(count.text, minus=False).value
            if number > _MAX_REGISTERS:
                raise Untranslatable(f"{name}<{number}>: too many registers", "declare fewer")
            self._expect(">", f"{name}<{count}")
            names = [f"{name}{n}" for n in range(number)]
        for one in names:
            if one in self.scopes[-1]:
                raise Untranslatable(f"{one} is declared twice", "give one another name")
            self.scopes[-1][one] = Register(one, bits, self.count)
            self.count += 1

    # Operands

    def _operands(self, behind: str) -> Operand:
        """An operand, or two with a | between them."""
        first = self._operand(behind)
        return Pair(first, self._operand(behind)) if self._takes("|") else first

    def _operand(self, behind: str) -> Operand:
        if self._takes("{"):
            parts = [self._simple(behind)]
            while self._takes(","):
                parts.append(self._simple(behind))
            self._expect("}", behind)
            return Vector(tuple(parts))
        if self._takes("["):
            return self._address(behind)
        if self._takes("!"):
            part = self._simple(behind)
            if not isinstance(part, Register | CallOperand):
                raise Untranslatable(f"!{shown(part)}: only a predicate can be negated", _HINT)
            return Negated(part)
        return self._simple(behind)

    def _simple(self, behind: str) -> Operand:
        """A register or a number."""
        minus = self._takes("-")
        token = self._next()
        if token.kind == "integer":
            return _integer(token.text, minus=minus)
        if token.kind == "float":
            return _real(token.text, minus=minus)
        if minus or token.kind not in ("argument", "word"):
            what = f"-{token}" if minus else str(token)
            raise Untranslatable(f"an operand expected behind {behind}, got {what}", _HINT)
        return CallOperand(int(token.text)) if token.kind == "argument" else self._named(token.text)

    def _named(self, name: str) -> Operand:
        for scope in reversed(self.scopes):
            if name in scope:
                return scope[name]
        return Integer(name, WARP_SIZE) if name == "WARP_SZ" else Other(name)

    def _address(self, behind: str) -> Other:
        """What is in [ ], as its text."""
        parts: list[str] = []
        while not self._takes("]"):
            token = self._next()
            if token.kind == "end" or token.text == ";":
                raise Untranslatable(f"']' expected behind {behind} [{''.join(parts)}", _HINT)
            parts.append(str(token))
        return Other(f"[{''.join(parts)}]")


_MAX_REGISTERS = 1024
_MAX_DIGITS = 66  # of 64 bits, 0b1...


def shown(operand: Operand) -> str:
    """An operand as it is written."""
    match operand:
        case CallOperand(number):
            return f"${number}"
        case Register(name):
            return name
        case Negated(part):
            return f"!{shown(part)}"
        case Pair(first, second):
            return f"{shown(first)}|{shown(second)}"
        case Vector(parts):
            return f"{{{', '.join(map(shown, parts))}}}"
    return operand.text
