"""PTX as statements in basic blocks: the grammar, and nothing of what instructions mean."""

import functools
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from types import CodeType
from typing import Any

import numpy as np

_TOKEN = re.compile(
    r"\s*(?:(?P<open>\{)|(?P<close>\})|(?P<label>[$\w]+):|(?P<line>\.(?:loc|file)\b[^\n]*)|"
    r"(?P<statement>[^;{}]+(?:\{[^}]*\}[^;{}]*)*);)"
)
_OPERAND = re.compile(r"\s*(\[(?:[^\[\]{}]|\{[^}]*\})*\]|\{[^}]*\}|[^,{}\[\]]+)\s*(?:,|$)")
_DTYPES = {"pred": np.bool_, "b8": np.uint8, "b16": np.uint16, "b32": np.uint32, "b64": np.uint64}
# Instructions that threads of a warp, or of a program, execute together: each has its own block.
_WARP = ("shfl", "vote", "elect", "redux", "match", "ldmatrix", "stmatrix", "mma", "tensormap")


@dataclass(frozen=True, slots=True)
class Instruction:
    """One instruction; `guard` is a predicate register, or its opposite."""

    text: str
    name: tuple[str, ...]
    operands: tuple[str, ...]
    guard: str | None = None
    is_opposite: bool = False

    @property
    def together(self) -> str:
        """Who has to be there to execute it: "thread", "warp", "group" (four warps), "program", or
        "phase" (of an mbarrier)."""
        match self.name:
            case ("bar" | "barrier", "warp", *_) | ("bar", "arrive", *_):
                return "warp"
            case ("bar" | "barrier", *_):
                return "program"
            case ("mbarrier", "try_wait" | "test_wait", *_):
                return "phase"
            case ("wgmma", *_):
                return "group"
            case (name, *_) if name in _WARP:
                return "warp"
        return "thread"


@dataclass
class Block:
    """A basic block; one that threads execute together has a single instruction."""

    instructions: list[Instruction] = field(default_factory=list)

    @property
    def together(self) -> str:
        return self.instructions[0].together if self.instructions else "thread"


@dataclass
class Kernel:
    """A kernel: its parameters' bytes, registers, blocks, labels and arrays in local memory; and
    what translation.py keeps: code by block, names of operands, and how the objects with names are
    made."""

    name: str
    parameters: dict[str, int]  # in order
    registers: dict[str, type]
    blocks: list[Block]
    labels: dict[str, int]
    local: dict[str, int]  # where an array begins
    local_bytes: int
    targets: dict[str, list[str]] = field(default_factory=dict)  # of a label of `.branchtargets`
    translated: dict[int, CodeType] = field(default_factory=dict)
    names: dict[tuple[str, str], str] = field(default_factory=dict)
    makers: dict[str, Callable[[Any], Any]] = field(default_factory=dict)


@functools.lru_cache(8)  # each has its code with it, a megabyte
def parsed(ptx: str) -> Kernel:
    """The only kernel in some PTX."""
    text = re.sub(r"//[^\n]*|/\*.*?\*/", "", ptx[ptx.index(".entry") :], flags=re.DOTALL)
    head, _, body = text.partition(")\n")
    name = re.search(r"\.entry\s+([$\w]+)", head)
    assert name is not None
    found = re.findall(r"\.param ([^,\n]*?)([$\w]+)(?:\[(\d+)\])?,?\s*\n", head + "\n")
    sizes = {name: int(count) if count else _size(kind) for kind, name, count in found}
    kernel = Kernel(name[1], sizes, {}, [Block()], {}, {}, 0)
    _Body(kernel).read(body[body.index("{") :])
    return kernel


def _size(kind: str) -> int:
    """Bytes of a parameter, `.u64 .ptr .global .align 16`."""
    bits = re.search(r"\.[usbf](\d+)", kind)
    assert bits is not None, kind
    return int(bits[1]) // 8


