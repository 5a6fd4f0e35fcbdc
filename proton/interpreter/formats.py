"""How numpy holds values of the IR: an array for a block, one without dimensions for a scalar.

Integers are signless in the IR, and signed here. numpy has neither bf16 nor 8-bit floats: arrays
hold their bits, and `widen` and `narrow` lead to numbers and back. A pointer is an address and the
number of the argument that it came from, so that an access can be checked against that array.
"""

import contextlib
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from proton.base.float8 import BY_TYPE, Float8
from proton.dialect.mlir import Type, ir
from proton.dialect.tt import PointerType

Array = np.ndarray  # or a scalar of numpy, which has all that is asked of one
POINTER = np.dtype([("address", "<i8"), ("owner", "<i4")])
NOBODY = -1  # the owner of a pointer that came from memory or from an integer


@dataclass(frozen=True)
class Format:
    """How elements of a type are held, and what they are computed as."""

    storage: np.dtype
    bits: int
    widen: Callable[[Array], Array]
    # rounds numbers of any float type once, to nearest even
    narrow: Callable[[Array | np.generic], Array]

    @property
    def itemsize(self) -> int:
        """Bytes of an element in memory."""
        return max(1, self.bits // 8)

    @property
    def is_narrow_float(self) -> bool:
        """True if these are fp16 or bf16."""
        return self.bits == 16 and self.is_float

    @property
    def is_float(self) -> bool:
        """True if these are floats: numbers of numpy's own, or bits in unsigned integers."""
        return self.storage.kind in "fu"

    def widen_to_fp32(self, value: Array) -> np.ndarray:
        """Numbers of a float type as fp32."""
        return np.asarray(self.widen(value)).astype(np.float32)


def pointers(address: Array | int, owner: Array | int) -> np.ndarray:
    """Pointers of their two parts, which have shapes that broadcast."""
    found = np.empty(np.broadcast_shapes(np.shape(address), np.shape(owner)), POINTER)
    found["address"], found["owner"] = address, owner
    return found


def _same(value: Array | np.generic) -> Array:
    return value  # type: ignore[return-value]  # a scalar of numpy


def _as(dtype: str | type) -> Callable[[Array | np.generic], Array]:
    return lambda value: np.asarray(value).astype(dtype)


def odd_float32(value: Array | np.generic) -> np.ndarray:
    """Numbers as fp32, rounded to odd: rounding them again to fewer bits is then exact."""
    value = np.asarray(value)
    near = value.astype(np.float32)
    if value.dtype.itemsize <= near.dtype.itemsize:
        return near
    inexact = (near.astype(value.dtype) != value) & np.isfinite(value)
    away = np.abs(near.astype(value.dtype)) > np.abs(value)
    bits = near.view(np.uint32)
    bits = np.where(inexact & away, bits - np.uint32(1), bits)
    return np.where(inexact, bits | np.uint32(1), bits).view(np.float32)


def _widen_bf16(bits: Array) -> np.ndarray:
    return (np.asarray(bits).astype(np.uint32) << np.uint32(16)).view(np.float32)


def _narrow_bf16(value: Array | np.generic) -> np.ndarray:
    value = odd_float32(value)
    bits = value.view(np.uint32)
    rounded = (bits + (((bits >> np.uint32(16)) & np.uint32(1)) + np.uint32(0x7FFF))) >> 16
    quiet = (bits >> np.uint32(16)) | np.uint32(0x40)
    return np.where(np.isnan(value), quiet, rounded).astype(np.uint16)


def _float8(kind: Float8) -> tuple[Any, Any]:
    """(widen, narrow) of an 8-bit float."""
    table = np.array([kind.decode(code) for code in range(256)], np.float32)
    finite = table[: kind.largest_bits + 1].astype(np.float64)

    def narrow(value: Array) -> np.ndarray:
        value = np.asarray(value, np.float64)
        size = np.minimum(np.abs(value), kind.largest)
        above = np.minimum(np.searchsorted(finite, size), finite.size - 1)
        below = np.maximum(above - 1, 0)
        up, down = finite[above] - size, size - finite[below]
        code = np.where((up < down) | ((up == down) & (above % 2 == 0)), above, below)
        code = np.where(np.isnan(value), kind.not_a_number, code)
        has_sign = np.signbit(value) & ((code != 0) | kind.has_negative_zero)
        return (code | (has_sign << 7)).astype(np.uint8)

    return (lambda found: table[np.asarray(found)]), narrow


def _formats() -> dict[str, Format]:
    found = {
        f"i{bits}": Format(np.dtype(f"int{bits}"), bits, _same, _as(f"int{bits}"))
        for bits in (8, 16, 32, 64)
    }
    for bits in (16, 32, 64):
        found[f"f{bits}"] = Format(np.dtype(f"float{bits}"), bits, _same, _as(f"float{bits}"))
    found["i1"] = Format(np.dtype(bool), 1, _same, _as(bool))
    found["index"] = found["i64"]
    found["i128"] = Format(np.dtype(object), 128, _same, _as(object))  # Python's own integers
    found["bf16"] = Format(np.dtype(np.uint16), 16, _widen_bf16, _narrow_bf16)
    for name, kind in BY_TYPE.items():
        found[name] = Format(np.dtype(np.uint8), 8, *_float8(kind))
    return found


_FORMATS = _formats()
_POINTER = Format(POINTER, 64, _same, _same)


def element_type(type_: Type) -> Type:
    """The element type of a tensor type; a scalar's is itself."""
    return type_.element_type if isinstance(type_, ir.RankedTensorType) else type_


_widened: list[str] = []  # the names of types that fp32 stands for now


@contextlib.contextmanager
def fp32_in_place_of_16_bits() -> Iterator[None]:
    """Has `format_of` give fp32 for fp16 and bf16: plans made inside compute in it."""
    _widened.extend(("f16", "bf16"))
    try:
        yield
    finally:
        _widened.clear()


def format_of(type_: Type) -> Format:
    """How elements of an MLIR type, which may be a tensor's, are held."""
    element = element_type(type_)
    if isinstance(element, PointerType):
        return _POINTER
    name = str(element)
    return _FORMATS["f32" if name in _widened else name]


def format_named(name: str) -> Format:
    """The format of the MLIR type of this name."""
    return _FORMATS[name]


_NO_SIGN = (np.dtype(bool), np.dtype(object))


def unsigned(value: Array) -> Array:
    """The bits of signed integers as unsigned ones."""
    value = np.asarray(value)
    return value if value.dtype in _NO_SIGN else value.view(f"u{value.dtype.itemsize}")


def signed(value: Array | np.generic) -> Array:
    """The bits of unsigned integers as signed ones."""
    value = np.asarray(value)
    return value if value.dtype in _NO_SIGN else value.view(f"i{value.dtype.itemsize}")
