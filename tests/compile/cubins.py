"""Reads what the tests want to know from a cubin: an ELF file (System V ABI), whose `.nv.info`
section is a list of attributes (format u8, attribute u8, size u16, value)."""

import struct
from dataclasses import dataclass

EM_CUDA = 190
_VALUE_IS_SIZED = 4
_REGISTERS, _FRAME = 0x2F, 0x11  # EIATTR_REGCOUNT, EIATTR_FRAME_SIZE


@dataclass(frozen=True)
class Cubin:
    """`registers` and `frames` (bytes of a thread's stack) by function."""

    machine: int
    arch: int
    functions: set[str]
    registers: dict[str, int]
    frames: dict[str, int]


def _text(data: bytes, start: int) -> str:
    return data[start : data.index(b"\0", start)].decode()


def read_cubin(data: bytes) -> Cubin:
    """Everything the tests ask about."""
    assert data[:4] == b"\x7fELF"
    machine, flags = struct.unpack_from("<H28xI", data, 18)
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * n) for n in range(count)]
    start = sections[names][4]
    named = {_text(data, start + s[0]): (s[4], s[5]) for s in sections}
    symbols, text = named[".symtab"], named[".strtab"][0]
    symbol_names = [
        _text(data, text + struct.unpack_from("<I", data, at)[0])
        for at in range(symbols[0], sum(symbols), 24)
    ]
    found: dict[int, dict[str, int]] = {_REGISTERS: {}, _FRAME: {}}
    at, end = named[".nv.info"][0], sum(named[".nv.info"])
    while at < end:
        kind, attribute, length = struct.unpack_from("<BBH", data, at)
        if attribute in found:
            symbol, value = struct.unpack_from("<II", data, at + 4)
            found[attribute][symbol_names[symbol]] = value
        at += 4 + (length if kind == _VALUE_IS_SIZED else 0)
    functions = {name[6:] for name in named if name.startswith(".text.")}
    return Cubin(machine, flags >> 8 & 0xFF, functions, found[_REGISTERS], found[_FRAME])
