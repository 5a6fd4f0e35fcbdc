"""Types of the tile language: scalars, pointers, blocks. Names and meanings are Triton's."""

import enum
import functools
import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import ClassVar

from proton.base.float8 import BY_NAME
from proton.language.constants import constexpr as constexpr
from proton.language.constants import unwrap as unwrap

_KINDS = {  # name -> (kind, bits)
    "void": ("void", 0),
    "int1": ("int", 1),
    "int8": ("int", 8),
    "int16": ("int", 16),
    "int32": ("int", 32),
    "int64": ("int", 64),
    "uint8": ("uint", 8),
    "uint16": ("uint", 16),
    "uint32": ("uint", 32),
    "uint64": ("uint", 64),
    "float8e5": ("float", 8),
    "float8e4nv": ("float", 8),
    "float8e5b16": ("float", 8),
    "float8e4b8": ("float", 8),
    "float8e4b15": ("float", 8),
    "float16": ("float", 16),
    "bfloat16": ("float", 16),
    "float32": ("float", 32),
    "float64": ("float", 64),
}
# The short names of signatures ("*fp32", "i32"), as Triton writes them.
_SHORT = {
    "int1": "i1",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "uint8": "u8",
    "uint16": "u16",
    "uint32": "u32",
    "uint64": "u64",
    "float8e5": "fp8e5",
    "float8e4nv": "fp8e4nv",
    "float8e5b16": "fp8e5b16",
    "float8e4b8": "fp8e4b8",
    "float8e4b15": "fp8e4b15",
    "float16": "fp16",
    "bfloat16": "bf16",
    "float32": "fp32",
    "float64": "fp64",
    "void": "void",
}
_LONG = {short: name for name, short in _SHORT.items()}
_FLOATS = {  # name -> (bits of the mantissa, bias of the exponent)
    **{name: (form.mantissa, form.bias) for name, form in BY_NAME.items()},
    "float16": (10, 15),
    "bfloat16": (7, 127),
    "float32": (23, 127),
    "float64": (52, 1023),
}


def _named(*kinds: str, over: int = 0) -> list[str]:
    """The short names of the types of these kinds with more than so many bits."""
    return [_SHORT[name] for name, (kind, bits) in _KINDS.items() if kind in kinds and bits > over]


