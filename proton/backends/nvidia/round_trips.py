"""How many round trips to global memory a program makes, one after the other.

Loads that are issued before any of them is waited for are one trip. A load that is issued after a
wait for one of trip n is of trip n + 1. Branches count as if none was taken: a loop runs once.

    ld a      trip 1            ld a      trip 1
    ld b      trip 1            add a, a
    add a, a                    ld b      trip 2
    add b, b                    add b, b

In PTX the first use of a result waits for it. ptxas orders loads anew, and where registers are few
each is used before the next one is issued, into the same registers. Machine code says itself what
it waits for: an instruction of 128 bits names one of six scoreboards that its result is noted on,
and those that have to be clear before it is issued. NVIDIA does not document these bits, which are
in the same place from 7.0 to 12.0; tests compare them with nvdisasm's text.
"""

import re
import struct
from dataclasses import dataclass

_LOAD = re.compile(r"\s*(?:@!?%p\d+\s+)?ld\.[\w.]*global[\w.:]*\s+(\{[^}]*\}|%\w+)\s*,\s*(\[.*)")
_REGISTER = re.compile(r"%(?:r|rd|rs|f|fd)\d+\b")
_SECTION = b".text."
_HEADER, _SECTION_HEADER = struct.Struct("<40xQ10xHHH"), struct.Struct("<IIQQQQIIQQ")
_INSTRUCTION = struct.Struct("<QQ")
_OPCODE, _LOAD_OPCODE = 0x1FF, 0x181  # LDG, whatever its address is made of
_SCOREBOARDS, _NONE = 6, 7
_SET, _AWAITED = 46, 52  # bits of the upper half: the scoreboard that is set, those waited for


@dataclass(frozen=True)
class RoundTrips:
    """The loads of global memory in the text of a program, and how many trips they take."""

    loads: int
    trips: int


def of_ptx(ptx: str) -> RoundTrips:
    """Those of a kernel, by the order of the text."""
    under_way = dict[str, int]()  # the trip of what a register will hold
    loads = trips = done = 0
    for line in ptx.splitlines():
        load = _LOAD.match(line)
        used = _REGISTER.findall(line if load is None else load[2])
        for register in used if under_way else ():
            done = max(done, under_way.pop(register, 0))
        if load is not None:
            loads, trips = loads + 1, max(trips, done + 1)
            under_way |= dict.fromkeys(_REGISTER.findall(load[1]), done + 1)
    return RoundTrips(loads, trips)


def of_code(cubin: bytes) -> RoundTrips:
    """Those of the kernel in a cubin."""
    under_way = [0] * (_NONE + 1)  # the trip of the loads that a scoreboard stands for
    loads = trips = done = 0
    for low, high in _INSTRUCTION.iter_unpack(_text(cubin)):
        for board in range(_SCOREBOARDS) if high >> _AWAITED & 63 else ():
            if high >> _AWAITED + board & 1:
                done, under_way[board] = max(done, under_way[board]), 0
        if low & _OPCODE == _LOAD_OPCODE:
            loads += 1
            if (board := high >> _SET & 7) != _NONE:
                under_way[board] = done + 1
                trips = max(trips, done + 1)
    return RoundTrips(loads, trips)


def _text(cubin: bytes) -> bytes:
    """The instructions of a kernel and its functions: ELF sections that are named after them."""
    place, size, count, names = _HEADER.unpack_from(cubin)
    sections = [_SECTION_HEADER.unpack_from(cubin, place + size * n) for n in range(count)]
    named = sections[names][4]
    return b"".join(
        cubin[start : start + length]
        for name, _, _, _, start, length, *_ in sections
        if cubin.startswith(_SECTION, named + name)
    )
