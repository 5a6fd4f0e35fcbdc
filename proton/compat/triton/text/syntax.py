"""How the text of an op is read, by a form that says what comes after its name.

    $ptr (, $mask)? {} : <ptr>

A form is a line of elements: `$x` is a value, `$x*` any number of them, `@x` a word or a number,
`&x` a string, `{}` the attributes in braces, `<x>` a type, `<x*>` several, `<->` the types of all
operands and results as `(types) -> types`, and anything else itself. `<x:!tt.ptr>` is a type that
may begin with its bracket. `( ... )?` is there where its first element is, and `( ... )*` as often
as that.
"""

import functools
import re
from dataclasses import dataclass, field
from typing import TypeVar

from proton.compat.triton.text.cursor import Cursor, Token
from proton.compat.triton.text.types import Type, TypeReader

_Kind = TypeVar("_Kind")
_ELEMENT = re.compile(r"\)[?*]?|->|\$\w+\*?|@\w+|&\w+|\{\}|<->|<\w+\*?(?::[!\w.]+)?>|[\w.]+|\S")
_NUMBERED = re.compile(r"array<i\d+(?::(.*))?>|\[(.*)\]", re.DOTALL)
_DENSE = re.compile(r"dense<(.*?)>\s*:\s*tensor<(\d+)x", re.DOTALL)

Form = list["str | Optional"]


@dataclass(frozen=True)
class Optional:
    """Elements that may be left out, or come `again` and again."""

    elements: Form
    again: bool


@functools.cache
def compiled(form: str) -> Form:
    """A form as its elements."""
    stack: list[Form] = [[]]
    for word in _ELEMENT.findall(form):
        if word == "(":
            stack.append([])
        elif word in (")?", ")*"):
            elements = stack.pop()
            stack[-1].append(Optional(elements, word == ")*"))
        else:
            stack[-1].append(word.removeprefix("\\"))
    (elements,) = stack
    return elements


@dataclass
class ParsedOp:
    """An op as it was read. `values`, `words` and `types` are what the form names; `results` are
    the names of its results, with how many each is; `place` is its name in the text, and `location`
    what it says of its place in the source."""

    name: str
    results: list[tuple[str, int]]
    place: Token
    values: dict[str, list[str]] = field(default_factory=dict)
    words: dict[str, str] = field(default_factory=dict)
    attributes: dict[str, str] = field(default_factory=dict)
    types: dict[str, list[Type]] = field(default_factory=dict)
    regions: list[object] = field(default_factory=list)
    location: str = ""

    def value(self, name: str) -> str:
        """The only value of a name."""
        (value,) = self.values[name]
        return value

    def type_of(self, name: str) -> Type:
        """The only type of a name."""
        (type_,) = self.types[name]
        return type_

    def of(self, name: str, kind: type[_Kind]) -> _Kind:
        """The only type of a name, which must be of a kind; raises ValueError."""
        type_ = self.type_of(name)
        if not isinstance(type_, kind):
            raise ValueError(f"{name} is {type_.text}, and no {kind.__name__.lower()}")
        return type_

    def number(self, name: str, default: int = 0) -> int:
        """An attribute that is an integer: `3 : i32`."""
        text = self.attributes.get(name)
        return default if text is None else integers(text)[0]

    def flag(self, name: str) -> bool:
        """True if an attribute is there, and not false."""
        return self.attributes.get(name, "false") != "false"

    def numbers(self, name: str) -> list[int]:
        """An attribute that is a list of integers: `array<i32: 1, 0>`."""
        return integers(self.attributes[name])

    def result_names(self) -> list[str]:
        """The name of each result: `%a#0` and `%a#1` of `%a:2`."""
        return [
            f"{name}#{number}" if count > 1 else name
            for name, count in self.results
            for number in range(count)
        ]


def integers(text: str) -> list[int]:
    """Those of `array<i32: 1, 0>`, `[1, 0]`, `dense<[1, 0]> : tensor<2xi32>`."""
    if found := _DENSE.match(text):
        items, count = found[1].strip("[]"), int(found[2])
        values = [int(item) for item in items.split(",")]
        return values * count if len(values) == 1 else values
    found = _NUMBERED.match(text)
    items = (found[1] or found[2] or "") if found else text
    return [int(item.split(":")[0]) for item in items.split(",") if item.strip()]


class OpReader:
    """Reads what follows the name of an op."""

    def __init__(self, cursor: Cursor, types: TypeReader) -> None:
        self.cursor, self.types = cursor, types

    def read(self, op: ParsedOp, form: str) -> None:
        """Fills in the op by its form."""
        self._elements(op, compiled(form))
        op.location = self.location()

    def location(self) -> str:
        """The text of `loc(...)`, where that comes next."""
        if not self.cursor.accept("loc"):
            return ""
        return f" loc{self.cursor.balanced()}"

    def integers(self, text: str, token: Token) -> list[int]:
        """Those of a text behind a token."""
        try:
            return integers(text)
        except ValueError:
            self.cursor.refuse(f"expected integers, got {text.strip()}", token)

    def attributes(self) -> dict[str, str]:
        """Those in braces, by name; one without a value is `true`."""
        found: dict[str, str] = {}
        self.cursor.expect("{")
        while not self.cursor.accept("}"):
            name = self.cursor.next()
            key = name.text.strip('"')
            found[key] = self._attribute() if self.cursor.accept("=") else "true"
            if not self.cursor.accept(",") and not self.cursor.at("}"):
                self.cursor.refuse("expected ',' or '}' behind an attribute", self.cursor.peek())
        return found

    def _attribute(self) -> str:
        """The text of an attribute's value."""
        first = self.cursor.peek()
        while not self.cursor.at(",", "}"):
            token = self.cursor.peek()
            if token.kind == "end":
                self.cursor.refuse("the attributes are not closed", first)
            if token.text in ("(", "[", "{", "<"):
                self.cursor.balanced()
            else:
                self.cursor.next()
        return self.cursor.text[first.start : self.cursor.place].strip()

    def _elements(self, op: ParsedOp, form: Form) -> None:
        for element in form:
            if not isinstance(element, Optional):
                self._element(op, element)
                continue
            while self._is_next(element.elements[0]):
                self._elements(op, element.elements)
                if not element.again:
                    break

    def _is_next(self, element: "str | Optional") -> bool:
        assert isinstance(element, str)
        token = self.cursor.peek()
        if element.startswith("$"):
            return token.kind == "value"
        return token.text == ("{" if element == "{}" else element)

    def _element(self, op: ParsedOp, element: str) -> None:
        name = element.strip("$@&<>*").partition(":")[0]
        if element == "{}":
            if self.cursor.at("{"):
                op.attributes |= self.attributes()
        elif element == "<->":
            op.types["operands"], op.types["results"] = self.types.signature()
        elif element.startswith("$"):
            several = element.endswith("*")
            one = [] if several else [self.cursor.of_kind("value", f"a value, the {name}")]
            op.values[name] = self.cursor.values() if several else one
        elif element.startswith("@"):
            op.words[name] = self.cursor.next().text
        elif element.startswith("&"):
            op.words[name] = self.cursor.of_kind("string", "a string")
        elif element.startswith("<") and element != "<":
            short = element.strip("<>").partition(":")[2]
            op.types[name] = (
                self.types.several(short) if "*" in element else [self.types.read(short)]
            )
        else:
            self.cursor.expect(element)
