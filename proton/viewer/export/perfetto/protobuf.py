"""Encoding many protobuf messages of one shape at once.

A `Rows` is the bytes of one field in each of n messages, kept as byte *columns*: column k holds
every message's k-th byte, and a mask says which messages have one. Nesting and joining then
cost nothing but lists, and `pack` writes all messages by one masked copy.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

_VARINT_BITS = 7
_VARINT, _FIXED64, _DELIMITED = 0, 1, 2


@dataclass(frozen=True)
class Rows:
    """Byte columns with their masks (None: every row has the byte), and each row's size."""

    columns: tuple[tuple[np.ndarray | int, np.ndarray | None], ...]
    size: np.ndarray | int

    def only(self, mask: np.ndarray) -> Rows:
        """These bytes in the rows of the mask, nothing in the others."""
        columns = tuple((c, mask if m is None else m & mask) for c, m in self.columns)
        return Rows(columns, self.size * mask)


def tag(message: Any, field: str) -> bytes:
    """The key of a field, number and wire type, read from the message's own schema."""
    descriptor = message.DESCRIPTOR.fields_by_name[field]
    delimited = (descriptor.TYPE_MESSAGE, descriptor.TYPE_STRING, descriptor.TYPE_BYTES)
    if descriptor.type in delimited:
        wire = _DELIMITED
    elif descriptor.type in (descriptor.TYPE_DOUBLE, descriptor.TYPE_FIXED64):
        wire = _FIXED64
    else:
        wire = _VARINT
    return varint_bytes(descriptor.number << 3 | wire)


def varint_bytes(value: int) -> bytes:
    """One varint."""
    out = bytearray()
    while value >> _VARINT_BITS:
        out.append(value & 0x7F | 0x80)
        value >>= _VARINT_BITS
    out.append(value)
    return bytes(out)


def literal(data: bytes) -> Rows:
    """The same bytes in every row."""
    return Rows(tuple((byte, None) for byte in data), len(data))


def varint(values: np.ndarray | int) -> Rows:
    """A varint in each row."""
    if isinstance(values, int):
        return literal(varint_bytes(values))
    values = values.astype(np.uint64, copy=False)
    largest = int(values.max(initial=0))
    columns: list[tuple[np.ndarray | int, np.ndarray | None]] = []
    size: np.ndarray | int = 1
    mask = None
    while True:
        more = largest >> _VARINT_BITS
        byte = values.astype(np.uint8)
        if not more:
            columns.append((byte, mask))
            return Rows(tuple(columns), size)
        values = values >> np.uint64(_VARINT_BITS)
        follows = values != 0
        columns.append((byte & 0x7F | follows.view(np.uint8) << 7, mask))
        size, mask, largest = size + follows, follows, more


def fixed64(bits: np.ndarray) -> Rows:
    """Eight bytes in each row, lowest first."""
    shifts = np.arange(0, 64, 8, dtype=np.uint64)
    return Rows(tuple(((bits >> s).astype(np.uint8), None) for s in shifts), 8)


def join(*parts: Rows) -> Rows:
    """The parts one after another."""
    columns = tuple(column for part in parts for column in part.columns)
    return Rows(columns, sum(part.size for part in parts))


def message(key: bytes, *parts: Rows) -> Rows:
    """A submessage: key, length, parts."""
    body = join(*parts)
    return join(literal(key), varint(body.size), body)


def pack(rows: Rows, count: int) -> tuple[np.ndarray, np.ndarray]:
    """The bytes of all rows, one row after another, and the size of each."""
    width = len(rows.columns)
    data = np.empty((count, width), np.uint8)
    keep = np.empty((count, width), bool)
    for number, (column, mask) in enumerate(rows.columns):
        data[:, number] = column
        keep[:, number] = True if mask is None else mask
    return data[keep], np.broadcast_to(rows.size, count)