class _Body:
    """Reads a body. Names that a `{ }` declares are the kernel's with a number behind them."""

    def __init__(self, kernel: Kernel) -> None:
        self.kernel, self.count, self.last_label = kernel, 0, ""
        self.scopes: list[dict[str, str]] = []

    def read(self, body: str) -> None:
        place = 0
        while (token := _TOKEN.match(body, place)) is not None:
            place = token.end()
            if token["open"]:
                self.count += 1
                self.scopes.append({})
                self._labels_ahead(body, place)
            elif token["close"]:
                self.scopes.pop()
                if not self.scopes:
                    return
            elif token["label"]:
                self._label(self._renamed(token["label"]))
            elif token["statement"]:
                self._statement(token["statement"].strip())
        raise AssertionError(f"no PTX that is known: {body[place : place + 80]!r}")

    def _labels_ahead(self, body: str, place: int) -> None:
        """Labels of a scope inside may be asked for before they come."""
        if len(self.scopes) > 1:
            inside = body[place : body.index("}\n", place)]
            for name in re.findall(r"(?:^|;)\s*(\w+):", inside, re.MULTILINE):
                self.scopes[-1][name] = f"{name}.{self.count}"

    def _renamed(self, text: str) -> str:
        for scope in reversed(self.scopes[1:]):
            for name, new in scope.items():
                text = re.sub(rf"(?<![$%\w.]){re.escape(name)}\b(?!\.\d)", new, text)
        return text

    def _label(self, name: str) -> None:
        if self.kernel.blocks[-1].instructions:
            self.kernel.blocks.append(Block())
        self.kernel.labels[name] = len(self.kernel.blocks) - 1
        self.last_label = name

    def _statement(self, text: str) -> None:
        if text.startswith("."):
            self._directive(text)
            return
        instruction = _instruction(self._renamed(text))
        blocks = self.kernel.blocks
        is_apart = instruction.together != "thread"
        if is_apart and blocks[-1].instructions:
            blocks.append(Block())
        blocks[-1].instructions.append(instruction)
        if is_apart or instruction.name[0] in ("bra", "brx", "ret", "exit"):
            blocks.append(Block())

    def _directive(self, text: str) -> None:
        words = text.split(None, 2)
        if words[0] == ".reg":
            dtype = _DTYPES[words[1][1:].replace("f", "b").replace("s", "b").replace("u", "b")]
            for name in words[2].split(","):
                self._register(name.strip(), dtype)
        elif words[0] == ".local":
            found = re.search(r"\.align (\d+) \.b8\s+([$\w]+)\[(\d+)\]", text)
            assert found is not None, text
            self.kernel.local[found[2]] = self.kernel.local_bytes
            self.kernel.local_bytes += -(-int(found[3]) // 16) * 16
        elif words[0] == ".branchtargets":
            names = text.removeprefix(words[0]).split(",")
            self.kernel.targets[self.last_label] = [name.strip() for name in names]
        else:
            assert words[0] in (".pragma", ".loc"), text

    def _register(self, name: str, dtype: type) -> None:
        if (several := re.fullmatch(r"(%?\w+)<(\d+)>", name)) is not None:
            names = [f"{several[1]}{n}" for n in range(int(several[2]))]
            if len(self.scopes) < 2:  # thousands
                self.kernel.registers |= dict.fromkeys(names, dtype)
                return
            for one in names:
                self._register(one, dtype)
            return
        if len(self.scopes) > 1:
            self.scopes[-1][name] = f"{name}.{self.count}"
            name = self.scopes[-1][name]
        self.kernel.registers[name] = dtype


def _instruction(text: str) -> Instruction:
    guard = re.match(r"@(!?)(%?[\w.]+)\s+", text)
    rest = text[guard.end() :] if guard else text
    name, _, operands = rest.replace("\t", " ").replace("\n", " ").partition(" ")
    parts = tuple(re.sub("::", ":", name).split("."))
    found = tuple(operand.strip() for operand in _OPERAND.findall(operands))
    return Instruction(text, parts, found, guard[2] if guard else None, bool(guard and guard[1]))


def inside(operand: str) -> list[str]:
    """The parts of a vector operand, `{a, b}`; of another the operand itself."""
    return [part.strip() for part in operand.strip("{}").split(",")]


def address_of(operand: str) -> tuple[str, int]:
    """Register or symbol, and bytes, of `[base+offset]`."""
    base, _, offset = operand.strip("[]").partition("+")
    return base.strip(), int(offset or 0)
