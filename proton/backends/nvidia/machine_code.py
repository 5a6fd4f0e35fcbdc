"""What machine code says of its loads, and its symbols: a cubin, which is an ELF file.

An instruction is 128 bits from 7.0 on. Its lower bits are the operation; the upper ones say which
of six counters it sets until its result is there, and which of them it waits for ahead of its start
(Jia et al., Dissecting the NVIDIA Volta GPU Architecture via Microbenchmarking, 2018).
"""

import functools
import re
import struct
from dataclasses import dataclass

from proton.base.symbols import unmarked

_SECTION = "<IIQQQQIIQQ"  # of ELF: its name, then with others where it begins, and its bytes
_STRINGS = 3  # a kind of section
_OPERATION, _GLOBAL_LOAD = 0x1FF, 0x181  # LDG, in each form of its address
_FENCE, _SCOPE, _GPU = 0x192, 0xF000, 0xA000  # MEMBAR, and of its upper half who sees the accesses
_WIDTH, _WIDTHS = 9, (1, 1, 2, 2, 4, 8, 16, 16)  # bit of the upper half, bytes
_SETS, _NONE, _WAITS = 46, 7, 52  # bits of the upper half


@dataclass(frozen=True)
class GlobalLoads:
    """Of a thread's global loads, in the order of the code: how often it waits for some of them, or
    at a fence until the GPU sees all accesses, as ahead of an atomic; the bytes that are under way
    at once, at most, and the bytes of all."""

    waits: int
    most_bytes: int
    all_bytes: int


@functools.lru_cache(maxsize=4)  # each way to assemble a kernel again asks
def loads_of(cubin: bytes, symbol: str) -> GlobalLoads:
    """The global loads of a function of a cubin."""
    waits = most = under_way = total = 0
    counters: set[int] = set()
    for lower, upper in struct.iter_unpack("<QQ", _code(cubin, symbol)):
        if any(upper >> _WAITS + counter & 1 for counter in counters):
            waits, under_way, counters = waits + 1, 0, set()
        waits += lower & _OPERATION == _FENCE and upper & _SCOPE == _GPU
        counter = upper >> _SETS & _NONE
        if lower & _OPERATION == _GLOBAL_LOAD and counter != _NONE:
            counters.add(counter)
            under_way += (width := _WIDTHS[upper >> _WIDTH & 7])
            total, most = total + width, max(most, under_way)
    return GlobalLoads(waits, most, total)


def with_plain_symbol(cubin: bytes, symbol: str) -> tuple[bytes, str]:
    """A cubin in which the function with a symbol has another, and that: its name, as launchers
    other than Proton's know it, where nothing else in there has it."""
    plain, (sections, _) = unmarked(symbol), _sections(cubin)
    tables = [slice(s[4], s[4] + s[5]) for s in sections if s[1] == _STRINGS]
    if plain == symbol or any(f"\0{plain}\0".encode() in cubin[where] for where in tables):
        return cubin, symbol
    name = re.compile(rb"(?<=[\0.])" + re.escape(f"{symbol}\0".encode()))
    shorter = f"{plain}\0".ljust(len(symbol) + 1, "\0").encode()
    found = bytearray(cubin)
    for where in tables:
        found[where] = name.sub(shorter, cubin[where])
    return bytes(found), plain


def _sections(cubin: bytes) -> tuple[list[tuple[int, ...]], int]:
    """The headers of the sections, and the number of the one that has their names."""
    (table,) = struct.unpack_from("<Q", cubin, 40)
    size, count, names = struct.unpack_from("<HHH", cubin, 58)
    return [struct.unpack_from(_SECTION, cubin, table + size * n) for n in range(count)], names


def _code(cubin: bytes, symbol: str) -> bytes:
    """The instructions of a function."""
    sections, names = _sections(cubin)
    wanted = f".text.{symbol}\0".encode()
    start = sections[names][4]
    (found,) = (s for s in sections if cubin.startswith(wanted, start + s[0]))
    return cubin[found[4] : found[4] + found[5]]
