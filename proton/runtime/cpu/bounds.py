"""What a launch with `PROTON_CHECK_BOUNDS` gives to the kernel, and what it makes of the report."""

import ctypes
from typing import Any

from proton.base.bounds import (
    ACCESS_WORD,
    ADDRESS_WORD,
    PROGRAM_WORD,
    Extent,
    argument_word,
    outside,
    table_words,
)
from proton.base.errors import BoundsError, SourceSpan
from proton.runtime.cpu.arguments import PointerArgument, extent_of


def extent(name: str, value: object, memory: PointerArgument) -> Extent:
    """The array that an argument points to, given what the caller passed and what it is."""
    return Extent(name, memory.address, memory.element.itemsize, *extent_of(name, value))


class BoundsTable:
    """The table of one launch (proton.base.bounds)."""

    def __init__(self, kernel: Any, arguments: list[tuple[str, Any, Any]]) -> None:
        """`arguments`: of the code, each its name, what it was given, and its Memory if it is
        a pointer."""
        self.kernel = kernel
        self.arrays: dict[int, Extent] = {}
        self.words = (ctypes.c_int64 * table_words(len(arguments)))()
        for number, (name, value, memory) in enumerate(arguments):
            if isinstance(memory, PointerArgument):
                self.arrays[number] = extent(name, value, memory)
                word = argument_word(number)
                array = self.arrays[number]
                self.words[word], self.words[word + 1] = array.low, array.high - array.low
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
        raise BoundsError(
            f"kernel {self.kernel.name}: {outside(access['kind'], address, arrays, program)}",
            SourceSpan(file=access["file"], line=access["line"], column=access["column"]),
            hint="mask it off; this access was left out, and the rest of the kernel ran",
        )
