"""MessagePack, as far as JSON's values go: None, bools, numbers, text, lists, dicts.

The first byte of a value says what follows, and of what is short how long it is:

    0x00-0x7f  an integer         0x80-0x8f  a dict        0x90-0x9f  a list
    0xa0-0xbf  text               0xc0-0xdf  the forms of `_FORMS`
    0xe0-0xff  -32 to -1
"""

import struct
from typing import Any

_NONE, _FALSE, _TRUE, _DOUBLE = 0xC0, 0xC2, 0xC3, 0xCB
_TEXTS, _LISTS, _DICTS = (0xD9, 0xDA, 0xDB), (0xDC, 0xDD), (0xDE, 0xDF)
_UNSIGNED, _SIGNED = {0xCC: "B", 0xCD: "H", 0xCE: "I", 0xCF: "Q"}, {0xD0: "b", 0xD1: "h"}
_SIGNED |= {0xD2: "i", 0xD3: "q"}
# Numbers, and the lengths of what is long, by their first byte, as `struct` calls them.
_FORMS = {0xCA: "f", _DOUBLE: "d"} | _UNSIGNED | _SIGNED
_FORMS |= dict(zip(_TEXTS + _LISTS + _DICTS, "BHIHIHI", strict=True))


def packed(value: object) -> bytes:
    """A value's bytes; raises TypeError for one that JSON has not, and OverflowError for an integer
    of more than 64 bits."""
    out = bytearray()
    _pack(value, out)
    return bytes(out)


def _pack(value: object, out: bytearray) -> None:
    if value is None:
        out.append(_NONE)
    elif isinstance(value, bool):
        out.append(_TRUE if value else _FALSE)
    elif isinstance(value, int):
        _pack_integer(value, out)
    elif isinstance(value, float):
        out += struct.pack(">Bd", _DOUBLE, value)
    elif isinstance(value, str):
        text = value.encode("utf-8")
        _pack_length(len(text), 0xA0, 32, _TEXTS, out)
        out += text
    elif isinstance(value, list | tuple):
        _pack_length(len(value), 0x90, 16, _LISTS, out)
        for each in value:
            _pack(each, out)
    elif isinstance(value, dict):
        _pack_length(len(value), 0x80, 16, _DICTS, out)
        for pair in value.items():
            for each in pair:
                _pack(each, out)
    else:
        raise TypeError(f"MessagePack has no {type(value).__name__}: {value!r}")


def _pack_integer(value: int, out: bytearray) -> None:
    if -32 <= value < 128:
        out.append(value & 0xFF)
        return
    for first, form in (_SIGNED if value < 0 else _UNSIGNED).items():
        bits = 8 * struct.calcsize(form)
        if -(1 << bits - 1) <= value < 1 << bits:
            out += struct.pack(f">B{form}", first, value)
            return
    raise OverflowError(f"MessagePack has integers of up to 64 bits, got {value}")


def _pack_length(
    length: int, short: int, most: int, firsts: tuple[int, ...], out: bytearray
) -> None:
    if length < most:
        out.append(short | length)
        return
    for first in firsts:
        form = _FORMS[first]
        if length < 1 << 8 * struct.calcsize(form):
            out += struct.pack(f">B{form}", first, length)
            return
    raise OverflowError(f"MessagePack has lengths of up to 32 bits, got {length}")


def unpacked(data: bytes) -> Any:
    """The value of some bytes; raises ValueError for what is none."""
    reader = _Reader(data)
    try:
        value = reader.value()
    except (IndexError, RecursionError):
        raise ValueError(
            f"MessagePack ends within a value, or lies too deep: {len(data)} bytes"
        ) from None
    if reader.at != len(data):
        raise ValueError(f"MessagePack goes on behind its value, at byte {reader.at}")
    return value


class _Reader:
    def __init__(self, data: bytes) -> None:
        self.data, self.at = data, 0

    def value(self) -> Any:
        first = self.data[self.at]
        self.at += 1
        if first < 0x80 or first >= 0xE0:
            return first - (first >= 0xE0) * 256
        if first in (_NONE, _FALSE, _TRUE):
            return {_NONE: None, _FALSE: False, _TRUE: True}[first]
        number = self._number(first) if first >= _NONE else first & (0x1F if first >= 0xA0 else 0xF)
        if first in _TEXTS or 0xA0 <= first < _NONE:
            return self._take(number).decode("utf-8")
        if first in _LISTS or 0x90 <= first < 0xA0:
            return [self.value() for _ in range(number)]
        if first in _DICTS or first < 0x90:
            return {self.value(): self.value() for _ in range(number)}
        return number

    def _number(self, first: int) -> Any:
        if first not in _FORMS:
            raise ValueError(f"MessagePack: byte {self.at - 1} is {first:#x}, of no value of JSON")
        form = f">{_FORMS[first]}"
        (number,) = struct.unpack(form, self._take(struct.calcsize(form)))
        return number

    def _take(self, size: int) -> bytes:
        taken = self.data[self.at : self.at + size]
        if len(taken) < size:
            raise IndexError
        self.at += size
        return taken
