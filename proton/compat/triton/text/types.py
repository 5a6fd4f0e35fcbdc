"""Types as Triton writes them, and as our dialects do.

tensor<64x!tt.ptr<f32>, #blocked>                        tensor<64x!tt.ptr<f32>, #ttg.linear<...>>
!ttg.memdesc<64x32xf16, #shared, #smem, mutable>         !ttg.mutable_memdesc<[64, 32], f16, ...>
!tt.tensordesc<16x64xf16>                                !tt.tensordesc<tensor<16x64xf16>, "zero">
"""

import re
from collections.abc import Iterable
from dataclasses import dataclass, field, replace

from proton.compat.triton.text import encodings
from proton.compat.triton.text.cursor import Cursor, Token
from proton.compat.triton.text.encodings import Encoding
from proton.layout import LinearLayout
from proton.layout.named import DISTRIBUTED

_BITS = re.compile(r"[a-z]+(\d+)")
_PADDINGS = ("zero", "nan")


@dataclass(frozen=True)
class Scalar:
    """A type that is written alike: `i32`, `f8E4M3FN`, `index`."""

    text: str

    @property
    def bits(self) -> int:
        """Of a number."""
        found = _BITS.match(self.text)
        return int(found[1]) if found else 0

    @property
    def is_float(self) -> bool:
        """True if it is a floating-point type."""
        return self.text.startswith(("f", "bf"))


@dataclass(frozen=True)
class Pointer:
    """`!tt.ptr<f32>`, to global memory, or `!tt.ptr<tensor<16x8xf32>>`, to a block there."""

    pointee: "Scalar | TensorType"
    bits = 64

    @property
    def text(self) -> str:
        """As our dialects write it: booleans lie in bytes."""
        memory = "i8" if self.pointee.text == "i1" else self.pointee.text
        return f"!tt.ptr<{memory}>"


@dataclass(frozen=True)
class TensorType:
    """A tensor; `layout` is None before layouts are."""

    shape: tuple[int, ...]
    element: Scalar | Pointer
    layout: LinearLayout | None = None

    @property
    def text(self) -> str:
        """As our dialects write it."""
        layout = "" if self.layout is None else f", {distributed_text(self.layout)}"
        return f"tensor<{_sizes(self.shape)}{self.element.text}{layout}>"

    def of(self, element: Scalar | Pointer) -> "TensorType":
        """One of the same shape and layout."""
        return TensorType(self.shape, element, self.layout)


@dataclass(frozen=True)
class MemDesc:
    """A tensor in shared memory, or, with one dimension more, several of them."""

    shape: tuple[int, ...]
    element: Scalar
    layout: LinearLayout
    is_mutable: bool

    @property
    def text(self) -> str:
        """As our dialects write it."""
        kind = "mutable_memdesc" if self.is_mutable else "memdesc"
        bases = _list(_list(basis) for basis in self.layout.bases("offset"))
        return f"!ttg.{kind}<{_list(self.shape)}, {self.element.text}, #ttg.shared<{bases}>>"


@dataclass(frozen=True)
class Descriptor:
    """`!tt.tensordesc<16x64xf16>`: a tensor in memory, of which blocks are accessed."""

    shape: tuple[int, ...]
    element: Scalar
    padding: str
    is_map: bool = False  # behind the first level: a tensor map of TMA

    @property
    def text(self) -> str:
        """As our dialects write it."""
        kind = "!ttng.tensormap" if self.is_map else "!tt.tensordesc"
        return f'{kind}<{TensorType(self.shape, self.element).text}, "{self.padding}">'


Type = Scalar | Pointer | TensorType | MemDesc | Descriptor
TOKEN = Scalar("!ttg.async_token")


def element_of(type_: Type) -> Scalar | Pointer:
    """The element of a tensor, or the type of a scalar."""
    return type_.element if isinstance(type_, TensorType) else _scalar(type_)


def _scalar(type_: Type) -> Scalar | Pointer:
    if not isinstance(type_, Scalar | Pointer):
        raise ValueError(f"{type_.text} is no scalar")
    return type_


def like(type_: Type, element: Scalar | Pointer) -> Type:
    """A tensor of these elements where `type_` is one, else the element."""
    return type_.of(element) if isinstance(type_, TensorType) else element


def pointee(type_: Type) -> Type:
    """What a pointer points to, or the tensor of what its pointers do."""
    element = element_of(type_)
    target = element.pointee if isinstance(element, Pointer) else element
    return target if isinstance(target, TensorType) else like(type_, target)


def _sizes(shape: Iterable[int]) -> str:
    return "".join(f"{size}x" for size in shape)


def _list(items: Iterable[object]) -> str:
    return f"[{', '.join(map(str, items))}]"


def distributed_text(layout: LinearLayout) -> str:
    """The attribute of a distributed layout."""
    bases = (_list(_list(basis) for basis in layout.bases(name)) for name in DISTRIBUTED)
    return f"#ttg.linear<{', '.join(bases)}>"


