"""Ops of ours, in MLIR's generic form, that stand for an op of Triton's text."""

import contextlib
import itertools
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NoReturn

from proton.compat.triton.text.cursor import Cursor
from proton.compat.triton.text.syntax import ParsedOp
from proton.compat.triton.text.types import Descriptor, Type

Value = tuple[str, Type]  # its name, and what it is
_ZERO = re.compile(r"\s*(?:dense\s*<\s*)?(?:-?0+(?:\.0*(?:[eE][-+]?\d+)?)?|false|0x0+)\s*[>:]")
_INTEGER = re.compile(r"\s*(-?\d+)\s*:\s*i(?:32|64)\b")
_PAIR = re.compile(r"\s*(%[^\s,]+)\s*,\s*(%[^\s,]+)")


@dataclass(frozen=True)
class Made:
    """An op: what it takes, what it gives, attributes as text. `regions` are those of Triton's."""

    name: str
    operands: Sequence[Value] = ()
    results: Sequence[Type] = ()
    attributes: Mapping[str, str] = field(default_factory=dict)
    regions: Sequence[object] = ()

    def head(self) -> str:
        """The text before its regions."""
        return f'"{self.name}"({", ".join(name for name, _ in self.operands)})'

    def tail(self) -> str:
        """The text behind its regions."""
        entries = ", ".join(f"{name} = {text}" for name, text in sorted(self.attributes.items()))
        taken = ", ".join(type_.text for _, type_ in self.operands)
        given = ", ".join(type_.text for type_ in self.results)
        said = f" {{{entries}}}" if entries else ""
        return f"{said} : ({taken}) -> ({given})"


class Context:
    """What rules know of the text around an op."""

    def __init__(self, cursor: Cursor, level: str) -> None:
        self.cursor, self.level = cursor, level
        self.warps = 0  # that run an op
        self.in_group = False  # and there are others
        self._names = itertools.count()
        self.begin_function()

    def begin_function(self) -> None:
        """Forgets what values of the function before are: another one has names of its own."""
        self.aliases: dict[str, str] = {}  # results that are other values
        self.zeros: set[str] = set()  # constants that are nothing but zeros
        self.integers: dict[str, int] = {}  # constants
        self.products: dict[str, tuple[str, str]] = {}  # of integers: what is multiplied
        self.paddings: dict[str, str] = {}  # of tensor descriptors that are made
        self.maps: dict[str, ParsedOp] = {}  # what makes a tensor map, by where it lies

    @contextlib.contextmanager
    def region(self) -> Iterator[None]:
        """What is found out of values within is forgotten behind: a region beside it, parted from
        what is around them, has the same names again."""
        known = self.aliases, self.zeros, self.integers, self.products, self.paddings, self.maps
        self.aliases, self.zeros, self.integers = dict(known[0]), set(known[1]), dict(known[2])
        self.products, self.paddings, self.maps = dict(known[3]), dict(known[4]), dict(known[5])
        yield
        self.aliases, self.zeros, self.integers, self.products, self.paddings, self.maps = known

    def define(self, name: str, op: str, text: str) -> None:
        """Notes what is known of a value that an op of MLIR's own gives; `text` is behind its
        name."""
        if op == "arith.constant":
            if _ZERO.match(text):
                self.zeros.add(name)
            if found := _INTEGER.match(text):
                self.integers[name] = int(found[1])
        elif op == "arith.muli" and (found := _PAIR.match(text)):
            self.products[name] = found[1], found[2]

    def name(self) -> str:
        """A new value's: Triton's have no `$`."""
        return f"%${next(self._names)}"

    def unsupported(self, op: ParsedOp, what: str, hint: str) -> NoReturn:
        """Raises UnsupportedLanguageConstruct about an op."""
        self.cursor.unsupported(f"{op.name} {what}", op.place, hint)


# A rule gives ops, the last of which has the results; each before it comes with its own name. None
# where an op means nothing here.
Step = tuple[str, Made]
Rule = Callable[[Context, ParsedOp], "list[Step | Made]"]


def segments(counts: Sequence[int]) -> str:
    """The sizes of groups of operands, or of results."""
    return f"array<i32: {', '.join(map(str, counts))}>" if counts else "array<i32>"


def first_of(count: int, most: int) -> str:
    """Of optional operands of which the first so many are there."""
    return segments([1] * count + [0] * (most - count))


def described(context: Context, op: ParsedOp) -> Descriptor:
    """The type of the descriptor that an op takes; whoever made that knows its padding."""
    name, type_ = op.value("desc"), op.of("desc", Descriptor)
    return replace(type_, padding=context.paddings.get(name, type_.padding))


def i32(number: int) -> str:
    """An attribute."""
    return f"{number} : i32"


def string(text: str) -> str:
    """An attribute."""
    escaped = text.replace("\\", "\\\\").replace('"', '\\"')
    return f'"{escaped}"'
