"""Arrays by which accesses are checked, and the words for an access outside of them.

Compiled code checks by a table (`PROTON_CHECK_BOUNDS`) of 64-bit words. The first five are the
report of the first access that is outside of its array: which access of the kernel it is, counted
from 1 (0 while all is well), its address, and the x, y and z of its program. Behind them come two
for each argument of the code, 0 for one that is no pointer: the address of the array's first byte,
and how many bytes it has.
"""

from collections.abc import Sequence
from dataclasses import dataclass

ACCESS_WORD, ADDRESS_WORD, PROGRAM_WORD = 0, 1, 2
_REPORT_WORDS = 5
_WORDS_AN_ARGUMENT = 2
WORD_BYTES = 8


def argument_word(argument: int) -> int:
    """Where the array of an argument of the code is described."""
    return _REPORT_WORDS + _WORDS_AN_ARGUMENT * argument


def table_words(arguments: int) -> int:
    """The size of a table."""
    return argument_word(arguments)


@dataclass(frozen=True)
class Extent:
    """An array argument: its parameter's name, where its pointer points, the size of an element,
    and the bytes [low, high) of its elements."""

    name: str
    address: int
    itemsize: int
    low: int
    high: int

    def __str__(self) -> str:
        if self.low == self.high:
            return f"{self.name} has no elements"
        first, behind = self.index(self.low), -(-(self.high - self.address) // self.itemsize)
        return f"{self.name} has elements {first} to {behind - 1}"

    def place(self, address: int) -> str:
        """What an access at an address is at; one may begin inside and end outside."""
        beyond = " and beyond" if self.low <= address < self.high else ""
        return f"{self.name}[{self.index(address)}]{beyond}"

    def index(self, address: int) -> int:
        """What is added to the pointer to get there, in elements."""
        return (address - self.address) // self.itemsize


def outside(kind: str, address: int, arrays: Sequence[Extent], program: tuple[int, ...]) -> str:
    """What is said of an access ("load", "store") to an address outside of an array, which is one
    of these."""
    places = " or ".join(array.place(address) for array in arrays)
    return (
        f"{kind} outside of the array, at {places} ({'; '.join(map(str, arrays))}) in program "
        f"{program}"
    )