@dataclass
class TypeReader:
    """Reads types of one text. `known` has its encodings with an alias, `warps` is of a program;
    `paddings` is what blocks of a descriptor's type have outside of their tensor; with `has_maps`
    descriptors are tensor maps."""

    cursor: Cursor
    known: dict[str, Encoding] = field(default_factory=dict)
    has_maps: bool = False
    warps: int = 0
    paddings: dict[str, str] = field(default_factory=dict)
    laid_out: Token | None = None  # where the last tensor with a layout was

    def begins(self, token: Token) -> bool:
        """True if a token begins a type that is written otherwise here."""
        if token.kind == "word":
            return token.text == "tensor"
        return token.kind == "alias" and token.text.startswith(("!tt.", "!ttg.", "!ttng."))

    def read(self, short: str = "") -> Type:
        """The type that comes next; where it may begin with its bracket, `short` is its name."""
        token = self.cursor.peek()
        name = short if token.text == "<" else self.cursor.next().text
        match name:
            case "tensor":
                return self._tensor()
            case "!tt.ptr":
                return self._pointer()
            case "!ttg.memdesc":
                return self._memory(token)
            case "!tt.tensordesc":
                return self._descriptor()
            case "!ttg.async.token":
                return TOKEN
        if token.kind == "word":
            rest = self.cursor.balanced() if self.cursor.at("<") else ""
            return Scalar(token.text + rest)
        if token.kind == "alias":
            self.cursor.unsupported(
                f"values of type {name} are not supported",
                token,
                "compile the kernel from Python, or its IR of an earlier level",
            )
        self.cursor.refuse(f"expected a type, got {token.text or 'the end'!r}", token)

    def several(self, short: str = "") -> list[Type]:
        """Types with commas between them."""
        found = [self.read(short)]
        while self.cursor.accept(","):
            found.append(self.read(short))
        return found

    def results(self) -> list[Type]:
        """One type, or several in parentheses."""
        if not self.cursor.accept("("):
            return [self.read()]
        found = [] if self.cursor.at(")") else self.several()
        self.cursor.expect(")")
        return found

    def signature(self) -> tuple[list[Type], list[Type]]:
        """Of `(types) -> types`."""
        operands = self.results()
        self.cursor.expect("->")
        return operands, self.results()

    def _tensor(self) -> TensorType:
        place = self.cursor.expect("<")
        shape, element = self.cursor.sizes(), self._element()
        layout = None
        if self.cursor.accept(","):
            self.laid_out = place
            encoding = encodings.parse(self.cursor, self.known)
            layout = encodings.distributed(self.cursor, encoding, shape, element.bits, self.warps)
        self.cursor.expect(">")
        return TensorType(shape, element, layout)

    def _element(self) -> Scalar | Pointer:
        token = self.cursor.peek()
        type_ = self.read()
        if not isinstance(type_, Scalar | Pointer):
            self.cursor.refuse(f"expected the type of a scalar, got {type_.text}", token)
        return type_

    def _number(self) -> Scalar:
        token = self.cursor.peek()
        type_ = self._element()
        if not isinstance(type_, Scalar):
            self.cursor.refuse(f"expected the type of a number, got {type_.text}", token)
        return type_

    def _pointer(self) -> Pointer:
        self.cursor.expect("<")
        token = self.cursor.peek()
        target = self.read()
        if not isinstance(target, Scalar | TensorType) or (
            isinstance(target, TensorType) and not isinstance(target.element, Scalar)
        ):
            self.cursor.unsupported(
                f"pointers to {target.text} are not supported",
                token,
                "point to numbers, or to blocks of them",
            )
        if self.cursor.accept(","):
            space = self.cursor.next()
            if space.text != "1":
                self.cursor.unsupported(
                    f"pointers to the address space {space.text} are not supported",
                    space,
                    "pass pointers to global memory",
                )
        self.cursor.expect(">")
        return Pointer(target)

    def _memory(self, token: Token) -> MemDesc:
        self.cursor.expect("<")
        shape, element = self.cursor.sizes(), self._number()
        self.cursor.expect(",")
        encoding = encodings.parse(self.cursor, self.known)
        self.cursor.expect(",")
        space, is_mutable = encodings.parse(self.cursor, self.known), False
        while self.cursor.accept(","):
            if self.cursor.accept("mutable"):
                is_mutable = True
                continue
            whole = (*self.cursor.sizes(), int(self.cursor.of_kind("number", "a size")))
            if whole[len(whole) - len(shape) :] != shape:
                self.cursor.unsupported(
                    f"a part of memory of {'x'.join(map(str, whole))} elements is not supported",
                    token,
                    "index memory along its first dimension",
                )
        self.cursor.expect(">")
        if space.name != "#ttg.shared_memory":
            self.cursor.unsupported(
                f"memory in {space.name} is not supported",
                token,
                "compile the .ttir of the kernel, which has no memory",
            )
        rank = _rank(encoding) or len(shape)
        layout = encodings.shared(self.cursor, encoding, shape[len(shape) - rank :], element.bits)
        return MemDesc(shape, element, layout, is_mutable)

    def _block(self) -> tuple[tuple[int, ...], Scalar]:
        """The shape and the elements of a descriptor's blocks; how they lie in shared memory is for
        the memory to say."""
        shape, element = self.cursor.sizes(), self._number()
        if self.cursor.accept(","):
            encodings.parse(self.cursor, self.known)
        return shape, element

    def _descriptor(self) -> Descriptor:
        self.cursor.expect("<")
        if self.cursor.accept("tensor"):  # older versions write the tensor's type
            self.cursor.expect("<")
            shape, element = self._block()
            self.cursor.expect(">")
        else:
            shape, element = self._block()
        self.cursor.expect(">")
        plain = Descriptor(shape, element, _PADDINGS[0], self.has_maps)
        return replace(plain, padding=self.paddings.get(plain.text, _PADDINGS[0]))


def _rank(encoding: Encoding) -> int:
    """The dimensions of what a layout is of; 0 where it does not say it."""
    order = encoding.fields.get("order")
    if order is not None:
        return len(order)
    if encoding.name == "#ttg.shared_linear":
        return len(encoding.fields["offset"][0]) if encoding.fields["offset"] else 1
    return 2 if encoding.name == "#ttg.nvmma_shared" else 0
