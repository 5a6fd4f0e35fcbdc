"""What a launch with `PROTON_CHECK_BOUNDS` gives to the kernel, and what it makes of the report."""

import ctypes
from dataclasses import dataclass
from typing import Any

from proton.base.bounds import ACCESS_WORD, ADDRESS_WORD, PROGRAM_WORD, argument_word, table_words
from proton.base.errors import BoundsError, SourceSpan
from proton.runtime.cpu.arguments import Memory, extent_of


@dataclass(frozen=True)
class _Array:
    """An array argument: its parameter's name, and the element indices that are inside."""

    name: str
    memory: Memory
    low: int  # address of the first byte
    high: int  # address behind the last one

    def __str__(self) -> str:
        size = self.memory.element.itemsize
        first, behind = self.index(self.low), -(-(self.high - self.memory.address) // size)
        if self.low == self.high:
            return f"{self.name} has no elements"
        return f"{self.name} has elements {first} to {behind - 1}"

    def index(self, address: int) -> int:
        """What is added to the pointer to get there, in elements."""
        return (address - self.memory.address) // self.memory.element.itemsize


class BoundsTable:
    """The table of one launch (proton.base.bounds)."""

    def __init__(self, kernel: Any, arguments: list[tuple[str, Any, Any]]) -> None:
        """`arguments`: of the code, each its name, what it was given, and its Memory if it is
        a pointer."""
        self.kernel = kernel
        self.arrays: dict[int, _Array] = {}
        self.words = (ctypes.c_int64 * table_words(len(arguments)))()
        for number, (name, value, memory) in enumerate(arguments):
            if isinstance(memory, Memory):
                low, high = extent_of(name, value)
                self.arrays[number] = _Array(name, memory, low, high)
                word = argument_word(number)
                self.words[word], self.words[word + 1] = low, high - low
        self.address = ctypes.addressof(self.words)

    def check(self) -> None:
        """Raises BoundsError if an access was outside."""
        number = self.words[ACCESS_WORD]
        if not number:
            return
        access = self.kernel.metadata["bounds"][number - 1]
        address = self.words[ADDRESS_WORD] & ((1 << 64) - 1)
        program = tuple(self.words[PROGRAM_WORD + axis] for axis in range(3))
        arrays = [self.arrays[argument] for argument in access["arguments"]]
        places = " or ".join(f"{array.name}[{array.index(address)}]" for array in arrays)
        raise BoundsError(
            f"kernel {self.kernel.name}: {access['kind']} outside of the array, at {places} "
            f"({'; '.join(map(str, arrays))}) in program {program}",
            SourceSpan(file=access["file"], line=access["line"], column=access["column"]),
            hint="mask it off; this access was left out, and the rest of the kernel ran",
        )
