"""Reads what the tests want to know from a cubin: an ELF file (System V ABI), whose `.nv.info`
section is a list of attributes (format u8, attribute u8, size u16, value)."""

import struct
from dataclasses import dataclass

EM_CUDA = 190
# Which instruction the low nine bits say; nvdisasm, which says it too, takes 0.3 s.
_KINDS = 0x1FF
KINDS = {
    0x03F: "DMMA", 0x1F0: "HGMMA", 0x1F3: "QGMMA",
    0x1B4: "UTMALDG", 0x1B5: "UTMASTG", 0x1B6: "UTMAREDG", 0x1B9: "UTMACCTL",
}  # fmt: skip
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


def _sections(data: bytes) -> dict[str, tuple[int, int]]:
    """Where each section begins, and its size."""
    assert data[:4] == b"\x7fELF"
    (table,) = struct.unpack_from("<Q", data, 40)
    size, count, names = struct.unpack_from("<HHH", data, 58)
    sections = [struct.unpack_from("<IIQQQQIIQQ", data, table + size * n) for n in range(count)]
    start = sections[names][4]
    return {_text(data, start + s[0]): (s[4], s[5]) for s in sections}


def instructions(data: bytes) -> set[str]:
    """Of KINDS those that are in the machine code."""
    code = [data[at : at + n] for name, (at, n) in _sections(data).items() if name[:6] == ".text."]
    kinds = {lower & _KINDS for text in code for lower, _ in struct.iter_unpack("<QQ", text)}
    return {name for kind, name in KINDS.items() if kind in kinds}


def read_cubin(data: bytes) -> Cubin:
    """Everything else that the tests ask about."""
    machine, flags = struct.unpack_from("<H28xI", data, 18)
    named = _sections(data)
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
