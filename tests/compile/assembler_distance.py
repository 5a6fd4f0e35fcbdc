"""How far apart the assembler keeps instructions: cycles, as the machine code says."""

import re
import subprocess
import tempfile
from dataclasses import dataclass

from proton.base import nvidia_tools as tools

_LINE = re.compile(r"/\*[0-9a-f]{4,}\*/\s+(.*?)\s*;\s+/\* 0x[0-9a-f]{16} \*/\s*\n\s*/\* 0x(\w{16})")
_STALL = 41  # bits of the second word ahead of how long the next instruction waits
_ENDS = re.compile(r"\b(BRA|EXIT|RET|CALL|WARPSYNC)\b")


@dataclass(frozen=True)
class Instruction:
    text: str
    stall: int  # cycles until the next one is issued, at least


def instructions(cubin: bytes) -> list[Instruction]:
    with tempfile.NamedTemporaryFile(suffix=".cubin") as file:
        file.write(cubin)
        file.flush()
        text = subprocess.run(
            [str(tools.nvdisasm()), "-ndf", "-hex", "-c", file.name],
            capture_output=True, text=True, check=True,
        ).stdout  # fmt: skip
    return [Instruction(m[1], int(m[2], 16) >> _STALL & 15) for m in _LINE.finditer(text)]


def distances(cubin: bytes, first: str, then: str, ends: str = "") -> list[int]:
    """Cycles from each instruction `first` (a regular expression) to the next one `then`, where
    neither a branch nor `ends` comes before it."""
    found, code = [], instructions(cubin)
    for number, instruction in enumerate(code):
        if not re.search(first, instruction.text):
            continue
        cycles = instruction.stall
        for following in code[number + 1 :]:
            if re.search(then, following.text):
                found.append(cycles)
                break
            if _ENDS.search(following.text) or (ends and re.search(ends, following.text)):
                break
            cycles += following.stall
    return found