class dtype:
    """A scalar type. Compare with `==`; `dtype("float32")`, or `dtype("fp32")`, is `float32`."""

    # Triton's lists of types, by the names that signatures have.
    SINT_TYPES: ClassVar = _named("int", over=1)
    UINT_TYPES: ClassVar = ["i1", *_named("uint")]
    FP_TYPES: ClassVar = _named("float")
    STANDARD_FP_TYPES: ClassVar = _named("float", over=8)
    OTHER_TYPES: ClassVar = ["void"]

    def __init__(self, name: str) -> None:
        name = _LONG.get(name, name)
        if name not in _KINDS:
            raise TypeError(f"no dtype is named {name!r}; there are {', '.join(_KINDS)}")
        self.name = name
        self.kind, self.primitive_bitwidth = _KINDS[name]

    @property
    def scalar(self) -> "dtype":
        """The element type; a scalar's is itself."""
        return self

    @property
    def settled(self) -> "dtype":
        """What a value of it will be where it is not yet computed."""
        return self

    @property
    def shape(self) -> tuple[int, ...]:
        return ()

    @property
    def itemsize(self) -> int:
        """Bytes of one element in memory."""
        return max(1, self.primitive_bitwidth // 8)

    def is_ptr(self) -> bool:
        return False

    def is_block(self) -> bool:
        return False

    def is_floating(self) -> bool:
        return self.kind == "float"

    def is_int(self) -> bool:
        return self.kind in ("int", "uint")

    def is_int_signed(self) -> bool:
        return self.kind == "int" and not self.is_bool()

    def is_int_unsigned(self) -> bool:
        """True if an integer has no sign, as one bit has none."""
        return self.kind == "uint" or self.is_bool()

    def is_bool(self) -> bool:
        return self.name == "int1"

    is_int1 = is_bool

    def is_fp8(self) -> bool:
        return self.kind == "float" and self.primitive_bitwidth == 8

    def is_fp8e4nv(self) -> bool:
        return self.name == "float8e4nv"

    def is_fp8e4b8(self) -> bool:
        return self.name == "float8e4b8"

    def is_fp8e4b15(self) -> bool:
        return self.name == "float8e4b15"

    def is_fp8e5(self) -> bool:
        return self.name == "float8e5"

    def is_fp8e5b16(self) -> bool:
        return self.name == "float8e5b16"

    def is_standard_floating(self) -> bool:
        return self.is_floating() and self.primitive_bitwidth > 8

    def is_void(self) -> bool:
        return self.name == "void"

    def is_const(self) -> bool:
        """True if this is a pointer that is not stored through."""
        return False

    def is_fp16(self) -> bool:
        return self.name == "float16"

    def is_bf16(self) -> bool:
        return self.name == "bfloat16"

    def is_fp32(self) -> bool:
        return self.name == "float32"

    def is_fp64(self) -> bool:
        return self.name == "float64"

    def is_int8(self) -> bool:
        return self.name == "int8"

    def is_int16(self) -> bool:
        return self.name == "int16"

    def is_int32(self) -> bool:
        return self.name == "int32"

    def is_int64(self) -> bool:
        return self.name == "int64"

    def is_uint8(self) -> bool:
        return self.name == "uint8"

    def is_uint16(self) -> bool:
        return self.name == "uint16"

    def is_uint32(self) -> bool:
        return self.name == "uint32"

    def is_uint64(self) -> bool:
        return self.name == "uint64"

    @property
    def int_bitwidth(self) -> int:
        """Bits of an integer type."""
        return self.primitive_bitwidth

    @property
    def fp_mantissa_width(self) -> int:
        """Bits of a float's mantissa, without the leading one."""
        return self._float_facts()[0]

    @property
    def exponent_bias(self) -> int:
        """What is added to the exponent of a float."""
        return self._float_facts()[1]

    def _float_facts(self) -> tuple[int, int]:
        if self.name not in _FLOATS:
            raise TypeError(f"{self} is no float: it has no mantissa and no exponent")
        return _FLOATS[self.name]

    def with_element_ty(self, element_ty: "dtype") -> "dtype":
        """The type in the shape of this one; of a scalar the element type itself."""
        return element_ty

    @staticmethod
    def is_dtype(name: str) -> bool:
        """True if a type has this name, or this short name."""
        return _LONG.get(name, name) in _KINDS

    def get_int_min_value(self) -> int:
        """The least value of an integer type."""
        if self.kind != "int" or self.is_bool():
            return 0
        return -(1 << (self.primitive_bitwidth - 1))

    def get_int_max_value(self) -> int:
        """The greatest value of an integer type."""
        if self.name == "int1":
            return 1
        return (1 << (self.primitive_bitwidth - (self.kind == "int"))) - 1

    def __eq__(self, other: object) -> bool:
        return type(other) is dtype and other.name == self.name

    def __hash__(self) -> int:
        return hash(("dtype", self.name))

    def mangle(self) -> str:
        """The short name used in signatures and cache keys."""
        return _SHORT[self.name]

    @functools.cached_property
    def short(self) -> str:
        """`mangle()`, computed once."""
        return self.mangle()

    def __repr__(self) -> str:
        return self.mangle()

    def __str__(self) -> str:
        """What Triton calls it: int32, fp32, pointer<fp32>."""
        return self.mangle() if self.is_floating() else self.name

    def __format__(self, spec: str) -> str:
        """In messages a type has its short name."""
        return format(str(self), spec) if spec else self.mangle()


class pointer_type(dtype):
    """A pointer to elements of `element_ty`; `const` forbids stores through it."""

    def __init__(
        self, element_ty: dtype, address_space: str = "global", const: bool = False
    ) -> None:
        if not isinstance(element_ty, dtype):
            raise TypeError(f"a pointer points to a dtype, got {element_ty!r}")
        if address_space != "global":
            raise TypeError(f'address_space must be "global", got {address_space!r}')
        self.element_ty, self.address_space, self.const = element_ty, address_space, const
        self.name = f"pointer<{element_ty!s}>"
        self.kind, self.primitive_bitwidth = "pointer", 64

    def is_ptr(self) -> bool:
        return True

    def is_const(self) -> bool:
        return self.const

    @property
    def block(self) -> "block_type | None":
        """The block that a block pointer points to (tl.make_block_ptr); None of other pointers."""
        return self.element_ty if isinstance(self.element_ty, block_type) else None

    def __eq__(self, other: object) -> bool:
        return isinstance(other, pointer_type) and other.element_ty == self.element_ty

    def __hash__(self) -> int:
        return hash(("pointer", self.element_ty))

    def mangle(self) -> str:
        return ("*k" if self.const else "*") + self.element_ty.mangle()


class block_type(dtype):
    """A block (tile) of `element_ty` with a static shape."""

    def __init__(self, element_ty: dtype, shape: tuple[int, ...]) -> None:
        self.element_ty, self._shape = element_ty, tuple(shape)
        self.name = f"<{list(self._shape)}, {element_ty!s}>"
        self.kind, self.primitive_bitwidth = "block", element_ty.primitive_bitwidth

    @property
    def scalar(self) -> dtype:
        return self.element_ty

    @property
    def shape(self) -> tuple[int, ...]:
        return self._shape

    def is_block(self) -> bool:
        return True

    def get_block_shapes(self) -> tuple[int, ...]:
        """The shape."""
        return self._shape

    @property
    def numel(self) -> int:
        """How many elements there are."""
        return math.prod(self._shape)

    @property
    def nbytes(self) -> int:
        """Bytes of all elements."""
        return self.numel * self.element_ty.itemsize

    def with_element_ty(self, element_ty: dtype) -> dtype:
        return block_type(element_ty, self._shape)

    def __eq__(self, other: object) -> bool:
        return (
            type(other) is block_type
            and other.element_ty == self.element_ty
            and other.shape == self.shape
        )

    def __hash__(self) -> int:
        return hash(("block", self.element_ty, self._shape))

    def mangle(self) -> str:
        return f"{self.element_ty.mangle()}[{', '.join(map(str, self._shape))}]"


class tensor_descriptor_type(dtype):
    """A tensor in memory, of which blocks of `block_type` are loaded and stored; what they have
    outside of it is `padding`, "zero" or "nan", behind it "tf32" where loads round fp32."""

    def __init__(self, block: block_type, padding: str = "zero") -> None:
        self.block_type, self.padding, self.rank = block, padding, len(block.shape)
        self.name = f"tensor_descriptor<{block!s}>"
        self.kind, self.primitive_bitwidth = "descriptor", 0

    def __eq__(self, other: object) -> bool:
        return (
            isinstance(other, tensor_descriptor_type)
            and other.block_type == self.block_type
            and other.padding == self.padding
        )

    def __hash__(self) -> int:
        return hash(("descriptor", self.block_type, self.padding))

    def mangle(self) -> str:
        padding = "" if self.padding == "zero" else f", {self.padding}"
        return f"tensordesc<{self.block_type.mangle()}{padding}>"

    def parts(self) -> list[dtype]:
        """What a kernel takes in its place: the pointer, the sizes, and all strides but the last
        one, which is 1."""
        base = pointer_type(self.block_type.element_ty)
        return [base, *[int32] * self.rank, *[int64] * (self.rank - 1)]


def parts_of(type_: dtype) -> list[dtype]:
    """The types of what compiled code takes in the place of an argument."""
    return type_.parts() if isinstance(type_, tensor_descriptor_type) else [passed_as(type_)]


def passed_as(type_: dtype) -> dtype:
    """The type in which an argument comes: narrow floats as fp32, which the kernel rounds."""
    is_narrow = type_.is_floating() and type_.primitive_bitwidth < 32
    return float32 if is_narrow else type_


MAX_DESCRIPTOR_RANK = 5
DESCRIPTOR_ROW_BYTES = 16  # of a block at least; of a tensor's strides and address divisor


def check_descriptor_block(
    element: dtype, shape: tuple[int, ...], row_bytes: int = DESCRIPTOR_ROW_BYTES
) -> None:
    """Raises ValueError unless there are descriptors with such blocks."""
    check_block_shape(shape)
    if not 1 <= len(shape) <= MAX_DESCRIPTOR_RANK:
        raise ValueError(
            f"a tensor descriptor has 1 to {MAX_DESCRIPTOR_RANK} dimensions, got {len(shape)}"
        )
    if shape[-1] * element.itemsize < row_bytes:
        raise ValueError(
            f"Descriptor block shape must have at least {row_bytes} bytes in the last "
            f"dimension, got {shape[-1]} x {element.itemsize}"
        )


void = dtype("void")
int1 = dtype("int1")
int8 = dtype("int8")
int16 = dtype("int16")
int32 = dtype("int32")
int64 = dtype("int64")
uint8 = dtype("uint8")
uint16 = dtype("uint16")
uint32 = dtype("uint32")
uint64 = dtype("uint64")
float8e5 = dtype("float8e5")
float8e4nv = dtype("float8e4nv")
float8e5b16 = dtype("float8e5b16")
float8e4b8 = dtype("float8e4b8")
float8e4b15 = dtype("float8e4b15")
float16 = dtype("float16")
bfloat16 = dtype("bfloat16")
float32 = dtype("float32")
float64 = dtype("float64")
pi32_t = pointer_type(int32)

SCALARS = tuple(dtype(name) for name in _SHORT)
# What is meant to be a type, misspelled or not: "*fp32", "tl.int32", "tensordesc<...>".
LOOK = re.compile(r"(\w+\.)*\*?k?[a-z]+[0-9]+[a-z0-9]*|tensordesc(_im2col)?<.*")
LOADS = "(nan|(?:zero|nan) tf32)"  # what is said of loads, where it is not "zero"
READERS: list[Callable[[str], dtype | None]] = []  # of types that other modules have, as text
_BY_SHORT = {type_.short: type_ for type_ in SCALARS} | {"u1": int1}


def str_to_ty(text: str) -> dtype:
    """The type that a signature string names: "*fp16", "*kfp32", "i32"."""
    described = re.fullmatch(rf"tensordesc<([a-z0-9]+)\[([0-9, ]+)\](?:, {LOADS})?>", text)
    if described is not None:
        sizes = tuple(map(int, described[2].split(",")))
        block = block_type(str_to_ty(described[1]), sizes)
        return tensor_descriptor_type(block, described[3] or "zero")
    for read in READERS:
        if (found := read(text)) is not None:
            return found
    match = re.fullmatch(r"(\*k?)?([a-z0-9]+)", text)
    if match is None or match[2] not in _BY_SHORT:
        raise TypeError(f"no type is written {text!r}; examples: '*fp32', '*ki8', 'i32', 'bf16'")
    element = _BY_SHORT[match[2]]
    return pointer_type(element, const=match[1] == "*k") if match[1] else element


def get_int_dtype(bitwidth: int, signed: bool) -> dtype:
    """The integers of so many bits; of one bit there is one type."""
    name = "int1" if bitwidth == 1 else f"{'' if signed else 'u'}int{bitwidth}"
    found = {t.name: t for t in (int1, int8, int16, int32, int64, uint8, uint16, uint32, uint64)}
    if name not in found:
        raise ValueError(f"integers have 1, 8, 16, 32 or 64 bits, got {bitwidth}")
    return found[name]


def with_scalar(like: dtype, scalar: dtype) -> dtype:
    """`scalar` itself, or a block of it in the shape of `like`."""
    return like.with_element_ty(scalar)


@dataclass(frozen=True)
class const:
    """Annotation of a pointer argument that the kernel does not store through."""


class PropagateNan(enum.Enum):
    """What the greater or lesser of a number and a NaN is: the number (NONE), or NaN (ALL)."""

    NONE = "none"
    ALL = "all"


TRITON_MAX_TENSOR_NUMEL = 1 << 20


def check_block_shape(shape: tuple[object, ...]) -> tuple[int, ...]:
    """The shape as ints; raises ValueError unless every size is a power of two within limits."""
    sizes = tuple(unwrap(size) for size in shape)
    numel = 1
    for axis, size in enumerate(sizes):
        if not isinstance(size, int):
            raise ValueError(f"shape[{axis}] must be a constexpr integer, got {size!r}")
        if size < 1 or size & (size - 1):
            raise ValueError(f"Shape element {axis} must be a power of 2")
        numel *= size
    if numel > TRITON_MAX_TENSOR_NUMEL:
        raise ValueError(f"a block holds at most {TRITON_MAX_TENSOR_NUMEL} elements, got {numel}")
    return sizes
