"""What `proton-compile` and `proton-link` know of a compiled kernel: one line of its C header.

An `AheadVariant` is machine code for one choice of types, constants, hints and options. Those of a
kernel that differ only in hints (a value is a multiple of 16, or 1) are of one algorithm: the
dispatcher chooses among them by the values. Others are algorithms of their own.
"""

import hashlib
import json
import re
from collections.abc import Sequence
from dataclasses import asdict, dataclass

from proton.base.errors import ProtonError
from proton.language import types as ty

MARK = "// proton-link: "  # begins the line of a header that has its variant
_C_TYPES = {
    "i1": "bool",
    "i8": "int8_t",
    "i16": "int16_t",
    "i32": "int32_t",
    "i64": "int64_t",
    "u8": "uint8_t",
    "u16": "uint16_t",
    "u32": "uint32_t",
    "u64": "uint64_t",
    "fp32": "float",
    "fp64": "double",
}
# Words of C and C++, macros and types of the headers that are included, and names of ours.
_RESERVED = frozenset(
    "alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl "
    "concept const const_cast consteval constexpr constinit continue co_await co_return "
    "co_yield decltype default delete do double dynamic_cast else enum explicit export extern "
    "false float for friend goto if inline int long mutable namespace new noexcept not not_eq "
    "nullptr operator or or_eq private protected public register reinterpret_cast requires "
    "restrict return short signed sizeof static static_assert static_cast struct switch "
    "template this thread_local throw true try typedef typeid typename typeof typeof_unqual "
    "union unsigned using virtual void volatile wchar_t while xor xor_eq NULL linux unix int8_t "
    "int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t uintptr_t stream grid_x grid_y "
    "grid_z first_program end_program algo_id ProtonStream".split()
)


def c_name(name: str) -> str:
    """The name in C of what has this one in Python; of two names two."""
    ascii_name = "".join(c if c.isascii() else f"_u{ord(c):x}" for c in name)
    ascii_name = f"_{ascii_name}" if ascii_name[:1].isdigit() else ascii_name
    is_taken = ascii_name.rstrip("_") in _RESERVED or ascii_name.startswith("proton_")
    return f"{re.sub(r'[^0-9a-zA-Z_]', '_', ascii_name)}{'_' if is_taken else ''}"


@dataclass(frozen=True)
class RuntimeParameter:
    """A run-time argument of a kernel: its name, type, and what its value must be a multiple of
    (16) or equal to (1); 0 says nothing."""

    name: str
    type: str
    hint: int = 0

    @property
    def c_name(self) -> str:
        """The name in C."""
        return c_name(self.name)

    @property
    def is_pointer(self) -> bool:
        """True if it is an address."""
        return self.type.startswith("*")

    def c_type(self, target: str) -> str:
        """The type in C: an address on a GPU is a number."""
        if self.is_pointer:
            return "void *" if target == "cpu" else "uint64_t"
        if self.type not in _C_TYPES:
            raise ProtonError(f"{self.name} is {self.type}, which C programs cannot pass")
        return _C_TYPES[self.type]

    @property
    def condition(self) -> str:
        """What C checks of its value; empty for nothing."""
        if self.hint == 1:
            return f"{self.c_name} == 1"
        value = f"(uintptr_t){self.c_name}" if self.is_pointer else self.c_name
        return f"{value} % {self.hint} == 0" if self.hint else ""


@dataclass(frozen=True)
class AheadVariant:
    """One compiled kernel. `algorithm` is its constants and options as text."""

    kernel: str
    target: str
    parameters: tuple[RuntimeParameter, ...]
    algorithm: str

    @property
    def base(self) -> str:
        """The kernel's name in C."""
        return c_name(self.kernel)

    @property
    def name(self) -> str:
        """The name of its function in C: what it was compiled for as a hash, and its hints:
        `0d1c` for a multiple of 16 and a 1."""
        types = [parameter.type for parameter in self.parameters]
        text = json.dumps([self.target, types, self.algorithm])
        letters = {16: "d", 1: "c", 0: ""}
        hints = "".join(f"{n}{letters[p.hint]}" for n, p in enumerate(self.parameters))
        return f"{self.base}_{hashlib.sha256(text.encode()).hexdigest()[:8]}_{hints}"

    @property
    def passed(self) -> list[RuntimeParameter]:
        """The parameters that the machine code takes."""
        return [parameter for parameter in self.parameters if parameter.hint != 1]

    def declared(self, parameters: Sequence[RuntimeParameter]) -> str:
        """A list of parameters in C; on a GPU a stream is the first."""
        stream = [] if self.target == "cpu" else ["ProtonStream stream"]
        return ", ".join([*stream, *[f"{p.c_type(self.target)} {p.c_name}" for p in parameters]])

    def line(self) -> str:
        """The line of a header that says all this."""
        return MARK + json.dumps(asdict(self))

    @staticmethod
    def of_line(line: str) -> "AheadVariant":
        """The variant of such a line."""
        plain = json.loads(line.removeprefix(MARK))
        plain["parameters"] = tuple(RuntimeParameter(**each) for each in plain["parameters"])
        return AheadVariant(**plain)


def parse_signature(
    text: str, names: Sequence[str]
) -> tuple[tuple[RuntimeParameter, ...], dict[str, object]]:
    """(run-time parameters, constants) of `"*fp32:16, i32, 1024"`: for each of a kernel's
    parameters a type, with `:16` or `:1` as a hint, or a constant."""
    parts = [part.strip() for part in text.split(",")] if text.strip() else []
    if len(parts) != len(names):
        raise ProtonError(
            f"the signature has {len(parts)} entries, and the kernel {len(names)} parameters: "
            f"{', '.join(names)}"
        )
    parameters, constants = [], {}
    for name, part in zip(names, parts, strict=True):
        constant = _constant(part)
        if constant is not _NO_CONSTANT:
            constants[name] = constant
            continue
        type_, _, hint = part.partition(":")
        if hint not in ("", "1", "16"):
            raise ProtonError(f"{name}: a hint is 16 or 1, got {part!r}")
        try:
            short = ty.str_to_ty(type_).short
        except (KeyError, ValueError, TypeError, ProtonError):
            raise ProtonError(
                f"{name}: expected a type such as *fp32 or i32, or a constant, got {part!r}"
            ) from None
        if hint and not _may_have(hint, short):
            raise ProtonError(
                f"{name}: :16 is for pointers and integers, :1 for integers, got {part!r}"
            )
        parameters.append(RuntimeParameter(name, short, int(hint or 0)))
    return tuple(parameters), constants


def _may_have(hint: str, type_: str) -> bool:
    """True if values of a type may be multiples of 16, or 1."""
    is_integer = type_[:1] in "iu" and type_ != "i1"
    return is_integer or (type_.startswith("*") and hint == "16")


_NO_CONSTANT = object()


def _constant(text: str) -> object:
    """The constant that a text is."""
    if text in ("True", "False", "None"):
        return {"True": True, "False": False, "None": None}[text]
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    if len(text) > 1 and text[0] == text[-1] and text[0] in "'\"":
        return text[1:-1]
    return _NO_CONSTANT
