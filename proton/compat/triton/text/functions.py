"""The heads of Triton's functions: names, arguments, and what is known of them."""

import re
from dataclasses import dataclass, field

from proton.base.float8 import BY_NAME
from proton.compat.triton.text.cursor import Token
from proton.compat.triton.text.made import Made, i32, segments, string
from proton.compat.triton.text.syntax import OpReader
from proton.compat.triton.text.types import Descriptor, Pointer, Scalar, Type, TypeReader
from proton.dialect.attributes import ARGUMENT_NAME, DIVISIBILITY, ELEMENT, KERNEL, NOINLINE
from proton.language import types as ty

INLINED = "tt.inlined"  # unit on a function that its callers take in (inline.py)
_TMA_BYTES = 16
_I32, _I64 = Scalar("i32"), Scalar("i64")
_NAMELESS = re.compile(r"%(?:arg)?\d+")
_PLACE = re.compile(r'loc\("([^"]*)"\(')
# What Triton passes besides a descriptor, by the end of the argument's name.
_PART = re.compile(r"(.*)\.(shape|stride)\.(\d+)")
_SHORT = {"f16": "fp16", "f32": "fp32", "f64": "fp64"}
_SHORT |= {type_.mlir: getattr(ty, name).mangle() for name, type_ in BY_NAME.items()}
_PART_OPS = {"shape": ("tt.descriptor_size", "i32"), "stride": ("tt.descriptor_stride", "i64")}


@dataclass
class _Argument:
    """An argument: its value, its name in Python, its type, and text behind these."""

    value: str
    name: str
    type: Type
    attributes: dict[str, str] = field(default_factory=dict)
    location: str = ""

    def text(self) -> str:
        """As MLIR writes it."""
        entries = ", ".join(f"{name} = {said}" for name, said in self.attributes.items())
        said = f" {{{entries}}}" if entries else ""
        return f"{self.value}: {self.type.text}{said}{self.location}"


class FunctionReader:
    """Reads `tt.func public @add(...) -> ... attributes {...} {`, up to the brace of its body."""

    def __init__(self, reader: OpReader, types: TypeReader) -> None:
        self.reader, self.types, self.cursor = reader, types, reader.cursor

    def read(self, token: Token) -> str:
        """The head of ours, and what the body begins with. `token` is the name of the op."""
        is_private = self.cursor.accept("private")
        self.cursor.accept("public")
        symbol = self.cursor.of_kind("symbol", "the name of the function")
        arguments = self._arguments()
        results = ""
        if self.cursor.accept("->"):
            types = ", ".join(type_.text for type_ in self.types.results())
            results = f" -> ({types})"
        said = self.reader.attributes() if self.cursor.accept("attributes") else {}
        if not self.cursor.at("{"):
            self.cursor.unsupported(
                f"{symbol} has no body", token, "put what it calls into the module"
            )
        is_kept = said.get("noinline") == "true"
        kind = KERNEL if not is_private else f"{NOINLINE} = true" if is_kept else INLINED
        descriptors = {a.name: a for a in arguments if isinstance(a.type, Descriptor)}
        kept, made = list[_Argument](), list[str]()
        for argument in arguments:
            part = _PART.fullmatch(argument.name)
            if part is not None and part[1] in descriptors:
                if not self.types.has_maps:
                    made.append(_asked(argument, descriptors[part[1]], part))
            elif isinstance(argument.type, Descriptor) and argument.type.is_map:
                if is_private:
                    self.cursor.unsupported(
                        f"{symbol} takes a tensor descriptor", token, "leave noinline out"
                    )
                kept += _parts(argument, argument.type)
                made += _mapped(argument, argument.type)
            else:
                kept.append(argument)
        heads = ", ".join(argument.text() for argument in kept)
        visibility = "private " if is_private else ""
        self.cursor.next()
        body = "".join(f" {op}\n" for op in made)
        return f"func.func {visibility}{symbol}({heads}){results} attributes {{{kind}}} {{{body}"

    def _known(self) -> dict[str, str]:
        """What is said of an argument, which is i64 of those of functions that are called."""
        token = self.cursor.peek()
        said = self.reader.attributes()
        if DIVISIBILITY in said:
            said[DIVISIBILITY] = i32(self.reader.integers(said[DIVISIBILITY], token)[0])
        return said

    def _arguments(self) -> list[_Argument]:
        found: list[_Argument] = []
        self.cursor.expect("(")
        while not self.cursor.accept(")"):
            value = self.cursor.of_kind("value", "an argument")
            self.cursor.expect(":")
            type_ = self.types.read()
            said = self._known() if self.cursor.at("{") else {}
            location = self.reader.location()
            name = value.removeprefix("%")
            if _NAMELESS.fullmatch(value) and (place := _PLACE.search(location)):
                name = place[1]
            found.append(_Argument(value, name, type_, _kept(name, type_, said), location))
            self.cursor.accept(",")
        return found


def _asked(argument: _Argument, whole: _Argument, part: re.Match[str]) -> str:
    """An op that asks a descriptor for a size or a stride, which Triton passes besides."""
    name, type_ = _PART_OPS[part[2]]
    made = Made(name, [(whole.value, whole.type)], [Scalar(type_)], {"axis": i32(int(part[3]))})
    return f"{argument.value} = {made.head()}{made.tail()}"


def _parts(argument: _Argument, type_: Descriptor) -> list[_Argument]:
    """What launches give of a descriptor: the address, the sizes, and all strides but the last.
    TMA takes addresses and strides that are multiples of 16 bytes."""
    rank, element = len(type_.shape), type_.element
    known = {DIVISIBILITY: i32(_TMA_BYTES)}
    base = _Argument(
        f"{argument.value}$base",
        argument.name,
        Pointer(element),
        _kept(argument.name, Pointer(element), known),
        argument.location,
    )
    sizes = [_Argument(f"{argument.value}.shape.{n}", "", _I32) for n in range(rank)]
    divisor = {DIVISIBILITY: i32(max(1, 8 * _TMA_BYTES // element.bits))}
    strides = [
        _Argument(f"{argument.value}.stride.{n}", "", _I64, divisor) for n in range(rank - 1)
    ]
    return [base, *sizes, *strides]


def _mapped(argument: _Argument, type_: Descriptor) -> list[str]:
    """The tensor map of these parts, and the last stride."""
    parts = [(part.value, part.type) for part in _parts(argument, type_)]
    rank = len(type_.shape)
    said = {"operandSegmentSizes": segments([1, rank, rank - 1, 0])}
    made = Made("ttng.tensor_map", parts, [type_], said)
    last = f"{argument.value}.stride.{rank - 1}"
    return [f"{argument.value} = {made.head()}{made.tail()}", f"{last} = arith.constant 1 : i64"]


def _kept(name: str, type_: Type, said: dict[str, str]) -> dict[str, str]:
    """What an argument says of itself here, by what it says in Triton's text."""
    kept = {ARGUMENT_NAME: string(name)}
    if DIVISIBILITY in said:
        kept[DIVISIBILITY] = said[DIVISIBILITY]
    if isinstance(type_, Pointer) and isinstance(type_.pointee, Scalar):
        kept[ELEMENT] = string(_in_python(type_.pointee))
    if isinstance(type_, Descriptor):
        kept[ELEMENT] = string(_in_python(type_.element))
    return kept


def _in_python(element: Scalar) -> str:
    """The short name of a type in the language: `fp32` of `f32`."""
    return _SHORT.get(element.text, element.text)
